package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMerge(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var parts []Sample
		var all []float64
		censored := 0
		for range rng.IntN(6) {
			values := make([]float64, rng.IntN(8))
			for i := range values {
				values[i] = float64(rng.IntN(5))
			}
			all = append(all, values...)
			c := rng.IntN(3)
			censored += c
			parts = append(parts, NewSample(values, c))
		}
		slices.Sort(all)
		if m := Merge(parts...); !slices.Equal(m.Values(), all) || m.Censored() != censored {
			t.Fatalf("%v and %d censored, want %v and %d", m.Values(), m.Censored(), all, censored)
		}
	}
}

// runsAround are the samples of runs, each with a shift of its own.
func runsAround(rng *rand.Rand, runs, n int, center, between float64) []Sample {
	list := make([]Sample, runs)
	for r := range list {
		shift := center + between*rng.NormFloat64()
		values := make([]float64, n)
		for i := range values {
			values[i] = shift + rng.Float64()
		}
		list[r] = NewSample(values, rng.IntN(3))
	}
	return list
}

// The slow twins pool the objects again for every way, and know no grid.
func slowBlocks(a, b []Sample) float64 {
	seen, asFar := Distance(Merge(a...), Merge(b...)), 0
	for w := range 1 << len(a) {
		x, y := slices.Clone(a), slices.Clone(b)
		for i := range a {
			if w>>i&1 == 1 {
				x[i], y[i] = y[i], x[i]
			}
		}
		if Distance(Merge(x...), Merge(y...)) >= seen-1e-12 {
			asFar++
		}
	}
	return float64(asFar) / float64(int(1)<<len(a))
}

func slowRuns(a, b []Sample) float64 {
	all := slices.Concat(a, b)
	seen, ways, asFar := Distance(Merge(a...), Merge(b...)), 0, 0
	for w := range 1 << len(all) {
		var x, y []Sample
		for i, s := range all {
			if w>>i&1 == 1 {
				x = append(x, s)
			} else {
				y = append(y, s)
			}
		}
		if len(x) != len(a) {
			continue
		}
		ways++
		if Distance(Merge(x...), Merge(y...)) >= seen-1e-12 {
			asFar++
		}
	}
	return float64(asFar) / float64(ways)
}

func TestPermutationsAgainstSlowTwins(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 60 {
		n := 2 + rng.IntN(4)
		a, b := runsAround(rng, n, 1+rng.IntN(20), 1, 0.3), runsAround(rng, n, 1+rng.IntN(20), 1+0.5*rng.Float64(), 0.3)
		if got, want := NewArms(a, b).PermuteBlocks(), slowBlocks(a, b); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d blocks: %g, want %g", n, got, want)
		}
		b = b[:1+rng.IntN(n)]
		if got, want := NewArms(a, b).PermuteRuns(), slowRuns(a, b); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d and %d runs: %g, want %g", n, len(b), got, want)
		}
	}
}

func TestPermutationsOfManyRuns(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 10))
	far, near := runsAround(rng, 20, 50, 3, 0.1), runsAround(rng, 20, 50, 1, 0.1)
	if p := NewArms(far, near).PermuteBlocks(); p > 0.001 {
		t.Errorf("20 blocks that all lie apart: p = %g", p)
	}
	if p := NewArms(far, near).PermuteRuns(); p > 0.001 {
		t.Errorf("20 runs each that lie apart: p = %g", p)
	}
	// Of arms that are the same the p-value is uniform, with the run as the
	// replicate: however many objects there are, few are small.
	small := 0
	for range 200 {
		if NewArms(runsAround(rng, 5, 200, 1, 0.3), runsAround(rng, 5, 200, 1, 0.3)).PermuteRuns() <= 0.05 {
			small++
		}
	}
	if small > 18 {
		t.Errorf("%d of 200 pairs that are the same have p <= 0.05", small)
	}
}

func TestForms(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 12))
	draw := func(n int, f func() float64) []float64 {
		x := make([]float64, n)
		for i := range x {
			x[i] = f()
		}
		return x
	}
	two := func(share, apart, width float64) func() float64 {
		return func() float64 {
			if rng.Float64() < share {
				return math.Exp(math.Log(apart) + width*rng.NormFloat64())
			}
			return math.Exp(width * rng.NormFloat64())
		}
	}
	for _, c := range []struct {
		why  string
		x    []float64
		want int
	}{
		{"log-normal", draw(2000, func() float64 { return math.Exp(0.5 * rng.NormFloat64()) }), 1},
		{"uniform", draw(2000, func() float64 { return 0.5 + rng.Float64() }), 1},
		{"exponential", draw(2000, rng.ExpFloat64), 1},
		{"a small one of the same", draw(150, func() float64 { return 1 + 0.1*rng.NormFloat64() }), 1},
		{"half at three times as long", draw(2000, two(0.5, 3, 0.2)), 2},
		{"a tenth at ten times as long", draw(2000, two(0.1, 10, 0.2)), 2},
		{"a hundredth at ten times as long is a tail", draw(2000, two(0.01, 10, 0.2)), 1},
		{"half at a tenth more is one form", draw(2000, two(0.5, 1.1, 0.2)), 1},
		{"two components of which each is uniform", draw(1000, func() float64 { return []float64{1, 6}[rng.IntN(2)] + rng.Float64() }), 2},
		{"too few to say", draw(99, two(0.5, 3, 0.2)), 0},
		{"a clock of whole seconds has forms of its own", draw(2000, func() float64 { return float64(1 + rng.IntN(8)) }), 0},
		{"all the same", draw(500, func() float64 { return 2 }), 0},
	} {
		if got := Forms(NewSample(c.x, 0)); got != c.want {
			t.Errorf("%s: %d forms, want %d", c.why, got, c.want)
		}
	}
	// Of one form, few samples are seen as two.
	wrong := 0
	for range 200 {
		if Forms(NewSample(draw(300, func() float64 { return math.Exp(0.3 * rng.NormFloat64()) }), 0)) != 1 {
			wrong++
		}
	}
	if wrong > 10 {
		t.Errorf("%d of 200 samples of one form are seen as more", wrong)
	}
}
