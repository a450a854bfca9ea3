package judge

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// armRun is one run of an arm: how long its objects take, and how many of them
// never be ready.
type armRun struct {
	arm       string
	replicate int
	latency   func(i int) time.Duration
	never     int
	invalid   bool
}

const armObjects = 200

// compareRuns judges runs of the arms "a" and "b", with a margin of 5%.
func compareRuns(t *testing.T, runs []armRun, published ...result.PublishedSpec) (result.Result, compare.LevelComparison) {
	t.Helper()
	goal, err := slo.ParseGoal("startup=Ready p99 <= 1h")
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder(result.Spec{
		Kind: observe.Pods(), ExperimentKind: "ab", Goals: []slo.Goal{goal}, Milestones: []string{"Created", "Ready"},
		Arms:      &result.ArmsSpec{Names: []string{"a", "b"}, Params: map[string]map[string]string{"a": {}, "b": {"x": "y"}}, Metric: "Ready p50", Margin: 0.05, Alpha: 0.05},
		Published: published,
	})
	now := record.Micros(0)
	for i, r := range runs {
		step := i + 1
		add := func(body record.Body) { b.Add(record.Event{T: now, Step: step, Body: body}) }
		add(&record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 10, Arm: r.arm, Replicate: r.replicate, Purpose: record.PurposeAB, FromEmpty: true, FullHold: true}, Units: armObjects, Timeout: 1e9})
		begin := now
		for k := range armObjects {
			name := fmt.Sprintf("%d-%d", step, k)
			add(&record.Slot{Slot: name, Units: 1, Sent: begin, Replied: begin + 1, Intended: begin, Outcome: record.SlotCreated})
			if k >= r.never {
				b.Add(record.Event{T: begin + record.MicrosOf(r.latency(k)), Step: step, Body: &record.Object{Object: name, Milestone: "Ready"}})
			}
		}
		now += 1e10
		if r.invalid {
			add(&record.Reading{Source: usage.SourceWakes, Values: map[string]float64{"wakes": 100, "late": 50}})
		}
		add(&record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld})
		add(&record.StepEvent{Phase: record.PhaseReset})
	}
	b.Add(record.Event{T: now, Body: &record.RunEvent{Phase: record.PhaseEnd}})
	d := design.AB{Arms: []string{"a", "b"}, Levels: []float64{10}, Repeat: len(runs) / 2}
	result := b.Finish(d, record.Fidelity{}, "")
	return result, result.Comparison.Levels[0]
}

// around is a latency of so many milliseconds, give or take its noise from run
// to run and from object to object.
func around(rng *rand.Rand, ms, noise float64) func(int) time.Duration {
	run := math.Exp(noise * rng.NormFloat64())
	return func(i int) time.Duration {
		return time.Duration(ms * run * (0.5 + float64(i)/armObjects) * float64(time.Millisecond))
	}
}

func TestComparison(t *testing.T) {
	pairs := func(n int, a, b float64, noise float64, change func(*armRun)) []armRun {
		rng := rand.New(rand.NewPCG(1, 9))
		var runs []armRun
		for i := range n {
			x := armRun{arm: "a", replicate: i + 1, latency: around(rng, a, noise)}
			y := armRun{arm: "b", replicate: i + 1, latency: around(rng, b, noise)}
			if change != nil {
				change(&y)
			}
			runs = append(runs, x, y)
		}
		return runs
	}
	for _, c := range []struct {
		why  string
		runs []armRun
		want stats.Verdict
		exit int
		says string
	}{
		{"a tenth more", pairs(5, 1000, 1100, 0.005, nil), stats.Worse, 1, "Ready p50 changed by +9.7%, 95% interval +8.6%"},
		{"a tenth less", pairs(5, 1000, 900, 0.005, nil), stats.Better, 0, "changed by -"},
		{"the same", pairs(5, 1000, 1000, 0.005, nil), stats.Equivalent, 0, "interval"},
		{"the same, with noise: no difference found is not equal", pairs(5, 1000, 1000, 0.15, nil), stats.Undecided, 3, "more runs of each arm would probably decide"},
		{"faster, but one in twenty never gets there", pairs(5, 1000, 900, 0.005, func(r *armRun) { r.never = 10 }), stats.Undecided, 3, "50 of 1000 objects were never ready (a: 0 of 1000)"},
		{"half and more never be ready: there is no median", pairs(5, 1000, 1000, 0.005, func(r *armRun) { r.never = 110 }), stats.Worse, 1, "Ready p50 was never reached"},
		{"one run of each says nothing of the spread", pairs(1, 1000, 1100, 0, nil), stats.Undecided, 3, "at least two runs"},
		{"runs that are invalid do not count", pairs(3, 1000, 1100, 0.005, func(r *armRun) { r.invalid = r.replicate == 2 }), stats.Worse, 1, "2 runs each"},
	} {
		r, l := compareRuns(t, c.runs)
		if l.Verdict != c.want || r.ExitCode != c.exit || !strings.Contains(l.Why, c.says) {
			t.Errorf("%s: %s, exit %d: %s", c.why, l.Verdict, r.ExitCode, l.Why)
		}
	}
}

func TestComparisonShowsWhatItIsMadeOf(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	var runs []armRun
	for i := range 5 {
		runs = append(runs, armRun{arm: "b", replicate: i + 1, latency: around(rng, 1200, 0.01)}, armRun{arm: "a", replicate: i + 1, latency: around(rng, 1000, 0.01)})
	}
	runs[3].invalid = true
	r, l := compareRuns(t, runs)
	if len(l.Primary.Baseline) != 4 || len(l.Primary.Arm) != 4 || len(l.Excluded) != 2 {
		t.Errorf("%d and %d figures, left out %q", len(l.Primary.Baseline), len(l.Primary.Arm), l.Excluded)
	}
	if *l.Primary.Lo > 0.2 || *l.Primary.Hi < 0.2 {
		t.Errorf("the planted change of 20%% is not in the interval [%v, %v]", *l.Primary.Lo, *l.Primary.Hi)
	}
	if *l.Distance < 0.1 || *l.Superiority < 0.6 || *l.PermutationP != 2.0/16 {
		t.Errorf("distance %v, superiority %v, p %v", *l.Distance, *l.Superiority, *l.PermutationP)
	}
	for _, m := range l.Others {
		if m.Metric == "Ready p99" && (m.FalseDiscovery == nil || *m.FalseDiscovery > 0.05) {
			t.Errorf("Ready p99 has the false discovery rate %v", m.FalseDiscovery)
		}
		if m.Metric == "Ready p50" {
			t.Error("the metric that decides is among the others too")
		}
	}
	if r.Verdict != "worse" || r.Comparison.Arms["b"]["x"] != "y" || r.Steps[0].Params["x"] != "y" {
		t.Errorf("%s, %v", r.Verdict, r.Comparison.Arms)
	}
}

func TestPublishedFigures(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	var runs []armRun
	for i := range 3 {
		runs = append(runs, armRun{arm: "a", replicate: i + 1, latency: around(rng, 1000, 0.01)}, armRun{arm: "b", replicate: i + 1, latency: around(rng, 800, 0.01)})
	}
	published := []result.PublishedSpec{
		{What: "largest", Metric: "Ready max", Arm: "a", Value: 183, Source: "x"},
		{What: "shift", Metric: "Ready p50", Arm: "b", Value: -0.126, IsChange: true, Source: "x"},
		{What: "line", Metric: "load line", Value: 2500, IsLine: true, Source: "x"},
		{What: "of what was not measured", Metric: "kubelet CPU", Arm: "a", Value: 1, Source: "x"},
		{What: "of an arm that is not there", Metric: "Ready max", Arm: "c", Value: 1, Source: "x"},
	}
	r, _ := compareRuns(t, runs, published...)
	if len(r.Published) != len(published) {
		t.Fatalf("%d figures", len(r.Published))
	}
	largest, shift := r.Published[0], r.Published[1]
	if largest.Unit != "s" || largest.Published != 183 || *largest.Found < 1.4 || *largest.Found > 1.6 || *largest.At != 10 {
		t.Errorf("largest %+v", largest)
	}
	if shift.Unit != "%" || *shift.Found > -0.15 || *shift.Found < -0.25 || *shift.Lo > *shift.Found || *shift.Hi < *shift.Found {
		t.Errorf("shift %+v", shift)
	}
	for _, p := range r.Published[2:] {
		if p.Found != nil || p.At != nil {
			t.Errorf("%s was found: %v", p.What, *p.Found)
		}
	}
}
