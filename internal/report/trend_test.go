package report

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

// trendInput are n nights of two workloads; from the ninth on they take longer
// by half.
func trendInput(n int) view.ComparisonInput {
	in := view.ComparisonInput{Outcome: recorded.Outcome{Command: "plimsoll compare runs/* --metric 'Ready max'", Version: "v0.1.0"}}
	rng := rand.New(rand.NewPCG(2, 2))
	level := 60.0
	for w, workload := range []string{"node-density", "node-density-heavy"} {
		t := compare.Trend{Workload: workload, Metric: "Ready max", Unit: "s", Axis: "pods-per-node", Level: &level}
		for i := range n {
			p := compare.TrendPoint{
				Name: fmt.Sprintf("night-%02d", i), Start: time.Date(2030, 1, 2+i, 3, 4, 5, 0, time.UTC).Format(time.RFC3339), Program: "0.1.0", System: "v1.36.3", Runs: 5, Differs: []string{},
			}
			if i >= 8 {
				p.System = "v1.37.0"
			}
			if i == 8 {
				p.Differs = []string{"kubernetes", "kubelet"}
			}
			v := math.Exp(0.08*rng.NormFloat64()) * []float64{2, 160}[w]
			if i >= 8 {
				v *= 1.5
			}
			lo, hi := v/1.1, v*1.1
			p.Value, p.Low, p.High = &v, &lo, &hi
			if i == 3 {
				p.Value, p.Low, p.High, p.Note = nil, nil, nil, "never reached in some run"
			}
			t.Points = append(t.Points, p)
			if w == 0 {
				in.Operands = append(in.Operands, &recorded.Operand{Name: p.Name, Path: "runs/" + p.Name, Result: result.Result{
					Experiment: "nightly", Workload: workload, Kind: "sweep", Verdict: "pass", Version: "0.1.0", Command: "plimsoll sweep " + workload,
					Fidelity: record.Fidelity{ControlPlane: record.Real, Nodes: record.Simulated, Containers: record.Simulated},
				}})
			}
		}
		t.FindChanges(0.05, 1)
		in.Trends = append(in.Trends, t)
	}
	return in
}

// trendInputs are trends of every kind.
func trendInputs() map[string]view.ComparisonInput {
	few := trendInput(3)
	few.Trends = few.Trends[:1]
	lines := trendInput(0)
	lines.Trends = lines.Trends[:1]
	lines.Trends[0].Metric, lines.Trends[0].Unit, lines.Trends[0].Level = compare.LoadLine+"ready", "pods/node", nil
	for i, bracket := range [][2]float64{{100, 101}, {250, 260}, {500, 0}} {
		p := compare.TrendPoint{Name: fmt.Sprintf("r%d", i), Low: &bracket[0], Value: &bracket[0]}
		if bracket[1] > 0 {
			p.High = &bracket[1]
		}
		lines.Trends[0].Points = append(lines.Trends[0].Points, p)
	}
	lines.Trends[0].Points = append(lines.Trends[0].Points, compare.TrendPoint{Name: "r3", Note: "its load line is inconclusive"})
	lines.Trends[0].FindChanges(0.05, 1)
	warned := view.ComparisonInput{Outcome: recorded.Outcome{Why: "no experiment has a metric that can be followed", Warnings: record.Warnings{{Text: "node-density has no valid run"}}}}
	return map[string]view.ComparisonInput{"nights": trendInput(14), "few": few, "lines": lines, "nothing": warned}
}

func TestTrendText(t *testing.T) {
	for name, in := range trendInputs() {
		var out bytes.Buffer
		if err := text.Write(&out, view.Compared(in)); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, *update, "text-trend-"+name+".txt", out.Bytes())
	}
}

func TestTrendPage(t *testing.T) {
	in := trendInput(14)
	in.Trends[0].Points[2].Name = "<script>alert(1)</script>"
	in.Warnings = record.Warnings{{Text: "night-05 was cut"}}
	var out bytes.Buffer
	p, err := view.ComparedPage(in)
	if err == nil {
		err = page.Write(&out, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := html.UnescapeString(out.String())
	for _, part := range []string{
		"Ready max of node-density at pods-per-node 60", "Ready max of node-density-heavy", "Night-05 was cut.", "kubernetes, kubelet", "from here on (p = ", "style-src 'sha256-", "night-13", "v1.37.0",
	} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q", part)
		}
	}
	names, attributes, scripts := elements(t, out.String())
	for _, a := range attributes {
		if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "data:") {
			t.Errorf("the page points outside: %s=%q", a.Key, a.Val)
		}
	}
	if names["script"] != 3 || len(scripts) != 2 || strings.Contains(scripts[0], "<") {
		t.Errorf("%d scripts: what a name says may run as one", names["script"])
	}
	for _, part := range []string{"NaN", "ZgotmplZ", `id="levels"`} {
		if strings.Contains(strings.Replace(out.String(), pageScript, "", 1), part) {
			t.Errorf("the page holds %q", part)
		}
	}
}

// listedRuns are the records of a directory, with names that a page or an address could take for something
// else, and a trend of estimated load lines.
func listedRuns() (in view.ComparisonInput, dir string, list []view.Listed) {
	in = trendInputs()["lines"]
	t := &in.Trends[0]
	t.Plan = "nightly"
	for i := range t.Points {
		t.Points[i].Estimated = t.Points[i].High != nil
	}
	for _, name := range []string{"javascript:alert(1)", "a b#c?d&e/../f", "<script>alert(1)</script>", "v1.2"} {
		list = append(list, view.Listed{Name: name, Report: "my runs/x/report.html", Plan: "nightly", Workload: "node-density", Kind: "limit", Started: "2030-01-02T03:04:05Z", Verdict: "pass", Result: "node-density holds 110 pods/node and fails at 111"})
	}
	return in, "my runs", append(list, view.Listed{Name: "cut", Note: "it has no history.jsonl.zst"})
}

// The page of a directory has its records with links to their pages alone, and the trends.
func TestRunsPage(t *testing.T) {
	var out bytes.Buffer
	p, err := view.RunsPage(listedRuns())
	if err == nil {
		err = page.Write(&out, p)
	}
	if err != nil {
		t.Fatal(err)
	}
	names, attributes, _ := elements(t, out.String())
	if names["script"] != 3 {
		t.Errorf("%d scripts", names["script"])
	}
	var links []string
	for _, a := range attributes {
		if a.Key == "href" && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "data:") {
			links = append(links, a.Val)
		}
	}
	if got := strings.Join(links, " "); got != "./javascript:alert%281%29/report.html ./a%20b%23c%3Fd&e%2F..%2Ff/report.html ./%3Cscript%3Ealert%281%29%3C%2Fscript%3E/report.html ./v1.2/report.html" {
		t.Errorf("the page links to %s", got)
	}
	for _, part := range []string{"5 records of 1 plan in my runs", "nightly: Load line of node-density by goal ready, pods/node", "100 (95% interval 100 to 101)", "It has no history.jsonl.zst.", "node-density holds 110 pods/node"} {
		if !strings.Contains(html.UnescapeString(out.String()), part) {
			t.Errorf("the page lacks %q", part)
		}
	}
}
