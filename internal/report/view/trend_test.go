package view

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// trendsOf are a latency and a load line over three experiments.
func trendsOf() ComparisonInput {
	point := func(name string, value, low, high *float64, runs int, differs ...string) compare.TrendPoint {
		return compare.TrendPoint{Name: name, Start: "2030-01-0" + name[1:] + "T03:04:05.000000Z", Program: "v" + name[1:], System: "v1.35", Value: value, Low: low, High: high, Runs: runs, Differs: differs}
	}
	missing := point("r3", nil, nil, nil, 0)
	missing.Note = "no run counts"
	in := ComparisonInput{Outcome: recorded.Outcome{Why: "3 experiments", Trends: []compare.Trend{
		{Workload: "pods", Metric: "Ready p99", Unit: "s", Axis: "pods-per-node", Level: new(100.0), Why: "one change point", Points: []compare.TrendPoint{
			point("r1", new(1.0), new(0.9), new(1.1), 3), point("r2", new(2.0), nil, nil, 1, "version", "kernel"), missing,
		}, Changes: []compare.TrendChange{{At: 1, Change: 1, P: 0.004}}},
		{Workload: "pods", Metric: compare.LoadLine + "ready", Unit: "pods/node", Why: "no change point found", Points: []compare.TrendPoint{point("r1", new(100.0), new(100.0), new(110.0), 1), point("r2", new(120.0), nil, nil, 1)}},
	}}}
	for _, name := range []string{"r1", "r2", "r3"} {
		in.Operands = append(in.Operands, &recorded.Operand{Name: name, Result: result.Result{Fidelity: record.Fidelity{Nodes: record.Simulated}}})
	}
	return in
}

// withoutDrawing is a section as lines without the cell of its drawing.
func withoutDrawing(s Section) string {
	for i, p := range s.Parts {
		if at := strings.Index(p.Table.Align, "d"); at >= 0 {
			var rows [][]string
			for _, row := range p.Table.Rows {
				cell := row[at]
				if strings.Trim(cell, " .-o") == "" || row[0] == "" && len(rows) == 0 {
					cell = "drawn"
				}
				rows = append(rows, append(append(append([]string{}, row[:at]...), cell), row[at+1:]...))
			}
			s.Parts[i].Table.Rows = rows
		}
	}
	return shown(s)
}

// A trend has a row for each experiment, with its figure, its runs, and what changed; on a
// narrow terminal without the latter.
func TestTrends(t *testing.T) {
	list := Compared(trendsOf())
	if len(list) != 3 {
		t.Fatalf("%d sections", len(list))
	}
	for _, s := range list {
		checkTables(t, s.Title, s)
	}
	for _, c := range []struct {
		why  string
		of   Section
		want string
	}{
		{"a latency", list[0], lines("Ready p99 of pods at pods-per-node 100 (logarithmic)",
			"|started|plimsoll|Kubernetes|drawn|mean of the runs|changed since the previous one",
			"r1|2030-01-01 03:04:05.000000 UTC|v1|v1.35|drawn|1.00 s (3 runs, 900 ms to 1.10 s)|",
			"||||--- +100.0% from here on (p = 0.004) ---||",
			"r2|2030-01-02 03:04:05.000000 UTC|v2|v1.35|drawn|2.00 s|version, kernel",
			"r3|2030-01-03 03:04:05.000000 UTC|v3|v1.35|drawn|no run counts|",
			"One change point.")},
		{"a narrow one", *list[0].Narrow, lines("Ready p99 of pods at pods-per-node 100 (logarithmic)",
			"|started|drawn|mean of the runs", "r1|2030-01-01 03:04|drawn|1.00 s", "||--- +100.0% from here on (p = 0.004) ---|", "r2|2030-01-02 03:04|drawn|2.00 s", "r3|2030-01-03 03:04|drawn|no run counts",
			"  (versions, the range of the runs and what changed: on a wider terminal, and with --out)", "One change point.")},
		{"a load line", list[1], lines("Load line of pods by goal ready, pods/node (logarithmic)",
			"|started|plimsoll|Kubernetes|drawn|pods/node|changed since the previous one",
			"r1|2030-01-01 03:04:05.000000 UTC|v1|v1.35|drawn|100, fails at 110|", "r2|2030-01-02 03:04:05.000000 UTC|v2|v1.35|drawn|120, nothing failed|",
			"No change point found.")},
		{"the end", list[2], "Simulated: nodes."},
	} {
		if got := withoutDrawing(c.of); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.why, got, c.want)
		}
	}
	if list[0].Whole != trendWhole {
		t.Errorf("the whole trend is for %d columns", list[0].Whole)
	}
	empty := trendsOf()
	empty.Trends = nil
	if got := shown(Compared(empty)...); got != "3 experiments.\nSimulated: nodes." {
		t.Errorf("no trend:\n%s", got)
	}
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{{0.0002, "s", "200 µs"}, {0.05, "s", "50 ms"}, {5, "s", "5 s"}, {1 << 20, "B", "1 MiB"}, {1000, "/s", "1000"}} {
		if got := tickText(c.value, c.unit); got != c.want {
			t.Errorf("%g %s: %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

// The page of trends names the figure and how many experiments there are.
func TestTrendPage(t *testing.T) {
	in := trendsOf()
	p, err := ComparedPage(in)
	if err != nil || p.Headline != "Ready p99 over 3 experiments" || p.Title != p.Headline || !p.Recorded || len(p.Lead) != 1 || len(p.Fidelity) != 1 || len(p.Trends) != 2 {
		t.Errorf("%v: %q, %q", err, p.Headline, p.Lead)
	}
	in.Trends = in.Trends[1:]
	if p, err := ComparedPage(in); err != nil || p.Headline != "Load line by goal ready over 3 experiments" {
		t.Errorf("%v: %q", err, p.Headline)
	}
	in.Trends = nil
	if p, err := ComparedPage(in); err != nil || p.Headline != "3 experiments" || p.Mark != "" {
		t.Errorf("%v: %q, %q", err, p.Headline, p.Lead)
	}
}
