package stats

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// ChangePoint says where a series of figures changes its level.
type ChangePoint struct {
	At     int     // the first figure of the new level, counted from 0
	Change float64 // relative, from the stretch since the previous change point to the one after
	P      float64 // the share of the orders of the figures around it with a best division at least as good
}

// The bounds of the search for change points.
const (
	ChangeNeeds  = 10   // figures in a series: fewer do not tell a change from chance
	leastStretch = 2    // figures of a level: one is an outlier
	orders       = 1999 // that are drawn, besides the one that was seen
)

// ErrFewForChange says that a series is too short for change points.
var ErrFewForChange = errors.New("fewer than 10 values do not show a change")

// ChangePoints finds where a series of figures, one of each run in order, changes its level, by circular
// binary segmentation (Olshen, Venkatraman and others, 2004): the stretch of logarithms whose mean
// differs most from the rest stands if at most a share alpha of the orders of the figures have one as
// good. The series is divided at its clearer end and both parts, which share alpha, are searched again.
// So a series without a change gets one with a probability of alpha. That assumes independent runs: a
// drift, or a run that depends on the one before, counts as a change. The result is in order, and empty
// without a change. Fewer than ChangeNeeds figures are ErrFewForChange, a figure that is not finite or not
// above 0 is ErrNotPositive.
func ChangePoints(figures []float64, alpha float64, seed uint64) ([]ChangePoint, error) {
	if len(figures) < ChangeNeeds {
		return nil, ErrFewForChange
	}
	x, err := logs(figures)
	if err != nil {
		return nil, err
	}
	draw := sequence(seed)
	var found []ChangePoint
	var divide func(from, to int, alpha float64)
	divide = func(from, to int, alpha float64) {
		part := x[from:to]
		i, j, seen := bestStretch(part)
		if !(seen > 0) {
			return
		}
		p := shareOfOrders(part, alpha, draw, func(y []float64) bool {
			_, _, squares := bestStretch(y)
			return squares >= seen*(1-1e-9)
		})
		if p > alpha {
			return
		}
		at := clearerEnd(part, i, j)
		found = append(found, ChangePoint{At: from + at, P: p})
		divide(from, from+at, alpha/2)
		divide(from+at, to, alpha/2)
	}
	divide(0, len(x), alpha)
	slices.SortFunc(found, func(a, b ChangePoint) int { return cmp.Compare(a.At, b.At) })
	begin := 0
	for i := range found {
		end := len(x)
		if i+1 < len(found) {
			end = found[i+1].At
		}
		found[i].Change = math.Expm1(stat.Mean(x[found[i].At:end], nil) - stat.Mean(x[begin:found[i].At], nil))
		begin = found[i].At
	}
	return found, nil
}

// clearerEnd returns the end of the stretch x[i:j] at which a division takes more squares out of x.
func clearerEnd(x []float64, i, j int) int {
	squares := func(a, b, c int) float64 {
		d := stat.Mean(x[a:b], nil) - stat.Mean(x[b:c], nil)
		return d * d * float64(b-a) * float64(c-b) / float64(c-a)
	}
	switch {
	case i == 0:
		return j
	case j == len(x), squares(0, i, j) >= squares(i, j, len(x)):
		return i
	}
	return j
}

// shareOfOrders returns the share of the orders of x for which something holds, or one above enough.
func shareOfOrders(x []float64, enough float64, draw func() uint64, is func([]float64) bool) float64 {
	y := slices.Clone(x)
	so := 1
	for range orders {
		shuffle(y, draw)
		if is(y) {
			so++
		}
		if float64(so) > enough*(orders+1) {
			break
		}
	}
	return float64(so) / (orders + 1)
}

// bestStretch returns the stretch x[i:j] whose mean differs most from the rest, by the squares that a
// division takes out of x; 0 where x is too short. One that begins or ends with x divides it in two.
func bestStretch(x []float64) (i, j int, squares float64) {
	n := len(x)
	sums := make([]float64, n+1)
	for k, v := range x {
		sums[k+1] = sums[k] + v - x[0] // so that a large common part does not round small differences away
	}
	all := sums[n]
	for a := 0; a <= n-leastStretch; a++ {
		if a > 0 && a < leastStretch {
			continue
		}
		for b := a + leastStretch; b <= n; b++ {
			in, out := float64(b-a), float64(n-b+a)
			if b < n && n-b < leastStretch || a == 0 && b == n {
				continue
			}
			inside := sums[b] - sums[a]
			d := inside/in - (all-inside)/out
			if s := d * d * in * out / float64(n); s > squares*(1+1e-12) {
				i, j, squares = a, b, s
			}
		}
	}
	return i, j, squares // a stretch at the beginning is as good as the rest at the end
}
