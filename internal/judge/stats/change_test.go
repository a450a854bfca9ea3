package stats

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

func TestChangePoints(t *testing.T) {
	steps := func(levels ...float64) []float64 {
		var x []float64
		for i := 0; i < len(levels); i += 2 {
			for k := range int(levels[i]) {
				x = append(x, levels[i+1]*(1+0.01*float64(k%3)))
			}
		}
		return x
	}
	for _, tt := range []struct {
		why  string
		x    []float64
		want []int
	}{
		{"one level", steps(20, 1), nil},
		{"all the same", []float64{2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, nil},
		{"a step up", steps(10, 1, 10, 1.5), []int{10}},
		{"a step down", steps(12, 1, 8, 0.5), []int{12}},
		{"up and back again", steps(10, 1, 10, 2, 10, 1), []int{10, 20}},
		{"two steps up", steps(10, 1, 10, 2, 10, 4), []int{10, 20}},
		{"one outlier is no level", append(append(steps(8, 1), 5), steps(8, 1)...), nil},
		{"and the last one neither", append(steps(12, 1), 5), nil},
		{"microseconds change as hours do", []float64{1e-6, 1.1e-6, 1e-6, 1.1e-6, 1e-6, 1.1e-6, 2e-6, 2.1e-6, 2e-6, 2.1e-6, 2e-6, 2.1e-6}, []int{6}},
	} {
		got, err := ChangePoints(tt.x, 0.05, 1)
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s: %+v, want at %v", tt.why, got, tt.want)
			continue
		}
		for i, c := range got {
			if c.At != tt.want[i] || !(c.P <= 0.05) {
				t.Errorf("%s: %+v, want at %v", tt.why, got, tt.want)
			}
		}
	}
	got, err := ChangePoints(steps(10, 1, 10, 2, 10, 1), 0.05, 1)
	if err != nil || len(got) != 2 || math.Abs(got[0].Change-1) > 0.01 || math.Abs(got[1].Change+0.5) > 0.01 {
		t.Errorf("doubled and halved: %+v, %v", got, err)
	}
	if _, err := ChangePoints(make([]float64, ChangeNeeds-1), 0.05, 1); !errors.Is(err, ErrFewForChange) {
		t.Errorf("nine figures: %v", err)
	}
	if _, err := ChangePoints(append(steps(10, 1), math.Inf(1)), 0.05, 1); !errors.Is(err, ErrNotPositive) {
		t.Errorf("a figure that never came: %v", err)
	}
}

// The best stretch is the one that an obvious search finds.
func TestBestStretch(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	squaresOf := func(parts ...[]float64) float64 {
		m, n, sum := 0.0, 0.0, 0.0
		for _, x := range parts {
			for _, v := range x {
				m, n = m+v, n+1
			}
		}
		for _, x := range parts {
			for _, v := range x {
				sum += (v - m/n) * (v - m/n)
			}
		}
		return sum
	}
	for range 500 {
		x := make([]float64, 1+rng.IntN(20))
		for i := range x {
			x[i] = 7 + math.Floor(4*rng.NormFloat64())/8
		}
		best := 0.0
		gain := func(i, j int) float64 { return squaresOf(x) - squaresOf(x[i:j]) - squaresOf(x[:i], x[j:]) }
		for i := range x {
			for j := i + 1; j <= len(x); j++ {
				if j-i < 2 || i == 1 || j == len(x)-1 || j-i == len(x) {
					continue
				}
				best = max(best, gain(i, j))
			}
		}
		i, j, got := bestStretch(x)
		if math.Abs(got-best) > 1e-9 || got > 0 && math.Abs(gain(i, j)-best) > 1e-9 {
			t.Fatalf("%v: %d to %d with %g, want %g", x, i, j, got, best)
		}
	}
}

// changeNoise are shapes of what varies from run to run.
func changeNoise() map[string]func(*rand.Rand) float64 {
	return map[string]func(*rand.Rand) float64{
		"lognormal": func(r *rand.Rand) float64 { return math.Exp(0.1 * r.NormFloat64()) },
		"skewed":    func(r *rand.Rand) float64 { return 1 + r.ExpFloat64() },
		"tied":      func(r *rand.Rand) float64 { return 1 + 0.1*float64(r.IntN(3)) },
		"with outliers": func(r *rand.Rand) float64 {
			if r.IntN(10) == 0 {
				return 5
			}
			return math.Exp(0.1 * r.NormFloat64())
		},
	}
}

// In series without a change one is found in no more than alpha of them: over
// 200 at 0.05 that is more than 18 with a probability of 0.5%.
func TestFalseAlarmsOfChangePoints(t *testing.T) {
	ring.Long(t, "it draws hundreds of samples")
	t.Parallel()
	for name, noise := range changeNoise() {
		for _, n := range []int{10, 30} {
			rng := rand.New(rand.NewPCG(11, uint64(n)))
			alarms := 0
			for i := range 200 {
				x := make([]float64, n)
				for k := range x {
					x[k] = noise(rng)
				}
				found, err := ChangePoints(x, 0.05, uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				if len(found) > 0 {
					alarms++
				}
			}
			t.Logf("%s, %d runs: %d of 200", name, n, alarms)
			if alarms > 18 {
				t.Errorf("%s, %d runs: %d false alarms in 200, want at most 18", name, n, alarms)
			}
		}
	}
}

// A change that is there is found, where it is.
func TestPlantedChangesAreFound(t *testing.T) {
	t.Parallel()
	samples := ring.Size(50, 200)
	for _, tt := range []struct {
		n, at  int
		factor float64 // the spread from run to run is 10%
		least  int     // of 200 that are found
		near   int     // how far off at most
	}{{20, 10, 1.3, 175, 1}, {40, 30, 1.2, 155, 3}, {12, 8, 1.5, 180, 1}} {
		rng := rand.New(rand.NewPCG(13, uint64(tt.n)))
		found, extra := 0, 0
		for i := range samples {
			x := make([]float64, tt.n)
			for k := range x {
				x[k] = math.Exp(0.1 * rng.NormFloat64())
				if k >= tt.at {
					x[k] *= tt.factor
				}
			}
			list, err := ChangePoints(x, 0.05, uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			hit := false
			for _, c := range list {
				if c.At >= tt.at-tt.near && c.At <= tt.at+tt.near && c.Change > 0 {
					hit = true
				}
			}
			if hit {
				found++
			}
			if len(list) > 1 {
				extra++
			}
		}
		t.Logf("%+v: found in %d of %d, and more than it in %d", tt, found, samples, extra)
		if 200*found < tt.least*samples || 200*extra > 18*samples {
			t.Errorf("%+v: found in %d of %d, and more than it in %d", tt, found, samples, extra)
		}
	}
}

func BenchmarkChangePoints(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	x := make([]float64, 1000)
	for i := range x {
		x[i] = math.Exp(0.1 * rng.NormFloat64())
	}
	for b.Loop() {
		if _, err := ChangePoints(x, 0.05, 1); err != nil {
			b.Fatal(err)
		}
	}
}
