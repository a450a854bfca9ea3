package findings

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// What was known before a run is put beside what each kind of run finds.
func TestForeseen(t *testing.T) {
	environment := record.Environment{
		Findings: []record.HealthFinding{{Severity: record.SeverityWarning, What: "pods", Text: "2 pods end again and again"}},
		Ceilings: &record.CeilingTable{Unit: "pods/node", Ceilings: []record.Ceiling{{
			Name: "allocatablePods", What: "allocatable pods of the nodes", Class: record.CeilingHard, Level: new(15.0), Binds: true,
			Reason: "Too many pods on 3 of 3 nodes", Sign: "Too many pods",
		}}},
	}
	broke := func(step int, kind result.BreachKind) []result.Breach {
		return []result.Breach{{Step: step, Kind: kind, Decided: true}}
	}
	full := []result.Reason{{Reason: "Too many pods", Places: 3, PlacesOf: 3, Count: 3}}
	for _, tt := range []struct {
		result result.Result
		want   ceiling.Agreement
		level  float64 // found, 0 for none
		why    string
	}{
		{result.Result{LoadLine: &result.LoadLine{Level: new(15.0), LowestFailing: new(16.0), Binding: "Too many pods on 3 of 3 nodes"}}, ceiling.AsPredicted, 15, "a search has its line"},
		{result.Result{Steps: []result.Step{{StepPlan: record.StepPlan{Level: 5}, Verdict: slo.Pass}, {StepPlan: record.StepPlan{Level: 14}, Verdict: slo.Pass}, {ID: 3, StepPlan: record.StepPlan{Level: 20}, Verdict: slo.Fail, Reasons: full}, {StepPlan: record.StepPlan{Level: 30}, Verdict: slo.Fail}}, Breaches: broke(3, result.BreachMissing)}, ceiling.AsPredicted, 14, "of a sweep the highest that held counts, below the lowest that did not"},
		{result.Result{Steps: []result.Step{{StepPlan: record.StepPlan{Level: 14}, Verdict: slo.Pass}, {ID: 3, StepPlan: record.StepPlan{Level: 20}, Verdict: slo.Fail, VerdictWhy: "p99", Reasons: full}}, Breaches: broke(3, result.BreachLatency)}, ceiling.OtherReason, 14, "it broke on a latency: what kept some objects away is not why"},
		{result.Result{LoadLine: &result.LoadLine{LowestFailing: new(5.0)}, Steps: []result.Step{{StepPlan: record.StepPlan{Level: 5}, Verdict: slo.Pass}, {StepPlan: record.StepPlan{Level: 5}, Verdict: slo.Fail}}}, ceiling.Earlier, 0, "a level that held half of the time"},
		{result.Result{Steps: []result.Step{{StepPlan: record.StepPlan{Level: 10}, Verdict: slo.Fail, VerdictWhy: "a latency"}, {StepPlan: record.StepPlan{Level: 14}, Verdict: slo.Pass}}}, ceiling.Earlier, 0, "a level above one that failed has not held"},
		{result.Result{Steps: []result.Step{{StepPlan: record.StepPlan{Level: 14}, Verdict: slo.Invalid}, {StepPlan: record.StepPlan{Level: 20}, Verdict: slo.Fail, Reasons: full}}}, ceiling.NoneHeld, 0, "a busy machine hid whether the level below held"},
		{result.Result{Steps: []result.Step{{StepPlan: record.StepPlan{Level: 10}, Verdict: slo.Pass}, {StepPlan: record.StepPlan{Level: 12}, Verdict: slo.Invalid}}}, ceiling.NotReached, 10, "what was not judged is not found"},
		{result.Result{Steps: []result.Step{{StepPlan: record.StepPlan{Level: 10}, Verdict: slo.Inconclusive}}}, "", 0, "nothing was found"},
		{result.Result{Comparison: &compare.Comparison{}, Steps: []result.Step{{StepPlan: record.StepPlan{Level: 10}, Verdict: slo.Pass}}}, "", 0, "a comparison asks for no level"},
	} {
		r := tt.result
		for i := range r.Steps {
			r.Steps[i].LevelReached = r.Steps[i].Level
		}
		AddPredictions(&r, environment)
		if len(r.Ceilings) != 1 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Text, "before any load, pods: 2 pods") {
			t.Errorf("%s: ceilings %v, warnings %v", tt.why, r.Ceilings, r.Warnings)
		}
		switch p := r.Prediction; {
		case p == nil:
			if tt.want != "" {
				t.Errorf("%s: no prediction", tt.why)
			}
		case p.Agreement != tt.want, p.Found == nil && tt.level != 0, p.Found != nil && *p.Found != tt.level:
			t.Errorf("%s: %+v, want %s", tt.why, p, tt.want)
		case strings.Contains(p.Text, "already fails") && tt.level == 0 && len(r.Steps) > 1 && r.Steps[0].Level == r.Steps[1].Level:
			t.Errorf("%s: %s", tt.why, p.Text)
		}
	}
	var r result.Result
	AddPredictions(&r, record.Environment{})
	if r.Prediction != nil || len(r.Warnings) != 0 {
		t.Errorf("a run of before: %+v", r)
	}
}
