package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// LawLevels is the least number of different levels of a law along an axis: with fewer any curve goes
// through them, and says nothing about levels between and beyond.
const LawLevels = 6

// Estimate is a figure with its interval, whose ends are infinite where the measurements do not bound it.
type Estimate struct{ Value, Lo, Hi float64 }

// levelsOf returns the different levels of the measurements of a law. They must be pairs of finite
// numbers, at LawLevels different levels.
func levelsOf(x, y []float64) ([]float64, error) {
	if len(x) != len(y) {
		return nil, errors.New("every measurement needs its level")
	}
	for i := range x {
		if math.IsNaN(x[i]+y[i]) || math.IsInf(x[i], 0) || math.IsInf(y[i], 0) {
			return nil, errors.New("a measurement is not a finite number")
		}
	}
	levels := slices.Compact(slices.Sorted(slices.Values(x)))
	if len(levels) < LawLevels {
		return nil, fmt.Errorf("%s, and a fit needs %d", manyLevels(len(levels)), LawLevels)
	}
	return levels, nil
}

func manyLevels(n int) string {
	if n == 1 {
		return "there is 1 level"
	}
	return fmt.Sprintf("there are %d levels", n)
}

// leastSquares finds the coefficients of columns whose sum comes closest to y, by QR, and the residuals.
// It is false where the columns do not determine them.
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
