package view

import (
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
)

// The headline is the verdict in few words, with level and unit.
func TestHeadline(t *testing.T) {
	limit := func(v slo.Verdict, level, failing *float64) result.Result {
		return result.Result{Workload: "pods", Verdict: v, LoadLine: &result.LoadLine{Level: level, LowestFailing: failing}}
	}
	sweep := func(v slo.Verdict, steps ...result.Step) result.Result {
		return result.Result{Workload: "pods", Verdict: v, Steps: steps}
	}
	held, failed := result.Step{LevelReached: 10, Verdict: slo.Pass}, result.Step{LevelReached: 20, Verdict: slo.Fail}
	for _, c := range []struct {
		why  string
		of   result.Result
		want string
	}{
		{"a line", limit(slo.Pass, new(100.0), new(110.0)), "pods holds 100 pods/node and fails at 110"},
		{"nothing failed", limit(slo.Pass, new(100.0), nil), "pods holds 100 pods/node, the highest level tried"},
		{"the first level failed", limit(slo.Fail, nil, new(10.0)), "pods fails at its first level, 10 pods/node"},
		{"a bracket", limit(slo.Inconclusive, new(100.0), new(110.0)), "Inconclusive: the load line of pods lies from 100 to below 110 pods/node"},
		{"no level failed in time", limit(slo.Inconclusive, new(100.0), nil), "Inconclusive: pods held 100 pods/node; higher levels are unknown"},
		{"no level held in time", limit(slo.Invalid, nil, new(10.0)), "Invalid: pods failed at 10 pods/node; no level is known to hold"},
		{"nothing is known", limit(slo.Invalid, nil, nil), "Invalid: the limit of pods is unknown"},
		{"a sweep without a step", sweep(slo.Inconclusive), "pods: nothing was measured"},
		{"a sweep of one level", sweep(slo.Pass, held), "pods holds at every level, 10 pods/node"},
		{"a sweep of two levels", sweep(slo.Pass, held, result.Step{LevelReached: 30}), "pods holds at every level, 10 to 30 pods/node"},
		{"a sweep that failed", sweep(slo.Fail, held, failed), "pods fails at 20 pods/node"},
		{"an invalid sweep", sweep(slo.Invalid, held), "Invalid: pods was not the bottleneck"},
		{"a sweep that is not decided", sweep(slo.Inconclusive, held), "Inconclusive: whether pods holds is unknown"},
	} {
		if got := Headline(c.of, "pods/node"); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}

// The page of a run has its headline, its mark, its facts and what its steps tell of.
func TestRunPage(t *testing.T) {
	r := broken()
	r.Experiment, r.Cost = "density", result.Cost{Objects: 420, CPUSeconds: 2.1}
	r.LoadLine.Sustained, r.LoadLine.Estimate, r.LoadLine.Interval = new(96.5), new(105.0), &result.Range{Lo: new(99.0), Hi: new(111.0)}
	r.Steps[0].End, r.Steps[1].End = "2030-01-02T03:05:00.000000Z", "2030-01-02T03:06:10.000000Z"
	r.Steps[1].APIRequests = result.APIRequests{N: 220, Failed: 5}
	r.Steps[0].Bottleneck = &result.Bottleneck{Waits: []result.Wait{{For: "nodes"}}}
	r.Steps[0].Resources = map[string]result.Usage{usage.SourcePlace: {}}
	r.Steps[0].Durations = []result.HistogramSummary{{Source: "kubelet"}}
	p, err := RunPage(Input{Recorded: chart.Recorded{Result: r}, PlanText: "plan", Missing: []string{"metrics"}})
	if err != nil {
		t.Fatal(err)
	}
	if p.Title != "density: pods holds 100 pods/node and fails at 110" {
		t.Errorf("%q", p.Title)
	}
	if p.Mark != "100" || !p.Refused || !p.Durations || !p.PlaceParts || !p.HasUsage || len(p.Waits) != 1 || len(p.Reasons) != 1 || p.Open || p.Stream || p.Things != "pods" || p.PlanText != "plan" {
		t.Errorf("%+v", p)
	}
	if got, want := lines(p.Lead...), lines("Bound by: Too many pods.", "The line was confirmed.", "5 of 220 requests failed at 110 (HTTP 500: no leader)."); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	want := []fact{
		{"Lowest failing level", "110", "pods/node"}, {"Sustained rate", "96.5", "a second, in the steps that held the line"},
		{"95% interval of the line", "99 to 111", "half of the runs hold at 105 pods/node"},
		{"Confirmed", "3 of 3", "a further run passes with a probability of at least 37% (95% confidence)"},
	}
	if len(p.Facts) < len(want) || !slices.Equal(p.Facts[:len(want)], want) {
		t.Errorf("%+v, want %+v", p.Facts, want)
	}
	if last := p.Facts[len(p.Facts)-1]; last != (fact{"Pods measured", "420", "plimsoll used 5 ms of CPU for each"}) {
		t.Errorf("%+v", last)
	}
	if i := slices.IndexFunc(p.Facts, func(f fact) bool { return f.Name == "Ready p99" }); i < 0 || p.Facts[i].Value != "1.50 s" {
		t.Errorf("the latency at the line: %+v", p.Facts)
	}
}

// The facts of other runs: a line above which nothing failed, and a sweep as it would be.
func TestFacts(t *testing.T) {
	open := twoSteps()
	open.LoadLine.LowestFailing, open.LoadLine.Confirmations, open.Steps = nil, 0, nil
	if got, want := factsOf(open, chart.Data{}), []fact{{"Lowest failing level", "none", "up to the highest level tried"}, {"Confirmed", "0 of 3", "full steps from empty"}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	sweep := twoSteps()
	sweep.LoadLine, sweep.Fidelity.TimeScale = nil, 60
	data := chart.Data{Arrived: "Ready", Unit: "pods/node", Times: [][2]float64{{0, 60}, {60, 130}}}
	if got, want := factsOf(sweep, data), []fact{{"Steps", "2", "1 passed; 2 min 10 s in all"}, {"Ready p99", "1.50 s", "at 100 pods/node, p50 250 ms; 1m30s as it would be"}}; !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	one := sweep
	one.Steps = sweep.Steps[:1]
	if got, want := factsOf(one, data)[0], (fact{"Steps", "1", "1 passed; 2 min 10 s in all"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	sweep.Verdict = slo.Fail
	if p, err := RunPage(Input{Recorded: chart.Recorded{Result: sweep}}); err != nil || p.Mark != "110" || !slices.Contains(p.Lead, "All Ready: 20 of 220 did not reach it.") {
		t.Errorf("%v: %q, %q", err, p.Mark, p.Lead)
	}
}

// The words that the template writes are those of the sections.
func TestWordsOfTheTemplate(t *testing.T) {
	w := Words()
	call := func(name string, x float64) string { return w[name].(func(*float64) string)(&x) }
	if got := call("busy", 1.234) + ", " + call("change", 0.1) + ", " + w["share"].(func(float64) string)(0.5) + ", " + w["confidence"].(func(float64) string)(0.05); got != "1.23, +10.0%, 50%, 95%" {
		t.Errorf("%q", got)
	}
	if w["nodeSource"].(func() string)() != usage.SourcePlace || w["minus"].(func(a, b int64) int64)(5, 3) != 2 {
		t.Error("the node and the difference")
	}
	if got := ratioOf(new(3.0), new(2.0)) + " " + ratioOf(nil, new(2.0)) + " " + ratioOf(new(1.0), new(0.0)) + " " + usedCPUs(3, 2) + " " + usedCPUs(3, 0); got != "1.5 - - 1.50 -" {
		t.Errorf("%q", got)
	}
	s := twoSteps().Steps[0]
	if latencyTo(s, "Ready").N != 200 || latencyTo(s, "Bound") != nil {
		t.Error("a latency that a step has, and one that it has not")
	}
	list := []result.Reason{{Count: 1}, {Count: 299}}
	if shareOf(list[0], list) != 1 || shareOf(list[1], list) != 99 {
		t.Errorf("%d%% and %d%%", shareOf(list[0], list), shareOf(list[1], list))
	}
	for verdict, want := range map[any]string{slo.Pass: "pass", slo.Fail: "fail", stats.NotWorse: "not worse", slo.Invalid: "invalid"} {
		if got := verdictWord(verdict); got != want {
			t.Errorf("%v: %q, want %q", verdict, got, want)
		}
	}
	if got := quantile(result.Latency{}, nil); got != "-" {
		t.Errorf("a latency of nothing: %q", got)
	}
	if got := kindOf(record.CeilingHard) + ", " + kindOf(record.CeilingUnbound); got != "hard, does not bind" {
		t.Errorf("%q", got)
	}
}
