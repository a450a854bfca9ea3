package report

import (
	"bytes"
	"encoding/xml"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
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
		if err := JUnit(&out, c.r, nil); err != nil {
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
	if err := GridJUnit(&out, g, nil); err != nil {
		t.Fatal(err)
	}
	var s junitSuite
	if err := xml.Unmarshal(out.Bytes(), &s); err != nil || s.Tests != 3 || s.Failures != 1 || s.Errors != 1 || s.Cases[2].Error.Message != "it was not run" {
		t.Errorf("%v:\n%s", err, out.String())
	}
}

// A comparison with a baseline adds a test for each load line, or for each figure at each level; what
// cannot be compared is an error, and a first night is skipped.
func TestBaselineJUnit(t *testing.T) {
	line := func(goal string, v stats.Verdict) compare.LineComparison {
		return compare.LineComparison{Goal: goal, Verdict: v, Why: "it moved"}
	}
	level := func(verdicts ...stats.Verdict) compare.LevelComparison {
		l := compare.LevelComparison{Level: 60}
		for _, v := range verdicts {
			l.Metrics = append(l.Metrics, compare.Decision{Verdict: v, Figure: compare.Compared{Metric: "Ready " + string(v)}})
		}
		return l
	}
	lines := &compare.Comparison{Lines: []compare.LineComparison{line("a", stats.Worse), line("b", stats.Equivalent), line("c", stats.Undecided)}}
	levels := &compare.Comparison{Decides: compare.ByLevels, Lines: lines.Lines, Levels: []compare.LevelComparison{level(stats.Better, stats.Worse), level(stats.NotWorse, stats.Undecided)}}
	for _, c := range []struct {
		why                        string
		o                          []recorded.Outcome
		tests, fail, errs, skipped int
		name                       string
	}{
		{"without an earlier night", nil, 2, 0, 0, 1, "against an earlier run"},
		{"each load line", []recorded.Outcome{{ExitCode: 1, Comparison: lines}}, 4, 1, 1, 0, "load line by goal a against n1"},
		{"each figure at each level", []recorded.Outcome{{ExitCode: 1, Comparison: levels}}, 5, 1, 1, 0, "Ready better at 60 against n1"},
		{"an arm", []recorded.Outcome{{ExitCode: 1, Comparison: lines, Experiments: []recorded.Experiment{{Arm: "x"}, {Arm: "x"}}}}, 4, 1, 1, 0, "x: load line by goal a against n1"},
		{"what is not comparable", []recorded.Outcome{{ExitCode: 3, Comparison: &compare.Comparison{Refused: "hold", Lines: lines.Lines}}}, 2, 0, 1, 0, "the run against n1"},
		{"what could not be read", []recorded.Outcome{{ExitCode: 3}}, 2, 0, 1, 0, "the run against n1"},
		{"a disturbed night", []recorded.Outcome{{ExitCode: 4, Comparison: lines}}, 2, 0, 1, 0, "the run against n1"},
		{"two arms", []recorded.Outcome{{ExitCode: 3}, {ExitCode: 1, Comparison: lines}}, 5, 1, 2, 0, "the run against n1"},
	} {
		a := &recorded.Against{Baseline: "n1"}
		for _, o := range c.o {
			a.Add(o)
		}
		var out bytes.Buffer
		if err := JUnit(&out, result.Result{Kind: "limit"}, a); err != nil {
			t.Fatal(err)
		}
		var s junitSuite
		if err := xml.Unmarshal(out.Bytes(), &s); err != nil || s.Tests != c.tests || s.Failures != c.fail || s.Errors != c.errs || s.Skipped != c.skipped || s.Cases[0].Name != c.name {
			t.Errorf("%s: %v:\n%s", c.why, err, out.String())
		}
		if red := s.Failures+s.Errors > 0; red != (a.Code(0) != 0) || a.Code(4) != 4 {
			t.Errorf("%s: the file is red: %t, and the exit code is %d", c.why, red, a.Code(0))
		}
	}
}
