package run

import (
	"math"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// A target that makes 200 objects a second, however many there are, is found to
// do so at every level.
func TestPlantedRateIsFound(t *testing.T) {
	t.Parallel()
	p := simulated.Plan{Places: 20, Rate: 200, Servers: 4, Service: 2 * time.Millisecond, Latency: dist.Dist{Shape: dist.Uniform, A: 10 * time.Millisecond, B: 20 * time.Millisecond}}
	for _, fresh := range []bool{false, true} {
		r, _, _, err := trial{plan: p, design: design.Sweep{Levels: []float64{10, 20, 40, 60, 80, 100, 120}, Fresh: fresh}}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		if r.Laws == nil || r.Laws.Levels != 7 || len(r.Laws.LeftOut) != 0 {
			t.Fatalf("fresh %v: the fit is based on %+v", fresh, r.Laws)
		}
		for _, s := range r.Steps {
			if s.AchievedRate == nil || math.Abs(*s.AchievedRate-200) > 20 {
				t.Errorf("fresh %v: %v objects a second at %g, planted are 200", fresh, s.AchievedRate, s.Level)
			}
		}
	}
}
