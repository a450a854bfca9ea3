package judge

import (
	"cmp"
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Made is what a design may know of the steps that have ended, by one goal.
func (b *Builder) Made(goal string) []design.Made {
	made := make([]design.Made, 0, len(b.steps))
	for _, s := range b.steps {
		if s.again {
			continue
		}
		m := design.Made{Level: s.Level, Reached: s.LevelReached, Arm: s.Arm, Replicate: s.Replicate, Purpose: s.Purpose, FromEmpty: s.FromEmpty, Full: s.FullHold, Verdict: s.Goals[goal]}
		if s.EffectiveLevel != nil {
			m.Effective = *s.EffectiveLevel
		}
		made = append(made, m)
	}
	return made
}

// NextStep is the first further step that any goal's line needs, the headline
// first, or done once no goal needs one. Stop, if not empty, says why no
// further step can be made.
func (b *Builder) NextStep(d design.Design, stop string) design.Next {
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
	last.Done = true // without any goal nothing can be found out
	return last
}

// Ahead predicts the steps that are left, the next one included, as design.Ahead
// does.
func (b *Builder) Ahead(d design.Design) [][]design.Next {
	made := make([][]design.Made, len(b.spec.Goals))
	for i, g := range b.spec.Goals {
		made[i] = b.Made(g.Name)
	}
	return design.Ahead(d, made)
}

// Finish judges the run. It may be called once, after the last event. A stop
// says why a run that was not finished ended, "" when it was.
func (b *Builder) Finish(d design.Design, fidelity record.Fidelity, stop string) Result {
	b.close()
	for _, w := range slices.Concat(warningsOf(b.steps), b.faults.lasting("to the end")) {
		b.Warn(w)
	}
	if !b.ended && stop == "" {
		stop = "the record ends before the run did"
		b.Warn(record.Warning{Kind: record.WarningCut, Text: "the run was cut off: its record has no end, and up to 100 ms before that may be missing"})
	}
	if stop == "" && b.paused {
		stop = "the rest comes once other cells had their turn"
	}
	if stop == "" {
		// A design that is not done although the run says so was cut.
		stop = b.endWhy
	}
	kind := b.spec.Kind
	kind.Measures, kind.Troubles, kind.Bounds = nil, nil, nil
	if by := kind.GroupBy; by != nil {
		kind.GroupBy = &record.GroupBy{Labels: by.Labels, From: by.From, To: by.To}
	}
	kind.Metrics = slices.DeleteFunc(slices.Clone(kind.Metrics), record.Metric.Everywhere)
	r := Result{
		Schema: ResultSchema, Experiment: b.spec.Experiment, Workload: b.spec.Workload, Kind: b.spec.ExperimentKind,
		Command: b.spec.Command, Version: b.spec.Version, Fidelity: fidelity, ObjectKind: &kind, Arrived: b.spec.Kind.There,
		Goals: []GoalResult{}, Steps: b.Steps(),
		Diagnosis: diagnosisOf(&b.spec, b.steps), Ceilings: []record.Ceiling{}, Cost: b.cost.Cost, Cleanup: b.cleanup, Warnings: b.warnings,
	}
	for i, g := range b.spec.Goals {
		n := d.Next(b.Made(g.Name), stop)
		if !n.Done {
			n = d.Next(b.Made(g.Name), "the run ended before the search was done")
		}
		_, search := d.(design.Search)
		switch _, sweep := d.(design.Sweep); {
		case sweep && n.Outcome.Verdict != slo.Pass:
			n.Outcome.Why += stepThat(b.steps, g.Name, n.Outcome.Verdict, i == 0)
		case search && !n.Outcome.Verdict.Decided():
			// A search makes what does not decide again: the last step ended it.
			n.Outcome.Why += stepThat(b.steps[max(0, len(b.steps)-1):], g.Name, n.Outcome.Verdict, i == 0)
		}
		line := lineOf(&b.spec, b.steps, d, g.Name, n.Outcome)
		r.Goals = append(r.Goals, GoalResult{Name: g.Name, SLO: g.Texts(), LoadLine: line, Verdict: n.Outcome.Verdict, Why: n.Outcome.Why})
		if i == 0 {
			r.Verdict, r.Why, r.LoadLine = n.Outcome.Verdict, n.Outcome.Why, line
		}
	}
	if len(b.spec.Goals) == 0 {
		r.Verdict, r.Why = slo.Inconclusive, "no goal was given"
	}
	r.BrokeFirst = brokeFirst(b.spec.ExperimentKind, b.steps, r.Goals)
	r.Breaches = breachesInOrder(b.steps, b.stray, r.BrokeFirst)
	if r.Fidelity.Notes == nil {
		r.Fidelity.Notes = []string{}
	}
	if r.Warnings == nil {
		r.Warnings = record.Warnings{}
	}
	r.Require = b.spec.Require
	r.ExitCode = exitCodeOf(r.required())
	if b.spec.Arms != nil {
		r.putComparison(comparisonOf(*b.spec.Arms, b.spec.Kind, b.objects.names, b.steps), stop)
	}
	r.Published = publishedFigures(&b.spec, b.objects.names, r)
	r.Laws = LawsOf(b.spec, r.Steps)
	r.Overhead = b.phases.overhead(r.Laws)
	return r
}

// required is the verdict of the goals that the exit code follows: of all, the
// worst.
func (r *Result) required() slo.Verdict {
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

// stepThat names the first step that left a goal with such a verdict, and says
// why where that is known; "" where no step did.
func stepThat(steps []*judged, goal string, verdict slo.Verdict, headline bool) string {
	for _, s := range steps {
		if s.again || s.Goals[goal] != verdict {
			continue
		}
		text := fmt.Sprintf("; step %d is %s", s.ID, verdict)
		broke := slices.IndexFunc(s.Breaches, func(x Breach) bool { return slices.Contains(x.Goals, goal) })
		switch {
		case headline:
			text += ": " + s.VerdictWhy
		case broke >= 0 && verdict == slo.Breached:
			text += ": " + s.Breaches[broke].What
		}
		return text
	}
	return ""
}

// exitCodeOf is the exit code that a verdict ends the program with.
func exitCodeOf(v slo.Verdict) int {
	switch v {
	case slo.Pass:
		return 0
	case slo.Breached:
		return 1
	case slo.Invalid:
		return 4
	default:
		return 3
	}
}

// otherThan is what was asked for where that is not what was made, else nil.
func otherThan(asked, made *float64) *float64 {
	if asked == nil || made == nil || *asked == *made {
		return nil
	}
	return asked
}

// failingAsked is the level that was asked for to make the lowest failing one;
// nil where none failed.
func (l *LoadLine) failingAsked() *float64 { return cmp.Or(l.LowestFailingAsked, l.LowestFailing) }

// lineOf is the line of one goal, nil when the experiment seeks none.
func lineOf(spec *Spec, steps []*judged, d design.Design, goal string, o design.Outcome) *LoadLine {
	s, ok := d.(design.Search)
	if !ok {
		return nil
	}
	line := &LoadLine{
		Axis: spec.Axis, Unit: spec.Unit, Level: o.Line, LowestFailing: o.LowestFailing, Resolution: s.Resolution,
		Confirmations: o.Confirmations, ConfirmationsAsked: s.Need, Mixed: o.Mixed,
	}
	line.LevelAsked, line.LowestFailingAsked = otherThan(o.LineAsked, o.Line), otherThan(o.FailingAsked, o.LowestFailing)
	line.setPassProbability(steps, goal)
	if o.LowestFailing == nil {
		return line
	}
	// The last step at the failing level decided: it was made from empty.
	for i := len(steps) - 1; i >= 0; i-- {
		step := steps[i]
		if step.Level == *o.FailingAsked && step.Goals[goal] == slo.Breached {
			line.EffectiveLevel, line.Binding = step.EffectiveLevel, step.binding[goal]
			break
		}
	}
	return line
}

// setPassProbability states what the confirmations of a line mean.
func (line *LoadLine) setPassProbability(steps []*judged, goal string) {
	if line.Level == nil {
		return
	}
	for _, s := range steps {
		whole := s.Purpose == record.PurposeConfirm || s.Purpose == record.PurposeUpper
		if s.Level == *cmp.Or(line.LevelAsked, line.Level) && whole && s.Goals[goal].Decided() {
			line.ConfirmationsMade++
		}
	}
	line.PassProbability = round(stats.PassProbability(line.Confirmations, line.ConfirmationsMade, confidence), 2)
}

// warningsOf are what the reader must know of how the steps were judged.
func warningsOf(steps []*judged) record.Warnings {
	var warnings record.Warnings
	most := 0.0
	var disturbed []int
	for _, s := range steps {
		if s.others > 0 {
			disturbed = append(disturbed, s.ID)
			most = max(most, s.others)
		}
	}
	if len(disturbed) > 0 {
		warnings.Add(record.Warning{
			Kind: record.WarningCPU, Steps: disturbed, Count: len(disturbed),
			Text: fmt.Sprintf("other programs used up to %.0f%% of this machine's CPUs: the results include their load", most),
		})
	}
	for _, s := range steps {
		if text := s.Concurrent.breach(); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningLimit, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		if s.stood > 0 {
			warnings.Add(record.Warning{
				Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Seconds: s.stood,
				Text: "all writes to the API stood still: what was slow then tells of that, and not of a limit of the load",
			})
		}
		if text := s.Backlog.stall(); text != "" {
			warnings.Add(record.Warning{Kind: record.WarningStandstill, Steps: []int{s.ID}, Count: 1, Text: text})
		}
		for _, what := range s.largest {
			warnings.Add(record.Warning{Kind: record.WarningFewObjects, Text: what, Steps: []int{s.ID}})
		}
	}
	return warnings
}
