// Package stats holds the program's statistics: pure functions from numbers
// to numbers, which state their assumptions and return warnings as values.
package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
	"gonum.org/v1/gonum/stat"
)

// Sample holds measured times, each observation or counts (see Counted), of which some never came: these
// are infinitely late in every quantile, so a lost object cannot make a run look faster.
type Sample struct {
	sorted     []float64 // the values, each once where they are counted
	counts     []int     // counts[i] observations are at most sorted[i]; nil where each value is one
	censored   int
	resolution float64  // of counted values, as a share of each
	batches    []Sample // see Batched
}

// NewSample makes a sample of values, which it keeps and sorts, and censored ones. It panics on NaN.
func NewSample(values []float64, censored int) Sample {
	slices.Sort(values)
	if len(values) > 0 && math.IsNaN(values[0]) {
		panic("stats: NaN in a sample")
	}
	return Sample{sorted: values, censored: censored}
}

// Count counts the observations of a value, to the resolution of a histogram.
type Count struct {
	Value float64
	N     int
}

// Counted makes a sample of counts in order of value; resolution is a value's largest relative error.
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

// Batched returns the sample of batches that follow one another: these give the quantiles' intervals.
func Batched(batches ...Sample) Sample {
	s := Merge(batches...)
	s.batches = batches
	return s
}

// N returns the number of observations, censored ones included.
func (s Sample) N() int { return s.came() + s.censored }

func (s Sample) came() int { return s.first(len(s.sorted)) }

// first returns the number of observations that have one of the first i values.
func (s Sample) first(i int) int {
	if s.counts == nil || i == 0 {
		return i
	}
	return s.counts[i-1]
}

// AtMost returns the number of observations that are at most v.
func (s Sample) AtMost(v float64) int {
	above, _ := slices.BinarySearch(s.sorted, math.Nextafter(v, math.Inf(1)))
	return s.first(above)
}

// AtOnce returns the sample in which n of the censored observations came at once: the best case of
// observations whose state is unknown.
func (s Sample) AtOnce(n int) Sample {
	m := Merge(s, Sample{sorted: make([]float64, n)})
	m.censored -= n
	return m
}

// Censored returns the number of observations that never came.
func (s Sample) Censored() int { return s.censored }

// Values returns the sorted observations, or different values of counts. The caller must not change them.
func (s Sample) Values() []float64 { return s.sorted }

// order returns the k-th smallest observation, k from 1: +Inf for a censored one.
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

// Quantile returns the ceil(q n)-th smallest of all observations, 0 < q <= 1: one that was made. It is
// +Inf where that one is censored, NaN for an empty sample.
func (s Sample) Quantile(q float64) float64 {
	if s.N() == 0 {
		return math.NaN()
	}
	return s.order(rank(q, s.N()))
}

// Rank returns the rank of the quantile q, from 1; 0 for an empty sample. The quantile exceeds a bound once
// N - Rank + 1 observations do.
func (s Sample) Rank(q float64) int {
	if s.N() == 0 {
		return 0
	}
	return rank(q, s.N())
}

// rank returns ceil(q n) within 1..n. The subtraction takes back what q as a binary fraction adds: 0.07
// of 100 is the 7th, though 0.07*100 > 7.
func rank(q float64, n int) int { return min(max(int(math.Ceil(q*float64(n)-1e-9*float64(n))), 1), n) }

// Resolves reports whether n observations carry the quantile q: at least 1/(1-q). With fewer it is the
// maximum.
func Resolves(q float64, n int) bool { return float64(n)*(1-q) >= 1-1e-9 }

// Interval returns Woodruff's (1952) confidence interval of the quantile q of batches: the share of
// observations below the quantile varies from batch to batch, and the quantiles at the ends of that
// share's interval (Student's, of a ratio) are the ends. An end without a bound is infinite: so are both
// of one batch alone, and of any other sample. Observations of one burst share most of what made them
// slow, so their differences do not predict the next burst.
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
	half := max(studentQuantile(1-(1-confidence)/2, k-1)*math.Sqrt(k/(k-1)*squares)/n, 1/n) // a rank at least
	if q-half > 0 {
		lo = s.Quantile(q - half)
	}
	if q+half <= 1 {
		hi = s.Quantile(q + half)
	}
	return lo, hi
}

// Mean returns the mean of the observations, NaN without any and +Inf if any is censored.
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

// Max returns the largest observation, NaN without any and +Inf if any is censored.
func (s Sample) Max() float64 {
	if s.N() == 0 {
		return math.NaN()
	}
	return s.order(s.N())
}

// Resolution returns the smallest distance between different observations, an upper bound on the step of
// the clock that timed them; 0 for fewer than two. Of counts it is the histogram's at the largest value.
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

// PassProbability returns the lower confidence bound on the probability that one more trial passes, after
// k of n independent ones did (Clopper and Pearson, 1934, one-sided): with 3 of 3 at 95% it is
// 0.05^(1/3) = 0.37. It is 0 without a pass.
func PassProbability(k, n int, confidence float64) float64 {
	if k <= 0 || n <= 0 {
		return 0
	}
	k = min(k, n)
	return mathext.InvRegIncBeta(float64(k), float64(n-k+1), 1-confidence)
}

// QuantileName returns a quantile's name on screen and in JSON: 0.99 is p99 and 0.999 is p99.9; 1 is max.
func QuantileName(q float64) string {
	if q == 1 {
		return "max"
	}
	return fmt.Sprintf("p%g", math.Round(q*1e6)/1e4)
}

// Mean returns the mean of independent figures with Student's interval, without bounds for one figure.
func Mean(figures []float64, confidence float64) Estimate {
	mean, sd := stat.MeanStdDev(figures, nil)
	n := float64(len(figures))
	if n < 2 {
		return Estimate{mean, math.Inf(-1), math.Inf(1)}
	}
	half := studentQuantile(1-(1-confidence)/2, n-1) * sd / math.Sqrt(n)
	return Estimate{mean, mean - half, mean + half}
}

// AnyTime returns the mean of independent figures with an interval that holds it at all looks, after each
// added figure: the normal mixture of the t statistic with the prior's scale at one standard deviation
// (Wang and Ramdas, 2023). It is without bounds for the first few figures.
func AnyTime(figures []float64, confidence float64) Estimate {
	mean, sd := stat.MeanStdDev(figures, nil)
	n := float64(len(figures))
	g := 1 + n
	k := math.Pow(math.Sqrt(g)/(1-confidence), 2/n)
	if n < 2 || k >= g {
		return Estimate{mean, math.Inf(-1), math.Inf(1)}
	}
	half := math.Sqrt((n-1)*g*(k-1)/(g-k)) * max(sd, leastSpread) / math.Sqrt(n)
	return Estimate{mean, mean - half, mean + half}
}
