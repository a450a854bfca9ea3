package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/stats"
)

// GridText prints the result of an experiment that varied something: a table of
// its cells, what was found of their pairs, and the verdict. Dir is where its
// record lies.
func GridText(w io.Writer, g judge.Grid, dir string) error {
	p := newPrinter(w)
	if g.Kind == "limit" {
		p.cellLines(g)
	} else {
		p.cellLevels(g)
	}
	p.pairs(g)
	for _, c := range g.Curves {
		p.capacity(c)
	}
	p.line("")
	p.line("%s: %s.", g.Workload, g.Why)
	p.line("Record: %s", dir)
	return p.err
}

// cellHead begins the rows of a table of cells.
func cellHead(g judge.Grid) []string {
	var head []string
	for _, v := range g.Vary {
		head = append(head, v.Key)
	}
	return head
}

func cellStart(g judge.Grid, c judge.Cell) []string {
	var row []string
	for _, v := range g.Vary {
		row = append(row, c.Params[v.Key])
	}
	return row
}

// cellLines shows the load line of each cell.
func (p *printer) cellLines(g judge.Grid) {
	rows := [][]string{append(cellHead(g), "load line", "lowest failing", "confirmed", "verdict", "bound by")}
	for _, c := range g.Cells {
		l := c.LoadLine
		if l == nil {
			rows = append(rows, append(cellStart(g, c), "-", "-", "-", verdictOfCell(c), c.Failed))
			continue
		}
		rows = append(rows, append(cellStart(g, c), levelOf(l.Level), levelOf(l.LowestFailing), fmt.Sprintf("%d of %d", l.Confirmations, l.ConfirmationsMade), verdictOfCell(c), l.Binding))
	}
	p.columns("  ", strings.Repeat("l", len(g.Vary))+"rrrll", rows)
}

// cellLevels shows the levels of each cell.
func (p *printer) cellLevels(g judge.Grid) {
	head := append(cellHead(g), "level", "runs", "per second", "p50", "p99")
	if g.Metric != "" {
		head = append(head, g.Metric)
	}
	rows := [][]string{append(head, "verdict")}
	align := strings.Repeat("l", len(g.Vary)) + "rrrrr"
	if g.Metric != "" {
		align += "r"
	}
	for _, c := range g.Cells {
		if len(c.Levels) == 0 {
			row := append(cellStart(g, c), "-", "0", "-", "-", "-")
			if g.Metric != "" {
				row = append(row, "-")
			}
			rows = append(rows, append(row, verdictOfCell(c)))
		}
		for _, l := range c.Levels {
			row := append(cellStart(g, c), Number(l.Level), fmt.Sprint(l.Runs), atLeast(l.AtLeast)+withHalf(l.Rate, "/s"), withHalf(l.P50, "s"), withHalf(l.P99, "s"))
			if g.Metric != "" {
				row = append(row, withHalf(l.Metric, l.Unit))
			}
			rows = append(rows, append(row, verdictOfCell(c)))
		}
	}
	p.columns("  ", align+"l", rows)
}

// atLeast stands before a rate that the generator bound.
func atLeast(yes bool) string {
	if yes {
		return "at least "
	}
	return ""
}

func verdictOfCell(c judge.Cell) string {
	if c.Failed != "" {
		return "not run"
	}
	return string(c.Verdict)
}

// withHalf is a figure with half the width of its interval, where it has one.
func withHalf(i judge.Interval, unit string) string {
	if i.Value == nil {
		return "-"
	}
	show := func(x float64) string { return gridFigure(x, unit) }
	if i.Hi == nil {
		return show(*i.Value)
	}
	return show(*i.Value) + " ± " + show(*i.Hi-*i.Value)
}

// gridFigure is a figure in its unit.
func gridFigure(x float64, unit string) string {
	switch unit {
	case "s":
		return Seconds(x)
	case "B":
		return fmt.Sprintf("%.1f MiB", x/(1<<20))
	case "/s":
		return fmt.Sprintf("%.1f", x)
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", x, unit))
}

// pairs shows what was found of the pairs of cells, key by key.
func (p *printer) pairs(g judge.Grid) {
	if len(g.Pairs) == 0 {
		return
	}
	p.line("")
	what := "load lines, by their brackets"
	if g.Metric != "" && g.Kind != "limit" {
		what = g.Metric
	}
	p.line("Pairs that differ in one value, compared by %s, margin %.3g %%:", what, 100*g.Margin)
	var rows [][]string
	for _, pair := range g.Pairs {
		at := ""
		if pair.Level != nil {
			at = "at " + Number(*pair.Level)
		}
		rows = append(rows, []string{pair.Arm, "against", pair.Baseline, at, string(pair.Verdict), pairChange(pair)})
	}
	p.columns("  ", "llllll", rows)
}

// pairChange is the change of a pair with its interval, or why there is none.
func pairChange(pair judge.Pair) string {
	change, lo, hi := (*float64)(nil), (*float64)(nil), (*float64)(nil)
	switch {
	case pair.Figure != nil:
		change, lo, hi = pair.Figure.Change, pair.Figure.Lo, pair.Figure.Hi
	case pair.Line != nil:
		change, lo, hi = pair.Line.Change, pair.Line.Lo, pair.Line.Hi
	}
	if change == nil || pair.Verdict == stats.Undecided && lo == nil && hi == nil {
		return pair.Why
	}
	return fmt.Sprintf("%s (%s to %s)", changeText(*change), known(lo, changeText), known(hi, changeText))
}

// capacity shows the load line against a number that was varied.
func (p *printer) capacity(c judge.CapacityCurve) {
	p.line("")
	with := ""
	for _, key := range slices.Sorted(maps.Keys(c.With)) {
		with += fmt.Sprintf(", %s=%s", key, c.With[key])
	}
	p.line("Load line against %s%s:", c.Key, with)
	rows := [][]string{{c.Key, c.Unit, "lowest failing", "grows for each % more", "bound by"}}
	for _, x := range c.Curve {
		gain := "-"
		if x.Gain != nil && x.Gain.Value != nil {
			gain = fmt.Sprintf("%.2f %% (%s to %s)", *x.Gain.Value, known(x.Gain.Lo, twoDigits), known(x.Gain.Hi, twoDigits))
		}
		rows = append(rows, []string{Number(x.Value), levelOf(x.Level), levelOf(x.LowestFailing), gain, x.Binding})
	}
	p.columns("  ", "rrrll", rows)
	if e := c.Exponent; e != nil && e.Value != nil {
		p.line("  grows as %s to the power of %.2f (%s to %s)", c.Key, *e.Value, known(e.Lo, twoDigits), known(e.Hi, twoDigits))
	}
	if c.Knee != nil {
		p.line("  from %s=%s on the line grows less than half as fast as %s: something else binds", c.Key, Number(*c.Knee), c.Key)
	}
}

func twoDigits(x float64) string { return fmt.Sprintf("%.2f", x) }
