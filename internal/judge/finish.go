package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Made returns what a design may know of the steps that have ended, by one goal.
func (b *Builder) Made(goal string) []design.Made {
	made := make([]design.Made, 0, len(b.steps))
	for _, s := range b.steps {
		if s.Again || b.tooShort(s) && !s.Goals[goal].Decided() {
			continue
		}
		m := design.Made{StepPlan: s.StepPlan, Reached: s.LevelReached, Verdict: s.Goals[goal]}
		if s.EffectiveLevel != nil {
			m.Effective = *s.EffectiveLevel
		}
		made = append(made, m)
	}
	return made
}

// NextStep returns the first further step that any goal's line needs, or done. Stop says why none can be.
func (b *Builder) NextStep(d design.Design, stop string) design.Next {
	if stop == "" {
		stop = b.collector.OtherPlaces()
	}
	if n := len(b.steps) - 1; n >= 0 && stop == "" && b.tooShort(b.steps[n]) {
		return b.longer(b.steps[n])
	}
	d = b.without(d)
	var last design.Next
	for i, g := range b.spec.Goals {
		n := d.Next(b.Made(g.Name), stop)
		if !n.Done {
			return n
		}
		if i == 0 {
			last = n
		}
	}
	last.Done = true // also without any goal
	return last
}

// without removes the decided arms from a comparison that goes on until it is decided.
func (b *Builder) without(d design.Design) design.Design {
	if ab, ok := d.(design.AB); ok && b.sequential != nil {
		ab.Left = findings.LeftOf(*b.spec.Arms, b.sequential, b.spec.Kind, b.collector.Milestones(), b.steps)
		return ab
	}
	return d
}

// endOf says how a stop ended a comparison, if it is not empty.
func endOf(stop string) stats.End {
	if stop == "" || strings.Contains(stop, record.BudgetSpent) {
		return stats.OutOfBudget
	}
	return stats.Interrupted
}

// tooShort reports whether a step is repeated with a longer hold, only to judge its backlog.
func (b *Builder) tooShort(s *verdict.Judged) bool {
	return !s.Again && s.Backlog != nil && s.Backlog.Undecided && s.Hold < b.spec.HoldMax && s.Verdict == slo.Inconclusive && s.Ending == record.EndHeld
}

func (b *Builder) longer(s *verdict.Judged) design.Next {
	hold := min(2*s.Hold, b.spec.HoldMax)
	next := design.Next{StepPlan: s.StepPlan, Hold: hold.Duration()}
	next.FromEmpty, next.Why = true, fmt.Sprintf("%.10g again with a hold of %s: one of %s does not tell whether the backlog grows", s.LevelReached, hold.Duration(), s.Hold.Duration())
	return next
}

// Ahead predicts the steps that are left, the next one included, as design.Ahead does.
func (b *Builder) Ahead(d design.Design) [][]design.Next {
	made := make([][]design.Made, len(b.spec.Goals))
	for i, g := range b.spec.Goals {
		made[i] = b.Made(g.Name)
	}
	return design.Ahead(b.without(d), made)
}

// Finish judges the run, once, after the last event. Stop says why it is not finished, or "".
func (b *Builder) Finish(d design.Design, fidelity record.Fidelity, stop string) result.Result {
	b.close()
	for _, w := range slices.Concat(findings.WarningsOf(b.steps, b.spec.Kind.There), b.collector.Lasting()) {
		b.Warn(w)
	}
	if !b.ended && stop == "" {
		stop = "the record ends before the run did"
		b.Warn(record.Warning{Kind: record.WarningCut, Text: "the run was cut off: its record has no end, and up to 100 ms before that may be missing"})
	}
	// The warnings of the removal come last; see Amend.
	slices.SortStableFunc(b.warnings, func(x, y record.Warning) int {
		return result.CompareBool(x.Kind == record.WarningCleanup, y.Kind == record.WarningCleanup)
	})
	if stop == "" && b.paused {
		stop = "the rest comes once other cells had their turn"
	}
	stop = cmp.Or(stop, b.endWhy, b.collector.OtherPlaces()) // an unfinished design was cut, whatever the run says
	d = b.without(d)
	kind := b.spec.Kind
	kind.Measures, kind.Troubles, kind.Bounds = nil, nil, nil
	if by := kind.GroupBy; by != nil {
		kind.GroupBy = &record.GroupBy{Labels: by.Labels, From: by.From, To: by.To}
	}
	kind.Metrics = slices.DeleteFunc(slices.Clone(kind.Metrics), record.Metric.Everywhere)
	r := result.Result{
		Schema: result.Schema, Experiment: b.spec.Experiment, Workload: b.spec.Workload, Kind: b.spec.ExperimentKind,
		Command: b.spec.Command, Version: b.spec.Version, Fidelity: fidelity, ObjectKind: kind, Arrived: b.spec.Kind.There,
		Goals: []result.GoalResult{}, Steps: b.Steps(),
		Diagnosis: findings.DiagnosisOf(&b.spec, b.steps), Ceilings: []record.Ceiling{}, Cost: b.collector.OwnCost(), Cleanup: b.cleanup, Warnings: b.warnings,
	}
	for i, g := range b.spec.Goals {
		n := d.Next(b.Made(g.Name), stop)
		if !n.Done {
			n = d.Next(b.Made(g.Name), "the run ended before the search was done")
		}
		_, search := d.(design.Search)
		that := ""
		switch _, sweep := d.(design.Sweep); {
		case sweep && n.Outcome.Verdict != slo.Pass:
			that = stepThat(b.steps, g.Name, n.Outcome.Verdict, i == 0)
		case search && !n.Outcome.Verdict.Decided():
			that = stepThat(b.steps[max(0, len(b.steps)-1):], g.Name, n.Outcome.Verdict, i == 0) // it repeats others
		}
		if stop == "" || !strings.HasSuffix(that, stop) || !strings.Contains(n.Outcome.Why, stop) { // no repetition
			n.Outcome.Why += that
		}
		line := findings.LineOf(&b.spec, b.steps, d, g.Name, n.Outcome)
		r.Goals = append(r.Goals, result.GoalResult{Name: g.Name, SLO: g.Texts(), LoadLine: line, Verdict: n.Outcome.Verdict, Why: n.Outcome.Why})
		if i == 0 {
			r.Verdict, r.Why, r.LoadLine = n.Outcome.Verdict, n.Outcome.Why, line
		}
	}
	if len(b.spec.Goals) == 0 {
		r.Verdict, r.Why = slo.Inconclusive, "no goal was given"
	}
	r.BrokeFirst = findings.BrokeFirst(b.spec.ExperimentKind, b.steps, r.Goals)
	r.Breaches = findings.BreachesInOrder(b.steps, b.stray, r.BrokeFirst)
	if r.Fidelity.Notes == nil {
		r.Fidelity.Notes = []string{}
	}
	if r.Warnings == nil {
		r.Warnings = record.Warnings{}
	}
	r.Require = b.spec.Require
	r.ExitCode = exitCodeOf(required(&r))
	if b.spec.Arms != nil {
		putComparison(&r, findings.ComparisonOf(*b.spec.Arms, b.sequential, endOf(stop), b.spec.Kind, b.collector.Milestones(), b.steps), stop)
	}
	b.damage.undecide(&r)
	if b.signal != 0 {
		r.ExitCode = b.signal
	}
	r.Published = findings.PublishedFigures(&b.spec, b.collector.Milestones(), r)
	r.Laws = findings.LawsOf(b.spec, r.Steps)
	r.Overhead = findings.OverheadOf(b.collector.Phases(), r.Laws)
	return r
}

// required returns the verdict of the goals that the exit code follows: the worst.
func required(r *result.Result) slo.Verdict {
	if r.Require == "" || len(r.Goals) == 0 {
		return r.Verdict
	}
	verdict := slo.Pass
	for _, g := range r.Goals {
		if (r.Require == plan.RequireAll || r.Require == g.Name) && exitCodeOf(g.Verdict) > exitCodeOf(verdict) {
			verdict = g.Verdict
		}
	}
	return verdict
}

// stepThat names the first step that left a goal with such a verdict, and says why; "" without one.
func stepThat(steps []*verdict.Judged, goal string, verdict slo.Verdict, headline bool) string {
	for _, s := range steps {
		if s.Again || s.Goals[goal] != verdict {
			continue
		}
		text := fmt.Sprintf("; step %d is %s", s.ID, verdict)
		if verdict == slo.Fail {
			text = fmt.Sprintf("; step %d failed", s.ID)
		}
		broke := slices.IndexFunc(s.Breaches, func(x result.Breach) bool { return slices.Contains(x.Goals, goal) })
		switch {
		case headline:
			text += ": " + s.VerdictWhy
		case broke >= 0 && verdict == slo.Fail:
			text += ": " + s.Breaches[broke].What
		}
		return text
	}
	return ""
}

func exitCodeOf(v slo.Verdict) int {
	if code, ok := map[slo.Verdict]int{slo.Pass: 0, slo.Fail: 1, slo.Invalid: 4}[v]; ok {
		return code
	}
	return 3
}

func putComparison(r *result.Result, c *compare.Comparison, stop string) {
	r.Comparison = c
	verdict, why := c.Verdict()
	sequential := len(c.Levels) > 0 && !slices.ContainsFunc(c.Levels, func(l compare.LevelComparison) bool { return l.Sequential == nil })
	switch {
	case stop == "":
	case sequential:
		why += "; " + stop
	default: // fewer runs than planned decide nothing: the end would depend on what was seen
		verdict, why = stats.Undecided, why+"; "+stop
	}
	r.Verdict, r.Why, r.ExitCode = slo.Verdict(verdict), why, compare.ExitCode(verdict)
	invalid := 0
	for _, s := range r.Steps {
		if s.Verdict == slo.Invalid {
			invalid++
		}
	}
	if verdict == stats.Undecided && invalid > 0 && 2*invalid >= len(r.Steps) {
		r.Verdict, r.Why, r.ExitCode = slo.Invalid, fmt.Sprintf("%d of %d runs are invalid; %s", invalid, len(r.Steps), why), exitCodeOf(slo.Invalid)
	}
}
