package verdict

import (
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// row is a step by its facts, and what the verdict on it must be.
type row struct {
	why  string
	goal string
	spec func(*result.Spec)      // may be nil
	set  []string                // the nodes before the step
	step func(*record.StepEvent) // may be nil
	tell func(*story)            // from 1 s on; nil tells nothing
	end  record.Ending           // "" is held
	want slo.Verdict
	says string // a part of the verdict's sentence
	// binds is a part of what the goal broke on, as the load line names it; "" is
	// not looked at.
	binds string
	// never is part of neither; "" is not looked at.
	never string
}

// check judges the row's step, which lasts 20 s.
func (r row) check(t *testing.T, kind record.ObjectKind) {
	t.Helper()
	s := newStory(t, kind, r.spec, "g="+r.goal)
	if r.set != nil {
		s.put(&record.Place{Set: r.set})
	}
	s.begin(r.step)
	s.at(1)
	if r.tell != nil {
		r.tell(s)
	}
	if r.end == "" {
		r.end = record.EndHeld
	}
	step := s.at(20).end(r.end)
	if step.Verdict != r.want || !strings.Contains(step.VerdictWhy, r.says) {
		t.Errorf("%s: %s: %s\nwant %s: %s", r.why, step.Verdict, step.VerdictWhy, r.want, r.says)
	}
	if r.never != "" && strings.Contains(step.VerdictWhy+"\n"+step.Binding["g"], r.never) {
		t.Errorf("%s: %q, or what it broke on, %q, has %q", r.why, step.VerdictWhy, step.Binding["g"], r.never)
	}
	if step.Goals["g"] != step.Verdict {
		t.Errorf("%s: the headline is %s and its goal %s", r.why, step.Verdict, step.Goals["g"])
	}
	if !strings.Contains(step.Binding["g"], r.binds) {
		t.Errorf("%s: it broke on %q, want %q", r.why, step.Binding["g"], r.binds)
	}
	if (step.Binding["g"] != "") != (step.Verdict == slo.Fail) || step.Failed() != (step.Verdict == slo.Fail) {
		t.Errorf("%s: %s, broke on %q, failed %v", r.why, step.Verdict, step.Binding["g"], step.Failed())
	}
	if decided := slices.ContainsFunc(step.Breaches, func(b result.Breach) bool { return b.Decided }); step.Verdict == slo.Fail && !decided {
		t.Errorf("%s: no breach decided it: %+v", r.why, step.Breaches)
	}
}

func arms(spec *result.Spec) {
	spec.Arms = &result.ArmsSpec{Names: []string{"a", "b"}, Metric: "Ready p50"}
}

func units(n int) func(*record.StepEvent) { return func(b *record.StepEvent) { b.Units = n } }

func places(n, others int) func(*record.StepEvent) {
	return func(b *record.StepEvent) { b.Places, b.Others = n, others }
}

func byRate(b *record.StepEvent) { b.Open, b.Level, b.Reached, b.Hold = true, 10, 10, 10e6 }

func quick(int) float64 { return 0.2 }

// Every exit of the judgement of a step of objects has a row.
func TestEveryExitForObjects(t *testing.T) {
	answer := func(objective string, a record.Answer) func(*story) {
		return func(s *story) {
			s.made("a b", 1)
			a.Objective = objective
			s.at(19).put(&a)
		}
	}
	const query = "query 'up' < 5"
	nodes := []string{"n1", "n2"}
	for _, r := range []row{
		// What the tool itself did.
		{why: "the schedule was sent late", goal: "Ready p99 <= 5s", step: byRate, tell: func(s *story) {
			s.arrivals(0.05, quick)
		}, want: slo.Invalid, says: "plimsoll itself was late: its own delay, p99 of 100 arrivals, was 50ms, more than 10ms"},
		{why: "the schedule was sent in time", goal: "Ready p99 <= 5s", step: byRate, tell: func(s *story) {
			s.arrivals(0.005, quick)
		}, want: slo.Pass, says: "every objective held"},
		{why: "the program was woken late", goal: "all Ready", tell: func(s *story) {
			s.made("a b", 1)
			s.wakes(100, 20)
		}, want: slo.Invalid, says: "plimsoll itself was short of CPU: of 100 wakeups, 20 were late by more than 10ms"},
		{why: "a schedule tolerates fewer late wakeups", goal: "all Ready", step: byRate, tell: func(s *story) {
			s.arrivals(0, quick)
			s.wakes(100, 5)
		}, want: slo.Invalid, says: "of 100 wakeups, 5 were late"},
		{why: "a closed loop tolerates them", goal: "all Ready", tell: func(s *story) {
			s.made("a b", 1)
			s.wakes(100, 5)
		}, want: slo.Pass},
		{why: "two late wakeups are chance", goal: "all Ready", tell: func(s *story) {
			s.made("a b", 1)
			s.wakes(2, 2)
		}, want: slo.Pass},
		{why: "the user stopped a step that decides nothing", goal: "all Ready", tell: func(s *story) {
			s.made("a b", 1)
			s.wakes(100, 20)
		}, end: record.EndInterrupted, want: slo.Inconclusive, says: "the step was cut short: the user stopped it"},
		{why: "the user stopped a step that broke while the tool was late", goal: "all Ready", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.news("b: Created")
			s.fails("b")
			s.wakes(100, 20)
		}, end: record.EndInterrupted, want: slo.Invalid, says: "plimsoll itself was short of CPU"},
		{
			why: "the generator's own limit was used up", goal: "Ready p99 <= 5s", spec: func(spec *result.Spec) {
				spec.Kind.Bounds = []record.Bound{{Name: "clients", What: "the generator's clients", Source: "gen", Value: "used", Full: 0.9, Generator: true}}
			}, tell: func(s *story) {
				s.made("a b", 9)
				s.bound("gen", 0.95)
			}, want: slo.Invalid, says: "the generator's clients (95% of it used): this says nothing about the target: Ready p99 <= 5s: it was 9s",
		},
		{
			why: "it held although the generator's limit was used up", goal: "Ready p99 <= 15s", spec: func(spec *result.Spec) {
				spec.Kind.Bounds = []record.Bound{{Name: "clients", What: "the generator's clients", Source: "gen", Value: "used", Full: 0.9, Generator: true}}
			}, tell: func(s *story) {
				s.made("a b", 9)
				s.bound("gen", 0.95)
			}, want: slo.Pass,
		},

		// What neighbours on the machine did.
		{why: "neighbours explain slow objects", goal: "Ready p99 <= 5s", tell: func(s *story) {
			s.made("a b", 9)
			s.busyNeighbours()
		}, want: slo.Invalid, says: "other programs used 90% of this machine's processors (2); all programs together wanted 95%: this says nothing about the target: Ready p99 <= 5s: it was 9s"},
		{why: "neighbours explain an object whose time was over", goal: "all Ready", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.news("b: Created")
			s.busyNeighbours()
		}, end: record.EndTimeout, want: slo.Invalid, says: "this says nothing about the target: all Ready: 1 of 2 did not reach it"},
		{why: "neighbours do not explain a pod that ended", goal: "all Ready", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.news("b: Created")
			s.fails("b")
			s.busyNeighbours()
		}, want: slo.Fail, says: "all Ready: 1 of 2 did not reach it; 1 never will: containers ended"},
		{why: "neighbours do not explain a quantile that refusals alone break", goal: "Ready p50 <= 5s", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b c", refused(403, "forbidden"))
			s.busyNeighbours()
		}, want: slo.Fail, says: "Ready p50 <= 5s: it was never reached"},
		{why: "neighbours do not explain refused requests", goal: "errors <= 10%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", refused(403, "forbidden"))
			s.busyNeighbours()
		}, want: slo.Fail, says: "errors <= 10%: it was 50%"},
		{why: "neighbours explain the slow objects and not the refused request", goal: "Ready p50 <= 5s; errors <= 10%", tell: func(s *story) {
			s.made("a b c", 9)
			s.asked("d", refused(403, "forbidden"))
			s.busyNeighbours()
		}, want: slo.Fail, says: "Ready p50 <= 5s: it was 9s; errors <= 10%: it was 25%"},
		{why: "neighbours explain requests whose time was over", goal: "errors <= 10%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", refused(504, "timeout"))
			s.busyNeighbours()
		}, want: slo.Invalid, says: "errors <= 10%: it was 50%"},
		{why: "neighbours do not explain retries", goal: "retried <= 10%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", func(b *record.Slot) { b.Retries = 1 })
			s.news("b: Created Ready")
			s.busyNeighbours()
		}, want: slo.Fail, says: "retried <= 10%: it was 50%"},
		{why: "neighbours explain a query", goal: query, tell: func(s *story) {
			s.busyNeighbours()
			answer(query, record.Answer{Series: 1, Broken: 1, Value: "7", Since: 3e6})(s)
		}, want: slo.Invalid, says: "query 'up' < 5: it was 7"},
		{why: "neighbours explain a rate that was not achieved", goal: "achieved >= 90%", tell: func(s *story) {
			s.made("a b", 9)
			s.at(2).put(&record.StepEvent{Phase: record.PhaseLoaded})
			s.busyNeighbours()
		}, want: slo.Invalid, says: "achieved >= 90%: it was"},
		{why: "neighbours worked, and an actor did nothing all the same", goal: "Ready p99 <= 5s", tell: func(s *story) {
			s.made("a b", 9)
			s.busyNeighbours()
			s.at(8).put(&record.Actor{Actor: "scheduler", Says: "the scheduler did nothing", Since: 2e6, Waiting: 2, Of: record.Noun{One: "pod", Many: "pods"}})
		}, want: slo.Fail, says: "the scheduler did nothing for 6 s; 2 pods wait for it; Ready p99 <= 5s: it was 9s", binds: "the scheduler did nothing"},

		// Guards and replaced objects.
		{why: "a guard stopped the load", goal: "all Ready", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.at(5).put(&record.Guard{Name: "apiErrors", Value: 7, Bound: 5})
		}, end: record.EndGuard, want: slo.Fail, says: "guard:apiErrors; 1 of 2 were ready", binds: "guard:apiErrors"},
		{why: "a guard counts although nodes were taken", goal: "errors <= 0%", set: nodes, tell: func(s *story) {
			s.made("a b", 1)
			s.at(5).put(&record.Place{Place: "n2", State: record.PlaceGone, What: "was deleted"})
			s.put(&record.Guard{Name: "nodesNotReady", Value: 1, Bound: 1})
		}, end: record.EndGuard, want: slo.Fail, says: "guard:nodesNotReady; 2 of 2 were ready"},
		{why: "a guard counts beside busy neighbours", goal: "errors <= 0%", tell: func(s *story) {
			s.made("a b", 1)
			s.busyNeighbours()
			s.at(5).put(&record.Guard{Name: "apiErrors", Value: 7, Bound: 5})
		}, end: record.EndGuard, want: slo.Fail, says: "guard:apiErrors"},
		{why: "an object took the place of another", goal: "errors <= 0%", tell: func(s *story) {
			s.made("a b", 1)
			s.at(5).news("a: Deleted")
			s.at(6).news("a: Created Ready")
		}, want: slo.Fail, says: "replaced: 1 object replaced others during the step", binds: "replaced: 1 object"},

		// Rates and backlogs.
		{why: "arrivals waited for answers", goal: "errors <= 0%", step: byRate, tell: func(s *story) {
			s.arrivals(0, quick, func(i int, b *record.Slot) {
				if i%10 == 0 {
					b.Waited = b.Sent - b.Intended + 1
				}
			})
		}, want: slo.Fail, says: "achievedRate: 10 of 100 arrivals waited because answers were slow and the limit of requests in flight was reached; 0 were dropped"},
		{why: "arrivals waited beside busy neighbours", goal: "errors <= 0%", step: byRate, tell: func(s *story) {
			s.arrivals(0, quick, func(i int, b *record.Slot) { b.Waited = 1 })
			s.busyNeighbours()
		}, want: slo.Invalid, says: "this says nothing about the target: achievedRate: 100 of 100"},
		{why: "one arrival in a hundred may wait", goal: "errors <= 0%", step: byRate, tell: func(s *story) {
			s.arrivals(0, quick, func(i int, b *record.Slot) {
				if i == 7 {
					b.Waited = 1
				}
			})
		}, want: slo.Pass},
		{why: "an arrival was dropped", goal: "all Ready", step: byRate, tell: func(s *story) {
			s.arrivals(0, quick)
			s.at(9.9).asked("dropped", func(b *record.Slot) { b.Outcome, b.Code = record.SlotDropped, 0 })
		}, want: slo.Fail, says: "1 were dropped; all Ready: 1 of 101 did not reach it"},
		{why: "the backlog grows", goal: "errors <= 0%", step: byRate, tell: func(s *story) {
			s.arrivals(0, func(i int) float64 { return 0.2 + float64(i)*0.08 })
		}, want: slo.Fail, says: "notSteady: the backlog grew throughout the hold", binds: "notSteady", never: "; "},
		{why: "neighbours explain a backlog that grows", goal: "errors <= 0%", step: byRate, tell: func(s *story) {
			s.arrivals(0, func(i int) float64 { return 0.2 + float64(i)*0.08 })
			s.busyNeighbours()
		}, want: slo.Invalid, says: "this says nothing about the target: notSteady"},
		{why: "late news explains a backlog that grows", goal: "errors <= 0%", step: byRate, tell: func(s *story) {
			s.arrivals(0, func(i int) float64 { return 0.2 + float64(i)*0.08 })
			s.canary(1, 9)
		}, want: slo.Inconclusive, says: "the news of objects was late, by 8.995s at most, which explains as much"},
		{why: "late news explains a rate by schedule that was not achieved", goal: "achieved >= 95%", step: byRate, tell: func(s *story) {
			s.arrivals(0, func(int) float64 { return 8.3 })
			for sent := range 11 {
				s.canary(float64(sent), 8.2)
			}
		}, want: slo.Inconclusive, says: "achieved >= 95%: it was 17%; the news of objects was late, by 8.195s at most"},
		{why: "news in time does not", goal: "achieved >= 95%", step: byRate, tell: func(s *story) {
			s.arrivals(0, func(int) float64 { return 8.3 })
			for sent := range 19 {
				s.canary(float64(sent), 0.01)
			}
		}, want: slo.Fail, says: "achieved >= 95%: it was 17%"},
		{why: "the server's time says that an object whose news was lost may have been in time", goal: "all Ready within 5s", step: byRate, tell: func(s *story) {
			s.lostNews(1700000000)
			s.at(18).put(&record.Corrected{Watch: "pods", Missed: 4})
		}, want: slo.Inconclusive, says: "all Ready within 5s: 4 of 100 did not reach it; the news of objects was late"},
		{why: "where no news was lost the node was slow to say so", goal: "all Ready within 5s", step: byRate, tell: func(s *story) {
			s.lostNews(1700000000)
		}, want: slo.Fail, says: "all Ready within 5s: 4 of 100 did not reach it"},
		{why: "without the server's time it was late", goal: "all Ready within 5s", step: byRate, tell: func(s *story) {
			s.lostNews(0)
			s.at(18).put(&record.Corrected{Watch: "pods", Missed: 4})
		}, want: slo.Fail, says: "all Ready within 5s: 4 of 100 did not reach it"},
		{why: "a list showed late what the server says was in time", goal: "all Ready within 5s", step: byRate, tell: func(s *story) {
			s.lostNews(1700000000)
			s.at(1).asked("listed")
			s.news("listed: Created Scheduled")
			s.at(15).put(&record.Object{Object: "ns/listed", Milestone: "Ready", Stamp: 1700000001, Late: true})
		}, want: slo.Fail, says: "all Ready within 5s: 4 of 101 did not reach it"},
		{why: "nodes that stood still and went on are named first", goal: "Ready p99 <= 5s", step: byRate, tell: func(s *story) {
			s.stillNodes(2, 9, 0.2)
		}, want: slo.Fail, says: "nothing came from the nodes for 7 s; 72 pods waited for it; Ready p99 <= 5s: it was 7.05s", binds: "nothing came from the nodes"},
		{why: "nodes that are always as slow are not", goal: "Ready p99 <= 5s", step: byRate, tell: func(s *story) {
			s.stillNodes(0, 0, 8)
		}, want: slo.Fail, says: "Ready p99 <= 5s: it was", never: "nothing came from"},
		{why: "whoever does nothing is named however busy the machine is", goal: "all Ready", tell: func(s *story) {
			s.asked("a b")
			s.wakes(100, 20)
			s.at(8).put(&record.Actor{Actor: "controller manager", Says: "the controller manager has not acted", Since: 2e6, Waiting: 2, Of: record.Noun{One: "pod", Many: "pods"}})
		}, end: record.EndStalled, want: slo.Fail, says: "the controller manager has not acted for 6 s; 2 pods wait for it; all Ready: 2 of 2"},
		{why: "and a step that held while it was stays invalid on a busy machine", goal: "all Ready", tell: func(s *story) {
			s.made("a b", 1)
			s.wakes(100, 20)
			s.at(8).put(&record.Actor{Actor: "scheduler", Says: "no scheduler has acted", Since: 2e6, Waiting: 2, Of: record.Noun{One: "pod", Many: "pods"}})
		}, want: slo.Invalid, says: "plimsoll itself was short of CPU"},
		{why: "a backlog that wavers is not decided", goal: "errors <= 0%", step: byRate, tell: func(s *story) {
			s.arrivals(0, wavering)
		}, want: slo.Inconclusive, says: "whether the backlog grows is not decided in a hold of 10s: by "},
		{why: "arms are compared by other figures than the backlog", goal: "errors <= 0%", spec: arms, step: byRate, tell: func(s *story) {
			s.arrivals(0, wavering)
		}, want: slo.Pass},

		// Latencies.
		{why: "the quantile held", goal: "Ready p99 <= 5s", tell: func(s *story) { s.made("a b", 1) }, want: slo.Pass, says: "every objective held"},
		{why: "the quantile did not hold", goal: "Ready p99 <= 5s", tell: func(s *story) { s.made("a b", 9) }, want: slo.Fail, says: "Ready p99 <= 5s: it was 9s", binds: "the longest wait was for the nodes (Scheduled to Ready: 9s on average, 100% of all waiting)"},
		{why: "the maximum did not hold", goal: "Ready max < 5s", tell: func(s *story) {
			s.made("a", 1)
			s.made("b", 6)
		}, want: slo.Fail, says: "Ready max < 5s: it was 6s"},
		{why: "the mean held", goal: "Ready mean <= 5s", tell: func(s *story) {
			s.made("a", 1)
			s.made("b", 6)
		}, want: slo.Pass},
		{why: "the mean did not hold", goal: "Ready mean <= 5s", tell: func(s *story) {
			s.made("a", 1)
			s.made("b", 11)
		}, want: slo.Fail, says: "Ready mean <= 5s: it was 6s"},
		{why: "one object never came", goal: "Ready p99 <= 5s", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.news("b: Created")
		}, end: record.EndTimeout, want: slo.Fail, says: "Ready p99 <= 5s: it was never reached", binds: "NotReady: no reason given", never: "; "},
		{why: "objects were slow, and a request was refused besides", goal: "Ready p50 <= 5s", tell: func(s *story) {
			s.made("a b c", 9)
			s.asked("d", refused(403, "forbidden"))
		}, want: slo.Fail, says: "Ready p50 <= 5s: it was 9s", binds: "Ready p50 <= 5s: it was 9s; the longest wait", never: "forbidden"},
		{why: "arrivals were slow: what bound is told by the CPUs", goal: "Ready p50 <= 1s", step: byRate, tell: func(s *story) {
			s.arrivals(0, func(int) float64 { return 2 })
			for second := range 21 {
				s.reading(float64(second), usage.SourceMachine, map[string]float64{"cpuSeconds": float64(second), "cpus": 2})
			}
		}, want: slo.Fail, says: "Ready p50 <= 1s: it was 2s", binds: "the 2 CPUs were 50% busy, others 50%", never: "the longest wait"},
		{why: "the quantile depends on a lost object", goal: "Ready p99 <= 5s", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.put(&record.Fault{What: "watch of pods cut", From: 1e6})
		}, want: slo.Inconclusive, says: "Ready p99 <= 5s: it depends on 1 object whose state is unknown"},
		{why: "the quantile holds whatever became of the lost object, and is still not a pass", goal: "Ready p50 <= 5s", tell: func(s *story) {
			s.made("a b", 1)
			s.asked("c")
			s.put(&record.Fault{What: "watch of pods cut", From: 1e6})
		}, want: slo.Inconclusive, says: "the state of 1 object is unknown"},
		{why: "the quantile breaks whatever became of the lost object", goal: "Ready p50 <= 5s", tell: func(s *story) {
			s.made("a b", 9)
			s.asked("c")
			s.put(&record.Fault{What: "watch of pods cut", From: 1e6})
		}, want: slo.Fail, says: "Ready p50 <= 5s: it was 9s"},
		{why: "nothing has the milestone", goal: "Bound p99 <= 5s", tell: func(s *story) { s.made("a b", 1) }, want: slo.Inconclusive, says: "Bound p99 <= 5s: nothing of the step could be judged"},
		{why: "nothing was asked for that has the milestone", goal: "Ready p99 <= 5s", want: slo.Inconclusive, says: "Ready p99 <= 5s: nothing of the step could be judged"},
		{why: "what was made has no milestones", goal: "Ready p99 <= 5s", tell: func(s *story) {
			s.asked("service", func(b *record.Slot) { b.Units, b.Resource = 0, "Service" })
		}, want: slo.Pass},
		{why: "late news explains a slow quantile", goal: "Ready p99 <= 5s", tell: func(s *story) {
			s.made("a b", 9)
			s.canary(1.5, 8.2)
			s.canary(2.5, 8.2)
		}, want: slo.Inconclusive, says: "Ready p99 <= 5s: it was 9s; the news of objects was late, by 8.195s at most: it was between 805ms and 9s"},
		{why: "late news does not explain all of it", goal: "Ready p99 <= 5s", tell: func(s *story) {
			s.made("a b", 9)
			s.canary(6, 3)
		}, want: slo.Fail, says: "Ready p99 <= 5s: it was 9s"},
		{why: "a list showed late what may have been in time", goal: "all Ready within 5s", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.news("b: Created")
			s.at(12).put(&record.Object{Object: "ns/b", Milestone: "Ready", Late: true})
		}, want: slo.Inconclusive, says: "all Ready within 5s: 1 of 2 did not reach it; the news of objects was late", never: "it was between"},
		{why: "late news explains objects that came after the timeout", goal: "Ready p99 <= 4s", step: func(b *record.StepEvent) { b.Timeout = 5e6 }, tell: func(s *story) {
			s.made("a b", 9)
			s.canary(1.5, 8.2)
		}, want: slo.Inconclusive, says: "Ready p99 <= 4s: it was never reached; the news of objects was late, by 8.195s at most", never: "it was between"},
		{why: "late news explains a mean", goal: "Ready mean <= 5s", tell: func(s *story) {
			s.made("a b", 9)
			s.canary(1.5, 8.2)
		}, want: slo.Inconclusive, says: "the news of objects was late, by 8.195s at most: it was between"},

		// All objects.
		{why: "all are there", goal: "all Ready", tell: func(s *story) { s.made("a b", 1) }, want: slo.Pass},
		{why: "one is not there", goal: "all Ready", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.news("b: Created")
			s.at(2).put(&record.State{Object: "ns/b", Reason: "Unschedulable", Message: "0/3 nodes are available: 3 Too many pods."})
		}, end: record.EndStalled, want: slo.Fail, says: "all Ready: 1 of 2 did not reach it", binds: "Too many pods on 3 of 3 nodes"},
		{why: "one is lost", goal: "all Ready", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.put(&record.Fault{What: "watch of pods cut", From: 1e6})
		}, want: slo.Inconclusive, says: "all Ready: the state of 1 of 2 is unknown"},
		{why: "one is lost and one failed", goal: "all Ready", tell: func(s *story) {
			s.asked("a b")
			s.news("a: Created")
			s.fails("a")
			s.put(&record.Fault{What: "watch of pods cut", From: 1e6})
		}, want: slo.Fail, says: "all Ready: 1 of 2 did not reach it"},

		// Requests.
		{why: "no request failed", goal: "errors <= 0%", tell: func(s *story) { s.made("a b", 1) }, want: slo.Pass},
		{why: "requests failed, and an object ended besides", goal: "errors <= 10%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", refused(500, "no leader"))
			s.asked("c")
			s.news("c: Created")
			s.fails("c")
		}, want: slo.Fail, says: "errors <= 10%: it was 33.33%", never: "never will"},
		{why: "requests failed", goal: "errors <= 10%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", refused(500, "no leader"))
		}, want: slo.Fail, says: "errors <= 10%: it was 50%", binds: "errors <= 10%: it was 50%; HTTP 500: no leader"},
		{why: "no request was made", goal: "errors <= 0%", want: slo.Inconclusive, says: "errors <= 0%: no request was made"},
		{why: "nothing was sent again", goal: "retried <= 10%", tell: func(s *story) { s.made("a b", 1) }, want: slo.Pass},
		{why: "requests were sent again", goal: "retried <= 10%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", func(b *record.Slot) { b.Retries = 3 })
			s.news("b: Created Ready")
		}, want: slo.Fail, says: "retried <= 10%: it was 50%"},
		{why: "only streams know which places failed", goal: "nodes failed <= 0", tell: func(s *story) { s.made("a b", 1) }, want: slo.Inconclusive, says: "nodes failed <= 0: only loads of requests tell which failed"},
		{why: "the rate was achieved", goal: "achieved >= 50%", tell: func(s *story) {
			s.made("a b", 1)
			s.at(2).put(&record.StepEvent{Phase: record.PhaseLoaded})
		}, want: slo.Pass},
		{why: "the rate was not achieved", goal: "achieved >= 50%", tell: func(s *story) {
			s.made("a b", 9)
			s.at(2).put(&record.StepEvent{Phase: record.PhaseLoaded})
		}, want: slo.Fail, says: "achieved >= 50%: it was 20%"},
		{why: "late news explains a rate that was not achieved", goal: "achieved >= 50%", tell: func(s *story) {
			s.made("a b", 9)
			s.at(2).put(&record.StepEvent{Phase: record.PhaseLoaded})
			s.canary(1.5, 8.2)
			s.canary(2.5, 8.2)
		}, want: slo.Inconclusive, says: "achieved >= 50%: it was 20%; the news of objects was late, by 8.195s at most"},
		{why: "when the load was sent is unknown", goal: "achieved >= 50%", tell: func(s *story) { s.made("a b", 1) }, want: slo.Inconclusive, says: "achieved >= 50%: the rate is unknown"},
		{why: "the user stopped it before the rate was certain", goal: "achieved >= 50%", tell: func(s *story) {
			s.made("a b", 9)
			s.at(2).put(&record.StepEvent{Phase: record.PhaseLoaded})
		}, end: record.EndInterrupted, want: slo.Inconclusive, says: "the step was cut short: achieved >= 50%: it was 20% until then"},
		{why: "the user stopped it while requests were to come", goal: "errors <= 10%", step: units(4), tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", refused(500, "no leader"))
		}, end: record.EndInterrupted, want: slo.Inconclusive, says: "the step was cut short: errors <= 10%: it was 50% until then"},
		{why: "the user stopped it when all was asked for", goal: "errors <= 10%", step: units(2), tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", refused(500, "no leader"))
		}, end: record.EndInterrupted, want: slo.Fail, says: "errors <= 10%: it was 50%"},

		// Queries.
		{why: "the query holds", goal: query, tell: answer(query, record.Answer{Series: 1, Value: "3"}), want: slo.Pass},
		{why: "the query was not asked", goal: query, tell: func(s *story) { s.made("a b", 1) }, want: slo.Inconclusive, says: "query 'up' < 5: it was not asked"},
		{why: "another query was asked", goal: query, tell: answer("query 'down' < 5", record.Answer{Series: 1, Value: "3"}), want: slo.Inconclusive, says: "query 'up' < 5: it was not asked"},
		{why: "the query has no series", goal: query, tell: answer(query, record.Answer{}), want: slo.Inconclusive, says: "query 'up' < 5: it is unknown"},
		{why: "a series is NaN", goal: query, tell: answer(query, record.Answer{Series: 2, NaN: 1, Value: "3"}), want: slo.Inconclusive, says: "query 'up' < 5: it is unknown"},
		{why: "the query failed", goal: query, tell: answer(query, record.Answer{Series: 1, Broken: 1, Value: "9", Why: "the server did not answer"}), want: slo.Inconclusive, says: "query 'up' < 5: the server did not answer"},
		{why: "one series does not hold", goal: query, tell: answer(query, record.Answer{Series: 1, Broken: 1, Value: "7"}), want: slo.Fail, says: "query 'up' < 5: it was 7"},
		{why: "series do not hold, and one is NaN", goal: query, tell: answer(query, record.Answer{Series: 3, Broken: 2, NaN: 1, Of: `{node="n1"}`, Value: "7", Since: 3e6}), want: slo.Fail, says: `query 'up' < 5: it was 7 of {node="n1"} (2 of 3 series)`},

		// Places.
		{why: "a node was taken", goal: "all Ready", set: nodes, tell: func(s *story) {
			s.made("a b", 1)
			s.at(5).put(&record.Place{Place: "n2", State: record.PlaceGone, What: "was deleted"})
		}, want: slo.Inconclusive, says: "nodes 2, then 1: n2 was deleted in step 1"},
		{why: "a node was taken, and objects were slow", goal: "Ready p99 <= 5s", set: nodes, tell: func(s *story) {
			s.made("a b", 9)
			s.at(5).put(&record.Place{Place: "n2", State: record.PlaceGone, What: "was deleted"})
		}, want: slo.Inconclusive, says: "nodes 2, then 1: n2 was deleted in step 1"},
		{why: "a node became not ready, and nothing else broke", goal: "all Ready", set: nodes, tell: func(s *story) {
			s.made("a b", 1)
			s.at(5).put(&record.Place{Place: "n2", State: record.PlaceNotReady, What: "became NotReady"})
		}, want: slo.Inconclusive, says: "nodes 2, then 1: n2 became NotReady in step 1"},
		{why: "a node became not ready, and objects were slow", goal: "Ready p99 <= 5s", set: nodes, tell: func(s *story) {
			s.made("a b", 9)
			s.at(5).put(&record.Place{Place: "n2", State: record.PlaceNotReady, What: "became NotReady"})
		}, want: slo.Fail, says: "Ready p99 <= 5s: it was 9s"},

		// What is unknown, though no objective says so.
		{why: "an object that no objective is about is lost", goal: "errors <= 50%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b")
			s.put(&record.Fault{What: "watch of pods cut", From: 1e6})
		}, want: slo.Inconclusive, says: "the state of 1 object is unknown"},
		{why: "a request has no answer and no news", goal: "errors <= 50%", tell: func(s *story) {
			s.made("a", 1)
			s.asked("b", noAnswer)
		}, end: record.EndInterrupted, want: slo.Inconclusive, says: "the state of 1 object is unknown"},
		{why: "the watch was cut at the end", goal: "all Ready", tell: func(s *story) {
			s.made("a b", 1)
			s.at(19).put(&record.Fault{What: "watch of pods cut", From: 19e6})
		}, want: slo.Inconclusive, says: "the watch was cut at the end of the step"},
		{why: "the watch was cut for a while", goal: "all Ready", tell: func(s *story) {
			s.made("a b", 1)
			s.at(18).put(&record.Fault{What: "watch of pods cut", From: 18e6})
			s.at(19).put(&record.Fault{What: "watch of pods cut", From: 18e6, To: 19e6, Healed: true})
		}, want: slo.Pass},
		{why: "the user stopped it", goal: "all Ready", tell: func(s *story) { s.made("a b", 1) }, end: record.EndInterrupted, want: slo.Inconclusive, says: "the step was cut short: the user stopped it"},
		{why: "what was done in the hold had not ended", goal: "all Ready", tell: func(s *story) { s.made("a b", 1) }, end: record.EndUnfinished, want: slo.Inconclusive, says: "two nodes still drained"},
		{why: "a request is not on record", goal: "all Ready", step: units(3), tell: func(s *story) { s.made("a b", 1) }, want: slo.Inconclusive, says: "the requests for 1 object are not on record"},
		{why: "others make the level already", goal: "all Ready", step: places(2, 5), want: slo.Inconclusive, says: "5 pods that are not this run's already make 2 pods/node: no load was sent"},
		{why: "nothing was asked for", goal: "all Ready", want: slo.Inconclusive, says: "nothing was asked for"},
	} {
		t.Run(r.why, func(t *testing.T) {
			r.check(t, podKind())
		})
	}
}

// wavering is a latency that goes up and down, so that the backlog does.
func wavering(i int) float64 {
	if i/25%2 == 0 {
		return 0.2
	}
	return 3
}

// windowed makes a row's step one of a stream by a schedule, of which 20 s are judged.
func windowed(change func(second int, w *plant)) func(*story) {
	return func(s *story) { s.windows(change) }
}

func open(b *record.StepEvent) { b.Open, b.Level, b.Reached = true, 100, 100 }

// Every exit that the generator of a stream of requests is the reason for has a row.
func TestEveryExitForGenerators(t *testing.T) {
	generator := func(spec *result.Spec) {
		spec.Kind.Bounds = []record.Bound{{Name: "clients", What: "the generator's clients", Source: "gen", Value: "used", Full: 0.9, Generator: true}}
	}
	limit := func(spec *result.Spec) {
		spec.Kind.Bounds = []record.Bound{{Name: "threads", What: "the router's threads", Source: "gen", Value: "used", Full: 0.9}}
	}
	// held says that most arrivals waited for a place among ten under way.
	held := func(_ int, w *plant) { w.Late, w.InFlight, w.took = 60, 10, micros(0.1) }
	// few says that some did, and tried what the target answered in 10 s with 7 and with
	// 10 places.
	few := func(_ int, w *plant) { w.Late, w.InFlight, w.took = 20, 10, micros(0.1) }
	tried := func(change func(int, *plant), fewer, all int) func(*story) {
		return func(s *story) {
			s.windows(change)
			s.put(&record.Trial{Places: 7, Seconds: 10, Answered: fewer})
			s.put(&record.Trial{Places: 10, Seconds: 10, Answered: all})
		}
	}
	for _, r := range []row{
		{why: "the generator was late, and it held all the same", goal: "Complete p99 <= 50ms", tell: windowed(func(_ int, w *plant) { w.own = 5e3 }), want: slo.Pass},
		{why: "the generator was late by more than a tenth, and it broke", goal: "Complete p99 <= 5ms", tell: windowed(func(_ int, w *plant) { w.own = 2e3 }),
			want: slo.Invalid, says: "plimsoll itself was late: its own delay, p99 of 2000 arrivals, was 2ms, more than 1.001ms, a tenth of Complete p99"},
		{why: "the generator has a name", goal: "Complete p99 <= 5ms", spec: func(spec *result.Spec) { spec.Kind.Generator = "fio" }, tell: windowed(func(_ int, w *plant) { w.own = 2e3 }),
			want: slo.Invalid, says: "fio itself was late"},
		{why: "a mean is judged by the mean of the delay", goal: "Complete mean <= 5ms", tell: windowed(func(_ int, w *plant) { w.own = 2e3 }),
			want: slo.Invalid, says: "its own delay, mean of 2000 arrivals, was 2ms, more than 1.001ms, a tenth of Complete mean"},
		{why: "the generator was late, and it broke by more than ten times that", goal: "Complete p99 <= 50ms", tell: windowed(func(_ int, w *plant) { w.took, w.own = 1e6, 20e3 }),
			want: slo.Fail, says: "Complete p99 <= 50ms: it was 1s"},
		{why: "the generator was late, and it broke by little more", goal: "Complete p99 <= 50ms", tell: windowed(func(_ int, w *plant) { w.took, w.own = 240e3, 20e3 }),
			want: slo.Invalid, says: "plimsoll itself was late: its own delay, p99 of 2000 arrivals, was 20ms, more than 10ms"},
		{why: "the program itself slept once for longer than the generator was late", goal: "Complete p99 <= 50ms", tell: func(s *story) {
			s.windows(func(_ int, w *plant) { w.took, w.own = 1e6, 20e3 })
			s.wakes(1000, 1)
		}, want: slo.Invalid, says: "plimsoll itself was late"},
		{why: "a generator that gives requests up may have been late by anything", goal: "Complete p50 <= 50ms", tell: windowed(func(_ int, w *plant) { w.took, w.own, w.Dropped, w.Late = 1e6, 20e3, 1, 1 }),
			want: slo.Invalid, says: "plimsoll itself was late"},
		{why: "the generator was late, and requests were refused", goal: "errors <= 1%", tell: windowed(func(_ int, w *plant) { w.own, w.Failed = 20e3, map[string]int{"status 503": 10} }),
			want: slo.Fail, says: "errors <= 1%: it was 9.091%"},
		{why: "the generator was late, and gave requests up unsent", goal: "errors <= 1%", tell: windowed(func(_ int, w *plant) { w.own, w.Dropped, w.Late = 20e3, 10, 10 }),
			want: slo.Invalid, says: "plimsoll itself was late"},
		{why: "arms are compared by what a late generator adds to", goal: "Complete p99 <= 50ms", spec: func(spec *result.Spec) {
			spec.Arms = &result.ArmsSpec{Names: []string{"a", "b"}, Metric: "Complete p99"}
		}, tell: windowed(func(_ int, w *plant) { w.own = 5e3 }), want: slo.Invalid, says: "a tenth of Complete p99"},
		{why: "the generator's own limit was used up", goal: "Complete p99 <= 5ms", spec: generator, tell: func(s *story) {
			s.windows(nil)
			s.bound("gen", 0.95)
		}, want: slo.Invalid, says: "the generator's clients (95% of it used): this says nothing about the target: Complete p99 <= 5ms: it was 10"},
		{why: "the load's own limit of requests was reached", goal: "Complete p99 <= 1s", tell: windowed(held),
			want: slo.Invalid, says: "the generator reached its own limit of requests in flight, which says nothing about the target: 1200 of 2000 arrivals waited"},
		{why: "more places would have raised the rate", goal: "Complete p99 <= 1s", tell: tried(few, 750, 960),
			want: slo.Invalid, says: "400 of 2000 arrivals waited for a place among 10, each of which took 100ms; with 7 requests in flight 75 a second were answered, and 96 with 10: more places would raise the rate"},
		{why: "more places would not have raised the rate, which is the target's", goal: "Complete p99 <= 1s", tell: tried(held, 800, 800),
			want: slo.Fail, says: "1200 of 2000 arrivals waited because answers were slow and the limit of requests in flight was reached; 0 were dropped; with 7 requests in flight 80 a second were answered, and 80 with 10: more places would not raise the rate"},
		{why: "the target answers at the rate of the schedule: they waited at times", goal: "Complete p99 <= 1s", tell: tried(few, 995, 1005), want: slo.Pass},
		{why: "requests were given up unsent, whatever the target answers afterwards", goal: "Complete p50 <= 1s", tell: tried(func(i int, w *plant) {
			if few(i, w); i == 3 {
				w.Dropped = 5
			}
		}, 1005, 1005), want: slo.Fail, says: "5 were dropped"},
		{why: "requests under way took longer than the goal allows: more places help nobody", goal: "Complete p99 <= 50ms", tell: tried(held, 750, 900), want: slo.Fail, says: "Complete p99 <= 50ms: it was 100ms"},
		{why: "something of the target was used up when the load's limit was reached", goal: "Complete p99 <= 1s", spec: limit, tell: func(s *story) {
			s.windows(held)
			s.bound("gen", 0.95)
		}, want: slo.Fail, says: "achievedRate: 1200 of 2000 arrivals waited", binds: "the router's threads (95% of it used); achievedRate"},
		{why: "few arrivals waited: the target was slow", goal: "Complete p99 <= 1s", tell: windowed(func(_ int, w *plant) { w.Late, w.InFlight = 5, 10 }),
			want: slo.Fail, says: "achievedRate: 100 of 2000 arrivals waited"},
	} {
		t.Run(r.why, func(t *testing.T) {
			r.step = open
			r.check(t, requestKind())
		})
	}
}

// Every exit of the judgement of a step of a stream of requests has a row.
func TestEveryExitForStreams(t *testing.T) {
	for _, r := range []row{
		// Objectives.
		{why: "nothing is wrong", goal: "Complete p99 <= 50ms", tell: windowed(nil), want: slo.Pass, says: "every objective held"},
		{why: "requests were slow", goal: "Complete p99 <= 5ms", tell: windowed(nil), want: slo.Fail, says: "Complete p99 <= 5ms: it was 10"},
		{why: "requests that failed never came", goal: "Complete p99 <= 50ms", tell: windowed(func(_ int, w *plant) { w.Failed = map[string]int{"reset": 3} }),
			want: slo.Fail, says: "Complete p99 <= 50ms: it was never reached"},
		{why: "too many were quick", goal: "Complete p50 >= 50ms", tell: windowed(nil), want: slo.Fail, says: "Complete p50 >= 50ms: it was 10"},
		{why: "the quantile depends on lost requests", goal: "Complete p99 <= 50ms", tell: windowed(func(_ int, w *plant) { w.Lost = 3 }),
			want: slo.Inconclusive, says: "Complete p99 <= 50ms: it depends on 60 requests whose state is unknown"},
		{why: "requests are lost that no objective depends on", goal: "Complete p50 <= 50ms", tell: windowed(func(i int, w *plant) {
			if i == 3 {
				w.Lost = 1
			}
		}), want: slo.Inconclusive, says: "the state of 1 request is unknown"},
		{why: "all came", goal: "all Complete within 50ms", tell: windowed(nil), want: slo.Pass},
		{why: "some did not come", goal: "all Complete within 5ms", tell: windowed(nil), want: slo.Fail, says: "all Complete within 5ms: 2000 requests did not reach it"},
		{why: "what became of some is unknown", goal: "all Complete", tell: windowed(func(_ int, w *plant) { w.Lost = 1 }),
			want: slo.Inconclusive, says: "all Complete: what became of 20 requests is unknown"},
		{why: "requests failed", goal: "errors <= 1%", tell: windowed(func(_ int, w *plant) { w.Failed = map[string]int{"reset": 10} }),
			want: slo.Fail, says: "errors <= 1%: it was 9.091%"},
		{why: "requests were sent again", goal: "retried <= 1%", tell: windowed(func(_ int, w *plant) { w.Retried = 10 }),
			want: slo.Fail, says: "retried <= 1%: it was 10%"},
		{why: "no request was sent", goal: "errors <= 1%", tell: windowed(func(_ int, w *plant) { w.Done = 0 }), want: slo.Inconclusive, says: "errors <= 1%: no request was made"},
		{why: "the rate was achieved", goal: "achieved >= 99%", tell: windowed(nil), want: slo.Pass},
		{why: "the rate was not achieved", goal: "achieved >= 99%", tell: windowed(func(_ int, w *plant) { w.Failed = map[string]int{"reset": 10} }),
			want: slo.Fail, says: "achieved >= 99%: it was 90.91%"},
		{why: "the rate depends on lost requests", goal: "achieved >= 99%", tell: windowed(func(_ int, w *plant) { w.Lost = 10 }),
			want: slo.Inconclusive, says: "achieved >= 99%: it depends on 200 requests whose state is unknown"},
		{why: "the rate is not achieved whatever became of the lost requests", goal: "achieved >= 99%", tell: windowed(func(i int, w *plant) {
			w.Failed = map[string]int{"reset": 10}
			if i == 3 {
				w.Lost = 1
			}
		}), want: slo.Fail, says: "achieved >= 99%: it was"},
		{why: "the hold was cut: the rate is unknown", goal: "achieved >= 99%", tell: windowed(nil), end: record.EndInterrupted, want: slo.Inconclusive, says: "achieved >= 99%: the rate is unknown"},
		{why: "the user stopped a stream that had failed until then", goal: "errors <= 1%", tell: windowed(func(_ int, w *plant) { w.Failed = map[string]int{"reset": 10} }), end: record.EndInterrupted,
			want: slo.Inconclusive, says: "the step was cut short: errors <= 1%: it was 9.091% until then"},

		// Places.
		{why: "a place is dead, and no objective names places", goal: "errors <= 50%", tell: windowed(dead("b1")), want: slo.Fail, says: "backends failed <= 0: 1 failed: b1", binds: "backends failed <= 0: 1 failed: b1"},
		{why: "the goal allows a dead place", goal: "errors <= 50%; backends failed <= 1", tell: windowed(dead("b1")), want: slo.Pass},
		{why: "more places are dead than a sentence names", goal: "errors <= 50%", tell: windowed(dead("b1", "b2", "b3", "b4", "b5")), want: slo.Fail, says: "backends failed <= 0: 5 failed: b1, b2, b3 and 2 more"},
		{why: "neighbours explain a place whose time was over", goal: "errors <= 50%", tell: func(s *story) {
			s.windows(func(_ int, w *plant) {
				w.ByPlace, w.FailedByPlace, w.Failed = map[string]int{"b0": 100}, map[string]int{"b1": 1}, map[string]int{record.FailedTimeout: 1}
			})
			s.busyNeighbours()
		}, want: slo.Invalid, says: "this says nothing about the target: backends failed <= 0: 1 failed: b1"},
		{why: "neighbours do not explain a place that refuses", goal: "errors <= 50%", tell: func(s *story) {
			s.windows(dead("b1"))
			s.busyNeighbours()
		}, want: slo.Fail, says: "backends failed <= 0: 1 failed: b1"},

		// Neighbours, guards and backlogs.
		{why: "neighbours explain slow requests", goal: "Complete p99 <= 5ms", tell: func(s *story) {
			s.windows(nil)
			s.busyNeighbours()
		}, want: slo.Invalid, says: "other programs used 90% of this machine's processors (2)"},
		{why: "neighbours do not explain a rate that refusals alone break", goal: "achieved >= 99%", tell: func(s *story) {
			s.windows(func(_ int, w *plant) { w.Failed = map[string]int{"status 503": 10} })
			s.busyNeighbours()
		}, want: slo.Fail, says: "achieved >= 99%: it was 90.91%"},
		{why: "a guard stopped a stream", goal: "errors <= 1%", tell: func(s *story) {
			s.windows(nil)
			s.at(19).put(&record.Guard{Name: "apiErrors", Value: 7, Bound: 5})
		}, end: record.EndGuard, want: slo.Fail, says: "guard:apiErrors"},
		{why: "the backlog grows, whatever the lag of news", goal: "errors <= 1%", tell: func(s *story) {
			s.windows(func(i int, w *plant) { w.Backlog = 10 * i })
			s.canary(1, 9)
		}, want: slo.Fail, says: "notSteady: the backlog grew throughout the hold, from 0 to 190"},
		{why: "the backlog wavers", goal: "errors <= 1%", tell: windowed(func(i int, w *plant) { w.Backlog = 300 * (i / 5 % 2) }),
			want: slo.Inconclusive, says: "whether the backlog grows is not decided in a hold of 20s"},
		{why: "a histogram cannot be read", goal: "errors <= 1%", tell: windowed(func(i int, w *plant) {
			if i == 3 {
				w.Histograms = map[string]record.Histogram{"Complete": "damaged"}
			}
		}), want: slo.Inconclusive, says: "its latencies are unknown: decode a histogram"},
	} {
		t.Run(r.why, func(t *testing.T) {
			r.step = open
			r.check(t, requestKind())
		})
	}
}

// dead are windows in which no request of some places is answered.
func dead(places ...string) func(int, *plant) {
	return func(_ int, w *plant) {
		w.ByPlace, w.FailedByPlace, w.Failed = map[string]int{"b0": 100}, make(map[string]int), map[string]int{"status 503": len(places)}
		for _, place := range places {
			w.FailedByPlace[place] = 1
		}
	}
}

// A closed loop sends nothing while the target stands still. The requests that it did
// not send break the quantile.
func TestAStallOfAClosedLoopCounts(t *testing.T) {
	row{why: "two seconds without an answer", goal: "Complete p95 <= 500ms", tell: windowed(func(i int, w *plant) {
		w.Done = 1000
		if i == 5 {
			w.Done, w.took = 10, 2e6
		}
		if i == 6 {
			w.Done = 0
		}
	}), want: slo.Fail, says: "Complete p95 <= 500ms: it was 10ms of the requests that were sent, and 1."}.check(t, requestKind())
}

// A backlog is what it was at the end of the hold: afterwards the target works it off.
func TestConditionsOfAGrowingBacklog(t *testing.T) {
	s := newStory(t, requestKind(), nil, "quick=errors <= 1%")
	s.begin(func(b *record.StepEvent) { b.Open = true })
	s.windows(func(i int, w *plant) { w.Backlog, w.InFlight = 10*i, 64 })
	step := s.at(21).end(record.EndHeld)
	x := step.Breaches[FirstOf(step.Breaches)]
	if x.Kind != result.BreachNotSteady || x.At != 20e6 || x.Load.Backlog != 190 {
		t.Errorf("%+v", x)
	}
	figures := make(map[string]float64)
	for _, f := range step.Conditions.Figures {
		figures[f.Name] = *f.Value
	}
	if figures[result.FigureBacklog] != 190 || figures[result.FigureInFlight] != 64 {
		t.Errorf("%v", figures)
	}
}
