package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/record"
)

// TrendInput is what is shown of a figure over several experiments.
type TrendInput struct {
	Trends []compare.Trend
	// Operands are the experiments, in the order of the trends.
	Operands []Operand
	// Command and Version are those of the comparison, not of the runs.
	Command, Version string
	Warnings         record.Warnings
	// Why says why there is nothing to show, where there is not.
	Why string
}

// TrendText writes trends for a terminal: a chart with a logarithmic axis, a
// row for each experiment, and where the figure changes its level.
func TrendText(w io.Writer, in TrendInput) error {
	p := newPrinter(w)
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
	if p.width > 0 && p.width < trendWhole {
		p.narrowTrend(t, axis)
		p.line("%s", asSentence(t.Why))
		return
	}
	rows := [][]string{{"", "started", "plimsoll", "Kubernetes", axis.header(t.Unit), trendUnit(t), "changed since the previous one"}}
	for i, x := range t.Points {
		if change := changeAt(t, i); change != "" {
			rows = append(rows, []string{"", "", "", "", "--- " + change + " ---", "", ""})
		}
		rows = append(rows, []string{x.Name, startText(x.Start), x.Program, x.Kubernetes, axis.row(x), pointText(t, x), strings.Join(x.Differs, ", ")})
	}
	p.columns("  ", "lllldll", rows)
	p.line("%s", asSentence(t.Why))
}

// trendWhole is how many columns a trend needs with versions, the range of the
// runs, and what changed.
const trendWhole = 150

// narrowTrend is a trend where there is no room for all of that.
func (p *printer) narrowTrend(t compare.Trend, axis logAxis) {
	rows := [][]string{{"", "started", axis.header(t.Unit), trendUnit(t)}}
	for i, x := range t.Points {
		if change := changeAt(t, i); change != "" {
			rows = append(rows, []string{"", "", "--- " + change + " ---", ""})
		}
		figure, _, _ := strings.Cut(pointText(t, x), " (")
		started := startText(x.Start)
		rows = append(rows, []string{x.Name, started[:min(len(started), len("2006-01-02 15:04"))], axis.row(x), figure})
	}
	p.columns("  ", "lldl", rows)
	p.line("  (versions, the range of the runs and what changed: on a wider terminal, and with --out)")
}

// startText is when an experiment was started, as people read it.
func startText(start string) string {
	text, _, _ := strings.Cut(strings.Replace(start, "T", " ", 1), "Z")
	return text
}

func trendTitle(t compare.Trend) string {
	text := t.Called() + " of " + t.Workload
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

// changeAt says how a trend changes its level at a point, "" where it does not.
func changeAt(t compare.Trend, point int) string {
	i := slices.IndexFunc(t.Changes, func(c compare.TrendChange) bool { return c.At == point })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s from here on (p = %.2g)", changeText(t.Changes[i].Change), t.Changes[i].P)
}

// pointText is the figure of one experiment, with its runs.
func pointText(t compare.Trend, x compare.TrendPoint) string {
	if x.Value == nil {
		return x.Note
	}
	if strings.HasPrefix(t.Metric, compare.LoadLine) {
		text := Number(*x.Value)
		if x.High != nil {
			return text + ", fails at " + Number(*x.High)
		}
		return text + ", nothing failed"
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
	case unit == "s":
		return fmt.Sprintf("%.4g s", v)
	case unit == "B":
		return byteCount(int64(v))
	}
	return fmt.Sprintf("%.4g", v)
}

// TrendHTML writes trends as one page that needs nothing else, as HTML does of
// a run.
func TrendHTML(w io.Writer, in TrendInput) error {
	r := judge.Result{Schema: judge.ResultSchema, Kind: "trend", Command: in.Command, Version: in.Version, Warnings: in.Warnings, Experiment: "trend"}
	data, err := dataOf(Input{Result: r})
	if err != nil {
		return err
	}
	data.Trends = in.Trends
	p := pageOf(Input{Result: r}, data)
	p.Headline, p.Mark = strings.TrimSuffix(asSentence(in.Why), "."), ""
	if len(in.Trends) > 0 {
		what := in.Trends[0].Called()
		if goal, ok := strings.CutPrefix(what, compare.LoadLine); ok {
			what = "Load line by goal " + goal
		}
		p.Headline = fmt.Sprintf("%s over %d experiments", what, len(in.Operands))
		p.Lead = []string{"Each point is one experiment: the geometric mean of its runs, with a bar from the smallest to the largest (of a load line, from the level that held to the level that failed). The tables list what else changed between the experiments."}
	}
	p.Title = p.Headline
	p.Recorded, p.Operands = true, operandsOf(in.Operands)
	for i := range p.Operands {
		p.Operands[i].Baseline = false
	}
	p.Fidelity = p.commonFidelity()
	p.Trends = in.Trends
	return write(w, p, data)
}
