package view

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// trends shows each trend as a logarithmic chart with a row for each experiment.
func trends(in ComparisonInput) []Section {
	var list []Section
	for _, t := range in.Trends {
		list = append(list, trendSection(t, chart.AxisOf(t, in.Trends)))
	}
	end := warned(in.Warnings)
	if len(in.Trends) == 0 {
		end.linef("%s.", in.Why)
	}
	return said(append(list, end, fidelities(in.Operands))...)
}

const trendWhole = 150 // columns with versions, the range of the runs, and the changes

func trendSection(t compare.Trend, axis chart.Axis) Section {
	title := trendTitle(t) + " (logarithmic)"
	ticks := axis.Header(func(v float64) string { return tickText(v, t.Unit) })
	whole, narrow := Section{Title: title, Whole: trendWhole}, &Section{Title: title}
	all := Table{"lllldll", [][]string{{"", "started", "plimsoll", "Kubernetes", ticks, trendUnit(t), "changed since the previous one"}}}
	few := Table{"lldl", [][]string{{"", "started", ticks, trendUnit(t)}}}
	for i, x := range t.Points {
		if change := changeAt(t, i); change != "" {
			all.add("", "", "", "", "--- "+change+" ---", "", "")
			few.add("", "", "--- "+change+" ---", "")
		}
		started, figure := words.Moment(x.Start), pointText(t, x)
		all.add(x.Name, started, x.Program, x.System, axis.Row(x), figure, strings.Join(x.Differs, ", "))
		figure, _, _ = strings.Cut(figure, " (")
		few.add(x.Name, started[:min(len(started), len("2006-01-02 15:04"))], axis.Row(x), figure)
	}
	whole.table(2, all)
	narrow.table(2, few)
	narrow.linef("  (versions, the range of the runs and what changed: on a wider terminal, and with --out)")
	for _, s := range []*Section{&whole, narrow} {
		s.linef("%s", words.Sentence(t.Why))
	}
	whole.Narrow = narrow
	return whole
}

func trendTitle(t compare.Trend) string {
	text := t.Called() + " of " + t.Workload
	if goal, ok := strings.CutPrefix(t.Metric, compare.LoadLine); ok {
		text = fmt.Sprintf("Load line of %s by goal %s, %s", t.Workload, goal, t.Unit)
	}
	if t.Plan != "" && t.Plan != t.Workload {
		text = t.Plan + ": " + text
	}
	if t.Level != nil {
		text += fmt.Sprintf(" at %s %s", t.Axis, words.Number(*t.Level))
	}
	return text
}

func trendUnit(t compare.Trend) string {
	if strings.HasPrefix(t.Metric, compare.LoadLine) {
		return t.Unit
	}
	return "mean of the runs"
}

func changeAt(t compare.Trend, point int) string {
	i := slices.IndexFunc(t.Changes, func(c compare.TrendChange) bool { return c.At == point })
	if i < 0 {
		return ""
	}
	return fmt.Sprintf("%s from here on (p %s)", words.Change(t.Changes[i].Change), number.P(t.Changes[i].P))
}

func pointText(t compare.Trend, x compare.TrendPoint) string {
	if x.Value == nil {
		return x.Note
	}
	if strings.HasPrefix(t.Metric, compare.LoadLine) {
		text := words.Number(*x.Value)
		if x.Estimated {
			return fmt.Sprintf("%s (95%% interval %s)", words.Short(*x.Value), words.Within(x.Low, x.High, words.Short))
		}
		if x.High != nil {
			return text + ", fails at " + words.Number(*x.High)
		}
		return text + ", nothing failed"
	}
	text := words.Figure(x.Value, t.Unit)
	if x.Runs > 1 && x.Low != nil && x.High != nil {
		text += fmt.Sprintf(" (%d runs, %s to %s)", x.Runs, words.Figure(x.Low, t.Unit), words.Figure(x.High, t.Unit))
	}
	return text
}

func tickText(v float64, unit string) string {
	switch {
	case unit == "s" && v < 0.001:
		return number.Text(v*1e6, 4) + " µs"
	case unit == "s" && v < 1:
		return number.Text(v*1e3, 4) + " ms"
	case unit == "s":
		return number.Text(v, 4) + " s"
	case unit == "B":
		return words.Bytes(int64(v))
	}
	return number.Text(v, 4)
}

func trendPage(in ComparisonInput) (Page, error) {
	r := result.Result{Schema: result.Schema, Kind: "trend", Command: in.Command, Version: in.Version, Warnings: in.Warnings, Experiment: "trend"}
	only := Input{Recorded: chart.Recorded{Result: r}}
	data, err := chart.Of(only.Recorded)
	data.Trends = in.Trends
	p := pageOf(only, data)
	p.Headline, p.Mark = strings.TrimSuffix(words.Sentence(in.Why), "."), ""
	if len(in.Trends) > 0 {
		what := in.Trends[0].Called()
		if goal, ok := strings.CutPrefix(what, compare.LoadLine); ok {
			what = "Load line by goal " + goal
		}
		p.Headline = fmt.Sprintf("%s over %d experiments", what, len(in.Operands))
		p.Lead = []string{"Each point is one experiment: the geometric mean of its runs, with a bar from the smallest to the largest (of a load line its estimate with the 95% interval, or from the level that held to the level that failed). The tables list what else changed between the experiments."}
	}
	p.Title = p.Headline
	p.compares(in.Operands)
	return p, err
}
