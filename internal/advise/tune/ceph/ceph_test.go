package ceph

import (
	"math"
	"testing"
)

// The calculator's rule, written as its page words it.
func TestCalculatorEqualsItsSlowTwin(t *testing.T) {
	slow := func(ideal, floor float64) int64 {
		x := max(ideal, floor, 1)
		below, above := int64(1), int64(2)
		for float64(above) <= x {
			below, above = above, above*2
		}
		nearest := below
		if math.Log2(float64(above))-math.Log2(x) <= math.Log2(x)-math.Log2(float64(below)) {
			nearest = above
		}
		if float64(nearest) < x-x/4 {
			return above
		}
		return nearest
	}
	for ideal := 0.1; ideal < 20000; ideal *= 1.013 {
		for _, floor := range []float64{0, 1, 47, 1000} {
			if got, _ := calculatorPGs(ideal, floor); got != slow(ideal, floor) {
				t.Fatalf("calculatorPGs(%v, %v) = %d, want %d", ideal, floor, got, slow(ideal, floor))
			}
			// Never below three quarters of what is wanted.
			if got, _ := calculatorPGs(ideal, floor); float64(got) < 0.75*max(ideal, floor) {
				t.Fatalf("%d groups for %v", got, max(ideal, floor))
			}
		}
	}
}
