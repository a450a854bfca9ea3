package stats

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Verdict says how an arm compares with the baseline.
type Verdict string

// The verdicts of a comparison. With a relative change d where more is worse,
// its interval [lo, hi] and the margin m:
const (
	Better     Verdict = "better"       // hi < -m
	Equivalent Verdict = "equivalent"   // -m <= lo and hi <= m
	NotWorse   Verdict = "notWorse"     // hi <= m, and no more can be said
	Worse      Verdict = "worse"        // lo > m
	Undecided  Verdict = "inconclusive" // none of these
)

// Change is the relative change of a metric from baseline to arm: 0.05 is 5% more.
type Change struct {
	Blocks    int     // pairs of runs; without pairs, the runs of the arm that has fewer
	D, Lo, Hi float64 // the change and the ends of its interval, at the caller's confidence
	SD        float64 // standard deviation of the logarithms' block differences; of runs made apart, that of as many blocks
	df        float64 // degrees of freedom
}

const leastSpread = 0.001 // least standard deviation of logarithms: a few equal figures prove little

// ErrFewBlocks says that an interval needs at least two blocks of runs.
var ErrFewBlocks = errors.New("an interval needs at least two runs of each arm")

// ErrNotPositive says that a metric is not positive and finite in every run, so it has no change.
var ErrNotPositive = errors.New("a relative change needs a positive finite value from every run")

// CompareBlocks compares two arms that ran side by side: a[i] and b[i] are one metric's figures in block
// i. The run is the replicate; the number of its objects does not enter. The interval is Student's, of
// the mean difference of the logarithms: relative changes, whose noise multiplies. Fewer than two blocks
// are ErrFewBlocks, a figure without a logarithm is ErrNotPositive.
func CompareBlocks(a, b []float64, confidence float64) (Change, error) {
	if len(a) != len(b) {
		return Change{}, errors.New("blocks need a run of each arm")
	}
	n := len(a)
	if n < 2 {
		return Change{}, ErrFewBlocks
	}
	la, errA := logs(a)
	lb, errB := logs(b)
	if err := cmp.Or(errA, errB); err != nil {
		return Change{}, err
	}
	return repeated(floats.SubTo(make([]float64, n), lb, la), studentQuantile(1-(1-confidence)/2, float64(n-1))), nil
}

// CompareApart compares arms whose runs were made apart, by Welch's interval of the difference of the
// logarithms' means. It is wider than that of blocks: it includes all that changed with time. Errors are
// those of CompareBlocks.
func CompareApart(a, b []float64, confidence float64) (Change, error) {
	if len(a) < 2 || len(b) < 2 {
		return Change{}, ErrFewBlocks
	}
	la, errA := logs(a)
	lb, errB := logs(b)
	if err := cmp.Or(errA, errB); err != nil {
		return Change{}, err
	}
	ma, sa := stat.MeanStdDev(la, nil)
	mb, sb := stat.MeanStdDev(lb, nil)
	// The spread of a difference is that of both.
	sa, sb = max(sa, leastSpread/math.Sqrt2), max(sb, leastSpread/math.Sqrt2)
	va, vb := sa*sa/float64(len(a)), sb*sb/float64(len(b))
	n := min(len(a), len(b))
	c := Change{Blocks: n, D: math.Expm1(mb - ma), SD: math.Sqrt((va + vb) * float64(n))}
	// Welch and Satterthwaite's degrees of freedom.
	c.df = (va + vb) * (va + vb) / (va*va/float64(len(a)-1) + vb*vb/float64(len(b)-1))
	half := studentQuantile(1-(1-confidence)/2, c.df) * math.Sqrt(va+vb)
	c.Lo, c.Hi = math.Expm1(mb-ma-half), math.Expm1(mb-ma+half)
	return c, nil
}

// logs returns the natural logarithms, or ErrNotPositive.
func logs(x []float64) ([]float64, error) {
	l := make([]float64, len(x))
	for i, v := range x {
		if !(v > 0) || math.IsInf(v, 1) {
			return nil, ErrNotPositive
		}
		l[i] = math.Log(v)
	}
	return l, nil
}

// Judge returns the verdict by a margin, 0.05 for 5%. Less says that more of the metric is better (a rate).
func (c Change) Judge(margin float64, less bool) Verdict {
	lo, hi := c.Lo, c.Hi
	if less {
		lo, hi = -hi, -lo
	}
	switch {
	case hi < -margin:
		return Better
	case lo > margin:
		return Worse
	case -margin <= lo && hi <= margin:
		return Equivalent
	case hi <= margin:
		return NotWorse
	}
	return Undecided
}

// MoreBlocks returns how many further blocks likely decide a comparison, if its change and spread stay as
// they are: 0 where it is decided, -1 where no number up to most decides it.
func (c Change) MoreBlocks(margin, confidence float64, less bool, most int) int {
	if c.Judge(margin, less) != Undecided {
		return 0
	}
	mean := math.Log1p(c.D)
	for n := c.Blocks + 1; n <= c.Blocks+most; n++ {
		half := studentQuantile(1-(1-confidence)/2, float64(n-1)) * c.SD / math.Sqrt(float64(n))
		next := Change{Blocks: n, Lo: math.Expm1(mean - half), Hi: math.Expm1(mean + half)}
		if next.Judge(margin, less) != Undecided {
			return n - c.Blocks
		}
	}
	return -1
}

// Power is the probability with which Detectable changes are found.
const Power = 0.8

// Detectable returns the smallest change beyond the margin that so many blocks find with Power; sd is
// Change.SD. Student's distribution about 0 stands for the noncentral one, which is close. It is +Inf for
// fewer than two blocks.
func Detectable(sd float64, blocks int, margin, confidence float64) float64 {
	if blocks < 2 {
		return math.Inf(1)
	}
	df := float64(blocks - 1)
	errors := studentQuantile(1-(1-confidence)/2, df) + studentQuantile(Power, df)
	return math.Expm1(math.Log1p(margin) + errors*sd/math.Sqrt(float64(blocks)))
}

func studentQuantile(q, df float64) float64 { return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(q) }

func studentCDF(t, df float64) float64 { return distuv.StudentsT{Sigma: 1, Nu: df}.CDF(t) }

// Distance returns the Kolmogorov-Smirnov distance of two samples, from 0 to 1, in which censored objects
// come last; NaN where one is empty. It is an effect size: a run's objects are not replicates, so it gives
// no p-value.
func Distance(a, b Sample) float64 {
	if a.N() == 0 || b.N() == 0 {
		return math.NaN()
	}
	i, j, most := 0, 0, 0.0
	x, y := a.sorted, b.sorted
	for i < len(x) || j < len(y) {
		v := math.Inf(1) // both move past the same value, so that ties do not count
		if i < len(x) {
			v = x[i]
		}
		if j < len(y) {
			v = min(v, y[j])
		}
		for i < len(x) && x[i] <= v {
			i++
		}
		for j < len(y) && y[j] <= v {
			j++
		}
		most = max(most, math.Abs(float64(a.first(i))/float64(a.N())-float64(b.first(j))/float64(b.N())))
	}
	return most
}

// Superiority returns the probability that an object of b is later than one of a: 0.5 where neither is
// later, NaN where a sample is empty. A tie is a half; censored objects tie and are later than all others.
func Superiority(a, b Sample) float64 {
	if a.N() == 0 || b.N() == 0 {
		return math.NaN()
	}
	wins := 0.0
	x, y := a.sorted, b.sorted
	for i, j := 0, 0; j < len(y); {
		v := y[j]
		same := j // how many of b have this value
		for j < len(y) && y[j] == v {
			j++
		}
		same = b.first(j) - b.first(same)
		for i < len(x) && x[i] < v {
			i++
		}
		ties := i
		for ties < len(x) && x[ties] == v {
			ties++
		}
		wins += float64(same) * float64(a.first(i)+a.first(ties)) / 2
		i = ties
	}
	wins += float64(b.censored) * (float64(a.came()) + float64(a.censored)/2)
	return wins / float64(a.N()) / float64(b.N())
}

// FalseDiscovery turns the p-values of many metrics into the rate of false discoveries among those that
// are as small (Benjamini and Hochberg, 1995). NaN stays NaN and does not count.
func FalseDiscovery(p []float64) []float64 {
	var known []int
	q := slices.Repeat([]float64{math.NaN()}, len(p))
	for i, v := range p {
		if !math.IsNaN(v) {
			known = append(known, i)
		}
	}
	slices.SortStableFunc(known, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	lowest := 1.0
	for k, i := range slices.Backward(known) {
		lowest = min(lowest, p[i]*float64(len(known))/float64(k+1))
		q[i] = lowest
	}
	return q
}

// P returns Student's two-sided p-value of no change at all, NaN for fewer than two blocks.
func (c Change) P() float64 {
	if c.Blocks < 2 {
		return math.NaN()
	}
	t := math.Abs(math.Log1p(c.D)) / (c.SD / math.Sqrt(float64(c.Blocks)))
	return 2 * (1 - studentCDF(t, c.df))
}
