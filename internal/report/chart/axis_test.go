package chart

import (
	"strconv"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/compare"
)

func TestLogAxis(t *testing.T) {
	for _, tt := range []struct {
		lo, hi float64
		ticks  string
		why    string
	}{
		{0.002, 300, "0.01, 0.1, 1, 10, 100", "over many decades"},
		{0.8, 30, "1, 2, 5, 10, 20", "over one"},
		{1, 1, "0.7, 1, 1.5", "one figure"},
		{100, 120, "80, 90, 100, 120, 150", "figures that are near each other"},
	} {
		trend := compare.Trend{Points: []compare.TrendPoint{{Value: &tt.lo}, {Value: &tt.hi}}}
		a := AxisOf(trend, []compare.Trend{trend})
		var got []string
		for _, v := range a.ticks {
			got = append(got, strconv.FormatFloat(v, 'g', 4, 64))
		}
		if text := strings.Join(got, ", "); text != tt.ticks {
			t.Errorf("%s: %s, want %s", tt.why, text, tt.ticks)
		}
		for _, v := range append([]float64{tt.lo, tt.hi}, a.ticks...) {
			if at := a.at(v); at <= 0 || at >= 1 {
				t.Errorf("%s: %g lies at %g", tt.why, v, at)
			}
		}
		if a.hi/a.lo < 2 {
			t.Errorf("%s: from %g to %g only", tt.why, a.lo, a.hi)
		}
	}
}
