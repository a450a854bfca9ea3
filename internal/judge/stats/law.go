package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"
)

// LawLevels is the least number of different levels of a law: with fewer any curve goes through them.
const LawLevels = 6

// Estimate is a figure with its interval, whose ends are infinite where the measurements do not bound it.
type Estimate struct{ Value, Lo, Hi float64 }

// levelsOf returns the levels of a law's measurements: finite pairs, at LawLevels of them or more.
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

// leastSquares finds coefficients of columns by QR, and the residuals; false where they are undetermined.
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

// Line is the law y = a + b x with Student's intervals: each object adds its part, such as of memory.
type Line struct {
	Intercept, Slope Estimate
	SD               float64 // of the measurements about the line
	// Bend is the largest distance of the line from a curve of second degree, as a share of what the line
	// rises or falls over the levels; BendP is the p-value of no bend.
	Bend, BendP float64
	Wrong       string // why a line is the wrong law: the measurements bend far enough to matter; or ""
}

// A bend makes a line the wrong law if it is beyond doubt, because every law of a run is checked in this way,
// and large enough to matter, because a clean measurement shows any bend.
const (
	bendAlpha   = 0.01
	bendMatters = 0.05 // of what the line rises
	bendOfMean  = 0.01 // of the figures themselves, where the line is flat
)

// FitLine fits a line to measurements y at x, which may repeat. It refuses fewer than LawLevels levels.
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

// bend tests by the exact t-test of its last coefficient whether a curve of second degree fits better.
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

// FitPlane fits y = a + b1 x1 + b2 x2 by least squares and returns b1 and b2 with Student's intervals:
// what y grows by along each, the other held. It refuses fewer than LawLevels measurements, and things
// that change together so closely that they cannot be separated.
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

// estimates returns leastSquares' coefficients with Student's intervals; false where undetermined.
func estimates(columns [][]float64, y []float64, confidence float64) ([]Estimate, bool) {
	coefs, left, ok := leastSquares(columns, y)
	df := float64(len(y) - len(columns))
	t := studentQuantile(1-(1-confidence)/2, df)
	var list []Estimate
	for j, value := range coefs {
		// A coefficient's variance is the errors' over its column's own part (Frisch, Waugh and Lovell).
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

// FitRay fits y = b x by least squares and returns b with Student's interval: it assumes that y is 0 at 0.
// It refuses fewer than three measurements.
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
