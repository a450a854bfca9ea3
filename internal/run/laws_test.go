package run

import (
	"math"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// A target that makes 200 objects a second, however many there are, is found to
// do so: the rate neither rises nor falls, the time to reach a level is near
// linear at 5 ms an object, and what its last objects wait for grows with how
// many were asked for at once.
func TestPlantedLawsAreFound(t *testing.T) {
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
		by := make(map[string]result.Law)
		for _, x := range r.Laws.List {
			by[x.Name] = x
		}
		x := by["throughput"]
		for _, c := range x.Points {
			if math.Abs(c.Y-200) > 20 {
				t.Errorf("fresh %v: %.0f objects a second at %g, planted are 200", fresh, c.Y, c.X)
			}
		}
		x = by["time per object"]
		for _, c := range x.Points {
			if math.Abs(c.Y-0.005) > 0.0005 {
				t.Errorf("fresh %v: %v s per object at %g, planted are 0.005", fresh, c.Y, c.X)
			}
		}
		// Made whole, the last object of N waits for all before it, less the
		// time for which 2000 a second were still being sent.
		x = by["Ready p99"]
		if fresh && (x.Line == nil || math.Abs(*x.Line.Slope.Value-20*(0.005-0.0005)) > 0.005) {
			t.Errorf("p99 rises by %v s a level, planted are 0.09; refused %q", *x.Line.Slope.Value, x.Refused)
		}
	}
}
