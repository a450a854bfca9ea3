package view

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// What the conditions are compared with is said, also where it is nothing.
func TestConditionsSayWhatIsNormal(t *testing.T) {
	first := result.Step{ID: 1}
	r := result.Result{Steps: []result.Step{first, {ID: 2}}, BrokeFirst: &result.BrokeFirst{Step: 1, Conditions: &result.Conditions{}}}
	if normal := normalOf(r); normal != "there is no baseline: this is the first step" {
		t.Errorf("a first step that broke: %q", normal)
	}
	r.BrokeFirst.Step = 2
	if normal := normalOf(r); normal != "there is no baseline: the first step did not pass" {
		t.Errorf("a step after one that broke: %q", normal)
	}
}

func figure(x float64) *float64 { return &x }
