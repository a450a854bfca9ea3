package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// USL is the Universal Scalability Law of a throughput X along an axis of
// levels N (Gunther, Guerrilla Capacity Planning, 2007, chapter 4):
//
//	X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1))
//
// Lambda is the throughput of level 1; sigma, from 0 to 1, the part of the
// work that must wait for its turn, which keeps throughput below
// lambda/sigma; kappa the cost of keeping all in step with all, which makes
// throughput fall past a peak.
type USL struct {
	Basis
	Lambda, Sigma, Kappa Estimate
	// Peak is where throughput is highest, nil where the measurements do not
	// show that there is such a level: NoPeak then says why.
	Peak   *Peak
	NoPeak string
	// RMS and Worst are how far the measurements lie from the law, as a share
	// of it: on average (root mean square), and the farthest.
	RMS, Worst float64
	Warnings   []string

	fit   uslFit
	bound float64 // of the sum of squares, that of the intervals
}

// Peak is the highest throughput along an axis.
type Peak struct{ Level, Throughput Estimate }

// FitUSL fits the law to throughputs x at levels n. Levels may repeat. It
// refuses fewer than LawLevels different levels, levels below 1, and
// throughputs that are not positive.
//
// The law is linear in another form: the time N/X is p + q N + r N (N-1) with
// p, q, r >= 0, where lambda = 1/(p+q), sigma = q/(p+q) and kappa = r/(p+q).
// That sigma lies between 0 and 1, and kappa is not negative, is then said by
// three signs, and each Gauss-Newton step is a least-squares problem that has
// one solution, so that the fit needs no starting values and cannot run away.
//
// Intervals are those of the profile: the values for which the best fit is
// not significantly worse than the best of all. A bootstrap of residuals was
// not taken: six levels leave three degrees of freedom, and what three free
// residuals can be drawn into is too narrow; the profile uses Student's
// distribution, keeps to the signs, and needs no seed.
func FitUSL(n, x []float64, noise Noise, confidence float64) (USL, error) {
	a, err := basisOf(n, x, 1)
	if err != nil {
		return USL{}, err
	}
	for _, v := range x {
		if v <= 0 {
			return USL{}, errors.New("a throughput is not positive")
		}
	}
	l := USL{Basis: a, fit: newUSLFit(n, x, noise)}
	best, least := l.fit.best(l.fit.columns(), nil, 0)
	if math.IsInf(least, 1) {
		return USL{}, errors.New("the curve does not fit the measurements")
	}
	p, q, r := best[0], best[1], best[2]
	l.Lambda.Value, l.Sigma.Value, l.Kappa.Value = 1/(p+q), q/(p+q), r/(p+q)
	l.bound = profileBound(least, a.N, 3, confidence)
	l.intervals()
	l.residuals()
	l.findPeak(math.Sqrt(p / r))
	if l.RMS > 0.1 {
		l.Warnings = append(l.Warnings, fmt.Sprintf("the fit is off by %.0f %% on average and by up to %.0f %%", 100*l.RMS, 100*l.Worst))
	}
	return l, nil
}

// At is the law's throughput at a level, with its interval: that of the curve,
// and not of a further measurement. Past Reach it is a *TooFarError.
func (l USL) At(level float64) (Estimate, error) {
	if err := l.reaches(level); err != nil {
		return Estimate{}, err
	}
	e := Estimate{Value: l.curve(level)}
	// The time level/X is linear in p, q and r, so that a fit through a given
	// throughput is one with an equation beside it.
	through := []float64{1, level, level * (level - 1)}
	sum := func(logX float64) float64 {
		_, s := l.fit.best(l.fit.columns(), through, level/math.Exp(logX))
		return s
	}
	lo, hi := widen(sum, l.bound, math.Log(e.Value), 0.01)
	e.Lo, e.Hi = math.Exp(lo), math.Exp(hi)
	return e, nil
}

func (l USL) curve(n float64) float64 {
	return l.Lambda.Value * n / (1 + l.Sigma.Value*(n-1) + l.Kappa.Value*n*(n-1))
}

// widen finds the interval around a value for which a sum of squares does not
// exceed its bound; an end that is not found is infinite.
func widen(sum func(float64) float64, bound, value, step float64) (lo, hi float64) {
	return outward(sum, bound, value, -step, 1e3), outward(sum, bound, value, step, 1e3)
}

// outward is where a sum of squares exceeds its bound on the way from a value in
// the direction of a step, which is doubled until it is as long as most: then it
// is infinite.
func outward(sum func(float64) float64, bound, value, step, most float64) float64 {
	inside := value
	for d := step; math.Abs(d) < most; d *= 2 {
		next := value + d
		if sum(next) > bound {
			return crossing(sum, bound, inside, next)
		}
		inside = next
	}
	return math.Copysign(math.Inf(1), step)
}

// intervals finds those of the parameters.
func (l *USL) intervals() {
	f := l.fit
	one, linear, square := f.column(0), f.column(1), f.column(2)

	// With sigma given the time is s (1-sigma + sigma N) + r N (N-1).
	sigma := func(v float64) float64 {
		_, s := f.best([][]float64{mix(one, 1-v, linear, v), square}, nil, 0)
		return s
	}
	l.Sigma.Lo, l.Sigma.Hi = toEnd(sigma, l.bound, l.Sigma.Value, 0), toEnd(sigma, l.bound, l.Sigma.Value, 1)

	// With kappa given it is p (1 + kappa N (N-1)) + q (N + kappa N (N-1)).
	kappa := func(v float64) float64 {
		_, s := f.best([][]float64{mix(one, 1, square, v), mix(linear, 1, square, v)}, nil, 0)
		return s
	}
	l.Kappa.Lo = toEnd(kappa, l.bound, l.Kappa.Value, 0)
	step := 0.01 / (l.Highest * l.Highest)
	l.Kappa.Hi = outward(kappa, l.bound, l.Kappa.Value, max(step, 0.01*l.Kappa.Value), 1e9*max(step, l.Kappa.Value))

	// Lambda is the throughput of level 1.
	if first, err := l.At(1); err == nil {
		l.Lambda = first
	}
}

// toEnd is where a sum of squares exceeds its bound on the way from a value
// to the end of its range, or that end.
func toEnd(sum func(float64) float64, bound, value, end float64) float64 {
	if value == end || sum(end) <= bound {
		return end
	}
	return crossing(sum, bound, value, end)
}

// findPeak says where throughput is highest, if that is shown.
func (l *USL) findPeak(level float64) {
	switch {
	case l.Kappa.Lo == 0:
		l.NoPeak = "no peak is shown: kappa may be 0"
		return
	case level <= l.Lowest:
		l.NoPeak = "throughput falls from the lowest level on: the peak is at or below it"
		return
	case level > l.Highest:
		l.NoPeak = fmt.Sprintf("the peak would be above the highest level measured, %.10g", l.Highest)
		return
	}
	// With the peak at P given, r is p/P^2.
	f := l.fit
	sum := func(at float64) float64 {
		_, s := f.best([][]float64{mix(f.column(0), 1, f.column(2), 1/(at*at)), f.column(1)}, nil, 0)
		return s
	}
	k := &Peak{Level: Estimate{Value: level}}
	logLo, logHi := widen(func(v float64) float64 { return sum(math.Exp(v)) }, l.bound, math.Log(level), 0.01)
	k.Level.Lo, k.Level.Hi = math.Exp(logLo), math.Exp(logHi)

	// The highest throughput of any law that fits is the highest upper end of
	// the curve's band, and the lowest is at least its highest lower end.
	const points = 4
	k.Throughput = Estimate{Value: l.curve(level)}
	if !(k.Level.Lo >= l.Lowest && k.Level.Hi <= l.Highest) {
		l.NoPeak = fmt.Sprintf("no peak is shown: it may lie from %.4g to %.4g, and the levels from %.10g to %.10g", k.Level.Lo, k.Level.Hi, l.Lowest, l.Highest)
		return
	}
	lo, hi := max(k.Level.Lo, 1), k.Level.Hi
	for i := range points + 1 {
		if e, err := l.At(lo + (hi-lo)*float64(i)/points); err == nil {
			k.Throughput.Lo, k.Throughput.Hi = max(k.Throughput.Lo, e.Lo), max(k.Throughput.Hi, e.Hi)
		}
	}
	l.Peak = k
	l.oneLevel()
}

// oneLevel warns where the peak stands on a single level.
func (l *USL) oneLevel() {
	f := l.fit
	levels := slices.Compact(slices.Sorted(slices.Values(f.n)))
	if len(levels) <= LawLevels {
		return // the law would not be fitted to the others
	}
	for _, level := range levels {
		var n, x []float64
		for i, v := range f.n {
			if v != level {
				n, x = append(n, v), append(x, f.x[i])
			}
		}
		rest := newUSLFit(n, x, f.noise)
		_, least := rest.best(rest.columns(), nil, 0)
		_, without := rest.best(rest.columns()[:2], nil, 0)
		if without <= profileBound(least, len(n), 3, 0.95) {
			l.Warnings = append(l.Warnings, fmt.Sprintf("the peak depends on level %.10g alone", level))
		}
	}
}

func (l *USL) residuals() {
	for i, n := range l.fit.n {
		r := l.fit.x[i]/l.curve(n) - 1
		l.RMS += r * r
		l.Worst = max(l.Worst, math.Abs(r))
	}
	l.RMS = math.Sqrt(l.RMS / float64(l.N))
}

// uslFit holds the measurements of a fit.
type uslFit struct {
	n, x  []float64
	noise Noise
}

func newUSLFit(n, x []float64, noise Noise) uslFit {
	return uslFit{slices.Clone(n), slices.Clone(x), noise}
}

// positiveFit fits figures themselves by columns whose coefficients are not
// negative, with errors that are relative.
func positiveFit(y []float64) uslFit {
	f := uslFit{n: make([]float64, len(y)), x: make([]float64, len(y))}
	for i, v := range y {
		f.n[i], f.x[i] = 1, 1/v
	}
	return f
}

// column is what p, q or r counts for in the time N/X.
func (f uslFit) column(j int) []float64 {
	c := make([]float64, len(f.n))
	for i, n := range f.n {
		c[i] = [...]float64{1, n, n * (n - 1)}[j]
	}
	return c
}

func (f uslFit) columns() [][]float64 {
	return [][]float64{f.column(0), f.column(1), f.column(2)}
}

// mix is a x + b y.
func mix(x []float64, a float64, y []float64, b float64) []float64 {
	m := floats.ScaleTo(make([]float64, len(x)), a, x)
	floats.AddScaled(m, b, y)
	return m
}

// best finds the coefficients, none of them negative, with which the columns
// make the times of the law that fits best, and its sum of squares. Through,
// if not nil, is an equation that they must fulfil: their sum weighted by it
// is value.
func (f uslFit) best(columns [][]float64, through []float64, value float64) ([]float64, float64) {
	coefs := make([]float64, len(columns))
	sum := math.Inf(1)
	time := floats.DivTo(make([]float64, len(f.n)), f.n, f.x)
	for range 100 {
		// The step's problem is linear: the residual is expanded around the
		// times of the last step.
		weight, goal := make([]float64, len(time)), make([]float64, len(time))
		for i, t := range time {
			if f.noise == Relative {
				weight[i] = 1 / t
				goal[i] = t * (1 + math.Log(f.n[i]/f.x[i]/t))
			} else {
				weight[i] = f.n[i] / (t * t)
				goal[i] = t * (2 - f.x[i]*t/f.n[i])
			}
		}
		next := notNegative(columns, goal, weight, through, value)
		if next == nil {
			return coefs, sum
		}
		// A step that leads too far is halved: between two solutions all are.
		first := math.IsInf(sum, 1)
		for range 30 {
			if s := f.sum(columns, next); s <= sum || first && !math.IsInf(s, 1) {
				break
			}
			for j := range next {
				next[j] = (next[j] + coefs[j]) / 2
			}
		}
		s := f.sum(columns, next)
		if !(s < sum) && !first {
			return coefs, sum
		}
		done := !first && sum-s <= 1e-13*sum
		coefs, sum = next, s
		if done || math.IsInf(sum, 1) {
			return coefs, sum
		}
		time = f.times(columns, coefs)
	}
	return coefs, sum
}

func (f uslFit) times(columns [][]float64, coefs []float64) []float64 {
	time := make([]float64, len(f.n))
	for j, c := range coefs {
		floats.AddScaled(time, c, columns[j])
	}
	return time
}

// sum is the sum of squares, +Inf where a time is not positive.
func (f uslFit) sum(columns [][]float64, coefs []float64) float64 {
	s := 0.0
	for i, t := range f.times(columns, coefs) {
		if !(t > 0) {
			return math.Inf(1)
		}
		r := math.Log(f.x[i] * t / f.n[i])
		if f.noise == Absolute {
			r = f.x[i] - f.n[i]/t
		}
		s += r * r
	}
	return s
}

// notNegative solves a weighted least-squares problem whose coefficients may
// not be negative and may have to fulfil an equation, by trying which of them
// are 0: there are at most three. It is nil where there is no solution.
func notNegative(columns [][]float64, goal, weight, through []float64, value float64) []float64 {
	k := len(columns)
	weighted := make([][]float64, k)
	for j, c := range columns {
		weighted[j] = times(weight, c)
	}
	y := times(weight, goal)
	var best []float64
	least := math.Inf(1)
	for in := 1<<k - 1; in > 0; in-- { // all of them first
		coefs, sum, ok := solveSome(weighted, y, in, through, value)
		if !ok || slices.Min(coefs) < 0 || sum >= least {
			continue
		}
		best, least = coefs, sum
		if in == 1<<k-1 {
			break // the problem is convex: no other can be better
		}
	}
	return best
}

// solveSome solves the problem with only some of the columns in it.
func solveSome(columns [][]float64, y []float64, in int, through []float64, value float64) (coefs []float64, sum float64, ok bool) {
	var free []int
	base := -1 // the coefficient that follows from the equation
	for j := range columns {
		if in>>j&1 == 0 {
			continue
		}
		if through != nil && base < 0 && through[j] != 0 {
			base = j
			continue
		}
		free = append(free, j)
	}
	if through != nil && base < 0 {
		return nil, 0, false
	}
	some := make([][]float64, len(free))
	for i, j := range free {
		if some[i] = columns[j]; through != nil {
			some[i] = mix(columns[j], 1, columns[base], -through[j]/through[base])
		}
	}
	coefs = make([]float64, len(columns))
	if through != nil {
		y = mix(y, 1, columns[base], -value/through[base])
		coefs[base] = value / through[base]
	}
	found, left, ok := leastSquares(some, y)
	if !ok {
		return nil, 0, false
	}
	for i, j := range free {
		if coefs[j] = found[i]; through != nil {
			coefs[base] -= found[i] * through[j] / through[base]
		}
	}
	return coefs, floats.Dot(left, left), true
}
