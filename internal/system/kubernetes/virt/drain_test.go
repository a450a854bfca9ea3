package virt

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/plan"
)

func TestMostNodesOfAPlan(t *testing.T) {
	tests := []struct {
		axis plan.Axis
		want int
	}{
		{plan.Axis{Levels: []float64{2, 8, 4}}, 8},
		{plan.Axis{Level: new(3.0)}, 3},
		{plan.Axis{Search: &plan.Search{From: 1, Max: 10}}, 10},
	}
	for _, tt := range tests {
		if got := mostNodes(&tt.axis); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.axis, got, tt.want)
		}
	}
}
