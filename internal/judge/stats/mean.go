package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Mean returns the mean of independent figures with Student's interval, which is without bounds for a
// single one.
func Mean(figures []float64, confidence float64) Estimate {
	mean, sd := stat.MeanStdDev(figures, nil)
	n := float64(len(figures))
	if n < 2 {
		return Estimate{mean, math.Inf(-1), math.Inf(1)}
	}
	half := studentQuantile(1-(1-confidence)/2, n-1) * sd / math.Sqrt(n)
	return Estimate{mean, mean - half, mean + half}
}

// AnyTime returns the mean of independent figures with an interval that may be looked at after each added
// figure: with the given confidence it holds the mean at all looks. It is the normal mixture of the t
// statistic with the scale of the effect's prior at one standard deviation (Wang and Ramdas, 2023), and
// without bounds for the first few figures.
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
