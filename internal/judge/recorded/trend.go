package recorded

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// TrendOptions say how a trend is made, besides the options of a comparison.
type TrendOptions struct {
	Options
	AsGiven bool   // keeps the order of the operands, else their starts order them
	Seed    uint64 // of the orders that a search for change points draws
}

// TrendOf follows one figure through named operands: each workload's, at each level that all held. The
// exit code is 3 where there is nothing to follow; the error may be an *UnknownMetricError.
func TrendOf(operands []*Operand, o TrendOptions) (Outcome, error) {
	out := Outcome{Schema: Schema, Experiments: []Experiment{}, Warnings: record.Warnings{}, Trends: []compare.Trend{}}
	operands = slices.Clone(operands)
	if !o.AsGiven {
		slices.SortStableFunc(operands, func(a, b *Operand) int { return a.start().Compare(b.start()) })
	}
	type kind struct{ workload, axis, unit string } // each has trends of its own
	var order []kind
	groups := make(map[kind][]*Operand)
	for _, x := range operands {
		out.Experiments = append(out.Experiments, x.experiment())
		k := kind{x.plan.Workload, x.plan.Axis.Name, x.plan.AsRun.Unit}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], x)
	}
	known := false
	var names []string
	for _, k := range order {
		trends, figures, err := out.addTrends(groups[k], o)
		if err != nil {
			return out, err
		}
		known = known || o.Metric == "" || slices.Contains(figures, o.Metric)
		names = append(names, figures...)
		out.Trends = append(out.Trends, trends...)
	}
	if !known && len(names) > 0 {
		slices.Sort(names)
		return out, &UnknownMetricError{o.Metric, slices.Compact(names)}
	}
	out.warnOfWarnings(operands...)
	followed := slices.ContainsFunc(out.Trends, func(t compare.Trend) bool {
		return slices.ContainsFunc(t.Points, func(p compare.TrendPoint) bool { return p.Value != nil })
	})
	if !followed {
		out.Verdict, out.ExitCode, out.Why = slo.Inconclusive, compare.ExitCode("inconclusive"), "no experiment has a metric that can be followed"
		return out, nil
	}
	out.Why = fmt.Sprintf("%d experiments", len(operands))
	return out, nil
}

func (out *Outcome) addTrends(list []*Operand, o TrendOptions) (trends []compare.Trend, figures []string, err error) {
	w, _ := o.workload(list[0])
	differs := slices.Repeat([][]string{{}}, len(list)) // from the one before
	for i := 1; i < len(list); i++ {
		p := pair{a: list[i-1], b: list[i], defaults: defaultsOf(w)}
		for _, d := range p.differences() {
			if d.Bearing != compare.BearingNoted || d.What == "program" {
				differs[i] = append(differs[i], d.What)
			}
		}
	}
	if goal := lineOfAll(list); goal != "" && o.Metric == "" {
		t := newTrend(list, differs, compare.LoadLine+goal)
		t.Unit, t.LessIsWorse = list[0].plan.AsRun.Unit, true
		for i, x := range list {
			x.linePoint(goal, &t.Points[i])
		}
		t.FindChanges(o.alpha(), o.Seed)
		return []compare.Trend{t}, nil, nil
	}
	runs := make([][]replicate, len(list))
	for i, x := range list {
		if runs[i], err = x.runs(false); err != nil {
			return nil, nil, err
		}
	}
	figures = figuresOf(runs...)
	metric := o.Metric
	if metric == "" {
		metric = out.defaultMetrics(w, list...)[0]
	}
	for _, at := range out.levelsOfAll(list, runs) {
		t := newTrend(list, differs, metric)
		t.Level = &at.level
		for i := range list {
			figure := levelPoint(runs[i], at, metric, &t.Points[i])
			if figure != nil {
				t.Title, t.Unit, t.LessIsWorse = figure.Title, figure.Unit, figure.LessIsWorse
			}
		}
		t.FindChanges(o.alpha(), o.Seed)
		trends = append(trends, t)
	}
	return trends, figures, nil
}

func (o Options) alpha() float64 {
	if o.Alpha > 0 {
		return o.Alpha
	}
	return defaultAlpha
}

func newTrend(list []*Operand, differs [][]string, metric string) compare.Trend {
	t := compare.Trend{Workload: list[0].plan.Workload, Metric: metric, Axis: list[0].plan.Axis.Name}
	for i, x := range list {
		p := compare.TrendPoint{Name: x.Name, Program: x.Result.Version, System: x.Environment.Value("kubernetes"), Differs: differs[i]}
		if s := x.start(); !s.IsZero() {
			p.Start = s.UTC().Format("2006-01-02T15:04:05Z07:00")
		}
		t.Points = append(t.Points, p)
	}
	return t
}

// lineOfAll returns the first goal with a load line in all experiments, or "".
func lineOfAll(list []*Operand) string {
	for _, g := range list[0].Result.Goals {
		if !slices.ContainsFunc(list, func(x *Operand) bool { return x.lineOf(g.Name) == nil }) {
			return g.Name
		}
	}
	return ""
}

// lineOf returns the result of a goal that has a load line, or nil.
func (o *Operand) lineOf(goal string) *result.GoalResult {
	i := slices.IndexFunc(o.Result.Goals, func(g result.GoalResult) bool { return g.Name == goal && g.LoadLine != nil })
	if i < 0 {
		return nil
	}
	return &o.Result.Goals[i]
}

func (o *Operand) linePoint(goal string, p *compare.TrendPoint) {
	g := o.lineOf(goal)
	l := g.LoadLine
	p.Low, p.High, p.Runs = l.Level, l.LowestFailing, l.ConfirmationsMade
	switch {
	case g.Verdict == slo.Pass && l.Level != nil:
		p.Value = l.Level
		if b := l.Bracket(g.Verdict); b.Estimate != nil && !b.Exact {
			p.Estimated, p.Value, p.Low, p.High = true, b.Estimate, b.Low, b.High
		}
	case g.Verdict == slo.Fail:
		p.Note = "the first level failed"
	default:
		p.Note = "its load line is " + string(g.Verdict)
	}
}

// held is a level, and the levels that its runs stand on.
type held struct {
	level float64
	on    string
}

// levelsOfAll returns the levels that all held in the same way, or with a warning the one that most held.
func (out *Outcome) levelsOfAll(list []*Operand, runs [][]replicate) []held {
	count := make(map[held]int)
	var known []held
	for _, of := range runs {
		seen := make(map[held]bool)
		for _, r := range of {
			if h := (held{r.Level, r.on}); r.LeftOut == "" && !seen[h] {
				seen[h] = true
				if count[h]++; count[h] == 1 {
					known = append(known, h)
				}
			}
		}
	}
	if len(known) == 0 {
		out.warn("%s has no valid run", list[0].plan.Workload)
		return nil
	}
	// Those from empty come before those that stand on other levels.
	slices.SortFunc(known, func(x, y held) int { return cmp.Or(cmp.Compare(x.level, y.level), cmp.Compare(x.on, y.on)) })
	var all []held
	most := known[0]
	for _, h := range known {
		if count[h] == len(list) && (len(all) == 0 || all[len(all)-1].level != h.level) {
			all = append(all, h)
		}
		if count[h] > count[most] {
			most = h
		}
	}
	if len(all) > 0 {
		return all
	}
	out.warn("the experiments with %s have no level in common; most of them, %d of %d, were at %s", list[0].plan.Workload, count[most], len(list), levelText(most.level))
	return []held{most}
}

// levelPoint fills in the figure of the runs at a level, and returns its description, or nil.
func levelPoint(runs []replicate, at held, metric string, p *compare.TrendPoint) *compare.Figure {
	var known *compare.Figure
	sum := 0.0
	never := false
	for _, r := range runs {
		if r.Level != at.level || r.on != at.on || r.LeftOut != "" {
			continue
		}
		for _, f := range r.Figures {
			if f.Metric != metric {
				continue
			}
			known = &f
			p.Runs++
			if f.Value == nil {
				never = true
				continue
			}
			v := *f.Value
			if p.Low == nil || v < *p.Low {
				p.Low = &v
			}
			if p.High == nil || v > *p.High {
				p.High = &v
			}
			sum += math.Log(v)
		}
	}
	switch {
	case known == nil:
		p.Note = "it has no valid run at " + levelText(at.level)
	case never:
		p.Note = "never reached in some run"
		p.Low, p.High = nil, nil
	default:
		if v := math.Exp(sum / float64(p.Runs)); v > 0 && !math.IsInf(v, 0) {
			p.Value = &v
		} else {
			p.Note = "is 0 in some run"
		}
	}
	return known
}

// defaultsOf returns a workload's defaults by parameter, nil where it is unknown.
func defaultsOf(w *workload.Workload) map[string]string {
	if w == nil {
		return nil
	}
	all := make(map[string]string)
	for _, x := range w.Params {
		all[x.Name] = x.Default
	}
	return all
}
