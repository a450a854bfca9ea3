package stats

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Linearity says how a cost grows with the number of what it is spent on.
type Linearity string

// The verdicts on a cost y = c x^k, by the tolerance of the exponent k.
const (
	NearLinear   Linearity = "nearLinear"   // each costs about as much, however many there are
	SlowerLinear Linearity = "slowerLinear" // each costs the more, the more there are
	FasterLinear Linearity = "fasterLinear" // each costs the less, the more there are
	CannotTell   Linearity = "inconclusive"
)

// LinearTolerance is how far an exponent may lie from 1 for a cost to count as
// near linear: with 0.1 one of ten times as many costs at most 26 % more, or
// 21 % less. It is wide enough for what is published as near linear, 100
// machines started in 102 s and 1000 in 1065 s: an exponent of 1.02.
const LinearTolerance = 0.1

// Power is the law of a cost y = c x^k.
type Power struct {
	Basis
	// Exponent is k, nil where there are too few levels to tell it with an
	// interval: NoExponent then says so.
	Exponent   *Estimate
	NoExponent string
	// LowCost and HighCost are what one costs at the lowest and at the highest
	// level, and Ratio how many times as much the latter is.
	LowCost, HighCost, Ratio float64
	Verdict                  Linearity
	// RMS is how far the measurements lie from the law, as a share of it.
	RMS      float64
	Warnings []string

	c, k float64 // c as its logarithm
	t    float64
	// What the intervals of the curve need: the mean and the sum of squares of
	// the slopes of the logarithms by k, and the standard deviation.
	mean, sxx, sd float64
}

// Bounds of the exponents that are looked for, and how many times as high as
// the lowest level the highest must be for their ratio to say anything.
const (
	lowestPower, highestPower = 0.01, 8.0
	leastSpan                 = 2.0
)

// FitPower fits the law to costs y of going from so many to so many: from 0
// for what was made whole, from what was there for what was added to it. The
// parts of one way then count as measurements of their own, whose errors have
// nothing to do with one another, where the sum of them would carry each error
// on to all later levels:
//
//	y = c (to^k - from^k)
//
// Errors are in proportion. All from 0 it is the regression of the logarithms,
// and so is the interval. With two levels or more, but fewer than LawLevels,
// there is no exponent, and the verdict is by the ratio of the lowest and the
// highest level alone, if these lie a factor of two apart.
func FitPower(from, to, y []float64, confidence float64) (Power, error) {
	if len(from) != len(to) {
		return Power{}, errors.New("every way needs its two ends")
	}
	a, tooFew := basisOf(to, y, 0)
	if a.Levels < 2 {
		if tooFew == nil || a.N > 0 {
			tooFew = errors.New("one level does not show how a cost grows")
		}
		return Power{}, tooFew
	}
	for i := range y {
		if !(y[i] > 0) || !(from[i] >= 0 && from[i] < to[i]) {
			return Power{}, errors.New("a cost is not positive, or belongs to no object")
		}
	}
	p := Power{Basis: a}
	p.LowCost, p.HighCost = costAt(from, to, y, a.Lowest), costAt(from, to, y, a.Highest)
	p.Ratio = p.HighCost / p.LowCost

	if tooFew != nil {
		p.NoExponent = tooFew.Error()
		p.byRatio()
		return p, nil
	}
	sum := func(k float64) float64 { return sumSquares(powerResiduals(from, to, y, k)) }
	p.k = lowestOf(sum, lowestPower, highestPower)
	p.sd = math.Sqrt(sum(p.k) / float64(a.N-2))
	for i := range y {
		p.c += (math.Log(y[i]) - logWay(from[i], to[i], p.k)) / float64(a.N)
	}
	for _, r := range powerResiduals(from, to, y, p.k) {
		p.RMS += math.Expm1(r) * math.Expm1(r) / float64(a.N)
	}
	p.RMS = math.Sqrt(p.RMS)
	p.slopes(from, to)
	p.t = studentQuantile(1-(1-confidence)/2, float64(a.N-2))
	bound := profileBound(sum(p.k), a.N, 2, confidence)
	p.Exponent = &Estimate{p.k, math.Inf(-1), math.Inf(1)}
	// Where some ways begin at 0 and others do not, two exponents may fit and
	// none between them: the interval goes from the lowest to the highest.
	grid := powerGrid(lowestPower, highestPower)
	inside := func(k float64) bool { return sum(k) <= bound || k == p.k }
	grid = append(grid, p.k)
	slices.Sort(grid)
	if i := slices.IndexFunc(grid, inside); i > 0 {
		p.Exponent.Lo = crossing(sum, bound, grid[i], grid[i-1])
	}
	slices.Reverse(grid)
	if i := slices.IndexFunc(grid, inside); i > 0 {
		p.Exponent.Hi = crossing(sum, bound, grid[i], grid[i-1])
	}
	p.Verdict = linearity(p.Exponent.Lo, p.Exponent.Hi)
	return p, nil
}

// linearity judges an exponent by its interval.
func linearity(lo, hi float64) Linearity {
	switch {
	case lo >= 1-LinearTolerance && hi <= 1+LinearTolerance:
		return NearLinear
	case lo > 1+LinearTolerance:
		return SlowerLinear
	case hi < 1-LinearTolerance:
		return FasterLinear
	}
	return CannotTell
}

// At is the cost of so many, made whole from nothing, with the law's interval.
// Past Reach it is a *TooFarError; without an exponent there is no interval.
func (p Power) At(level float64) (Estimate, error) {
	if err := p.reaches(level); err != nil {
		return Estimate{}, err
	}
	if !(level > 0) {
		return Estimate{}, nil
	}
	y := p.c + p.k*math.Log(level)
	e := Estimate{math.Exp(y), 0, math.Inf(1)}
	if p.Exponent != nil {
		d := math.Log(level) - p.mean
		half := p.t * p.sd * math.Sqrt(1/float64(p.N)+d*d/p.sxx)
		e.Lo, e.Hi = math.Exp(y-half), math.Exp(y+half)
	}
	return e, nil
}

// slopes notes how the logarithms of the ways change with the exponent.
func (p *Power) slopes(from, to []float64) {
	const h = 1e-5
	s := make([]float64, len(to))
	for i := range to {
		s[i] = (logWay(from[i], to[i], p.k+h) - logWay(from[i], to[i], p.k-h)) / (2 * h)
	}
	p.mean = mean(s)
	for _, v := range s {
		p.sxx += (v - p.mean) * (v - p.mean)
	}
}

// logWay is the logarithm of to^k - from^k.
func logWay(from, to, k float64) float64 {
	if from == 0 {
		return k * math.Log(to)
	}
	return k*math.Log(to) + math.Log(-math.Expm1(k*math.Log(from/to)))
}

// powerResiduals are the logarithms of the costs less those of the law with an
// exponent and the factor that is best with it.
func powerResiduals(from, to, y []float64, k float64) []float64 {
	r := make([]float64, len(y))
	for i := range y {
		r[i] = math.Log(y[i]) - logWay(from[i], to[i], k)
	}
	floats.AddConst(-mean(r), r)
	return r
}

// byRatio judges by what one costs at the lowest and at the highest level: by
// the exponent that this alone would make.
func (p *Power) byRatio() {
	p.k = 1 + math.Log(p.Ratio)/math.Log(p.Highest/p.Lowest)
	p.c = math.Log(p.LowCost) - (p.k-1)*math.Log(p.Lowest)
	if p.Highest < leastSpan*p.Lowest {
		p.Verdict = CannotTell
		p.Warnings = append(p.Warnings, "the levels are too close to show how the cost grows")
		return
	}
	p.Verdict = linearity(p.k, p.k)
	if p.Levels == 2 {
		p.Warnings = append(p.Warnings, "only two levels: no interval")
	} else {
		p.Warnings = append(p.Warnings, fmt.Sprintf("from the lowest and the highest of %d levels only: no interval", p.Levels))
	}
}

// costAt is what one costs at a level, the geometric mean where it was
// measured several times.
func costAt(from, to, y []float64, level float64) float64 {
	var logs []float64
	for i := range to {
		if to[i] == level {
			logs = append(logs, math.Log(y[i]/(to[i]-from[i])))
		}
	}
	return math.Exp(mean(logs))
}

// powerGrid are places from one number to another, ever farther apart.
func powerGrid(lo, hi float64) []float64 {
	grid := make([]float64, 65)
	for i := range grid {
		grid[i] = lo * math.Pow(hi/lo, float64(i)/float64(len(grid)-1))
	}
	return grid
}

// lowestOf is where a function of one number is least: the best of a grid, and
// from there by golden section.
func lowestOf(f func(float64) float64, lo, hi float64) float64 {
	grid := powerGrid(lo, hi)
	values := make([]float64, len(grid))
	for i, x := range grid {
		values[i] = f(x)
	}
	best := floats.MinIdx(values)
	lo, hi = grid[max(best-1, 0)], grid[min(best+1, len(grid)-1)]
	const golden = 0.6180339887498949
	x, y := hi-golden*(hi-lo), lo+golden*(hi-lo)
	fx, fy := f(x), f(y)
	for hi-lo > 1e-10*hi {
		if fx <= fy {
			hi, y, fy = y, x, fx
			x = hi - golden*(hi-lo)
			fx = f(x)
		} else {
			lo, x, fx = x, y, fy
			y = lo + golden*(hi-lo)
			fy = f(y)
		}
	}
	return (lo + hi) / 2
}
