package findings

import (
	"cmp"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// otherThan is what was asked for where that is not what was made, else nil.
func otherThan(asked, made *float64) *float64 {
	if asked == nil || made == nil || *asked == *made {
		return nil
	}
	return asked
}

// LineOf is the line of one goal, nil when the experiment seeks none.
func LineOf(spec *result.Spec, steps []*verdict.Judged, d design.Design, goal string, o design.Outcome) *result.LoadLine {
	s, ok := d.(design.Search)
	if !ok {
		return nil
	}
	line := &result.LoadLine{
		Axis: spec.Axis, Unit: spec.Unit, Level: o.Line, LowestFailing: o.LowestFailing, Resolution: s.Resolution,
		Confirmations: o.Confirmations, ConfirmationsAsked: s.Need, Mixed: o.Mixed,
	}
	line.LevelAsked, line.LowestFailingAsked = otherThan(o.LineAsked, o.Line), otherThan(o.FailingAsked, o.LowestFailing)
	setPassProbability(line, steps, goal)
	if o.LowestFailing == nil {
		return line
	}
	// The last step at the failing level decided: it was made from empty.
	for i := len(steps) - 1; i >= 0; i-- {
		step := steps[i]
		if step.Level == *o.FailingAsked && step.Goals[goal] == slo.Breached {
			line.EffectiveLevel, line.Binding = step.EffectiveLevel, step.Binding[goal]
			break
		}
	}
	return line
}

// setPassProbability states what the confirmations of a line mean.
func setPassProbability(line *result.LoadLine, steps []*verdict.Judged, goal string) {
	if line.Level == nil {
		return
	}
	for _, s := range steps {
		whole := s.Purpose == record.PurposeConfirm || s.Purpose == record.PurposeUpper
		if s.Level == *cmp.Or(line.LevelAsked, line.Level) && whole && s.Goals[goal].Decided() {
			line.ConfirmationsMade++
		}
	}
	line.PassProbability = result.Round(stats.PassProbability(line.Confirmations, line.ConfirmationsMade, result.Confidence), 2)
}
