package report

import (
	"fmt"

	"plimsoll.dev/plimsoll/internal/judge"
)

func bucketText(b judge.Bucket) string {
	switch {
	case b.AtMost == nil && b.Above == 0:
		return "-" // there are no buckets
	case b.AtMost == nil:
		return "over " + Seconds(b.Above)
	}
	return Seconds(b.Above) + " to " + Seconds(*b.AtMost)
}

// durations writes how long the work of a node took by what it publishes, in
// the last step that tells of it.
func (p *printer) durations(r judge.Result) {
	var last judge.Step
	for _, s := range r.Steps {
		if len(s.Durations) > 0 {
			last = s
		}
	}
	if len(last.Durations) == 0 {
		return
	}
	p.line("")
	p.line("Durations in step %d, from the histograms that programs publish (quantiles as their buckets):", last.ID)
	rows := [][]string{{"", "", "n", "mean", "p50", "p99"}}
	for _, d := range last.Durations {
		rows = append(rows, []string{d.Source, d.Name, fmt.Sprint(d.N), lagOf(d.Mean), bucketText(d.P50), bucketText(d.P99)})
	}
	p.columns("  ", "llllll", rows)
}
