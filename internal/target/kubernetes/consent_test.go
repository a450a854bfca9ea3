package kubernetes

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/described"
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

func TestLimitInAnObject(t *testing.T) {
	object := []byte(`{"spec":{"migrations":{"cluster":20}}}`)
	for path, want := range map[string]int{"spec.migrations.cluster": 20, "spec.migrations.node": 2, "": 2} {
		if got := limitIn(object, described.Limit{Path: path, Default: 2}); got != want {
			t.Errorf("%q: %d, want %d", path, got, want)
		}
	}
}
