package findings

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// otherThan returns the requested level where another one was made, else nil.
func otherThan(asked, made *float64) *float64 {
	if asked == nil || made == nil || *asked == *made {
		return nil
	}
	return asked
}

// LineOf returns the line of one goal, nil when the experiment seeks none.
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
	steps = slices.DeleteFunc(slices.Clone(steps), func(x *verdict.Judged) bool { return x.Again || !x.Goals[goal].Decided() })
	setPassProbability(line, steps, goal)
	setEstimate(line, steps, goal)
	setSustained(line, steps, goal)
	if x := decidingStep(steps, result.GoalResult{Name: goal, LoadLine: line}); x != nil && o.LowestFailing != nil {
		line.EffectiveLevel, line.Binding = x.EffectiveLevel, x.Binding[goal]
	}
	return line
}

func setSustained(line *result.LoadLine, steps []*verdict.Judged, goal string) {
	var rates []float64
	for _, s := range steps {
		if line.Level != nil && s.Level == *cmp.Or(line.LevelAsked, line.Level) && s.FullHold && s.Goals[goal] == slo.Pass && s.AchievedRate != nil && (s.Open || s.Streams()) {
			rates = append(rates, *s.AchievedRate)
		}
	}
	if len(rates) > 0 {
		line.Sustained = new(result.Digits(stat.Mean(rates, nil)))
	}
}

// setPassProbability states what a level's steps from empty prove, given the choice of levels.
func setPassProbability(line *result.LoadLine, steps []*verdict.Judged, goal string) {
	if line.Level == nil {
		return
	}
	passed, made := 0, 0
	for _, s := range steps {
		if s.Level != *cmp.Or(line.LevelAsked, line.Level) || !s.FromEmpty || !s.FullHold {
			continue
		}
		made++
		if s.Goals[goal] == slo.Pass {
			passed++
		}
		if s.Purpose.Confirms() {
			line.ConfirmationsMade++
		}
	}
	const doubt = (1 - result.Confidence) / design.Candidates
	line.PassProbability = result.Round(stats.PassProbability(passed, made, 1-doubt), 2)
}

const partly = 0.75 // weight of a step that did not begin from empty, or was held for a shorter time

// setEstimate estimates where half of the steps hold; exact where all places were full without dispute. It
// sets nothing where such a limit is not confirmed.
func setEstimate(line *result.LoadLine, steps []*verdict.Judged, goal string) {
	var trials []stats.Trial
	hard := line.Level != nil && line.LowestFailing != nil
	for _, s := range steps {
		t := stats.Trial{Level: s.LevelReached, Passed: s.Goals[goal] == slo.Pass, Weight: partly}
		if s.FromEmpty && s.FullHold {
			t.Weight = 1
		}
		trials = append(trials, t)
		switch {
		case line.Level == nil || line.LowestFailing == nil:
		case t.Passed && t.Level >= *line.LowestFailing, !t.Passed && t.Level <= *line.Level, !t.Passed && t.Level == *line.LowestFailing && !s.Exact:
			hard = false
		}
	}
	if line.Exact = hard && line.Confirmations >= line.ConfirmationsAsked; line.Exact {
		line.Estimate, line.Interval = line.Level, &result.Range{Lo: line.Level, Hi: line.LowestFailing}
	}
	if hard {
		return // a curve would make it look soft
	}
	e, ok := stats.FindCrossing(trials, result.Confidence)
	if !ok {
		return
	}
	if line.Level != nil {
		e.Lo = min(e.Lo, *line.Level)
	}
	if line.LowestFailing != nil {
		e.Hi = max(e.Hi, *line.LowestFailing)
	}
	e.Value = min(max(e.Value, e.Lo), e.Hi)
	if line.LowestFailing == nil || math.IsInf(e.Hi, 1) {
		e.Value = math.NaN() // it lies anywhere above
	}
	line.Estimate, line.Interval = result.Significant(e.Value), &result.Range{Lo: result.Significant(e.Lo), Hi: result.Significant(e.Hi)}
}
