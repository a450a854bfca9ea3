package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

// brokenResult is a sweep whose second step failed, with troubles of its own
// and some that the first one had too.
func brokenResult() result.Result {
	held := stepAt(1, 100, record.PurposeSweep, slo.Pass, "every objective held", account(2000, 2000, 0, 0), figure(0.35), figure(1.4321))
	failed := stepAt(2, 200, record.PurposeSweep, slo.Fail, "all Ready: 1800 of 4000 did not reach it", account(4000, 2200, 1800, 0), figure(0.51), nil)
	failed.ReachSeconds = figure(1.5)
	probe := result.Breach{
		Time: "2030-01-02T03:04:05.500000Z", Step: 1, Kind: "probes", What: "readiness probes failed", Count: 3,
		Object: "ns/pod-1", Message: "Unhealthy: Readiness probe failed: not yet", Load: result.StepProgress{Asked: 10, There: 2, Level: 0.5},
	}
	held.Breaches = []result.Breach{probe}
	usual := probe
	usual.Step, usual.Usual, usual.Time = 2, true, "2030-01-02T03:04:05.400000Z"
	first := result.Breach{
		Time: "2030-01-02T03:04:06.250000Z", Step: 2, Kind: "scheduling", What: "no node had room for objects", Count: 1800, First: true,
		Object: "ns/pod-7\x1b[31m", Message: "Unschedulable: 0/20 nodes are available: 20 Too many pods.", Load: result.StepProgress{Asked: 2500, There: 2200, Unplaced: 1, Level: 125},
	}
	missing := result.Breach{
		Time: "2030-01-02T03:04:07.000000Z", Step: 2, Kind: result.BreachMissing, What: "all Ready: 1800 of 4000 did not reach it", Value: figure(1800), Bound: figure(0),
		Decided: true, Goals: []string{"ready"}, Count: 1800, Load: result.StepProgress{Asked: 4000, There: 2200, Unplaced: 1800, Level: 200},
	}
	failed.Breaches = []result.Breach{usual, first, missing}
	failed.Logs = []result.LogTail{
		{Object: "ns/pod-3", Container: "app", Reason: "CrashLoopBackOff", Previous: true, Lines: []string{"starting", "<b>dial tcp 172.30.225.6:5432: i/o timeout</b>"}, Masked: 1},
		{Object: "ns/pod-4", Error: "the node is out of reach"},
	}
	return result.Result{
		Schema: result.Schema, ObjectKind: pods(), Experiment: "density", Workload: "node-density", Kind: "sweep", Verdict: slo.Fail, Why: "1 of 2 levels failed",
		Steps: []result.Step{held, failed}, Arrived: "Ready", Breaches: []result.Breach{probe, usual, first, missing},
		Goals: []result.GoalResult{{Name: "ready", SLO: []string{"all Ready"}, Verdict: slo.Fail}},
		BrokeFirst: &result.BrokeFirst{
			Goal: "ready", Step: 2, Level: 200, Breach: first, Says: "a limit of one or more components was reached; the functional maximum is lower than these conditions",
			Conditions: &result.Conditions{Time: first.Time, NormalStep: 1, Figures: []result.Figure{
				{Name: result.FigurePending, Value: figure(300), Normal: figure(20), Ratio: figure(15)},
				{Name: result.FigureAPI, Unit: "s", Value: figure(0.012), Normal: figure(0.004), Ratio: figure(3)},
				{Name: result.FigureCPU + "kube-apiserver", Unit: "%", Normal: figure(41.25)},
			}},
		},
	}
}

func TestTextOfWhatBroke(t *testing.T) {
	for _, tt := range []struct {
		name    string
		explain bool
	}{{"broke", false}, {"broke-explained", true}} {
		var out bytes.Buffer
		if err := Text(&out, brokenResult(), "runs/1", tt.explain); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, *update, "text-"+tt.name+".txt", out.Bytes())
	}
	// Of very many kinds of trouble the first are shown.
	r := brokenResult()
	last := r.Steps[1].Breaches[2]
	for i := range 20 {
		last.What = fmt.Sprintf("objective %d", i)
		r.Steps[1].Breaches = append(r.Steps[1].Breaches, last)
	}
	var out bytes.Buffer
	if err := Text(&out, r, "runs/1", false); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "and 15 more, in result.json") || strings.Contains(out.String(), "objective 5") {
		t.Errorf("23 breaches:\n%s", out.String())
	}
}

// The page tells of the step that decided first, and marks its first breach.
func TestPageOfWhatBroke(t *testing.T) {
	shown := view.Words()
	mark := shown["mark"].(func(*result.BrokeFirst, result.Breach) string)
	after := shown["after"].(func(result.Step, result.Breach) string)
	then := shown["then"].(func(result.StepProgress, string) string)
	p := onPage(t, brokenResult()).Broke
	if p.Lead != "In step 2, at 200 pods/node, the first breach came after 1.25 s: no node had room for objects." {
		t.Errorf("lead %q", p.Lead)
	}
	var got []string
	for _, s := range p.Steps {
		for i, b := range s.Breaches {
			got = append(got, fmt.Sprintf("%d.%d %s after %s, %s", s.ID, i+1, mark(brokenResult().BrokeFirst, b), after(s, b), then(b.Load, "pods/node")))
		}
	}
	want := []string{
		"2.1 usual after 400 ms, 2 of 10 ready, 0.5 pods/node", "2.2 first after 1.25 s, 2200 of 2500 ready, 125 pods/node",
		"2.3 decided after 2.00 s, 2200 of 4000 ready, 200 pods/node", "1.1 seen after 500 ms, 2 of 10 ready, 0.5 pods/node",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	r := brokenResult()
	var html bytes.Buffer
	if err := page.Write(&html, onPage(t, r)); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(html.String(), "<small>step 2"); !p.HasLogs || n != 2 {
		t.Errorf("%d logs of step 2", n)
	}
	r.Steps, r.BrokeFirst = r.Steps[:1], nil
	r.Steps[0].Breaches = nil
	if p := onPage(t, r).Broke; p != nil {
		t.Errorf("nothing broke, and there is a section of it: %+v", p)
	}
	// A result of before breaches had a kind and a load is shown as far as it
	// goes.
	r = brokenResult()
	r.BrokeFirst = nil
	for i := range r.Steps {
		for j := range r.Steps[i].Breaches {
			b := &r.Steps[i].Breaches[j]
			*b = result.Breach{Time: b.Time, Step: b.Step, What: b.What, Value: b.Value, Bound: b.Bound}
		}
	}
	if p := onPage(t, r).Broke; p.Lead != "" || len(p.Steps) != 2 || then(p.Steps[0].Breaches[0].Load, "pods/node") != "no request yet" {
		t.Errorf("an older result: %+v", p)
	}
}

// onPage is the page of a result whose levels are pods of a node.
func onPage(t *testing.T, r result.Result) view.Page {
	t.Helper()
	p, err := view.RunPage(view.Input{Recorded: chart.Recorded{Result: r, Plan: &plan.Plan{AsRun: &plan.AsRun{Unit: "pods/node"}}}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
