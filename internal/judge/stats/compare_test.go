package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Published values: Student's table of critical values.
func TestStudentQuantile(t *testing.T) {
	for _, c := range []struct{ q, df, want float64 }{
		{0.975, 1, 12.7062}, {0.975, 2, 4.30265}, {0.975, 4, 2.77645}, {0.975, 9, 2.26216},
		{0.975, 30, 2.04227}, {0.95, 4, 2.13185}, {0.995, 4, 4.60409}, {0.975, 1e6, 1.95997},
	} {
		if got := studentQuantile(c.q, c.df); math.Abs(got-c.want) > 5e-5*c.want {
			t.Errorf("t(%g, %g) = %g, want %g", c.q, c.df, got, c.want)
		}
		if got := studentQuantile(1-c.q, c.df); math.Abs(got+c.want) > 5e-5*c.want {
			t.Errorf("t(%g, %g) = %g, want %g", 1-c.q, c.df, got, -c.want)
		}
	}
}

// Student's sleep data (1908), as everybody's textbook pairs them: hours gained
// by ten patients under two drugs. The published paired t-test has t = -4.0621,
// 9 degrees of freedom, p = 0.002833 and the interval [-2.46, -0.70].
func TestPairedAgainstStudentsSleepData(t *testing.T) {
	first := []float64{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0}
	second := []float64{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4}
	a, b := make([]float64, 10), make([]float64, 10)
	for i := range first {
		a[i], b[i] = math.Exp(second[i]), math.Exp(first[i]) // the test pairs logarithms
	}
	c, err := CompareBlocks(a, b, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if lo, hi := math.Log1p(c.Lo), math.Log1p(c.Hi); math.Abs(lo+2.4598858) > 1e-6 || math.Abs(hi+0.7001142) > 1e-6 {
		t.Errorf("interval [%g, %g]", lo, hi)
	}
	if p := c.P(); math.Abs(p-0.002833) > 1e-6 {
		t.Errorf("p = %g", p)
	}
	// Welch's test of the same data, published as well: p = 0.07939, 17.776
	// degrees of freedom, interval [-3.3654832, 0.2054832].
	w, err := CompareApart(a, b, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if lo, hi := math.Log1p(w.Lo), math.Log1p(w.Hi); math.Abs(lo+3.3654832) > 1e-6 || math.Abs(hi-0.2054832) > 1e-6 {
		t.Errorf("Welch's interval [%g, %g]", lo, hi)
	}
	if p := w.P(); math.Abs(p-0.07939) > 1e-5 {
		t.Errorf("Welch's p = %g", p)
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		why    string
		lo, hi float64
		less   bool
		want   Verdict
	}{
		{"all of it beyond the margin, less", -0.20, -0.06, false, Better},
		{"less, but perhaps within the margin", -0.20, -0.04, false, NotWorse},
		{"within the margin on both sides", -0.04, 0.05, false, Equivalent},
		{"as wide as the margin is still within it", -0.05, 0.05, false, Equivalent},
		{"perhaps better, at most as much worse as the margin allows", -0.30, 0.05, false, NotWorse},
		{"all of it beyond the margin, more", 0.051, 0.2, false, Worse},
		{"more, but perhaps within the margin", 0.01, 0.2, false, Undecided},
		{"wide open", -0.2, 0.2, false, Undecided},
		{"no difference found is not equal", -0.06, 0.06, false, Undecided},
		{"more of a rate is better", 0.06, 0.2, true, Better},
		{"less of a rate is worse", -0.2, -0.06, true, Worse},
	} {
		if got := (Change{Lo: c.lo, Hi: c.hi}).Judge(0.05, c.less); got != c.want {
			t.Errorf("%s: %s, want %s", c.why, got, c.want)
		}
	}
}

func TestComparisonsThatCannotBe(t *testing.T) {
	for _, c := range []struct {
		why  string
		a, b []float64
		want error
	}{
		{"one run of each says nothing of the spread", []float64{1}, []float64{2}, ErrFewBlocks},
		{"a quantile that was never reached", []float64{1, math.Inf(1)}, []float64{1, 2}, ErrNotPositive},
		{"a latency of nothing", []float64{1, 1}, []float64{0, 2}, ErrNotPositive},
		{"not a number", []float64{1, math.NaN()}, []float64{1, 2}, ErrNotPositive},
	} {
		if _, err := CompareBlocks(c.a, c.b, 0.95); err != c.want {
			t.Errorf("%s: %v", c.why, err)
		}
		if _, err := CompareApart(c.a, c.b, 0.95); err != c.want {
			t.Errorf("%s, apart: %v", c.why, err)
		}
	}
}

// TestFalseAlarms: of 200 pairs of arms that are the same, at most 18 may be
// called better or worse, whatever the noise looks like; and the interval must
// hold the truth as often as it says.
func TestFalseAlarms(t *testing.T) {
	noises := map[string]func(*rand.Rand) float64{
		"log-normal": func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) },
		"skewed":     func(r *rand.Rand) float64 { return 1 + 0.2*r.ExpFloat64() },
		"tied":       func(r *rand.Rand) float64 { return 1 + 0.1*float64(r.IntN(3)) },
		"two forms":  func(r *rand.Rand) float64 { return 1 + 0.3*float64(r.IntN(2)) + 0.02*r.NormFloat64() },
	}
	for name, noise := range noises {
		rng := rand.New(rand.NewPCG(11, 13))
		const pairs, runs, shift = 200, 5, 1.2
		alarms, zeroMargin, covered, found := 0, 0, 0, 0
		for range pairs {
			a, b, worse := make([]float64, runs), make([]float64, runs), make([]float64, runs)
			for i := range runs {
				block := math.Exp(0.3 * rng.NormFloat64()) // what a block's runs share
				a[i], b[i] = block*noise(rng), block*noise(rng)
				worse[i] = block * noise(rng) * shift
			}
			c, err := CompareBlocks(a, b, 0.95)
			if err != nil {
				t.Fatal(err)
			}
			if v := c.Judge(0.05, false); v == Better || v == Worse {
				alarms++
			}
			if v := c.Judge(0, false); v == Better || v == Worse {
				zeroMargin++
			}
			if c.Lo <= 0 && 0 <= c.Hi {
				covered++
			}
			if w, err := CompareBlocks(a, worse, 0.95); err == nil && w.Judge(0.05, false) == Worse {
				found++
			}
		}
		t.Logf("%s: %d false alarms beyond the margin, %d beyond nothing, interval covers in %d of %d, a shift of 20%% is found in %d", name, alarms, zeroMargin, covered, pairs, found)
		if alarms > 18 || zeroMargin > 18 || covered < 182 {
			t.Errorf("%s: %d and %d false alarms in %d pairs, covered %d", name, alarms, zeroMargin, pairs, covered)
		}
	}
}

func TestMoreBlocks(t *testing.T) {
	c := Change{Blocks: 5, D: 0, SD: 0.06, Lo: -0.072, Hi: 0.077}
	more := c.MoreBlocks(0.05, 0.95, false, 100)
	if more < 1 || more > 20 {
		t.Errorf("%d further blocks", more)
	}
	if n := (Change{Blocks: 5, D: 0.05, SD: 0.06, Lo: -0.02, Hi: 0.12}).MoreBlocks(0.05, 0.95, false, 100); n != -1 {
		t.Errorf("a change as large as the margin is decided by %d further blocks", n)
	}
	if n := (Change{Blocks: 5, Lo: -0.01, Hi: 0.01}).MoreBlocks(0.05, 0.95, false, 100); n != 0 {
		t.Errorf("what is decided needs %d further blocks", n)
	}
}

// slowDistance and slowSuperiority are the definitions.
func slowDistance(a, b Sample) float64 {
	most := 0.0
	for _, v := range append(append([]float64{}, a.Values()...), b.Values()...) {
		f := func(s Sample) float64 {
			n := 0
			for _, x := range s.Values() {
				if x <= v {
					n++
				}
			}
			return float64(n) / float64(s.N())
		}
		most = max(most, math.Abs(f(a)-f(b)))
	}
	return most
}

func slowSuperiority(a, b Sample) float64 {
	all := func(s Sample) []float64 {
		list := append([]float64{}, s.Values()...)
		for range s.Censored() {
			list = append(list, math.Inf(1))
		}
		return list
	}
	wins := 0.0
	for _, x := range all(a) {
		for _, y := range all(b) {
			switch {
			case y > x:
				wins++
			case y == x:
				wins += 0.5
			}
		}
	}
	return wins / float64(a.N()) / float64(b.N())
}

func TestEffectSizesAgreeWithTheirDefinitions(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 300 {
		sample := func() Sample {
			values := make([]float64, rng.IntN(8))
			for i := range values {
				values[i] = float64(rng.IntN(6)) // ties
			}
			return NewSample(values, rng.IntN(3))
		}
		a, b := sample(), sample()
		if a.N() == 0 || b.N() == 0 {
			continue
		}
		if got, want := Distance(a, b), slowDistance(a, b); math.Abs(got-want) > 1e-12 {
			t.Fatalf("distance of %v and %v is %g, want %g", a, b, got, want)
		}
		if got, want := Superiority(a, b), slowSuperiority(a, b); math.Abs(got-want) > 1e-12 {
			t.Fatalf("superiority of %v over %v is %g, want %g", b, a, got, want)
		}
	}
}

// The example of Benjamini and Hochberg (1995): of fifteen p-values the first
// four are discoveries at 5%.
func TestFalseDiscoveryAgainstItsPaper(t *testing.T) {
	p := []float64{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0}
	q := FalseDiscovery(p)
	for i, v := range q {
		if (v <= 0.05) != (i < 4) {
			t.Errorf("q of %g is %g", p[i], v)
		}
	}
	if math.Abs(q[3]-0.0095*15/4) > 1e-12 {
		t.Errorf("q of the fourth is %g", q[3])
	}
	if q := FalseDiscovery([]float64{math.NaN(), 0.01}); !math.IsNaN(q[0]) || q[1] != 0.01 {
		t.Errorf("with one that is unknown: %v", q)
	}
}
