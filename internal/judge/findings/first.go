package findings

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// functionalMaximum is the conclusion of the second source document from a limit whose cause is unknown.
const functionalMaximum = "a limit of one or more components was reached; the functional maximum is lower than these conditions"

// noLimit is the conclusion where a standstill came first.
const noLimit = "all writes stood still before anything else broke: that is not a limit of the load, and the step should be made again"

// silent is the conclusion where an actor did nothing.
const silent = "nothing was used up: that is not a limit of the load, and the step should be made again"

// BrokeFirst finds what broke first in the step that decided. Without one it is an idle actor in a step
// that did not hold, or the change of a place. It returns nil where every goal held.
func BrokeFirst(kind string, steps []*verdict.Judged, goals []result.GoalResult) *result.BrokeFirst {
	says := ""
	if kind == "limit" {
		says = functionalMaximum
	}
	for _, g := range goals {
		c := decidingStep(steps, g)
		if c == nil {
			continue
		}
		i := verdict.FirstOf(c.Breaches)
		if i < 0 {
			continue
		}
		first := c.Breaches[i]
		first.First = true
		other := func(x result.Breach) bool {
			return x.Decided && x.Kind != result.BreachLatency && x.Kind != result.BreachAchieved
		}
		switch {
		case says != "" && len(c.Reasons) > 0 && result.Top(c.Reasons).Mistaken():
			says = "the server refused the content of requests: a mistake in the workload, not a limit"
		case first.Kind == result.BreachActor:
			says = silent
		case first.Kind == result.BreachStandstill && !slices.ContainsFunc(c.Breaches, other):
			says = noLimit
		}
		return &result.BrokeFirst{Goal: g.Name, Step: c.ID, Level: c.LevelReached, Breach: first, Says: says, Conditions: c.Conditions}
	}
	for _, c := range steps {
		i := verdict.FirstOf(c.Breaches)
		if i < 0 || c.Verdict == slo.Pass || len(goals) == 0 {
			continue
		}
		first, says := c.Breaches[i], silent
		switch first.Kind {
		case result.BreachActor:
		case result.BreachPlace:
			says = ""
		default:
			continue
		}
		first.First = true
		return &result.BrokeFirst{Goal: goals[0].Name, Step: c.ID, Level: c.LevelReached, Breach: first, Says: says, Conditions: c.Conditions}
	}
	return nil
}

// decidingStep returns the step that a goal failed in: the last one at the lowest failing level, made
// from empty, or without a line the one at the lowest level; nil where the goal did not fail.
func decidingStep(steps []*verdict.Judged, g result.GoalResult) *verdict.Judged {
	var best *verdict.Judged
	for _, s := range steps {
		if s.Again || s.Goals[g.Name] != slo.Fail {
			continue
		}
		if l := g.LoadLine; l != nil && l.LowestFailing != nil {
			if s.Level == *l.FailingAsked() {
				best = s
			}
			continue
		}
		if best == nil || s.LevelReached < best.LevelReached {
			best = s
		}
	}
	return best
}

// BreachesInOrder returns the breaches of all steps, and of guards outside of steps; it marks the first.
func BreachesInOrder(steps []*verdict.Judged, stray []result.Breach, first *result.BrokeFirst) []result.Breach {
	list := slices.Clone(stray)
	for _, s := range steps {
		list = append(list, s.Breaches...)
	}
	slices.SortStableFunc(list, func(x, y result.Breach) int { return cmp.Compare(x.At, y.At) })
	for i := range list {
		x := &list[i]
		x.First = first != nil && x.Step == first.Step && x.Kind == first.Breach.Kind && x.What == first.Breach.What
	}
	if list == nil {
		list = []result.Breach{}
	}
	return list
}

// DiagnosisOf returns the known failures that the steps show, failed steps first, with all evidence.
func DiagnosisOf(spec *result.Spec, steps []*verdict.Judged) []result.Diagnosis {
	list := []result.Diagnosis{}
	at := make(map[string]int)
	var shown []signature.Hit // of each, the one with the evidence
	for _, c := range steps {
		if c.Again {
			continue
		}
		for _, hit := range c.Hits {
			s := hit.Signature
			i, known := at[s.Name]
			if !known {
				i = len(list)
				at[s.Name] = i
				shown = append(shown, hit)
				list = append(list, result.Diagnosis{Signature: s.Name, Title: signature.OneLine(s.Title), Explanation: signature.OneLine(s.Explain), Remedy: signature.OneLine(s.Remedy), Source: s.Source})
			}
			d := &list[i]
			if !known || c.Failed() && !d.Failing {
				shown[i] = hit
				d.Step, d.First, d.Failing, d.Matches = c.ID, spec.Wall(hit.First), c.Failed(), []result.Match{}
				for _, sample := range hit.Matches {
					d.Matches = append(d.Matches, result.Match{Time: spec.Wall(sample.T), Object: sample.Object, Text: signature.OneLine(sample.Text)})
				}
			}
			d.Count += hit.Count
			d.Steps = append(d.Steps, c.ID)
		}
	}
	for i := range list {
		shown[i].Count = list[i].Count // of all the steps that the diagnosis names
		list[i].Evidence = shown[i].Text()
	}
	slices.SortStableFunc(list, func(x, y result.Diagnosis) int {
		return cmp.Or(result.CompareBool(y.Failing, x.Failing), cmp.Compare(x.First, y.First))
	})
	return list
}
