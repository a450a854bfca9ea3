package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/page"
	plain "plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

// searched is a cell whose search found a line, or none where level is 0; with
// no lowest failing level where that is 0.
func searched(params map[string]string, name string, level, failing float64) judge.Cell {
	c := judge.Cell{Name: name, Dir: filepath.Join(record.CellsDir, name), Params: params}
	c.Result = result.Result{Schema: result.Schema, Experiment: "grid", Workload: "simulated", Kind: "limit", Verdict: slo.Pass, Arrived: "Ready", Fidelity: record.Fidelity{ControlPlane: record.Simulated}}
	line := &result.LoadLine{Axis: "density", Unit: "objects/place", Confirmations: 3, ConfirmationsAsked: 3, ConfirmationsMade: 3, Binding: "the places are full"}
	if level > 0 {
		line.Level = &level
	} else {
		c.Verdict, c.ExitCode = slo.Fail, 1
	}
	if failing > 0 {
		line.LowestFailing = &failing
	}
	c.LoadLine = line
	for i, s := range []struct {
		at      float64
		verdict slo.Verdict
	}{{level, slo.Pass}, {failing, slo.Fail}, {level, slo.Inconclusive}} {
		if s.at > 0 {
			c.Steps = append(c.Steps, result.Step{ID: i + 1, StepPlan: record.StepPlan{Level: s.at, Purpose: "ramp"}, LevelReached: s.at, Verdict: s.verdict, VerdictWhy: "all Ready: 1 of 10 did not reach it"})
		}
	}
	return c
}

// swept is a cell with runs at levels; an object was never ready where a run's
// p99 is 0.
func swept(params map[string]string, name string, levels []float64, p99 ...float64) judge.Cell {
	c := judge.Cell{Name: name, Dir: filepath.Join(record.CellsDir, name), Params: params}
	c.Result = result.Result{Schema: result.Schema, Experiment: "grid", Workload: "simulated", Kind: "sweep", Verdict: slo.Pass, Arrived: "Ready", ObjectKind: pods()}
	for i, v := range p99 {
		p50, rate := v/10, 50.0
		l := result.Latency{N: 100, P50: &p50, P99: &v}
		s := result.Step{ID: i + 1, StepPlan: record.StepPlan{Level: levels[i%len(levels)], Replicate: i/len(levels) + 1, Purpose: "sweep"}, Verdict: slo.Pass, AchievedRate: &rate}
		if v == 0 {
			p50, l.P99, l.Censored = 0.003, nil, 2
			s.Verdict, c.Verdict, c.ExitCode = slo.Fail, slo.Fail, 1
		}
		s.Latency = map[string]result.Latency{"Ready": l}
		c.Steps = append(c.Steps, s)
	}
	return c
}

// grids are results of grids of every kind.
func grids() map[string]judge.Grid {
	list := make(map[string]judge.Grid)
	finish := func(name, kind string, g judge.Grid) {
		g.Experiment, g.Workload, g.Kind, g.Command, g.Version = "grid", "simulated", kind, "plimsoll "+kind+" simulated --vary ...", "0.1.0"
		list[name] = g
	}

	var cells []judge.Cell
	vary := []judge.Varied{{Key: "limit", Values: []string{"20", "40", "400"}}, {Key: "places", Values: []string{"2", "4"}}}
	for _, limit := range []float64{20, 40, 400} {
		for _, places := range vary[1].Values {
			params := map[string]string{"limit": words.Number(limit), "places": places}
			level, failing := limit, limit+1
			if limit == 400 {
				level, failing = 60, 0
			}
			if limit == 20 && places == "4" {
				level, failing = 0, 10
			}
			cells = append(cells, searched(params, fmt.Sprintf("limit=%g,places=%s", limit, places), level, failing))
		}
	}
	finish("searches", "limit", judge.NewGrid(vary, cells, "", 0.05, 0.05))

	vary = []judge.Varied{{Key: "latency", Values: []string{"lognormal:2ms,20ms", "lognormal:3ms,30ms"}}, {Key: "capacity", Values: []string{"1500", "3000"}}}
	cells = nil
	for i, latency := range vary[0].Values {
		for k, capacity := range vary[1].Values {
			params := map[string]string{"latency": latency, "capacity": capacity}
			name := "latency=" + latency + ",capacity=" + capacity
			f := float64(2+i) / 100
			p99 := []float64{f, 1.1 * f, 1.02 * f, 1.13 * f, 0.99 * f, 1.09 * f}
			if k == 0 {
				p99[5] = 0
			}
			cells = append(cells, swept(params, name, []float64{500, 1000}, p99...))
		}
	}
	cells[3] = judge.Cell{Name: cells[3].Name, Dir: cells[3].Dir, Params: cells[3].Params, Failed: "the server did not answer"}
	cells[3].ExitCode = 5
	finish("sweeps", "sweep", judge.NewGrid(vary, cells, "Ready p99", 0.05, 0.05))

	vary = []judge.Varied{{Key: "image", Values: []string{"a", "b"}}}
	cells = []judge.Cell{
		swept(map[string]string{"image": "a"}, "image=a", []float64{60}, 2, 2.1, 2.05),
		swept(map[string]string{"image": "b"}, "image=b", []float64{60}, 2.6, 2.7, 2.64),
	}
	finish("one level", "sweep", judge.NewGrid(vary, cells, "Ready mean", 0.05, 0.05))
	finish("one level p99", "sweep", judge.NewGrid(vary, cells, "Ready p99", 0.05, 0.05))

	vary = []judge.Varied{{Key: hostile, Values: []string{hostile, "=1#?%"}}}
	cells = []judge.Cell{
		searched(map[string]string{hostile: hostile}, "a#b?c%d", 20, 21),
		{Name: "not run", Dir: "cells/none", Params: map[string]string{hostile: "=1#?%"}, Failed: hostile},
	}
	finish("hostile", "limit", judge.NewGrid(vary, cells, "", 0.05, 0.05))
	return list
}

func TestGridText(t *testing.T) {
	for name, g := range grids() {
		var out bytes.Buffer
		if err := plain.Write(&out, view.Grid(g, "runs/grid")); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, *update, "text-grid-"+strings.ReplaceAll(name, " ", "-")+".txt", out.Bytes())
	}
}

func gridHTML(w io.Writer, g judge.Grid) error {
	p, err := view.GridPage(view.Input{}, g)
	if err != nil {
		return err
	}
	return page.Write(w, p)
}

func gridPage(t *testing.T, g judge.Grid) string {
	t.Helper()
	var out bytes.Buffer
	if err := gridHTML(&out, g); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestGridPage(t *testing.T) {
	all := grids()
	for _, tt := range []struct {
		name string
		want []string
		why  string
	}{
		{"searches", []string{"The load lines of simulated go from 20 to at least 60 objects/place in 5 of 6 cells", "Varied: limit (20; 40; 400) and places (2; 4).", `href="cells/limit=40,places=2/report.html"`, "nothing failed", "40 against 20", `id="capacity-chart-4"`, "plimsoll limit simulated --vary", "simulated</b>"}, "each cell has its line, the key its curves"},
		{"sweeps", []string{"simulated held at every level in 1 of 4 cells", `href="cells/latency=lognormal:2ms,20ms,capacity=1500/report.html"`, "2 of 3", "Not run: the server did not answer.", "at 500", "1 without a result"}, "a cell that could not be run is told"},
		{"one level", []string{"Ready mean of all cells", `id="cells-chart"`, "b against a"}, "one chart for all cells"},
		{"hostile", []string{`href="cells/a%23b%3Fc%25d/report.html"`}, "a name cannot leave the link"},
	} {
		text := gridPage(t, all[tt.name])
		page := strings.ReplaceAll(html.UnescapeString(text), "\u00a0", " ")
		for _, part := range tt.want {
			if !strings.Contains(page, part) {
				t.Errorf("%s (%s): the page lacks %q", tt.name, tt.why, part)
			}
		}
		names, attributes, scripts := elements(t, text)
		for _, a := range attributes {
			if (a.Key == "src" || a.Key == "href") && !strings.HasPrefix(a.Val, "#") && !strings.HasPrefix(a.Val, "data:") && !strings.HasPrefix(a.Val, "cells/") {
				t.Errorf("%s: the page points outside: %s=%q", tt.name, a.Key, a.Val)
			}
		}
		if names["script"] != 3 || len(scripts) != 2 || strings.Contains(scripts[0], "<") {
			t.Errorf("%s: %d scripts: what a name says may run as one", tt.name, names["script"])
		}
		for _, part := range []string{"NaN", "ZgotmplZ", `id="levels"`, `id="operands"`} {
			if strings.Contains(strings.Replace(text, pageScript, "", 1), part) {
				t.Errorf("%s: the page holds %q", tt.name, part)
			}
		}
	}
}

// What the charts are drawn from.
func TestGridData(t *testing.T) {
	g := grids()["sweeps"]
	p, err := view.GridPage(view.Input{}, g)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(p.Data.Grid, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, *update, "grid-data.json", append(text, '\n'))
}

// A grid of streams tells what their answers came to, any other does not.
func TestGridThroughput(t *testing.T) {
	for _, c := range []struct {
		why  string
		bits float64
		want string
	}{{"a stream", 2.345e9, "2.35"}, {"a slow one", 4.2e5, "0.00042"}, {"objects", 0, ""}} {
		cells := make([]judge.Cell, 2)
		vary := []judge.Varied{{Key: "termination", Values: []string{"passthrough", "reencrypt"}}}
		for i, value := range vary[0].Values {
			cells[i] = swept(map[string]string{"termination": value}, "termination="+value, []float64{40}, 0.01, 0.011, 0.012)
			for k := range cells[i].Steps {
				if c.bits > 0 {
					cells[i].Steps[k].Requests = &result.StreamRequests{BitsPerSecond: &c.bits}
				}
			}
		}
		g := judge.NewGrid(vary, cells, "Ready p99", 0.05, 0.05)
		var text, page bytes.Buffer
		if err := plain.Write(plain.Terminal{Writer: &text, Columns: 80}, view.Grid(g, "dir")); err != nil {
			t.Fatal(err)
		}
		if err := gridHTML(&page, g); err != nil {
			t.Fatal(err)
		}
		for name, all := range map[string]string{"text": text.String(), "page": page.String()} {
			if strings.Contains(all, "Gbit/s") != (c.want != "") || !strings.Contains(all, c.want) {
				t.Errorf("%s, in the %s: %q is wanted\n%s", c.why, name, c.want, text.String())
			}
		}
		for line := range strings.Lines(text.String()) {
			if strings.HasPrefix(line, "  ") && utf8.RuneCountInString(line) > 81 {
				t.Errorf("%s: more than 80 columns: %q", c.why, line)
			}
		}
	}
}
