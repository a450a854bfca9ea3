package findings

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// lawSteps are steps of a made-up experiment on a density axis, as they are
// when they have been judged.
type lawSteps struct {
	steps []result.Step
	in    int // objects in place
	id    int
	rng   *rand.Rand
}

// step makes one that raises to a level, of 20 objects each; what it shows is
// up to change.
func (l *lawSteps) step(level float64, fromEmpty bool, change func(*result.Step)) {
	l.id++
	if fromEmpty {
		l.in = 0
	}
	own := int(20*level) - l.in
	l.in = int(20 * level)
	c := result.Step{
		ID: l.id, StepPlan: record.StepPlan{Level: level, FromEmpty: fromEmpty}, LevelReached: level, Verdict: slo.Pass, Ending: record.EndHeld, Pace: "max", Seconds: float64(own)/100 + 10,
		Objects:   result.Objects{Intended: l.in, Created: l.in, Ready: l.in},
		Resources: make(map[string]result.Usage),
	}
	jitter := func() float64 { return math.Exp(0.02 * l.rng.NormFloat64()) }
	rate := 100 * jitter()
	c.AchievedRate, c.OfferedRate = &rate, &rate
	c.Latency = result.Latencies{"Ready": {N: own}}
	c.Resources["etcd"] = result.Usage{CPUSeconds: (0.05*c.Seconds + float64(own)*0.003) * jitter(), PeakRSSBytes: int64(1e8 + 5000*float64(l.in) + 1e5*l.rng.NormFloat64())}
	c.Resources["idle"] = result.Usage{CPUSeconds: 0.01, PeakRSSBytes: int64(5e7 + 1e5*l.rng.NormFloat64())}
	if change != nil {
		change(&c)
	}
	l.steps = append(l.steps, c)
}

// found are the laws of the steps, by name.
func (l *lawSteps) found(t *testing.T, spec result.Spec) (*result.Laws, map[string]result.Law) {
	t.Helper()
	spec.Axis, spec.Unit = "pods-per-node", "pods/node"
	laws := LawsOf(spec, l.steps)
	by := make(map[string]result.Law)
	if laws == nil {
		return nil, by
	}
	for _, x := range laws.List {
		by[x.Name] = x
	}
	if _, err := json.Marshal(laws); err != nil {
		t.Errorf("the laws have no JSON: %v", err)
	}
	return laws, by
}

func newLawSteps() *lawSteps { return &lawSteps{rng: rand.New(rand.NewPCG(1, 2))} }

func about(t *testing.T, what string, got *float64, want, share float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > share*math.Abs(want) {
		t.Errorf("%s = %v, want about %g", what, str(got), want)
	}
}

func str(x *float64) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprintf("%.7g", *x)
}

// TestLawsOfARampedSweep: raised levels, of which each adds only what is
// missing; what was planted must be told.
func TestLawsOfARampedSweep(t *testing.T) {
	l := newLawSteps()
	for _, level := range []float64{5, 10, 20, 30, 40, 50, 60} {
		l.step(level, level == 5, nil)
	}
	laws, by := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "sweep"})
	if laws.Levels != 7 || laws.Lowest != 5 || laws.Highest != 60 || len(laws.LeftOut) != 0 {
		t.Errorf("the fit is based on %d levels from %g to %g without %v", laws.Levels, laws.Lowest, laws.Highest, laws.LeftOut)
	}
	var names []string
	for _, x := range laws.List {
		names = append(names, x.Name)
	}
	if want := []string{"etcd memory", "idle memory", "etcd CPU", "idle CPU"}; !slices.Equal(names, want) {
		t.Errorf("the laws are %q, want %q", names, want)
	}

	x := by["etcd memory"]
	about(t, "memory of an object", x.Line.Slope.Value, 5000, 0.1)
	about(t, "memory of none", x.Line.Intercept.Value, 1e8, 0.01)
	if x.Points[6].X != 1200 {
		t.Errorf("memory is shown against all in place: %g", x.Points[6].X)
	}
	if !slices.ContainsFunc(x.Warnings, func(w string) bool { return strings.Contains(w, "changes with time alone") }) {
		t.Errorf("time and objects went together: %q", x.Warnings)
	}
	if x = by["idle memory"]; x.Line != nil || !strings.Contains(x.Refused, "no trend is shown (by ranks, p = ") || len(x.Points) != 7 {
		t.Errorf("a process that uses no more: %+v", x)
	}
	// Steps that ask for as many each time do not tell what an object costs from
	// what is used without any.
	if x = by["etcd CPU"]; x.Line != nil || !strings.Contains(x.Refused, "2 different rates of objects") || len(x.Points) != 7 {
		t.Errorf("CPU: %+v", x)
	}
	if x = by["idle CPU"]; x.Refused == "" || len(x.LeftOut) != 7 || !strings.Contains(x.LeftOut[0].Why, "less than 0.1 s") {
		t.Errorf("a process that used next to nothing: %q, %v", x.Refused, x.LeftOut)
	}
	again, _ := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "sweep"})
	one, _ := json.Marshal(laws)
	two, _ := json.Marshal(again)
	if string(one) != string(two) {
		t.Error("the same record tells two things")
	}
}

// TestLawsOfASearch: steps from the ramp, the bracket and the confirmations
// count, repeated levels as repeated measurements, what is not decided does
// not, and memory not once more was in place.
func TestLawsOfASearch(t *testing.T) {
	l := newLawSteps()
	for _, level := range []float64{10, 20, 30, 40, 50} {
		l.step(level, level == 10, nil)
	}
	l.step(60, false, func(c *result.Step) { // too many
		c.Verdict = slo.Fail
	})
	l.step(55, true, nil)
	for range 3 {
		l.step(55, true, nil)
	}
	l.step(56, true, func(c *result.Step) { c.Verdict = slo.Invalid; c.VerdictWhy = "short of CPU" })
	l.step(56, true, func(c *result.Step) { c.Verdict = slo.Fail; c.Ending = record.EndGuard })
	laws, by := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "limit"})
	if laws.Levels != 7 || len(laws.LeftOut) != 2 || laws.LeftOut[0].Why != "it is invalid: short of CPU" || laws.LeftOut[1].Why != "a guard stopped it" {
		t.Errorf("%d levels, left out %v", laws.Levels, laws.LeftOut)
	}
	x := by["etcd memory"]
	if len(x.Points) != 6 || len(x.LeftOut) != 4 || !strings.Contains(x.LeftOut[0].Why, "an earlier step had 1200 objects in place") {
		t.Errorf("memory stands on %d measurements, without %v", len(x.Points), x.LeftOut)
	}
	if _, by = l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "limit", FreshLab: true}); len(by["etcd memory"].LeftOut) != 0 {
		t.Errorf("a new lab keeps memory of the one before: %v", by["etcd memory"].LeftOut)
	}
}

func TestLawsThatAreNot(t *testing.T) {
	l := newLawSteps()
	l.step(5, true, nil)
	if laws, _ := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "run"}); laws != nil {
		t.Error("one level has laws")
	}
	l.step(10, false, nil)
	l.step(20, false, nil)
	laws, by := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "sweep"})
	for _, name := range []string{"etcd memory", "idle memory"} {
		if !strings.Contains(by[name].Refused, "there are 3 levels, and a fit needs 6") {
			t.Errorf("%s of %d levels: %q", name, laws.Levels, by[name].Refused)
		}
	}
	if laws, _ := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "ab", Arms: &result.ArmsSpec{}}); laws != nil {
		t.Error("a comparison of arms has laws")
	}
}

// TestLawsOfArrivals: on an axis of arrivals only CPU has a cost per object, since
// nothing stays in place.
func TestLawsOfArrivals(t *testing.T) {
	l := newLawSteps()
	for _, level := range []float64{20, 40, 80, 120, 160, 200, 240} {
		l.step(level, true, func(c *result.Step) {
			c.Open, c.Pace = true, ""
			offered := level * 1.01
			achieved := min(offered, 150-0.1*max(0, level-150)) * math.Exp(0.01*l.rng.NormFloat64())
			c.OfferedRate, c.AchievedRate = &offered, &achieved
			c.Arrivals = &result.Arrivals{WarmUp: int(level) * 30, Judged: int(level) * 60}
			c.Seconds = 90
			c.Resources["etcd"] = result.Usage{CPUSeconds: 9 + float64(c.Arrivals.WarmUp+c.Arrivals.Judged)*0.002, PeakRSSBytes: 1e8}
		})
	}
	_, by := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "sweep"})
	if _, ok := by["etcd memory"]; ok {
		t.Error("objects come and go")
	}
	c := by["etcd CPU"]
	if c.Line == nil || c.Points[0].X != 20 {
		t.Fatalf("CPU of arrivals: %+v", c)
	}
	about(t, "CPU of one", c.Line.Slope.Value, 0.002, 0.01)
	about(t, "CPU of none", c.Line.Intercept.Value, 0.1, 0.01)
}

// What steps show that the load did not cause is not a law; their figures stay.
func TestLawsNeedATestThatHolds(t *testing.T) {
	levels := []float64{10, 20, 30, 40, 50, 60, 70, 80}
	for _, tt := range []struct {
		why    string
		change func(i int, c *result.Step)
		want   string // part of why the CPU has no law
	}{
		{"it rises", nil, ""},
		{"it rises but for one step that is far off, and the ranks do not care how far",
			func(i int, c *result.Step) {
				if i == 7 {
					c.Resources["etcd"] = result.Usage{CPUSeconds: 900}
				}
			}, ""},
		{"one step alone is off", func(i int, c *result.Step) {
			c.Resources["etcd"] = result.Usage{CPUSeconds: []float64{1.01, 0.99, 1.02, 0.98, 1.03, 0.97, 1, 10}[i] * c.Seconds}
		}, "no trend is shown (by ranks, p = "},
		{"all writes stood still: the step is not used", func(i int, c *result.Step) {
			if i >= 5 {
				c.Breaches = []result.Breach{{Kind: result.BreachStandstill}}
			}
		}, "there are 5 different rates"},
		{"others used a third of the machine", func(i int, c *result.Step) {
			if i >= 5 {
				c.Bottleneck = &result.Bottleneck{CPUs: 2, CPUBy: []result.CPUShare{{Source: "etcd", Percent: 20}, {Source: result.Others, Percent: 34}}}
			}
		}, "there are 5 different rates"},
		{"the processors were busy", func(i int, c *result.Step) {
			if i >= 5 {
				c.Bottleneck = &result.Bottleneck{CPUs: 2, CPUBusy: new(70.0), CPUPeak: 99.2}
			}
		}, "there are 5 different rates"},
	} {
		l := newLawSteps()
		for _, level := range levels {
			l.step(level, true, func(c *result.Step) {
				if tt.change != nil {
					tt.change(c.ID-1, c)
				}
			})
		}
		_, by := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "sweep"})
		x := by["etcd CPU"]
		if (x.Line != nil) != (tt.want == "") || !strings.Contains(x.Refused, tt.want) || len(x.Points) < 5 {
			t.Errorf("%s: refused %q, %+v", tt.why, x.Refused, x)
		}
	}
	// What hangs on the order of the steps and not on the level.
	l := newLawSteps()
	for i, level := range []float64{10, 20, 40, 30, 60, 50, 80, 70, 50, 90} {
		l.step(level, true, func(c *result.Step) {
			c.Resources["etcd"] = result.Usage{CPUSeconds: (1 + 0.1*float64(i) + 0.01*l.rng.NormFloat64()) * c.Seconds}
		})
	}
	_, by := l.found(t, result.Spec{Kind: observe.Pods(), ExperimentKind: "sweep"})
	if x := by["etcd CPU"]; x.Line != nil || !strings.Contains(x.Refused, "the order of the steps") {
		t.Errorf("what drifts with time: refused %q, %+v", x.Refused, x.Line)
	}
}
