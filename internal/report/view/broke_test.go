package view

import (
	"strings"
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

// How often what broke was seen is said where its sentence has no number of its own.
func TestWhatBrokeSaysHowOftenOnce(t *testing.T) {
	for _, tt := range []struct {
		breach result.Breach
		want   string
	}{
		{result.Breach{What: "requests failed", Count: 2}, "requests failed (2)"},
		{result.Breach{Kind: result.BreachActor, What: "no scheduler has acted for 6 s; 20 pods wait for it"}, "20 pods wait for it"},
		{result.Breach{Kind: result.BreachStandstill, What: "all writes stood still for 64.51 s"}, "stood still for 64.51 s"},
	} {
		r := result.Result{Steps: []result.Step{{ID: 1, Breaches: []result.Breach{tt.breach}}}, BrokeFirst: &result.BrokeFirst{Step: 1}}
		if lines := broke(r).Parts; len(lines) == 0 || !strings.HasSuffix(lines[0].Line, tt.want) {
			t.Errorf("%+v, want one that ends with %q", lines, tt.want)
		}
	}
}
