package view

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/compare"
)

func TestMedianOfRuns(t *testing.T) {
	latency := compare.Compared{Unit: "s", Kind: compare.KindLatency}
	for _, tt := range []struct {
		m    compare.Compared
		runs []*float64
		want string
		why  string
	}{
		{latency, []*float64{figure(3), figure(1), figure(2)}, "2.00 s", "the middle of three"},
		{latency, []*float64{figure(3), figure(1)}, "2.00 s", "between two"},
		{latency, []*float64{nil, figure(1), figure(2)}, "2.00 s", "never is latest"},
		{latency, []*float64{nil, figure(1)}, "never", "half never ready"},
		{compare.Compared{Unit: "/s", Kind: compare.KindRate}, []*float64{nil}, "-", "a rate is not reached, it is known or not"},
		{latency, nil, "-", "no run"},
	} {
		if got := medianOf(tt.m, tt.runs); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
}
