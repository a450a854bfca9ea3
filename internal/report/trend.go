package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/compare"
)

//go:embed trend.html
var trendTemplate string

//go:embed trend.css
var trendStyle string

// TrendInput is what is shown of a figure over several experiments.
type TrendInput struct {
	Trends []compare.Trend
	// Operands are the experiments, in the order of the trends.
	Operands []Operand
	// Command and Version are those of the comparison, not of the runs.
	Command, Version string
	Warnings         []string
	// Why says why there is nothing to show, where there is not.
	Why string
}

// TrendText writes trends for a terminal: a chart with a logarithmic axis, a
// row for each experiment, and where the figure changes its level.
func TrendText(w io.Writer, in TrendInput) error {
	p := &printer{w: w}
	for i, t := range in.Trends {
		if i > 0 {
			p.line("")
		}
		p.trend(t, axisFor(t, in.Trends))
	}
	for _, warning := range in.Warnings {
		p.line("warning: %s", warning)
	}
	if len(in.Trends) == 0 {
		p.line("%s.", in.Why)
	}
	p.fidelities(in.Operands)
	return p.err
}

// trendWidth is how many characters a chart is wide.
const trendWidth = 44

func (p *printer) trend(t compare.Trend, axis logAxis) {
	p.line("%s (logarithmic)", trendTitle(t))
	rows := [][]string{{"", "started", "plimsoll", "Kubernetes", axis.header(t.Unit), trendUnit(t), "changed since the one before"}}
	for i, x := range t.Points {
		for _, c := range t.Changes {
			if c.At == i {
				rows = append(rows, []string{"", "", "", "", "--- " + changeOfTrend(c) + " ---", "", ""})
			}
		}
		start, _, _ := strings.Cut(strings.Replace(x.Start, "T", " ", 1), "Z")
		rows = append(rows, []string{x.Name, start, x.Program, x.Kubernetes, axis.row(x), pointText(t, x), strings.Join(x.Differs, ", ")})
	}
	p.columns("  ", "lllllll", rows)
	p.line("%s", asSentence(t.Why))
}

// trendTitle names a trend.
func trendTitle(t compare.Trend) string {
	text := t.Metric + " of " + t.Workload
	if goal, ok := strings.CutPrefix(t.Metric, compare.LoadLine); ok {
		text = fmt.Sprintf("Load line of %s by goal %s, %s", t.Workload, goal, t.Unit)
	}
	if t.Level != nil {
		text += fmt.Sprintf(" at %s %s", t.Axis, Number(*t.Level))
	}
	return text
}

func trendUnit(t compare.Trend) string {
	if strings.HasPrefix(t.Metric, compare.LoadLine) {
		return t.Unit
	}
	return "mean of the runs"
}

func changeOfTrend(c compare.TrendChange) string {
	return fmt.Sprintf("%s from here on (p = %.2g)", changeText(c.Change), c.P)
}

// pointText is the figure of one experiment, with its runs.
func pointText(t compare.Trend, x compare.TrendPoint) string {
	if strings.HasPrefix(t.Metric, compare.LoadLine) {
		if x.Value == nil {
			return x.Note
		}
		text := Number(*x.Value)
		if x.High != nil {
			return text + ", fails at " + Number(*x.High)
		}
		return text + ", nothing failed"
	}
	if x.Value == nil {
		return x.Note
	}
	text := figureOf(x.Value, t.Unit)
	if x.Runs > 1 && x.Low != nil && x.High != nil {
		text += fmt.Sprintf(" (%d runs, %s to %s)", x.Runs, figureOf(x.Low, t.Unit), figureOf(x.High, t.Unit))
	}
	return text
}

// logAxis is a logarithmic axis with its ticks.
type logAxis struct {
	lo, hi float64
	ticks  []float64
}

// axisFor is the axis of a trend, the same for all of its figure, so that
// workloads can be compared by eye.
func axisFor(t compare.Trend, all []compare.Trend) logAxis {
	a := logAxis{lo: math.Inf(1), hi: math.Inf(-1)}
	for _, other := range all {
		if other.Metric != t.Metric || other.Unit != t.Unit {
			continue
		}
		for _, x := range other.Points {
			for _, v := range []*float64{x.Low, x.Value, x.High} {
				if v != nil && *v > 0 {
					a.lo, a.hi = min(a.lo, *v), max(a.hi, *v)
				}
			}
		}
	}
	if a.lo > a.hi {
		return logAxis{lo: 1, hi: 10, ticks: []float64{1, 10}}
	}
	// A range that is too narrow makes mountains of what is chance.
	const least = 2
	if r := a.hi / a.lo; r < least {
		by := math.Sqrt(least / r)
		a.lo, a.hi = a.lo/by, a.hi*by
	}
	a.lo, a.hi = a.lo/1.08, a.hi*1.08
	for _, steps := range [][]float64{{1}, {1, 2, 5}, {1, 1.5, 2, 3, 4, 5, 7}, {1, 1.2, 1.5, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9}} {
		a.ticks = nil
		for e := math.Floor(math.Log10(a.lo)); e <= math.Ceil(math.Log10(a.hi)); e++ {
			for _, s := range steps {
				if v := s * math.Pow(10, e); v >= a.lo && v <= a.hi {
					a.ticks = append(a.ticks, v)
				}
			}
		}
		if len(a.ticks) >= 3 {
			break
		}
	}
	return a
}

// at is where a value lies on the axis, from 0 to 1.
func (a logAxis) at(v float64) float64 {
	if !(v > 0) {
		return 0
	}
	return min(max(math.Log(v/a.lo)/math.Log(a.hi/a.lo), 0), 1)
}

func column(at float64) int { return int(math.Round(at * (trendWidth - 1))) }

// header is the axis with its labels.
func (a logAxis) header(unit string) string {
	line := []rune(strings.Repeat(" ", trendWidth))
	free := 0
	for _, v := range a.ticks {
		label := []rune(tickText(v, unit))
		from := min(column(a.at(v)), trendWidth-len(label))
		if from < free {
			continue
		}
		copy(line[from:], label)
		free = from + len(label) + 1
	}
	return string(line)
}

// row is one experiment on the axis.
func (a logAxis) row(x compare.TrendPoint) string {
	line := []rune(strings.Repeat(" ", trendWidth))
	for _, v := range a.ticks {
		line[column(a.at(v))] = '.'
	}
	if x.Low != nil && x.High != nil {
		for i := column(a.at(*x.Low)); i <= column(a.at(*x.High)); i++ {
			line[i] = '-'
		}
	}
	if x.Value != nil {
		line[column(a.at(*x.Value))] = 'o'
	}
	return string(line)
}

// tickText is a round figure as short as it can be; what it counts the title
// says.
func tickText(v float64, unit string) string {
	switch {
	case unit == "s" && v < 0.001:
		return fmt.Sprintf("%.4g µs", v*1e6)
	case unit == "s" && v < 1:
		return fmt.Sprintf("%.4g ms", v*1e3)
	case unit == "B":
		return byteCount(int64(v))
	}
	if unit == "s" {
		return fmt.Sprintf("%.4g s", v)
	}
	return fmt.Sprintf("%.4g", v)
}

// TrendHTML writes trends as one page that needs nothing else.
func TrendHTML(w io.Writer, in TrendInput) error {
	t, err := template.New("trend").Funcs(template.FuncMap{"sentence": asSentence}).Parse(trendTemplate)
	if err != nil {
		return err
	}
	style := pageStyle + trendStyle
	p := trendPage{TrendInput: in, Style: template.CSS(style)}
	p.Policy = "default-src 'none'; style-src " + hashSource(style) + "; img-src data:; base-uri 'none'; form-action 'none'"
	for _, x := range in.Trends {
		p.Parts = append(p.Parts, trendPartOf(x, axisFor(x, in.Trends)))
	}
	if p.Headline = in.Why; len(in.Trends) > 0 {
		what := in.Trends[0].Metric
		if goal, ok := strings.CutPrefix(what, compare.LoadLine); ok {
			what = "Load line by goal " + goal
		}
		p.Headline = fmt.Sprintf("%s over %d experiments", what, len(in.Operands))
	}
	for _, o := range in.Operands {
		part := operandsOf([]Operand{o})[0]
		part.Baseline = false
		p.Experiments = append(p.Experiments, part)
	}
	var page bytes.Buffer // nothing is written of a page that fails
	if err := t.Execute(&page, p); err != nil {
		return err
	}
	_, err = w.Write(page.Bytes())
	return err
}

type trendPage struct {
	TrendInput
	Headline    string
	Parts       []trendPart
	Experiments []operandPart
	Style       template.CSS
	Policy      string
}

// trendPart is a trend with its chart drawn.
type trendPart struct {
	compare.Trend
	Title        string
	Wide, High   float64
	Left, Bottom float64
	Ticks        []tick
	Marks        []mark
	Levels       []levelLine
	Steps        []stepLine
	Rows         []trendRow
}

type tick struct {
	At    float64
	Label string
}

// mark is one experiment in a chart.
type mark struct {
	X, Y, Low, High float64
	Range, Value    bool
	Label, Version  string
	Tip             string
}

// levelLine is the level between two changes, at the mean of its figures.
type levelLine struct{ From, To, Y float64 }

// stepLine is a change.
type stepLine struct {
	X     float64
	Label string
	Left  bool // the label stands on the left
}

type trendRow struct {
	compare.TrendPoint
	Figure  string
	Changed string
	Change  string
}

// trendPartOf draws a trend.
func trendPartOf(t compare.Trend, a logAxis) trendPart {
	const left, top, bottom, high = 70, 24, 56, 330
	n := len(t.Points)
	p := trendPart{Trend: t, Title: trendTitle(t), Wide: 1060, High: high, Left: left, Bottom: high - bottom}
	x := func(i int) float64 { return left + (p.Wide-left-30)*(float64(i)+0.5)/float64(max(n, 1)) }
	y := func(v float64) float64 { return top + (high-bottom-top)*(1-a.at(v)) }
	for _, v := range a.ticks {
		p.Ticks = append(p.Ticks, tick{y(v), tickText(v, t.Unit)})
	}
	every := (n + 11) / 12 // labels of more than a dozen would run into each other
	for i, pt := range t.Points {
		m := mark{X: x(i), Tip: pt.Name + ": " + pointText(t, pt)}
		if i%every == 0 {
			m.Label, m.Version = shortName(pt.Name, 160/max(min(n, 12), 4)+4), pt.Kubernetes
			if m.Version == "" {
				m.Version = pt.Program
			}
		}
		if m.Range = pt.Low != nil && pt.High != nil; m.Range {
			m.Low, m.High = y(*pt.Low), y(*pt.High)
		}
		if m.Value = pt.Value != nil; m.Value {
			m.Y = y(*pt.Value)
		} else {
			m.Y = top - 8
		}
		p.Marks = append(p.Marks, m)
		row := trendRow{TrendPoint: pt, Figure: pointText(t, pt), Changed: strings.Join(pt.Differs, ", ")}
		for _, c := range t.Changes {
			if c.At == i {
				row.Change = changeOfTrend(c)
				p.Steps = append(p.Steps, stepLine{X: (x(i-1) + x(i)) / 2, Label: changeText(c.Change), Left: i > n*3/4})
			}
		}
		p.Rows = append(p.Rows, row)
	}
	p.levels(x, y)
	return p
}

// levels draws the level of each stretch, where a change was found.
func (p *trendPart) levels(x func(int) float64, y func(float64) float64) {
	if len(p.Changes) == 0 {
		return
	}
	var ends []int
	for _, c := range p.Changes {
		ends = append(ends, c.At)
	}
	from := 0
	for _, to := range slices.Concat(ends, []int{len(p.Points)}) {
		sum, n := 0.0, 0
		for _, pt := range p.Points[from:to] {
			if pt.Value != nil {
				sum, n = sum+math.Log(*pt.Value), n+1
			}
		}
		if n > 0 {
			p.Levels = append(p.Levels, levelLine{x(from), x(to - 1), y(math.Exp(sum / float64(n)))})
		}
		from = to
	}
}

// shortName is a name of at most so many characters.
func shortName(name string, most int) string {
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}
