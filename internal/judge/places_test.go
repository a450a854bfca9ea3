package judge

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

func placed(place, state, what string) *record.Place {
	return &record.Place{Place: place, State: record.PlaceState(state), What: what}
}

// heldOn makes a step of two objects on each of two nodes, in which something
// happens.
func (s *script) heldOn(arm string, nodes [2]string, during func(), changes ...func(*record.StepEvent)) *result.Step {
	s.begin(2, func(e *record.StepEvent) { e.Arm, e.Places, e.FromEmpty, e.Units = arm, 2, true, 4 })
	for i, name := range []string{"a", "b", "c", "d"} {
		s.asked(name, func(b *record.Slot) { b.Iteration = i })
		s.news(name + " Created")
		s.put(&record.Object{Object: "ns/" + name, Milestone: "Scheduled", Place: nodes[i%2]})
		s.news(name + " ContainersStarted Ready")
	}
	s.put(&record.StepEvent{Phase: record.PhaseReached})
	s.now += 1e6
	if during != nil {
		during()
	}
	s.now += 1e6
	step := s.end(record.EndHeld, changes...)
	s.put(&record.StepEvent{Phase: record.PhaseReset})
	s.news("a Deleted, b Deleted, c Deleted, d Deleted")
	return step
}

// Whatever makes the places of a level others than those of the run's first step is
// in the verdict, and nothing else is.
func TestPlacesOfALevel(t *testing.T) {
	one := func(e *record.StepEvent) { e.Places = 1 }
	both := [2]string{"n1", "n2"}
	for _, c := range []struct {
		why     string
		during  func(s *script) // the first step
		between func(s *script)
		first   slo.Verdict
		second  slo.Verdict
		says    string // of the first step that is inconclusive
		next    string // why no further step is made, "" where one is
	}{
		{"nothing", nil, nil, slo.Pass, slo.Pass, "", ""},
		{"gone between two steps", nil, func(s *script) { s.put(placed("n2", "gone", "was deleted")) }, slo.Pass, slo.Inconclusive, "nodes 2, then 1: n2 was deleted in step 1", "n2 was deleted in step 1"},
		{"closed, and open again between two steps", nil, func(s *script) {
			s.put(placed("n2", "closed", "was cordoned"))
			s.put(placed("n2", "there", "takes load again"))
		}, slo.Pass, slo.Pass, "", ""},
		{"one more", func(s *script) { s.put(placed("n3", "there", "was added")) }, nil, slo.Inconclusive, slo.Inconclusive, "nodes 2, then 3: n3 was added in step 1", "n3 was added"},
		{"one more that takes nothing", func(s *script) { s.put(placed("n3", "closed", "was cordoned")) }, nil, slo.Pass, slo.Pass, "", ""},
		{"not ready for a while", func(s *script) {
			s.put(placed("n2", "notReady", "is not ready"))
			s.put(placed("n2", "there", "takes load again"))
		}, nil, slo.Pass, slo.Pass, "", ""},
		{"not ready, and then deleted", func(s *script) {
			s.put(placed("n2", "notReady", "is not ready"))
			s.put(placed("n2", "gone", "was deleted"))
		}, nil, slo.Inconclusive, slo.Inconclusive, "n2 was deleted in step 1", "n2 was deleted"},
		{"still not ready as the next step begins", func(s *script) { s.put(placed("n2", "notReady", "is not ready")) }, nil, slo.Inconclusive, slo.Inconclusive, "nodes 2, then 1: n2 is not ready in step 1", ""},
		{"a guard ends the step", func(s *script) {
			s.put(placed("n2", "gone", "was deleted"))
			s.put(&record.Guard{Name: "nodesNotReady", Value: 1, Bound: 1})
		}, nil, slo.Fail, slo.Inconclusive, "n2 was deleted in step 1", "n2 was deleted"},
		{"an objective that breaks besides decides nothing", func(s *script) {
			s.put(placed("n2", "gone", "was deleted"))
			s.state("a", "Error", "", lost, failed)
		}, nil, slo.Inconclusive, slo.Inconclusive, "n2 was deleted", "n2 was deleted"},
		{"deleted, and to come back by the run itself", func(s *script) {
			s.put(placed("n2", "gone", "was deleted"))
			p := placed("n2", "there", "is to come back")
			p.Meant = true
			s.put(p)
		}, nil, slo.Inconclusive, slo.Pass, "nodes 2, then 1: n2 was deleted in step 1", ""},
		{"another part of the run finds one less", nil, func(s *script) { s.put(&record.Place{Set: []string{"n1"}}) }, slo.Pass, slo.Inconclusive, "nodes 2, then 1: n2 was missing in step 1", "n2 was missing"},
		{"one less, which the run goes on without", nil, func(s *script) { s.put(&record.Place{Set: []string{"n1"}, Meant: true}) }, slo.Pass, slo.Pass, "", ""},
		{"further ones, by the run itself", nil, func(s *script) { s.put(&record.Place{Set: []string{"n1", "n2", "n3"}, Meant: true}) }, slo.Pass, slo.Pass, "", ""},
		{"further ones, and one that is lost at once", nil, func(s *script) {
			s.put(&record.Place{Set: []string{"n1", "n2", "n3"}, Meant: true})
			s.put(placed("n1", "gone", "was lost"))
		}, slo.Pass, slo.Inconclusive, "nodes 2, then 2: n1 was lost in step 1", "n1 was lost"},
		{"by the run itself", func(s *script) {
			p := placed("n2", "closed", "was cordoned")
			p.Meant = true
			s.put(p)
		}, nil, slo.Pass, slo.Pass, "", ""},
		{"by the run itself, and then by another", func(s *script) {
			p := placed("n2", "closed", "was cordoned")
			p.Meant = true
			s.put(p)
			s.put(placed("n2", "gone", "was deleted"))
		}, nil, slo.Inconclusive, slo.Inconclusive, "n2 was deleted", "n2 was deleted"},
	} {
		s := newScript(t)
		s.put(&record.Place{Set: []string{"n1", "n2"}})
		during := func() {
			if c.during != nil {
				c.during(s)
			}
		}
		first := *s.heldOn("", both, during)
		if c.between != nil {
			c.between(s)
		}
		next := s.NextStep(design.Sweep{Levels: []float64{2, 3, 4}}, "")
		if next.Done != (c.next != "") || !strings.Contains(next.Outcome.Why, c.next) {
			t.Errorf("%s: the next step is %+v", c.why, next)
		}
		second := *s.heldOn("", both, nil)
		says := ""
		for _, step := range []result.Step{first, second} {
			if step.Verdict == slo.Inconclusive && says == "" {
				says = step.VerdictWhy
			}
			for _, b := range step.Breaches {
				if b.Decided && step.Verdict != slo.Fail {
					t.Errorf("%s: step %d is %s, and %s decided", c.why, step.ID, step.Verdict, b.What)
				}
			}
			if !adds(step.Objects) {
				t.Errorf("%s: %+v", c.why, step.Objects)
			}
		}
		if first.Verdict != c.first || second.Verdict != c.second || !strings.Contains(says, c.says) {
			t.Errorf("%s: %s, %s: %q, want %s, %s: %q", c.why, first.Verdict, second.Verdict, says, c.first, c.second, c.says)
		}
	}

	// What was on a place that is gone is lost, and the level that of the rest.
	s := newScript(t)
	s.put(&record.Place{Set: []string{"n1", "n2"}})
	step := s.heldOn("", both, func() { s.put(placed("n2", "gone", "was deleted")) }, one)
	if got := account(step.Objects); got != "2 ready, 2 lost" || step.LevelReached != 2 || step.EffectiveLevel == nil || *step.EffectiveLevel != 2 {
		t.Errorf("%s, level %g, effective %g", got, step.LevelReached, *step.EffectiveLevel)
	}
	if len(step.Reasons) != 1 || step.Reasons[0].Message != "the node that it was on was deleted" {
		t.Errorf("reasons %+v", step.Reasons)
	}
	// What stands on one that is closed stays ready, and counts for no level.
	s = newScript(t)
	s.put(&record.Place{Set: []string{"n1", "n2"}})
	step = s.heldOn("", both, func() { s.put(placed("n2", "closed", "was cordoned")) }, one)
	if got := account(step.Objects); got != "4 ready" || step.LevelReached != 2 {
		t.Errorf("closed: %s, level %g", got, step.LevelReached)
	}

	// Each arm has places of its own; each time it comes they are on record again.
	s = newScript(t)
	sets := map[string][]string{"a": {"n1", "n2"}, "b": {"n3", "n4", "n5"}}
	for _, arm := range []string{"a", "b", "a", "b"} {
		s.put(&record.Place{Set: sets[arm]})
		if step := s.heldOn(arm, [2]string(sets[arm]), nil); step.Verdict != slo.Pass {
			t.Errorf("step %d of arm %s: %s", step.ID, arm, step.VerdictWhy)
		}
	}
	for arm, set := range map[string][]string{"a": {"n1", "n2", "n6"}, "b": {"n3", "n4"}} {
		s.put(&record.Place{Set: set})
		if step := s.heldOn(arm, [2]string(set), nil); step.Verdict != slo.Inconclusive {
			t.Errorf("other places of arm %s than before: %s", arm, step.Verdict)
		}
	}
}
