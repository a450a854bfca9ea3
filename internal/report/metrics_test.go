package report

import (
	"bytes"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/view"
)

// Metrics stand in the text and on the page, with units and by their titles; one
// that no step has has no column.
func TestMetrics(t *testing.T) {
	r := result.Result{
		Schema: result.Schema, Workload: "io-volumes", ObjectKind: record.ObjectKind{There: "Complete", Metrics: []record.Metric{
			{Name: "throughput", Unit: "B/s"}, {Name: "share of the drive", Unit: "%"}, {Name: "transactions", Unit: "/s"}, {Name: "spread", Title: "finish spread", Unit: "s"},
		}},
		Steps: []result.Step{{ID: 1, LevelReached: 10, Metrics: map[string]float64{"throughput": 2 << 20, "spread": 0.25}}, {ID: 2, LevelReached: 20, Metrics: map[string]float64{"share of the drive": 31.4}}},
	}
	var text, page bytes.Buffer
	if err := Text(&text, r, "run", false); err != nil {
		t.Fatal(err)
	}
	if err := HTML(&page, view.Input{Recorded: chart.Recorded{Result: r}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"throughput", "2 MiB/s", "250 ms", "finish", "share of the drive", "31.4%"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(page.String(), want) {
			t.Errorf("%q is missing in\n%s", want, text.String())
		}
	}
	if strings.Contains(text.String(), "transactions") {
		t.Error("a metric that no step has has a column")
	}
}
