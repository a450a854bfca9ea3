package stats

import (
	"math"
	"slices"
)

// Trials are how often steps at a level passed and failed. A trial that tells less
// than another counts as a part of one.
type Trials struct{ Level, Passed, Failed float64 }

// crossingBound is how far twice the logarithm of the likelihood may lie below its
// maximum for a place of a crossing to stay in the interval: the 95 % quantile of
// its limit for a monotone curve (Banerjee and Wellner, 2001). With few trials,
// and levels that a search has chosen, it holds in 94 % or more, by simulation.
const crossingBound = 3.84

// FindCrossing estimates the level at which a trial passes with a probability of a
// half, if the probability falls as the level rises and nothing else is known of
// it. By the likelihood of monotone curves: those that cross a half at a place
// are fitted to the trials below it and above it, and the places in the interval
// are those with which the trials agree about as well as with the best one. It
// takes two trials that failed, where all below passed, to bound it. An end that
// nothing bounds is infinite; ok is false without any trial.
func FindCrossing(trials []Trials) (e Estimate, ok bool) {
	if len(trials) == 0 {
		return Estimate{}, false
	}
	trials = slices.Clone(trials)
	slices.SortFunc(trials, func(a, b Trials) int {
		switch {
		case a.Level < b.Level:
			return -1
		case a.Level > b.Level:
			return 1
		}
		return 0
	})
	merged := trials[:1]
	for _, t := range trials[1:] {
		if last := &merged[len(merged)-1]; last.Level == t.Level {
			last.Passed, last.Failed = last.Passed+t.Passed, last.Failed+t.Failed
		} else {
			merged = append(merged, t)
		}
	}
	// fits[i] is the fit of curves that cross between the levels i-1 and i.
	n := len(merged)
	fits, most := make([]float64, n+1), math.Inf(-1)
	for i := range fits {
		fits[i] = monotoneFit(merged[:i], 0.5, 1) + monotoneFit(merged[i:], 0, 0.5)
		most = max(most, fits[i])
	}
	level := func(i int) float64 {
		switch {
		case i < 0:
			return math.Inf(-1)
		case i >= n:
			return math.Inf(1)
		}
		return merged[i].Level
	}
	var best, within []int
	for i, fit := range fits {
		if most-fit < 1e-9 {
			best = append(best, i)
		}
		if 2*(most-fit) <= crossingBound {
			within = append(within, i)
		}
	}
	e.Lo, e.Hi = level(within[0]-1), level(within[len(within)-1])
	lo, hi := level(best[0]-1), level(best[len(best)-1])
	switch {
	case math.IsInf(lo, 0):
		e.Value = hi
	case math.IsInf(hi, 0):
		e.Value = lo
	default:
		e.Value = (lo + hi) / 2
	}
	return e, true
}

// monotoneFit is the logarithm of the likelihood of trials, in the order of their
// levels, by the best curve that does not rise and stays within bounds: by pooling
// adjacent violators, whose means are kept to the bounds.
func monotoneFit(trials []Trials, low, high float64) float64 {
	type pool struct{ passed, all float64 }
	var pools []pool
	for _, t := range trials {
		pools = append(pools, pool{t.Passed, t.Passed + t.Failed})
		for n := len(pools); n > 1 && pools[n-1].passed*pools[n-2].all > pools[n-2].passed*pools[n-1].all; n = len(pools) {
			pools[n-2].passed += pools[n-1].passed
			pools[n-2].all += pools[n-1].all
			pools = pools[:n-1]
		}
	}
	sum := 0.0
	for _, p := range pools {
		if p.all == 0 {
			continue
		}
		share := min(max(p.passed/p.all, low), high)
		sum += logTimes(p.passed, share) + logTimes(p.all-p.passed, 1-share)
	}
	return sum
}

// logTimes is n times the logarithm of p, 0 where n is.
func logTimes(n, p float64) float64 {
	if n == 0 {
		return 0
	}
	return n * math.Log(p)
}
