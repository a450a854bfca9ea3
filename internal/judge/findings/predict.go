package findings

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// AddPredictions puts into a result what was known before any load, beside what the run has found of it.
func AddPredictions(r *result.Result, e record.Environment) {
	for _, f := range e.Findings {
		w := f.Warning()
		w.Text = "before any load, " + w.Text
		r.Warnings.Add(w)
	}
	if e.Ceilings == nil {
		return
	}
	r.Ceilings = e.Ceilings.Ceilings
	if r.Ceilings == nil {
		r.Ceilings = []record.Ceiling{}
	}
	if r.Comparison != nil {
		return // it asks for no level
	}
	r.Prediction = ceiling.Predicted(e.Ceilings, outcomeOf(r))
}

// outcomeOf is what the headline goal has found: of a search its line, else the
// highest level that held below the lowest that did not.
func outcomeOf(r *result.Result) ceiling.Outcome {
	var o ceiling.Outcome
	failing := func(s result.Step) bool { return o.LowestFailing != nil && s.LevelReached == *o.LowestFailing }
	if l := r.LoadLine; l != nil {
		failing = func(s result.Step) bool { return l.LowestFailing != nil && s.Level == *l.FailingAsked() }
		o = ceiling.Outcome{Level: l.Level, LowestFailing: l.LowestFailing, Binding: l.Binding}
	} else {
		o = outcomeOfSteps(r)
	}
	for _, s := range r.Steps {
		if failing(s) && s.Verdict.Decided() {
			o.Made++
			if s.Verdict == slo.Pass {
				o.Held++
			}
		}
		// The last one at the level decided: it was made from empty.
		if failing(s) && s.Verdict == slo.Breached && len(s.Reasons) > 0 {
			o.Message = s.Reasons[0].Message
		}
	}
	return o
}

func outcomeOfSteps(r *result.Result) (o ceiling.Outcome) {
	kind := r.ObjectKind
	steps := r.Steps
	for i := range steps {
		if s := &steps[i]; s.Verdict == slo.Breached && (o.LowestFailing == nil || s.LevelReached < *o.LowestFailing) {
			o.LowestFailing, o.Binding = &s.LevelReached, s.VerdictWhy
			// What kept objects from being ready names the cause only where that is
			// what the step broke on.
			silent := slices.ContainsFunc(s.Breaches, func(b result.Breach) bool { return b.Kind == result.BreachActor })
			if !silent && slices.ContainsFunc(r.Breaches, func(b result.Breach) bool {
				return b.Step == s.ID && b.Decided && (b.Kind == result.BreachMissing || b.Kind == result.BreachErrors)
			}) {
				o.Binding = cmp.Or(result.Binding(&kind, s.Reasons), s.VerdictWhy)
			}
		}
	}
	for i := range steps {
		s := &steps[i]
		if s.Verdict == slo.Pass && (o.LowestFailing == nil || s.LevelReached < *o.LowestFailing) && (o.Level == nil || s.LevelReached > *o.Level) {
			o.Level = &s.LevelReached
		}
	}
	return o
}
