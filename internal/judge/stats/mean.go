package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Mean is the mean of independent figures with Student's interval, which is
// without bounds for a single one.
func Mean(figures []float64, confidence float64) Estimate {
	mean, sd := stat.MeanStdDev(figures, nil)
	n := float64(len(figures))
	if n < 2 {
		return Estimate{mean, math.Inf(-1), math.Inf(1)}
	}
	half := studentQuantile(1-(1-confidence)/2, n-1) * sd / math.Sqrt(n)
	return Estimate{mean, mean - half, mean + half}
}
