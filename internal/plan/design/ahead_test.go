package design

import (
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// What is foreseen holds what a target with a hard limit makes a search do, at
// every point of it.
func TestAheadHoldsWhatComes(t *testing.T) {
	for _, tt := range []struct {
		why string
		d   Design
		sys target
	}{
		{"failures that tell where the line is", Search{From: 10, Step: 10, Max: 90, Resolution: 1, Need: 3, Of: 3}, hard(37)},
		{"failures that do not", Search{From: 10, Step: 10, Max: 90, Resolution: 1, Need: 3, Of: 3}, func(level float64, _ int) (slo.Verdict, float64) {
			verdict, _ := hard(37)(level, 0)
			return verdict, level
		}},
		{"nothing fails", Search{From: 10, Step: 10, Max: 90, Resolution: 1, Need: 1, Of: 1}, hard(1000)},
		{"the first level fails", Search{From: 10, Step: 10, Max: 90, Resolution: 1, Need: 3, Of: 3}, hard(3)},
		{"given levels", Sweep{Levels: []float64{1, 5, 2}}, hard(3)},
	} {
		made, _ := drive(t, tt.d, tt.sys)
		for i := range made {
			fewest, most := maxAhead, 0
			for _, steps := range Ahead(tt.d, [][]Made{made[:i]}) {
				fewest, most = min(fewest, len(steps)), max(most, len(steps))
				if steps[0].Level != made[i].Level || steps[0].Purpose != made[i].Purpose {
					t.Errorf("%s: after %s the next step is foreseen as %+v", tt.why, path(made[:i]), steps[0])
				}
			}
			// While nothing has failed, the line may lie where a failure tells more
			// than any of the three cases supposes.
			if left := len(made) - i; left > most || left < fewest-1 || left < fewest && failed(made[:i]) {
				t.Errorf("%s: after %s there are %d steps left, and from %d to %d were foreseen", tt.why, path(made[:i]), left, fewest, most)
			}
		}
	}
}

func failed(made []Made) bool {
	return slices.ContainsFunc(made, func(m Made) bool { return m.Verdict == slo.Fail })
}

func TestAheadCountsTheRunsOfArms(t *testing.T) {
	d := AB{Arms: []string{"a", "b"}, Levels: []float64{5}, Repeat: 4, Seed: 1}
	first := d.Next(nil, "")
	made := []Made{{StepPlan: record.StepPlan{Level: 5, Arm: first.Arm, Replicate: first.Replicate}, Verdict: slo.Fail}}
	for i, steps := range Ahead(d, [][]Made{made}) {
		if len(steps) != 7 {
			t.Errorf("case %d: %d runs are left of 8 after one", i, len(steps))
		}
	}
}

// Every goal's line is sought before a search is done.
func TestAheadCountsAllGoals(t *testing.T) {
	d := Search{From: 10, Step: 10, Max: 40, Resolution: 1, Need: 1, Of: 1}
	low, high := []Made{{StepPlan: record.StepPlan{Level: 10}, Verdict: slo.Pass, Effective: 10}, {StepPlan: record.StepPlan{Level: 20}, Verdict: slo.Fail, Effective: 20}},
		[]Made{{StepPlan: record.StepPlan{Level: 10}, Verdict: slo.Pass, Effective: 10}, {StepPlan: record.StepPlan{Level: 20}, Verdict: slo.Pass, Effective: 20}}
	for i, steps := range Ahead(d, [][]Made{low, high}) {
		if alone := Ahead(d, [][]Made{low})[i]; len(steps) <= len(alone) {
			t.Errorf("case %d: %d steps for two goals, %d for one of them", i, len(steps), len(alone))
		}
	}
}
