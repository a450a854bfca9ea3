package stats

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Line is the linear law y = a + b x, with Student's intervals (least squares): of a quantity that each object adds its part to, such as memory.
type Line struct {
	Basis
	Intercept, Slope Estimate
	// SD is the standard deviation of what the measurements lie beside the line:
	// where errors are relative as a share of it.
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
	// What the intervals need: the weighted mean of the levels, the sum of the
	// weights, and the weighted sum of squares about that mean.
	meanX, mean, sxx float64
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
// refuses fewer than LawLevels different ones. Where errors are relative a
// measurement counts the less the higher the line is there; figures that are
// not positive have no relative errors.
func FitLine(x, y []float64, noise Noise, confidence float64) (Line, error) {
	a, err := basisOf(x, y, math.Inf(-1))
	if err != nil {
		return Line{}, err
	}
	l := Line{Basis: a}
	weight := slices.Repeat([]float64{1}, a.N)
	if noise == Relative && slices.Min(y) > 0 {
		for i, v := range positiveLine(x, y) {
			weight[i] = 1 / v
		}
	}
	all, meanY := floats.Dot(weight, weight), 0.0
	for i, w := range weight {
		l.meanX += w * w * x[i] / all
		meanY += w * w * y[i] / all
	}
	centred := make([]float64, a.N)
	for i := range x {
		centred[i] = weight[i] * (x[i] - l.meanX)
	}
	weighted := times(y, weight)
	coefs, left, ok := leastSquares([][]float64{weight, centred}, weighted)
	if !ok {
		return Line{}, fmt.Errorf("levels from %.10g to %.10g are too close for a line", a.Lowest, a.Highest)
	}
	l.mean, l.sxx = all, floats.Dot(centred, centred)
	l.SD = math.Sqrt(floats.Dot(left, left) / float64(a.N-2))
	l.t = studentQuantile(1-(1-confidence)/2, float64(a.N-2))
	l.Slope = l.around(coefs[1], 1/l.sxx)
	l.Intercept = l.around(coefs[0]-coefs[1]*l.meanX, 1/l.mean+l.meanX*l.meanX/l.sxx)
	l.bend(x, weight, weighted, left, meanY)
	return l, nil
}

// positiveLine is the height, at each measurement, of the line whose
// logarithms come closest to those of positive figures. It is made of its
// heights at both ends, so that it stays above 0; where it cannot, it is the
// figures themselves.
func positiveLine(x, y []float64) []float64 {
	low, high := make([]float64, len(x)), make([]float64, len(x))
	first, last := slices.Min(x), slices.Max(x)
	for i, v := range x {
		high[i] = (v - first) / (last - first)
		low[i] = 1 - high[i]
	}
	if ends, sum := positiveFit(y).best([][]float64{low, high}, nil, 0); !math.IsInf(sum, 1) {
		return mix(low, ends[0], high, ends[1])
	}
	return slices.Clone(y)
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
	return l.around(l.Intercept.Value+l.Slope.Value*level, 1/l.mean+d*d/l.sxx), nil
}

// bend asks whether a curve of second degree fits better: the t-test of its
// last coefficient, which is exact where the errors are normal.
func (l *Line) bend(x, weight, weighted, left []float64, meanY float64) {
	l.BendP = 1
	// What rounding leaves of a perfect line is no bend.
	if floats.Dot(left, left) <= 1e-24*floats.Dot(weighted, weighted) {
		return
	}
	centred, square := make([]float64, len(x)), make([]float64, len(x))
	for i, v := range x {
		centred[i] = weight[i] * (v - l.meanX)
		square[i] = centred[i] * (v - l.meanX)
	}
	coefs, rest, ok := leastSquares([][]float64{weight, centred, square}, weighted)
	df := float64(l.N - 3)
	if !ok || df < 1 {
		return
	}
	// The square less what a line tells of it, which is what the line misses.
	_, alone, ok := leastSquares([][]float64{weight, centred}, square)
	if !ok {
		return
	}
	for i := range alone {
		alone[i] /= weight[i]
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
	gained := floats.Dot(left, left) - floats.Dot(rest, rest)
	if gained <= 0 {
		return
	}
	l.bendT = math.Sqrt(gained / (floats.Dot(rest, rest) / df))
	l.BendP = 2 * studentCDF(-l.bendT, df)
	if l.BendP < bendAlpha && l.Bend > bendMatters && far > bendOfMean*math.Abs(meanY) {
		way := "more and more slowly"
		if (coefs[2] > 0) == (l.Slope.Value > 0) {
			way = "faster and faster"
		}
		verb := "rises"
		if l.Slope.Value < 0 {
			verb = "falls"
		}
		l.Wrong = fmt.Sprintf("a line does not fit: it %s %s, and the line is off by up to %.0f %% of the range", verb, way, 100*min(l.Bend, 9.99))
	}
}
