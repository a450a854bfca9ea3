package view

import (
	"cmp"
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

const mostRequests = 10 // kinds that are listed

// requests lists the API server's requests in the last step with counts, the most frequent first.
func requests(r result.Result) (out Section) {
	s := lastDurations(r)
	list := slices.DeleteFunc(slices.Clone(s.Durations), func(d result.HistogramSummary) bool { return d.Source != record.SourceRequests })
	if len(list) == 0 {
		return out
	}
	kind := r.ObjectKind
	made := s.Latency[kind.There].N
	slices.SortStableFunc(list, func(a, b result.HistogramSummary) int { return cmp.Compare(b.N, a.N) })
	out.Title = fmt.Sprintf("Requests in step %d, by the API server's own count, whoever made them:", s.ID)
	t := Table{"lrrrl", [][]string{{"", "n", "per " + kind.Object.One, "mean", "p99"}}}
	for _, d := range list[:min(len(list), mostRequests)] {
		per := "-"
		if made > 0 {
			per = fmt.Sprintf("%.2f", float64(d.N)/float64(made))
		}
		t.add(d.Name, fmt.Sprint(d.N), per, words.Lag(d.Mean), bucketText(d.P99))
	}
	out.table(2, t)
	if more := len(list) - mostRequests; more > 0 {
		out.linef("  and %d more kinds in result.json", more)
	}
	return out
}

func bucketText(b result.Bucket) string {
	switch {
	case b.AtMost == nil && b.Above == 0:
		return "-" // there are no buckets
	case b.AtMost == nil:
		return "over " + words.Seconds(b.Above)
	}
	return words.Seconds(b.Above) + " to " + words.Seconds(*b.AtMost)
}

// lastDurations returns the last step in which programs published durations.
func lastDurations(r result.Result) (last result.Step) {
	for _, s := range r.Steps {
		if len(s.Durations) > 0 {
			last = s
		}
	}
	return last
}

func durations(r result.Result) (out Section) {
	last := lastDurations(r)
	t := Table{"llllll", [][]string{{"", "", "n", "mean", "p50", "p99"}}}
	for _, d := range last.Durations {
		if d.Source != record.SourceRequests {
			t.add(d.Source, d.Name, fmt.Sprint(d.N), words.Lag(d.Mean), bucketText(d.P50), bucketText(d.P99))
		}
	}
	if t.Any() {
		out.Title = fmt.Sprintf("How long work took in step %d, from histograms (a quantile is given as its bucket):", last.ID)
		out.table(2, t)
	}
	return out
}
