package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/stats"
)

// verdictOfArms is the verdict of a comparison in words.
func verdictOfArms(r judge.Result) string {
	c := r.Comparison
	who := andList(armsOf(c))
	if c.Refused != "" {
		return fmt.Sprintf("%s and %s are not comparable", c.Baseline, who)
	}
	says := map[stats.Verdict]string{stats.Better: "better than", stats.Worse: "worse than", stats.Equivalent: "equivalent to", stats.NotWorse: "not worse than"}[stats.Verdict(r.Verdict)]
	is := func(arms []string) string {
		if len(arms) > 1 {
			return "are"
		}
		return "is"
	}
	if says == "" {
		return fmt.Sprintf("%s against %s %s %s", who, c.Baseline, is(armsOf(c)), r.Verdict)
	}
	arms, levels := saidOf(c, stats.Verdict(r.Verdict))
	text := fmt.Sprintf("%s %s %s %s", andList(arms), is(arms), says, c.Baseline)
	if len(levels) > 0 {
		text += " at " + andList(levels)
	}
	return text
}

// andList is a list as people say it.
func andList(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

// armsOf are the arms that are compared with the baseline, in the order of the
// levels' comparisons, which is that of the plan.
func armsOf(c *compare.Comparison) []string {
	var list []string
	for _, l := range c.Levels {
		if !slices.Contains(list, l.Arm) {
			list = append(list, l.Arm)
		}
	}
	for _, arm := range slices.Sorted(maps.Keys(c.Arms)) {
		if arm != c.Baseline && !slices.Contains(list, arm) {
			list = append(list, arm)
		}
	}
	return list
}

// saidOf are the arms that a verdict was said of, and the levels where it was
// not said of them at each.
func saidOf(c *compare.Comparison, verdict stats.Verdict) (arms, levels []string) {
	if c.LinesDecide() {
		return armsOf(c), nil
	}
	whole := true
	for _, l := range c.Levels {
		if l.Verdict == verdict && !slices.Contains(arms, l.Arm) {
			arms = append(arms, l.Arm)
		}
	}
	for _, l := range c.Levels {
		level := Number(l.Level)
		switch {
		case l.Verdict == verdict && !slices.Contains(levels, level):
			levels = append(levels, level)
		case l.Verdict != verdict && slices.Contains(arms, l.Arm):
			whole = false
		}
	}
	if whole {
		levels = nil
	}
	return arms, levels
}

// decidingLevel is the comparison at a level that the verdict stands on, nil
// where there is none.
func decidingLevel(r judge.Result) *compare.LevelComparison {
	if r.Comparison == nil {
		return nil
	}
	levels := r.Comparison.Levels
	if len(levels) == 0 {
		return nil
	}
	said := slices.IndexFunc(levels, func(l compare.LevelComparison) bool { return string(l.Verdict) == string(r.Verdict) })
	return &levels[max(said, 0)]
}

// maxFalseDiscovery is the largest rate of false discoveries at which a metric that does
// not decide is worth a line.
const maxFalseDiscovery = 0.10

// differsClearly reports whether a metric that does not decide differs clearly:
// its interval leaves out 0, too.
func differsClearly(m compare.Compared) bool {
	return m.FalseDiscovery != nil && *m.FalseDiscovery <= maxFalseDiscovery && m.Change != nil && m.Lo != nil && m.Hi != nil && (*m.Lo > 0 || *m.Hi < 0)
}

// equalMetrics is a metric, and those of other milestones that are the same in
// every run, since objects reached them at the same moments.
type equalMetrics struct {
	compare.Compared
	Same []string // the other metrics
}

// groupMetrics puts metrics that are the same in every run together. The first is
// the one that decides.
func groupMetrics(l compare.LevelComparison) []equalMetrics {
	var all []equalMetrics
	index := make(map[string]int)
	for _, m := range append([]compare.Compared{l.Primary}, l.Others...) {
		key := ""
		if _, what, ok := strings.Cut(m.Metric, " "); ok && m.Kind == compare.KindLatency {
			key = what
			for _, v := range slices.Concat(m.Baseline, m.Arm) {
				key += " " + figureOf(v, "")
				if v != nil {
					key += fmt.Sprintf("%b", math.Float64bits(*v))
				}
			}
		}
		if at, ok := index[key]; ok && key != "" && len(m.Baseline) > 0 {
			all[at].Same = append(all[at].Same, m.Metric)
			continue
		}
		index[key] = len(all)
		all = append(all, equalMetrics{Compared: m})
	}
	return all
}

// OtherMilestones are those for which it is the same.
func (m equalMetrics) OtherMilestones() string {
	var milestones []string
	for _, name := range m.Same {
		milestone, _, _ := strings.Cut(name, " ")
		milestones = append(milestones, milestone)
	}
	return strings.Join(milestones, ", ")
}

// name is the metric and how many others are the same.
func (m equalMetrics) name() string {
	if len(m.Same) == 0 {
		return m.Called()
	}
	return fmt.Sprintf("%s (and of %s)", m.Called(), m.OtherMilestones())
}

// ComparisonText writes a comparison of recorded experiments for a terminal:
// what else differs, how they compare, and the verdict in a sentence.
func ComparisonText(w io.Writer, in ComparisonInput) error {
	p := newPrinter(w)
	r := in.result()
	p.differences(r.Comparison)
	p.comparison(r.Comparison)
	for _, warning := range r.Warnings {
		p.line("warning: %s", warning)
	}
	p.line("")
	p.line("%s", Sentence(r))
	p.fidelities(in.Operands)
	return p.err
}

// fidelities writes what was simulated in each experiment, once where it is
// the same in all.
func (p *printer) fidelities(operands []Operand) {
	notes := make([]string, len(operands))
	same := true
	for i, o := range operands {
		notes[i] = fidelityNote(o.Result.Fidelity)
		same = same && notes[i] == notes[0]
	}
	for i, o := range operands {
		switch {
		case notes[i] == "":
		case !same:
			p.line("%s: %s", o.Arm, notes[i])
		case i == 0:
			p.line("%s", notes[i])
		}
	}
}

// differences writes what two experiments do not have in common.
func (p *printer) differences(c *compare.Comparison) {
	if len(c.Differences) == 0 {
		return
	}
	rows := [][]string{{"difference", c.Baseline, strings.Join(armsOf(c), ", "), ""}}
	for _, d := range c.Differences {
		what := d.What
		if d.Detail != "" {
			what += " (" + d.Detail + ")"
		}
		rows = append(rows, []string{what, cmp.Or(d.Baseline, "-"), cmp.Or(d.Arm, "-"), bearingWord(d.Bearing)})
	}
	p.columns("", "llll", rows)
}

// bearingWord says what a difference means for the verdict.
func bearingWord(bearing string) string {
	switch bearing {
	case compare.BearingArm:
		return "the arm"
	case compare.BearingRefuses:
		return "prevents a verdict"
	case compare.BearingMayExplain:
		return "may explain a part"
	case compare.BearingNoted:
		return "note"
	}
	return bearing
}

// comparison writes how arms compare: load lines, and at each level the metric
// that decides, run by run; the shift of its quantiles, and of the other
// metrics those that differ clearly.
func (p *printer) comparison(c *compare.Comparison) {
	for _, l := range c.Lines {
		p.line("")
		p.line("load line of goal %s: %s", l.Goal, l.Verdict)
		p.line("  %s", l.Why)
		arm := strings.Join(armsOf(c), ", ")
		p.columns("  ", "rll", [][]string{{c.Baseline, bracketText(l.Baseline, l.Unit), bracketNote(l.Baseline)}, {arm, bracketText(l.Arm, l.Unit), bracketNote(l.Arm)}})
	}
	for _, l := range c.Levels {
		p.line("")
		verdict := string(l.Verdict)
		if c.Refused != "" {
			verdict = "measured, no verdict"
		} else if c.LinesDecide() {
			verdict += " (does not decide)"
		}
		p.line("%s against %s at %s: %s", l.Arm, c.Baseline, Number(l.Level), verdict)
		p.line("  %s", l.Why)
		for _, text := range l.Excluded {
			p.line("  left out: %s", text)
		}
		level := levelText{p, c, l}
		level.runs()
		level.shifts()
		level.parts()
		level.others()
		for _, text := range l.Warnings {
			p.line("  note: %s", text)
		}
	}
}

// levelText writes the comparison of an arm with the baseline at one level.
type levelText struct {
	*printer
	of *compare.Comparison
	compare.LevelComparison
}

// runs writes the metric that decides, run by run.
func (l levelText) runs() {
	if len(l.Primary.Baseline)+len(l.Primary.Arm) == 0 {
		return
	}
	rows := [][]string{{l.Primary.Called(), l.of.Baseline, l.Arm, ""}}
	for _, r := range runRows(l.of.Paired, l.Primary) {
		rows = append(rows, []string{r.Name, r.Baseline, r.Arm, r.Change})
	}
	l.columns("  ", "rrrr", rows)
}

// shifts writes how the quantiles of the deciding metric's milestone differ,
// and the sizes of the effect.
func (l levelText) shifts() {
	s := l.SeriesOf(l.of.Metric)
	if s == nil {
		return
	}
	rows := [][]string{{s.Milestone + ", all objects", l.of.Baseline, l.Arm, "change", "interval"}}
	for _, x := range s.Shifts {
		row := shiftRowOf(x, l.Runs)
		rows = append(rows, []string{row.Quantile, row.Baseline, row.Arm, row.Change, row.Interval})
	}
	if len(rows) > 1 {
		l.columns("  ", "rrrrl", rows)
	}
	if never := neverOf(l.of, l.LevelComparison, *s, strconv.Itoa); len(never) > 0 {
		l.line("  never %s: %s", s.Milestone, strings.Join(never, ", "))
	}
	if l.Distance != nil && l.Superiority != nil {
		text := fmt.Sprintf("  over all objects: largest distance of the distributions %.3f; an object of %s is later with a probability of %.2f", *l.Distance, l.Arm, *l.Superiority)
		if l.PermutationP != nil {
			text += fmt.Sprintf(" (permutation test: p = %.3g", *l.PermutationP)
			if blocks, least := leastP(l.of, l.LevelComparison); blocks > 0 {
				text += fmt.Sprintf("; %d blocks cannot give less than %.3g", blocks, least)
			}
			text += ")"
		}
		l.line("%s", text)
	}
}

// parts writes how the components differ, where there are several.
func (l levelText) parts() {
	milestone, _, _ := strings.Cut(l.of.Metric, " ")
	rows := [][]string{{milestone + " by component", "distance", "later", "p50", "largest shift"}}
	for _, s := range l.Series {
		if s.Milestone != milestone || s.Component == "" {
			continue
		}
		digits := func(n int) func(float64) string {
			return func(x float64) string { return strconv.FormatFloat(x, 'f', n, 64) }
		}
		row := []string{s.Component, known(s.Distance, digits(3)), known(s.Superiority, digits(2)), "-", "-"}
		for i, x := range s.Shifts {
			shift := shiftRowOf(x, l.Runs)
			if x.Q == 0.5 {
				row[3] = shift.Change
			}
			if i == len(s.Shifts)-1 {
				row[4] = shift.Quantile + " " + shift.Change
			}
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		l.columns("  ", "rrrrr", rows)
	}
}

// others writes the metrics that do not decide and differ clearly, and why
// memory is not compared where it is not.
func (l levelText) others() {
	rows := [][]string{}
	for _, m := range groupMetrics(l.LevelComparison)[1:] {
		if differsClearly(m.Compared) {
			rows = append(rows, []string{m.name(), changeText(*m.Change), intervalText(m.Lo, m.Hi)})
		}
	}
	if len(rows) > 0 {
		l.line("  other metrics that differ (false discovery rate at most %.0f%%; they do not decide):", 100*maxFalseDiscovery)
		l.columns("    ", "lrl", rows)
	}
	// Why memory is not compared, in the order in which the reasons come up.
	var reasons []string
	processes := make(map[string][]string)
	for _, m := range l.Others {
		if m.Kind != compare.KindMemory || m.Change != nil || m.Note == "" {
			continue
		}
		reason, _, _ := strings.Cut(m.Note, ": ")
		if processes[reason] == nil {
			reasons = append(reasons, reason)
		}
		process, _, _ := strings.Cut(m.Metric, " memory")
		processes[reason] = append(processes[reason], process)
	}
	for _, reason := range reasons {
		l.line("  memory of %s is not compared: %s", strings.Join(processes[reason], ", "), reason)
	}
}

// runRow is one block's two runs, or one run of each arm where they were made
// apart.
type runRow struct{ Name, Baseline, Arm, Change string }

// runRows are a metric's figures run by run.
func runRows(paired bool, m compare.Compared) []runRow {
	list := make([]runRow, max(len(m.Baseline), len(m.Arm)))
	for i := range list {
		r := &list[i]
		if i < len(m.Baseline) {
			r.Baseline = figureIn(m, m.Baseline[i])
		}
		if i < len(m.Arm) {
			r.Arm = figureIn(m, m.Arm[i])
		}
		r.Name = fmt.Sprintf("run %d", i+1)
		if !paired {
			continue
		}
		r.Name = fmt.Sprintf("block %d", i+1)
		if i < len(m.Baseline) && i < len(m.Arm) {
			r.Change = ratioText(m.Baseline[i], m.Arm[i])
		}
	}
	return list
}

type shiftRow struct{ Quantile, Baseline, Arm, Change, Interval string }

// shiftRowOf shows the change of a quantile. Where the runs give no interval it
// is the change over all objects: with one run of an arm, or where the quantile
// was never reached in some run.
func shiftRowOf(x compare.Shift, runs [2]int) shiftRow {
	row := shiftRow{Quantile: stats.QuantileName(x.Q), Baseline: figureOf(x.Baseline, "s"), Arm: figureOf(x.Arm, "s")}
	switch {
	case x.Change != nil:
		row.Change = changeText(*x.Change)
		row.Interval = intervalText(x.Lo, x.Hi)
	case x.Baseline != nil && x.Arm != nil:
		row.Change = ratioText(x.Baseline, x.Arm)
		if min(runs[0], runs[1]) > 1 {
			row.Interval = "never in some run"
		}
	default:
		row.Change = "-"
	}
	return row
}

// ratioText is the change from one figure to another, - where one was never
// reached.
func ratioText(from, to *float64) string {
	if from == nil || to == nil || *from <= 0 {
		return "-"
	}
	return changeText(*to / *from - 1)
}

// changeText is a relative change in percent.
func changeText(x float64) string {
	if x > 10 {
		return fmt.Sprintf("%+.0f%%", 100*x)
	}
	return fmt.Sprintf("%+.1f%%", 100*x)
}

// intervalText is the interval of a change, "" where there is none.
func intervalText(lo, hi *float64) string {
	if lo == nil || hi == nil {
		return ""
	}
	return fmt.Sprintf("(%s to %s)", changeText(*lo), changeText(*hi))
}

// bracketText is a load line as its search left it.
func bracketText(b compare.Bracket, unit string) string {
	switch {
	case b.Level == nil && b.LowestFailing == nil:
		return "not known"
	case b.Level == nil:
		return strings.TrimSpace(fmt.Sprintf("below %s %s", Number(*b.LowestFailing), unit))
	case b.LowestFailing == nil:
		return strings.TrimSpace(fmt.Sprintf("at least %s %s", Number(*b.Level), unit))
	}
	return fmt.Sprintf("%s, fails at %s", strings.TrimSpace(Number(*b.Level)+" "+unit), Number(*b.LowestFailing))
}

// bracketNote is what else is known of a load line.
func bracketNote(b compare.Bracket) string {
	var list []string
	if b.Confirmations != "" {
		list = append(list, "confirmed "+b.Confirmations)
	}
	if b.Binding != "" {
		list = append(list, "bound by: "+b.Binding)
	}
	return strings.Join(list, "; ")
}

// figureIn is a metric's figure in a run as it is shown. What is not a latency
// and is not there is not known.
func figureIn(m compare.Compared, x *float64) string {
	if x == nil && m.Kind != compare.KindLatency {
		return "-"
	}
	return figureOf(x, m.Unit)
}

// figureOf is a figure of a run as it is shown; never where it was not reached.
func figureOf(x *float64, unit string) string {
	switch {
	case x == nil:
		return "never"
	case unit == "s":
		return Seconds(*x)
	case unit == "B":
		return byteCount(int64(*x))
	case unit == "B/s":
		return byteCount(int64(*x)) + "/s"
	}
	if *x >= 10_000 && *x < 1e9 { // not as a power of ten
		return strings.TrimSpace(fmt.Sprintf("%.0f %s", *x, unit))
	}
	return strings.TrimSpace(fmt.Sprintf("%.4g %s", *x, unit))
}
