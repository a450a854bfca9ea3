package result

import (
	"slices"
	"strings"
)

// Group holds the times of a step's objects by the values of a label: of the object, or of its place.
type Group struct {
	Label  string       `json:"label"`
	From   string       `json:"from,omitempty"` // "" is time zero
	To     string       `json:"to"`
	Edges  []float64    `json:"edges"` // bounds of the bins from From to To, in seconds; each bin is closed above
	Values []LabelValue `json:"values"`
	Cut    int          `json:"cut,omitempty"` // further values, each of fewer objects
}

// LabelValue holds the objects that have one value, "" where it is unknown.
type LabelValue struct {
	Value   string    `json:"value"`
	Time    Latency   `json:"time"` // from the one milestone to the other; Counts[i] of these are in bin i
	Counts  []int     `json:"counts"`
	Latency Latencies `json:"latency"` // from time zero
}

// Figure returns a label's value by a metric, "LABEL=VALUE mean", or p50, p90 or p99; or nil.
func (b Group) Figure(metric string) *float64 {
	name, figure, _ := strings.Cut(strings.TrimPrefix(metric, b.Label+"="), " ")
	i := slices.IndexFunc(b.Values, func(v LabelValue) bool { return v.Value == name })
	if i < 0 || !strings.HasPrefix(metric, b.Label+"=") {
		return nil
	}
	t := b.Values[i].Time
	return map[string]*float64{"mean": t.Mean, "p50": t.P50, "p90": t.P90, "p99": t.P99, "max": t.Max}[figure]
}

// HistogramSummary says how long one kind of work took in a step, by the program's own histogram.
type HistogramSummary struct {
	Source string   `json:"source"`
	Name   string   `json:"name"`
	N      uint64   `json:"n"`
	Mean   *float64 `json:"mean"` // exact, in seconds
	P50    Bucket   `json:"p50"`
	P99    Bucket   `json:"p99"`
}

// Bucket is one of a histogram's: above Above seconds, and at most AtMost, null for the last.
type Bucket struct {
	Above  float64  `json:"above"`
	AtMost *float64 `json:"atMost"`
}
