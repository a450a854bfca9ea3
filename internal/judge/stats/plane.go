package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// FitPlane fits y = a + b1 x1 + b2 x2 by least squares and returns b1 and b2 with Student's intervals:
// the growth of y along each of two things that change at once. It refuses fewer than LawLevels
// measurements, and things that change together so closely that they cannot be separated.
func FitPlane(x1, x2, y []float64, confidence float64) (b1, b2 Estimate, err error) {
	n := len(y)
	if len(x1) != n || len(x2) != n {
		return b1, b2, errors.New("every measurement needs both of its places")
	}
	if n < LawLevels {
		return b1, b2, fmt.Errorf("%d measurements, %d are needed", n, LawLevels)
	}
	for _, v := range slices.Concat(x1, x2, y) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return b1, b2, errors.New("a measurement is not a finite number")
		}
	}
	list, ok := estimates([][]float64{slices.Repeat([]float64{1}, n), x1, x2}, y, confidence)
	if !ok {
		return b1, b2, errors.New("the two change together and cannot be separated")
	}
	return list[1], list[2], nil
}

// estimates returns the coefficients of columns whose sum comes closest to y, with Student's intervals.
// It is false where the columns do not determine them.
func estimates(columns [][]float64, y []float64, confidence float64) ([]Estimate, bool) {
	coefs, left, ok := leastSquares(columns, y)
	df := float64(len(y) - len(columns))
	t := studentQuantile(1-(1-confidence)/2, df)
	var list []Estimate
	for j, value := range coefs {
		// The variance of a coefficient is that of the errors over the part of its column that the others
		// lack (Frisch, Waugh and Lovell).
		_, alone, separate := leastSquares(slices.Delete(slices.Clone(columns), j, j+1), columns[j])
		if !separate || floats.Dot(alone, alone) <= 1e-12*floats.Dot(columns[j], columns[j]) {
			return nil, false
		}
		half := t * math.Sqrt(floats.Dot(left, left)/df/floats.Dot(alone, alone))
		list = append(list, Estimate{value, value - half, value + half})
	}
	return list, ok
}

const rayPoints = 3 // measurements that FitRay needs

// FitRay fits y = b x by least squares and returns b with Student's interval: what each of x adds to y
// where nothing adds nothing. It refuses fewer than three measurements.
func FitRay(x, y []float64, confidence float64) (Estimate, error) {
	if len(x) != len(y) {
		return Estimate{}, errors.New("every measurement needs its place")
	}
	if len(x) < rayPoints {
		return Estimate{}, fmt.Errorf("%d measurements, %d are needed", len(x), rayPoints)
	}
	list, ok := estimates([][]float64{x}, y, confidence)
	if !ok {
		return Estimate{}, errors.New("the measurements give no slope")
	}
	return list[0], nil
}
