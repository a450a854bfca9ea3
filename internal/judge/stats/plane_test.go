package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The intervals hold what was planted as often as they say.
func TestPlanesThatWerePlantedAreFound(t *testing.T) {
	const runs = 2000
	missed := [2]int{}
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 7))
		var x1, x2, y []float64
		for i := range 12 {
			x1, x2 = append(x1, 3*r.Float64()), append(x2, float64(5*(i/3)))
			y = append(y, 2+0.2*x1[i]+0.004*x2[i]+0.05*r.NormFloat64())
		}
		b1, b2, err := FitPlane(x1, x2, y, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range []struct {
			e    Estimate
			want float64
		}{{b1, 0.2}, {b2, 0.004}} {
			if c.want < c.e.Lo || c.want > c.e.Hi {
				missed[i]++
			}
		}
	}
	// 95%, give or take three standard errors.
	for i, n := range missed {
		if share := float64(n) / runs; math.Abs(share-0.05) > 3*math.Sqrt(0.05*0.95/runs) {
			t.Errorf("the interval of coefficient %d misses in %.3f of cases", i+1, share)
		}
	}
}

// Where only one thing changes, a plane is a line.
func TestAPlaneAlongOneThingIsALine(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4, 5, 6, 7}
	other := []float64{1, -1, -1, 1, 1, -1, -1, 1} // has nothing to do with it
	y := []float64{1, 3.1, 4.9, 7, 9.2, 10.9, 13, 15}
	b1, _, err := FitPlane(x, other, y, 0.95)
	line, err2 := FitLine(x, y, 0.95)
	if err != nil || err2 != nil || math.Abs(b1.Value-line.Slope.Value) > 1e-9 {
		t.Errorf("%v, %v; a line has %v, %v", b1, err, line.Slope, err2)
	}
}

func TestPlanesThatCannotBe(t *testing.T) {
	six := []float64{1, 2, 3, 4, 5, 6}
	for _, c := range []struct {
		x1, x2, y []float64
		why       string
	}{
		{six, six, six, "both change together"},
		{six, []float64{3, 3, 3, 3, 3, 3}, six, "one does not change"},
		{six[:5], six[:5], six[:5], "too few"},
		{six, six[:5], six, "a place is missing"},
		{six, []float64{1, 1, 2, 2, 3, math.NaN()}, six, "a place that is no number"},
	} {
		if b1, b2, err := FitPlane(c.x1, c.x2, c.y, 0.95); err == nil {
			t.Errorf("%s: %v, %v", c.why, b1, b2)
		}
	}
}

func TestRays(t *testing.T) {
	const runs = 2000
	missed := 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 8))
		var x, y []float64
		for i := range 4 {
			x = append(x, float64(5+i))
			y = append(y, 3*x[i]+r.NormFloat64())
		}
		b, err := FitRay(x, y, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		if b.Lo > 3 || b.Hi < 3 {
			missed++
		}
	}
	if share := float64(missed) / runs; math.Abs(share-0.05) > 3*math.Sqrt(0.05*0.95/runs) {
		t.Errorf("the interval misses in %.3f of cases", share)
	}
	for _, c := range []struct {
		x, y []float64
		why  string
	}{
		{[]float64{1, 2}, []float64{1, 2}, "too few"},
		{[]float64{0, 0, 0}, []float64{1, 2, 3}, "nothing was added"},
		{[]float64{1, 2, 3}, []float64{1, 2}, "a figure is missing"},
	} {
		if b, err := FitRay(c.x, c.y, 0.95); err == nil {
			t.Errorf("%s: %v", c.why, b)
		}
	}
}
