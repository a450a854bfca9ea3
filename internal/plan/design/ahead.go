package design

import (
	"math"

	"plimsoll.dev/plimsoll/internal/plan/slo"
)

const maxAhead = 500

// Ahead predicts the further steps of a design after those of each goal, to estimate the time. It takes three
// lines: as the ready objects suggest, the highest level that held, and just below the lowest that failed.
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

// predict continues a design with guessed lines. With partly, a failing level has only the line's objects
// ready.
func predict(d Design, made [][]Made, lines []float64, partly bool) []Next {
	goals := make([][]Made, len(made))
	for i := range made {
		goals[i] = append([]Made{}, made[i]...)
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
			m := Made{StepPlan: next.StepPlan, Verdict: slo.Pass, Effective: next.Level}
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
