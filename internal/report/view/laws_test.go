package view

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// throughput is a law that rises from 10 to 100 clients.
func throughput(change func(*result.Law)) result.Law {
	x := result.Law{
		Name: "throughput", Of: result.LawThroughput, XUnit: "clients", YUnit: "/s", Levels: 8, Lowest: 10, Highest: 100,
		USL:   &result.USLLaw{Lambda: between(50, 45, 55), Sigma: between(0.01, 0, 0.02), Kappa: between(0, 0, 0.001), NoPeak: "the interval of kappa includes 0"},
		Curve: []result.CurvePoint{{X: 5, Y: 250, Lo: new(240.0), Hi: new(260.0)}, {X: 10, Y: 500, Lo: new(480.0), Hi: new(520.0)}, {X: 100, Y: 900, Lo: new(850.0), Hi: new(950.0)}, {X: 200, Y: 950, Lo: new(700.0), Hi: new(1200.0)}},
	}
	change(&x)
	return x
}

// latency is a law of a straight line that rises from 10 to 100 pods per node.
func latency(change func(*result.Law)) result.Law {
	x := result.Law{
		Name: "Ready p99", Of: result.LawLatency, XUnit: "pods/node", YUnit: "s", Levels: 8, Lowest: 10, Highest: 100,
		Line:  &result.LineLaw{Slope: between(0.02, 0.01, 0.03), Intercept: between(0.5, 0.4, 0.6)},
		Curve: []result.CurvePoint{{X: 10, Y: 0.7}, {X: 100, Y: 2.5}},
	}
	change(&x)
	return x
}

// cost is a law of what objects take of etcd.
func cost(of, unit string, slope result.Interval) result.Law {
	return result.Law{Name: "etcd " + of, Of: of, XUnit: "objects", YUnit: unit, Line: &result.LineLaw{Slope: slope, Intercept: between(1<<20, 1<<19, 3<<19)}}
}

// A law is a sentence: how the figure goes along the axis, with unit and interval.
func TestLawSentences(t *testing.T) {
	peak := &result.PeakLaw{Level: between(60, 50, 70), Throughput: between(800, 750, 850)}
	knee := &result.KneeLaw{At: between(40, 35, 45), Before: 0.01, After: 0.05}
	points := []result.LawPoint{{X: 100, Y: 2}, {X: 10, Y: 0.5}}
	for _, c := range []struct {
		why  string
		of   result.Law
		want string
	}{
		{"a peak", throughput(func(x *result.Law) { x.USL.Peak = peak }), "highest at 60 clients [50, 70]: 800/s [750/s, 850/s]"},
		{"a peak and a knee", throughput(func(x *result.Law) { x.USL.Peak, x.Knee = peak, knee }), "highest at 60 clients [50, 70]: 800/s [750/s, 850/s]; bends at 40 [35, 45]"},
		{"it rises", throughput(func(x *result.Law) {}), "rises: 500/s at 10, 900/s at 100 clients; no peak is shown"},
		{"it falls", throughput(func(x *result.Law) { x.Curve[2].Y, x.Curve[2].Hi = 300, new(350.0); x.Curve[2].Lo = new(250.0) }), "falls: 500/s at 10, 300/s at 100 clients; no peak is shown"},
		{"its intervals overlap", throughput(func(x *result.Law) { x.Curve[2].Y, x.Curve[2].Lo = 510, new(490.0) }), "no significant trend: 500/s at 10, 510/s at 100 clients; no peak is shown"},
		{"no curve", throughput(func(x *result.Law) { x.Curve = nil }), "no curve"},
		{"a latency rises", latency(func(x *result.Law) {}), "rises +20 ms per pod/node [10 ms, 30 ms], from 700 ms at 10 to 2.50 s at 100 pods/node"},
		{"a latency falls", latency(func(x *result.Law) { x.Line.Slope = between(-0.02, -0.03, -0.01) }), "falls -20 ms per pod/node [-30 ms, -10 ms], from 700 ms at 10 to 2.50 s at 100 pods/node"},
		{"no trend and no knee", latency(func(x *result.Law) { x.Line.Slope, x.NoKnee = between(0.001, -0.01, 0.012), "too few levels" }), "no significant trend: 700 ms at 10, 2.50 s at 100 pods/node; [-10 ms, 12 ms] per pod/node; no knee found"},
		{"a line is the wrong law", latency(func(x *result.Law) { x.Line.Wrong = "the figures bend" }), "rises +20 ms per pod/node [10 ms, 30 ms], from 700 ms at 10 to 2.50 s at 100 pods/node; the figures bend"},
		{"no slope", latency(func(x *result.Law) { x.Line.Slope = result.Interval{} }), "no slope"},
		{"a knee", latency(func(x *result.Law) { x.Knee = knee }), "bends at 40 [35, 45] pods/node: +10 ms per pod/node before, +50 ms after"},
		{"a knee of powers", latency(func(x *result.Law) {
			x.Knee = &result.KneeLaw{At: between(40, 35, 45), Before: 0.5, After: 2, LogLog: true}
		}), "bends at 40 [35, 45] pods/node: grows with the power 0.5 of the level before, 2 after"},
		{"memory", cost(result.LawMemory, "B", between(2048, 1024, 3072)), "2 KiB per object [1 KiB, 3 KiB], on 1 MiB [512 KiB, 1.5 MiB]"},
		{"memory that does not grow", cost(result.LawMemory, "B", between(10, -1024, 1024)), "no significant growth: [-1 KiB, 1 KiB] per object"},
		{"CPU time", func() result.Law {
			x := cost(result.LawCPU, "CPUs", between(0.002, 0.001, 0.003))
			x.Line.Intercept, x.Line.Wrong = between(0.5, 0.4, 0.6), "the figures bend"
			return x
		}(), "2.00 ms per object [1.00 ms, 3.00 ms], on 0.5 CPUs [0.4 CPUs, 0.6 CPUs]; the figures bend"},
		{"memory of a stream", func() result.Law {
			x := cost(result.LawMemory, "B", between(2048, 1024, 3072))
			x.XUnit = "clients"
			return x
		}(), "2 KiB per client [1 KiB, 3 KiB], on 1 MiB [512 KiB, 1.5 MiB]"},
		{"a cost without a slope", cost(result.LawCount, "", result.Interval{}), "no slope"},
		{"refused", result.Law{Refused: "a fit needs 6 levels", Points: points, XUnit: "pods/node", YUnit: "s"}, "no fit: a fit needs 6 levels; 500 ms at 10, 2.00 s at 100 pods/node"},
		{"refused with one measurement", result.Law{Refused: "a fit needs 6 levels", Points: points[:1], XUnit: "pods/node", YUnit: "s"}, "no fit: a fit needs 6 levels; 2.00 s at 100 pods/node"},
		{"refused without any", result.Law{Refused: "a fit needs 6 levels", LeftOut: []result.LeftOut{{Step: 1, Why: "the CPUs were busy"}, {Step: 3, Why: "the CPUs were busy"}, {Step: 2, Why: "others used it"}}}, "no fit: without steps 1 and 3: the CPUs were busy; step 2: others used it"},
		{"refused, and nothing was measured", result.Law{Refused: "it is not known"}, "no fit: it is not known"},
		{"nothing was fitted", result.Law{}, "no fit"},
	} {
		if got := lawSentence(c.of); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.why, got, c.want)
		}
	}
}

// A terminal has a line for each law, one for what does not grow, and one for the curves
// without a law.
func TestLawSection(t *testing.T) {
	own := cost(result.LawMemory, "B", between(2048, 1024, 3072))
	own.Name = "plimsoll memory"
	laws := func(list ...result.Law) *result.Laws {
		return &result.Laws{Levels: 8, Lowest: 10, Highest: 100, List: list, LeftOut: []result.LeftOut{{Step: 9, Why: "the run was cut"}}}
	}
	flat := cost(result.LawCPU, "CPUs", between(0, -1, 1))
	refused := result.Law{Name: "time", Refused: "a fit needs 6 levels", LeftOut: []result.LeftOut{{Why: "the CPUs were busy"}}}
	detailed := latency(func(x *result.Law) {
		x.Points, x.P, x.Misfit, x.NoKnee, x.Warnings = []result.LawPoint{{X: 10}, {X: 100}}, new(0.001), new(0.05), "the bend is not significant", []string{"two levels are close"}
		x.LeftOut = []result.LeftOut{{Step: 3, Why: "others used it"}}
	})
	const latencyLine = "Ready p99|rises +20 ms per pod/node [10 ms, 30 ms], from 700 ms at 10 to 2.50 s at 100 pods/node"
	checkSections(t, []section{
		{"no laws", one(lawSection(nil, true)), ""},
		{"no law at all", one(lawSection(laws(refused, refused), false)), "No law of 2 curves: processors busy."},
		{"one, and what does not grow", one(lawSection(laws(latency(func(*result.Law) {}), own, flat, refused), false)), lines("Along the axis, 8 levels from 10 to 100 pods/node:", latencyLine,
			"  and 1 more with --explain", "  no significant growth: etcd cpu", "  no law of 1 curve: processors busy")},
		{"explained", one(lawSection(laws(detailed, own), true)), lines("Along the axis, 8 levels from 10 to 100 pods/node:", latencyLine+"; no knee found",
			"|based on 2 measurements of 8 levels, from 10 to 100 pods/node; ranks: p = 0.001; mean deviation from the fit: 5.0 %; knee: the bend is not significant; two levels are close; without step 3: others used it",
			"plimsoll memory|2 KiB per object [1 KiB, 3 KiB], on 1 MiB [512 KiB, 1.5 MiB]", "  not fitted: step 9: the run was cut")},
	})
	for _, c := range []struct{ refused, want string }{
		{"the CPUs were 98 % busy", "processors busy"}, {"it used less than 1 s of CPU time", "too little CPU time to measure"}, {"objects were never ready", "objects that were never ready"},
		{"the pace bound the rate", "the pace was the bottleneck"}, {"it is not known", "not measured"}, {"programs keep memory", "too few levels"}, {"a fit needs 6 levels", "too few levels"}, {"no trend is shown", "no trend"}, {"another reason", "another reason"},
	} {
		if got := refusal(result.Law{Refused: c.refused}); got != c.want {
			t.Errorf("%s: %q, want %q", c.refused, got, c.want)
		}
	}
}

// The details of a law say what it is based on, and how far it reaches.
func TestLawDetails(t *testing.T) {
	for _, c := range []struct {
		why  string
		of   result.Law
		want string
	}{
		{"throughput", throughput(func(x *result.Law) { x.Points, x.Misfit = make([]result.LawPoint, 9), new(0.012) }), lines(
			"based on 9 measurements of 8 levels, from 10 to 100 clients",
			"X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)): lambda 50/s [45/s, 55/s], sigma 0.01 [0, 0.02], kappa 0 [0, 0.001]",
			"the interval of kappa includes 0", "mean deviation from the fit: 1.2 %", "extrapolated to 200 clients, twice the highest: 950/s [700/s, 1200/s]")},
		{"a knee", latency(func(x *result.Law) { x.Levels, x.Misfit, x.Knee = 0, new(0.1), &result.KneeLaw{P: 0.001, Q: 0.02} }), "knee: p = 0.001, 0.02 corrected for the other curves"},
		{"memory", func() result.Law {
			x := cost(result.LawMemory, "B", between(2048, 1024, 3072))
			x.Misfit = new(4096.0)
			return x
		}(), "mean deviation from the line: 4 KiB"},
	} {
		if got := lines(lawDetails(c.of)...); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.why, got, c.want)
		}
	}
}

// The page has the laws in groups, and says what was said once no second time.
func TestLawsOnThePage(t *testing.T) {
	if lawsOfPage(result.Result{}) != nil || lawsOfPage(result.Result{Laws: &result.Laws{}}) != nil {
		t.Error("a result without laws has some")
	}
	warned := func(x result.Law) result.Law {
		x.Warnings = []string{"two levels are close"}
		return x
	}
	p := lawsOfPage(result.Result{Laws: &result.Laws{Levels: 8, Lowest: 10, Highest: 100, LeftOut: []result.LeftOut{{Step: 9, Why: "the run was cut"}}, List: []result.Law{
		warned(throughput(func(x *result.Law) { x.USL.Peak = &result.PeakLaw{} })), {Name: "time", Refused: "a fit needs 6 levels"}, warned(latency(func(x *result.Law) { x.Knee = &result.KneeLaw{} })),
		cost(result.LawMemory, "B", between(1, 0, 2)), cost(result.LawCPU, "CPUs", between(1, 0, 2)), cost(result.LawCount, "", between(1, 0, 2)),
	}}})
	if p.Basis != "8 levels from 10 to 100 clients" || p.None != "No law of 1 curve: too few levels." || len(p.LeftOut) != 1 || !p.HasCharts || !p.HasCurve || !p.HasKnee || !p.HasPeak {
		t.Errorf("%+v", p)
	}
	var list []string
	for _, g := range p.Groups {
		for _, l := range g.Laws {
			list = append(list, g.Title+": "+l.Name+"; "+lines(l.Notes...))
		}
	}
	if got, want := lines(list...), lines("Rates and times: throughput; two levels are close", "Rates and times: Ready p99; ", "Memory of each process: etcd memory; ", "What objects take besides: etcd count; ", "CPU of each process: etcd cpu; "); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := p.Groups[0].Laws[1].Index; got != 2 {
		t.Errorf("the latency is the law of index %d", got)
	}
	if got := lawSays(latency(func(*result.Law) {})); got != "Rises +20\u00a0ms per pod/node [10\u00a0ms, 30\u00a0ms], from 700\u00a0ms at 10 to 2.50\u00a0s at 100 pods/node." {
		t.Errorf("%q", got)
	}
	if got := lawTitle(result.Law{Of: result.LawThroughput, Name: "throughput"}) + " " + lawTitle(result.Law{Of: result.LawMemory, Name: "etcd memory"}); got != "Throughput etcd memory" {
		t.Errorf("%q", got)
	}
}
