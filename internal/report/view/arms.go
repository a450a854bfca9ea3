package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

type armsPart struct {
	*compare.Comparison
	Unit       string   // of levels
	Names      string   // of the arms other than the baseline
	Sides      []string // the baseline first
	HasRuns    bool     // any metric that decides has figures
	HasSeries  bool     // any distribution is there
	HasMetrics bool
}

type metricGroup struct {
	Title, Note string
	Rows        []metricRow
}

type metricRow struct {
	equalMetrics
	Bar *chart.Bar // nil where nothing is known of a change
}

// seriesPart compares the distributions of milestones that were reached at the same moments.
type seriesPart struct {
	compare.SeriesComparison
	Milestones string
	Effects    []fact
	Shifts     Table
	Never      string
}

// armsOfPage returns nil where a result compares nothing.
func armsOfPage(r result.Result, unit string) *armsPart {
	c := r.Comparison
	if c == nil {
		return nil
	}
	p := &armsPart{Comparison: c, Unit: unit, Names: words.And(armsOf(c)), Sides: append([]string{c.Baseline}, armsOf(c)...)}
	for _, l := range c.Levels {
		runs := len(l.Primary.Baseline) + len(l.Primary.Arm)
		p.HasRuns = p.HasRuns || runs > 0
		p.HasSeries = p.HasSeries || len(l.Series) > 0
		p.HasMetrics = p.HasMetrics || runs+len(l.Others) > 0
	}
	return p
}

// Called returns the title of the metrics that decide.
func (p *armsPart) Called() string { return words.And(p.Comparison.Called()) }

// Decide says that they decide, and how several do.
func (p *armsPart) Decide() string {
	if len(p.Further) == 0 {
		return p.Called() + " decides"
	}
	return p.Called() + " decide, each at an error rate of " + words.Number(p.Alpha) + ": the verdict is the first one's, unless another is worse or inconclusive"
}

// LevelName says which arm is compared at a level.
func (p *armsPart) LevelName(l compare.LevelComparison) string {
	return strings.TrimSpace(fmt.Sprintf("%s against %s at %s %s", l.Arm, p.Baseline, words.Number(l.Level), p.Unit))
}

func lineInterval(l compare.LineComparison) string { return words.Within(l.Lo, l.Hi, words.Change) }

// metricKinds returns the groups of metrics with titles; the last one holds all other kinds.
func metricKinds() [][3]string {
	return [][3]string{
		{compare.KindLatency, "Latency", "from time zero to a milestone; an object that never reached it counts as infinitely late"},
		{compare.KindRequest, "Requests", "from a request to its reply"},
		{compare.KindRate, "Rates", "more is better"},
		{compare.KindMetric, "Metrics", "that the target declares"},
		{compare.KindCPU, "CPU time", "of each process over the whole run"},
		{compare.KindMemory, "Memory", "the peak resident memory of the run"},
		{compare.KindGrowth, "Growth of memory", "the peak less the memory at the start of the run"},
		{"", "Other", ""},
	}
}

// groupsOf groups all metrics by kind, those that decide first in their own.
func groupsOf(c *compare.Comparison, l compare.LevelComparison) []metricGroup {
	wide := chart.Widest(c.Margin, append(l.Declared(), l.Others...))
	kinds := metricKinds()
	groups := make([]metricGroup, len(kinds))
	for _, m := range groupMetrics(l) {
		if m.Decides && len(m.Baseline)+len(m.Arm) == 0 {
			continue
		}
		row := metricRow{equalMetrics: m}
		if m.Change != nil {
			row.Bar = chart.BarOf(c.Margin, m.Compared, wide)
		}
		at := slices.IndexFunc(kinds, func(k [3]string) bool { return k[0] == m.Kind || k[0] == "" })
		groups[at].Title, groups[at].Note, groups[at].Rows = kinds[at][1], kinds[at][2], append(groups[at].Rows, row)
	}
	return slices.DeleteFunc(groups, func(g metricGroup) bool { return len(g.Rows) == 0 })
}

func medianOf(m compare.Compared, runs []*float64) string {
	if len(runs) == 0 {
		return "-"
	}
	sorted := make([]float64, len(runs))
	for i, v := range runs {
		if sorted[i] = math.Inf(1); v != nil { // never counts as latest
			sorted[i] = *v
		}
	}
	slices.Sort(sorted)
	mean := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	if math.IsInf(mean, 1) {
		return figureIn(m, nil)
	}
	return figureIn(m, &mean)
}

// eachOf lists the figures of memory and maxima, which are compared by run only; else "".
func eachOf(m compare.Compared, runs []*float64) string {
	if !strings.HasSuffix(m.Metric, " max") && m.Kind != compare.KindMemory {
		return ""
	}
	list := make([]string, len(runs))
	for i, v := range runs {
		list[i] = strings.ReplaceAll(figureIn(m, v), " ", "\u00a0")
	}
	return strings.Join(list, ", ")
}

func percentOf(share float64) string { return number.Text(100*share, 6) + "%" }

func seriesOf(c *compare.Comparison, l compare.LevelComparison) []seriesPart {
	var list []seriesPart
	for _, s := range l.Series {
		if at := slices.IndexFunc(list, func(o seriesPart) bool { return sameSeries(o.SeriesComparison, s) }); at >= 0 {
			list[at].Milestones += ", " + s.Milestone
			continue
		}
		p := seriesPart{SeriesComparison: s, Milestones: s.Milestone, Effects: effectsOf(c, l, s)}
		p.Shifts = shiftTable(c, l, s)
		p.Never = strings.Join(neverOf(c, l, s, words.Count), " and ")
		list = append(list, p)
	}
	return list
}

// sameSeries compares two milestones of one component by their curves.
func sameSeries(a, b compare.SeriesComparison) bool {
	same := func(x, y compare.Form) bool {
		return x.N == y.N && x.Censored == y.Censored && slices.Equal(x.Curve, y.Curve)
	}
	return a.Component == b.Component && same(a.Baseline, b.Baseline) && same(a.Arm, b.Arm)
}

func neverOf(c *compare.Comparison, l compare.LevelComparison, s compare.SeriesComparison, count func(int) string) []string {
	var list []string
	for i, f := range []compare.Form{s.Baseline, s.Arm} {
		if f.Censored > 0 {
			list = append(list, fmt.Sprintf("%s of %s objects of %s", count(f.Censored), count(f.N), []string{c.Baseline, l.Arm}[i]))
		}
	}
	return list
}

// leastP returns the smallest p-value of so few blocks; 0 blocks where they are many, or none.
func leastP(c *compare.Comparison, l compare.LevelComparison) (blocks int, least float64) {
	if blocks = min(l.Runs[0], l.Runs[1]); !c.Paired || blocks >= 12 {
		return 0, 0
	}
	return blocks, 2 / math.Exp2(float64(blocks))
}

func effectsOf(c *compare.Comparison, l compare.LevelComparison, s compare.SeriesComparison) []fact {
	var list []fact
	if s.Superiority != nil {
		list = append(list, fact{"Probability of being later", words.Percent(100 * *s.Superiority), fmt.Sprintf("The share of pairs in which an object of %s is later than one of %s; 50%% means no difference.", l.Arm, c.Baseline)})
	}
	if s.Distance != nil {
		list = append(list, fact{"Largest distance", words.Percent(100 * *s.Distance), "The Kolmogorov-Smirnov distance of the two distributions; 0% means no difference, 100% no overlap."})
	}
	if s.PermutationP != nil {
		note := "The p-value of a permutation test: the share of assignments of runs to arms with at least this distance."
		if blocks, least := leastP(c, l); blocks > 0 {
			note += fmt.Sprintf(" With %d blocks it cannot be below %s.", blocks, words.Percent(100*least))
		}
		list = append(list, fact{"Permutation test", words.Percent(100 * *s.PermutationP), note})
	}
	return list
}

// toneOf returns the verdict of a step with the same look: a comparison has verdicts of its own.
func toneOf(verdict any) slo.Verdict {
	switch v := fmt.Sprint(verdict); stats.Verdict(v) {
	case stats.Better, stats.Equivalent, stats.NotWorse:
		return slo.Pass
	case stats.Worse:
		return slo.Fail
	default:
		return slo.Verdict(v)
	}
}

func factsOfArms(r result.Result) []fact {
	c, l := r.Comparison, decidingLevel(r)
	var list []fact
	add := func(name, value, note string) { list = append(list, fact{name, value, note}) }
	if c.LinesDecide() {
		line := c.Lines[max(0, slices.IndexFunc(c.Lines, func(x compare.LineComparison) bool { return string(x.Verdict) == string(r.Verdict) }))]
		add("Load line of "+c.Baseline, bracketText(line.Baseline, ""), line.Unit+", goal "+line.Goal)
		add("Load line of "+words.And(armsOf(c)), bracketText(line.Arm, ""), line.Unit+", goal "+line.Goal)
		if open := lineInterval(line); open != "" {
			add("Change", open, "the change within the brackets")
		}
		return list
	}
	if l == nil {
		return list
	}
	for _, p := range l.Declared() {
		if p.Lo == nil || p.Hi == nil {
			continue
		}
		add(percentOf(1-c.Alpha)+" interval", words.ChangeInterval(p.Lo, p.Hi), fmt.Sprintf("of the change of %s, %s against %s", p.Called(), l.Arm, c.Baseline))
	}
	add("Margin", "± "+percentOf(c.Margin), "a change within it counts as none")
	if l.Runs[0]+l.Runs[1] > 0 {
		note := "in separate experiments"
		if c.Paired {
			note = "side by side, in blocks"
		}
		add("Valid runs", fmt.Sprintf("%d + %d", l.Runs[0], l.Runs[1]), note)
	}
	if l.Superiority != nil {
		add("Later", words.Percent(100**l.Superiority), fmt.Sprintf("of all pairs of an object of %s and one of %s", l.Arm, c.Baseline))
	}
	return list
}

func markOfArms(r result.Result) (mark, unit string) {
	c := r.Comparison
	for _, line := range c.Lines {
		if c.LinesDecide() && string(line.Verdict) == string(r.Verdict) && line.Change != nil {
			return wholeChange(*line.Change), "load line"
		}
	}
	l := decidingLevel(r)
	if c.Refused != "" || c.LinesDecide() || l == nil || l.Primary.Change == nil {
		return "?", ""
	}
	_, quantile, _ := strings.Cut(l.Primary.Metric, " ")
	return wholeChange(*l.Primary.Change), cmp.Or(l.Primary.Title, quantile, l.Primary.Metric)
}

// wholeChange writes a change to the percent, or a small one to a tenth.
func wholeChange(x float64) string {
	if math.Abs(x) < 0.0995 {
		return fmt.Sprintf("%+.1f%%", 100*x)
	}
	return fmt.Sprintf("%+.0f%%", 100*x)
}
