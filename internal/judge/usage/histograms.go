package usage

import (
	"cmp"
	"math"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

type durationsKey struct{ source, name string }

// Histograms collects the durations of work that programs publish.
type Histograms struct {
	latest, before map[durationsKey]*record.ComponentHistogram // since the last begin or end of a step; before its load
}

// NewHistograms returns an empty collection.
func NewHistograms() Histograms {
	return Histograms{latest: make(map[durationsKey]*record.ComponentHistogram)}
}

// Add takes in a published histogram.
func (c *Histograms) Add(r *record.ComponentHistogram) { c.latest[durationsKey{r.Source, r.Name}] = r }

// Begin begins a step's load.
func (c *Histograms) Begin() {
	*c = Histograms{make(map[durationsKey]*record.ComponentHistogram), c.latest}
}

// End returns the differences between the histograms before a step's load and at its end.
func (c *Histograms) End() []result.HistogramSummary {
	var list []result.HistogramSummary
	for key, after := range c.latest {
		before := c.before[key]
		if before == nil {
			if !c.published(key.source) { // else this work began in the step: it was published from its first time on
				continue
			}
			before = &record.ComponentHistogram{Counts: make([]uint64, len(after.Counts))}
		}
		if d, ok := durationsIn(before, after); ok {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, func(x, y result.HistogramSummary) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Name, y.Name))
	})
	*c = NewHistograms()
	return list
}

func (c *Histograms) published(source string) bool {
	for key := range c.before {
		if key.source == source {
			return true
		}
	}
	return false
}

// durationsIn returns the difference of two readings, false if it is empty or the program restarted.
func durationsIn(before, after *record.ComponentHistogram) (result.HistogramSummary, bool) {
	d := result.HistogramSummary{Source: after.Source, Name: after.Name}
	if len(after.Counts) != len(after.Bounds) || len(before.Counts) != len(after.Counts) || after.Count <= before.Count {
		return d, false
	}
	d.N = after.Count - before.Count
	counts := make([]uint64, len(after.Counts))
	for i := range counts {
		if after.Counts[i] < before.Counts[i] {
			return d, false
		}
		counts[i] = after.Counts[i] - before.Counts[i]
		if counts[i] > d.N || i > 0 && counts[i] < counts[i-1] {
			return d, false
		}
	}
	d.Mean = result.Finite((after.Sum - before.Sum) / float64(d.N))
	bucket := func(q float64) result.Bucket {
		rank := uint64(math.Ceil(q * float64(d.N)))
		i := slices.IndexFunc(counts, func(n uint64) bool { return n >= rank })
		if i < 0 {
			i = len(counts)
		}
		var in result.Bucket
		if i > 0 {
			in.Above = after.Bounds[i-1]
		}
		if i < len(counts) {
			in.AtMost = &after.Bounds[i]
		}
		return in
	}
	d.P50, d.P99 = bucket(0.5), bucket(0.99)
	return d, true
}
