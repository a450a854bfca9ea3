package fio

import (
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/record"
)

// Bins counts latencies by the middle of fio's bins, in nanoseconds. All clients' bins have the same
// bounds, so counts can be added.
type Bins map[int64]uint64

// Resolution bounds the relative distance of a latency from the middle of its bin: fio divides each power
// of two into 64 bins.
const Resolution = 1.0 / 128

// N returns the sum of the counts.
func (b Bins) N() uint64 {
	n := uint64(0)
	for _, k := range b {
		n += k
	}
	return n
}

// Add adds other counts.
func (b Bins) Add(other Bins) {
	for at, n := range other {
		b[at] += n
	}
}

// Since returns the increase since before. A count that fell, which is of another client, is 0.
func (b Bins) Since(before Bins) Bins {
	d := make(Bins)
	for at, n := range b {
		if was := before[at]; n > was {
			d[at] = n - was
		}
	}
	return d
}

// Quantile returns the bin of the q-th part, 0 to 1, in nanoseconds: the first up to which at least q of
// all counts are, as in fio's percentiles. It is 0 without any.
func (b Bins) Quantile(q float64) int64 {
	all, sum := float64(b.N()), uint64(0)
	for _, at := range slices.Sorted(maps.Keys(b)) {
		if sum += b[at]; float64(sum) >= q*all {
			return at
		}
	}
	return 0
}

// Count adds the bins to a histogram of microseconds.
func (b Bins) Count(h *hdrhistogram.Histogram) {
	for at, n := range b {
		// The value is within the bounds, so there is no error.
		_ = h.RecordValues(min(max((at+500)/1000, 0), h.HighestTrackableValue()), int64(min(n, 1<<62)))
	}
}

// Histogram returns the bins as a record keeps them.
func (b Bins) Histogram() (record.Histogram, error) {
	h := record.NewCounts()
	b.Count(h)
	return record.HistogramOf(h)
}
