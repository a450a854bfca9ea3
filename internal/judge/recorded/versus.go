// Package recorded answers two questions: are two recorded experiments comparable, and how do they
// compare? It reads judged run directories, names all their differences, and lets package compare decide
// where nothing but the arm can be the cause.
package recorded

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
)

// Schema names the format of comparison.json.
const Schema = "plimsoll/comparison/v1"

// Options say how experiments are compared.
type Options struct {
	Metric string        // decides; "" is that of both plans, else the workload's
	Margin float64       // 0.05 is 5%; 0 is that of both plans, else 5%
	Alpha  float64       // likewise
	ArmIs  []string      // what the arm is besides the parameters; see Names
	Facts  []record.Fact // that targets declare; the records' own are added
	// Workload finds a workload by the name in a plan, for its defaults. It fails for a removed workload.
	Workload func(name string) (*workload.Workload, error)
}

// Outcome is comparison.json: the comparison of recorded experiments.
type Outcome struct {
	Schema      string              `json:"schema"`
	Verdict     slo.Verdict         `json:"verdict"` // "" of a trend, which has none
	ExitCode    int                 `json:"exitCode"`
	Why         string              `json:"why"` // the verdict's reason in a sentence
	Command     string              `json:"command"`
	Version     string              `json:"version"`
	Experiments []Experiment        `json:"experiments"`      // the baseline first
	Comparison  *compare.Comparison `json:"comparison"`       // of two experiments
	Trends      []compare.Trend     `json:"trends,omitempty"` // of more
	Warnings    record.Warnings     `json:"warnings"`
}

// Experiment is one of the compared experiments.
type Experiment struct {
	Name       string          `json:"name"` // in messages
	Path       string          `json:"path"`
	Arm        string          `json:"arm,omitempty"`
	Experiment string          `json:"experiment"`
	Workload   string          `json:"workload"`
	Kind       string          `json:"kind"`
	Start      string          `json:"start"`
	Command    string          `json:"command"`
	Version    string          `json:"version"`
	Verdict    slo.Verdict     `json:"verdict"`
	Why        string          `json:"why"`
	Fidelity   record.Fidelity `json:"fidelity"`
	Warnings   record.Warnings `json:"warnings"`
}

// UnknownMetricError says that no run has a figure of that name.
type UnknownMetricError struct {
	Metric string
	Known  []string
}

func (e *UnknownMetricError) Error() string { return fmt.Sprintf("no run has the metric %q", e.Metric) }

// The defaults for plans without these.
const (
	defaultMargin = 0.05
	defaultAlpha  = 0.05
)

// Compare compares b with a, the baseline. The error may be an *UnknownNameError or *UnknownMetricError.
func Compare(a, b *Operand, o Options) (Outcome, error) {
	out := Outcome{Schema: Schema, Experiments: []Experiment{a.experiment(), b.experiment()}, Warnings: record.Warnings{}}
	paired := sameRun(a, b)
	p := pair{a: a, b: b}
	w, _ := o.workload(a) // the defaults of a removed one are unknown
	if w != nil && a.plan.Workload == b.plan.Workload {
		p.defaults = defaultsOf(w)
	}
	if err := CheckArm(o.ArmIs, p.paramNames(), slices.Concat(o.Facts, a.facts(), b.facts())); err != nil {
		return out, err
	}
	runsA, err := a.runs(true)
	if err != nil {
		return out, err
	}
	runsB, err := b.runs(true)
	if err != nil {
		return out, err
	}
	spec := compare.Spec{
		Baseline: a.Name, Arms: []string{b.Name}, Paired: paired,
		Params: map[string]map[string]string{a.Name: a.params(), b.Name: b.params()},
	}
	metrics, among, err := out.metrics(o, w, a, b, runsA, runsB)
	if err != nil {
		return out, err
	}
	spec.Metric, spec.Further = metrics[0], metrics[1:]
	spec.Margin, spec.Alpha = out.bounds(o, a, b)
	spec.Alpha /= float64(among)
	if r := a.plan.Repeat; paired && !r.Fixed() && a.plan.Kind == plan.AB {
		spec.Sequential = &stats.Sequential{
			Least: r.Least, Most: r.Most, Alpha: spec.Alpha / float64(len(metrics)), Margin: spec.Margin, NotWorse: a.plan.Until == plan.UntilNotWorse,
			Among: max(len(a.plan.Arms)-1, 1) * max(len(a.plan.Axis.Levels), 1),
		}
		spec.End = stats.Interrupted // the rest does not count
	}

	sameAxis := a.SameAxis(b)
	var lines []compare.LineComparison
	if sameAxis {
		lines = linesOf(a, b, spec.Margin)
	}
	p.lines = len(lines) > 0 && o.Metric == ""
	differences := p.differences()
	m := matched{}
	if sameAxis {
		m = matchRuns(runsA, runsB)
	}
	if !paired {
		for _, level := range m.levels {
			counted := func(list []replicate) []replicate {
				return slices.DeleteFunc(slices.Clone(list), func(r replicate) bool { return r.Level != level || r.LeftOut != "" })
			}
			differences = append(differences, p.atLevel(level, counted(m.a), counted(m.b))...)
		}
	}
	refused := out.bearings(p, differences, o.ArmIs)

	c := compare.Runs(spec, m.runs())
	c.Lines, c.Differences, c.ArmIs, c.Refused = lines, differences, o.ArmIs, refused
	c.OnlyBaseline, c.OnlyArm = m.onlyA, m.onlyB
	if c.Decides = compare.ByLevels; p.lines {
		c.Decides = compare.ByLines
	}
	for i := range c.Levels {
		advise(&c.Levels[i], spec, a, b)
	}
	if c.Refused != "" {
		withhold(&c)
	}
	for _, x := range []struct {
		name   string
		levels []float64
	}{{a.Name, m.onlyA}, {b.Name, m.onlyB}} {
		if len(x.levels) > 0 {
			out.warn("only %s has level %s", x.name, numbers(x.levels))
		}
	}
	out.warnOfWarnings(a, b)
	out.Comparison = &c
	out.decide(m, p.lines)
	return out, nil
}

func (o Options) workload(a *Operand) (*workload.Workload, error) {
	if o.Workload == nil {
		return nil, errors.New("the workload is unknown")
	}
	return o.Workload(a.plan.Workload)
}

func (o *Operand) facts() []record.Fact {
	var list []record.Fact
	for _, k := range o.Environment.Known() {
		list = append(list, k.Fact)
	}
	return list
}

func (p pair) paramNames() []string {
	all := p.a.params()
	maps.Copy(all, p.b.params())
	maps.Copy(all, p.defaults)
	return slices.Sorted(maps.Keys(all))
}

func (o *Operand) experiment() Experiment {
	x := Experiment{
		Name: o.Name, Path: o.Path, Arm: o.Arm, Experiment: o.Result.Experiment, Workload: o.Result.Workload, Kind: o.Result.Kind,
		Command: o.Result.Command, Version: o.Result.Version, Verdict: o.Result.Verdict, Why: o.Result.Why,
		Fidelity: o.Result.Fidelity, Warnings: o.Result.Warnings,
	}
	if t := o.start(); !t.IsZero() {
		x.Start = t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
	}
	if x.Warnings == nil {
		x.Warnings = record.Warnings{}
	}
	return x
}

func (out *Outcome) warn(format string, args ...any) {
	out.Warnings.Addf(record.WarningComparable, format, args...)
}

// warnOfWarnings names the experiments with warnings of their own, which bear on the comparison.
func (out *Outcome) warnOfWarnings(operands ...*Operand) {
	for i, x := range operands {
		if len(x.Result.Warnings) == 0 || i > 0 && sameRun(x, operands[0]) {
			continue
		}
		out.Warnings.Add(record.Warning{Kind: record.WarningComparable, Text: "experiments have warnings: see 'plimsoll analyze DIR'", Places: []string{x.Path}})
	}
}

// metrics returns the deciding metrics, and from how many declared ones one was chosen.
func (out *Outcome) metrics(o Options, w *workload.Workload, a, b *Operand, runs ...[]replicate) (list []string, among int, err error) {
	if o.Metric == "" {
		return out.defaultMetrics(w, a, b), 1, nil
	}
	usual, _ := declaredMetrics(w, a, b)
	known := figuresOf(runs...)
	if len(known) > 0 && !slices.Contains(known, o.Metric) {
		return nil, 0, &UnknownMetricError{o.Metric, known}
	}
	if slices.Contains(usual, o.Metric) {
		return []string{o.Metric}, len(usual), nil
	}
	out.Warnings.Addf(record.WarningChosenAfter, "%s was chosen after the runs (declared before them: %s): of several metrics, some differ by chance", o.Metric, strings.Join(usual, ", "))
	return []string{o.Metric}, 1, nil
}

func figuresOf(runs ...[]replicate) []string {
	var names []string
	for _, r := range slices.Concat(runs...) {
		for _, f := range r.Figures {
			if !slices.Contains(names, f.Metric) {
				names = append(names, f.Metric)
			}
		}
	}
	return names
}

// defaultMetrics returns the declared metrics, with a warning where that is doubtful.
func (out *Outcome) defaultMetrics(w *workload.Workload, operands ...*Operand) []string {
	metrics, how := declaredMetrics(w, operands...)
	if how == "" {
		return metrics
	}
	var parts []string
	for _, x := range operands {
		parts = append(parts, x.Name+": "+cmp.Or(saidBy(x), "none"))
	}
	out.warn("%s: it is %s (%s)", how, metrics[0], strings.Join(parts, "; "))
	return metrics
}

func saidBy(x *Operand) string { return strings.Join(primaryOf(x).Metrics(), ", ") }

// declaredMetrics returns the declared metrics, else the workload's, else the median time; how says why.
func declaredMetrics(w *workload.Workload, operands ...*Operand) (metrics []string, how string) {
	said := make(map[string]bool)
	for _, x := range operands {
		said[saidBy(x)] = true
	}
	if len(said) == 1 && !said[""] {
		return operands[0].plan.Primary.Metrics(), ""
	}
	if w == nil || w.Primary == "" {
		return []string{operands[0].plan.AsRun.Arrived + " p50"}, "the workload " + operands[0].plan.Workload + " was not found, so its metric is unknown"
	}
	delete(said, "")
	if delete(said, w.Primary); len(said) > 0 {
		how = "the plans declare different metrics, so the workload's is used"
	}
	return []string{w.Primary}, how
}

// primaryOf returns the metric that an operand's plan declared, with its margin and error rate, or zero.
func primaryOf(x *Operand) plan.Primary {
	if x.plan.Primary == nil {
		return plan.Primary{}
	}
	return *x.plan.Primary
}

func (out *Outcome) bounds(o Options, a, b *Operand) (margin, alpha float64) {
	one := func(what string, given, usual float64, declared func(*Operand) float64) float64 {
		x, y := declared(a), declared(b)
		switch {
		case x == y && x > 0:
			usual = x
		case x != y && given == 0:
			out.warn("the plans declare different values of %s: %g is used", what, usual)
		}
		if given == 0 {
			return usual
		}
		if x == y && x > 0 && given != x {
			out.Warnings.Addf(record.WarningChosenAfter, "the %s of %g was chosen after the runs (declared before them: %g)", what, given, x)
		}
		return given
	}
	margin = one("margin", o.Margin, defaultMargin, func(x *Operand) float64 {
		share, err := primaryOf(x).Share()
		if err != nil {
			return 0
		}
		return share
	})
	alpha = one("error rate", o.Alpha, defaultAlpha, func(x *Operand) float64 { return primaryOf(x).Alpha })
	return margin, alpha
}

// matched holds the common levels of two operands, and the runs of both on the same levels.
type matched struct {
	a, b         []replicate
	levels       []float64
	onlyA, onlyB []float64
}

func (m matched) runs() []compare.Run {
	var list []compare.Run
	for _, r := range slices.Concat(m.a, m.b) {
		list = append(list, r.Run)
	}
	return list
}

func matchRuns(a, b []replicate) matched {
	var m matched
	levelsOf := func(list []replicate) []float64 {
		levels := make([]float64, len(list))
		for i, r := range list {
			levels[i] = r.Level
		}
		slices.Sort(levels)
		return slices.Compact(levels)
	}
	la, lb := levelsOf(a), levelsOf(b)
	for _, level := range la {
		if !slices.Contains(lb, level) {
			m.onlyA = append(m.onlyA, level)
			continue
		}
		m.levels = append(m.levels, level)
		on := commonBasis(level, a, b)
		take := func(from []replicate, into *[]replicate) {
			for _, r := range from {
				if r.Level != level {
					continue
				}
				if r.on != on && r.LeftOut == "" {
					if r.LeftOut = "was made from empty, the others were not"; r.on != "" {
						r.LeftOut = "was raised from level " + r.on + ", the others were not"
					}
				}
				*into = append(*into, r)
			}
		}
		take(a, &m.a)
		take(b, &m.b)
	}
	for _, level := range lb {
		if !slices.Contains(la, level) {
			m.onlyB = append(m.onlyB, level)
		}
	}
	return m
}

// commonBasis returns the levels that runs of all sides stand on, preferably none.
func commonBasis(level float64, sides ...[]replicate) string {
	all := func(on string) bool {
		return !slices.ContainsFunc(sides, func(list []replicate) bool {
			return !slices.ContainsFunc(list, func(r replicate) bool { return r.Level == level && r.on == on && r.LeftOut == "" })
		})
	}
	if all("") {
		return ""
	}
	for _, r := range sides[0] {
		if r.Level == level && all(r.on) {
			return r.on
		}
	}
	return ""
}

// bearings lets --arm-is name the arm, and returns the differences that refuse a verdict, or "".
func (out *Outcome) bearings(p pair, differences []compare.Difference, armIs []string) string {
	var blocking []string // names, in the order of the differences
	var told []string
	for i := range differences {
		d := &differences[i]
		if d.What != axisName && slices.ContainsFunc(armIs, func(n string) bool { return nameMatches(n, d.What) }) {
			d.Bearing = compare.BearingArm
		}
		if d.Bearing == compare.BearingRefuses && !slices.Contains(blocking, d.What) {
			blocking = append(blocking, d.What)
			told = append(told, fmt.Sprintf("%s (%s against %s)", d.What, short(d.Baseline), short(d.Arm)))
		}
	}
	for _, n := range armIs {
		if slices.ContainsFunc(differences, func(d compare.Difference) bool { return nameMatches(n, d.What) }) {
			continue
		}
		if p.notOnRecord(n) {
			out.warn("--arm-is %s: neither record holds it, so the difference is taken as given", n)
			continue
		}
		out.warn("--arm-is %s: the records do not differ in it", n)
	}
	if len(blocking) == 0 {
		return ""
	}
	if slices.Contains(blocking, axisName) {
		return "the axes differ (" + strings.Join(told, ", ") + "): their levels cannot be compared"
	}
	verb, it := "differs", "it is"
	if len(blocking) > 1 {
		verb, it = "differ", "they are"
	}
	return fmt.Sprintf("%s %s and may cause any other difference: if %s what is compared, say --arm-is %s",
		strings.Join(told, ", "), verb, it, strings.Join(slices.Concat(armIs, blocking), ","))
}

func (p pair) notOnRecord(name string) bool {
	has := func(o *Operand) bool {
		return slices.ContainsFunc(o.Environment.Known(), func(k record.Known) bool { return nameMatches(name, k.Name) }) ||
			slices.ContainsFunc(aspects(), func(x aspect) bool { return x.name == name && x.value(o) != "" })
	}
	return !has(p.a) && !has(p.b) && !strings.HasPrefix(name+":", paramPrefix) && !slices.Contains([]string{noEnvironment, loadName, offeredName, othersName}, name)
}

func short(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + " ..."
	}
	return text
}

func advise(c *compare.LevelComparison, spec compare.Spec, a, b *Operand) {
	if c.Verdict != stats.Undecided || min(c.Runs[0], c.Runs[1]) > 1 || max(c.Runs[0], c.Runs[1]) == 0 {
		return
	}
	var few []string
	for i, o := range []*Operand{a, b} {
		switch c.Runs[i] {
		case 0:
			few = append(few, o.Name+" has no valid run")
		case 1:
			few = append(few, "one run of "+o.Name+" counts")
		}
	}
	level := levelText(c.Level)
	why := fmt.Sprintf("%s at level %s, and an interval needs two of each: run 'plimsoll ab --repeat 5', or 'plimsoll sweep --levels %s' for each",
		strings.Join(few, ", "), level, strings.Join(slices.Repeat([]string{level}, 5), ","))
	c.Revise(func(d *compare.Decision) {
		if d.Why = why; d.Figure.Change != nil {
			d.Why = fmt.Sprintf("%s changed by %+.1f%%, but %s", d.Figure.Called(), 100**d.Figure.Change, why)
		}
	})
}

// withhold withdraws the verdicts on experiments that are not comparable; the figures stay.
func withhold(c *compare.Comparison) {
	for i := range c.Levels {
		c.Levels[i].Revise(func(d *compare.Decision) { d.Verdict, d.MoreRuns = stats.Undecided, 0 })
	}
	for i := range c.Lines {
		c.Lines[i].Verdict = stats.Undecided
	}
}

func (out *Outcome) decide(m matched, lines bool) {
	c := out.Comparison
	verdict, why := c.Verdict()
	out.Verdict, out.Why, out.ExitCode = slo.Verdict(verdict), why, compare.ExitCode(verdict)
	if verdict != stats.Undecided || c.Refused != "" {
		return
	}
	switch {
	case lines:
		for _, l := range c.Lines {
			if l.Baseline.Verdict == string(slo.Invalid) || l.Arm.Verdict == string(slo.Invalid) {
				out.Verdict, out.ExitCode = slo.Invalid, 4
			}
		}
	case len(m.levels) == 0:
		out.Why = "the two have no level in common"
	default:
		for _, list := range [][]replicate{m.a, m.b} {
			if n := invalid(list); n > 0 && 2*n >= len(list) {
				out.Verdict, out.ExitCode = slo.Invalid, 4
				out.Why = fmt.Sprintf("%d of %d runs of %s are invalid; %s", n, len(list), list[0].Arm, why)
			}
		}
	}
}

func linesOf(a, b *Operand, margin float64) []compare.LineComparison {
	var list []compare.LineComparison
	for _, g := range a.Result.Goals {
		h := b.lineOf(g.Name)
		if g.LoadLine == nil || h == nil {
			continue
		}
		line := compare.Line(a.Name, b.Name, g.LoadLine.Bracket(g.Verdict), h.LoadLine.Bracket(h.Verdict), g.LoadLine.Unit, margin)
		line.Goal, line.Axis = g.Name, g.LoadLine.Axis
		if !slices.Equal(g.SLO, h.SLO) {
			line.Withdraw("its objectives differ")
		}
		list = append(list, line)
	}
	return list
}
