package recorded

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// nightly are as many runs, a day apart, whose objects take seconds, a tenth
// more or less; from the change on they take half as long again.
func nightly(t *testing.T, n, change int, each func(i int, f *fixture)) []*Operand {
	t.Helper()
	rng := rand.New(rand.NewPCG(4, 4))
	var list []*Operand
	for i := range n {
		seconds := math.Exp(0.05 * rng.NormFloat64())
		if i >= change {
			seconds *= 1.5
		}
		f := sweep(fmt.Sprintf("n%02d", i), seconds)
		f.environment.Start = start().Add(time.Duration(i) * 24 * time.Hour)
		if each != nil {
			each(i, f)
		}
		list = append(list, f.write(t, ""))
	}
	return list
}

func trendOf(t *testing.T, list []*Operand, o TrendOptions) Outcome {
	t.Helper()
	if err := NameOperands(list); err != nil {
		t.Fatal(err)
	}
	if o.Workload == nil {
		o.Workload = known
	}
	out, err := TrendOf(list, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTrend(t *testing.T) {
	release := func(i int, f *fixture) {
		if i >= 8 {
			f.set("kubernetes", "v1.37.0")
		}
	}
	list := nightly(t, 14, 8, release)
	rand.New(rand.NewPCG(1, 1)).Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	out := trendOf(t, list, TrendOptions{Seed: 1})
	if len(out.Trends) != 1 || out.Verdict != "" || out.ExitCode != 0 || out.Comparison != nil {
		t.Fatalf("%+v", out)
	}
	trend := out.Trends[0]
	if trend.Metric != "Ready p50" || trend.Unit != "s" || *trend.Level != 10 || len(trend.Points) != 14 || trend.Alpha != 0.05 {
		t.Errorf("%+v", trend)
	}
	for i, p := range trend.Points {
		if p.Name != fmt.Sprintf("n%02d", i) || p.Runs != 5 || !(*p.Low < *p.Value && *p.Value < *p.High) || p.Program != "0.1.0" {
			t.Errorf("point %d: %+v", i, p)
		}
		if differs := len(p.Differs) > 0; differs != (i == 8) || differs && !reflect.DeepEqual(p.Differs, []string{"kubernetes"}) {
			t.Errorf("point %d differs in %q", i, p.Differs)
		}
	}
	if len(trend.Changes) != 1 || trend.Changes[0].At != 8 || math.Abs(trend.Changes[0].Change-0.5) > 0.15 {
		t.Errorf("changes %+v", trend.Changes)
	}
	for _, part := range []string{"from n08 on", "where kubernetes changed too"} {
		if !strings.Contains(trend.Why, part) {
			t.Errorf("%q lacks %q", trend.Why, part)
		}
	}

	out = trendOf(t, list, TrendOptions{AsGiven: true})
	if out.Trends[0].Points[0].Name != list[0].Name || out.Experiments[0].Name != list[0].Name {
		t.Error("the order that was given was not kept")
	}
	// Nine say nothing of a change, however large.
	out = trendOf(t, nightly(t, 9, 4, nil), TrendOptions{})
	if trend := out.Trends[0]; len(trend.Changes) != 0 || !strings.Contains(trend.Why, "it needs 10 experiments with the metric and has 9") {
		t.Errorf("%+v", trend)
	}
	out = trendOf(t, nightly(t, 14, 14, nil), TrendOptions{Seed: 1})
	if trend := out.Trends[0]; len(trend.Changes) != 0 || !strings.Contains(trend.Why, "smaller changes may remain unseen") {
		t.Errorf("%+v", trend)
	}
	var unknown *UnknownMetricError
	if _, err := TrendOf(list, TrendOptions{Options: Options{Metric: "Redy p50", Workload: known}}); !errors.As(err, &unknown) || !slices.Contains(unknown.Known, "Ready p50") {
		t.Errorf("a figure that there is not: %v", err)
	}
}

// What has no figure is passed over, and says why.
func TestTrendWithGaps(t *testing.T) {
	list := nightly(t, 14, 8, func(i int, f *fixture) {
		for k := range f.result.Steps {
			s := &f.result.Steps[k]
			switch i {
			case 2:
				l := s.Latency["Ready"]
				l.P50 = nil
				s.Latency["Ready"] = l
			case 3:
				s.Verdict = slo.Invalid
			case 4:
				s.Level = 20
			}
		}
	})
	out := trendOf(t, list, TrendOptions{Seed: 1})
	trend := out.Trends[0]
	for i, want := range map[int]string{2: "never reached in some run", 3: "it has no valid run at 10", 4: "it has no valid run at 10", 5: ""} {
		if p := trend.Points[i]; p.Note != want || (p.Value == nil) != (want != "") {
			t.Errorf("point %d: %+v, want %q", i, p, want)
		}
	}
	if len(trend.Changes) != 1 || trend.Changes[0].At != 8 {
		t.Errorf("changes %+v", trend.Changes)
	}
	if len(out.Warnings) != 1 || !strings.Contains(out.Warnings[0].String(), "12 of 14, were at 10") {
		t.Errorf("warnings %q", out.Warnings)
	}
}

func TestTrendOfLines(t *testing.T) {
	var list []*Operand
	for i := range 12 {
		level := 100.0
		if i >= 6 {
			level = 120
		}
		f := sweep(fmt.Sprintf("l%02d", i), 1).limit(level+float64(i%2), level+float64(i%2)+1)
		f.environment.Start = start().Add(time.Duration(i) * time.Hour)
		if i == 3 {
			f.result.Goals[0].Verdict = slo.Inconclusive
		}
		list = append(list, f.write(t, ""))
	}
	out := trendOf(t, list, TrendOptions{Seed: 1})
	trend := out.Trends[0]
	if trend.Metric != compare.LoadLine+"ready" || !trend.LessIsWorse || trend.Unit != "pods/node" || trend.Level != nil {
		t.Errorf("%+v", trend)
	}
	if p := trend.Points[3]; p.Value != nil || p.Note != "its load line is inconclusive" {
		t.Errorf("%+v", p)
	}
	if len(trend.Changes) != 1 || trend.Changes[0].At != 6 {
		t.Errorf("changes %+v", trend.Changes)
	}
	// The levels, if a figure of theirs is asked for.
	if out := trendOf(t, list, TrendOptions{Options: Options{Metric: "Ready p99"}}); out.Trends[0].Metric != "Ready p99" {
		t.Errorf("%+v", out.Trends[0])
	}
}

// Each workload has a trend of its own.
func TestTrendsOfWorkloads(t *testing.T) {
	list := nightly(t, 6, 6, func(i int, f *fixture) {
		if i%2 == 1 {
			f.plan.Workload = "heavy"
		}
	})
	out := trendOf(t, list, TrendOptions{})
	if len(out.Trends) != 2 || out.Trends[0].Workload != "node-density" || out.Trends[1].Workload != "heavy" || len(out.Trends[1].Points) != 3 {
		t.Fatalf("%+v", out.Trends)
	}
	nothing := []*Operand{}
	for _, name := range []string{"a", "b", "c"} {
		f := sweep(name, 1)
		f.result.Steps = nil
		f.plan.AsRun.Kind = plan.Sweep
		nothing = append(nothing, f.write(t, ""))
	}
	if out := trendOf(t, nothing, TrendOptions{}); out.Verdict != slo.Inconclusive || out.ExitCode != 3 || out.Why == "" {
		t.Errorf("runs without steps: %+v", out)
	}
}
