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
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Grid returns an experiment that varied something for a terminal; dir is its run directory.
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

func params(g judge.Grid, c judge.Cell) (row []string) {
	for _, v := range g.Vary {
		row = append(row, c.Params[v.Key])
	}
	return row
}

func keysOf(g judge.Grid) (head []string) {
	for _, v := range g.Vary {
		head = append(head, v.Key)
	}
	return head
}

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

// ownMetric reports whether the metric of pairs is not a column of the table of cells anyway.
func ownMetric(g judge.Grid) bool {
	for _, c := range g.Cells {
		if g.Metric == c.Arrived+" p50" || g.Metric == c.Arrived+" p99" {
			return false
		}
	}
	return g.Metric != ""
}

func streamed(g judge.Grid) bool {
	return slices.ContainsFunc(g.Cells, func(c judge.Cell) bool {
		return slices.ContainsFunc(c.Levels, func(l judge.CellLevel) bool { return l.BitsPerSecond != nil })
	})
}

func gigabits(l judge.CellLevel) string {
	if l.BitsPerSecond == nil || l.BitsPerSecond.Value == nil {
		return "-"
	}
	return number.Text(*l.BitsPerSecond.Value/1e9, 3)
}

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

// cellLevels shows the levels of each cell, in one table if each has one.
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

func comparedBy(g judge.Grid) string {
	if g.Kind == "limit" {
		return "load line, by the brackets"
	}
	return g.MetricCalled()
}

// pairs shows the changes between each two values of a key, at all values of the others.
func pairs(g judge.Grid) (s Section) {
	if len(g.Pairs) == 0 {
		return s
	}
	s.Title = fmt.Sprintf("Change of %s, margin %s:", comparedBy(g), words.Percent(100*g.Margin))
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

// pairChange writes the change of a pair with its interval, or else the reason why it is missing.
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

// changeOfPair returns a pair's change with its interval; nil is unknown, or no lower bound.
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

func capacityTable(c judge.CapacityCurve) Table {
	t := Table{"rrrl", [][]string{{c.Key, c.Unit, "lowest failing", "grows for each % more"}}}
	for _, x := range c.Curve {
		t.add(words.Number(x.Value), words.Level(x.Level), words.Level(x.LowestFailing), gainText(x))
	}
	return t
}

// gainText writes the growth of a load line to the next value, per percent of the value.
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

func gainPercent(x float64) string { return words.TwoDigits(x) + "%" }
