package simnode

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/lab/protocol"
)

// boundPod is a pod of one container that a scheduler has just bound.
func boundPod(change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod", UID: "uid", ResourceVersion: "1", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName:   NodeName(0),
			Containers: []corev1.Container{{Name: "main", Image: "image"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func withInit(pod *corev1.Pod) {
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "init", Image: "image"})
}

func withSidecar(pod *corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: "sidecar", Image: "image", RestartPolicy: &always})
}

func withGate(pod *corev1.Pod) {
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
}

func ofJob(pod *corev1.Pod) {
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "job", Controller: new(true)}}
}

// summary is a pod's status in a line: phase, the conditions that are true,
// and each container's state.
func summary(pod *corev1.Pod) string {
	var parts []string
	short := map[corev1.PodConditionType]string{
		corev1.PodReadyToStartContainers: "network", corev1.PodInitialized: "initialized",
		corev1.ContainersReady: "containersReady", corev1.PodReady: "ready",
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		if isTrue(pod, kind) {
			parts = append(parts, short[kind])
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		switch s := c.State; {
		case s.Waiting != nil:
			parts = append(parts, c.Name+":"+s.Waiting.Reason)
		case s.Running != nil:
			parts = append(parts, c.Name+":Running")
		case s.Terminated != nil:
			parts = append(parts, fmt.Sprintf("%s:%s/%d", c.Name, s.Terminated.Reason, s.Terminated.ExitCode))
		}
	}
	return string(pod.Status.Phase) + " " + strings.Join(parts, " ")
}

// Pods pass through what a kubelet reports, in its order.
func TestStages(t *testing.T) {
	const running = "Running network initialized containersReady ready"
	for _, tt := range []struct {
		pod     *corev1.Pod
		latency time.Duration
		want    []string
		why     string
	}{
		{boundPod(), time.Second, []string{
			"Pending network initialized main:ContainerCreating",
			running + " main:Running",
		}, "first its network, then its containers"},
		{boundPod(), shortestStaged, []string{
			"Pending network initialized main:ContainerCreating",
			running + " main:Running",
		}, "the shortest latency in stages"},
		{boundPod(), shortestStaged - 1, []string{running + " main:Running"}, "too short for stages"},
		{boundPod(), 0, []string{running + " main:Running"}, "at once"},
		{boundPod(withInit), time.Second, []string{
			"Pending network init:PodInitializing main:PodInitializing",
			"Pending network initialized init:Completed/0 main:PodInitializing",
			running + " init:Completed/0 main:Running",
		}, "init containers complete before the others start"},
		{boundPod(withInit), 0, []string{running + " init:Completed/0 main:Running"}, "init containers, at once"},
		{boundPod(withSidecar), time.Second, []string{
			"Pending network sidecar:PodInitializing main:PodInitializing",
			"Pending network initialized sidecar:Running main:PodInitializing",
			running + " sidecar:Running main:Running",
		}, "the others start once a sidecar runs, which runs on"},
		{boundPod(withGate), time.Second, []string{
			"Pending network initialized main:ContainerCreating",
			"Running network initialized containersReady main:Running",
		}, "a readiness gate that nobody has opened"},
		{boundPod(withGate, func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/gate", Status: corev1.ConditionTrue})
		}), 0, []string{running + " main:Running"}, "a readiness gate that is open"},
		{boundPod(ofJob), 0, []string{
			running + " main:Running",
			"Succeeded initialized main:Completed/0",
		}, "a job's pod ends well"},
		{boundPod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), 0, nil, "it has ended"},
	} {
		now := metav1.NewTime(time.Unix(1_700_000_000, 0))
		pod := tt.pod
		before := summary(pod)
		var got []string
		for s := nextStage(pod, tt.latency); s != nothing && len(got) < 10; s = nextStage(pod, tt.latency) {
			now = metav1.NewTime(now.Add(time.Second))
			reach(pod, s, place{host: "198.18.0.1", pod: "10.128.0.1"}, now)
			got = append(got, summary(pod))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: from %q\n%s\nwant\n%s", tt.why, before, strings.Join(got, "\n"), strings.Join(tt.want, "\n"))
		}
		if len(got) > 0 {
			checkComplete(t, tt.why, pod)
		}
	}
}

// checkComplete looks at what observers rely on besides the states themselves.
func checkComplete(t *testing.T, why string, pod *corev1.Pod) {
	t.Helper()
	s := pod.Status
	if s.StartTime == nil || s.HostIP != "198.18.0.1" || s.PodIP != "10.128.0.1" || len(s.PodIPs) != 1 || len(s.HostIPs) != 1 || s.ObservedGeneration != pod.Generation {
		t.Errorf("%s: start %v, host %s, pod %s %v, generation %d", why, s.StartTime, s.HostIP, s.PodIP, s.PodIPs, s.ObservedGeneration)
	}
	for _, c := range slices.Concat(s.InitContainerStatuses, s.ContainerStatuses) {
		if c.Image != "image" || c.ImageID == "" || c.ContainerID == "" || c.Started == nil {
			t.Errorf("%s: container %+v", why, c)
		}
		if c.State.Running != nil && (c.State.Running.StartedAt.IsZero() || !c.Ready || !*c.Started) {
			t.Errorf("%s: a running container %+v", why, c)
		}
		if c.State.Terminated != nil && (c.State.Terminated.StartedAt.IsZero() || c.State.Terminated.FinishedAt.IsZero()) {
			t.Errorf("%s: an ended container %+v", why, c)
		}
	}
	seen := map[corev1.PodConditionType]bool{}
	for _, c := range s.Conditions {
		if seen[c.Type] {
			t.Errorf("%s: condition %s twice", why, c.Type)
		}
		seen[c.Type] = true
		if c.Type != corev1.PodScheduled && !strings.Contains(string(c.Type), "/") && c.LastTransitionTime.IsZero() {
			t.Errorf("%s: condition %s without a time", why, c.Type)
		}
	}
}

// A condition's time is that of its last change, as kubelets have it.
func TestTransitionTimes(t *testing.T) {
	pod := boundPod()
	at := func(s int64) metav1.Time { return metav1.NewTime(time.Unix(s, 0)) }
	reach(pod, sandbox, place{host: "198.18.0.1", pod: "10.128.0.1"}, at(10))
	reach(pod, started, place{host: "198.18.0.1", pod: "10.128.0.9"}, at(20))
	for kind, want := range map[corev1.PodConditionType]int64{
		corev1.PodReadyToStartContainers: 10, corev1.PodInitialized: 10, corev1.ContainersReady: 20, corev1.PodReady: 20,
	} {
		for _, c := range pod.Status.Conditions {
			if c.Type == kind && c.LastTransitionTime.Unix() != want {
				t.Errorf("%s at %d, want %d", kind, c.LastTransitionTime.Unix(), want)
			}
		}
	}
	if pod.Status.StartTime.Unix() != 10 || pod.Status.ContainerStatuses[0].State.Running.StartedAt.Unix() != 20 {
		t.Errorf("started at %v, its container at %v", pod.Status.StartTime, pod.Status.ContainerStatuses[0].State.Running.StartedAt)
	}
	if pod.Status.PodIP != "10.128.0.1" {
		t.Errorf("the pod's address changed to %s", pod.Status.PodIP)
	}
}

func TestDeletion(t *testing.T) {
	deleting := func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		p.DeletionGracePeriodSeconds = new(int64(30))
	}
	running := func(p *corev1.Pod) { reach(p, started, place{host: "h", pod: "p"}, metav1.NewTime(time.Unix(1, 0))) }
	held := func(p *corev1.Pod) { p.Finalizers = []string{"batch.kubernetes.io/job-tracking"} }
	over := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	graceless := func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = new(int64(0)) }
	for _, tt := range []struct {
		pod  *corev1.Pod
		want stage
		why  string
	}{
		{boundPod(deleting), deleted, "before it started"},
		{boundPod(running, deleting), deleted, "it runs"},
		{boundPod(running, over, deleting), deleted, "it has ended"},
		{boundPod(running, held, deleting), killed, "whoever holds it learns how it ended"},
		{boundPod(running, over, held, deleting), deleted, "it has ended and is held: it is let go"},
		{boundPod(running, over, held, deleting, graceless), nothing, "it was let go and is held: it vanishes by itself"},
		{boundPod(held), started, "a finalizer alone is no deletion"},
	} {
		if got := nextStage(tt.pod, 0); got != tt.want {
			t.Errorf("%s: stage %d, want %d", tt.why, got, tt.want)
		}
	}
	pod := boundPod(running, held, deleting)
	reach(pod, killed, place{host: "h", pod: "p"}, metav1.NewTime(time.Unix(9, 0)))
	if got := summary(pod); got != "Failed initialized main:Error/143" {
		t.Errorf("killed: %s", got)
	}
	if c := pod.Status.ContainerStatuses[0].State.Terminated; c.StartedAt.Unix() != 1 || c.FinishedAt.Unix() != 9 {
		t.Errorf("killed: %+v", c)
	}
}

func TestShares(t *testing.T) {
	for _, tt := range []struct {
		stage stage
		want  time.Duration
		why   string
	}{
		{sandbox, 2 * time.Second, "half of the start"},
		{initialized, 3 * time.Second, "half of the rest"},
		{started, 4 * time.Second, "the planted latency itself, to the nanosecond"},
		{gated, 0, "at once"},
		{killed, 0, "at once"},
		{deleted, 0, "at once"},
	} {
		if got := tt.stage.share(4 * time.Second); got != tt.want {
			t.Errorf("stage %d (%s): %v, want %v", tt.stage, tt.why, got, tt.want)
		}
	}
}

func TestNodes(t *testing.T) {
	now := metav1.Now()
	node := newNode(7, 37, 0, now)
	for kind, want := range map[corev1.ResourceName]string{
		corev1.ResourcePods: "37", corev1.ResourceCPU: "32", corev1.ResourceMemory: "256Gi",
	} {
		for _, list := range []corev1.ResourceList{node.Status.Allocatable, node.Status.Capacity} {
			if got := list[kind]; got.Cmp(resource.MustParse(want)) != 0 {
				t.Errorf("%s: %s, want %s", kind, got.String(), want)
			}
		}
	}
	if node.Name != "node-0007" || node.Labels[protocol.FidelityLabel] != protocol.FidelitySimulated || node.Annotations[KwokAnnotation] != KwokAnnotationValue {
		t.Errorf("%s with %v, %v", node.Name, node.Labels, node.Annotations)
	}
	for _, c := range node.Status.Conditions {
		if want := c.Type == corev1.NodeReady; (c.Status == corev1.ConditionTrue) != want || c.LastHeartbeatTime != now {
			t.Errorf("condition %+v", c)
		}
	}
	range_ := netip.MustParsePrefix("198.18.0.0/15")
	seen := map[string]bool{}
	for i := range 100_000 {
		address := nodeAddress(i)
		if seen[address] || !range_.Contains(netip.MustParseAddr(address)) {
			t.Fatalf("node %d has the address %s", i, address)
		}
		seen[address] = true
	}
}

func TestPodAddresses(t *testing.T) {
	range_ := netip.MustParsePrefix("10.128.0.0/9")
	p := &Player{}
	seen := map[string]bool{}
	for i := range 100_000 {
		address := p.nextAddress()
		if seen[address] || !range_.Contains(netip.MustParseAddr(address)) {
			t.Fatalf("pod %d has the address %s", i, address)
		}
		seen[address] = true
	}
	for _, tt := range []struct {
		reserved, want, why string
	}{
		{"", "10.128.0.1", "a pod without an address"},
		{"10.128.0.5", "10.128.0.6", "a pod of an earlier process: the next one's is behind it"},
		{"10.129.0.0", "10.129.0.1", "across a byte"},
		{"10.127.255.255", "10.128.0.1", "below the range"},
		{"198.18.0.9", "10.128.0.1", "a pod with its host's address"},
		{"fd00::5", "10.128.0.1", "another family"},
		{"nonsense", "10.128.0.1", "no address"},
		{"10.255.255.255", "10.128.0.0", "the last: they are given out again"},
	} {
		p := &Player{}
		p.reserve(tt.reserved)
		if got := p.nextAddress(); got != tt.want {
			t.Errorf("after %q (%s): %s, want %s", tt.reserved, tt.why, got, tt.want)
		}
	}
	p = &Player{}
	p.reserve("10.128.0.9")
	p.reserve("10.128.0.3")
	if got := p.nextAddress(); got != "10.128.0.10" {
		t.Errorf("a lower one after a higher one: %s", got)
	}
}

func TestQuickWrites(t *testing.T) {
	ms := time.Millisecond
	for _, tt := range []struct {
		writes func(i int) time.Duration
		n      int
		want   time.Duration
		why    string
	}{
		{func(int) time.Duration { return 5 * ms }, 15, 0, "too few to tell"},
		{func(int) time.Duration { return 5 * ms }, 16, 5 * ms, "enough"},
		{func(i int) time.Duration { return time.Duration(i+1) * ms }, 16, 5 * ms, "three quarters take as long or longer"},
		{func(i int) time.Duration { return time.Duration(i%16+1) * ms }, 64, 5 * ms, "the same over all that are kept"},
		{func(i int) time.Duration { return map[bool]time.Duration{true: 100 * ms, false: 2 * ms}[i < 64] }, 128, 2 * ms, "old ones are forgotten"},
		{func(i int) time.Duration { return map[bool]time.Duration{true: 2 * ms, false: 100 * ms}[i%2 == 0] }, 64, 2 * ms, "slow ones do not count"},
	} {
		var d durations
		for i := range tt.n {
			d.add(tt.writes(i))
		}
		if d.quick != tt.want {
			t.Errorf("%s: %v, want %v", tt.why, d.quick, tt.want)
		}
	}
}
