package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// gridData is what the charts of a grid's page are drawn from: its result
// without what only the pages of the cells show.
type gridData struct {
	Kind    string                `json:"kind"` // limit or sweep
	Vary    []judge.Varied        `json:"vary"`
	Metric  string                `json:"metric"`
	Title   string                `json:"title,omitempty"` // of the metric
	Margin  float64               `json:"margin"`
	Alpha   float64               `json:"alpha"`
	Arrived string                `json:"arrived"`
	Cells   []cellData            `json:"cells"`
	Pairs   []judge.Pair          `json:"pairs"`
	Curves  []judge.CapacityCurve `json:"curves"`
}

type cellData struct {
	Name     string            `json:"name"`
	Label    string            `json:"label"`
	Params   map[string]string `json:"params"`
	Verdict  slo.Verdict       `json:"verdict"` // "" where it was not run
	Failed   string            `json:"failed,omitempty"`
	LoadLine *judge.LoadLine   `json:"loadLine"`
	Levels   []judge.CellLevel `json:"levels"`
	Steps    []cellStep        `json:"steps"`
}

// cellStep is a step of a cell. A latency or a metric of null was never reached
// or is not known.
type cellStep struct {
	Step    int         `json:"step"`
	Level   float64     `json:"level"` // reached, of a search; asked for, of a sweep
	Round   int         `json:"round"`
	Purpose string      `json:"purpose"`
	Verdict slo.Verdict `json:"verdict"`
	Why     string      `json:"why"`
	LeftOut bool        `json:"leftOut,omitempty"` // of the figures of its level
	Rate    *float64    `json:"rate"`
	P50     *float64    `json:"p50"`
	P99     *float64    `json:"p99"`
	Metric  *float64    `json:"metric"`
	Unit    string      `json:"unit,omitempty"` // of the metric
}

func gridDataOf(g judge.Grid) *gridData {
	d := &gridData{Kind: g.Kind, Vary: g.Vary, Metric: g.Metric, Title: g.MetricTitle, Margin: g.Margin, Alpha: g.Alpha, Cells: []cellData{}, Pairs: g.Pairs, Curves: g.Curves}
	for i := range g.Cells {
		c := &g.Cells[i]
		d.Arrived = cmp.Or(d.Arrived, c.Arrived)
		cell := cellData{Name: c.Name, Label: cellLabel(g, c.Params), Params: c.Params, Failed: c.Failed, LoadLine: c.LoadLine, Levels: c.Levels}
		if c.Failed == "" {
			cell.Verdict = c.Verdict
		}
		for k, run := range c.Runs() {
			s := c.Steps[k]
			step := cellStep{Step: s.ID, Level: s.LevelReached, Round: s.Replicate, Purpose: string(s.Purpose), Verdict: s.Verdict, Why: s.VerdictWhy, LeftOut: run.LeftOut != "", Rate: s.AchievedRate}
			if c.LoadLine == nil {
				step.Level = s.Level
			}
			step.P50, step.P99 = s.Latency[c.Arrived].P50, s.Latency[c.Arrived].P99
			for _, f := range run.Figures {
				if f.Metric == g.Metric {
					step.Metric, step.Unit = f.Value, f.Unit
				}
			}
			cell.Steps = append(cell.Steps, step)
		}
		d.Cells = append(d.Cells, cell)
	}
	return d
}

// cellLabel are the values of a cell, in the order of the keys.
func cellLabel(g judge.Grid, params map[string]string) string {
	var parts []string
	for _, v := range g.Vary {
		if value, ok := params[v.Key]; ok {
			parts = append(parts, v.Key+"="+value)
		}
	}
	return strings.Join(parts, ", ")
}

// WriteGridFile writes the page of a grid beside its result.json: its cells
// with links to their own pages, how they compare, and the load line against
// what was varied. Dir tells the plan as it was run; where that cannot be read
// the page says so.
func WriteGridFile(dir record.Dir, g judge.Grid) error {
	var in Input
	if err := in.readPlan(dir); err != nil {
		in.Missing = append(in.Missing, fmt.Sprintf("%s could not be read, so the plan is not shown: %v", record.ExperimentFile, err))
	}
	var page bytes.Buffer
	if err := gridHTML(&page, in, g); err != nil {
		return fmt.Errorf("report %s: %w", dir, err)
	}
	return dir.WriteFile(record.ReportFile, page.Bytes())
}

func gridHTML(w io.Writer, in Input, g judge.Grid) error {
	in.Result = judge.Result{
		Schema: g.Schema, Experiment: g.Experiment, Workload: g.Workload, Kind: "grid", Verdict: g.Verdict, Why: g.Why,
		Command: g.Command, Version: g.Version, Warnings: gridWarnings(g),
	}
	data, err := dataOf(in)
	if err != nil {
		return err
	}
	for _, c := range g.Cells {
		if l := c.LoadLine; l != nil {
			data.Axis, data.Unit = cmp.Or(data.Axis, l.Axis), cmp.Or(data.Unit, l.Unit)
		}
	}
	data.Grid = gridDataOf(g)
	p := pageOf(in, data)
	p.Headline, p.Mark = gridHeadline(g), ""
	p.Title = cmp.Or(g.Experiment, g.Workload) + ": " + p.Headline
	p.Lead = []string{asSentence(g.Why), asSentence("varied: " + variedText(g))}
	p.Recorded, p.Grid = true, gridOfPage(g, data)
	p.Facts = gridFacts(g)
	same := false
	if p.Fidelity, same = gridFidelity(g); !same {
		p.Lead = append(p.Lead, "What was real and what was simulated is not the same in all cells: the page of each says it.")
	}
	return write(w, p, data)
}

// variedText are the keys with their values.
func variedText(g judge.Grid) string {
	var parts []string
	for _, v := range g.Vary {
		parts = append(parts, fmt.Sprintf("%s (%s)", v.Key, strings.Join(v.Values, "; ")))
	}
	return andList(parts)
}

// gridHeadline is the result of a grid in few words: the load lines that were
// confirmed, or the cells that held.
func gridHeadline(g judge.Grid) string {
	cells := fmt.Sprintf("%d cells", len(g.Cells))
	if len(g.Cells) == 1 {
		cells = "1 cell"
	}
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
			return "at least " + Number(*c.LoadLine.Level)
		}
		return Number(*c.LoadLine.Level)
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

// gridLines are the cells with the lowest and the highest confirmed load line,
// and how many have one. Of equal ones, the first that failed somewhere is the
// lowest and the first with nothing failed the highest.
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
	for i := range g.Cells {
		c := &g.Cells[i]
		if c.Failed != "" || c.Verdict != slo.Pass || c.LoadLine == nil || c.LoadLine.Level == nil {
			continue
		}
		known++
		if low == nil || order(c, low) < 0 {
			low = c
		}
		if high == nil || order(c, high) > 0 {
			high = c
		}
	}
	return low, high, known
}

// gridFacts are the figures beside the headline.
func gridFacts(g judge.Grid) []fact {
	var list []fact
	if low, high, known := gridLines(g); known > 0 && *low.LoadLine.Level != *high.LoadLine.Level {
		list = append(list,
			fact{"Highest load line", Number(*high.LoadLine.Level), high.LoadLine.Unit + ", " + cellLabel(g, high.Params)},
			fact{"Lowest load line", Number(*low.LoadLine.Level), low.LoadLine.Unit + ", " + cellLabel(g, low.Params)})
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

// gridFidelity is what was real in all cells alike, none and false where they
// differ.
func gridFidelity(g judge.Grid) (parts []fidelityPart, same bool) {
	first := true
	for _, c := range g.Cells {
		if c.Failed != "" {
			continue
		}
		own := fidelityOf(c.Fidelity)
		if !first && !slices.Equal(parts, own) {
			return nil, false
		}
		parts, first = own, false
	}
	return parts, true
}

// gridWarnings are those of the cells, each text once whatever its figures, with
// how many cells have it, and those of the grid.
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

// gridPart is what the page says of a grid.
type gridPart struct {
	judge.Grid
	Unit       string
	Arrived    string
	Confidence string
	MarginText string
	Compared   string // by what pairs are compared
	Columns    int    // of a level
	Streamed   bool   // levels have their throughput
	OwnMetric  bool   // it is none of the figures that each level has anyway
	// One says that all cells have one level alone, so that one chart shows all.
	One    bool
	Parts  []cellPart
	Keys   []pairsOfKey
	Curves []curvePart
}

type cellPart struct {
	judge.Cell
	Index      int
	Label, URL string
	Drawn      bool // there are steps
}

// pairsOfKey are the comparisons of cells that differ in one key.
type pairsOfKey struct {
	Key   string
	Index int
	Pairs []pairPart
}

type pairPart struct {
	judge.Pair
	Name, At, Change string
}

type curvePart struct {
	judge.CapacityCurve
	Index int
	Title string
	Says  []string
}

func gridOfPage(g judge.Grid, data pageData) *gridPart {
	p := &gridPart{
		Grid: g, Unit: data.Unit, Arrived: data.Grid.Arrived, Confidence: fmt.Sprintf("%g %%", round(100*(1-g.Alpha))), MarginText: fmt.Sprintf("%g %%", round(100*g.Margin)),
		Compared: comparedBy(g), OwnMetric: ownMetric(g), Streamed: streamed(g), One: g.Kind != "limit",
	}
	p.Columns = 5
	for _, more := range []bool{p.Streamed, p.OwnMetric} {
		if more {
			p.Columns++
		}
	}
	for i, c := range g.Cells {
		p.Parts = append(p.Parts, cellPart{
			Cell: c, Index: i, Label: data.Grid.Cells[i].Label, Drawn: len(c.Steps) > 0,
			URL: (&url.URL{Path: filepath.ToSlash(filepath.Join(c.Dir, record.ReportFile))}).String(),
		})
		p.One = p.One && len(c.Levels) <= 1
	}
	params := paramsOf(g)
	for i, v := range g.Vary {
		key := pairsOfKey{Key: v.Key, Index: i}
		for _, pair := range g.Pairs {
			if pair.Key == v.Key {
				name, at := pairName(g, params, pair)
				key.Pairs = append(key.Pairs, pairPart{pair, name, at, pairChange(pair, changeOnPage)})
			}
		}
		if len(key.Pairs) > 0 {
			p.Keys = append(p.Keys, key)
		}
	}
	for i, c := range g.Curves {
		says := capacityWords(c)
		known := 0
		for _, x := range c.Curve {
			if x.Level != nil && x.LowestFailing != nil {
				known++
			}
		}
		if known < stats.LawLevels {
			says = append(says, fmt.Sprintf("the line is known at %d of the values; an exponent needs %d", known, stats.LawLevels))
		}
		p.Curves = append(p.Curves, curvePart{c, i, curveTitle(g, c), says})
	}
	return p
}

func curveTitle(g judge.Grid, c judge.CapacityCurve) string {
	text := "against " + c.Key
	if with := cellLabel(g, c.With); with != "" {
		text += ", with " + with
	}
	return text
}

// capacityWords says how a load line grows with what was varied.
func capacityWords(c judge.CapacityCurve) []string {
	var list []string
	if e := c.Exponent; e != nil && e.Value != nil {
		list = append(list, fmt.Sprintf("the line grows as %s to the power of %.2f (%s to %s)", c.Key, *e.Value, known(e.Lo, twoDigits), known(e.Hi, twoDigits)))
	}
	if c.Knee != nil {
		list = append(list, fmt.Sprintf("from %s=%s on the line grows less than half as fast as %s: something else binds", c.Key, Number(*c.Knee), c.Key))
	} else if slices.ContainsFunc(c.Curve, func(p judge.CapacityPoint) bool { return p.Gain != nil }) {
		list = append(list, fmt.Sprintf("no value is known from which more of %s gains little", c.Key))
	}
	return list
}

// severalLevels reports whether the cells of a sweep have more than one level.
func severalLevels(g judge.Grid) bool {
	return slices.ContainsFunc(g.Cells, func(c judge.Cell) bool { return len(c.Levels) > 1 })
}

// paramsOf are the values of each cell by its name.
func paramsOf(g judge.Grid) map[string]map[string]string {
	params := make(map[string]map[string]string)
	for _, c := range g.Cells {
		params[c.Name] = c.Params
	}
	return params
}

// pairName says which two values of a key a pair compares, and where: at the
// values of the other keys, and at the level where there are several.
func pairName(g judge.Grid, params map[string]map[string]string, pair judge.Pair) (name, at string) {
	name = fmt.Sprintf("%s against %s", params[pair.Arm][pair.Key], params[pair.Baseline][pair.Key])
	others := maps.Clone(params[pair.Arm])
	delete(others, pair.Key)
	at = cellLabel(g, others)
	if pair.Level != nil && severalLevels(g) {
		at = strings.TrimPrefix(at+" at "+Number(*pair.Level), " ")
	}
	return name, at
}
