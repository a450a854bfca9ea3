package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Grid is result.json of an experiment that varies something: each cell is a run with its own values.
type Grid struct {
	Schema      string          `json:"schema"` // result.Schema
	Experiment  string          `json:"experiment"`
	Workload    string          `json:"workload"`
	Kind        string          `json:"kind"` // limit or sweep
	Verdict     slo.Verdict     `json:"verdict"`
	ExitCode    int             `json:"exitCode"` // the worst of the cells
	Why         string          `json:"why"`
	Command     string          `json:"command"`
	Version     string          `json:"version"`
	Vary        []Varied        `json:"vary"`
	Cells       []Cell          `json:"cells"`
	Metric      string          `json:"metric,omitempty"`      // of Pairs, if load lines are not compared by their brackets
	MetricTitle string          `json:"metricTitle,omitempty"` // for readers, "" for the metric's name
	Margin      float64         `json:"margin"`
	Alpha       float64         `json:"alpha"` // an interval of a pair is one of 1 - Alpha
	Pairs       []Pair          `json:"pairs"` // of cells that differ in the value of one key alone
	Curves      []CapacityCurve `json:"curves,omitempty"`
	Warnings    record.Warnings `json:"warnings,omitempty"` // of the grid as a whole: each cell has its own
}

// MetricCalled returns the metric's title, or its name.
func (g Grid) MetricCalled() string { return cmp.Or(g.MetricTitle, g.Metric) }

// Varied is a key and its values.
type Varied struct {
	Key    string   `json:"key"`
	Values []string `json:"values"`
}

// Cell is the result of one combination.
type Cell struct {
	Name   string            `json:"name"`
	Dir    string            `json:"dir"` // of its record, below the grid's
	Params map[string]string `json:"params"`
	Failed string            `json:"failed,omitempty"` // why there is no result, or ""
	Levels []CellLevel       `json:"levels,omitempty"` // of a sweep
	result.Result
}

// CellLevel sums up the counting runs of one level, by the means of their figures.
type CellLevel struct {
	Level         float64          `json:"level"`
	Runs          int              `json:"runs"`
	Held          int              `json:"held"` // of the runs
	Rate          result.Interval  `json:"rate"`
	AtLeast       bool             `json:"atLeast,omitempty"`       // in some of the runs the generator was short: the target can do at least the rate
	BitsPerSecond *result.Interval `json:"bitsPerSecond,omitempty"` // of the answers of a stream; null for others
	P50           result.Interval  `json:"p50"`                     // of the milestone at which objects count as there
	P99           result.Interval  `json:"p99"`
	Metric        result.Interval  `json:"metric"` // Grid.Metric
	Unit          string           `json:"unit,omitempty"`
}

// Pair compares two cells that differ in Key alone, by Figure or Line, unless Why says why neither.
type Pair struct {
	Key      string                  `json:"key"`
	Baseline string                  `json:"baseline"`
	Arm      string                  `json:"arm"`
	Level    *float64                `json:"level,omitempty"`
	Verdict  stats.Verdict           `json:"verdict"`
	Why      string                  `json:"why"`
	Figure   *compare.Compared       `json:"figure,omitempty"`
	Line     *compare.LineComparison `json:"line,omitempty"`
}

// CapacityCurve is the load line by a number that was varied, with everything else alike.
type CapacityCurve struct {
	Key      string            `json:"key"`
	With     map[string]string `json:"with,omitempty"` // the values of the other keys
	Unit     string            `json:"unit"`
	Curve    []CapacityPoint   `json:"points"`
	Exponent *result.Interval  `json:"exponent,omitempty"` // k of line = c value^k, null with too few points or where the measurements bend
	Knee     *float64          `json:"knee"`               // value from which the line gains little, because something else binds, or null
}

// CapacityPoint is the load line at one value. The true line lies from Level to below LowestFailing.
type CapacityPoint struct {
	Value         float64          `json:"value"`
	Cell          string           `json:"cell"`
	Level         *float64         `json:"level"`
	LowestFailing *float64         `json:"lowestFailing"`
	Binding       string           `json:"binding"`
	Gain          *result.Interval `json:"gain"` // growth of a confirmed line in percent, per percent of the value from here to the next

	line compare.Bracket
}

const littleGain = 0.5 // a gain below it shows that something else binds

// NewGrid puts cells with their Params together, and compares those that differ in one key by metric.
func NewGrid(vary []Varied, cells []Cell, metric string, margin, alpha float64) Grid {
	g := Grid{Schema: result.Schema, Vary: vary, Cells: cells, Metric: metric, Margin: margin, Alpha: alpha, Pairs: []Pair{}}
	counts := make(map[slo.Verdict]int)
	for _, c := range cells {
		if c.Failed == "" {
			g.Experiment, g.Workload, g.Kind = c.Experiment, c.Workload, c.Result.Kind
			if m := c.ObjectKind.Metric(metric); m != nil {
				g.MetricTitle = m.Title
			}
			counts[c.Verdict]++
		}
	}
	g.ExitCode, g.Verdict = worstCell(cells)
	var parts []string
	missing := len(cells)
	for _, v := range []slo.Verdict{slo.Pass, slo.Fail, slo.Inconclusive, slo.Invalid} {
		if missing -= counts[v]; counts[v] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
		}
	}
	if missing > 0 {
		parts = append(parts, fmt.Sprintf("%d without a result", missing))
	}
	g.Why = fmt.Sprintf("%d cells: %s", len(cells), strings.Join(parts, ", "))
	if len(cells) == 1 {
		g.Why = "1 cell: " + strings.Join(parts, ", ")
	}
	for i := range cells {
		if cells[i].LoadLine == nil {
			cells[i].Levels = levelsOf(&cells[i], metric)
		}
	}
	pairs := 0 // better and worse allow for their number
	for i := range vary {
		for _, group := range g.alongKey(i) {
			pairs += len(group) * (len(group) - 1) / 2
		}
	}
	for i, v := range vary {
		for _, group := range g.alongKey(i) {
			for a := range group {
				for b := a + 1; b < len(group); b++ {
					g.Pairs = append(g.Pairs, g.compare(v.Key, group[a], group[b], alpha, pairs)...)
				}
			}
			if curve := capacityCurve(v.Key, vary, group); curve != nil {
				g.Curves = append(g.Curves, *curve)
			}
		}
	}
	return g
}

// worstCell returns the worst exit code with its verdict.
func worstCell(cells []Cell) (code int, v slo.Verdict) {
	v = slo.Pass
	for _, c := range cells {
		if c.ExitCode > code { // higher is worse
			code, v = c.ExitCode, c.Verdict
		}
	}
	return code, cmp.Or(v, slo.Inconclusive)
}

// alongKey groups the cells that differ in the i-th key alone.
func (g *Grid) alongKey(i int) [][]*Cell {
	var groups [][]*Cell
	at := make(map[string]int)
	for k := range g.Cells {
		c := &g.Cells[k]
		name := ""
		for j, v := range g.Vary {
			if j != i {
				name += v.Key + "=" + c.Params[v.Key] + "\x00"
			}
		}
		if _, ok := at[name]; !ok {
			at[name] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[name]] = append(groups[at[name]], c)
	}
	return groups
}

func (g *Grid) compare(key string, a, b *Cell, alpha float64, pairs int) []Pair {
	pair := Pair{Key: key, Baseline: a.Name, Arm: b.Name, Verdict: stats.Undecided}
	switch {
	case a.Failed != "" || b.Failed != "":
		pair.Why = "one of them has no result"
		return []Pair{pair}
	case a.LoadLine != nil && b.LoadLine != nil:
		line := compare.Line(a.Name, b.Name, a.LoadLine.Bracket(a.Verdict), b.LoadLine.Bracket(b.Verdict), a.LoadLine.Unit, g.Margin)
		pair.Line, pair.Verdict, pair.Why = &line, line.Verdict, line.Why
		return []Pair{pair}
	case g.Metric == "":
		return nil
	}
	runs := append(a.Runs(), b.Runs()...)
	spec := compare.Spec{Baseline: a.Name, Arms: []string{b.Name}, Metric: g.Metric, Margin: g.Margin, Alpha: alpha, Paired: true, Among: pairs * max(len(a.Levels), 1)}
	var list []Pair
	for _, l := range compare.Runs(spec, runs).Levels {
		p := pair
		p.Level, p.Verdict, p.Why, p.Figure = &l.Level, l.Verdict, l.Why, &l.Primary
		list = append(list, p)
	}
	return list
}

// Runs returns the steps of a cell in order, as the runs of an arm of a comparison.
func (c *Cell) Runs() []compare.Run {
	runs := make([]compare.Run, len(c.Steps))
	for i, s := range c.Steps {
		s.Arm = c.Name
		runs[i] = findings.RunOf(s, c.ObjectKind, c.ObjectKind.Names(), nil)
	}
	return runs
}

func levelsOf(c *Cell, metric string) []CellLevel {
	type figures struct{ rate, bits, p50, p99, metric []float64 }
	of := make(map[float64]*figures)
	var levels []CellLevel
	runs := c.Runs()
	for i, s := range c.Steps {
		if runs[i].LeftOut != "" {
			continue
		}
		f, ok := of[s.Level]
		if !ok {
			f = new(figures)
			of[s.Level] = f
			levels = append(levels, CellLevel{Level: s.Level})
		}
		at := &levels[slices.IndexFunc(levels, func(l CellLevel) bool { return l.Level == s.Level })]
		at.Runs++
		at.AtLeast = at.AtLeast || s.AtLeast
		if s.Verdict == slo.Pass {
			at.Held++
		}
		add := func(to *[]float64, v *float64) {
			if v != nil {
				*to = append(*to, *v)
			}
		}
		add(&f.rate, s.AchievedRate)
		if s.Streams() {
			add(&f.bits, s.Requests.BitsPerSecond)
		}
		add(&f.p50, s.Latency[c.Arrived].P50)
		add(&f.p99, s.Latency[c.Arrived].P99)
		for _, figure := range runs[i].Figures {
			if figure.Metric == metric {
				at.Unit = figure.Unit
				add(&f.metric, figure.Value)
			}
		}
	}
	for i := range levels {
		l, f := &levels[i], of[levels[i].Level]
		l.Rate, l.P50, l.P99, l.Metric = meanOf(f.rate, l.Runs), meanOf(f.p50, l.Runs), meanOf(f.p99, l.Runs), meanOf(f.metric, l.Runs)
		if len(f.bits) == l.Runs {
			l.BitsPerSecond = new(meanOf(f.bits, l.Runs))
		}
	}
	slices.SortFunc(levels, func(a, b CellLevel) int { return cmp.Compare(a.Level, b.Level) })
	return levels
}

// meanOf returns the mean of the figures of so many runs, null unless all of them have one.
func meanOf(figures []float64, runs int) result.Interval {
	if len(figures) < runs || runs == 0 {
		return result.Interval{}
	}
	e := stats.Mean(figures, result.Confidence)
	return result.Interval{Value: result.Finite(e.Value), Lo: result.Finite(e.Lo), Hi: result.Finite(e.Hi)}
}

// capacityCurve returns the load line along a key whose values are numbers, nil for any other.
func capacityCurve(key string, vary []Varied, group []*Cell) *CapacityCurve {
	curve := CapacityCurve{Key: key, With: make(map[string]string)}
	for _, c := range group {
		x, err := strconv.ParseFloat(c.Params[key], 64)
		if err != nil || !(x > 0) || math.IsInf(x, 0) || c.LoadLine == nil {
			return nil
		}
		curve.Unit = c.LoadLine.Unit
		curve.Curve = append(curve.Curve, CapacityPoint{
			Value: x, Cell: c.Name, Level: c.LoadLine.Level, LowestFailing: c.LoadLine.LowestFailing, Binding: c.LoadLine.Binding,
			line: c.LoadLine.Bracket(c.Verdict),
		})
	}
	if len(curve.Curve) < 2 {
		return nil
	}
	maps.Copy(curve.With, group[0].Params)
	delete(curve.With, key)
	slices.SortFunc(curve.Curve, func(a, b CapacityPoint) int { return cmp.Compare(a.Value, b.Value) })
	var x, y []float64 // as logarithms
	for i := range curve.Curve {
		p := &curve.Curve[i]
		if e := p.line.Estimate; e != nil && p.confirmed() && p.LowestFailing != nil { // else the line may lie anywhere above
			x, y = append(x, math.Log(p.Value)), append(y, math.Log(*e))
		}
		if i == 0 {
			continue
		}
		before := &curve.Curve[i-1]
		before.Gain = gainOf(*before, *p)
		if g := before.Gain; curve.Knee == nil && g != nil && g.Hi != nil && *g.Hi < littleGain {
			curve.Knee = &before.Value
		}
	}
	if l, err := stats.FitLine(x, y, result.Confidence); err == nil && l.Wrong == "" {
		curve.Exponent = &result.Interval{Value: result.Finite(l.Slope.Value), Lo: result.Finite(l.Slope.Lo), Hi: result.Finite(l.Slope.Hi)}
	}
	return &curve
}

func (p CapacityPoint) confirmed() bool {
	return p.line.Verdict == string(slo.Pass) && p.Level != nil && *p.Level > 0
}

// gainOf returns the elasticity of confirmed lines from one value to the next, or nil.
func gainOf(a, b CapacityPoint) *result.Interval {
	if !a.confirmed() || !b.confirmed() || a.LowestFailing == nil && b.LowestFailing == nil {
		return nil
	}
	l := compare.Line("", "", a.line, b.line, "", 0)
	step := math.Log(b.Value / a.Value)
	of := func(change *float64) *float64 {
		if change == nil {
			return nil
		}
		return result.Finite(math.Log1p(*change) / step)
	}
	return &result.Interval{Value: of(l.Change), Lo: of(l.Lo), Hi: of(l.Hi)}
}
