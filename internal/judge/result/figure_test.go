package result

import (
	"math"
	"testing"
	"time"
)

func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		x     float64
		bound time.Duration
		want  string
		why   string
	}{
		{7.2345678, 5 * time.Second, "7.235s", "to the millisecond"},
		{5.0003, 5 * time.Second, "5.0003s", "rounded it would seem to hold"},
		{5, 5 * time.Second, "5s", "right at the bound of a <"},
		{0.0124, time.Millisecond, "12ms", "short"},
		{3600.5, time.Minute, "1h0m0.5s", "long"},
		{math.Inf(1), time.Minute, "never reached", "never"},
	} {
		if got := DurationText(tt.x, tt.bound); got != tt.want {
			t.Errorf("duration(%v, %v) = %s, want %s: %s", tt.x, tt.bound, got, tt.want, tt.why)
		}
	}
}

func TestRound(t *testing.T) {
	for _, tt := range []struct {
		x    float64
		want float64
	}{{1.23456789, 1.234568}, {-1.23456789, -1.234568}, {1e300, 1e300}, {math.MaxFloat64, math.MaxFloat64}} {
		if got := Round(tt.x, 6); got != tt.want {
			t.Errorf("round(%g) = %g, want %g", tt.x, got, tt.want)
		}
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if Finite(x) != nil {
			t.Errorf("finite(%g) = %g, want null", x, *Finite(x))
		}
	}
}
