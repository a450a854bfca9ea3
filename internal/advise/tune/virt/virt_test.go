package virt

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The slow twin moves machine after machine: in each wave every node sends as
// many as it may, as long as the cluster allows more.
func TestWavesEqualTheirSlowTwin(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for range 2000 {
		d := drainPlan{int64(1 + random.IntN(500)), int64(1 + random.IntN(30)), int64(1 + random.IntN(12)), int64(1 + random.IntN(30)), int64(1 + random.IntN(6))}
		slowWaves, slowRounds := int64(0), int64(0)
		left, nodes := d.machines, d.nodes
		for nodes > 0 {
			m := min(d.unavailable, nodes)
			here := (left*m + nodes - 1) / nodes
			on := make([]int64, m)
			for i := range here {
				on[i%m]++
			}
			for moved := int64(0); moved < here; slowWaves++ {
				budget := d.cluster
				// The fullest nodes first, one machine of each in turn.
				sent := make([]int64, m)
				for budget > 0 {
					best := -1
					for i := range on {
						if on[i] > 0 && sent[i] < d.node && (best < 0 || on[i] > on[best]) {
							best = i
						}
					}
					if best < 0 {
						break
					}
					on[best]--
					sent[best]++
					budget--
					moved++
				}
			}
			left -= here
			nodes -= m
			slowRounds++
		}
		waves, rounds := d.waves()
		if rounds != slowRounds || waves > slowWaves || waves < slowWaves-slowRounds {
			t.Fatalf("%+v: %d waves in %d rounds, want %d in %d", d, waves, rounds, slowWaves, slowRounds)
		}
	}
}

// What was planted is found again.
func TestCalibrateFindsWhatWasPlanted(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	for range 5 {
		planted := CloneModel{Workers: 10, Lock: 0.2 + random.Float64()*8, Work: 1, Penalty: math.Pow(10, -4+2*random.Float64()), Bulk: random.Float64() * 60}
		var readings []CloneReading
		for _, b := range []int{5, 20, 50, 100, 200, 300} {
			readings = append(readings, CloneReading{Bulk: b, Seconds: planted.BulkTime(b, 0)})
		}
		start := planted
		start.Lock, start.Bulk, start.Penalty = 0, 2, 0
		got, worst := start.Calibrate(readings, true)
		if math.Abs(got.Lock-planted.Lock) > 0.1*planted.Lock || worst > 0.03 {
			t.Errorf("planted %+v, found %+v, worst %.1f%%", planted, got, 100*worst)
		}
		// What it is for: the best bulk is as good as with what was planted.
		bestBulk := func(m CloneModel) (best int) {
			for _, b := range bulkSizes(1000) {
				if best == 0 || m.Total(1000, b) < m.Total(1000, best) {
					best = b
				}
			}
			return best
		}
		if a, b := planted.Total(1000, bestBulk(got)), planted.Total(1000, bestBulk(planted)); a > 1.05*b {
			t.Errorf("the bulk that was found takes %.0f s, the best %.0f s", a, b)
		}
	}
	// One size of bulk cannot tell the two apart: the bulk's cost stays.
	m := CloneModel{Workers: 10, Work: 1, Bulk: 2}
	got, _ := m.Calibrate([]CloneReading{{Bulk: 100, Seconds: 303}}, true)
	if got.Bulk != 2 || math.Abs(got.Lock-3) > 0.05 {
		t.Errorf("%+v", got)
	}
}
