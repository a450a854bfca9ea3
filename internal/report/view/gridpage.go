package view

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// GridPage returns the page of a grid, with links to the cells' pages. In holds the plan as it was run.
func GridPage(in Input, g judge.Grid) (Page, error) {
	in.Result = result.Result{
		Schema: g.Schema, Experiment: g.Experiment, Workload: g.Workload, Kind: "grid", Verdict: g.Verdict, Why: g.Why,
		Command: g.Command, Version: g.Version, Warnings: gridWarnings(g),
	}
	data, err := chart.Of(in.Recorded)
	if err != nil {
		return Page{}, err
	}
	for _, c := range g.Cells {
		if l := c.LoadLine; l != nil {
			data.Axis, data.Unit = cmp.Or(data.Axis, l.Axis), cmp.Or(data.Unit, l.Unit)
		}
	}
	charts := chart.GridOf(g)
	data.Grid = charts
	p := pageOf(in, data)
	p.Headline, p.Mark = gridHeadline(g), ""
	p.Title = cmp.Or(g.Experiment, g.Workload) + ": " + p.Headline
	p.Lead = []string{words.Sentence(g.Why), words.Sentence("varied: " + variedText(g))}
	p.Recorded, p.Grid = true, &g
	p.Facts = gridFacts(g)
	same := false
	if p.Fidelity, same = gridFidelity(g); !same {
		p.Lead = append(p.Lead, "What was real and what was simulated is not the same in all cells: the page of each says it.")
	}
	return p, nil
}

func variedText(g judge.Grid) string {
	var parts []string
	for _, v := range g.Vary {
		parts = append(parts, fmt.Sprintf("%s (%s)", v.Key, strings.Join(v.Values, "; ")))
	}
	return words.And(parts)
}

// gridHeadline names the confirmed load lines, or the number of cells that held.
func gridHeadline(g judge.Grid) string {
	cells := words.Counted(len(g.Cells), "cell")
	if g.Kind != "limit" {
		held := 0
		for _, c := range g.Cells {
			if c.Failed == "" && c.Verdict == slo.Pass {
				held++
			}
		}
		return fmt.Sprintf("%s held at every level in %d of %s", g.Workload, held, cells)
	}
	low, high, known := gridLines(g)
	if known == 0 {
		return fmt.Sprintf("No load line of %s was confirmed in %s", g.Workload, cells)
	}
	text := func(c *judge.Cell) string {
		if c.LoadLine.LowestFailing == nil {
			return "at least " + words.Number(*c.LoadLine.Level)
		}
		return words.Number(*c.LoadLine.Level)
	}
	lines := fmt.Sprintf("The load line of %s is %s", g.Workload, text(low))
	if *low.LoadLine.Level != *high.LoadLine.Level {
		lines = fmt.Sprintf("The load lines of %s go from %s to %s", g.Workload, text(low), text(high))
	}
	which := "in " + cells
	if known < len(g.Cells) {
		which = fmt.Sprintf("in %d of %s", known, cells)
	}
	return fmt.Sprintf("%s %s %s", lines, high.LoadLine.Unit, which)
}

// gridLines returns the cells with the lowest and the highest confirmed load line, and their number. Of
// equal ones, the first that failed is the lowest and the first that never failed the highest.
func gridLines(g judge.Grid) (low, high *judge.Cell, known int) {
	open := func(c *judge.Cell) int {
		if c.LoadLine.LowestFailing == nil {
			return 1
		}
		return 0
	}
	order := func(a, b *judge.Cell) int {
		return cmp.Or(cmp.Compare(*a.LoadLine.Level, *b.LoadLine.Level), cmp.Compare(open(a), open(b)))
	}
	var confirmed []*judge.Cell
	for i := range g.Cells {
		if c := &g.Cells[i]; c.Failed == "" && c.Verdict == slo.Pass && c.LoadLine != nil && c.LoadLine.Level != nil {
			confirmed = append(confirmed, c)
		}
	}
	if len(confirmed) == 0 {
		return nil, nil, 0
	}
	return slices.MinFunc(confirmed, order), slices.MaxFunc(confirmed, order), len(confirmed)
}

func gridFacts(g judge.Grid) []fact {
	var list []fact
	if low, high, known := gridLines(g); known > 0 && *low.LoadLine.Level != *high.LoadLine.Level {
		list = append(list,
			fact{"Highest load line", words.Number(*high.LoadLine.Level), high.LoadLine.Unit + ", " + chart.Label(g, high.Params)},
			fact{"Lowest load line", words.Number(*low.LoadLine.Level), low.LoadLine.Unit + ", " + chart.Label(g, low.Params)})
	}
	if len(g.Pairs) > 0 {
		counts := make(map[stats.Verdict]int)
		for _, p := range g.Pairs {
			counts[p.Verdict]++
		}
		var said []string
		for _, v := range []stats.Verdict{stats.Better, stats.Equivalent, stats.NotWorse, stats.Worse, stats.Undecided} {
			if counts[v] > 0 {
				said = append(said, fmt.Sprintf("%d %s", counts[v], verdictWord(v)))
			}
		}
		list = append(list, fact{"Comparisons", fmt.Sprint(len(g.Pairs)), strings.Join(said, ", ")})
	}
	return list
}

// gridFidelity returns the parts that were real in all cells alike, or none and false.
func gridFidelity(g judge.Grid) (parts []fidelityPart, same bool) {
	var all [][]fidelityPart
	for _, c := range g.Cells {
		if c.Failed == "" {
			all = append(all, fidelityOf(c.Fidelity))
		}
	}
	return common(all)
}

// gridWarnings returns the warnings of cells, one for each text whatever its figures, and of the grid.
func gridWarnings(g judge.Grid) record.Warnings {
	figures := regexp.MustCompile(`[0-9]+([.][0-9]+)?`)
	var list record.Warnings
	var of []string // the texts of the list without figures
	cells, differ := make(map[string]int), make(map[string]bool)
	for _, c := range g.Cells {
		seen := make(map[string]bool)
		for _, w := range c.Warnings {
			like := string(w.Kind) + figures.ReplaceAllString(w.Text, "0")
			i := slices.Index(of, like)
			if i < 0 {
				i = len(of)
				of, list = append(of, like), append(list, record.Warning{Kind: w.Kind, Text: w.Text, Count: 1})
			}
			differ[like] = differ[like] || list[i].Text != w.Text
			if !seen[like] {
				cells[like]++
			}
			seen[like] = true
		}
	}
	for i, like := range of {
		more := ""
		if differ[like] {
			more = ", with other figures in some"
		}
		list[i].Text = fmt.Sprintf("%s (in %d of %d cells%s)", strings.TrimSuffix(list[i].Text, "."), cells[like], len(g.Cells), more)
	}
	return append(list, g.Warnings...)
}

// onePoint reports whether all cells have one level alone, so that one chart shows all.
func onePoint(g judge.Grid) bool { return g.Kind != "limit" && !severalLevels(g) }

// cellLink returns the name of a cell with the address of its page, "" for one that was not run.
func cellLink(g judge.Grid, c judge.Cell) fact {
	link := fact{Name: chart.Label(g, c.Params)}
	if c.Failed == "" {
		link.Value = (&url.URL{Path: filepath.ToSlash(filepath.Join(c.Dir, record.ReportFile))}).String()
	}
	return link
}

type pairPart struct {
	judge.Pair
	Name, At, Change string
}

func pairsOf(g judge.Grid, key string) (list []pairPart) {
	params := paramsOf(g)
	for _, pair := range g.Pairs {
		if pair.Key == key {
			name, at := pairName(g, params, pair)
			list = append(list, pairPart{pair, name, at, pairChange(pair)})
		}
	}
	return list
}

func capacitySays(c judge.CapacityCurve) []string {
	says, known := capacityWords(c), 0
	for _, x := range c.Curve {
		if x.Level != nil && x.LowestFailing != nil {
			known++
		}
	}
	if known < stats.LawLevels {
		says = append(says, fmt.Sprintf("the line is known at %d of the values; an exponent needs %d", known, stats.LawLevels))
	}
	return says
}

func curveTitle(g judge.Grid, c judge.CapacityCurve) string {
	text := "against " + c.Key
	if with := chart.Label(g, c.With); with != "" {
		text += ", with " + with
	}
	return text
}

func capacityWords(c judge.CapacityCurve) []string {
	var list []string
	if e := c.Exponent; e != nil && e.Value != nil {
		list = append(list, fmt.Sprintf("the line grows as %s to the power of %.2f (%s to %s)", c.Key, *e.Value, words.Known(e.Lo, words.TwoDigits), words.Known(e.Hi, words.TwoDigits)))
	}
	if c.Knee != nil {
		list = append(list, fmt.Sprintf("from %s=%s on the line grows less than half as fast as %s: something else binds", c.Key, words.Number(*c.Knee), c.Key))
	} else if slices.ContainsFunc(c.Curve, func(p judge.CapacityPoint) bool { return p.Gain != nil }) {
		list = append(list, fmt.Sprintf("no value is known from which more of %s gains little", c.Key))
	}
	return list
}

func severalLevels(g judge.Grid) bool {
	return slices.ContainsFunc(g.Cells, func(c judge.Cell) bool { return len(c.Levels) > 1 })
}

func paramsOf(g judge.Grid) map[string]map[string]string {
	params := make(map[string]map[string]string)
	for _, c := range g.Cells {
		params[c.Name] = c.Params
	}
	return params
}

// pairName returns the two values that a pair compares, and the values of other keys with the level.
func pairName(g judge.Grid, params map[string]map[string]string, pair judge.Pair) (name, at string) {
	name = fmt.Sprintf("%s against %s", params[pair.Arm][pair.Key], params[pair.Baseline][pair.Key])
	others := maps.Clone(params[pair.Arm])
	delete(others, pair.Key)
	at = chart.Label(g, others)
	if pair.Level != nil && severalLevels(g) {
		at = strings.TrimPrefix(at+" at "+words.Number(*pair.Level), " ")
	}
	return name, at
}
