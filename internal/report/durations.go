package report

import (
	"cmp"
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/record"
)

// mostRequests is how many kinds of requests are listed.
const mostRequests = 10

// requests writes which requests the API server answered in a step, the most
// frequent first.
func (p *printer) requests(s judge.Step, list []judge.HistogramSummary, kind record.ObjectKind) {
	if len(list) == 0 {
		return
	}
	made := s.Latency[kind.There].N
	slices.SortStableFunc(list, func(a, b judge.HistogramSummary) int { return cmp.Compare(b.N, a.N) })
	p.line("")
	p.line("Requests in step %d, by the API server's own count, whoever made them:", s.ID)
	rows := [][]string{{"", "n", "per " + kind.Object.One, "mean", "p99"}}
	for _, d := range list[:min(len(list), mostRequests)] {
		per := "-"
		if made > 0 {
			per = fmt.Sprintf("%.2f", float64(d.N)/float64(made))
		}
		rows = append(rows, []string{d.Name, fmt.Sprint(d.N), per, lagOf(d.Mean), bucketText(d.P99)})
	}
	p.columns("  ", "lrrrl", rows)
	if more := len(list) - mostRequests; more > 0 {
		p.line("  and %d more kinds in result.json", more)
	}
}

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
	requests := slices.DeleteFunc(slices.Clone(last.Durations), func(d judge.HistogramSummary) bool { return d.Source != record.SourceRequests })
	p.requests(last, requests, objectKind(r))
	if len(requests) == len(last.Durations) {
		return
	}
	p.line("")
	p.line("Durations in step %d, from histograms (quantiles as their buckets):", last.ID)
	rows := [][]string{{"", "", "n", "mean", "p50", "p99"}}
	for _, d := range last.Durations {
		if d.Source == record.SourceRequests {
			continue
		}
		rows = append(rows, []string{d.Source, d.Name, fmt.Sprint(d.N), lagOf(d.Mean), bucketText(d.P50), bucketText(d.P99)})
	}
	p.columns("  ", "llllll", rows)
}
