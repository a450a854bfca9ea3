package fio

import (
	"cmp"
	"maps"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/record"
)

// Bins are counts of latencies by the nanoseconds that stand for each of fio's
// bins, the middle of it. Bins of several clients are merged by adding them up:
// all of fio's have the same bounds.
type Bins map[int64]uint64

// Resolution is how far a latency may be from the middle of its bin, as a share
// of it: fio divides each power of two into 64 bins.
const Resolution = 1.0 / 128

// N is how many there are.
func (b Bins) N() uint64 {
	n := uint64(0)
	for _, k := range b {
		n += k
	}
	return n
}

// Add adds other bins.
func (b Bins) Add(other Bins) {
	for at, n := range other {
		b[at] += n
	}
}

// Since are the bins less those of before. A count that fell, which is none of
// the same client, is 0.
func (b Bins) Since(before Bins) Bins {
	d := make(Bins)
	for at, n := range b {
		if was := before[at]; n > was {
			d[at] = n - was
		}
	}
	return d
}

// Quantile is the bin that holds the q-th part, 0 to 1, in nanoseconds: the first
// up to which there are at least q of all, as fio tells percentiles. It is 0
// without any.
func (b Bins) Quantile(q float64) int64 {
	all, sum := float64(b.N()), uint64(0)
	for _, at := range slices.SortedFunc(maps.Keys(b), cmp.Compare) {
		if sum += b[at]; float64(sum) >= q*all {
			return at
		}
	}
	return 0
}

// Count adds the bins to a histogram of microseconds.
func (b Bins) Count(h *hdrhistogram.Histogram) {
	for at, n := range b {
		// It is within the bounds, which is all that can be wrong.
		_ = h.RecordValues(min(max((at+500)/1000, 0), h.HighestTrackableValue()), int64(min(n, 1<<62)))
	}
}

// Histogram is how a record keeps the bins.
func (b Bins) Histogram() (record.Histogram, error) {
	h := record.NewCounts()
	b.Count(h)
	return record.HistogramOf(h)
}
