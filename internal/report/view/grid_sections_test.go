package view

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

func between(value, lo, hi float64) result.Interval {
	return result.Interval{Value: &value, Lo: &lo, Hi: &hi}
}

// cellOf is a cell of a grid with its values of the keys cpus and fs.
func cellOf(cpus, fs string, r result.Result) judge.Cell {
	return judge.Cell{Name: cpus + "-" + fs, Dir: "cells/" + cpus + "-" + fs, Params: map[string]string{"cpus": cpus, "fs": fs}, Result: r}
}

// lineGrid is a search in three cells, of which one was not run.
func lineGrid() judge.Grid {
	line := func(level float64, failing *float64) result.Result {
		return result.Result{Verdict: slo.Pass, LoadLine: &result.LoadLine{Axis: "rate", Unit: "pods/s", Level: &level, LowestFailing: failing, Confirmations: 3, ConfirmationsMade: 3, Binding: "the CPUs"}}
	}
	failed := cellOf("8", "xfs", result.Result{Verdict: slo.Inconclusive})
	failed.Failed = "the lab did not start"
	return judge.Grid{
		Workload: "pods", Kind: "limit", Why: "3 cells: 2 pass, 1 without a result", Margin: 0.05, Alpha: 0.05,
		Vary:  []judge.Varied{{Key: "cpus", Values: []string{"2", "4", "8"}}, {Key: "fs", Values: []string{"xfs"}}},
		Cells: []judge.Cell{cellOf("2", "xfs", line(100, new(110.0))), cellOf("4", "xfs", line(180, nil)), failed},
		Pairs: []judge.Pair{
			{Key: "cpus", Baseline: "2-xfs", Arm: "4-xfs", Verdict: stats.Better, Line: &compare.LineComparison{Change: new(0.8), Lo: new(0.6)}},
			{Key: "cpus", Baseline: "4-xfs", Arm: "8-xfs", Verdict: stats.Undecided, Why: "8-xfs has no line"},
			{Key: "cpus", Baseline: "2-xfs", Arm: "8-xfs", Verdict: stats.Undecided, Line: &compare.LineComparison{Lo: new(-1.0), Hi: new(0.2)}},
		},
		Curves: []judge.CapacityCurve{{Key: "cpus", With: map[string]string{"fs": "xfs"}, Unit: "pods/s", Curve: []judge.CapacityPoint{
			{Value: 2, Level: new(100.0), LowestFailing: new(110.0), Gain: new(between(0.8, 0.7, 0.9))}, {Value: 4, Level: new(180.0), Gain: &result.Interval{Lo: new(0.5)}}, {Value: 8},
		}, Knee: new(4.0)}},
		Warnings: record.Warnings{{Kind: record.WarningNote, Text: "a cell was not run"}},
	}
}

// sweepGrid is a sweep of streams in two cells with one level each.
func sweepGrid() judge.Grid {
	level := func(level float64, held int) judge.CellLevel {
		return judge.CellLevel{Level: level, Runs: 3, Held: held, Rate: between(990, 980, 1000), P50: between(0.02, 0.018, 0.022), P99: result.Interval{}, BitsPerSecond: new(between(2.5e9, 2e9, 3e9)), Metric: between(1<<20, 1<<19, 3<<19), Unit: "B", AtLeast: held < 3}
	}
	a, b := cellOf("2", "xfs", result.Result{Verdict: slo.Pass}), cellOf("2", "ext4", result.Result{Verdict: slo.Fail})
	a.Levels, b.Levels = []judge.CellLevel{level(1000, 3)}, []judge.CellLevel{level(1000, 1)}
	return judge.Grid{
		Workload: "router", Kind: "sweep", Why: "2 cells: 1 pass, 1 fail", Metric: "memory", MetricTitle: "memory of the router", Margin: 0.1, Alpha: 0.05,
		Vary: []judge.Varied{{Key: "cpus", Values: []string{"2"}}, {Key: "fs", Values: []string{"xfs", "ext4"}}}, Cells: []judge.Cell{a, b},
		Pairs: []judge.Pair{{Key: "fs", Baseline: "2-xfs", Arm: "2-ext4", Level: new(1000.0), Verdict: stats.Worse, Figure: &compare.Compared{Change: new(0.2), Lo: new(0.15), Hi: new(0.25)}}},
	}
}

// A grid shows a row for each cell, then the pairs, the load line against what was varied,
// and the verdict.
func TestGrid(t *testing.T) {
	lines3 := Grid(lineGrid(), "runs/g")
	checkSections(t, []section{
		{"no pairs", one(pairs(judge.Grid{})), ""},
		{"the lines", lines3[:1], lines("cpus|fs|load line|lowest failing|confirmed|verdict|bound by",
			"2|xfs|100|110|3 of 3|pass|the CPUs", "4|xfs|180|-|3 of 3|pass|the CPUs", "8|xfs|-|-|-|not run|the lab did not start")},
		{"the pairs", lines3[1:2], lines("Change of load line, by the brackets, margin 5%:",
			"  cpus 4 against 2", "fs=xfs|better|+80.0% (at least +60.0%)", "  cpus 8 against 4", "fs=xfs|inconclusive|8-xfs has no line", "  cpus 8 against 2", "fs=xfs|inconclusive|at most +20.0%")},
		{"the curve", lines3[2:3], lines("Load line against cpus, with fs=xfs:", "cpus|pods/s|lowest failing|grows for each % more",
			"2|100|110|0.80% (0.70% to 0.90%)", "4|180|-|at least 0.50%", "8|-|-|-",
			"  from cpus=4 on the line grows less than half as fast as cpus: something else binds")},
		{"the end", lines3[3:], lines("warning: a cell was not run", "The load lines of pods go from 100 to at least 180 pods/s in 2 of 3 cells. 3 cells: 2 pass, 1 without a result.", "Record: runs/g")},
	})

	sweep := Grid(sweepGrid(), "runs/g")
	checkSections(t, []section{
		{"one level for each cell", sweep[:1], lines("cpus|fs|verdict|level|held|per second|p50|p99|Gbit/s|memory of the router",
			"2|xfs|pass|1000|3 of 3|990 ± 10|20.0 ± 2.0 ms|never|2.5|1.00 ± 0.50 MiB",
			"2|ext4|fail|1000|1 of 3|at least 990 ± 10|20.0 ± 2.0 ms|never|2.5|1.00 ± 0.50 MiB")},
		{"the pair", sweep[1:2], lines("Change of memory of the router, margin 10%:", "  fs ext4 against xfs", "cpus=2|worse|+20.0% (+15.0% to +25.0%)")},
		{"the end of the sweep", sweep[2:], lines("router held at every level in 1 of 2 cells. 2 cells: 1 pass, 1 fail.", "Record: runs/g")},
	})

	several := sweepGrid()
	several.Cells[0].Levels = append(several.Cells[0].Levels, judge.CellLevel{Level: 2000, Runs: 1})
	several.Cells[1].Failed, several.Cells[1].Levels = "the lab did not start", nil
	several.Metric, several.Cells[1].Name = "", "2-ext4"
	checkSections(t, []section{{"several levels", Grid(several, "runs/g")[:1], lines(
		"  cpus=2, fs=xfs: pass", "level|held|per second|p50|p99|Gbit/s", "1000|3 of 3|990 ± 10|20.0 ± 2.0 ms|never|2.5", "2000|0 of 1|-|never|never|-",
		"  cpus=2, fs=ext4: not run, the lab did not start")}})
	if got := shown(pairs(several)); got != lines("Change of memory of the router, margin 10%:", "  fs ext4 against xfs", "cpus=2 at 1000|worse|+20.0% (+15.0% to +25.0%)") {
		t.Errorf("a pair at one of several levels:\n%s", got)
	}

	unrun := sweepGrid()
	unrun.Cells[1].Failed, unrun.Cells[1].Levels = "the lab did not start", nil
	unrun.Metric, unrun.Cells[0].Levels[0].BitsPerSecond = "Ready p50", nil
	unrun.Cells[0].Arrived = "Ready"
	unrun.Vary, unrun.Pairs = unrun.Vary[1:], []judge.Pair{{Key: "fs", Baseline: "2-xfs", Arm: "2-ext4", Verdict: stats.Equivalent, Figure: &compare.Compared{Change: new(0.01)}}}
	list := Grid(unrun, "runs/g")
	checkSections(t, []section{
		{"a cell was not run", list[:1], lines("fs|verdict|level|held|per second|p50|p99", "xfs|pass|1000|3 of 3|990 ± 10|20.0 ± 2.0 ms|never", "ext4|not run|-|-|-|-|-", "  fs=ext4: the lab did not start")},
		{"pairs of one key in one table", list[1:2], lines("Change of memory of the router, margin 10%:", "fs ext4 against xfs|equivalent|+1.0%")},
	})
}

// The headline of a grid says how far its lines lie apart.
func TestGridHeadline(t *testing.T) {
	same := lineGrid()
	same.Cells[1].LoadLine.Level = new(100.0)
	none := lineGrid()
	none.Cells = none.Cells[2:]
	equal := same
	equal.Cells = equal.Cells[:2]
	for _, c := range []struct {
		why  string
		of   judge.Grid
		want string
	}{
		{"no line", none, "No load line of pods was confirmed in 1 cell"},
		{"the same line, and one cell was not run", same, "The load line of pods is 100 pods/s in 2 of 3 cells"},
		{"the same line in all", equal, "The load line of pods is 100 pods/s in 2 cells"},
		{"two lines", lineGrid(), "The load lines of pods go from 100 to at least 180 pods/s in 2 of 3 cells"},
	} {
		if got := gridHeadline(c.of); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}

// The page of a grid has its facts, and links to the pages of the cells that were run.
func TestGridPage(t *testing.T) {
	g := lineGrid()
	p, err := GridPage(Input{}, g)
	if err != nil {
		t.Fatal(err)
	}
	if p.Title != "pods: "+gridHeadline(g) || p.Unit != "pods/s" || p.Axis != "rate" || p.Mark != "" || !p.Recorded || p.Grid == nil {
		t.Errorf("%q: %q %q, mark %q", p.Title, p.Axis, p.Unit, p.Mark)
	}
	if got, want := lines(p.Lead...), lines("3 cells: 2 pass, 1 without a result.", "Varied: cpus (2; 4; 8) and fs (xfs)."); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	want := []fact{{"Highest load line", "180", "pods/s, cpus=4, fs=xfs"}, {"Lowest load line", "100", "pods/s, cpus=2, fs=xfs"}, {"Comparisons", "3", "1 better, 2 inconclusive"}}
	if len(p.Facts) != len(want) {
		t.Fatalf("%+v", p.Facts)
	}
	for i := range want {
		if p.Facts[i] != want[i] {
			t.Errorf("%+v, want %+v", p.Facts[i], want[i])
		}
	}
	none, same := lineGrid(), lineGrid()
	none.Cells, none.Pairs = none.Cells[2:], nil
	same.Cells[1].LoadLine.Level, same.Pairs = new(100.0), nil
	if a, b := gridFacts(none), gridFacts(same); a != nil || b != nil {
		t.Errorf("no line and equal lines: %+v, %+v", a, b)
	}
	g.Cells[0].Fidelity.Nodes = record.Simulated
	if p, err := GridPage(Input{}, g); err != nil || len(p.Lead) != 3 || p.Lead[2] != "What was real and what was simulated is not the same in all cells: the page of each says it." {
		t.Errorf("%v: %q", err, p.Lead)
	}
	if got := cellLink(g, g.Cells[0]); got.Name != "cpus=2, fs=xfs" || got.Value != "cells/2-xfs/report.html" {
		t.Errorf("%+v", got)
	}
	if got := cellLink(g, g.Cells[2]); got.Value != "" {
		t.Errorf("a cell that was not run has a page: %+v", got)
	}
	if list := pairsOf(g, "cpus"); len(list) != 3 || list[0].Name != "4 against 2" || list[0].At != "fs=xfs" || list[0].Change != "+80.0% (at least +60.0%)" || pairsOf(g, "fs") != nil {
		t.Errorf("%+v", list)
	}
	if got := capacitySays(g.Curves[0]); len(got) != 2 || got[1] != "the line is known at 1 of the values; an exponent needs 6" {
		t.Errorf("%q", got)
	}
	if onePoint(g) || !onePoint(sweepGrid()) {
		t.Error("one chart shows all cells of a sweep with one level each")
	}
}
