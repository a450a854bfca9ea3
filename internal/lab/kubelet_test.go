package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// unlike is all in which a simulated node's pods may differ from a kubelet's:
// paths of fields, as shape writes them, each with its reason.
var unlike = []struct{ path, reason string }{
	{`.*\.containerID|.*\.imageID`, "nothing runs: they say that they are simulated"},
	{`.* (Pulled|Created|Started) \.message`, "nothing was pulled, made or started: it says so"},
	{`.*\.resources\.limits\.memory`, "what the node's control groups allow: there are none"},
	{`.*\.conditions\[PodReadyToStartContainers\]\.status|sidecar MODIFIED \.conditions\[(ContainersReady|Ready)\]\.message`, "a kubelet's first status, before there is a network, is not written"},
	{`init MODIFIED \.initContainerStatuses\[first\]\.(started|state\.running\.startedAt)`, "that an init container runs is not written, only that it has ended"},
	{`(init|plain|probed|sidecar) removal \..*`, "that its containers have ended is not written of a pod that is deleted: it vanishes"},
	{`.* event .* Killing \..*`, "of a pod that vanishes at once"},
}

// The same pods on a simulated node and on a kubelet's say the same of
// themselves, in status and events: programs that read the one read the other.
func TestASimulatedNodesPodsAreLikeAKubelets(t *testing.T) {
	t.Parallel()
	suite.Long(t, "it runs pods of every kind on a real node")
	needRealNode(t)
	s := liveStore(t)
	l, err := s.Up(t.Context(), Spec{Name: "both", Shape: Shape{Nodes: 1, RealNode: true,
		StartLatency: dist.Dist{Shape: dist.Constant, A: time.Second}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Down(context.Background()) })
	client := user(t, l)
	found := make(map[string]map[string][]string, 2)
	for _, fidelity := range []string{protocol.FidelityReal, protocol.FidelitySimulated} {
		found[fidelity] = shapes(t, client, fidelity)
	}
	used := make([]bool, len(unlike))
	allowed := func(path string) bool {
		any := false
		for i, u := range unlike {
			if regexp.MustCompile("^" + u.path + "$").MatchString(path) {
				used[i], any = true, true
			}
		}
		return any
	}
	want, got := found[protocol.FidelityReal], found[protocol.FidelitySimulated]
	paths := make(map[string]bool)
	for _, shape := range []map[string][]string{want, got} {
		for path := range shape {
			paths[path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		if !slices.Equal(want[path], got[path]) && !allowed(path) {
			t.Errorf("%s:\na kubelet: %q\nsimulated: %q", path, want[path], got[path])
		}
	}
	for i, u := range unlike {
		if !used[i] {
			t.Errorf("%s is allowed to differ (%s), and does not", u.path, u.reason)
		}
	}
}

// shapes runs pods of each kind on the nodes of a fidelity, and tells of each
// field of their status and events which values it took, in their order.
func shapes(t *testing.T, client kubernetes.Interface, fidelity string) map[string][]string {
	t.Helper()
	namespace := "on-" + fidelity
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w, err := client.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan map[string][]string, 1)
	go func() {
		fields, writes := make(map[string][]string), 0
		for e := range w.ResultChan() {
			pod, ok := e.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			name := regexp.MustCompile(`^job-.*`).ReplaceAllString(pod.Name, "job")
			when := string(e.Type)
			if pod.DeletionTimestamp != nil {
				when = "removal"
			}
			shape(name+" "+when+" .", pod.Status, fields)
			writes++
		}
		t.Logf("%s: %d news of pods", fidelity, writes)
		seen <- fields
	}()

	pods := client.CoreV1().Pods(namespace)
	newPod := func(name string, args []string, change ...func(*corev1.Pod)) *corev1.Pod {
		pod := realPod(name, "", args...)
		pod.Spec.NodeSelector = map[string]string{protocol.FidelityLabel: fidelity}
		for _, c := range change {
			c(pod)
		}
		return pod
	}
	// create waits until the pod is ready, and returns its address.
	create := func(pod *corev1.Pod) (address string) {
		t.Helper()
		if err := poll(ctx, func() error { _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); return err }); err != nil {
			t.Fatal(err)
		}
		if err := poll(ctx, func() error {
			pod, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				return fmt.Errorf("%s is not ready: %+v", pod.Name, pod.Status)
			}
			address = pod.Status.PodIP
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return address
	}
	// What others call comes first.
	probed := newPod("probed", []string{"serve", "-address", ":8080"}, func(p *corev1.Pod) {
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{PeriodSeconds: 1,
			ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(8080)}}}
	})
	call := []string{"get", "-timeout", "5s", "http://" + create(probed) + ":8080/"}
	create(newPod("plain", []string{"pause"}))
	create(newPod("init", []string{"pause"}, func(p *corev1.Pod) {
		first := p.Spec.Containers[0]
		first.Name, first.Args = "first", call
		p.Spec.InitContainers = []corev1.Container{first}
	}))
	create(newPod("sidecar", []string{"pause"}, func(p *corev1.Pod) {
		beside := p.Spec.Containers[0]
		beside.Name, beside.RestartPolicy = "beside", new(corev1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = []corev1.Container{beside}
	}))
	job := newPod("", call)
	job.Spec.RestartPolicy = corev1.RestartPolicyNever
	if _, err := client.BatchV1().Jobs(namespace).Create(ctx, &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: job.Spec}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, func() error {
		job, err := client.BatchV1().Jobs(namespace).Get(ctx, "job", metav1.GetOptions{})
		if err == nil && job.Status.Succeeded == 0 {
			err = fmt.Errorf("job: %+v", job.Status)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := poll(ctx, func() error {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d pods are left", len(list.Items))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	w.Stop()
	fields := <-seen
	events, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(events.Items, func(a, b corev1.Event) int { return a.FirstTimestamp.Compare(b.FirstTimestamp.Time) })
	for _, e := range events.Items {
		pod := regexp.MustCompile(`^job-.*`).ReplaceAllString(e.InvolvedObject.Name, "job")
		if e.Source.Component != "kubelet" || e.Reason == "Unhealthy" {
			continue // a probe may come before the program listens, or not
		}
		name := strings.TrimPrefix(e.Name, e.InvolvedObject.Name+".")
		e.Name = regexp.MustCompile(`^[0-9a-f]{16}$`).ReplaceAllString(name, "HEXNANOS")
		e.InvolvedObject.Name, e.InvolvedObject.Namespace = pod, "NAMESPACE"
		e.ObjectMeta = metav1.ObjectMeta{Name: e.Name}
		shape(pod+" event "+e.InvolvedObject.FieldPath+" "+e.Reason+" .", e, fields)
	}
	return fields
}

// varying matches what differs in each run: moments, addresses, identifiers.
var varying = []struct {
	what string
	is   *regexp.Regexp
}{
	{"TIME", regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$`)},
	{"MICROTIME", regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$`)},
	{"ADDRESS", regexp.MustCompile(`^\d+\.\d+\.\d+\.\d+$`)},
	{"NODE", regexp.MustCompile(`^(real-0|node-0000)$`)},
	{"VERSION", regexp.MustCompile(`^\d{3,}$`)},
	{"UUID", regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f-]{27}$`)},
}

// shape adds the fields of a value to those found: what is in a list is known
// by its type or name. Each field has the values that it took, one after the other.
func shape(path string, value any, fields map[string][]string) {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var tree any
	if err := json.Unmarshal(data, &tree); err != nil {
		panic(err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, below := range v {
				walk(path+"."+key, below)
			}
		case []any:
			for i, below := range v {
				key := fmt.Sprint(i)
				if m, ok := below.(map[string]any); ok {
					for _, k := range []string{"type", "name"} {
						if name, ok := m[k].(string); ok {
							key = name
						}
					}
				}
				walk(path+"["+key+"]", below)
			}
		default:
			text := fmt.Sprint(v)
			for _, known := range varying {
				if known.is.MatchString(text) {
					text = known.what
				}
			}
			if before := fields[path]; len(before) == 0 || before[len(before)-1] != text {
				fields[path] = append(before, text)
			}
		}
	}
	walk(strings.TrimSuffix(path, "."), tree)
}
