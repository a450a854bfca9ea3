package stats

import (
	"fmt"
	"math"
)

// Line is the linear law y = a + b x, with Student's intervals (ordinary least
// squares): of a quantity that each object adds its part to, such as memory.
type Line struct {
	Basis
	Intercept, Slope Estimate
	// SD is the standard deviation of what the measurements lie beside the line.
	SD float64
	// Bend is how far the line misses a curve of second degree, as a share of
	// what the line rises or falls over the measured levels, and BendP the
	// p-value of there being none.
	Bend, BendP float64
	// Wrong says that a line is the wrong law: the measurements bend, and so
	// far that it matters. "" says that nothing speaks against a line.
	Wrong    string
	Warnings []string

	t     float64 // Student's quantile of the intervals
	bendT float64 // the bend in its own standard errors
	meanX float64
	sxx   float64
}

// What a bend must be before a line is called the wrong law: shown beyond
// doubt, since every law of a run is checked in this way, and large enough to
// matter, since a clean measurement shows any bend.
const (
	bendAlpha   = 0.01
	bendMatters = 0.05 // of what the line rises
	bendOfMean  = 0.01 // of the figures themselves, where the line is flat
)

// FitLine fits a line to measurements y at x. Values of x may repeat. It
// refuses fewer than LawLevels different ones.
func FitLine(x, y []float64, confidence float64) (Line, error) {
	a, err := basisOf(x, y, math.Inf(-1))
	if err != nil {
		return Line{}, err
	}
	l := Line{Basis: a}
	n := float64(a.N)
	meanY := 0.0
	for i := range x {
		l.meanX += x[i] / n
		meanY += y[i] / n
	}
	centred := make([]float64, a.N)
	ones := make([]float64, a.N)
	for i := range x {
		centred[i], ones[i] = x[i]-l.meanX, 1
	}
	coefs, left, ok := leastSquares([][]float64{ones, centred}, y)
	if !ok {
		return Line{}, fmt.Errorf("no line can be told from levels from %.10g to %.10g", a.Lowest, a.Highest)
	}
	l.sxx = sumSquares(centred)
	l.SD = math.Sqrt(sumSquares(left) / (n - 2))
	l.t = studentQuantile(1-(1-confidence)/2, n-2)
	l.Slope = l.around(coefs[1], 1/l.sxx)
	l.Intercept = l.around(coefs[0]-coefs[1]*l.meanX, 1/n+l.meanX*l.meanX/l.sxx)
	l.bend(centred, ones, y, left, meanY)
	return l, nil
}

// around is an estimate whose variance is a multiple of that of a measurement.
func (l Line) around(value, times float64) Estimate {
	half := l.t * l.SD * math.Sqrt(times)
	return Estimate{value, value - half, value + half}
}

// At is the line at a level, with its interval: that of the line, and not of a
// further measurement. Past Reach it is a *TooFarError.
func (l Line) At(level float64) (Estimate, error) {
	if err := l.reaches(level); err != nil {
		return Estimate{}, err
	}
	d := level - l.meanX
	return l.around(l.Intercept.Value+l.Slope.Value*level, 1/float64(l.N)+d*d/l.sxx), nil
}

// bend asks whether a curve of second degree fits better: the t-test of its
// last coefficient, which is exact where the errors are normal.
func (l *Line) bend(centred, ones, y, left []float64, meanY float64) {
	l.BendP = 1
	// What rounding leaves of a perfect line is no bend.
	if sumSquares(left) <= 1e-24*sumSquares(y) {
		return
	}
	square := make([]float64, len(centred))
	for i, v := range centred {
		square[i] = v * v
	}
	coefs, rest, ok := leastSquares([][]float64{ones, centred, square}, y)
	df := float64(l.N - 3)
	if !ok || df < 1 {
		return
	}
	// The square less what a line tells of it, which is what the line misses.
	_, alone, ok := leastSquares([][]float64{ones, centred}, square)
	if !ok {
		return
	}
	far := 0.0
	for _, v := range alone {
		far = max(far, math.Abs(coefs[2]*v))
	}
	rise := math.Abs(l.Slope.Value * (l.Highest - l.Lowest))
	if rise > 0 {
		l.Bend = far / rise
	} else if far > 0 {
		l.Bend = math.Inf(1)
	}
	gained := sumSquares(left) - sumSquares(rest)
	if gained <= 0 {
		return
	}
	l.bendT = math.Sqrt(gained / (sumSquares(rest) / df))
	l.BendP = 2 * studentCDF(-l.bendT, df)
	if l.BendP < bendAlpha && l.Bend > bendMatters && far > bendOfMean*math.Abs(meanY) {
		way := "ever slower"
		if (coefs[2] > 0) == (l.Slope.Value > 0) {
			way = "ever faster"
		}
		verb := "rises"
		if l.Slope.Value < 0 {
			verb = "falls"
		}
		l.Wrong = fmt.Sprintf("a line is the wrong law: it %s %s, and a line misses it by up to %.0f %% of the whole way", verb, way, 100*min(l.Bend, 9.99))
	}
}
