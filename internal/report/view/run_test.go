package view

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// twoSteps is a search of which the first level held and the second did not.
func twoSteps() result.Result {
	return result.Result{
		Workload: "pods", Kind: "limit", Verdict: slo.Pass, Why: "the line was confirmed", ObjectKind: pods(),
		LoadLine: &result.LoadLine{Unit: "pods/node", Level: new(100.0), LowestFailing: new(110.0), Confirmations: 3, ConfirmationsAsked: 3, PassProbability: 0.37, Binding: "Too many pods"},
		Goals:    []result.GoalResult{{Name: "ready", SLO: []string{"all Ready"}, Verdict: slo.Pass}},
		Steps: []result.Step{
			{
				ID: 1, StepPlan: record.StepPlan{Level: 100, Purpose: record.PurposeRamp, Why: "where the ramp begins", FromEmpty: true, FullHold: true}, LevelReached: 100, Verdict: slo.Pass,
				Start: "2030-01-02T03:04:05.000000Z", Objects: result.Objects{Intended: 200, Created: 200, Ready: 200}, AchievedRate: new(12.34),
				Latency: result.Latencies{"Ready": {N: 200, P50: new(0.25), P99: new(1.5)}},
			},
			{
				ID: 2, StepPlan: record.StepPlan{Level: 110, Purpose: record.PurposeRamp, Why: "one step more"}, LevelReached: 110, Verdict: slo.Fail, VerdictWhy: "all Ready: 20 of 220 did not reach it",
				Start: "2030-01-02T03:05:05.000000Z", Objects: result.Objects{Intended: 220, Created: 215, CreateFailed: 5, Ready: 200, NeverReady: 14, Lost: 1},
				Latency: result.Latencies{"Ready": {N: 220, Censored: 20, P50: new(0.3)}},
				Reasons: []result.Reason{{Reason: "Unschedulable", Message: "0/2 nodes are available: 2 Too many pods.", Count: 14, Places: 2, PlacesOf: 2}, {Reason: "HTTP 500", Message: "no leader", Count: 3, Requests: true}},
			},
		},
	}
}

// The table of steps has a row for each, with what was asked for and what became of it.
func TestSteps(t *testing.T) {
	refused := twoSteps()
	refused.Steps[1].APIRequests = result.APIRequests{N: 220, Failed: 5}
	stream := result.Result{ObjectKind: record.ObjectKind{There: "Complete"}, Steps: []result.Step{{
		ID: 1, LevelReached: 500, StepPlan: record.StepPlan{Purpose: record.PurposeSweep}, Verdict: slo.Pass, AtLeast: true, AchievedRate: new(480.0),
		Requests: &result.StreamRequests{Intended: 1000, Sent: 990, Done: 980, Failed: map[string]int{"timeout": 8}, Dropped: 10, Lost: 2},
		Latency:  result.Latencies{"Complete": {N: 1000, Censored: 20, P50: new(0.002)}},
	}}}
	limited := twoSteps()
	limited.ObjectKind.Concurrent = &record.Concurrent{From: "Created", To: "Ready", Limit: 50}
	limited.Steps[0].Concurrent = &result.Concurrent{Concurrent: *limited.ObjectKind.Concurrent, Most: 48, PerPlace: 30}
	limited.Steps = limited.Steps[:1]
	armed := twoSteps()
	armed.Steps = armed.Steps[:1]
	armed.Steps[0].Arm = "crun"
	const head = "step|purpose|level|asked|ready|never|lost|per second|Ready p50|p99|verdict"
	checkSections(t, []section{
		{"no step was made", one(steps(result.Result{})), ""},
		{"a search", one(steps(twoSteps())), lines(head,
			"1|ramp|100|200|200|0|0|12.3|250 ms|1.50 s|pass",
			"2|ramp|110|220|200|19|1|-|300 ms|never|fail")},
		{"requests failed", one(steps(refused)), lines(head+"|requests failed",
			"1|ramp|100|200|200|0|0|12.3|250 ms|1.50 s|pass|0 of 0",
			"2|ramp|110|220|200|19|1|-|300 ms|never|fail|5 of 220")},
		{"a stream", one(steps(stream)), lines(
			"step|purpose|level|intended|done|not done|lost|per second|Complete p50|p99|verdict",
			"1|sweep|500|1000|980|18|2|at least 480.0|2.00 ms|never|pass")},
		{"a limit of objects at once", one(steps(limited)), lines(head+"|Created at once|of one node",
			"1|ramp|100|200|200|0|0|12.3|250 ms|1.50 s|pass|48 of 50|30")},
		{"an arm stands in place of the purpose", one(steps(armed)), lines(head, "1|crun|100|200|200|0|0|12.3|250 ms|1.50 s|pass")},
	})
}

// The verdict is one sentence, with the level, its unit, and what bound it.
func TestSentence(t *testing.T) {
	line := func(change func(*result.Result)) result.Result {
		r := twoSteps()
		r.Steps = nil
		if change != nil {
			change(&r)
		}
		return r
	}
	sweep := func(change func(*result.Result)) result.Result {
		r := twoSteps()
		r.LoadLine, r.Kind, r.Why = nil, "sweep", "2 levels"
		if change != nil {
			change(&r)
		}
		return r
	}
	const confirmed = "Load line of pods: 100 pods/node, confirmed 3 of 3 from empty; 110 failed, bound by: Too many pods."
	const means = " (A further run there passes with a probability of at least 37%, at 95% confidence.)"
	for _, c := range []struct {
		why  string
		of   result.Result
		want string
	}{
		{"a line", line(nil), confirmed + means},
		{"a line with its estimate", line(func(r *result.Result) {
			r.LoadLine.Estimate, r.LoadLine.Interval = new(105.0), &result.Range{Lo: new(99.0), Hi: new(111.0)}
		}), confirmed + " (A further run there passes with a probability of at least 37%, at 95% confidence. Half of the runs hold at 105 pods/node, 95% interval 99 to 111.)"},
		{"an exact line has no estimate", line(func(r *result.Result) {
			r.LoadLine.Estimate, r.LoadLine.Interval, r.LoadLine.Exact = new(105.0), &result.Range{Lo: new(99.0), Hi: new(111.0)}, true
		}), confirmed + means},
		{"another level was made than was asked for", line(func(r *result.Result) {
			r.LoadLine.LevelAsked, r.LoadLine.Sustained = new(101.0), new(96.5)
		}), "Load line of pods: 100 pods/node (101 asked for) (96.5/s sustained), confirmed 3 of 3 from empty; 110 failed, bound by: Too many pods." + means},
		{"one of five confirmations may fail", line(func(r *result.Result) { r.LoadLine.Confirmations, r.LoadLine.ConfirmationsMade = 4, 5 }),
			"Load line of pods: 100 pods/node, confirmed 4 of 5 from empty; 110 failed, bound by: Too many pods." + means},
		{"nothing failed", line(func(r *result.Result) { r.LoadLine.LowestFailing, r.LoadLine.Binding = nil, "" }),
			"Load line of pods: 100 pods/node, confirmed 3 of 3 from empty; nothing failed up to the highest level tried." + means},
		{"the first level failed", line(func(r *result.Result) { r.Verdict, r.LoadLine.Level = slo.Fail, nil }),
			"Load line of pods: below the first level: 110 pods/node failed, bound by: Too many pods."},
		{"it lies between two levels", line(func(r *result.Result) { r.Verdict, r.Why = slo.Inconclusive, "the budget is spent" }),
			"Load line of pods: inconclusive, between 100 and 110 pods/node: the budget is spent, bound by: Too many pods."},
		{"no level failed in time", line(func(r *result.Result) {
			r.Verdict, r.Why, r.LoadLine.LowestFailing, r.LoadLine.Binding = slo.Inconclusive, "the budget is spent", nil, ""
		}), "Load line of pods: inconclusive, at least 100 pods/node held: the budget is spent."},
		{"nothing is known", line(func(r *result.Result) {
			r.Verdict, r.Why, r.LoadLine = slo.Invalid, "step 1 is invalid", &result.LoadLine{}
		}),
			"Load line of pods: invalid: step 1 is invalid."},
		{"the steps do not agree", line(func(r *result.Result) {
			r.Verdict, r.LoadLine.Binding, r.LoadLine.Mixed = slo.Inconclusive, "", []design.Mixed{{Level: 100, Passed: 2, Failed: 1}, {Level: 105, Passed: 1, Failed: 2}}
		}), "Load line of pods: inconclusive, between 100 and 110 pods/node: the line was confirmed; the steps do not agree: 100 held 2 of 3 times and 105 held 1 of 3 times."},
		{"a sweep that held", sweep(nil), "pods held at every level: 2 levels."},
		{"a sweep that held by the headline alone", sweep(func(r *result.Result) {
			r.Goals = append(r.Goals, result.GoalResult{Name: "startup", Verdict: slo.Fail}, result.GoalResult{Name: "slow", Verdict: slo.Inconclusive})
		}), "pods held at every level by goal ready, but not by startup (fail) and slow (inconclusive): 2 levels."},
		{"a sweep that held by all goals but one", sweep(func(r *result.Result) {
			r.Goals = append(r.Goals, result.GoalResult{Name: "startup", Verdict: slo.Fail})
		}), "pods held at every level by goal ready, but not by startup (fail): 2 levels."},
		{"a sweep that failed", sweep(func(r *result.Result) { r.Verdict = slo.Fail }), "pods did not hold at 110: all Ready: 20 of 220 did not reach it."},
		{"a sweep that decides nothing", sweep(func(r *result.Result) { r.Verdict = slo.Invalid }), "pods: invalid: 2 levels."},
		{"requests failed at one level", sweep(func(r *result.Result) { r.Steps[1].APIRequests = result.APIRequests{N: 220, Failed: 3} }),
			"pods held at every level: 2 levels. 3 of 220 requests failed at 110 (HTTP 500: no leader)."},
		{"requests failed at two levels", sweep(func(r *result.Result) {
			r.Steps[0].APIRequests, r.Steps[1].APIRequests = result.APIRequests{N: 200, Failed: 1}, result.APIRequests{N: 220, Failed: 3}
		}), "pods held at every level: 2 levels. 4 of 420 requests failed at 2 levels, most at 110 (HTTP 500: no leader)."},
	} {
		if got := Sentence(c.of); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.why, got, c.want)
		}
	}
}

// A growing backlog is shown over the hold; a steady one only where all is explained.
func TestBacklogs(t *testing.T) {
	steady := result.Step{ID: 1, LevelReached: 10, Backlog: &result.Backlog{Means: []float64{2, 2, 2, 2}, Balance: new(2.4)}}
	growing := result.Step{ID: 2, LevelReached: 20, Backlog: &result.Backlog{
		Means: []float64{1, 10, 20, 40}, Slope: result.Interval{Value: new(1.9), Lo: new(1.5), Hi: new(2.25)}, Growing: true,
	}}
	const title = "Backlog: arrivals that were due and not done yet (in balance it is the mean latency times the rate):\nstep|level|over the hold|first|last|in balance|growth/s"
	checkSections(t, []section{
		{"no schedule", one(backlogs(twoSteps(), true)), ""},
		{"steady", one(backlogs(result.Result{Steps: []result.Step{steady}}, false)), ""},
		{"steady, and all is explained", one(backlogs(result.Result{Steps: []result.Step{steady}}, true)), lines(title, "1|10|██|2|2|2|-")},
		{"growing", one(backlogs(result.Result{Steps: []result.Step{steady, growing}}, false)), lines(title, "1|10|██|2|2|2|-", "2|20|▃█|1|40|-|1.90 (1.50 to 2.25)")},
	})
}

// What kept objects from being ready is grouped and counted, of the last step that says it.
func TestReasons(t *testing.T) {
	many := twoSteps()
	many.Steps[1].Reasons = nil
	for _, name := range []string{"A", "B", "C", "D", "E", "F", "G"} {
		many.Steps[1].Reasons = append(many.Steps[1].Reasons, result.Reason{Reason: name, Message: name, Count: 1})
	}
	onlyRequests := twoSteps()
	onlyRequests.Steps[1].Reasons = []result.Reason{{Reason: "HTTP 500", Count: 1, Requests: true}}
	stream := result.Result{Steps: []result.Step{{ID: 3, LevelReached: 500, Requests: &result.StreamRequests{}, Reasons: []result.Reason{{Reason: "timeout", Count: 8}}}}}
	checkSections(t, []section{
		{"all were ready", one(reasons(result.Result{Steps: []result.Step{{ID: 1}}})), ""},
		{"nodes were full", one(reasons(twoSteps())), lines("Why pods were not ready in step 2, at 110:",
			"  14 pods: Unschedulable on 2 of 2 nodes", "      0/2 nodes are available: 2 Too many pods.",
			"  3 requests: HTTP 500", "      no leader")},
		{"only requests failed", one(reasons(onlyRequests)), lines("Why requests failed in step 2, at 110:", "  1 request: HTTP 500")},
		{"a stream", one(reasons(stream)), lines("Why requests were not done in step 3, at 500:", "  8 requests: timeout")},
		{"more than are shown", one(reasons(many)), lines("Why pods were not ready in step 2, at 110:", "  1 pod: A", "  1 pod: B", "  1 pod: C", "  1 pod: D", "  1 pod: E", "  and 2 more reasons, in result.json")},
	})
}

// Why each level was chosen, with how it was reached and held.
func TestWhy(t *testing.T) {
	told := twoSteps()
	told.Steps[1].Breaches = []result.Breach{{What: "all Ready: 20 of 220 did not reach it"}}
	checkSections(t, []section{
		{"what broke is told here", one(why(twoSteps())), lines("Why each level was chosen:",
			"   1  where the ramp begins (from empty, full hold): pass",
			"   2  one step more (raised, short hold): fail: all Ready: 20 of 220 did not reach it",
			"  done: the line was confirmed")},
		{"what broke was told", one(why(told)), lines("Why each level was chosen:",
			"   1  where the ramp begins (from empty, full hold): pass",
			"   2  one step more (raised, short hold): fail",
			"  done: the line was confirmed")},
	})
}

// With several goals each has its line, and the exit code says which it follows.
func TestGoals(t *testing.T) {
	two := func(change func(*result.Result)) result.Result {
		r := twoSteps()
		r.Goals = append(r.Goals, result.GoalResult{Name: "startup", SLO: []string{"Ready p99 <= 5s", "errors <= 1%"}, Verdict: slo.Fail, Why: "it was 9s"})
		change(&r)
		return r
	}
	const list = "goal ready (all Ready): pass; it is the headline, and the first sentence says more\ngoal startup (Ready p99 <= 5s; errors <= 1%): fail: it was 9s\n"
	line := &result.LoadLine{Unit: "pods/node", LowestFailing: new(20.0)}
	checkSections(t, []section{
		{"one goal", one(goals(twoSteps())), ""},
		{"the headline", one(goals(two(func(r *result.Result) {}))), list + "The exit code, 0, follows the headline goal alone; --require all follows every goal."},
		{"every goal", one(goals(two(func(r *result.Result) { r.ExitCode, r.Require = 1, plan.RequireAll }))), list + "The exit code, 1, follows every goal."},
		{"a named goal", one(goals(two(func(r *result.Result) { r.ExitCode, r.Require = 1, "startup" }))), list + "The exit code, 1, follows the goal startup."},
		{"a signal", one(goals(two(func(r *result.Result) { r.ExitCode = 130 }))), list + "The exit code, 130, is that of the signal that ended the run."},
		{"a comparison", one(goals(two(func(r *result.Result) { r.Comparison = &compare.Comparison{} }))), list + "The exit code, 0, follows the comparison."},
		{"a goal with a line of its own", one(goals(two(func(r *result.Result) { r.Goals[1].LoadLine = line }))), "goal ready (all Ready): pass; it is the headline, and the first sentence says more\n" +
			"goal startup (Ready p99 <= 5s; errors <= 1%): below the first level: 20 pods/node failed.\nThe exit code, 0, follows the headline goal alone; --require all follows every goal."},
	})
}

// A terminal shows the verdict first, with the prediction and what was simulated, then the
// steps, and at the end where the record is.
func TestRunIsWhole(t *testing.T) {
	r := twoSteps()
	r.Prediction = &ceiling.Prediction{Text: "Predicted were 110 pods/node."}
	r.Fidelity = record.Fidelity{ControlPlane: record.Real, Nodes: record.Simulated, Containers: record.Simulated, Guests: record.None}
	r.Warnings = record.Warnings{{Kind: record.WarningNote, Text: "the clock was set back", Steps: []int{2}}}
	list := Run(r, "runs/1", true)
	if got, want := shown(list[0]), lines(Sentence(r), "Predicted were 110 pods/node.", "Simulated: nodes, containers; the control plane was real."); got != want {
		t.Errorf("first:\n%s\nwant\n%s", got, want)
	}
	if got := shown(list[1]); got != shown(steps(r)) {
		t.Errorf("then:\n%s", got)
	}
	if got, want := shown(list[len(list)-1]), "Record: runs/1"; got != want {
		t.Errorf("at the end:\n%s\nwant\n%s", got, want)
	}
	if got, want := shown(list[len(list)-2]), "warning: step 2: the clock was set back"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if few := len(Run(r, "runs/1", false)); few != len(list)-1 {
		t.Errorf("%d sections without an explanation, and %d with it", few, len(list))
	}
	for _, s := range list {
		checkTables(t, s.Title, s)
	}
	compared := r
	compared.Comparison = &compare.Comparison{Baseline: "runc", Refused: "the kernels differ", Levels: []compare.LevelComparison{{Arm: "crun", Level: 60, Why: "no verdict"}}}
	found := false
	for _, s := range Run(compared, "runs/1", false) {
		found = found || s.Title == "crun against runc at 60: measured, no verdict"
	}
	if !found {
		t.Error("the comparison is not shown")
	}
}

// Nothing simulated is nothing to say.
func TestFidelityNote(t *testing.T) {
	for _, c := range []struct {
		why  string
		of   record.Fidelity
		want string
	}{
		{"all was real", record.Fidelity{ControlPlane: record.Real, Nodes: record.Real}, ""},
		{"nothing is known", record.Fidelity{}, ""},
		{"all was simulated", record.Fidelity{ControlPlane: record.Simulated, Nodes: record.Simulated}, "Simulated: control plane, nodes."},
	} {
		if got := fidelityNote(c.of); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
	}
}
