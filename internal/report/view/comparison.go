package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

func verdictOfArms(r result.Result) string {
	c := r.Comparison
	who := words.And(armsOf(c))
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
	text := fmt.Sprintf("%s %s %s %s", words.And(arms), is(arms), says, c.Baseline)
	if len(levels) > 0 {
		text += " at " + words.And(levels)
	}
	return text
}

// armsOf returns the arms that are compared with the baseline, in the order of the plan.
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

// saidOf returns the arms with a verdict, and the levels unless they have it at each.
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
		level := words.Number(l.Level)
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

// decidingLevel returns the comparison at the level behind the verdict, or nil.
func decidingLevel(r result.Result) *compare.LevelComparison {
	if r.Comparison == nil || len(r.Comparison.Levels) == 0 {
		return nil
	}
	levels := r.Comparison.Levels
	said := slices.IndexFunc(levels, func(l compare.LevelComparison) bool { return string(l.Verdict) == string(r.Verdict) })
	return &levels[max(said, 0)]
}

const maxFalseDiscovery = 0.10 // largest rate of false discoveries of descriptive metrics that get a line

// differsClearly reports whether a descriptive metric differs clearly: its interval leaves out 0, too.
func differsClearly(m compare.Compared) bool {
	return m.FalseDiscovery != nil && *m.FalseDiscovery <= maxFalseDiscovery && m.Change != nil && m.Lo != nil && m.Hi != nil && (*m.Lo > 0 || *m.Hi < 0)
}

// equalMetrics is a metric with others that are equal in every run, as milestones reached at once.
type equalMetrics struct {
	compare.Compared
	Decides bool
	Same    []string // the other metrics
}

// groupMetrics puts metrics that are equal in every run together, the deciding ones first.
func groupMetrics(l compare.LevelComparison) []equalMetrics {
	var all []equalMetrics
	index := make(map[string]int)
	declared := l.Declared()
	for i, m := range append(declared, l.Others...) {
		key := ""
		if _, what, ok := strings.Cut(m.Metric, " "); ok && m.Kind == compare.KindLatency {
			key = what
			for _, v := range slices.Concat(m.Baseline, m.Arm) {
				key += " " + words.Figure(v, "")
				if v != nil {
					key += fmt.Sprintf("%b", math.Float64bits(*v))
				}
			}
		}
		decides := i < len(declared)
		if at, ok := index[key]; ok && key != "" && len(m.Baseline) > 0 && !decides {
			all[at].Same = append(all[at].Same, m.Metric)
			continue
		}
		index[key] = len(all)
		all = append(all, equalMetrics{Compared: m, Decides: decides})
	}
	return all
}

// OtherMilestones lists the milestones with the same metric.
func (m equalMetrics) OtherMilestones() string {
	var milestones []string
	for _, name := range m.Same {
		milestone, _, _ := strings.Cut(name, " ")
		milestones = append(milestones, milestone)
	}
	return strings.Join(milestones, ", ")
}

func (m equalMetrics) name() string {
	if len(m.Same) == 0 {
		return m.Called()
	}
	return fmt.Sprintf("%s (and of %s)", m.Called(), m.OtherMilestones())
}

// Compared returns a comparison of recorded experiments for a terminal; of more than two their trends.
func Compared(in ComparisonInput) []Section {
	if in.Comparison == nil {
		return trends(in)
	}
	r := in.result()
	var differ Section
	if d := differenceTable(r.Comparison); d.Any() {
		differ.table(0, d)
	}
	list := append([]Section{differ}, comparison(r.Comparison)...)
	return said(append(list, warned(r.Warnings), Section{Title: Sentence(r)}, fidelities(in.Operands))...)
}

// fidelities says what was simulated in each experiment, once where it is the same in all.
func fidelities(operands []*recorded.Operand) (s Section) {
	var notes []string
	for _, o := range operands {
		notes = append(notes, fidelityNote(o.Result.Fidelity))
	}
	if all := slices.Compact(slices.Clone(notes)); len(all) == 1 && all[0] != "" {
		s.lines("", all...)
		return s
	}
	for i, note := range notes {
		if note != "" {
			s.linef("%s: %s", operands[i].Name, note)
		}
	}
	return s
}

func differenceTable(c *compare.Comparison) Table {
	t := Table{"llll", [][]string{{"difference", c.Baseline, strings.Join(armsOf(c), ", "), ""}}}
	for _, d := range c.Differences {
		what := d.What
		if d.Detail != "" {
			what += " (" + d.Detail + ")"
		}
		t.add(what, cmp.Or(d.Baseline, "-"), cmp.Or(d.Arm, "-"), bearingWord(d.Bearing))
	}
	return t
}

func bearingWord(bearing string) string {
	return cmp.Or(map[string]string{
		compare.BearingArm: "the arm", compare.BearingRefuses: "prevents a verdict",
		compare.BearingMayExplain: "may explain a part", compare.BearingNoted: "note",
	}[bearing], bearing)
}

// comparison shows load lines, and at each level the deciding metrics, their shifts and other differences.
func comparison(c *compare.Comparison) (list []Section) {
	for _, l := range c.Lines {
		s := Section{Title: fmt.Sprintf("load line of goal %s: %s", l.Goal, l.Verdict)}
		s.linef("  %s", l.Why)
		arm := strings.Join(armsOf(c), ", ")
		s.table(2, Table{"rll", [][]string{{c.Baseline, bracketText(l.Baseline, l.Unit), bracketNote(l.Baseline)}, {arm, bracketText(l.Arm, l.Unit), bracketNote(l.Arm)}}})
		list = append(list, s)
	}
	for _, l := range c.Levels {
		verdict := string(l.Verdict)
		if c.Refused != "" {
			verdict = "measured, no verdict"
		} else if c.LinesDecide() {
			verdict += " (does not decide)"
		}
		s := Section{Title: fmt.Sprintf("%s against %s at %s: %s", l.Arm, c.Baseline, words.Number(l.Level), verdict)}
		for _, d := range l.Metrics {
			s.linef("  %s", d.Says())
		}
		if n := len(l.Metrics); n == 0 {
			s.linef("  %s", l.Why)
		} else {
			s.linef("  %s", severalMetrics(c))
		}
		s.lines("  left out: ", l.Excluded...)
		for _, m := range l.Declared() {
			if t := runTable(c, l, m); t.Any() {
				s.table(2, t)
			}
		}
		s.shifts(c, l)
		s.parts(c, l)
		s.others(l)
		s.lines("  note: ", l.Warnings.Lines()...)
		list = append(list, s)
	}
	return list
}

func severalMetrics(c *compare.Comparison) string {
	return fmt.Sprintf("%d metrics decide, each at an error rate of %.4g: the verdict is the first one's, unless another is worse or inconclusive", 1+len(c.Further), c.Alpha)
}

// runTable lists a metric by block, or by run where they were made apart.
func runTable(c *compare.Comparison, l compare.LevelComparison, m compare.Compared) Table {
	run := "run"
	t := Table{"rrr", [][]string{{m.Called(), c.Baseline, l.Arm}}}
	if c.Paired {
		run, t = "block", Table{"rrrr", [][]string{{m.Called(), c.Baseline, l.Arm, "change"}}}
	}
	for i := range max(len(m.Baseline), len(m.Arm)) {
		row := []string{fmt.Sprintf("%s %d", run, i+1), "", "", ""}
		for k, list := range [][]*float64{m.Baseline, m.Arm} {
			if i < len(list) {
				row[1+k] = figureIn(m, list[i])
			}
		}
		if i < min(len(m.Baseline), len(m.Arm)) {
			row[3] = words.Ratio(m.Baseline[i], m.Arm[i])
		}
		t.add(row[:len(t.Align)]...)
	}
	return t
}

func (s *Section) shifts(c *compare.Comparison, l compare.LevelComparison) {
	of := l.SeriesOf(c.Metric)
	if of == nil {
		return
	}
	if t := shiftTable(c, l, *of); t.Any() {
		s.table(2, t)
	}
	if never := neverOf(c, l, *of, strconv.Itoa); len(never) > 0 {
		s.linef("  never %s: %s", of.Milestone, strings.Join(never, ", "))
	}
	if l.Distance == nil || l.Superiority == nil {
		return
	}
	text := fmt.Sprintf("  over all objects: largest distance of the distributions %.3f; an object of %s is later with a probability of %.2f", *l.Distance, l.Arm, *l.Superiority)
	if l.PermutationP != nil {
		text += " (permutation test: p " + number.P(*l.PermutationP)
		if blocks, least := leastP(c, l); blocks > 0 {
			text += fmt.Sprintf("; %d blocks cannot give less than %.3g", blocks, least)
		}
		text += ")"
	}
	s.linef("%s", text)
}

func (s *Section) parts(c *compare.Comparison, l compare.LevelComparison) {
	milestone, _, _ := strings.Cut(c.Metric, " ")
	t := Table{"rrrrr", [][]string{{milestone + " by component", "distance", "later", "p50", "largest shift"}}}
	for _, x := range l.Series {
		if x.Milestone != milestone || x.Component == "" {
			continue
		}
		digits := func(n int) func(float64) string {
			return func(x float64) string { return strconv.FormatFloat(x, 'f', n, 64) }
		}
		row := []string{x.Component, words.Known(x.Distance, digits(3)), words.Known(x.Superiority, digits(2)), "-", "-"}
		for i, shift := range x.Shifts {
			change, _ := changeOfShift(shift, l.Runs)
			if shift.Q == 0.5 {
				row[3] = change
			}
			if i == len(x.Shifts)-1 {
				row[4] = stats.QuantileName(shift.Q) + " " + change
			}
		}
		t.add(row...)
	}
	if t.Any() {
		s.table(2, t)
	}
}

// others lists the descriptive metrics that differ clearly, and says why memory is not compared.
func (s *Section) others(l compare.LevelComparison) {
	t := Table{Align: "lrl"}
	for _, m := range groupMetrics(l) {
		if !m.Decides && differsClearly(m.Compared) {
			t.add(m.name(), words.Change(*m.Change), "("+words.ChangeInterval(m.Lo, m.Hi)+")")
		}
	}
	if len(t.Rows) > 0 {
		s.linef("  other metrics that differ (false discovery rate at most %.0f%%; they do not decide):", 100*maxFalseDiscovery)
		s.table(4, t)
	}
	var reasons []string // why memory is not compared
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
		s.linef("  memory of %s is not compared: %s", strings.Join(processes[reason], ", "), reason)
	}
}

func shiftTable(c *compare.Comparison, l compare.LevelComparison, of compare.SeriesComparison) Table {
	over := "all objects"
	if min(l.Runs[0], l.Runs[1]) > 1 {
		over = "mean of runs"
	}
	t := Table{"rrrrl", [][]string{{of.Milestone + ", " + over, c.Baseline, l.Arm, "change", "interval"}}}
	for _, x := range of.Shifts {
		change, interval := changeOfShift(x, l.Runs)
		t.add(stats.QuantileName(x.Q), words.Figure(x.Baseline, "s"), words.Figure(x.Arm, "s"), change, interval)
	}
	return t
}

// changeOfShift returns a quantile's change with its interval; without one, the change over all objects.
func changeOfShift(x compare.Shift, runs [2]int) (change, interval string) {
	switch {
	case x.Change != nil:
		return words.Change(*x.Change), words.ChangeInterval(x.Lo, x.Hi)
	case x.Baseline == nil || x.Arm == nil:
		return "-", ""
	case min(runs[0], runs[1]) > 1:
		interval = "over all objects: never in some run"
	}
	return words.Ratio(x.Baseline, x.Arm), interval
}

func bracketText(b compare.Bracket, unit string) string {
	switch {
	case b.Level == nil && b.LowestFailing == nil:
		return "unknown"
	case b.Level == nil:
		return strings.TrimSpace(fmt.Sprintf("below %s %s", words.Number(*b.LowestFailing), unit))
	case b.LowestFailing == nil:
		return strings.TrimSpace(fmt.Sprintf("at least %s %s", words.Number(*b.Level), unit))
	}
	return fmt.Sprintf("%s, fails at %s", strings.TrimSpace(words.Number(*b.Level)+" "+unit), words.Number(*b.LowestFailing))
}

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

// figureIn writes a figure of a run. A missing latency was never reached; other figures are unknown.
func figureIn(m compare.Compared, x *float64) string {
	if x == nil && m.Kind != compare.KindLatency {
		return "-"
	}
	return words.Figure(x, m.Unit)
}
