package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// FitPlane fits y = a + b1 x1 + b2 x2 by least squares and gives b1 and b2 with
// Student's intervals: what y grows by along each of two things that change at
// once, the other held. It refuses fewer than LawLevels measurements, and things
// that go together so closely that they cannot be told apart.
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
	one := slices.Repeat([]float64{1}, n)
	coefs, left, ok := leastSquares([][]float64{one, x1, x2}, y)
	if !ok {
		return b1, b2, errors.New("the two change together and cannot be separated")
	}
	df := float64(n - 3)
	variance := sumSquares(left) / df
	t := studentQuantile(1-(1-confidence)/2, df)
	// The variance of a coefficient is that of the errors over what its column
	// has beside the others' (Frisch, Waugh and Lovell).
	estimate := func(value float64, own, other []float64) (Estimate, bool) {
		_, alone, ok := leastSquares([][]float64{one, other}, own)
		if !ok || sumSquares(alone) <= 1e-12*sumSquares(own) {
			return Estimate{}, false
		}
		half := t * math.Sqrt(variance/sumSquares(alone))
		return Estimate{value, value - half, value + half}, true
	}
	b1, ok1 := estimate(coefs[1], x1, x2)
	b2, ok2 := estimate(coefs[2], x2, x1)
	if !ok1 || !ok2 {
		return b1, b2, errors.New("the two change together and cannot be separated")
	}
	return b1, b2, nil
}

// rayPoints is how many measurements FitRay needs.
const rayPoints = 3

// FitRay fits y = b x by least squares and gives b with Student's interval: what
// each of x adds to y where nothing adds nothing. It refuses fewer than three
// measurements.
func FitRay(x, y []float64, confidence float64) (Estimate, error) {
	if len(x) != len(y) {
		return Estimate{}, errors.New("every measurement needs its place")
	}
	if len(x) < rayPoints {
		return Estimate{}, fmt.Errorf("%d measurements, %d are needed", len(x), rayPoints)
	}
	coefs, left, ok := leastSquares([][]float64{x}, y)
	if !ok {
		return Estimate{}, errors.New("the measurements give no slope")
	}
	df := float64(len(x) - 1)
	half := studentQuantile(1-(1-confidence)/2, df) * math.Sqrt(sumSquares(left)/df/sumSquares(x))
	return Estimate{coefs[0], coefs[0] - half, coefs[0] + half}, nil
}
