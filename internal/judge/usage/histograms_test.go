package usage

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// published makes a histogram of durations as a program publishes it.
func published(name string, bounds, took []float64) *record.ComponentHistogram {
	d := &record.ComponentHistogram{Source: "kubelet", Name: name, Bounds: bounds, Counts: make([]uint64, len(bounds))}
	for _, x := range took {
		d.Count++
		d.Sum += x
		for i, b := range bounds {
			if x <= b {
				d.Counts[i]++
			}
		}
	}
	return d
}

// The buckets hold the quantiles of what was measured in the step alone.
func TestPublishedDurationsOfAStep(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	bounds := []float64{0.005, 0.0125, 0.03125, 0.078125, 0.1953125, 0.48828125, 1.220703125}
	for range 200 {
		var before, in []float64
		for range r.IntN(50) {
			before = append(before, 2*r.Float64())
		}
		for range 1 + r.IntN(200) {
			in = append(in, math.Exp(-3+1.5*r.NormFloat64()))
		}
		d, ok := durationsIn(published("x", bounds, before), published("x", bounds, append(slices.Clone(before), in...)))
		if !ok || d.N != uint64(len(in)) {
			t.Fatalf("%d durations: %+v, %t", len(in), d, ok)
		}
		sample := stats.NewSample(in, 0)
		if math.Abs(*d.Mean-sample.Mean()) > 1e-5 {
			t.Errorf("mean %g, want %g", *d.Mean, sample.Mean())
		}
		for _, q := range []struct {
			b result.Bucket
			v float64
		}{{d.P50, sample.Quantile(0.5)}, {d.P99, sample.Quantile(0.99)}} {
			most := math.Inf(1)
			if q.b.AtMost != nil {
				most = *q.b.AtMost
			}
			if q.v <= q.b.Above || q.v > most {
				t.Errorf("%g is not in the bucket from %g to %g", q.v, q.b.Above, most)
			}
		}
	}
}

func TestDurationsThatAreNone(t *testing.T) {
	good := published("x", []float64{1, 2}, []float64{0.5, 1.5})
	none := &record.ComponentHistogram{Counts: make([]uint64, 2)}
	for _, c := range []struct {
		before, after *record.ComponentHistogram
		why           string
	}{
		{good, good, "nothing came"},
		{good, none, "it began anew"},
		{none, &record.ComponentHistogram{Count: 2, Bounds: []float64{1, 2}, Counts: []uint64{2}}, "counts are missing"},
		{none, &record.ComponentHistogram{Count: 2, Bounds: []float64{1, 2}, Counts: []uint64{2, 1}}, "counts that fall"},
		{none, &record.ComponentHistogram{Count: 2, Bounds: []float64{1, 2}, Counts: []uint64{1, 9}}, "more than all"},
		{&record.ComponentHistogram{}, good, "other buckets before"},
	} {
		if d, ok := durationsIn(c.before, c.after); ok {
			t.Errorf("%s: %+v", c.why, d)
		}
	}
}
