package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Line is the linear law y = a + b x with Student's intervals (least squares), for a quantity to which
// each object adds its part, such as memory.
type Line struct {
	Intercept, Slope Estimate
	SD               float64 // of the measurements about the line
	// Bend is the largest distance of the line from a curve of second degree, as a share of the line's
	// range over the measured levels, and BendP the p-value of no bend.
	Bend, BendP float64
	// Wrong says that a line is the wrong law because the measurements bend far enough to matter, or "".
	Wrong string
}

// A bend makes a line the wrong law if it is beyond doubt, because every law of a run is checked in this way,
// and large enough to matter, because a clean measurement shows any bend.
const (
	bendAlpha   = 0.01
	bendMatters = 0.05 // of what the line rises
	bendOfMean  = 0.01 // of the figures themselves, where the line is flat
)

// FitLine fits a line to measurements y at x. Values of x may repeat. It refuses fewer than LawLevels
// different ones.
func FitLine(x, y []float64, confidence float64) (Line, error) {
	levels, err := levelsOf(x, y)
	if err != nil {
		return Line{}, err
	}
	n, lowest, highest := float64(len(x)), levels[0], levels[len(levels)-1]
	meanX, meanY := stat.Mean(x, nil), stat.Mean(y, nil)
	centred := make([]float64, len(x))
	for i := range x {
		centred[i] = x[i] - meanX
	}
	ones := slices.Repeat([]float64{1}, len(x))
	coefs, left, ok := leastSquares([][]float64{ones, centred}, y)
	if !ok {
		return Line{}, fmt.Errorf("levels from %.10g to %.10g are too close for a line", lowest, highest)
	}
	sxx := floats.Dot(centred, centred)
	l := Line{SD: math.Sqrt(floats.Dot(left, left) / (n - 2))}
	t := studentQuantile(1-(1-confidence)/2, n-2)
	around := func(value, times float64) Estimate { // its variance is a multiple of that of a measurement
		half := t * l.SD * math.Sqrt(times)
		return Estimate{value, value - half, value + half}
	}
	l.Slope = around(coefs[1], 1/sxx)
	l.Intercept = around(coefs[0]-coefs[1]*meanX, 1/n+meanX*meanX/sxx)
	l.bend(ones, centred, y, left, meanY, highest-lowest)
	return l, nil
}

// bend tests whether a curve of second degree fits better: the t-test of its last coefficient, which is
// exact where the errors are normal.
func (l *Line) bend(ones, centred, y, left []float64, meanY, span float64) {
	l.BendP = 1
	if floats.Dot(left, left) <= 1e-24*floats.Dot(y, y) {
		return // only rounding differs from a perfect line
	}
	square := floats.MulTo(make([]float64, len(y)), centred, centred)
	coefs, rest, ok := leastSquares([][]float64{ones, centred, square}, y)
	df := float64(len(y) - 3)
	if !ok || df < 1 {
		return
	}
	_, alone, ok := leastSquares([][]float64{ones, centred}, square) // the part of the square that a line misses
	if !ok {
		return
	}
	far := 0.0
	for _, v := range alone {
		far = max(far, math.Abs(coefs[2]*v))
	}
	rise := math.Abs(l.Slope.Value * span)
	if rise > 0 {
		l.Bend = far / rise
	} else if far > 0 {
		l.Bend = math.Inf(1)
	}
	gained := floats.Dot(left, left) - floats.Dot(rest, rest)
	if gained <= 0 {
		return
	}
	l.BendP = 2 * studentCDF(-math.Sqrt(gained/(floats.Dot(rest, rest)/df)), df)
	if l.BendP < bendAlpha && l.Bend > bendMatters && far > bendOfMean*math.Abs(meanY) {
		way := "more and more slowly"
		if (coefs[2] > 0) == (l.Slope.Value > 0) {
			way = "faster and faster"
		}
		verb := "rises"
		if l.Slope.Value < 0 {
			verb = "falls"
		}
		l.Wrong = fmt.Sprintf("a line does not fit: it %s %s, and the line is off by up to %.0f%% of the range", verb, way, 100*min(l.Bend, 9.99))
	}
}
