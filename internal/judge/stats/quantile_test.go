package stats

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestQuantile(t *testing.T) {
	inf := math.Inf(1)
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		values   []float64
		censored int
		q        float64
		want     float64
		why      string
	}{
		{[]float64{3, 1, 2}, 0, 0.5, 2, "the middle of three"},
		{[]float64{4, 1, 3, 2}, 0, 0.5, 2, "the lower of the two middle ones: no average"},
		{[]float64{7}, 0, 0.99, 7, "the only one"},
		{[]float64{1, 2}, 0, 1, 2, "the maximum"},
		{slices.Clone(hundred), 0, 0.99, 99, "the 99th of 100"},
		{slices.Clone(hundred), 0, 0.07, 7, "0.07*100 is more than 7 in binary"},
		{slices.Clone(hundred), 0, 0.29, 29, "0.29*100 is less than 29 in binary"},
		{slices.Clone(hundred), 1, 0.99, 100, "one of 101 never came: the 100th"},
		{slices.Clone(hundred), 2, 0.99, inf, "two of 102 never came: the 101st is one of them"},
		{nil, 3, 0.5, inf, "none came"},
	} {
		if got := NewSample(tt.values, tt.censored).Quantile(tt.q); got != tt.want {
			t.Errorf("Quantile(%v) of %d values and %d censored = %v, want %v: %s", tt.q, len(tt.values), tt.censored, got, tt.want, tt.why)
		}
	}
	if got := NewSample(nil, 0).Quantile(0.5); !math.IsNaN(got) {
		t.Errorf("Quantile of nothing = %v, want NaN: an empty sample passes no bound", got)
	}
}

// quantileSlowly is the definition, word for word: the smallest observation
// that at least q n observations do not exceed.
func quantileSlowly(values []float64, censored int, q float64) float64 {
	all := slices.Clone(values)
	for range censored {
		all = append(all, math.Inf(1))
	}
	best := math.Inf(1)
	for _, v := range all {
		count := 0
		for _, w := range all {
			if w <= v {
				count++
			}
		}
		if float64(count) >= q*float64(len(all))-1e-6 && v < best {
			best = v
		}
	}
	return best
}

func TestQuantileAgreesWithItsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		n := 1 + rng.IntN(60)
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(rng.IntN(20)) // many ties
		}
		censored := rng.IntN(4)
		q := float64(1+rng.IntN(100)) / 100
		want := quantileSlowly(values, censored, q)
		if got := NewSample(slices.Clone(values), censored).Quantile(q); got != want {
			t.Fatalf("Quantile(%v) of %v and %d censored = %v, want %v", q, values, censored, got, want)
		}
	}
}

func TestPassProbability(t *testing.T) {
	for _, tt := range []struct {
		k, n int
		want float64
		why  string
	}{
		{3, 3, math.Pow(0.05, 1.0/3), "n of n: alpha^(1/n)"},
		{5, 5, math.Pow(0.05, 1.0/5), "n of n: alpha^(1/n)"},
		{0, 3, 0, "nothing passed"},
		{4, 5, 0.3426, "Clopper and Pearson's table"},
		{3, 2, math.Pow(0.05, 1.0/2), "no more than all can pass"},
	} {
		if got := PassProbability(tt.k, tt.n, 0.95); math.Abs(got-tt.want) > 1e-4 {
			t.Errorf("PassProbability(%d, %d) = %.4f, want %.4f: %s", tt.k, tt.n, got, tt.want, tt.why)
		}
	}
}

func TestSummaries(t *testing.T) {
	s := NewSample([]float64{2, 4, 6}, 0)
	if s.Mean() != 4 || s.Max() != 6 || s.Resolution() != 2 {
		t.Errorf("mean %v, max %v, resolution %v, want 4, 6, 2", s.Mean(), s.Max(), s.Resolution())
	}
	s = NewSample([]float64{2, 4, 6}, 1)
	if !math.IsInf(s.Mean(), 1) || !math.IsInf(s.Max(), 1) {
		t.Errorf("mean %v, max %v with one censored, want +Inf: what never came is infinitely late", s.Mean(), s.Max())
	}
	if s = NewSample(nil, 0); !math.IsNaN(s.Mean()) || !math.IsNaN(s.Max()) {
		t.Errorf("mean %v, max %v of nothing, want NaN", s.Mean(), s.Max())
	}
	for q, want := range map[float64]string{0.5: "p50", 0.99: "p99", 0.999: "p99.9", 0.07: "p7"} {
		if got := QuantileName(q); got != want {
			t.Errorf("QuantileName(%v) = %q, want %q", q, got, want)
		}
	}
	for _, tt := range []struct {
		q    float64
		n    int
		want bool
	}{{0.99, 100, true}, {0.99, 99, false}, {0.5, 2, true}, {0.5, 1, false}, {0.9, 10, true}} {
		if got := Resolves(tt.q, tt.n); got != tt.want {
			t.Errorf("Resolves(%v, %d) = %v, want %v", tt.q, tt.n, got, tt.want)
		}
	}
}

func ExampleSample() {
	// Four pods were asked for; one never became ready.
	s := NewSample([]float64{0.9, 1.4, 1.1}, 1)
	fmt.Println(s.Quantile(0.5), s.Quantile(0.75), s.Quantile(0.99))
	// Output: 1.1 1.4 +Inf
}

// Counted observations are the same sample as each of them by itself, in
// everything that is computed of samples.
func TestCountedIsTheSameSample(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	draw := func() (exact, counted Sample) {
		n, censored := rng.IntN(400), rng.IntN(20)
		values := make([]float64, n)
		counts := make(map[float64]int)
		for i := range values {
			values[i] = float64(rng.IntN(60)) / 10 // ties, and zeroes
			counts[values[i]]++
		}
		var list []Count
		for _, v := range slices.Sorted(maps.Keys(counts)) {
			list = append(list, Count{v, counts[v]})
		}
		return NewSample(values, censored), Counted(list, censored, 0.001)
	}
	same := func(what string, a, b float64) {
		t.Helper()
		if a != b && !(math.IsNaN(a) && math.IsNaN(b)) && math.Abs(a-b) > 1e-9*math.Abs(a) {
			t.Errorf("%s: %v of each observation, %v of counts", what, a, b)
		}
	}
	for range 100 {
		x, cx := draw()
		y, cy := draw()
		for _, pair := range [][2]Sample{{x, cx}, {Merge(x, y), Merge(cx, cy)}, {Merge(x, y), Merge(x, cy)}, {x.AtOnce(x.censored / 2), cx.AtOnce(x.censored / 2)}} {
			a, b := pair[0], pair[1]
			same("N", float64(a.N()), float64(b.N()))
			for _, q := range []float64{0.001, 0.3, 0.5, 0.99, 1} {
				same("quantile", a.Quantile(q), b.Quantile(q))
				alo, ahi := a.Interval(q, 0.95)
				blo, bhi := b.Interval(q, 0.95)
				same("lower end", alo, blo)
				same("upper end", ahi, bhi)
			}
			same("mean", a.Mean(), b.Mean())
			same("forms", float64(Forms(a)), float64(Forms(b)))
			same("at most 3", float64(a.AtMost(3)), float64(b.AtMost(3)))
		}
		same("distance", Distance(x, y), Distance(cx, cy))
		same("superiority", Superiority(x, y), Superiority(cx, cy))
		if x.N() > 0 && y.N() > 0 {
			same("permutation", NewArms([]Sample{x, y}, []Sample{y, y}).PermuteBlocks(), NewArms([]Sample{cx, cy}, []Sample{cy, cy}).PermuteBlocks())
		}
	}
}

// The interval of a quantile of batches holds the true one as often as it says,
// also where observations of a batch are alike.
func TestBatchesTellWhatAlikeObservationsAreWorth(t *testing.T) {
	const batches, each, runs = 20, 400, 400
	rng := rand.New(rand.NewPCG(6, 6))
	of := func(q float64) (batched float64) {
		truth := math.Exp(1.2 * math.Sqrt2 * math.Erfinv(2*q-1)) // of the lognormal below
		for range runs {
			var parts []Sample
			for range batches {
				shift := rng.NormFloat64() * math.Sqrt(0.44) // what a batch has in common
				values := make([]float64, each)
				for i := range values {
					values[i] = math.Exp(shift + rng.NormFloat64())
				}
				parts = append(parts, NewSample(values, 0))
			}
			if lo, hi := Batched(parts...).Interval(q, 0.95); lo <= truth && truth <= hi {
				batched += 1.0 / runs
			}
		}
		return batched
	}
	for _, q := range []float64{0.5, 0.9} {
		if batched := of(q); batched < 0.9 {
			t.Errorf("p%g: %.0f%% of the intervals by batches hold the true one, want 95%%", 100*q, 100*batched)
		}
	}
	for _, one := range []Sample{Batched(NewSample([]float64{1, 2, 3}, 0)), NewSample(make([]float64, 1000), 0), {}} {
		if lo, hi := one.Interval(0.5, 0.95); !math.IsInf(lo, -1) || !math.IsInf(hi, 1) {
			t.Errorf("one burst bounds the median to %v to %v", lo, hi)
		}
	}
}
