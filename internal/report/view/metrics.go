package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// metricRows returns the metrics of the steps, in the order of their kind, with a head; nil for none.
func metricRows(r result.Result) [][]string {
	head := []string{"step", "level"}
	if r.Comparison != nil {
		head = append(head, "arm")
	}
	first := len(head)
	var metrics []record.Metric
	for _, m := range r.ObjectKind.Metrics {
		if slices.ContainsFunc(r.Steps, func(s result.Step) bool { _, ok := s.Metrics[m.Name]; return ok }) {
			metrics, head = append(metrics, m), append(head, m.Called())
		}
	}
	if len(metrics) == 0 {
		return nil
	}
	rows := [][]string{head}
	for _, s := range r.Steps {
		row := []string{strconv.Itoa(s.ID), words.Number(s.LevelReached), s.Arm}[:first]
		for _, m := range metrics {
			text := "-"
			if x, ok := s.Metrics[m.Name]; ok {
				text = words.Figure(&x, m.Unit)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

func metricsSection(r result.Result) (s Section) {
	if rows := metricRows(r); rows != nil {
		s.Title = "Metrics:"
		s.table(2, figures(rows))
	}
	return s
}

// publishedNote says how far a published figure can be compared with the run's.
func publishedNote(r result.Result) string {
	note := "Published figures are from other machines and do not affect the verdict."
	if timeScale(r) != 1 {
		note += fmt.Sprintf(" Times found here are shown as they would be: %g times as long as they were measured.", timeScale(r))
	}
	return note
}

func publishedTable(r result.Result) Table {
	t := Table{"llll", [][]string{{"published figure", "published", "found here", "source"}}}
	for _, f := range r.Published {
		what := f.What
		if f.Arm != "" {
			what += " (" + f.Arm + ")"
		}
		t.add(what, publishedNumber(f.Published, f.Unit), foundFigure(f), f.Source)
	}
	return t
}

func published(r result.Result) (s Section) {
	if len(r.Published) == 0 {
		return s
	}
	s.linef("")
	s.table(0, publishedTable(r))
	s.linef("%s", publishedNote(r))
	return s
}

func foundFigure(f result.Published) string {
	if f.Found == nil {
		return "not measured"
	}
	text := publishedNumber(*f.Found, f.Unit)
	if f.Lo != nil && f.Hi != nil {
		text += fmt.Sprintf(" (%s to %s)", publishedNumber(*f.Lo, f.Unit), publishedNumber(*f.Hi, f.Unit))
	}
	if f.At != nil {
		text += " at " + words.Number(*f.At)
	}
	return text
}

func publishedNumber(x float64, unit string) string {
	switch {
	case unit == "%":
		return fmt.Sprintf("%+.1f%%", 100*x)
	case unit == "s" && x >= 600:
		return time.Duration(math.Round(x) * float64(time.Second)).String()
	}
	return words.InUnit(x, unit, words.Number)
}

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
		out.Title = fmt.Sprintf("Work in step %d, from the components' histograms (quantiles are bucket ranges):", last.ID)
		out.table(2, t)
	}
	return out
}
