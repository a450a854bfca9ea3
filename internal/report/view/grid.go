package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// Grid is what a terminal shows of an experiment that varied something: a table of its cells, what was
// found of their pairs, and the verdict. Dir is where its record lies.
func Grid(g judge.Grid, dir string) []Section {
	cells := cellLevels(g)
	if g.Kind == "limit" {
		cells = cellLines(g)
	}
	list := []Section{cells, pairs(g)}
	for _, c := range g.Curves {
		s := Section{Title: fmt.Sprintf("Load line %s:", curveTitle(g, c))}
		s.table(2, capacityTable(c))
		s.lines("  ", capacityWords(c)...)
		list = append(list, s)
	}
	end := Section{Title: fmt.Sprintf("%s. %s", gridHeadline(g), words.Sentence(g.Why))}
	end.linef("Record: %s", dir)
	return said(append(list, warned(gridWarnings(g)), end)...)
}

// params are the values of a cell, in the order of the keys.
func params(g judge.Grid, c judge.Cell) (row []string) {
	for _, v := range g.Vary {
		row = append(row, c.Params[v.Key])
	}
	return row
}

// keysOf are the titles of those columns.
func keysOf(g judge.Grid) (head []string) {
	for _, v := range g.Vary {
		head = append(head, v.Key)
	}
	return head
}

// cellLines has the load line of each cell.
func cellLines(g judge.Grid) (s Section) {
	t := Table{strings.Repeat("l", len(g.Vary)) + "rrrll", [][]string{append(keysOf(g), "load line", "lowest failing", "confirmed", "verdict", "bound by")}}
	for _, c := range g.Cells {
		line := []string{"-", "-", "-", verdictOfCell(c), c.Failed}
		if l := c.LoadLine; l != nil {
			line = []string{words.Level(l.Level), words.Level(l.LowestFailing), fmt.Sprintf("%d of %d", l.Confirmations, l.ConfirmationsMade), verdictOfCell(c), l.Binding}
		}
		t.add(append(params(g, c), line...)...)
	}
	s.table(2, t)
	return s
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

// levelHead are the titles of the figures of a level.
func levelHead(g judge.Grid, arrived string) []string {
	head := []string{"level", "held", "per second", strings.TrimSpace(arrived + " p50"), strings.TrimSpace(arrived + " p99")}
	if streamed(g) {
		head = append(head, "Gbit/s")
	}
	if ownMetric(g) {
		head = append(head, g.MetricCalled())
	}
	return head
}

// levelRow are those figures.
func levelRow(g judge.Grid, l judge.CellLevel) []string {
	row := []string{words.Number(l.Level), fmt.Sprintf("%d of %d", l.Held, l.Runs), atLeast(l.AtLeast) + words.PlusMinus(l.Rate, ""), words.LatencyPlusMinus(l.P50), words.LatencyPlusMinus(l.P99)}
	if streamed(g) {
		row = append(row, gigabits(l))
	}
	if ownMetric(g) {
		row = append(row, words.PlusMinus(l.Metric, l.Unit))
	}
	return row
}

// cellLevels has the levels of each cell: in one table where there is one for
// each, else in a table of each cell.
func cellLevels(g judge.Grid) (s Section) {
	head := levelHead(g, "")
	if severalLevels(g) {
		for _, c := range g.Cells {
			s.linef("  %s: %s", chart.Label(g, c.Params), strings.TrimSuffix(verdictOfCell(c)+", "+c.Failed, ", "))
			rows := [][]string{head}
			for _, l := range c.Levels {
				rows = append(rows, levelRow(g, l))
			}
			if t := figures(rows); t.Any() {
				s.table(4, t)
			}
		}
		return s
	}
	t := Table{strings.Repeat("l", len(g.Vary)) + strings.Repeat("r", len(head)+1), [][]string{append(append(keysOf(g), "verdict"), head...)}}
	var failed Section
	for _, c := range g.Cells {
		row := slices.Repeat([]string{"-"}, len(head))
		if len(c.Levels) > 0 {
			row = levelRow(g, c.Levels[0])
		}
		t.add(append(append(params(g, c), verdictOfCell(c)), row...)...)
		if c.Failed != "" {
			failed.linef("  %s: %s", chart.Label(g, c.Params), c.Failed)
		}
	}
	s.table(2, t)
	s.Parts = append(s.Parts, failed.Parts...)
	return s
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

// comparedBy is what pairs of cells are compared by.
func comparedBy(g judge.Grid) string {
	if g.Kind == "limit" {
		return "load line, by the brackets"
	}
	return g.MetricCalled()
}

// pairs says what was found of the pairs of cells: for each two values of a
// key, at all values of the others.
func pairs(g judge.Grid) (s Section) {
	if len(g.Pairs) == 0 {
		return s
	}
	s.Title = fmt.Sprintf("Change of %s, margin %.3g %%:", comparedBy(g), 100*g.Margin)
	var names []string
	tables := make(map[string]*Table)
	params := paramsOf(g)
	apart := false
	for _, pair := range g.Pairs {
		name, at := pairName(g, params, pair)
		apart = apart || at != ""
		if name = pair.Key + " " + name; tables[name] == nil {
			names, tables[name] = append(names, name), &Table{Align: "lll"}
		}
		tables[name].add(at, verdictWord(pair.Verdict), pairChange(pair))
	}
	all := Table{Align: "lll"}
	for _, name := range names {
		if apart {
			s.linef("  %s", name)
			s.table(4, *tables[name])
			continue
		}
		for _, row := range tables[name].Rows {
			all.add(name, row[1], row[2])
		}
	}
	s.table(2, all)
	return s
}

// pairChange is the change of a pair with its interval, or why there is none.
func pairChange(pair judge.Pair) string {
	change, lo, hi := changeOfPair(pair)
	text := words.Within(lo, hi, words.Change)
	switch {
	case change == nil && text == "" || pair.Verdict == stats.Undecided && text == "":
		return pair.Why
	case change == nil:
		return text
	case text == "":
		return words.Change(*change)
	}
	return fmt.Sprintf("%s (%s)", words.Change(*change), text)
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

// capacityTable has the load line against a number that was varied.
func capacityTable(c judge.CapacityCurve) Table {
	t := Table{"rrrl", [][]string{{c.Key, c.Unit, "lowest failing", "grows for each % more"}}}
	for _, x := range c.Curve {
		t.add(words.Number(x.Value), words.Level(x.Level), words.Level(x.LowestFailing), gainText(x))
	}
	return t
}

// gainText is by how much a load line grows to the next value, for each percent that the value grows.
func gainText(x judge.CapacityPoint) string {
	if x.Gain == nil {
		return "-"
	}
	text := words.Within(x.Gain.Lo, x.Gain.Hi, gainPercent)
	if x.Gain.Value != nil && x.Gain.Lo != nil && x.Gain.Hi != nil {
		return fmt.Sprintf("%s (%s)", gainPercent(*x.Gain.Value), text)
	}
	return cmp.Or(text, "-")
}

func gainPercent(x float64) string { return words.TwoDigits(x) + " %" }
