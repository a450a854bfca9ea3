package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

// atSecond is a breach's moment in seconds since the start of the run.
func atSecond(b result.Breach) string { return fmt.Sprintf("%g", b.At.Seconds()) }

// inOrder is a step's breaches in one line: "moment kind count", with a * on
// what decided.
func inOrder(list []result.Breach) string {
	var words []string
	for _, b := range list {
		mark := ""
		if b.Decided {
			mark = "*"
		}
		words = append(words, fmt.Sprintf("%s %s%s %d", atSecond(b), b.Kind, mark, b.Count))
	}
	return strings.Join(words, ", ")
}

// Each sort of trouble has the time at which it came, and what decided differs from
// what was only seen.
func TestWhatBrokeFirst(t *testing.T) {
	throttled := func(s *record.Slot) {
		s.Throttled, s.ThrottledAt, s.Trouble = 2, s.Sent+3e5, "priority level workload-low"
	}
	replied := func(after float64, o record.SlotOutcome) func(*record.Slot) {
		return func(s *record.Slot) { s.Outcome, s.Replied, s.Code = o, s.Sent+record.Micros(after*1e6), 403 }
	}
	event := func(s *script, about, reason, message string) {
		s.put(&record.TargetEvent{Object: "ns/a", About: about, Type: "Warning", Reason: reason, Message: message})
	}
	for _, tt := range []struct {
		why    string
		goal   string
		do     func(s *script)
		ending record.Ending
		want   string
	}{
		{
			"p50 of 4 needs 3 late ones: asked for at 1, 2, 3 and 4, the third is late at 3 + 5; the fourth's time does not matter",
			"Ready p50 <= 5s", func(s *script) {
				s.at(1).made("a", 9)
				s.at(2).made("b", 9)
				s.at(3).made("c", 9)
				s.at(4).made("d", 1)
			},
			record.EndHeld, "8 latency* 3",
		},
		{
			"p99 of 4 is the largest: the first that is late decides",
			"Ready p99 <= 5s", func(s *script) { s.at(1).made("a", 1); s.at(2).made("b", 6); s.at(3).made("c", 7) },
			record.EndHeld, "7 latency* 2",
		},
		{
			"an object that is ready right at its bound is in time",
			"Ready p99 <= 5s", func(s *script) { s.at(1).made("a", 5); s.at(2).made("b", 5.5) },
			record.EndHeld, "7 latency* 1",
		},
		{
			"but not with <",
			"Ready p99 < 5s", func(s *script) { s.at(1).made("a", 5); s.at(2).made("b", 1) },
			record.EndHeld, "6 latency* 1",
		},
		{
			"a refused request is out when it is refused, not when its time would be over",
			"Ready p99 <= 5s", func(s *script) { s.at(1).made("a", 1); s.at(2).asked("b", replied(0.5, record.SlotFailed)) },
			record.EndStalled, "2.5 errors 1, 2.5 latency* 1",
		},
		{
			"objects that should be slow, and are not: p50 > 2s is lost with the first of two",
			"Ready p50 > 2s", func(s *script) { s.at(1).made("a", 1.5); s.at(2).made("b", 1) },
			record.EndHeld, "2.5 latency* 2",
		},
		{
			"all within: the first deadline",
			"all Ready within 5s", func(s *script) { s.at(1).made("a", 9); s.at(2).made("b", 7) },
			record.EndHeld, "6 missing* 2",
		},
		{
			"all, without a bound: the step was not waited for longer than to its end",
			"all Ready", func(s *script) {
				s.at(1).asked("a")
				s.news("a Created")
				s.at(1.25).state("a", "Unschedulable", "0/2 nodes are available: 2 Too many pods.")
				s.at(1.5).state("a", "Unschedulable", "0/2 nodes are available: 1 Too many pods, 1 Insufficient cpu.")
			},
			record.EndStalled, "1.25 scheduling 1, 30 missing* 1",
		},
		{
			"the scheduler's event and the pod tell of the same",
			"all Ready", func(s *script) {
				s.at(1).asked("a")
				s.news("a Created")
				s.at(2).state("a", "Unschedulable", "no")
				event(s, "Pod", "FailedScheduling", "no")
				s.at(3)
				event(s, "Pod", "FailedScheduling", "no")
			},
			record.EndStalled, "2 scheduling 1, 30 missing* 1",
		},
		{
			"one that was there and fell, for good",
			"all Ready", func(s *script) {
				s.at(1).made("a b", 1)
				s.at(9).state("b", "ContainersNotReady", "containers with unready status: [c]", lost)
			},
			record.EndHeld, "9 readiness 1, 9 missing* 1",
		},
		{
			"one that fell and came back breaks nothing, and is told of",
			"all Ready", func(s *script) {
				s.at(1).made("a", 1)
				s.at(9).state("a", "ContainersNotReady", "", lost)
				s.at(10).state("a", "", "", regained)
			},
			record.EndHeld, "9 readiness 1",
		},
		{
			"deleted by somebody else",
			"all Ready", func(s *script) {
				s.at(1).made("a", 1)
				s.at(9).state("a", "Deleting", "", lost)
				s.at(10).news("a Deleted")
			},
			record.EndHeld, "9 deleted 1, 9 missing* 1",
		},
		{
			"an object that took the place of another",
			"all Ready", func(s *script) {
				s.asked("d", grouped(1))
				s.at(1).news("d-1/d Created Ready")
				s.at(7).news("d-2/d Created Ready")
			},
			record.EndHeld, "7 replaced* 1",
		},
		{
			"errors <= 25% of 8: the third failure is one too many",
			"errors <= 25%", func(s *script) {
				for i := range 8 {
					o := record.SlotCreated
					if i >= 3 && i < 6 {
						o = record.SlotFailed
					}
					s.at(float64(i)).asked(fmt.Sprint(i), replied(0.5, o))
				}
			},
			record.EndStalled, "3.5 errors 3, 5.5 errors* 3",
		},
		{
			"the first 429, though the request succeeded later",
			"errors < 1%", func(s *script) { s.at(1).asked("a", throttled); s.at(2).asked("b", throttled) },
			record.EndHeld, "1.3 throttling 4",
		},
		{
			"a rate of which a tenth was asked for in the first second cannot be had after 10",
			"achieved >= 10%", func(s *script) {
				s.made("a b", 20)
				s.at(1).put(&record.StepEvent{Phase: record.PhaseLoaded})
			},
			record.EndHeld, "10 achieved* 0",
		},
		{
			"a guard decides when it comes",
			"all Ready", func(s *script) {
				s.made("a", 1)
				s.at(5).put(&record.Guard{Name: "pending", Value: 3, Bound: 2, Message: "pending is 3"})
			},
			record.EndGuard, "5 guard* 1",
		},
		{
			"the cluster's events, in order of time",
			"all Ready", func(s *script) {
				s.made("a", 1)
				s.at(2)
				event(s, "Pod", "FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error")
				event(s, "Pod", "FailedCreatePodSandBox", "Failed to create pod sandbox: rpc error")
				s.at(3)
				event(s, "Pod", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 503")
				s.at(4)
				event(s, "Pod", "Evicted", "The node was low on resource: memory.")
				s.at(5)
				event(s, "Node", "NodeNotReady", "")
				s.at(6)
				event(s, "Pod", "BackOff", "Back-off pulling image \"x\"")
				s.at(7)
				event(s, "Pod", "BackOff", "Back-off restarting failed container c in pod a")
				s.at(8)
				event(s, "Pod", "FailedMount", "Unable to attach or mount volumes")
				s.at(9)
				event(s, "ReplicaSet", "FailedCreate", "exceeded quota")
				s.at(10)
				event(s, "Pod", "SomethingNew", "unknown to us")
				s.at(11).state("a", "OOMKilled", "", lost)
			},
			record.EndHeld, "2 sandbox 2, 3 probes 1, 4 evictions 1, 5 nodes 1, 6 images 1, 7 restarts 1, 8 volumes 1, 9 creation 1, 11 oom 1, 11 readiness 1, 11 missing* 1",
		},
		{
			"a watch that was cut",
			"all Ready", func(s *script) {
				s.made("a", 1)
				s.at(5).put(&record.Fault{What: "watch cut", From: 4e6})
				s.at(6).put(&record.Fault{What: "watch cut", From: 4e6, To: 6e6, Healed: true})
			},
			record.EndHeld, "4 watch 1",
		},
	} {
		t.Run(tt.why, func(t *testing.T) {
			s := newScript(t, "g="+tt.goal)
			s.begin(1)
			tt.do(s)
			c := s.at(30).end(tt.ending)
			if got := inOrder(c.Breaches); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
			for _, b := range c.Breaches {
				if b.Time != s.spec.Wall(b.At) || b.Step != 1 {
					t.Errorf("%+v is not of its time and step", b)
				}
				if b.Decided != slices.Equal(b.Goals, []string{"g"}) {
					t.Errorf("%s decided: %v, of the goals %q", b.What, b.Decided, b.Goals)
				}
			}
		})
	}
}

// On an axis of arrivals the moment is the one at which an arrival too many had
// to wait, and objects that are removed as they age have not fallen.
func TestWhatBrokeFirstOfAnOpenStep(t *testing.T) {
	s := newScript(t, "g=Ready p50 <= 1s")
	s.begin(1, func(b *record.StepEvent) { b.Open, b.Hold = true, 10e6 })
	s.at(1).put(&record.StepEvent{Phase: record.PhaseReached})
	for i := range 10 {
		s.at(1+float64(i)/2).asked(fmt.Sprint(i), func(r *record.Slot) {
			if i >= 4 {
				r.Waited = 1e5
			}
		})
		s.news(fmt.Sprint(i) + " Created Ready")
	}
	s.at(7).state("1", "Deleting", "", lost)
	s.news("1 Deleted")
	c := s.at(30).end(record.EndHeld)
	if got := inOrder(c.Breaches); got != "3 achieved* 6" {
		t.Errorf("%s, want the fifth arrival's own time", got)
	}
}

// One that came too late, and was then removed as it aged, was not deleted by
// others.
func TestWhatCameTooLateWasNotDeletedByOthers(t *testing.T) {
	s := newScript(t)
	s.begin(1, func(b *record.StepEvent) { b.Open, b.Hold = true, 10e6 })
	s.at(1).put(&record.StepEvent{Phase: record.PhaseReached})
	s.asked("late taken")
	s.news("late Created, taken Created")
	s.at(5).news("taken Deleted")
	s.at(70).news("late Ready")
	s.at(75).news("late Deleted")
	c := s.at(80).end(record.EndHeld)
	got := make(map[string]int)
	for _, r := range c.Reasons {
		got[r.Reason] = r.Count
	}
	if got["TooLate"] != 1 || len(c.Reasons) != 2 {
		t.Errorf("%+v", c.Reasons)
	}
}

// The load at a breach is how far the step had come by then.
func TestTheLoadAtABreach(t *testing.T) {
	s := newScript(t, "g=all Ready")
	s.begin(2, func(b *record.StepEvent) { b.Units, b.Places, b.Others = 4, 2, 2 })
	s.at(1).made("a b", 1)
	s.at(3).asked("c")
	s.news("c Created")
	s.at(4).state("c", "Unschedulable", "no place")
	s.at(5).made("d", 1)
	s.at(7).state("a", "ContainersNotReady", "", lost)
	c := s.at(20).end(record.EndStalled, func(b *record.StepEvent) { b.Places, b.Others = 2, 2 })
	var got []string
	for _, b := range c.Breaches {
		got = append(got, fmt.Sprintf("%s %s: %d of %d, %d unplaced, level %g", atSecond(b), b.Kind, b.Load.There, b.Load.Asked, b.Load.Unplaced, b.Load.Level))
	}
	want := []string{
		"4 scheduling: 2 of 3, 1 unplaced, level 2.5",
		"7 readiness: 2 of 4, 1 unplaced, level 3",
		"7 missing: 2 of 4, 1 unplaced, level 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\nwant %s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What the first step, which passed, saw as often is normal: it did not break first.
func TestWhatIsUsualDidNotBreakFirst(t *testing.T) {
	probe := func(s *script, name string) {
		s.put(&record.TargetEvent{Object: "ns/" + name, About: "Pod", Type: "Warning", Reason: "Unhealthy", Message: "Readiness probe failed: not yet"})
	}
	s := newScript(t, "g=all Ready")
	s.begin(1)
	s.put(&record.Reading{Source: "kubelet", Values: map[string]float64{"cpuSeconds": 10}})
	s.at(1).made("a b", 1)
	probe(s, "a")
	probe(s, "b")
	s.put(&record.Canary{Sent: 1e6, Replied: 1e6 + 2000, Seen: 1e6 + 5000})
	s.at(4).put(&record.Reading{Source: "kubelet", Values: map[string]float64{"cpuSeconds": 11}})
	s.at(4).put(&record.StepEvent{Phase: record.PhaseReached})
	first := s.at(10).end(record.EndHeld)
	if got := inOrder(first.Breaches); got != "1 probes 2" || first.Breaches[0].Usual {
		t.Errorf("the first step: %s, %+v", got, first.Breaches)
	}
	s.at(20).begin(2)
	s.put(&record.Reading{Source: "kubelet", Values: map[string]float64{"cpuSeconds": 20}})
	s.at(21).made("c", 1)
	probe(s, "c")
	s.put(&record.Canary{Sent: 21e6, Replied: 21e6 + 8000, Seen: 21e6 + 50000})
	s.at(22).asked("d")
	s.news("d Created")
	s.at(23).put(&record.Reading{Source: "kubelet", Values: map[string]float64{"cpuSeconds": 23}})
	s.at(24).state("d", "Unschedulable", "0/1 nodes are available: 1 Too many pods.")
	s.at(25).put(&record.Reading{Source: "kubelet", Values: map[string]float64{"cpuSeconds": 25}})
	s.at(40).end(record.EndStalled)
	r := s.finish(design.Sweep{Levels: []float64{1, 2}})

	second := r.Steps[1]
	if got := inOrder(second.Breaches); got != "21 probes 1, 24 scheduling 1, 40 missing* 1" || !second.Breaches[0].Usual || second.Breaches[1].Usual {
		t.Errorf("the second step: %s, %+v", got, second.Breaches)
	}
	f := r.BrokeFirst
	if f == nil || f.Step != 2 || f.Goal != "g" || f.Breach.Kind != "scheduling" || !f.Breach.First || f.Says != "a limit of one or more components was reached; the functional maximum is lower than these conditions" {
		t.Fatalf("what broke first: %+v", f)
	}
	marked := 0
	for _, b := range r.Breaches {
		if b.First {
			marked++
			if b.Kind != "scheduling" || b.Step != 2 {
				t.Errorf("%s of step %d is marked as the first", b.What, b.Step)
			}
		}
	}
	if marked != 1 {
		t.Errorf("%d are marked as the first", marked)
	}
	if f.Conditions.NormalStep != 1 {
		t.Errorf("normal is step %d, want 1", f.Conditions.NormalStep)
	}
	var got []string
	for _, x := range f.Conditions.Figures {
		got = append(got, fmt.Sprintf("%s %s%s (%s, %s)", x.Name, show(x.Value), x.Unit, show(x.Normal), show(x.Ratio)))
	}
	want := []string{
		"pending objects 1 (2, 0.5)",
		"objects without a node 1 (0, null)",
		"requests in flight 0 (0, null)",
		"time of a request 0s (0, null)",
		"API latency 0.008s (0.002, 4)",
		"watch lag 0.05s (0.005, 10)",
		// From 20 to 25 it used 5 s, in the first step 1 s in 4.
		"CPU of kubelet 100% (25, 4)",
	}
	if !slices.Equal(got, want) {
		t.Errorf("conditions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A trouble that is much more frequent than it was in the first step is not
// usual.
func TestMoreOftenThanUsual(t *testing.T) {
	for _, tt := range []struct {
		events int
		usual  bool
	}{{4, true}, {5, false}} {
		s := newScript(t)
		for step, n := range []int{1, tt.events} {
			s.at(float64(step * 20)).begin(float64(step + 1))
			s.made(fmt.Sprintf("a%d", step), 1)
			for range n {
				s.put(&record.TargetEvent{Object: "ns/a", About: "Pod", Type: "Warning", Reason: "Unhealthy", Message: "Readiness probe failed"})
			}
			s.at(float64(step*20 + 10)).end(record.EndHeld)
		}
		if b := s.LastStep().Breaches[0]; b.Usual != tt.usual {
			t.Errorf("%d events of 2 objects after 1 of 1: usual is %v", tt.events, b.Usual)
		}
	}
}

// The deciding step of a search is the one at the lowest failing level that was
// made last, not the first that failed on the way.
func TestTheStepThatDecided(t *testing.T) {
	s := newScript(t)
	s.search(small, 3)
	r := s.finish(small)
	f := r.BrokeFirst
	if f == nil || *r.LoadLine.LowestFailing != 4 || f.Level != 4 || r.Steps[f.Step-1].Purpose != record.PurposeUpper {
		t.Errorf("what broke first: %+v, of a line that fails at %v", f, show(r.LoadLine.LowestFailing))
	}
	s = newScript(t)
	s.search(small, 6)
	if r := s.finish(small); r.BrokeFirst != nil {
		t.Errorf("nothing failed, and %+v broke first", r.BrokeFirst)
	}
}
