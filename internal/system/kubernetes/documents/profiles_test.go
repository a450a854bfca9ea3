package documents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"

	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
)

// oracle answers a query by its text: a series for each value, at the first and the last moment of a range.
type oracle map[string][]float64

func (o oracle) At(_ context.Context, query string, at time.Time) (metrics.Answer, error) {
	values, known := o[query]
	if !known {
		return metrics.Answer{}, errors.New("it refused")
	}
	list := promql.Vector{}
	for i, v := range values {
		list = append(list, promql.Sample{Metric: labels.FromStrings("__name__", "n", "i", fmt.Sprint(i)), T: at.UnixMilli(), F: v})
	}
	return metrics.Answer{Result: list}, nil
}

func (o oracle) Range(_ context.Context, query string, from, to time.Time, _ time.Duration) (metrics.Answer, error) {
	values, known := o[query]
	if !known {
		return metrics.Answer{}, errors.New("it refused")
	}
	list := promql.Matrix{}
	for i, v := range values {
		list = append(list, promql.Series{Metric: labels.FromStrings("__name__", "n", "i", fmt.Sprint(i)), Floats: []promql.FPoint{{T: from.UnixMilli(), F: v}, {T: to.UnixMilli(), F: v}}})
	}
	return metrics.Answer{Result: list}, nil
}

// What profiles ask becomes alerts, documents as kube-burner's, and what nobody knows.
func TestFound(t *testing.T) {
	c := &kubeburner.Config{MetricsEndpoints: []kubeburner.MetricsEndpoint{{Step: 30 * time.Second, Alerts: []string{"a.yml"}, Metrics: []string{"m.yml"}}}}
	profiles, err := c.Profiles(fstest.MapFS{
		"a.yml": {Data: []byte(`[{expr: fires, severity: critical, description: "{{$labels.i}} has {{$value}}"}, {expr: quiet, severity: error}, {expr: gone}, {expr: refused}]`)},
		"m.yml": {Data: []byte(`[{query: "a", metricName: range}, {query: "a", metricName: now, instant: true, captureStart: true}, {query: odd, metricName: odd, instant: true}, {query: b, metricName: b}]`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	asked := Asked{Asker: oracle{"fires": {1.5, 2}, "quiet": {}, "gone": {}, "a": {7}, "odd": {math.NaN(), math.Inf(1)}}, Lacks: func(_ context.Context, query string) []string {
		if query == "gone" {
			return []string{"gone"}
		}
		return nil
	}}
	var found Found
	found.Add(t.Context(), Configuration{UUID: "id", Metadata: map[string]any{"k": "v"}}, profiles[0], asked, []Span{{"j", from, from.Add(45 * time.Second), false}, {"skipped", from, from.Add(time.Second), true}})
	var fired []string
	for _, f := range found.Fired {
		fired = append(fired, f.String())
	}
	if got := strings.Join(fired, "\n"); got != "critical: 0 has 1.5 at 2026-01-01T00:00:00Z, in job j\ncritical: 1 has 2 at 2026-01-01T00:00:00Z, in job j\ncritical: 0 has 1.5 at 2026-01-01T00:00:00Z, in job skipped\ncritical: 1 has 2 at 2026-01-01T00:00:00Z, in job skipped" {
		t.Errorf("%s", got)
	}
	if got := strings.Join(found.Unknown, "\n"); !found.Alerts || got != `alert "gone" of job j: the record has no series of gone
alert "refused" of job j: it refused
metric b of job j: it refused
metric b of job j: it refused
alert "gone" of job skipped: the record has no series of gone
alert "refused" of job skipped: it refused` {
		t.Errorf("%s", got)
	}
	n := map[string]int{}
	for _, d := range found.Documents {
		n[d.Name()] = len(d.Items)
	}
	// Of a range two values and that at its end, which is between two steps.
	if fmt.Sprint(n) != "map[alert.json:4 now-start.json:1 now.json:1 odd.json:1 range.json:3]" {
		t.Errorf("%v", n)
	}
	for _, d := range found.Documents {
		text, err := json.Marshal(d.Items[0])
		want := map[string]string{
			"alert": `{"description":"0 has 1.5","metadata":{"k":"v"},"metricName":"alert","severity":"critical","timestamp":"2026-01-01T00:00:00Z","uuid":"id"}`,
			"range": `{"jobName":"j","labels":{"i":"0"},"metadata":{"k":"v"},"metricName":"range","query":"a","timestamp":"2026-01-01T00:00:00Z","uuid":"id","value":7}`,
			"odd":   `{"jobName":"j","labels":{"i":"0"},"metadata":{"k":"v"},"metricName":"odd","query":"odd","timestamp":"2026-01-01T00:00:45Z","uuid":"id","value":0}`,
		}[d.Metric]
		if err != nil || want != "" && string(text) != want {
			t.Errorf("%s, %v\nwant %s", text, err, want)
		}
	}
}
