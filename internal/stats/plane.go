package stats

import (
	"errors"
	"math"
)

// FitPlane fits y = a + b1 x1 + b2 x2 by least squares and gives b1 and b2 with
// Student's intervals: what y grows by along each of two things that change at
// once, the other held. It refuses fewer than LawLevels different values of x1,
// and things that go together so closely that they cannot be told apart.
func FitPlane(x1, x2, y []float64, confidence float64) (b1, b2 Estimate, err error) {
	a, err := basisOf(x1, y, math.Inf(-1))
	if err != nil {
		return b1, b2, err
	}
	if len(x2) != a.N {
		return b1, b2, errors.New("every measurement needs both of its places")
	}
	one := make([]float64, a.N)
	for i := range one {
		one[i] = 1
	}
	coefs, left, ok := leastSquares([][]float64{one, x1, x2}, y)
	if !ok {
		return b1, b2, errors.New("the two change together, and cannot be told apart")
	}
	df := float64(a.N - 3)
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
		return b1, b2, errors.New("the two change together, and cannot be told apart")
	}
	return b1, b2, nil
}
