package view

import (
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// runs are figures of runs; nil is one that was never reached.
func runs(list ...float64) (all []*float64) {
	for _, x := range list {
		all = append(all, new(x))
	}
	return all
}

// armsResult is a comparison of two arms at one level, in two blocks.
func armsResult() result.Result {
	return result.Result{Workload: "pods", Kind: "ab", Verdict: slo.Verdict(stats.Better), Why: "its interval lies below -5%", ObjectKind: pods(), Comparison: &compare.Comparison{
		Baseline: "runc", Metric: "Ready p50", Margin: 0.05, Alpha: 0.05, Paired: true, Arms: map[string]map[string]string{"runc": nil, "crun": nil},
		Levels: []compare.LevelComparison{{
			Level: 60, Arm: "crun", Verdict: stats.Better, Why: "its interval lies below -5%", Runs: [2]int{2, 2}, Excluded: []string{"block 3: step 5 is invalid"},
			Primary:  compare.Compared{Metric: "Ready p50", Unit: "s", Kind: compare.KindLatency, Baseline: runs(2, 4), Arm: runs(1, 3), Change: new(-0.4), Lo: new(-0.5), Hi: new(-0.2)},
			Distance: new(0.6), Superiority: new(0.2), PermutationP: new(0.5),
			Series: []compare.SeriesComparison{
				{Milestone: "Ready", Distance: new(0.6), Superiority: new(0.2), PermutationP: new(0.5), Baseline: compare.Form{N: 200, Censored: 2}, Arm: compare.Form{N: 200}, Shifts: []compare.Shift{
					{Q: 0.5, Baseline: new(3.0), Arm: new(2.0), Change: new(-0.33), Lo: new(-0.4), Hi: new(-0.2)}, {Q: 0.99, Baseline: new(8.0), Arm: new(4.0)}, {Q: 0.999, Baseline: new(8.0)},
				}},
				{Milestone: "Ready", Component: "web", Distance: new(0.5), Superiority: new(0.25), Shifts: []compare.Shift{{Q: 0.5, Baseline: new(3.0), Arm: new(2.0), Change: new(-0.33)}, {Q: 0.99, Baseline: new(8.0), Arm: new(4.0), Change: new(-0.5)}}},
			},
			Others: []compare.Compared{
				{Metric: "Created p50", Unit: "s", Kind: compare.KindLatency, Baseline: runs(1, 1), Arm: runs(1.5, 1.5), Change: new(0.5), Lo: new(0.3), Hi: new(0.7), FalseDiscovery: new(0.01)},
				{Metric: "Scheduled p50", Unit: "s", Kind: compare.KindLatency, Baseline: runs(1, 1), Arm: runs(1.5, 1.5), Change: new(0.5), Lo: new(0.3), Hi: new(0.7), FalseDiscovery: new(0.01)},
				{Metric: "etcd CPU", Unit: "s", Kind: compare.KindCPU, Baseline: runs(1, 1), Arm: runs(1, 1), Change: new(0.0), Lo: new(-0.1), Hi: new(0.1), FalseDiscovery: new(0.9)},
				{Metric: "etcd memory", Unit: "B", Kind: compare.KindMemory, Note: "it keeps memory: of the run before"},
				{Metric: "kubelet memory", Unit: "B", Kind: compare.KindMemory, Note: "it keeps memory: of the run before"},
			},
			Warnings: record.Warnings{{Kind: record.WarningShape, Text: "one percentile misleads"}},
		}},
	}}
}

// A comparison shows the metric that decides run by run, the shift of its quantiles, and
// of other metrics those that differ clearly.
func TestComparison(t *testing.T) {
	whole := []string{"crun against runc at 60: better", "  its interval lies below -5%", "  left out: block 3: step 5 is invalid",
		"Ready p50|runc|crun|change", "block 1|2.00 s|1.00 s|-50.0%", "block 2|4.00 s|3.00 s|-25.0%",
		"Ready, mean of runs|runc|crun|change|interval", "p50|3.00 s|2.00 s|-33.0%|-40.0% to -20.0%", "p99|8.00 s|4.00 s|-50.0%|over all objects: never in some run", "p99.9|8.00 s|never|-|",
		"  never Ready: 2 of 200 objects of runc",
		"  over all objects: largest distance of the distributions 0.600; an object of crun is later with a probability of 0.20 (permutation test: p = 0.5; 2 blocks cannot give less than 0.5)",
		"Ready by component|distance|later|p50|largest shift", "web|0.500|0.25|-33.0%|p99 -50.0%",
		"  other metrics that differ (false discovery rate at most 10%; they do not decide):", "Created p50 (and of Scheduled)|+50.0%|(+30.0% to +70.0%)",
		"  memory of etcd, kubelet is not compared: it keeps memory",
		"  note: one percentile misleads"}
	several := armsResult().Comparison
	several.Further = []string{"etcd CPU"}
	l := &several.Levels[0]
	l.Series, l.Others, l.Warnings, l.Excluded, l.Distance = nil, nil, nil, nil, nil
	l.Metrics = []compare.Decision{
		{Verdict: stats.Better, Why: "Ready p50 is lower", Figure: l.Primary},
		{Verdict: stats.Undecided, Why: "it takes 4 runs more", Figure: compare.Compared{Metric: "etcd CPU", Unit: "s", Kind: compare.KindCPU, Baseline: runs(1), Arm: []*float64{nil}}},
	}
	several.Paired = false
	lined := &compare.Comparison{Baseline: "old", Metric: "Ready p50", Arms: map[string]map[string]string{"new": nil}, Lines: []compare.LineComparison{{
		Goal: "ready", Unit: "pods/node", Verdict: stats.Worse, Why: "100 is less than 110",
		Baseline: compare.Bracket{Level: new(110.0), LowestFailing: new(111.0), Confirmations: "3 of 3", Binding: "Too many pods"}, Arm: compare.Bracket{LowestFailing: new(100.0)},
	}}, Levels: []compare.LevelComparison{{Level: 60, Arm: "new", Verdict: stats.Equivalent, Why: "within the margin"}}}
	checkSections(t, []section{
		{"two blocks", comparison(armsResult().Comparison), lines(whole...)},
		{"two metrics, and runs that were made apart", comparison(several), lines("crun against runc at 60: better",
			"  Ready p50 is lower (better)", "  etcd CPU: it takes 4 runs more (inconclusive)",
			"  2 metrics decide, each at an error rate of 0.05: the verdict is the first one's, unless another is worse or inconclusive",
			"Ready p50|runc|crun", "run 1|2.00 s|1.00 s", "run 2|4.00 s|3.00 s",
			"etcd CPU|runc|crun", "run 1|1.00 s|-")},
		{"load lines decide", comparison(lined), lines("load line of goal ready: worse", "  100 is less than 110",
			"old|110 pods/node, fails at 111|confirmed 3 of 3; bound by: Too many pods", "new|below 100 pods/node|",
			"new against old at 60: equivalent (does not decide)", "  within the margin")},
	})
	if got := bracketText(compare.Bracket{}, "pods/node"); got != "unknown" {
		t.Errorf("%q", got)
	}
	if got := bracketText(compare.Bracket{Level: new(5.0)}, "pods/node"); got != "at least 5 pods/node" {
		t.Errorf("%q", got)
	}
}

// The verdict names the arms, and the levels where it is not that of each.
func TestVerdictOfArms(t *testing.T) {
	at := func(arm string, level float64, v stats.Verdict) compare.LevelComparison {
		return compare.LevelComparison{Arm: arm, Level: level, Verdict: v}
	}
	of := func(v stats.Verdict, levels ...compare.LevelComparison) result.Result {
		return result.Result{Workload: "pods", Verdict: slo.Verdict(v), Why: "so it was", Comparison: &compare.Comparison{Baseline: "runc", Levels: levels}}
	}
	refused := of(stats.Better, at("crun", 60, stats.Better))
	refused.Comparison.Refused = "the kernels differ"
	for _, c := range []struct {
		why  string
		of   result.Result
		want string
	}{
		{"one arm", of(stats.Better, at("crun", 60, stats.Better)), "crun is better than runc"},
		{"not worse", of(stats.NotWorse, at("crun", 60, stats.NotWorse)), "crun is not worse than runc"},
		{"two arms", of(stats.Equivalent, at("crun", 60, stats.Equivalent), at("kata", 60, stats.Equivalent)), "crun and kata are equivalent to runc"},
		{"one of two arms", of(stats.Worse, at("crun", 60, stats.Better), at("kata", 60, stats.Worse)), "kata is worse than runc"},
		{"one of two levels", of(stats.Worse, at("crun", 60, stats.Worse), at("crun", 80, stats.Better)), "crun is worse than runc at 60"},
		{"not decided", of(stats.Undecided, at("crun", 60, stats.Undecided)), "crun against runc is inconclusive"},
		{"not comparable", refused, "runc and crun are not comparable"},
	} {
		if got, want := Sentence(c.of), "pods: "+c.want+": so it was."; got != want {
			t.Errorf("%s: %q, want %q", c.why, got, want)
		}
		if got := Headline(c.of, "pods/node"); got != "pods: "+c.want {
			t.Errorf("%s: %q", c.why, got)
		}
	}
}

// Recorded experiments are compared as arms are, with what else differs first.
func TestCompared(t *testing.T) {
	r := armsResult()
	r.Comparison.Differences = []compare.Difference{
		{What: "runtime", Detail: "containerd", Baseline: "runc", Arm: "crun", Bearing: compare.BearingArm}, {What: "kernel", Baseline: "6.1", Bearing: compare.BearingRefuses},
		{What: "memory", Baseline: "8 GiB", Arm: "9 GiB", Bearing: compare.BearingMayExplain}, {What: "version", Baseline: "v1", Arm: "v2", Bearing: compare.BearingNoted}, {What: "a", Bearing: "new word"},
	}
	operand := func(name string, nodes record.Realness) *recorded.Operand {
		return &recorded.Operand{Name: name, Path: "runs/" + name, Result: result.Result{Workload: "pods", Experiment: "e", Kind: "run", Version: "v1", Fidelity: record.Fidelity{Nodes: nodes}, Verdict: slo.Pass, Why: "1 level",
			Steps: []result.Step{{Start: "2030-01-02T03:04:05.000000Z"}}}}
	}
	in := ComparisonInput{Outcome: recorded.Outcome{Comparison: r.Comparison, Verdict: r.Verdict, Why: r.Why, Warnings: record.Warnings{{Text: "chosen after the runs"}}}, Operands: []*recorded.Operand{operand("old", record.Simulated), operand("new", record.Simulated)}}
	list := Compared(in)
	checkSections(t, []section{
		{"what differs", list[:1], lines("difference|runc|crun|", "runtime (containerd)|runc|crun|the arm", "kernel|6.1|-|prevents a verdict", "memory|8 GiB|9 GiB|may explain a part", "version|v1|v2|note", "a|-|-|new word")},
		{"the comparison", list[1:2], shown(comparison(r.Comparison)...)},
		{"the end", list[2:], lines("warning: chosen after the runs", "pods: crun is better than runc: its interval lies below -5%.", "Simulated: nodes.")},
	})
	in.Operands[1] = operand("new", record.Real)
	if got := shown(fidelities(in.Operands)); got != "old: Simulated: nodes." {
		t.Errorf("%q", got)
	}
	p, err := ComparedPage(in)
	if err != nil || p.Headline != "pods: crun is better than runc" || p.Mark != "-40%" || p.MarkUnit != "p50" || !p.Recorded || p.Fidelity != nil {
		t.Errorf("%v: %q, %q %q, %+v", err, p.Headline, p.Mark, p.MarkUnit, p.Fidelity)
	}
	placed := operand("placed", record.Real)
	placed.Environment = &record.Environment{Start: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Facts: []record.Fact{{Name: "isolation", Value: "cgroups"}},
		Places: &record.Places{Place: record.Noun{One: "Node", Many: "Nodes"}, Facts: []record.Fact{{What: "kubelet"}}, Rows: []record.PlaceRow{{Count: 2, Values: []string{"v1.35"}}}}}
	if list := operandFacts(placed); len(list) != 8 || list[5] != (fact{"Start", "2030-01-02 03:04:05 UTC", ""}) || list[6] != (fact{"Kinds of nodes", "2 of v1.35", ""}) || list[7] != (fact{"CPU split", "cgroups", ""}) {
		t.Errorf("%+v", list)
	}
	want := []fact{{"Experiment", "e", ""}, {"Workload", "pods", "run"}, {"Own verdict", "pass", "1 level"}, {"Version", "v1", "of plimsoll"}, {"Record", "runs/old", ""}, {"Start", "2030-01-02 03:04:05.000000 UTC", ""}}
	got := operandFacts(in.Operands[0])
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

// The page of a comparison says the same of the arms.
func TestArmsOnThePage(t *testing.T) {
	r := armsResult()
	if armsOfPage(result.Result{}, "pods/node") != nil {
		t.Error("a result without arms has some")
	}
	p := armsOfPage(r, "pods/node")
	l := r.Comparison.Levels[0]
	if p.Names != "crun" || !p.HasRuns || !p.HasSeries || !p.HasMetrics || p.Decide() != "Ready p50 decides" || p.LevelName(l) != "crun against runc at 60 pods/node" {
		t.Errorf("%+v: %s, %s", p, p.Decide(), p.LevelName(l))
	}
	p.Further = []string{"etcd CPU"}
	if got := p.Decide(); got != "Ready p50 and etcd CPU decide, each at an error rate of 0.05: the verdict is the first one's, unless another is worse or inconclusive" {
		t.Errorf("%q", got)
	}
	r.Comparison.Further = nil

	var titles []string
	for _, g := range groupsOf(r.Comparison, l) {
		for _, row := range g.Rows {
			titles = append(titles, g.Title+": "+row.name())
			if (row.Bar == nil) != (row.Change == nil) {
				t.Errorf("%s: bar %v", row.name(), row.Bar)
			}
		}
	}
	if got, want := lines(titles...), lines("Latency: Ready p50", "Latency: Created p50 (and of Scheduled)", "CPU time: etcd CPU", "Memory: etcd memory", "Memory: kubelet memory"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}

	series := seriesOf(r.Comparison, l)
	if len(series) != 2 || series[0].Never != "2 of 200 objects of runc" || len(series[0].Effects) != 3 || len(series[0].Shifts.Rows) != 4 {
		t.Fatalf("%+v", series)
	}
	if got := series[0].Effects[2]; got.Value != "50%" || got.Note != "The p-value of a permutation test: the share of assignments of runs to arms with at least this distance. With 2 blocks it cannot be below 50%." {
		t.Errorf("%+v", got)
	}
	for _, c := range []struct {
		m    compare.Compared
		want string
	}{
		{compare.Compared{Metric: "Ready max", Unit: "s", Kind: compare.KindLatency}, "1.00\u00a0s, 3.00\u00a0s"},
		{compare.Compared{Metric: "Ready p50", Unit: "s", Kind: compare.KindLatency}, ""},
	} {
		if got := eachOf(c.m, runs(1, 3)); got != c.want {
			t.Errorf("%s: %q, want %q", c.m.Metric, got, c.want)
		}
	}
}

// What a comparison does not know leaves no empty row, and milestones that were reached at
// the same moments are shown once.
func TestLittleIsKnownOfArms(t *testing.T) {
	c := armsResult().Comparison
	c.Paired = false
	l := &c.Levels[0]
	l.Primary.Baseline, l.Primary.Arm, l.Primary.Lo, l.Distance = nil, nil, nil, nil
	l.Series = l.Series[:1]
	same := l.Series[0]
	same.Milestone = "ContainersReady"
	l.Series = append(l.Series, same)
	list := seriesOf(c, *l)
	if len(list) != 1 || list[0].Milestones != "Ready, ContainersReady" || len(list[0].Effects) != 3 {
		t.Errorf("%+v", list)
	}
	if got := list[0].Effects[2].Note; got != "The p-value of a permutation test: the share of assignments of runs to arms with at least this distance." {
		t.Errorf("runs that were made apart: %q", got)
	}
	for _, g := range groupsOf(c, *l) {
		for _, row := range g.Rows {
			if row.Decides {
				t.Errorf("a metric without runs has a row: %s", row.name())
			}
		}
	}
	if got := factsOfArms(result.Result{Comparison: c}); len(got) != 3 || got[0].Name != "Margin" {
		t.Errorf("a change without an interval: %+v", got)
	}
	if got := shown(comparison(c)...); strings.Contains(got, "largest distance of the distributions") || strings.Contains(got, "block 1") {
		t.Errorf("%s", got)
	}
	apart := armsResult().Comparison
	apart.Paired = false
	if got := shown(comparison(apart)...); !strings.Contains(got, "(permutation test: p = 0.5)\n") {
		t.Errorf("runs that were made apart have no least p:\n%s", got)
	}
	if decidingLevel(result.Result{}) != nil || decidingLevel(result.Result{Comparison: &compare.Comparison{}}) != nil {
		t.Error("nothing is compared at a level")
	}
	lined := &compare.Comparison{Baseline: "old", Arms: map[string]map[string]string{"new": nil, "old": nil}, Lines: []compare.LineComparison{{Verdict: stats.Better}}, Levels: []compare.LevelComparison{{Arm: "new", Level: 60, Verdict: stats.Worse}}}
	if got := verdictOfArms(result.Result{Verdict: slo.Verdict(stats.Better), Comparison: lined}); got != "new is better than old" {
		t.Errorf("load lines decide: %q", got)
	}
}

// A metric that does not decide is worth a line where its interval leaves out 0, and the
// rate of false discoveries is small.
func TestDiffersClearly(t *testing.T) {
	for _, c := range []struct {
		why            string
		rate           *float64
		change, lo, hi *float64
		want           bool
	}{
		{"more", new(0.1), new(0.5), new(0.3), new(0.7), true},
		{"less", new(0.01), new(-0.5), new(-0.7), new(-0.3), true},
		{"chance", new(0.11), new(0.5), new(0.3), new(0.7), false},
		{"no rate is known", nil, new(0.5), new(0.3), new(0.7), false},
		{"no change is known", new(0.01), nil, new(0.3), new(0.7), false},
		{"it has no lower end", new(0.01), new(0.5), nil, new(0.7), false},
		{"it has no upper end", new(0.01), new(0.5), new(0.3), nil, false},
		{"0 is in the interval", new(0.01), new(0.5), new(0.0), new(0.7), false},
	} {
		if got := differsClearly(compare.Compared{FalseDiscovery: c.rate, Change: c.change, Lo: c.lo, Hi: c.hi}); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}

// Distributions are the same where component, number and curve are, in both arms.
func TestSameSeries(t *testing.T) {
	form := func(n, censored int) compare.Form { return compare.Form{N: n, Censored: censored} }
	a := compare.SeriesComparison{Milestone: "Ready", Baseline: form(10, 1), Arm: form(10, 0)}
	for _, c := range []struct {
		why  string
		b    compare.SeriesComparison
		want bool
	}{
		{"another milestone at the same moments", compare.SeriesComparison{Milestone: "Bound", Baseline: form(10, 1), Arm: form(10, 0)}, true},
		{"another component", compare.SeriesComparison{Component: "web", Baseline: form(10, 1), Arm: form(10, 0)}, false},
		{"others in the baseline", compare.SeriesComparison{Baseline: form(10, 0), Arm: form(10, 0)}, false},
		{"others in the arm", compare.SeriesComparison{Baseline: form(10, 1), Arm: form(9, 0)}, false},
	} {
		if got := sameSeries(a, c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}

// Arms that were made apart can have different numbers of runs: each run has a row.
func TestRunTableOfUnequalArms(t *testing.T) {
	got := runTable(&compare.Comparison{Baseline: "old"}, compare.LevelComparison{Arm: "new"}, compare.Compared{Metric: "Ready p50", Unit: "s", Kind: compare.KindLatency, Baseline: runs(1, 2), Arm: runs(3)})
	checkSections(t, []section{{"two runs and one", []Section{{Parts: []Part{{Table: got}}}}, lines("Ready p50|old|new", "run 1|1.00 s|3.00 s", "run 2|2.00 s|")}})
}

// The facts and the mark of a comparison are those that its verdict stands on.
func TestFactsOfArms(t *testing.T) {
	lined := result.Result{Verdict: slo.Verdict(stats.Worse), Comparison: &compare.Comparison{Baseline: "old", Arms: map[string]map[string]string{"new": nil}, Lines: []compare.LineComparison{{
		Goal: "ready", Unit: "pods/node", Verdict: stats.Worse, Baseline: compare.Bracket{Level: new(110.0)}, Arm: compare.Bracket{Level: new(100.0), LowestFailing: new(101.0)}, Change: new(-0.09), Lo: new(-0.1), Hi: new(-0.08),
	}}}}
	apart := armsResult()
	apart.Comparison.Paired = false
	for _, c := range []struct {
		why        string
		of         result.Result
		mark, unit string
		want       []fact
	}{
		{"two blocks", armsResult(), "-40%", "p50", []fact{
			{"95% interval", "-50.0% to -20.0%", "of the change of Ready p50, crun against runc"}, {"Margin", "± 5%", "a change within it counts as none"},
			{"Valid runs", "2 + 2", "side by side, in blocks"}, {"Later", "20%", "of all pairs of an object of crun and one of runc"},
		}},
		{"apart", apart, "-40%", "p50", []fact{
			{"95% interval", "-50.0% to -20.0%", "of the change of Ready p50, crun against runc"}, {"Margin", "± 5%", "a change within it counts as none"},
			{"Valid runs", "2 + 2", "in separate experiments"}, {"Later", "20%", "of all pairs of an object of crun and one of runc"},
		}},
		{"load lines", lined, "-9.0%", "load line", []fact{
			{"Load line of old", "at least 110", "pods/node, goal ready"}, {"Load line of new", "100, fails at 101", "pods/node, goal ready"}, {"Change", "-10.0% to -8.0%", "the change within the brackets"},
		}},
		{"nothing was compared", result.Result{Comparison: &compare.Comparison{}}, "?", "", nil},
	} {
		if mark, unit := markOfArms(c.of); mark != c.mark || unit != c.unit {
			t.Errorf("%s: the mark is %q %q", c.why, mark, unit)
		}
		got := factsOfArms(c.of)
		if len(got) != len(c.want) {
			t.Errorf("%s: %+v", c.why, got)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %+v, want %+v", c.why, got[i], c.want[i])
			}
		}
	}
	for verdict, want := range map[any]slo.Verdict{stats.Better: slo.Pass, stats.Equivalent: slo.Pass, stats.NotWorse: slo.Pass, stats.Worse: slo.Fail, slo.Invalid: slo.Invalid} {
		if got := toneOf(verdict); got != want {
			t.Errorf("%v looks like %s, want %s", verdict, got, want)
		}
	}
}
