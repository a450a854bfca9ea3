package design

import (
	"math"

	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// maxAhead bounds how many steps are predicted.
const maxAhead = 500

// Ahead predicts the steps that a design still makes, given those made so far
// by each goal, in three cases: each goal's line is where the objects that were
// ready at the lowest level that failed say, at the highest level that held, or
// just below the lowest that failed. It is for an estimate of the time that is left, and
// decides nothing.
func Ahead(d Design, made [][]Made) [][]Next {
	told, held, below := make([]float64, len(made)), make([]float64, len(made)), make([]float64, len(made))
	for i, steps := range made {
		below[i] = math.Inf(1)
		for _, m := range steps {
			switch m.Verdict {
			case slo.Pass:
				held[i] = max(held[i], m.Level)
			case slo.Breached:
				if under := math.Nextafter(m.Level, 0); under < below[i] {
					below[i], told[i] = under, min(m.Effective, under)
				}
			}
		}
		told[i] = max(told[i], held[i])
	}
	return [][]Next{predict(d, made, told, true), predict(d, made, held, false), predict(d, made, below, false)}
}

// predict plays a design on, with the line of each goal where it is guessed to
// be. Partly says that of a level that fails as many objects are ready as the
// line holds; else all of them do, only too late.
func predict(d Design, made [][]Made, lines []float64, partly bool) []Next {
	goals := make([][]Made, len(made))
	for i := range made {
		goals[i] = append([]Made{}, made[i]...) // steps are added to it
	}
	var ahead []Next
	for len(ahead) < maxAhead {
		next := Next{Done: true}
		for i := 0; i < len(goals) && next.Done; i++ {
			next = d.Next(goals[i], "")
		}
		if next.Done {
			break
		}
		ahead = append(ahead, next)
		for i, line := range lines {
			m := Made{
				StepPlan: next.StepPlan,
				Verdict:  slo.Pass, Effective: next.Level,
			}
			if next.Level > line {
				m.Verdict = slo.Breached
				if partly {
					m.Effective = line
				}
			}
			goals[i] = append(goals[i], m)
		}
	}
	return ahead
}
