package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
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
		p.capacity(g, c)
	}
	for _, warning := range gridWarnings(g) {
		p.line("warning: %s", warning)
	}
	p.line("")
	p.line("%s. %s", gridHeadline(g), asSentence(g.Why))
	p.line("Record: %s", dir)
	return p.err
}

// cellStart begins a row of a table of cells: the values of one.
func cellStart(g judge.Grid, c judge.Cell) []string {
	var row []string
	for _, v := range g.Vary {
		row = append(row, c.Params[v.Key])
	}
	return row
}

// cellHead are the titles of those columns.
func cellHead(g judge.Grid) []string {
	var head []string
	for _, v := range g.Vary {
		head = append(head, v.Key)
	}
	return head
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

// ownMetric reports whether the metric that pairs are compared by is none of the
// figures that a table of cells has anyway.
func ownMetric(g judge.Grid) bool {
	for _, c := range g.Cells {
		if g.Metric == c.Arrived+" p50" || g.Metric == c.Arrived+" p99" {
			return false
		}
	}
	return g.Metric != ""
}

// streamed reports whether what answers came to is known of some level.
func streamed(g judge.Grid) bool {
	return slices.ContainsFunc(g.Cells, func(c judge.Cell) bool {
		return slices.ContainsFunc(c.Levels, func(l judge.CellLevel) bool { return l.BitsPerSecond != nil })
	})
}

// gigabits is what the answers of a level came to, in Gbit/s.
func gigabits(l judge.CellLevel) string {
	if l.BitsPerSecond == nil || l.BitsPerSecond.Value == nil {
		return "-"
	}
	return fmt.Sprintf("%.3g", *l.BitsPerSecond.Value/1e9)
}

// cellLevels shows the levels of each cell: in one table where there is one for
// each, else in a table of each cell.
func (p *printer) cellLevels(g judge.Grid) {
	head, align := []string{"level", "held", "per second", "p50", "p99"}, "rrrrr"
	if streamed(g) {
		head, align = append(head, "Gbit/s"), align+"r"
	}
	own := ownMetric(g)
	if own {
		head, align = append(head, g.MetricCalled()), align+"r"
	}
	figures := func(l judge.CellLevel) []string {
		row := []string{Number(l.Level), fmt.Sprintf("%d of %d", l.Held, l.Runs), atLeast(l.AtLeast) + plusMinus(l.Rate, ""), latencyPlusMinus(l.P50), latencyPlusMinus(l.P99)}
		if streamed(g) {
			row = append(row, gigabits(l))
		}
		if own {
			row = append(row, plusMinus(l.Metric, l.Unit))
		}
		return row
	}
	if severalLevels(g) {
		for _, c := range g.Cells {
			p.line("  %s: %s", cellLabel(g, c.Params), strings.TrimSuffix(verdictOfCell(c)+", "+c.Failed, ", "))
			rows := [][]string{head}
			for _, l := range c.Levels {
				rows = append(rows, figures(l))
			}
			if len(rows) > 1 {
				p.columns("    ", align, rows)
			}
		}
		return
	}
	rows := [][]string{append(append(cellHead(g), "verdict"), head...)}
	for _, c := range g.Cells {
		row := append(cellStart(g, c), verdictOfCell(c))
		if len(c.Levels) == 0 {
			row = append(row, slices.Repeat([]string{"-"}, len(head))...)
		} else {
			row = append(row, figures(c.Levels[0])...)
		}
		rows = append(rows, row)
	}
	p.columns("  ", strings.Repeat("l", len(g.Vary))+"l"+align, rows)
	for _, c := range g.Cells {
		if c.Failed != "" {
			p.line("  %s: %s", cellLabel(g, c.Params), c.Failed)
		}
	}
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

// plusMinus is a figure with half the width of its interval, where it has one,
// both with as many digits as the interval leaves.
func plusMinus(i judge.Interval, unit string) string {
	if i.Value == nil {
		return "-"
	}
	value := *i.Value
	if i.Hi == nil || *i.Hi <= value {
		return figureOf(&value, unit)
	}
	half := *i.Hi - value
	switch {
	case unit == "s" && value < 0.0005:
		value, half, unit = 1e6*value, 1e6*half, "µs"
	case unit == "s" && value < 1:
		value, half, unit = 1e3*value, 1e3*half, "ms"
	case unit == "B":
		value, half, unit = value/(1<<20), half/(1<<20), "MiB"
	}
	digits := min(max(1-int(math.Floor(math.Log10(half))), 0), 3)
	return strings.TrimSpace(fmt.Sprintf("%.*f ± %.*f %s", digits, value, digits, half, unit))
}

// latencyPlusMinus is that of a latency; one that was not reached in every run
// has no mean.
func latencyPlusMinus(i judge.Interval) string {
	if i.Value == nil {
		return "never"
	}
	return plusMinus(i, "s")
}

// plusMinusOnPage does not break between the lines.
func plusMinusOnPage(i judge.Interval, unit string) string {
	return strings.ReplaceAll(plusMinus(i, unit), " ", "\u00a0")
}

// comparedBy is what pairs of cells are compared by.
func comparedBy(g judge.Grid) string {
	if g.Kind == "limit" {
		return "load line, by the brackets"
	}
	return g.MetricCalled()
}

// pairs shows what was found of the pairs of cells: for each two values of a
// key, at all values of the others.
func (p *printer) pairs(g judge.Grid) {
	if len(g.Pairs) == 0 {
		return
	}
	type values struct{ key, name string }
	var order []values
	rows := make(map[values][][]string)
	params := paramsOf(g)
	apart := false
	for _, pair := range g.Pairs {
		name, at := pairName(g, params, pair)
		apart = apart || at != ""
		of := values{pair.Key, name}
		if rows[of] == nil {
			order = append(order, of)
		}
		rows[of] = append(rows[of], []string{at, verdictWord(pair.Verdict), pairChange(pair, changeText)})
	}
	p.line("")
	p.line("Change of %s, margin %.3g %%:", comparedBy(g), 100*g.Margin)
	var all [][]string
	for _, of := range order {
		name := of.key + " " + of.name
		if apart {
			p.line("  %s", name)
			p.columns("    ", "lll", rows[of])
			continue
		}
		for _, row := range rows[of] {
			row[0] = name
			all = append(all, row)
		}
	}
	p.columns("  ", "lll", all)
}

// pairChange is the change of a pair with its interval, or why there is none.
func pairChange(pair judge.Pair, show func(float64) string) string {
	change, lo, hi := changeOfPair(pair)
	text := within(lo, hi, show)
	switch {
	case change == nil && text == "" || pair.Verdict == stats.Undecided && text == "":
		return pair.Why
	case change == nil:
		return text
	case text == "":
		return show(*change)
	}
	return fmt.Sprintf("%s (%s)", show(*change), text)
}

// within is an interval in words, "" where neither end is known.
func within(lo, hi *float64, show func(float64) string) string {
	switch {
	case lo != nil && hi != nil:
		return show(*lo) + " to " + show(*hi)
	case lo != nil:
		return "at least " + show(*lo)
	case hi != nil:
		return "at most " + show(*hi)
	}
	return ""
}

// changeOfPair is the change of a pair with its interval, null where it is not
// known. That a line may have fallen by all there was is no bound.
func changeOfPair(pair judge.Pair) (change, lo, hi *float64) {
	switch {
	case pair.Figure != nil:
		return pair.Figure.Change, pair.Figure.Lo, pair.Figure.Hi
	case pair.Line != nil:
		if change, lo, hi = pair.Line.Change, pair.Line.Lo, pair.Line.Hi; lo != nil && *lo <= -1 {
			lo = nil
		}
		return change, lo, hi
	}
	return nil, nil, nil
}

// capacity shows the load line against a number that was varied.
func (p *printer) capacity(g judge.Grid, c judge.CapacityCurve) {
	p.line("")
	p.line("Load line %s:", curveTitle(g, c))
	rows := [][]string{{c.Key, c.Unit, "lowest failing", "grows for each % more"}}
	for _, x := range c.Curve {
		rows = append(rows, []string{Number(x.Value), levelOf(x.Level), levelOf(x.LowestFailing), gainText(x)})
	}
	p.columns("  ", "rrrl", rows)
	for _, text := range capacityWords(c) {
		p.line("  %s", text)
	}
}

// gainText is by how much a load line grows to the next value, for each percent
// that the value grows.
func gainText(x judge.CapacityPoint) string {
	if x.Gain == nil {
		return "-"
	}
	text := within(x.Gain.Lo, x.Gain.Hi, gainPercent)
	if x.Gain.Value != nil && x.Gain.Lo != nil && x.Gain.Hi != nil {
		return fmt.Sprintf("%s (%s)", gainPercent(*x.Gain.Value), text)
	}
	return cmp.Or(text, "-")
}

func gainPercent(x float64) string { return twoDigits(x) + " %" }

func twoDigits(x float64) string { return fmt.Sprintf("%.2f", x) }
