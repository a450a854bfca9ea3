// Package stats holds the program's statistics: pure functions from numbers
// to numbers, which state their assumptions and return warnings as values.
package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Sample is a set of measured times of which some never came. A censored observation counts as infinitely
// late: it takes part in every quantile, so that what never came cannot make a run look faster.
//
// A sample holds each observation, or counts of those that a histogram does not tell apart; see Counted.
// Everything here takes both.
type Sample struct {
	sorted []float64 // the values, each once where they are counted
	// counts[i] is how many observations are at most sorted[i]; nil where each value is one observation.
	counts     []int
	censored   int
	resolution float64  // of counted values, as a share of each
	batches    []Sample // see Batched
}

// NewSample makes a sample of values and a number of censored observations.
// It keeps and sorts values. NaN is not a value: it panics, as a bug.
func NewSample(values []float64, censored int) Sample {
	slices.Sort(values)
	if len(values) > 0 && math.IsNaN(values[0]) {
		panic("stats: NaN in a sample")
	}
	return Sample{sorted: values, censored: censored}
}

// Count is how many observations have a value, to the resolution of a histogram.
type Count struct {
	Value float64
	N     int
}

// Counted makes a sample of counts in the order of their values and a number of censored observations.
// Resolution is how far a value may be from what was measured, as a share of it.
func Counted(list []Count, censored int, resolution float64) Sample {
	s := Sample{sorted: make([]float64, 0, len(list)), counts: make([]int, 0, len(list)), censored: censored, resolution: resolution}
	n := 0
	for _, c := range list {
		if c.N > 0 {
			n += c.N
			s.sorted, s.counts = append(s.sorted, c.Value), append(s.counts, n)
		}
	}
	return s
}

// Batched is the sample of all observations of batches, stretches of time that
// follow one another. Observations near in time are alike, so that the
// intervals of their quantiles come from how the batches differ.
func Batched(batches ...Sample) Sample {
	s := Merge(batches...)
	s.batches = batches
	return s
}

// N is the number of observations, censored ones included.
func (s Sample) N() int { return s.came() + s.censored }

// came is the number of observations that came.
func (s Sample) came() int { return s.first(len(s.sorted)) }

// first is the number of observations that have one of the first i values.
func (s Sample) first(i int) int {
	if s.counts == nil || i == 0 {
		return i
	}
	return s.counts[i-1]
}

// AtMost is the number of observations that are at most v.
func (s Sample) AtMost(v float64) int {
	above, _ := slices.BinarySearch(s.sorted, math.Nextafter(v, math.Inf(1)))
	return s.first(above)
}

// AtOnce is the sample in which n of the censored observations came at once:
// the best that can be said of those whose state is unknown.
func (s Sample) AtOnce(n int) Sample {
	m := Merge(s, Sample{sorted: make([]float64, n)})
	m.censored -= n
	return m
}

// Censored is the number of observations that never came.
func (s Sample) Censored() int { return s.censored }

// Values are the observations that came, sorted, or their different values
// where they are counted. The caller must not change them.
func (s Sample) Values() []float64 { return s.sorted }

// order is the k-th smallest observation, k from 1: +Inf for a censored one.
func (s Sample) order(k int) float64 {
	if k > s.came() {
		return math.Inf(1)
	}
	if s.counts != nil {
		k, _ = slices.BinarySearch(s.counts, k)
		k++
	}
	return s.sorted[k-1]
}

// Quantile is the order statistic at q, 0 < q <= 1: the ceil(q n)-th smallest of all observations, +Inf
// where that one is censored. It is no average of two neighbours: each quantile is an observation that
// was made. An empty sample has the quantile NaN.
func (s Sample) Quantile(q float64) float64 {
	if s.N() == 0 {
		return math.NaN()
	}
	return s.order(rank(q, s.N()))
}

// Rank is the rank of the observation that is the quantile q, from 1; 0 for an
// empty sample. The quantile exceeds a bound once N - Rank + 1 observations do.
func (s Sample) Rank(q float64) int {
	if s.N() == 0 {
		return 0
	}
	return rank(q, s.N())
}

// rank is ceil(q n) within 1..n. The subtraction takes back what q as a binary
// fraction adds: 0.07 of 100 is the 7th, though 0.07*100 > 7.
func rank(q float64, n int) int {
	k := int(math.Ceil(q*float64(n) - 1e-9*float64(n)))
	return min(max(k, 1), n)
}

// Resolves reports whether n observations carry the quantile q: with fewer
// than 1/(1-q) the quantile is just the maximum.
func Resolves(q float64, n int) bool {
	return float64(n)*(1-q) >= 1-1e-9
}

// Interval is a confidence interval of the quantile q of batches, Woodruff's (1952): the share of all
// observations that the quantile exceeds varies from batch to batch, and the quantiles of the ends of
// that share's interval (Student's, of a ratio) are the ends. An end that is not bounded is infinite: so
// are both of one batch alone, and of any other sample. Observations of one burst have most of what made
// them slow in common, so how they differ does not tell how the next burst will.
func (s Sample) Interval(q, confidence float64) (lo, hi float64) {
	lo, hi = math.Inf(-1), math.Inf(1)
	value, n, batches := s.Quantile(q), float64(s.N()), 0
	squares := 0.0
	share := float64(s.AtMost(value)) / n
	for _, b := range s.batches {
		if b.N() > 0 {
			batches++
			d := float64(b.AtMost(value)) - share*float64(b.N())
			squares += d * d
		}
	}
	if batches < 2 {
		return lo, hi
	}
	k := float64(batches)
	// However alike the batches are, a share is no more exact than a rank.
	half := max(studentQuantile(1-(1-confidence)/2, k-1)*math.Sqrt(k/(k-1)*squares)/n, 1/n)
	if q-half > 0 {
		lo = s.Quantile(q - half)
	}
	if q+half <= 1 {
		hi = s.Quantile(q + half)
	}
	return lo, hi
}

// Mean is the mean of the observations, NaN if there are none and +Inf if any is censored.
func (s Sample) Mean() float64 {
	switch {
	case s.N() == 0:
		return math.NaN()
	case s.censored > 0:
		return math.Inf(1)
	}
	sum := 0.0
	for i, v := range s.sorted {
		sum += v * float64(s.first(i+1)-s.first(i))
	}
	return sum / float64(s.N())
}

// Max is the largest observation, NaN if there is none and +Inf if any is censored.
func (s Sample) Max() float64 {
	if s.N() == 0 {
		return math.NaN()
	}
	return s.order(s.N())
}

// Resolution is the smallest distance between two different observations: an upper bound on the step of
// the clock that timed them. It is 0 with fewer than two different ones. Of counted values it is that of
// their histogram at the largest one.
func (s Sample) Resolution() float64 {
	least := 0.0
	if s.counts != nil && len(s.sorted) > 0 {
		return s.resolution * s.sorted[len(s.sorted)-1]
	}
	for i := 1; i < len(s.sorted); i++ {
		if d := s.sorted[i] - s.sorted[i-1]; d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}

// PassProbability is the lower confidence bound on the probability that one
// more trial passes, after k of n independent trials did (Clopper and Pearson,
// 1934, one-sided): with 3 of 3 at 95 % it is 0.05^(1/3) = 0.37.
func PassProbability(k, n int, confidence float64) float64 {
	if k <= 0 || n <= 0 {
		return 0
	}
	k = min(k, n)
	return mathext.InvRegIncBeta(float64(k), float64(n-k+1), 1-confidence)
}

// QuantileName is a quantile's name on screen and in JSON: 0.99 is p99 and 0.999 is p99.9; 1 is max.
func QuantileName(q float64) string {
	if q == 1 {
		return "max"
	}
	return fmt.Sprintf("p%g", math.Round(q*1e6)/1e4)
}
