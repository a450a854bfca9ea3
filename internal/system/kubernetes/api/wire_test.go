package api

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// newsOf is decodePod's slow twin: the same from the whole decoded object.
func newsOf(pod *corev1.Pod) PodNews {
	p := PodNews{resourceVersion: pod.ResourceVersion}
	p.Name, p.UID, p.Node = pod.Namespace+"/"+pod.Name, string(pod.UID), pod.Spec.NodeName
	p.Slot = p.Name
	if slot, ok := pod.Labels[LabelSlot]; ok {
		p.Slot = pod.Namespace + "/" + slot
	}
	_, p.IsCanary = pod.Labels[LabelCanary]
	_, p.OfJob = pod.Labels[batchv1.JobNameLabel]
	p.Canary = pod.Annotations[AnnotationCanary]
	p.Created = unix(pod.CreationTimestamp)
	p.Deleting = pod.DeletionTimestamp != nil
	p.Phase = map[corev1.PodPhase]observe.Phase{
		corev1.PodPending: observe.PhasePending, corev1.PodRunning: observe.PhaseRunning,
		corev1.PodSucceeded: observe.PhaseSucceeded, corev1.PodFailed: observe.PhaseFailed,
	}[pod.Status.Phase]
	for _, c := range pod.Status.Conditions {
		i, ok := map[corev1.PodConditionType]int{
			corev1.PodScheduled: observe.CondScheduled, corev1.PodReadyToStartContainers: observe.CondReadyToStart,
			corev1.PodInitialized: observe.CondInitialized, corev1.ContainersReady: observe.CondContainersReady, corev1.PodReady: observe.CondReady,
		}[c.Type]
		if ok {
			p.Conditions[i] = observe.Condition{Known: true, True: c.Status == corev1.ConditionTrue, Reason: c.Reason, Message: c.Message, Stamp: unix(c.LastTransitionTime)}
		}
	}
	p.Trouble = observe.Reason{Reason: pod.Status.Reason, Message: pod.Status.Message}
	p.Containers = len(pod.Spec.Containers) + len(pod.Spec.InitContainers)
	started := len(pod.Spec.Containers) > 0 && len(pod.Status.ContainerStatuses) >= len(pod.Spec.Containers)
	for i, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for _, c := range list {
			p.Restarts += int(c.RestartCount)
			running := false
			switch s := c.State; {
			case s.Running != nil:
				running = true
				p.StartedStamp = max(p.StartedStamp, unix(s.Running.StartedAt))
			case s.Terminated != nil:
				running = unix(s.Terminated.StartedAt) != 0
				p.StartedStamp = max(p.StartedStamp, unix(s.Terminated.StartedAt))
				if s.Terminated.ExitCode != 0 && p.Trouble.Reason == "" && s.Terminated.Reason != "" {
					p.Trouble = observe.Reason{Reason: s.Terminated.Reason, Message: s.Terminated.Message}
				}
			case s.Waiting != nil:
				if p.Trouble.Reason == "" && s.Waiting.Reason != "" {
					p.Trouble = observe.Reason{Reason: s.Waiting.Reason, Message: s.Waiting.Message}
				}
			}
			if i == 0 {
				started = started && running
			}
		}
	}
	if p.Started = started; !started {
		p.StartedStamp = 0
	}
	return p
}

func unix(t metav1.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// randomPod draws a pod of any shape, likely or not.
func randomPod(rng *rand.Rand) *corev1.Pod {
	word := func() string { return []string{"", "a", "web-1", "x.y/z", "Größe", "Unschedulable"}[rng.IntN(6)] }
	at := func() metav1.Time {
		if rng.IntN(4) == 0 {
			return metav1.Time{}
		}
		return metav1.Unix(1_790_000_000+rng.Int64N(1000), 0)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "pod-" + fmt.Sprint(rng.IntN(1000)), Namespace: word(), UID: types.UID(word()), ResourceVersion: fmt.Sprint(rng.IntN(1e9)),
		CreationTimestamp: at(), Labels: map[string]string{"app": "x"}, Annotations: map[string]string{"note": word()},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}}`)}},
	}}
	if rng.IntN(3) == 0 {
		pod.Labels[LabelSlot] = word()
	}
	if rng.IntN(3) == 0 {
		pod.Labels[batchv1.JobNameLabel] = word()
	}
	if rng.IntN(3) == 0 {
		pod.Labels[LabelCanary] = "true"
		pod.Annotations[AnnotationCanary] = fmt.Sprint(rng.IntN(99))
	}
	if rng.IntN(4) == 0 {
		now := metav1.Unix(1_790_000_500, 0)
		pod.DeletionTimestamp = &now
	}
	pod.Spec.NodeName = word()
	pod.Status.Phase = []corev1.PodPhase{"", "Pending", "Running", "Succeeded", "Failed", "Unknown"}[rng.IntN(6)]
	if rng.IntN(4) == 0 {
		pod.Status.Reason, pod.Status.Message = word(), word()
	}
	for _, c := range []corev1.PodConditionType{"PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready", "example.com/other"} {
		if rng.IntN(3) > 0 {
			status := []corev1.ConditionStatus{"True", "False", "Unknown"}[rng.IntN(3)]
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: status, Reason: word(), Message: word(), LastTransitionTime: at(), ObservedGeneration: 3})
		}
	}
	container := func() corev1.ContainerStatus {
		c := corev1.ContainerStatus{Name: word(), RestartCount: rng.Int32N(3), Image: "i", Ready: rng.IntN(2) == 0}
		switch rng.IntN(4) {
		case 0:
			c.State.Running = &corev1.ContainerStateRunning{StartedAt: at()}
		case 1:
			c.State.Waiting = &corev1.ContainerStateWaiting{Reason: word(), Message: word()}
		case 2:
			c.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: rng.Int32N(2), Reason: word(), Message: word(), StartedAt: at(), FinishedAt: at()}
		}
		return c
	}
	for range rng.IntN(3) {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "c", Image: "i"})
	}
	for range rng.IntN(3) {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "i", Image: "i"})
	}
	for range rng.IntN(4) {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, container())
	}
	for range rng.IntN(2) {
		pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, container())
	}
	return pod
}

func TestDecodePodAgreesWithItsTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 20_000 {
		pod := randomPod(rng)
		raw, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var got PodNews
		if err := DecodePod(raw, &got); err != nil {
			t.Fatal(err)
		}
		if want := newsOf(pod); !reflect.DeepEqual(got, want) {
			t.Fatalf("pod %+v\n got %+v\nwant %+v", pod, got, want)
		}
	}
}

// A watch's stream, as the API server encodes it, comes apart again.
func TestReadFrameAndEnvelope(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "u-1"}}
	pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	var object bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(pod, &object); err != nil {
		t.Fatal(err)
	}
	event := metav1.WatchEvent{Type: EventAdded}
	event.Object.Raw = object.Bytes()
	msg, err := event.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	stream := binary.BigEndian.AppendUint32(nil, uint32(len(msg)))
	stream = append(stream, msg...)
	r := bytes.NewReader(append(stream, stream[:len(stream)-1]...))
	frame, err := readFrame(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	kind, enveloped, err := watchEvent(frame)
	if err != nil || kind != EventAdded {
		t.Fatalf("event %q, %v", kind, err)
	}
	raw, err := OpenEnvelope(enveloped)
	if err != nil {
		t.Fatal(err)
	}
	var got PodNews
	uid, _ := DecodeMeta(raw)
	if err := DecodePod(raw, &got); err != nil || got.Name != "ns/a" || uid != "u-1" {
		t.Errorf("pod %q, uid %q, %v", got.Name, uid, err)
	}
	if _, err := readFrame(r, frame); err != io.ErrUnexpectedEOF {
		t.Errorf("a message that was cut: %v, want io.ErrUnexpectedEOF", err)
	}
	if _, err := OpenEnvelope([]byte(`{"kind":"Pod"}`)); err == nil {
		t.Error("JSON passed for protobuf")
	}
}

func FuzzDecodePod(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		raw, _ := randomPod(rng).Marshal()
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var p PodNews
		_ = DecodePod(raw, &p) // an error is fine, a panic is not
	})
}

func BenchmarkDecodePod(b *testing.B) {
	pod := randomPod(rand.New(rand.NewPCG(3, 3)))
	pod.CreationTimestamp = metav1.NewTime(time.Unix(1_790_000_000, 0))
	raw, err := pod.Marshal()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("this", func(b *testing.B) {
		b.ReportAllocs()
		var p PodNews
		for range b.N {
			_ = DecodePod(raw, &p)
		}
	})
	b.Run("whole object", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			var pod corev1.Pod
			_ = pod.Unmarshal(raw)
		}
	})
}
