package result

import (
	"slices"
	"strings"
)

// Group is how long the objects of a step took by the values of a label: of the
// object, or of where it was.
type Group struct {
	Label string `json:"label"`
	From  string `json:"from,omitempty"` // "" is time zero
	To    string `json:"to"`
	// Edges are those of the bins that times from From to To are counted in, in
	// seconds: one more than there are bins, each of which is closed above.
	Edges  []float64    `json:"edges"`
	Values []LabelValue `json:"values"`
	// Cut is how many further values there are, each of fewer objects.
	Cut int `json:"cut,omitempty"`
}

// LabelValue are the objects that have one value, "" where it is unknown.
type LabelValue struct {
	Value string `json:"value"`
	// Time is from the one milestone to the other, and Counts are how many of it fell in each bin.
	Time    Latency   `json:"time"`
	Counts  []int     `json:"counts"`
	Latency Latencies `json:"latency"` // from time zero
}

// Figure is a value of a label as a published figure's metric names it:
// "LABEL=VALUE mean", or p50, p90 or p99; nil where there is none such.
func (b Group) Figure(metric string) *float64 {
	name, figure, _ := strings.Cut(strings.TrimPrefix(metric, b.Label+"="), " ")
	i := slices.IndexFunc(b.Values, func(v LabelValue) bool { return v.Value == name })
	if i < 0 || !strings.HasPrefix(metric, b.Label+"=") {
		return nil
	}
	t := b.Values[i].Time
	return map[string]*float64{"mean": t.Mean, "p50": t.P50, "p90": t.P90, "p99": t.P99, "max": t.Max}[figure]
}

// HistogramSummary is how long one kind of work took in a step by the histogram that the program that
// does it publishes. All that ended in the step counts, be it of objects of the step or not.
type HistogramSummary struct {
	Source string   `json:"source"`
	Name   string   `json:"name"`
	N      uint64   `json:"n"`
	Mean   *float64 `json:"mean"` // exact, in seconds
	// A histogram tells no quantile, but the bucket that it lies in.
	P50 Bucket `json:"p50"`
	P99 Bucket `json:"p99"`
}

// Bucket is one of a histogram's: above Above seconds, and at most AtMost, which
// is null for the last, which has no end.
type Bucket struct {
	Above  float64  `json:"above"`
	AtMost *float64 `json:"atMost"`
}
