package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

func figure(x float64) *float64 { return &x }

// stepAt is a step of a result, with the latency to Ready.
func stepAt(id int, level float64, purpose record.Purpose, verdict slo.Verdict, why string, o result.Objects, p50, p99 *float64) result.Step {
	return result.Step{
		ID: id, StepPlan: record.StepPlan{Level: level, Purpose: purpose, Why: string(purpose) + " at " + words.Number(level), FromEmpty: purpose == record.PurposeConfirm || purpose == record.PurposeUpper, FullHold: purpose == record.PurposeConfirm}, LevelReached: level, Verdict: verdict, VerdictWhy: why,
		Objects: o, AchievedRate: figure(123.456), Seconds: 2,
		Latency: result.Latencies{"Ready": {N: o.Intended, Censored: o.NeverReady, P50: p50, P99: p99}, "Created": {N: o.Intended, P50: figure(0.001)}},
		Start:   "2030-01-02T03:04:05.000000Z", End: "2030-01-02T03:04:07.000000Z",
	}
}

func account(asked, there, never, lost int) result.Objects {
	return result.Objects{Intended: asked, Created: asked, Ready: there, NeverReady: never, Lost: lost}
}

// cases are results of every kind of outcome.
func cases() map[string]result.Result {
	held := stepAt(1, 100, record.PurposeRamp, slo.Pass, "every objective held", account(2000, 2000, 0, 0), figure(0.35), figure(1.4321))
	failed := stepAt(2, 200, record.PurposeRamp, slo.Fail, "all Ready: 1800 of 4000 did not reach it", account(4000, 2200, 1800, 0), figure(0.51), nil)
	failed.Reasons = []result.Reason{
		{Reason: "Too many pods", Message: "0/20 nodes are available: 20 Too many pods.", Count: 1795, Places: 20, PlacesOf: 20},
		{Reason: "ImagePullBackOff", Message: "ImagePullBackOff", Count: 5},
	}
	open := stepAt(2, 200, record.PurposeRamp, slo.Inconclusive, "the state of 7 objects is unknown", account(4000, 3993, 0, 7), figure(0.51), nil)
	invalid := stepAt(1, 100, record.PurposeRamp, slo.Invalid, "requests were sent late while there was room", account(2000, 2000, 0, 0), figure(0.35), figure(1.4))
	confirmed := stepAt(3, 100, record.PurposeConfirm, slo.Pass, "every objective held", account(2000, 2000, 0, 0), figure(0.0004), figure(12.34))
	none := stepAt(1, 10, record.PurposeRamp, slo.Fail, "all Ready: 200 of 200 did not reach it", account(200, 0, 200, 0), nil, nil)
	none.AchievedRate = nil

	line := func(level, failing *float64, confirmed int, binding string) *result.LoadLine {
		l := &result.LoadLine{Axis: "pods-per-node", Unit: "pods/node", Level: level, LowestFailing: failing, Resolution: 1, Confirmations: confirmed, ConfirmationsAsked: 3, ConfirmationsMade: confirmed, Binding: binding}
		if confirmed > 0 {
			l.PassProbability = 0.37
		}
		return l
	}
	judged := func(verdict slo.Verdict, why string, l *result.LoadLine, steps ...result.Step) result.Result {
		return result.Result{
			Schema: result.Schema, ObjectKind: pods(), Experiment: "density", Workload: "node-density", Kind: "limit", Verdict: verdict, Why: why, LoadLine: l, Steps: steps, Arrived: "Ready",
			Goals:    []result.GoalResult{{Name: "ready", SLO: []string{"all Ready"}, LoadLine: l, Verdict: verdict, Why: why}},
			Fidelity: record.Fidelity{ControlPlane: record.Real, Nodes: record.Simulated, Containers: record.Simulated, Guests: record.None},
		}
	}
	list := map[string]result.Result{
		"confirmed":      judged(slo.Pass, "100 held in 3 of 3 confirmations, 101 failed from empty", line(figure(100), figure(101), 3, "Too many pods on 20 of 20 nodes"), held, failed, confirmed),
		"nothing-failed": judged(slo.Pass, "100 held in 3 of 3 confirmations, the highest level allowed", line(figure(100), nil, 3, ""), held, confirmed),
		"first-fails":    judged(slo.Fail, "the first level failed", line(nil, figure(10), 0, "Too many pods on 20 of 20 nodes"), none),
		"bracket":        judged(slo.Inconclusive, "the budget is spent", line(figure(100), figure(200), 0, "Too many pods on 20 of 20 nodes"), held, failed),
		"at-least":       judged(slo.Inconclusive, "the step at 200 decides nothing", line(figure(100), nil, 0, ""), held, open),
		"nothing-known":  judged(slo.Inconclusive, "the run was interrupted", line(nil, nil, 0, "")),
		"invalid":        judged(slo.Invalid, "plimsoll was the bottleneck at 100", line(nil, nil, 0, ""), invalid),
		"sweep-held":     judged(slo.Pass, "every level held", nil, held, confirmed),
		"sweep-failed":   judged(slo.Fail, "1 of 2 levels failed", nil, held, failed),
		"sweep-open":     judged(slo.Inconclusive, "1 of 2 levels is not decided", nil, held, open),
		"sweep-invalid":  judged(slo.Invalid, "1 of 1 levels is not valid", nil, invalid),
	}
	goals := judged(slo.Pass, "100 held in 3 of 3 confirmations, 101 failed from empty", line(figure(100), figure(101), 3, "Too many pods on 20 of 20 nodes"), held, failed, confirmed)
	goals.Goals = append(goals.Goals,
		result.GoalResult{Name: "startup", SLO: []string{"ContainersStarted p99 <= 5s", "errors < 1%"}, LoadLine: line(figure(60), figure(61), 3, "ContainersStarted p99 <= 5s: it was 6.1s"), Verdict: slo.Pass},
		result.GoalResult{Name: "fast", SLO: []string{"Ready p99 <= 1ms"}, LoadLine: line(nil, figure(10), 0, ""), Verdict: slo.Fail})
	goals.Warnings = record.Warnings{{Text: "a watch was cut", Count: 3, Steps: []int{1, 2}}}
	goals.Diagnosis = []result.Diagnosis{{Signature: "too-many-pods", Title: "The nodes have no room for more pods", Evidence: "every node is full: 5 times", Explanation: "So it is.", Remedy: "raise maxPods", Step: 2, Steps: []int{2, 3, 5}, Failing: true, Source: "a study"},
		{Signature: "etcd-slow", Title: "etcd is too slow", Evidence: "once", Explanation: "So it is.", Remedy: "a better disk", Step: 1, Steps: []int{1}}}
	goals.Ceilings = []record.Ceiling{{Name: "allocatablePods", What: "allocatable pods of the nodes", Class: record.CeilingHard, Level: new(110.0), Total: new(2200.0), Limit: new(2200.0), Used: new(0.0), Unit: "pods", Binds: true,
		Reason: "Too many pods on 20 of 20 nodes", Sign: "Too many pods", From: "status.allocatable of the nodes"}, {Name: "bridgePorts", What: "ports of the nodes' Linux bridges", Class: record.CeilingUnknown, Note: "the API does not tell"}}
	goals.Prediction = &ceiling.Prediction{Level: new(110.0), What: "allocatable pods of the nodes", Reason: "Too many pods on 20 of 20 nodes", Found: new(110.0), FoundFailing: new(111.0),
		FoundBinding: "Too many pods on 20 of 20 nodes", Agreement: ceiling.AsPredicted, Text: "Predicted 110 pods/node by allocatable pods of the nodes (Too many pods on 20 of 20 nodes); found 110, bound by the same."}
	goals.Fidelity = record.Fidelity{ControlPlane: record.Real, Nodes: record.Real, Containers: record.Real, Guests: record.None}
	list["goals"] = goals
	tolerated := line(figure(100), figure(101), 4, "Too many pods on 20 of 20 nodes")
	tolerated.ConfirmationsAsked, tolerated.ConfirmationsMade, tolerated.PassProbability = 4, 5, 0.34
	worse := judged(slo.Verdict(stats.Worse), "Ready p50 changed by +9.7%, 95% interval +8.6% to +10.9%, margin 5%, 2 runs each", nil, held, confirmed)
	worse.Published = []result.Published{
		{What: "largest Ready latency", Metric: "Ready max", Arm: "base", Unit: "s", Published: 183, Found: figure(1.7), At: figure(10), Source: "a study"},
		{What: "its change", Metric: "Ready max", Arm: "slow", Unit: "%", Published: -0.126, Found: figure(0.1), Lo: figure(0.05), Hi: figure(0.15), At: figure(10), Source: "a study"},
		{What: "what was not measured", Unit: "pods/node", Published: 2500, Source: "a \x1b[31mstudy"},
	}
	worse.Comparison = &compare.Comparison{
		Baseline: "base", Metric: "Ready p50", Margin: 0.05, Alpha: 0.05,
		Arms: map[string]map[string]string{"base": {}, "slow": {"startLatency": "constant:1s"}},
		Levels: []compare.LevelComparison{{
			Level: 10, Arm: "slow", Verdict: stats.Worse, Why: worse.Why, Excluded: []string{"step 3 (base, block 2) is invalid: late"},
			Primary: compare.Compared{Metric: "Ready p50", Unit: "s", Baseline: []*float64{figure(1), figure(1.02)}, Arm: []*float64{figure(1.1), nil}, Change: figure(0.097), Lo: figure(0.086), Hi: figure(0.109)},
			Others: []compare.Compared{
				{Metric: "Ready p99", Unit: "s", Change: figure(0.2), Lo: figure(0.1), Hi: figure(0.3), FalseDiscovery: figure(0.01)},
				{Metric: "request p50", Unit: "s", Change: figure(0.01), Lo: figure(-0.1), Hi: figure(0.1), FalseDiscovery: figure(0.9)},
			},
			Distance: figure(0.31), Superiority: figure(0.62), PermutationP: figure(0.5),
		}},
	}
	list["worse"] = worse
	failed.Reasons = []result.Reason{{Reason: "Failed", Message: "line one\nline two\x1b[31m red", Count: 1}}
	list["tolerated"] = judged(slo.Pass, "100 held in 4 of 5 confirmations", tolerated, held, failed, confirmed)
	return list
}

func TestText(t *testing.T) {
	for name, r := range cases() {
		var out bytes.Buffer
		if err := Text(&out, r, "runs/1", name == "confirmed"); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, *update, "text-"+name+".txt", out.Bytes())
	}
}

// The page's headline says what the text's sentence says.
func TestHeadline(t *testing.T) {
	want := map[string]string{
		"confirmed":      "node-density holds 100 pods/node and fails at 101",
		"nothing-failed": "node-density holds 100 pods/node, the highest level tried",
		"first-fails":    "node-density fails at its first level, 10 pods/node",
		"bracket":        "Inconclusive: the load line of node-density lies from 100 to below 200 pods/node",
		"at-least":       "Inconclusive: node-density held 100 pods/node; higher levels are unknown",
		"nothing-known":  "Inconclusive: the limit of node-density is unknown",
		"invalid":        "Invalid: the limit of node-density is unknown",
		"sweep-held":     "node-density holds at every level, 100 pods/node",
		"sweep-failed":   "node-density fails at 200 pods/node",
		"sweep-open":     "Inconclusive: whether node-density holds is unknown",
		"sweep-invalid":  "Invalid: node-density was not the bottleneck",
		"worse":          "node-density: slow is worse than base",
		"tolerated":      "node-density holds 100 pods/node and fails at 101",
		"goals":          "node-density holds 100 pods/node and fails at 101",
	}
	for name, r := range cases() {
		if got := view.Headline(r, "pods/node"); got != want[name] {
			t.Errorf("%s: %q, want %q", name, got, want[name])
		}
	}
	if got := view.Headline(result.Result{Workload: "w", Verdict: slo.Inconclusive}, ""); got != "w: nothing was measured" {
		t.Errorf("without a step: %q", got)
	}
}

// A reader that goes away is an error, wherever it happens.
func TestTextTellsOfWritingThatFails(t *testing.T) {
	r := cases()["confirmed"]
	var whole bytes.Buffer
	if err := Text(&whole, r, "d", true); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < whole.Len(); n += 97 {
		if err := Text(&shortWriter{left: n}, r, "d", true); err == nil || !strings.Contains(err.Error(), "no room") {
			t.Errorf("after %d bytes: error %v", n, err)
		}
	}
}

type shortWriter struct{ left int }

func (w *shortWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errNoRoom{}
	}
	return len(p), nil
}

type errNoRoom struct{}

func (errNoRoom) Error() string { return "no room" }

// The sentence says what does not agree with it.
func TestSentenceHidesNothing(t *testing.T) {
	line := &result.LoadLine{Unit: "pods/s", Level: figure(130), LowestFailing: figure(140), Confirmations: 3, ConfirmationsMade: 3, Mixed: []design.Mixed{{Level: 120, Passed: 3, Failed: 1}, {Level: 140, Passed: 1, Failed: 1}}}
	for _, tt := range []struct {
		why  string
		r    result.Result
		want string
	}{
		{"levels that went both ways", result.Result{Workload: "w", Verdict: slo.Pass, LoadLine: line}, "; the steps do not agree: 120 held 3 of 4 times and 140 held 1 of 2 times."},
		{"a goal beside the headline that breached", result.Result{Workload: "w", Verdict: slo.Pass, Why: "2 of 2 levels were made", Goals: []result.GoalResult{{Name: "ready", Verdict: slo.Pass}, {Name: "startup", Verdict: slo.Fail}}},
			"w held at every level by goal ready, but not by startup (fail): 2 of 2 levels were made."},
		{"all goals", result.Result{Workload: "w", Verdict: slo.Pass, Why: "2 of 2 levels were made", Goals: []result.GoalResult{{Name: "ready", Verdict: slo.Pass}, {Name: "startup", Verdict: slo.Pass}}}, "w held at every level: 2 of 2 levels were made."},
	} {
		if got := view.Sentence(tt.r); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

// What is said of a search with --explain fits on two screens of 40 lines and 100
// columns, and says what was found.
func TestAnExplanationFitsOnTwoScreens(t *testing.T) {
	const lines, columns = 80, 100
	var r result.Result
	data, err := record.Dir("testdata/search").ReadFile(record.ResultFile)
	if err := errors.Join(err, json.Unmarshal(data, &r)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := text.Write(text.Terminal{Writer: &out, Columns: columns}, view.Run(r, "runs/1", true)); err != nil {
		t.Fatal(err)
	}
	shown := 0
	for line := range strings.Lines(out.String()) {
		shown += max(1, (utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))+columns-1)/columns)
	}
	if shown > lines {
		t.Errorf("%d lines of a terminal:\n%s", shown, out.String())
	}
	for _, want := range []string{
		"4 pods: Too many pods on 4 of 4 nodes", "What broke first, in step 9 at 13:", "CPU of etcd", "A limit of one or more components was reached",
		"The nodes have no room for more pods", "To do: Raise maxPods", "Breaches and troubles in the other steps:", "all Ready, in steps 4-6, first in step 4",
		"Why each level was chosen:", "12 held in 2 of 2 confirmations", "goal fast (Ready p99 <= 250ms): below the first level", "14 ms per object",
		"no cost per object found (", "Load line of node-density: 12 pods/node, confirmed 2 of 2 from empty; 13 failed", "Predicted 12 pods/node", "Simulated: nodes, containers",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not said:\n%s", want, out.String())
		}
	}
}
