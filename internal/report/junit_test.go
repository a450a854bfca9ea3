package report

import (
	"bytes"
	"encoding/xml"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// A JUnit file fails where the exit code is not 0: it has failures for what
// did not hold, errors for what is unknown, and skips what is not required.
func TestJUnit(t *testing.T) {
	goals := func(verdicts ...slo.Verdict) (list []result.GoalResult) {
		for i, v := range verdicts {
			list = append(list, result.GoalResult{Name: string(rune('a' + i)), SLO: []string{"Ready p99 <= 5s"}, Verdict: v, Why: "a < b & \x1b[31mred\xff"})
		}
		return list
	}
	for _, c := range []struct {
		why                        string
		r                          result.Result
		tests, fail, errs, skipped int
	}{
		{"one goal held", result.Result{Goals: goals(slo.Pass)}, 1, 0, 0, 0},
		{"one failed", result.Result{Goals: goals(slo.Fail)}, 1, 1, 0, 0},
		{"one is not decided", result.Result{Goals: goals(slo.Inconclusive)}, 1, 0, 1, 0},
		{"one is invalid", result.Result{Goals: goals(slo.Invalid)}, 1, 0, 1, 0},
		{"a further goal failed", result.Result{Goals: goals(slo.Pass, slo.Fail)}, 2, 0, 0, 1},
		{"every goal is required", result.Result{Require: "all", Goals: goals(slo.Pass, slo.Fail, slo.Inconclusive)}, 3, 1, 1, 0},
		{"another goal is required", result.Result{Require: "b", Goals: goals(slo.Fail, slo.Pass)}, 2, 0, 0, 1},
		{"a comparison that is worse", result.Result{Kind: "ab", ExitCode: 1, Verdict: "worse", Goals: goals(slo.Pass), Comparison: &compare.Comparison{}}, 1, 1, 0, 0},
		{"a comparison that is not decided", result.Result{Kind: "ab", ExitCode: 3, Goals: goals(slo.Pass), Comparison: &compare.Comparison{}}, 1, 0, 1, 0},
		{"no goals at all", result.Result{Kind: "limit", ExitCode: 3, Verdict: slo.Inconclusive}, 1, 0, 1, 0},
	} {
		var out bytes.Buffer
		if err := JUnit(&out, c.r); err != nil {
			t.Fatal(err)
		}
		var s junitSuite
		if err := xml.Unmarshal(out.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v\n%s", c.why, err, out.String())
		}
		var fail, errs, skipped int
		for _, k := range s.Cases {
			for _, n := range []struct {
				note *junitNote
				n    *int
			}{{k.Failure, &fail}, {k.Error, &errs}, {k.Skipped, &skipped}} {
				if n.note != nil {
					*n.n++
				}
			}
		}
		if len(s.Cases) != c.tests || fail != c.fail || errs != c.errs || skipped != c.skipped || s.Tests != c.tests || s.Failures != fail || s.Errors != errs || s.Skipped != skipped {
			t.Errorf("%s: %d tests, %d failed, %d errors, %d skipped:\n%s", c.why, len(s.Cases), fail, errs, skipped, out.String())
		}
	}
}

// Each cell of a grid is a test, and one that was not run is an error.
func TestGridJUnit(t *testing.T) {
	var out bytes.Buffer
	g := judge.Grid{Cells: []judge.Cell{
		{Name: "a", Result: result.Result{Verdict: slo.Pass}}, {Name: "b", Result: result.Result{Verdict: slo.Fail, ExitCode: 1}},
		{Name: "c", Failed: "it was not run", Result: result.Result{ExitCode: 3}},
	}}
	if err := GridJUnit(&out, g); err != nil {
		t.Fatal(err)
	}
	var s junitSuite
	if err := xml.Unmarshal(out.Bytes(), &s); err != nil || s.Tests != 3 || s.Failures != 1 || s.Errors != 1 || s.Cases[2].Error.Message != "it was not run" {
		t.Errorf("%v:\n%s", err, out.String())
	}
}
