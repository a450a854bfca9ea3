package findings

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// AddPredictions puts the findings before any load into a result, beside those of the run.
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

// outcomeOf returns the headline's line, or the highest level that held below the lowest that did not.
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
		if failing(s) && s.Verdict == slo.Fail && len(s.Reasons) > 0 {
			o.Message = s.Reasons[0].Message // the last one counts: it was made from empty
		}
	}
	return o
}

func outcomeOfSteps(r *result.Result) (o ceiling.Outcome) {
	kind := r.ObjectKind
	steps := r.Steps
	for i := range steps {
		if s := &steps[i]; s.Verdict == slo.Fail && (o.LowestFailing == nil || s.LevelReached < *o.LowestFailing) {
			o.LowestFailing, o.Binding = &s.LevelReached, s.VerdictWhy
			// The reasons of objects name the cause only where missing objects or errors broke the step.
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
