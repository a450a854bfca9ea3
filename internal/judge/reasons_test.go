package judge

import (
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// Why objects were not ready, grouped and counted.
func TestReasons(t *testing.T) {
	pods := observe.Pods()
	const (
		most  = "0/20 nodes are available: 20 Too many pods. preemption: x"
		other = "0/20 nodes are available: 17 Too many pods, 3 Insufficient cpu. preemption: x"
		third = "0/20 nodes are available: 19 Insufficient cpu, 1 Too many pods."
	)
	warning := func(object, reason, message string) *record.TargetEvent {
		return &record.TargetEvent{Object: "ns/" + object, About: "Pod", Type: "Warning", Reason: reason, Message: message, Count: 1}
	}
	unschedulable := func(s *script, message string, names ...string) {
		for _, name := range names {
			s.asked(name)
			s.news(name + " Created")
			s.state(name, "Unschedulable", message)
		}
	}
	troubled := func(s *script, name, node, reason, message string) {
		s.asked(name)
		s.put(&record.Object{Object: "ns/" + name, Milestone: "Created"})
		s.put(&record.Object{Object: "ns/" + name, Milestone: "Scheduled", Place: node})
		if reason != "" {
			s.state(name, reason, message)
		}
	}
	for _, tt := range []struct {
		why     string
		do      func(s *script)
		want    string
		message string // of the first reason
		binding string
	}{
		{
			"the scheduler's counts change from pod to pod, the reason does not",
			func(s *script) {
				unschedulable(s, other, "a")
				unschedulable(s, most, "b", "c")
				unschedulable(s, other, "f")
				unschedulable(s, third, "d", "e")
			},
			"4 Too many pods on 20 of 20, 2 Insufficient cpu on 19 of 20", other, "Too many pods on 20 of 20 nodes",
		},
		{
			"a reason for the pod itself stands as it is",
			func(s *script) {
				unschedulable(s, `0/20 nodes are available: persistentvolumeclaim "p" not found.`, "a")
			},
			"1 Unschedulable", `0/20 nodes are available: persistentvolumeclaim "p" not found.`, `Unschedulable: 0/20 nodes are available: persistentvolumeclaim "p" not found.`,
		},
		{
			"containers' troubles, by the nodes that they are on",
			func(s *script) {
				troubled(s, "a", "n1", "CrashLoopBackOff", "back-off 10s restarting failed container=app pod=a_ns(x)")
				troubled(s, "b", "n2", "CrashLoopBackOff", "back-off 5m0s restarting failed container=app pod=b_ns(x)")
				troubled(s, "c", "n2", "CrashLoopBackOff", "back-off 20s restarting failed container=app pod=c_ns(x)")
				troubled(s, "d", "n2", "OOMKilled", "")
			},
			"3 CrashLoopBackOff on 2 of 20, 1 OOMKilled on 1 of 20", "back-off * restarting failed container=app pod=NAME_NAMESPACE(x)", "CrashLoopBackOff on 2 of 20 nodes",
		},
		{
			"a pod that tells nothing, and a warning that tells of it: the most frequent one",
			func(s *script) {
				troubled(s, "a", "n1", "", "")
				troubled(s, "b", "n1", "NotContainersStarted", "no trouble was told")
				s.put(warning("a", "FailedCreatePodSandBox", `no address for "a"`))
				s.put(warning("b", "FailedCreatePodSandBox", `no address for "b"`))
				s.put(warning("b", "FailedMount", "no volume"))
				for range 5 {
					s.put(&record.TargetEvent{Object: "ns/a", Type: "Normal", Reason: "Pulled"})
				}
			},
			"2 FailedCreatePodSandBox on 1 of 20", `no address for "NAME"`, "FailedCreatePodSandBox on 1 of 20 nodes",
		},
		{
			"containers that are not ready, and a warning that tells why",
			func(s *script) {
				troubled(s, "a", "n1", "ContainersNotReady", "containers with unready status: [app]")
				s.put(warning("a", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503"))
			},
			"1 Unhealthy on 1 of 20", "Readiness probe failed: HTTP probe failed with statuscode: 503", "Unhealthy on 1 of 20 nodes",
		},
		{
			"a pod's own word comes before a warning",
			func(s *script) {
				troubled(s, "a", "n1", "ImagePullBackOff", "no such image")
				s.put(warning("a", "Failed", "x"))
			},
			"1 ImagePullBackOff on 1 of 20", "no such image", "ImagePullBackOff on 1 of 20 nodes",
		},
		{
			"two warnings as frequent as one another: the first by name",
			func(s *script) {
				troubled(s, "a", "", "", "")
				s.put(warning("a", "B", "y"))
				s.put(warning("a", "A", "z"))
				s.put(warning("a", "A", "y"))
			},
			"1 A", "y", "A: y",
		},
		{
			"a controller's pods have names of their own, and so have the warnings",
			func(s *script) {
				s.asked("d", grouped(2))
				s.news("d-x1/d Created, d-x2/d Created")
				s.put(warning("d-x1", "FailedMount", "no volume for d-x1"))
				s.put(warning("d-x2", "FailedMount", "no volume for d-x2"))
			},
			"2 FailedMount", "no volume for NAME", "FailedMount: no volume for NAME",
		},
		{
			"a request of which no pod came, and a warning of its owner",
			func(s *script) {
				s.asked("d", grouped(2))
				s.put(warning("d", "FailedCreate", "exceeded quota"))
			},
			"2 FailedCreate", "exceeded quota", "FailedCreate: exceeded quota",
		},
		{
			"a request of which no pod came, and warnings of what stands between",
			func(s *script) {
				s.asked("d", grouped(1))
				s.asked("e", grouped(1))
				for _, name := range []string{"d", "e"} {
					w := warning(name+"-5bd9f", "FailedCreate", `Error creating: pods "`+name+`-5bd9f-x2x9z" is forbidden: exceeded quota: few`)
					w.For = "ns/" + name
					s.put(w)
				}
			},
			"2 FailedCreate", `Error creating: pods "NAME" is forbidden: exceeded quota: few`, `FailedCreate: Error creating: pods "NAME" is forbidden: exceeded quota: few`,
		},
		{
			"requests that failed",
			func(s *script) {
				s.asked("a", outcome(record.SlotFailed, 403, `pods "a" is forbidden`))
				s.asked("b", outcome(record.SlotFailed, 403, `pods "b" is forbidden`))
				s.asked("c", outcome(record.SlotFailed, 0, "no such host"))
			},
			"2 HTTP 403, 1 RequestFailed", `pods "NAME" is forbidden`, `HTTP 403: pods "NAME" is forbidden`,
		},
		{
			"no reason at all",
			func(s *script) { s.asked("a"); s.news("a Created") },
			"1 NotReady", "no reason given", "NotReady: no reason given",
		},
		{
			"a reason without a word more",
			func(s *script) { s.asked("a"); s.news("a Created"); s.state("a", "Evicted", "") },
			"1 Evicted", "", "Evicted",
		},
	} {
		var c *result.Step
		for range 10 { // what maps hold comes in any order
			s := newScript(t)
			s.begin(1)
			tt.do(s)
			again := s.end(record.EndTimeout, func(b *record.StepEvent) { b.Places = 20 })
			if c != nil && !slices.Equal(c.Reasons, again.Reasons) {
				t.Errorf("%s: once %+v, once %+v", tt.why, c.Reasons, again.Reasons)
			}
			c = again
		}
		if got := whyNot(c); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
			continue
		}
		if c.Reasons[0].Message != tt.message {
			t.Errorf("%s: message %q, want %q", tt.why, c.Reasons[0].Message, tt.message)
		}
		if got := result.Binding(&pods, c.Reasons); got != tt.binding {
			t.Errorf("%s: bound by %q, want %q", tt.why, got, tt.binding)
		}
	}
	if got := result.Binding(&record.ObjectKind{}, nil); got != "" {
		t.Errorf("bound by %q, without any reason", got)
	}
}
