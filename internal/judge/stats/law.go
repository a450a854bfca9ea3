package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// LawLevels is how many different levels a law along an axis needs: with
// fewer any curve goes through them, and what it says between and beyond them
// is invention.
const LawLevels = 6

// Reach is how far a law says anything: up to so many times the highest level
// that was measured.
const Reach = 2.0

// Estimate is a figure with its interval, whose ends are infinite where the
// measurements do not bound it.
type Estimate struct{ Value, Lo, Hi float64 }

// Noise says how the errors of measurements behave along an axis.
type Noise int

// Errors in proportion to the figure, whose logarithms are alike at all
// levels; and errors that are themselves alike at all levels.
const (
	Relative Noise = iota
	Absolute
)

// TooFarError says that a law was asked about a level past Reach.
type TooFarError struct{ Level, Highest float64 }

func (e *TooFarError) Error() string {
	return fmt.Sprintf("level %.10g is above twice the highest level measured, %.10g", e.Level, e.Highest)
}

// Basis is what a fit is based on.
type Basis struct {
	Levels          int // different ones
	N               int // measurements
	Lowest, Highest float64
}

// basisOf checks the measurements of a law: pairs of finite numbers, at enough
// different levels. Least is the lowest level that the law knows of.
func basisOf(x, y []float64, least float64) (Basis, error) {
	if len(x) != len(y) {
		return Basis{}, errors.New("every measurement needs its level")
	}
	for i := range x {
		if math.IsNaN(x[i]+y[i]) || math.IsInf(x[i], 0) || math.IsInf(y[i], 0) {
			return Basis{}, errors.New("a measurement is not a finite number")
		}
	}
	levels := slices.Compact(slices.Sorted(slices.Values(x)))
	a := Basis{Levels: len(levels), N: len(x)}
	if a.N > 0 {
		a.Lowest, a.Highest = levels[0], levels[len(levels)-1]
	}
	switch {
	case a.Levels < LawLevels:
		return a, fmt.Errorf("%s, and a fit needs %d", manyLevels(a.Levels), LawLevels)
	case a.Lowest < least:
		return a, fmt.Errorf("the fit needs levels of at least %.10g, and one is %.10g", least, a.Lowest)
	}
	return a, nil
}

func manyLevels(n int) string {
	if n == 1 {
		return "there is 1 level"
	}
	return fmt.Sprintf("there are %d levels", n)
}

// reaches tells whether a law on this axis says anything of a level.
func (a Basis) reaches(level float64) error {
	if level > Reach*a.Highest || math.IsNaN(level) {
		return &TooFarError{level, a.Highest}
	}
	return nil
}

// leastSquares finds the coefficients of columns whose sum comes closest to y,
// by QR, and what is left of y. It is false where the columns do not determine
// them.
func leastSquares(columns [][]float64, y []float64) (coefs, left []float64, ok bool) {
	left = slices.Clone(y)
	if len(columns) == 0 {
		return nil, left, true
	}
	// Columns of unequal size make a problem look worse than it is.
	size := make([]float64, len(columns))
	a := mat.NewDense(len(y), len(columns), nil)
	for j, c := range columns {
		for _, v := range c {
			size[j] = max(size[j], math.Abs(v))
		}
		if size[j] == 0 || math.IsInf(size[j], 0) || math.IsNaN(size[j]) {
			return nil, nil, false
		}
		for i, v := range c {
			a.Set(i, j, v/size[j])
		}
	}
	var qr mat.QR
	qr.Factorize(a)
	var x mat.VecDense
	if err := qr.SolveVecTo(&x, false, mat.NewVecDense(len(y), slices.Clone(y))); err != nil {
		return nil, nil, false
	}
	coefs = make([]float64, len(columns))
	for j := range coefs {
		coefs[j] = x.AtVec(j) / size[j]
		floats.AddScaled(left, -coefs[j], columns[j])
	}
	return coefs, left, true
}

// profileBound is how large the sum of squares may become before a value of a
// parameter lies outside its interval, where least is the smallest, of n
// measurements and a law of p parameters (Bates and Watts, 1988, section 6.1).
func profileBound(least float64, n, p int, confidence float64) float64 {
	t := studentQuantile(1-(1-confidence)/2, float64(n-p))
	return least * (1 + t*t/float64(n-p))
}

// crossing is where, between inside and outside, a sum of squares crosses its
// bound.
func crossing(sum func(float64) float64, bound, inside, outside float64) float64 {
	for range 60 {
		mid := inside + (outside-inside)/2
		if mid == inside || mid == outside || math.Abs(outside-inside) <= 1e-6*math.Abs(mid) {
			break
		}
		if sum(mid) <= bound {
			inside = mid
		} else {
			outside = mid
		}
	}
	return inside
}
