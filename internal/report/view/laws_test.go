package view

import (
	"fmt"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// cost is a law of what objects take of etcd.
func cost(of, unit string, slope result.Interval) result.Law {
	return result.Law{Name: "etcd " + of, Of: of, XUnit: "objects", YUnit: unit, Line: &result.LineLaw{Slope: slope, Intercept: between(1<<20, 1<<19, 3<<19)}}
}

// A law is a sentence: what an object costs, with unit and interval.
func TestLawSentences(t *testing.T) {
	points := []result.LawPoint{{X: 100, Y: 2}, {X: 10, Y: 0.5}}
	for _, c := range []struct {
		why  string
		of   result.Law
		want string
	}{
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
		{"refused, and nothing was measured", result.Law{Refused: "it is unknown"}, "no fit: it is unknown"},
	} {
		if got := lawSentence(c.of); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.why, got, c.want)
		}
	}
}

// A terminal has a line for each law, one for what does not grow, and one for the
// figures without a law.
func TestLawSection(t *testing.T) {
	own := cost(result.LawMemory, "B", between(2048, 1024, 3072))
	own.Name = "plimsoll memory"
	laws := func(list ...result.Law) *result.Laws {
		return &result.Laws{Levels: 8, Unit: "pods/node", Lowest: 10, Highest: 100, List: list, LeftOut: []result.LeftOut{{Step: 9, Why: "the run was cut"}}}
	}
	flat := cost(result.LawCPU, "CPUs", between(0, -1, 1))
	refused := result.Law{Name: "time", Refused: "a fit needs 6 levels", LeftOut: []result.LeftOut{{Why: "the CPUs were busy"}}}
	memory := cost(result.LawMemory, "B", between(2048, 1024, 3072))
	detailed := memory
	detailed.Levels, detailed.Lowest, detailed.Highest = 8, 10, 100
	detailed.Points, detailed.P, detailed.Misfit, detailed.Warnings = []result.LawPoint{{X: 10}, {X: 100}}, new(0.001), new(4096.0), []string{"two levels are close"}
	detailed.LeftOut = []result.LeftOut{{Step: 3, Why: "others used it"}}
	const memoryLine = "etcd memory|2 KiB per object [1 KiB, 3 KiB], on 1 MiB [512 KiB, 1.5 MiB]"
	checkSections(t, []section{
		{"no laws", one(lawSection(nil, true)), ""},
		{"no law at all", one(lawSection(laws(refused, refused), false)), "No cost per object found (2 figures tried): processors busy."},
		{"one, and what does not grow", one(lawSection(laws(memory, own, flat, refused), false)), lines("Cost per object, by 8 levels from 10 to 100 pods/node:", memoryLine,
			"  and 1 more with --explain", "  no significant growth: etcd cpu", "  no cost per object found (1 figure tried): processors busy")},
		{"explained", one(lawSection(laws(detailed, own), true)), lines("Cost per object, by 8 levels from 10 to 100 pods/node:", memoryLine,
			"plimsoll memory|2 KiB per object [1 KiB, 3 KiB], on 1 MiB [512 KiB, 1.5 MiB]", "  not fitted: step 9: the run was cut")},
	})
	if got, want := strings.Join(lawDetails(detailed), "; "), "based on 2 measurements of 8 levels, from 10 to 100 objects; ranks: p = 0.001; mean deviation from the line: 4 KiB; two levels are close; without step 3: others used it"; got != want {
		t.Errorf("details %q, want %q", got, want)
	}
	for _, c := range []struct{ refused, want string }{
		{"the CPUs were 98% busy", "processors busy"}, {"it used less than 1 s of CPU time", "too little CPU time to measure"},
		{"it is unknown", "not measured"}, {"programs keep memory", "too few levels"}, {"a fit needs 6 levels", "too few levels"}, {"no trend is shown", "no trend"}, {"another reason", "another reason"},
	} {
		if got := refusal(result.Law{Refused: c.refused}); got != c.want {
			t.Errorf("%s: %q, want %q", c.refused, got, c.want)
		}
	}
}

// The page has the laws in groups, and says what was said once no second time.
func TestLawsOnThePage(t *testing.T) {
	if lawsOfPage(result.Result{}) != nil {
		t.Error("a result without laws has some")
	}
	warned := func(x result.Law) result.Law {
		x.Warnings = []string{"two levels are close"}
		return x
	}
	p := lawsOfPage(result.Result{Laws: &result.Laws{Levels: 8, Unit: "clients", Lowest: 10, Highest: 100, LeftOut: []result.LeftOut{{Step: 9, Why: "the run was cut"}}, List: []result.Law{
		{Name: "idle CPU", Of: result.LawCPU, Refused: "a fit needs 6 levels"}, warned(cost(result.LawCPU, "CPUs", between(1, 0, 2))),
		warned(cost(result.LawMemory, "B", between(1, 0, 2))), cost(result.LawCount, "", between(1, 0, 2)),
	}}})
	if p.Basis != "8 levels from 10 to 100 clients" || p.None != "No cost per object found (1 figure tried): too few levels." || len(p.LeftOut) != 1 {
		t.Errorf("%+v", p)
	}
	var list []string
	for _, g := range p.Groups {
		for _, l := range g.Laws {
			list = append(list, fmt.Sprintf("%s: %s, %d; %s", g.Title, l.Name, l.Index, lines(l.Notes...)))
		}
	}
	if got, want := lines(list...), lines("Memory of each process: etcd memory, 2; two levels are close", "What objects take besides: etcd count, 3; ", "CPU of each process: etcd cpu, 1; "); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := lawSays(cost(result.LawMemory, "B", between(2048, 1024, 3072))); got != "2\u00a0KiB per object [1\u00a0KiB, 3\u00a0KiB], on 1\u00a0MiB [512\u00a0KiB, 1.5\u00a0MiB]." {
		t.Errorf("%q", got)
	}
}
