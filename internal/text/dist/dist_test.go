package dist

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want Dist
		err  string // a part of the error
		why  string
	}{
		{"", Dist{}, "", "nothing planted"},
		{"constant:0s", Dist{Shape: Constant}, "", "an explicit zero"},
		{"constant:1.5s", Dist{Shape: Constant, A: 1500 * time.Millisecond}, "", "one duration"},
		{"uniform:500ms,1.5s", Dist{Uniform, 500 * time.Millisecond, 1500 * time.Millisecond}, "", "the document's example"},
		{"uniform:500ms, 1.5s", Dist{Uniform, 500 * time.Millisecond, 1500 * time.Millisecond}, "", "a space after the comma"},
		{"lognormal:1s,4s", Dist{Lognormal, time.Second, 4 * time.Second}, "", "median and p99"},
		{"1s", Dist{}, "no shape", "a bare duration"},
		{"normal:1s,2s", Dist{}, "unknown shape", "a shape that is not offered"},
		{"constant:1s,2s", Dist{}, "has 2 durations", "one too many"},
		{"uniform:1s", Dist{}, "has 1 durations", "one too few"},
		{"uniform:2s,1s", Dist{}, "below the first", "reversed"},
		{"uniform:-1s,1s", Dist{}, "negative", "time runs forward"},
		{"lognormal:0s,1s", Dist{}, "above 0", "the logarithm of 0"},
		{"constant:5", Dist{}, "not a duration", "no unit"},
	} {
		got, err := Parse(tt.in)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("Parse(%q) (%s): error %v, want one with %q", tt.in, tt.why, err, tt.err)
			}
			continue
		}
		if err != nil || got != tt.want {
			t.Errorf("Parse(%q) (%s) = %+v, %v, want %+v", tt.in, tt.why, got, err, tt.want)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("Parse(String(%q)) = %+v, %v, want %+v", tt.in, again, err, got)
		}
	}
}

// A sample drawn through At has the quantiles that the parameters state.
func TestAtHasTheStatedQuantiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 200_000
	draw := func(d Dist) []float64 {
		xs := make([]float64, n)
		for i := range xs {
			xs[i] = d.At(rng.Float64()).Seconds()
		}
		slices.Sort(xs)
		return xs
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance*want {
			t.Errorf("%s = %.4f s, want %.4f s within %.0f%%", what, got, want, 100*tolerance)
		}
	}
	u := draw(Dist{Uniform, 500 * time.Millisecond, 1500 * time.Millisecond})
	near("uniform p50", u[n/2], 1, 0.01)
	near("uniform p99", u[n*99/100], 1.49, 0.01)
	l := draw(Dist{Lognormal, time.Second, 4 * time.Second})
	near("lognormal p50", l[n/2], 1, 0.02)
	near("lognormal p99", l[n*99/100], 4, 0.03)
	if c := draw(Dist{Shape: Constant, A: time.Second}); c[0] != 1 || c[n-1] != 1 {
		t.Errorf("constant spans %v to %v, want 1 and 1", c[0], c[n-1])
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "constant:1s", "uniform:1s,2s", "lognormal:1s,2s", "x:", ":", "uniform:,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := Parse(s)
		if err != nil {
			return
		}
		for _, u := range []float64{0, 0.5, math.Nextafter(1, 0)} {
			if v := d.At(u); v < 0 {
				t.Errorf("Parse(%q).At(%v) = %v, want no negative delay", s, u, v)
			}
		}
	})
}
