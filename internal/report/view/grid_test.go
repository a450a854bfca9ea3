package view

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
)

func TestCapacityWords(t *testing.T) {
	e, lo, hi, knee := 0.52, 0.41, 0.6, 40.0
	for _, tt := range []struct {
		curve judge.CapacityCurve
		want  string
		why   string
	}{
		{judge.CapacityCurve{Key: "cpus", Exponent: &result.Interval{Value: &e, Lo: &lo, Hi: &hi}}, "the line grows as cpus to the power of 0.52 (0.41 to 0.60)", "an exponent has its interval"},
		{judge.CapacityCurve{Key: "cpus", Knee: &knee}, "from cpus=40 on the line grows less than half as fast as cpus: something else binds", "a knee is told in words"},
		{judge.CapacityCurve{Key: "cpus", Curve: []judge.CapacityPoint{{Gain: &result.Interval{Lo: &e}}, {}}}, "no value is known from which more of cpus gains little", "a line that still grows"},
		{judge.CapacityCurve{Key: "cpus", Curve: make([]judge.CapacityPoint, 2)}, "", "lines that are unknown"},
	} {
		if got := strings.Join(capacityWords(tt.curve), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
