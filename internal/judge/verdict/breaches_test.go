package verdict

import (
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Two goals that break on the same objective have one breach.
func TestGoalsShareABreach(t *testing.T) {
	s := newStory(t, podKind(), nil, "a=Ready p99 <= 5s", "b=Ready p99 <= 5s", "c=Ready p99 <= 15s")
	s.begin(nil)
	s.at(1).made("a b", 9)
	step := s.at(20).end(record.EndHeld)
	if len(step.Breaches) != 1 {
		t.Fatalf("%+v", step.Breaches)
	}
	b := step.Breaches[0]
	if !slices.Equal(b.Goals, []string{"a", "b"}) || !b.Decided || b.Kind != result.BreachLatency || *b.Value != 9 || *b.Bound != 5 || b.Count != 2 || b.Step != 1 {
		t.Errorf("%+v", b)
	}
	if b.Time != "2030-01-02T03:04:11.000000Z" || b.Load.Asked != 2 || b.Load.There != 0 {
		t.Errorf("it broke at %s with %+v", b.Time, b.Load) // the bound of the objects that were asked for at 1 s
	}
}

// A node that somebody takes leaves the breach as something that was only seen.
func TestATakenNodeTakesBackTheBreach(t *testing.T) {
	s := newStory(t, podKind(), nil, "a=Ready p99 <= 5s")
	s.put(&record.Place{Set: []string{"n1", "n2"}})
	s.begin(nil)
	s.at(1).made("a b", 9)
	s.at(5).put(&record.Place{Place: "n2", State: record.PlaceGone, What: "was deleted"})
	step := s.at(20).end(record.EndHeld)
	if there, decided := has(step, "Ready p99"); !there || decided {
		t.Errorf("the slow objects: there %v, decided %v", there, decided)
	}
	if there, decided := has(step, "node n2 was deleted"); !there || decided {
		t.Errorf("the node: there %v, decided %v", there, decided)
	}
}

// Breaches are in order of time, but for actors that did nothing: they come first. What
// the first step saw as often is usual.
func TestTheOrderOfBreaches(t *testing.T) {
	throttled := func(b *record.Slot) { b.Throttled, b.ThrottledAt = 1, b.Sent }
	s := newStory(t, podKind(), nil, "a=all Ready")
	s.begin(nil)
	s.at(1).asked("a b", throttled)
	s.news("a b: Created Scheduled Ready")
	first := s.at(20).end(record.EndHeld)
	if first.Verdict != slo.Pass || len(first.Breaches) != 1 || first.Breaches[0].Usual || first.Conditions == nil || first.Conditions.NormalStep != 0 {
		t.Fatalf("the first step: %s, %+v", first.VerdictWhy, first.Breaches)
	}
	s.at(25).put(&record.StepEvent{Phase: record.PhaseReset})
	s.at(30).begin(nil)
	// Twice as often for each object is still usual.
	s.at(31).asked("c d e", throttled, func(b *record.Slot) { b.Throttled = 2 })
	s.news("c d: Created Scheduled Ready")
	s.at(32).put(&record.State{Object: "ns/c", Reason: "NotReady", Message: "a probe failed", Lost: "Ready"})
	s.at(35).put(&record.Actor{Actor: "scheduler", Says: "the scheduler did nothing", Since: 33e6, Waiting: 1, Of: record.Noun{One: "pod", Many: "pods"}, Message: "its lease is old"})
	second := s.at(50).end(record.EndTimeout)
	var kinds []result.BreachKind
	for _, b := range second.Breaches {
		kinds = append(kinds, b.Kind)
	}
	if want := []result.BreachKind{result.BreachActor, result.BreachThrottling, result.BreachReadiness, result.BreachMissing}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
	for _, b := range second.Breaches {
		if b.Usual != (b.Kind == result.BreachThrottling) {
			t.Errorf("%s: usual %v", b.What, b.Usual)
		}
	}
	if want := []string{"the scheduler did nothing for 2 s; 1 pod waits for it"}; !slices.Equal(second.Silent, want) {
		t.Errorf("%q, want %q", second.Silent, want)
	}
	if i := FirstOf(second.Breaches); second.Breaches[i].Kind != result.BreachActor {
		t.Errorf("%s broke first", second.Breaches[i].What)
	}
}

// What broke first is the first breach that is not usual, and else the first.
func TestWhatBrokeFirst(t *testing.T) {
	usual, other := result.Breach{Usual: true}, result.Breach{}
	for _, c := range []struct {
		why  string
		list []result.Breach
		want int
	}{
		{"nothing broke", nil, -1},
		{"the first is usual", []result.Breach{usual, other, other}, 1},
		{"all are usual", []result.Breach{usual, usual}, 0},
	} {
		if got := FirstOf(c.list); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
}

// A time in which no write is answered is a breach with the conditions of that time.
func TestAStandstillHasItsConditions(t *testing.T) {
	s := newStory(t, podKind(), nil, "a=Ready max <= 2s")
	s.begin(nil)
	s.at(1).made("a", 0.1)
	s.canary(1, 0.01)
	s.at(2).asked("b", func(b *record.Slot) { b.Replied = 6e6 })
	s.put(&record.Canary{Sent: 2e6, Replied: 6e6, Seen: 6.1e6})
	s.at(6).news("b: Created Scheduled Ready")
	step := s.at(20).end(record.EndHeld)
	i := slices.IndexFunc(step.Breaches, func(b result.Breach) bool { return b.Kind == result.BreachStandstill })
	if i != 0 || step.Stood < 3.9 || step.Stood > 4 || step.Breaches[0].Decided || *step.Breaches[0].Value != 4 {
		t.Fatalf("%g s: %+v", step.Stood, step.Breaches)
	}
	if want := step.Breaches[0].Time; step.Conditions.Time != want {
		t.Errorf("conditions of %s, want %s", step.Conditions.Time, want)
	}
	if f := figure(step, result.FigureInFlight); f == nil || *f.Value != 1 {
		t.Errorf("in flight: %+v", f)
	}
}

func figure(step *Judged, name string) *result.Figure {
	i := slices.IndexFunc(step.Conditions.Figures, func(f result.Figure) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &step.Conditions.Figures[i]
}

// The conditions at a breach stand beside those of the first step, with their ratio and
// unit, in a fixed order: objects, the API, processes.
func TestConditionsBesideTheFirstStep(t *testing.T) {
	s := newStory(t, podKind(), nil, "a=Ready p99 <= 5s")
	use := func(from, cpu float64) {
		for second := range 21 {
			x := float64(second)
			s.reading(from+x, usage.SourceMachine, map[string]float64{"cpuSeconds": 100*from + 2*cpu*x, "cpus": 2})
			s.reading(from+x, "etcd", map[string]float64{"cpuSeconds": 100*from + cpu*x})
			s.canary(from+x, cpu/10)
		}
	}
	s.begin(nil)
	use(0, 0.1)
	s.at(1).made("a b", 1)
	s.at(20).end(record.EndHeld)
	s.at(30).begin(nil)
	use(30, 0.4)
	s.at(31).made("c d e f", 9)
	step := s.at(50).end(record.EndHeld)
	if step.Verdict != slo.Fail || step.Conditions == nil || step.Conditions.NormalStep != 1 {
		t.Fatalf("%s: %s, %+v", step.Verdict, step.VerdictWhy, step.Conditions)
	}
	for _, c := range []struct {
		name, unit           string
		value, normal, ratio float64
	}{
		{result.FigurePending, "", 4, 2, 2},
		{result.FigureWatchLag, "s", 0.04, 0.01, 4},
		{result.FigureMachine, "%", 40, 10, 4},
		{result.FigureCPU + "etcd", "%", 20, 5, 4},
	} {
		f := figure(step, c.name)
		if f == nil || f.Value == nil || f.Normal == nil || f.Ratio == nil {
			t.Errorf("%s: %+v", c.name, f)
		} else if f.Unit != c.unit || *f.Value != c.value || *f.Normal != c.normal || *f.Ratio != c.ratio {
			t.Errorf("%s: %g %s, normal %g, ratio %g", c.name, *f.Value, f.Unit, *f.Normal, *f.Ratio)
		}
	}
	var names []string
	for _, f := range step.Conditions.Figures {
		names = append(names, f.Name)
	}
	if !slices.IsSortedFunc(names, compareFigures) || names[0] != result.FigurePending || names[len(names)-1] != result.FigureCPU+"etcd" {
		t.Errorf("in order %q", names)
	}
}

// The first step is the baseline where it held, or where its hold was too short for its
// backlog alone.
func TestWhichFirstStepIsNormal(t *testing.T) {
	for _, c := range []struct {
		why   string
		first *Judged
		want  bool
	}{
		{"none", nil, false},
		{"it held", &Judged{Measured: measured(slo.Pass, nil)}, true},
		{"it failed", &Judged{Measured: measured(slo.Fail, nil)}, false},
		{"it was not decided", &Judged{Measured: measured(slo.Inconclusive, nil)}, false},
		{"its backlog was not decided", &Judged{Measured: measured(slo.Inconclusive, &result.Backlog{Undecided: true})}, true},
		{"its backlog did not grow, and something else was unknown", &Judged{Measured: measured(slo.Inconclusive, &result.Backlog{})}, false},
	} {
		if got := c.first.asBaseline() != nil; got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}

func measured(v slo.Verdict, b *result.Backlog) (m fold.Measured) {
	m.Verdict, m.Backlog = v, b
	return m
}

// A verdict that is taken back leaves nothing decided.
func TestVerdictsAreTakenBack(t *testing.T) {
	judged := func() (*story, *Judged) {
		s := newStory(t, podKind(), nil, "a=Ready p99 <= 5s", "b=all Ready")
		s.begin(nil)
		s.at(1).made("a b", 9)
		step := s.at(20).end(record.EndHeld)
		if step.Goals["a"] != slo.Fail || step.Goals["b"] != slo.Pass || !step.Failed() {
			t.Fatalf("%v", step.Goals)
		}
		return s, step
	}
	decided := func(step *Judged) bool {
		return step.Failed() || step.Verdict != slo.Inconclusive || step.Goals["b"] != slo.Inconclusive || step.Binding != nil ||
			slices.ContainsFunc(step.Breaches, func(b result.Breach) bool { return b.Decided || len(b.Goals) > 0 })
	}

	_, step := judged()
	step.Undecide("a part of the record is damaged")
	if decided(step) || step.VerdictWhy != "a part of the record is damaged" || len(step.Breaches) != 1 {
		t.Errorf("undecided: %s, %v, %+v", step.VerdictWhy, step.Goals, step.Breaches)
	}

	s, step := judged()
	step.Message = "the run was stopped"
	step.ClearVerdicts()
	if decided(step) || step.VerdictWhy != "the step was cut off and is repeated: the run was stopped" || len(step.Breaches) != 0 || step.Conditions != nil {
		t.Errorf("repeated: %s, %v, %+v", step.VerdictWhy, step.Goals, step.Breaches)
	}
	step.Message = "another reason"
	step.ClearVerdicts()
	if step.VerdictWhy != "the step was cut off and is repeated: the run was stopped" {
		t.Errorf("a step is cleared once: %s", step.VerdictWhy)
	}
	if FirstStep(s.steps) != nil {
		t.Error("a step that is repeated is no first step")
	}
	if next := (&Judged{}); FirstStep(append(s.steps, next)) != next {
		t.Error("the next step is the first that decides")
	}
}

// A step without a goal is not decided.
func TestNoGoal(t *testing.T) {
	s := newStory(t, podKind(), nil)
	s.begin(nil)
	s.at(1).made("a", 1)
	if step := s.at(20).end(record.EndHeld); step.Verdict != slo.Inconclusive || step.VerdictWhy != "no goal was given" {
		t.Errorf("%s: %s", step.Verdict, step.VerdictWhy)
	}
}

// Only where every node refused all that was missing is the failure exact.
func TestARefusalByEveryNodeIsExact(t *testing.T) {
	for _, c := range []struct {
		why, message string
		slow         bool
		want         bool
	}{
		{"every node", "0/3 nodes are available: 3 Too many pods.", false, true},
		{"two of three", "0/3 nodes are available: 2 Too many pods.", false, false},
		{"another object is missing for another reason", "0/3 nodes are available: 3 Too many pods.", true, false},
	} {
		s := newStory(t, podKind(), nil, "a=all Ready")
		s.begin(nil)
		s.at(1).made("a", 1)
		s.asked("b")
		s.news("b: Created")
		s.put(&record.State{Object: "ns/b", Reason: "Unschedulable", Message: c.message})
		if c.slow {
			s.asked("c")
			s.news("c: Created")
		}
		if step := s.at(20).end(record.EndStalled); step.Exact != c.want {
			t.Errorf("%s: exact %v, want %v", c.why, step.Exact, c.want)
		}
	}
}

// A quantile of too few objects is judged by the maximum, which the step says.
func TestTheMaximumOfAFew(t *testing.T) {
	s := newStory(t, podKind(), nil, "a=Ready p99 <= 5s", "b=Ready p50 <= 5s")
	s.begin(nil)
	s.at(1).made("a b", 1)
	step := s.at(20).end(record.EndHeld)
	if want := []string{"Ready p99 <= 5s is judged by the maximum: p99 needs 100 objects, and there were fewer"}; !slices.Equal(step.Largest, want) {
		t.Errorf("%q, want %q", step.Largest, want)
	}
}
