package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// makeRun is a run whose objects reach Ready after the given times; +Inf never.
func makeRun(arm string, block int, times []float64) Run {
	return withParts(arm, block, map[string][]float64{"": times})
}

// withParts is a run with objects of several components.
func withParts(arm string, block int, parts map[string][]float64) Run {
	r := Run{Arm: arm, Level: 10, Block: block, Name: fmt.Sprintf("run %s %d", arm, block)}
	var all []float64
	censored := 0
	components := make([]string, 0, len(parts))
	for c := range parts {
		components = append(components, c)
	}
	slices.Sort(components)
	var later []MilestoneSample
	for _, c := range components {
		var came []float64
		for _, t := range parts[c] {
			if !math.IsInf(t, 1) {
				came = append(came, t)
			}
		}
		all, censored = append(all, came...), censored+len(parts[c])-len(came)
		if len(parts) > 1 {
			later = append(later, MilestoneSample{"Ready", c, stats.NewSample(slices.Clone(came), len(parts[c])-len(came))})
		}
	}
	s := stats.NewSample(all, censored)
	r.Samples = append([]MilestoneSample{{"Ready", "", s}}, later...)
	r.Asked, r.Missing = s.N(), s.Censored()
	for _, q := range []float64{0.5, 0.9, 0.99} {
		r.Figures = append(r.Figures, Figure{Metric: "Ready " + stats.QuantileName(q), Unit: "s", Kind: KindLatency, Value: finite(s.Quantile(q))})
	}
	return r
}

func spec(paired bool) Spec {
	return Spec{Baseline: "a", Arms: []string{"b"}, Metric: "Ready p50", Margin: 0.05, Alpha: 0.05, Paired: paired}
}

// A shape draws the times of one run's objects.
type shape func(rng *rand.Rand, n int, factor float64) []float64

func shapes() map[string]shape {
	each := func(f func(*rand.Rand) float64) shape {
		return func(rng *rand.Rand, n int, factor float64) []float64 {
			// Runs differ: that is what makes the run the replicate.
			factor *= math.Exp(0.03 * rng.NormFloat64())
			x := make([]float64, n)
			for i := range x {
				x[i] = factor * f(rng)
			}
			return x
		}
	}
	return map[string]shape{
		"skewed":    each(func(r *rand.Rand) float64 { return 0.2 + r.ExpFloat64() }),
		"tied":      each(func(r *rand.Rand) float64 { return 1 + 0.5*float64(r.IntN(4)) }),
		"two forms": each(func(r *rand.Rand) float64 { return []float64{1, 8}[r.IntN(2)] + r.Float64() }),
		"censored": each(func(r *rand.Rand) float64 {
			if r.Float64() < 0.05 {
				return math.Inf(1)
			}
			return 1 + r.Float64()
		}),
	}
}

// Of 200 pairs of arms that are the same at most 18 may be called better or
// worse, and what is planted is found and lies in the interval, whatever the
// objects' times look like.
func TestFalseAlarmsAndPower(t *testing.T) {
	const pairs, blocks, objects, planted = 200, 5, 150, 1.4
	for name, draw := range shapes() {
		for _, paired := range []bool{true, false} {
			rng := rand.New(rand.NewPCG(3, 14))
			alarms, clear, found, covered := 0, 0, 0, 0
			for range pairs {
				var same, worse []Run
				for k := range blocks {
					run := func(arm string, factor float64) Run {
						r := makeRun(arm, k+1, draw(rng, objects, factor))
						r.Samples = nil // the verdict is by figures alone
						return r
					}
					a := run("a", 1)
					same = append(same, a, run("b", 1))
					worse = append(worse, a, run("b", planted))
				}
				s := spec(paired)
				s.Metric = "Ready p90"
				l := Runs(s, same).Levels[0]
				if l.Verdict == stats.Better || l.Verdict == stats.Worse {
					alarms++
				}
				if l.Primary.Lo != nil && (*l.Primary.Lo > 0 || *l.Primary.Hi < 0) {
					clear++
				}
				l = Runs(s, worse).Levels[0]
				if l.Verdict == stats.Worse {
					found++
				}
				if l.Primary.Lo != nil && *l.Primary.Lo <= planted-1 && planted-1 <= *l.Primary.Hi {
					covered++
				}
			}
			if alarms > 18 || clear > 18 {
				t.Errorf("%s, paired %v: of %d pairs that are the same %d are called better or worse, and %d intervals leave out the truth", name, paired, pairs, alarms, clear)
			}
			if found < 160 || covered < 180 {
				t.Errorf("%s, paired %v: a change of 40%% is found in %d of %d cases, and %d intervals hold it", name, paired, found, pairs, covered)
			}
		}
	}
}

func TestWhatCannotLookFaster(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	times := func(factor, never float64) []float64 {
		x := make([]float64, 200)
		for i := range x {
			x[i] = factor * (1 + rng.Float64())
			if rng.Float64() < never {
				x[i] = math.Inf(1)
			}
		}
		return x
	}
	runs := func(factor, never float64) (list []Run) {
		for k := range 5 {
			list = append(list, makeRun("a", k+1, times(1, 0)), makeRun("b", k+1, times(factor, never)))
		}
		return list
	}
	for _, c := range []struct {
		why    string
		runs   []Run
		metric string
		want   stats.Verdict
		says   string
	}{
		{"faster", runs(0.7, 0), "Ready p50", stats.Better, "5 runs each"},
		{"faster, but a twentieth never gets there", runs(0.7, 0.05), "Ready p50", stats.Undecided, "objects were never ready (a: 0 of 1000)"},
		{"the quantile itself is never reached", runs(0.7, 0.2), "Ready p90", stats.Worse, "Ready p90 was never reached"},
		{"a figure that no run has", runs(0.7, 0), "SSH p50", stats.Undecided, "no run has the metric SSH p50"},
		{"no runs of the arm", runs(1, 0)[:1], "Ready p50", stats.Undecided, "an arm has no valid run"},
	} {
		s := spec(true)
		s.Metric = c.metric
		if l := Runs(s, c.runs).Levels[0]; l.Verdict != c.want || !strings.Contains(l.Why, c.says) {
			t.Errorf("%s: %s: %s", c.why, l.Verdict, l.Why)
		}
	}
}

func TestBlocks(t *testing.T) {
	x := []float64{1, 2, 3}
	invalid := makeRun("b", 2, x)
	invalid.LeftOut = "is invalid: late"
	runs := []Run{makeRun("a", 1, x), makeRun("b", 1, x), makeRun("a", 2, x), invalid, makeRun("b", 3, x), makeRun("b", 4, x), makeRun("a", 4, x)}
	l := Runs(spec(true), runs).Levels[0]
	if l.Runs != [2]int{2, 2} || len(l.Excluded) != 3 {
		t.Errorf("paired: %v, left out %q", l.Runs, l.Excluded)
	}
	l = Runs(spec(false), runs).Levels[0]
	if l.Runs != [2]int{3, 3} || len(l.Excluded) != 1 {
		t.Errorf("apart: %v, left out %q", l.Runs, l.Excluded)
	}
}

func memory(r Run, start, most float64) Run {
	growth := most - start
	r.Figures = append(r.Figures,
		Figure{Metric: "etcd memory, most", Unit: "B", Kind: KindMemory, Value: &most, Start: &start},
		Figure{Metric: "etcd memory, growth", Unit: "B", Kind: KindGrowth, Value: &growth, Start: &start})
	return r
}

func TestMemoryNeedsTheSameStart(t *testing.T) {
	const mib = 1 << 20
	x := []float64{1, 2, 3}
	for _, c := range []struct {
		why    string
		starts [4]float64 // a1 b1 a2 b2
		says   string     // "" a change
	}{
		{"clean starts", [4]float64{100, 101, 102, 100}, ""},
		{"one run starts with what another left", [4]float64{100, 101, 102, 140}, "100 MiB to 140 MiB"},
		{"an arm starts higher", [4]float64{100, 120, 100, 120}, "memory at the start of the runs differs"},
		{"unknown", [4]float64{100, math.NaN(), 100, 100}, "is unknown"},
	} {
		var runs []Run
		for i, s := range c.starts {
			runs = append(runs, memory(makeRun([]string{"a", "b"}[i%2], i/2+1, x), s*mib, 200*mib+float64(i)))
		}
		for _, m := range Runs(spec(true), runs).Levels[0].Others {
			if m.Kind != KindMemory && m.Kind != KindGrowth {
				continue
			}
			if (m.Change != nil) != (c.says == "") || !strings.Contains(m.Note, c.says) {
				t.Errorf("%s: %s: change %v, note %q", c.why, m.Metric, m.Change, m.Note)
			}
			if c.says != "" && m.FalseDiscovery != nil {
				t.Errorf("%s: %s has a rate of false discoveries", c.why, m.Metric)
			}
		}
	}
}

func TestSeriesByComponent(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	around := func(center float64) []float64 {
		x := make([]float64, 200)
		for i := range x {
			x[i] = center * math.Exp(0.1*rng.NormFloat64())
		}
		return x
	}
	var runs []Run
	for k := range 4 {
		// The database gets slower, the application faster: over both, one
		// percentile says nothing.
		runs = append(runs,
			withParts("a", k+1, map[string][]float64{"app": around(10), "db": around(1)}),
			withParts("b", k+1, map[string][]float64{"app": around(8), "db": around(1.4)}))
	}
	l := Runs(spec(true), runs).Levels[0]
	if len(l.Series) != 3 {
		t.Fatalf("%d series", len(l.Series))
	}
	all, app, db := l.Series[0], l.Series[1], l.Series[2]
	if all.Component != "" || app.Component != "app" || db.Component != "db" {
		t.Errorf("components %q %q %q", all.Component, app.Component, db.Component)
	}
	if all.Baseline.Forms != 2 || all.Arm.Forms != 2 || app.Baseline.Forms != 1 {
		t.Errorf("forms %d %d %d", all.Baseline.Forms, all.Arm.Forms, app.Baseline.Forms)
	}
	if !slices.ContainsFunc(l.Warnings, func(w record.Warning) bool {
		return strings.Contains(w.Text, "more than one peak in a and b") && slices.Contains(w.Places, "Ready")
	}) ||
		!slices.ContainsFunc(l.Warnings, func(w record.Warning) bool {
			return strings.Contains(w.Text, "slower at") && strings.Contains(w.Text, "and faster at") && slices.Contains(w.Places, "Ready")
		}) {
		t.Errorf("warnings %q", l.Warnings)
	}
	for _, s := range app.Shifts {
		if *s.Hi >= 0 || s.Q > 0.975 || s.Q < 0.025 {
			t.Errorf("app at %g: up to %+.2f", s.Q, *s.Hi)
		}
		if of := *s.Arm / *s.Baseline - 1; math.Abs(of-*s.Change) > 1e-6 {
			t.Errorf("app at %g: %g and %g differ by %+.4f, and it says %+.4f", s.Q, *s.Baseline, *s.Arm, of, *s.Change)
		}
	}
	if n := len(app.Shifts); n != 7 { // p5 to p95: 200 objects carry no p99
		t.Errorf("%d shifts of 200 objects a run", n)
	}
	if *app.Superiority > 0.1 || *db.Superiority < 0.9 || *app.PermutationP != 2.0/16 {
		t.Errorf("superiority %v and %v, p %v", *app.Superiority, *db.Superiority, *app.PermutationP)
	}
	if l.Distance == nil || *l.Distance != *all.Distance {
		t.Errorf("the level's distance is %v", l.Distance)
	}
}

// The thinned curve is never further from the whole one than it says.
func TestCurvesLoseLittle(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, n := range []int{1, 2, 100, 256, 257, 1000, 54321} {
		values := make([]float64, n)
		for i := range values {
			values[i] = rng.ExpFloat64()
		}
		s := stats.NewSample(values, n/10)
		f := formOf(s)
		if len(f.Curve) > curvePoints+1 || f.Curve[len(f.Curve)-1][0] != values[n-1] || f.Curve[0][0] != values[0] {
			t.Errorf("%d: %d points, from %v to %v", n, len(f.Curve), f.Curve[0], f.Curve[len(f.Curve)-1])
		}
		before := [2]float64{}
		for _, p := range f.Curve {
			if p[0] < before[0] || p[1] <= before[1] || p[1]-before[1] > 1.0/curvePoints+1/float64(n) {
				t.Fatalf("%d: from %v to %v", n, before, p)
			}
			if at, ok := slices.BinarySearch(values, p[0]); !ok || math.Abs(p[1]-float64(at+1)/float64(s.N())) > 1e-12 {
				t.Fatalf("%d: %v is not on the curve", n, p)
			}
			before = p
		}
	}
}

func TestVerdictIsTheMostSerious(t *testing.T) {
	c := Comparison{Levels: []LevelComparison{{Level: 1, Arm: "b", Verdict: stats.Better, Why: "x"}, {Level: 2, Arm: "b", Verdict: stats.NotWorse, Why: "y"}}}
	if v, why := c.Verdict(); v != stats.NotWorse || why != "arm b at 2: y" {
		t.Errorf("%s: %s", v, why)
	}
	c.Lines = []LineComparison{{Verdict: stats.Worse, Why: "z"}}
	if v, why := c.Verdict(); v != stats.Worse || why != "z" {
		t.Errorf("with lines %s: %s", v, why)
	}
	c.Refused = "another workload"
	if v, why := c.Verdict(); v != stats.Undecided || why != "another workload" {
		t.Errorf("refused %s: %s", v, why)
	}
	if v, _ := (Comparison{}).Verdict(); v != stats.Undecided {
		t.Errorf("nothing: %s", v)
	}
}

// A figure that has another's values in every run is no further chance to be
// fooled: it changes nobody's rate of false discoveries, and has the other's.
func TestTheSameFigureTwiceCountsOnce(t *testing.T) {
	figures := func(twice bool) []Compared {
		rng := rand.New(rand.NewPCG(9, 9))
		var runs []Run
		for i := range 10 {
			run := makeRun([]string{"a", "b"}[i%2], i/2+1, []float64{1, 2, 3 + float64(i%2)})
			for k := range 6 {
				value := math.Exp(0.1*rng.NormFloat64() + 0.2*float64(i%2)*float64(k%2))
				add := func(name string) {
					run.Figures = append(run.Figures, Figure{Metric: name, Unit: "s", Kind: KindLatency, Value: &value})
				}
				add(string(rune('A' + k)))
				if twice {
					add("again " + string(rune('A'+k)))
				}
			}
			runs = append(runs, run)
		}
		return Runs(spec(true), runs).Levels[0].Others
	}
	once := make(map[string]*float64)
	for _, m := range figures(false) {
		once[m.Metric] = m.FalseDiscovery
	}
	for _, m := range figures(true) {
		name := strings.TrimPrefix(m.Metric, "again ")
		if want := once[name]; (want == nil) != (m.FalseDiscovery == nil) || want != nil && *want != *m.FalseDiscovery {
			t.Errorf("%s has the rate %v, %v where each figure is there once", m.Metric, m.FalseDiscovery, want)
		}
	}
}

// Where runs of one arm do not count much more often, those that are left may be the
// better ones; what differs by chance does not matter.
func TestRunsThatDoNotCountDifferByArm(t *testing.T) {
	for _, tt := range []struct {
		why  string
		out  int // of ten runs of the arm, and none of the baseline
		want stats.Verdict
	}{
		{"two of ten are chance", 2, stats.Equivalent},
		{"six are not", 6, stats.Undecided},
	} {
		var runs []Run
		for block := range 10 {
			a, b := makeRun("a", block, []float64{1, 2, 3}), makeRun("b", block, []float64{1, 2, 3})
			if block < tt.out {
				b.LeftOut = "is invalid"
			}
			runs = append(runs, a, b)
		}
		c := Runs(spec(true), runs)
		if l := c.Levels[0]; l.Verdict != tt.want || (tt.want == stats.Undecided) != strings.Contains(l.Why, "6 of 10 runs of b do not count") {
			t.Errorf("%s: %s: %s", tt.why, l.Verdict, l.Why)
		}
	}
}

// Of several comparisons each is allowed less: what one alone would call worse.
func TestComparisonsAreAllowedFor(t *testing.T) {
	times := []float64{1, 1.08, 1.10, 1.12, 1.09}
	var one, many []Run
	for block, x := range times[1:] {
		for level := range 10 {
			a, b := makeRun("a", block, []float64{1, 1, 1}), makeRun("b", block, []float64{x, x, x})
			a.Level, b.Level = float64(level), float64(level)
			if level == 0 {
				one = append(one, a, b)
			}
			many = append(many, a, b)
		}
	}
	if l := Runs(spec(true), one).Levels[0]; l.Verdict != stats.Worse || l.StrictLo != nil {
		t.Errorf("one: %s: %s", l.Verdict, l.Why)
	}
	if l := Runs(spec(true), many).Levels[0]; l.Verdict != stats.Undecided || l.StrictLo == nil || l.MoreRuns < 1 {
		t.Errorf("one of ten: %s, %d more: %s", l.Verdict, l.MoreRuns, l.Why)
	}
}

// Of several metrics that were declared each is judged at its share of the error rate.
// The verdict is the first one's, unless another is worse or inconclusive.
func TestSeveralMetricsDecide(t *testing.T) {
	same, more, less, open := []float64{1, 1.001, 0.999, 1.002}, []float64{1.5, 1.51, 1.49, 1.5}, []float64{0.5, 0.51, 0.49, 0.5}, []float64{1.4, 0.7, 1.3, 0.8}
	for _, tt := range []struct {
		why         string
		first, then []float64
		want        stats.Verdict
	}{
		{"offload saves CPU, and no time", less, same, stats.Better},
		{"it costs CPU, and no time", more, same, stats.Worse},
		{"both are the same", same, same, stats.Equivalent},
		{"what is faster by the other alone is equivalent", same, less, stats.Equivalent},
		{"what is saved is paid by the other", less, more, stats.Worse},
		{"of the other nothing is known", less, open, stats.Undecided},
		{"a loss stays one, whatever is open", more, open, stats.Worse},
	} {
		var runs []Run
		for block := range tt.first {
			for arm, values := range map[string][2]float64{"a": {1, 1}, "b": {tt.first[block], tt.then[block]}} {
				runs = append(runs, Run{Arm: arm, Level: 10, Block: block, Figures: []Figure{{Metric: "cpu", Value: &values[0]}, {Metric: "time", Title: "the time", Value: &values[1]}, {Metric: "more", Value: &values[1]}}})
			}
		}
		s := spec(true)
		s.Metric, s.Further = "cpu", []string{"time"}
		c := Runs(s, runs)
		l := c.Levels[0]
		if l.Verdict != tt.want || c.Alpha != 0.025 || len(l.Metrics) != 2 || l.Metrics[0].Figure.Metric != l.Primary.Metric || l.Metrics[1].Figure.Metric != "time" || len(l.Others) != 1 {
			t.Errorf("%s: %s, want %s: %+v", tt.why, l.Verdict, tt.want, l)
		}
		if !strings.HasPrefix(l.Why, "cpu changed by ") || !strings.Contains(l.Why, "; the time changed by ") || !strings.HasSuffix(l.Why, "("+string(l.Metrics[1].Verdict)+")") || !strings.Contains(l.Why, "97.5% interval") {
			t.Errorf("%s: %s", tt.why, l.Why)
		}
		// Each gives the same as alone, at half of the error rate.
		alone := spec(true)
		alone.Metric, alone.Alpha = "time", 0.025
		if one := Runs(alone, runs).Levels[0]; one.Verdict != l.Metrics[1].Verdict || *one.Primary.Lo != *l.Metrics[1].Figure.Lo || one.Metrics != nil {
			t.Errorf("%s: alone it is %s, beside another %s", tt.why, one.Verdict, l.Metrics[1].Verdict)
		}
		// It goes on until both are decided.
		s.Sequential = &stats.Sequential{Least: 4, Most: 30, Alpha: 0.025, Margin: 0.05}
		open := l.Metrics[0].Verdict == stats.Undecided || l.Metrics[1].Verdict == stats.Undecided
		if done := len(Left(s, runs)) == 1; done == open {
			t.Errorf("%s: after four blocks it is done: %v", tt.why, done)
		}
	}
}

// A figure that does not count in a run takes nothing from the others of that run: one
// median of eight is left out with its block, and CPU time is compared over all blocks.
func TestAFigureIsLeftOutAlone(t *testing.T) {
	s := spec(true)
	s.Metric, s.Further = "cpu", []string{"Ready p50"}
	var runs []Run
	for block := range 8 {
		for _, arm := range []string{"a", "b"} {
			ready, cpu := 1+0.001*float64(block), 2+0.001*float64(block)
			if arm == "b" {
				cpu *= 1.5
			}
			r := Run{Arm: arm, Level: 10, Block: block, Name: fmt.Sprintf("run %s %d", arm, block), Figures: []Figure{
				{Metric: "Ready p50", Unit: "s", Kind: KindLatency, Value: &ready}, {Metric: "cpu", Unit: "s", Kind: KindMetric, Value: &cpu},
			}}
			if arm == "b" && block == 3 {
				*r.Figures[0].Value, r.Figures[0].LeftOut = 100, "the generator was late"
			}
			runs = append(runs, r)
		}
	}
	l := Runs(s, runs).Levels[0]
	if l.Metrics[0].Verdict != stats.Worse || len(l.Metrics[0].Figure.Arm) != 8 {
		t.Errorf("CPU time: %s of %d runs", l.Metrics[0].Verdict, len(l.Metrics[0].Figure.Arm))
	}
	if l.Metrics[1].Verdict != stats.Equivalent || len(l.Metrics[1].Figure.Arm) != 7 || len(l.Metrics[1].Figure.Baseline) != 7 {
		t.Errorf("the median: %s (%s) of %d runs", l.Metrics[1].Verdict, l.Metrics[1].Why, len(l.Metrics[1].Figure.Arm))
	}
	if want := []string{"run b 3: Ready p50: the generator was late"}; !slices.Equal(l.Excluded, want) {
		t.Errorf("left out: %q, want %q", l.Excluded, want)
	}
	for i := range runs {
		if runs[i].Arm == "b" {
			runs[i].Figures[0].LeftOut = "the generator was late"
		}
	}
	l = Runs(s, runs).Levels[0]
	if l.Metrics[0].Verdict != stats.Worse || l.Metrics[1].Verdict != stats.Undecided || !strings.Contains(l.Metrics[1].Why, "Ready p50 counts in no run of an arm: run b 0: Ready p50: the generator was late") {
		t.Errorf("CPU time: %s, the median, which never counts: %s (%s)", l.Metrics[0].Verdict, l.Metrics[1].Verdict, l.Metrics[1].Why)
	}
}
