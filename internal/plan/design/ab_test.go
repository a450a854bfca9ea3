package design

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

func TestABMakesEveryRunOnceInBlocks(t *testing.T) {
	d := AB{Arms: []string{"a", "b", "c"}, Levels: []float64{10, 20}, Repeat: 20, Seed: 7}
	var made []Made
	first := map[string]int{}
	for {
		n := d.Next(made, "")
		if n.Done {
			break
		}
		if !n.FromEmpty || !n.FullHold {
			t.Fatalf("run %d is not a whole one from empty: %+v", len(made), n)
		}
		if len(made)%3 == 0 {
			first[n.Arm]++
		}
		made = append(made, Made{StepPlan: n.StepPlan, Verdict: slo.Pass})
	}
	if len(made) != 3*2*20 {
		t.Fatalf("%d runs", len(made))
	}
	for block := 0; block < len(made); block += 3 {
		arms := map[string]bool{}
		for _, m := range made[block : block+3] {
			arms[m.Arm] = true
			if m.Level != made[block].Level || m.Replicate != made[block].Replicate {
				t.Errorf("block %d is of two levels or replicates", block/3)
			}
		}
		if len(arms) != 3 {
			t.Errorf("block %d has the arms %v", block/3, arms)
		}
	}
	for arm, n := range first {
		if n < 5 || n > 25 {
			t.Errorf("arm %s is first in %d of 40 blocks: the order is not drawn", arm, n)
		}
	}
	if again := (AB{Arms: d.Arms, Levels: d.Levels, Repeat: 20, Seed: 7}).Next(nil, ""); again.Arm != made[0].Arm {
		t.Error("the same seed begins otherwise")
	}
}

func TestABMakesInvalidRunsOnceMore(t *testing.T) {
	d := AB{Arms: []string{"a", "b"}, Levels: []float64{10}, Repeat: 1, Seed: 1}
	n := d.Next(nil, "")
	made := []Made{{StepPlan: record.StepPlan{Level: 10, Arm: n.Arm, Replicate: 1}, Verdict: slo.Invalid}}
	if again := d.Next(made, ""); again.Arm != n.Arm {
		t.Errorf("after an invalid run of %s comes %+v", n.Arm, again)
	}
	made = append(made, made[0])
	if other := d.Next(made, ""); other.Arm == n.Arm || other.Done {
		t.Errorf("after two invalid runs of %s comes %+v", n.Arm, other)
	}
	if cut := d.Next(made, "the budget is spent"); !cut.Done || cut.Outcome.Verdict != slo.Inconclusive {
		t.Errorf("cut: %+v", cut)
	}
	// A breach is a result like any other.
	made = append(made, Made{StepPlan: record.StepPlan{Level: 10, Arm: d.Next(made, "").Arm, Replicate: 1}, Verdict: slo.Fail})
	if end := d.Next(made, ""); !end.Done || end.Outcome.Verdict != slo.Pass {
		t.Errorf("end: %+v", end)
	}
}

// Of four blocks two have the orders of the other two, reversed: an arm stands as
// often first as last.
func TestABBalancesOrdersInFours(t *testing.T) {
	for seed := range uint64(20) {
		d := AB{Arms: []string{"a", "b", "c"}, Levels: []float64{10}, Repeat: 8, Seed: seed}
		for from := 1; from <= 8; from += 4 {
			place := make(map[string]int)
			for replicate := from; replicate < from+4; replicate++ {
				for i, arm := range d.order(replicate, 0) {
					place[arm] += i
				}
			}
			if place["a"] != 4 || place["b"] != 4 || place["c"] != 4 {
				t.Errorf("seed %d: from block %d on the places add up to %v, want 4 of each", seed, from, place)
			}
		}
	}
}

// An arm that is decided has no further run, and the baseline none where it is the
// only one left.
func TestABLeavesOutWhatIsDecided(t *testing.T) {
	d := AB{Arms: []string{"a", "b", "c"}, Levels: []float64{10, 20}, Repeat: 2, Seed: 3}
	d.Left = map[Pair]bool{{"b", 10}: true, {"b", 20}: true, {"c", 20}: true}
	var made []Made
	for {
		n := d.Next(made, "")
		if n.Done {
			if n.Outcome.Verdict != slo.Pass || n.Outcome.Why != "4 of at most 12 runs were made" {
				t.Errorf("%+v", n.Outcome)
			}
			break
		}
		made = append(made, Made{StepPlan: n.StepPlan, Verdict: slo.Pass})
		if n.Arm == "b" || n.Level != 10 {
			t.Errorf("%s at %g has a run", n.Arm, n.Level)
		}
	}
	if len(made) != 4 {
		t.Errorf("%d runs, want two blocks of a and c", len(made))
	}
}
