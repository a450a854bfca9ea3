package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Knee is where a curve along an axis bends: two straight parts that meet,
// against one.
type Knee struct {
	Basis
	// P is the p-value of there being no knee. Whether there is one is for the
	// caller to say, who knows how many curves it asks about.
	P float64
	// At is the level at which the parts meet. An end of its interval beyond
	// which no knee can be told from its absence is infinite.
	At Estimate
	// Before and After are the slopes of the parts: of y by level, or of their
	// logarithms.
	Before, After float64
	// LogLog says that the parts are straight where both axes are logarithmic.
	LogLog bool
	// Gradual says that one smooth curve fits as well: the bend may extend over
	// many levels.
	Gradual bool

	c, y0 float64 // where the parts meet
}

// Value is the broken line's height at a level.
func (k Knee) Value(level float64) float64 {
	x := level
	if k.LogLog {
		x = math.Log(level)
	}
	slope := k.Before
	if x > k.c {
		slope = k.After
	}
	y := k.y0 + slope*(x-k.c)
	if k.LogLog {
		return math.Exp(y)
	}
	return y
}

// How finely knees are looked for.
const (
	kneeWays   = 999 // lots that are drawn
	kneeSteps  = 16  // places between two levels, at most
	kneePlaces = 512 // of all levels, about
	kneeTested = 48  // of these, about, that are tested
	decade     = 10.0
)

// FindKnee looks for a knee in measurements y at levels x. Levels may repeat.
// It refuses fewer than LawLevels different levels.
//
// P is by drawing lots, in two ways, of which the one counts that sees less:
// the residuals of the line are put into other orders (Freedman and Lane,
// 1983), which takes them as they are, and normal noise is drawn, with which
// the test is exact. In each drawing the best place for a knee is sought anew,
// which pays for having looked everywhere. A knee must leave two levels on
// either side, for a single one that is off would else be the end of a part.
// Where it lies is then told between the second level and the last but one;
// its interval is that of the profile, as of any fit: see profileBound.
//
// Where the axis spans more than a decade, and errors are relative, which makes
// them alike on logarithmic axes, P is that of the likelier of two curves
// without a knee: a line, and a power law, which is straight on those. The parts are straight on
// whichever axes they fit better, and the interval is of both where they fit
// about as well. The seed draws the lots.
func FindKnee(x, y []float64, noise Noise, confidence float64, seed uint64) (Knee, error) {
	a, err := basisOf(x, y, math.Inf(-1))
	if err != nil {
		return Knee{}, err
	}
	if slices.Min(y) <= 0 {
		noise = Absolute
	}
	rng := rand.New(rand.NewPCG(seed, 0x6b6e6565))
	k := Knee{Basis: a}
	s := newKneeSearch(x, y, noise)
	k.P = s.pValue(rng)
	if noise == Relative {
		// What the figures scatter by is known better from the two parts.
		s = s.weigh(s.parts(s.at[s.best()]))
	}
	k.fill(s, confidence)
	if noise == Relative && a.Lowest > 0 && a.Highest > decade*a.Lowest {
		logX, logY := make([]float64, len(x)), make([]float64, len(y))
		for i := range x {
			logX[i], logY[i] = math.Log(x[i]), math.Log(y[i])
		}
		line := newKneeSearch(x, y, Relative)
		s = newKneeSearch(logX, logY, Absolute)
		other := Knee{Basis: a, LogLog: true, P: max(line.pValueOfEither(s, rng), s.pValue(rng))}
		other.fill(s, confidence)
		k.P = other.P
		here, there := k.misses(x, y), other.misses(x, y)
		if there < here {
			k, other, here, there = other, k, there, here
		}
		if there <= profileBound(here, a.N, 4, confidence) {
			// Which axes it is straight on is not known, so either may be right.
			k.At.Lo, k.At.Hi = min(k.At.Lo, other.At.Lo), max(k.At.Hi, other.At.Hi)
		}
	}
	return k, nil
}

// misses is how far measurements lie from the two parts: the sum of squares of
// the logarithms' differences.
func (k Knee) misses(x, y []float64) float64 {
	sum := 0.0
	for i := range x {
		d := math.Log(y[i] / k.Value(x[i]))
		sum += d * d
	}
	if math.IsNaN(sum) {
		return math.Inf(1)
	}
	return sum
}

// kneeSearch is a search for the place at which two parts meet.
type kneeSearch struct {
	x, y   []float64
	weight []float64
	base   [][]float64 // the line's columns, weighted and made orthonormal
	left   []float64   // what the line leaves of the weighted figures
	at     []float64   // the places for a knee
	hinge  [][]float64 // for each, the bend's column: weighted, orthogonal to the line's, of length 1
	tested [][]float64 // those of the places that leave two levels on either side
}

func newKneeSearch(x, y []float64, noise Noise) kneeSearch {
	s := kneeSearch{x: x, y: y}
	if noise == Relative {
		// The line's own height says how much a figure scatters.
		return s.weigh(positiveLine(x, y))
	}
	return s.weigh(slices.Repeat([]float64{1}, len(y)))
}

// weigh is the search in which each figure scatters in proportion to its scale.
func (s kneeSearch) weigh(scale []float64) kneeSearch {
	w := kneeSearch{x: s.x, y: s.y, weight: make([]float64, len(scale))}
	for i, v := range scale {
		w.weight[i] = 1 / v
	}
	w.base = orthonormal(w.weight, times(s.x, w.weight))
	w.left = without(times(s.y, w.weight), w.base)
	levels := slices.Compact(slices.Sorted(slices.Values(s.x)))
	last := len(levels) - 1
	steps := max(1, min(kneeSteps, kneePlaces/last))
	var inner [][]float64
	for i := 1; i < last-1; i++ {
		for j := range steps {
			bend := w.place(levels[i] + (levels[i+1]-levels[i])*float64(j)/float64(steps))
			if i >= 2 && (i < last-2 || i == last-2 && j == 0) {
				inner = append(inner, bend)
			}
		}
	}
	w.place(levels[last-1])
	// A few places are enough to find out whether there is any.
	every := max(1, len(inner)/kneeTested, steps/4)
	for i := 0; i < len(inner); i += every {
		w.tested = append(w.tested, inner[i])
	}
	return w
}

// place adds a place for a knee and returns its bend.
func (s *kneeSearch) place(c float64) []float64 {
	bend := unit(without(s.bend(c), s.base))
	s.at, s.hinge = append(s.at, c), append(s.hinge, bend)
	return bend
}

// bend is the column of a change of slope at c.
func (s kneeSearch) bend(c float64) []float64 {
	bend := make([]float64, len(s.x))
	for i, x := range s.x {
		bend[i] = s.weight[i] * max(x-c, 0)
	}
	return bend
}

// best is the place at which two parts fit best.
func (s kneeSearch) best() int {
	place, most := 0, -1.0
	for i, h := range s.hinge {
		if g := math.Abs(floats.Dot(h, s.left)); g > most {
			place, most = i, g
		}
	}
	return place
}

// gain is the largest share of what the line leaves that a knee accounts for.
func (s kneeSearch) gain(left []float64) float64 {
	all := floats.Dot(left, left)
	if all == 0 {
		return 0
	}
	most := 0.0
	for _, h := range s.tested {
		g := floats.Dot(h, left)
		most = max(most, g*g/all)
	}
	return most
}

// pValue is how often a line with such residuals would seem to have a knee as
// good as the one that is seen.
func (s kneeSearch) pValue(rng *rand.Rand) float64 {
	// What rounding leaves of a perfect line is no bend.
	weighted := times(s.y, s.weight)
	if floats.Dot(s.left, s.left) <= 1e-20*floats.Dot(weighted, weighted) {
		return 1
	}
	return drawLots(s.left, rng, func(errors []float64) float64 {
		takeAway(errors, s.base)
		return s.gain(errors)
	})
}

// drawLots is the p-value of residuals by a measure that grows with what
// speaks against them: how often it is as large for the residuals in another
// order, or for normal noise of their size, whichever is more often. Measure
// may overwrite what it is given.
func drawLots(residuals []float64, rng *rand.Rand, measure func([]float64) float64) float64 {
	n := len(residuals)
	work, order := make([]float64, n), slices.Clone(residuals)
	copy(work, residuals)
	seen := measure(work) * (1 - 1e-12)
	sd := math.Sqrt(floats.Dot(residuals, residuals) / float64(n-2))
	permuted, drawn := 1, 1
	for range kneeWays {
		rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
		copy(work, order)
		if measure(work) >= seen {
			permuted++
		}
		for i := range work {
			work[i] = sd * rng.NormFloat64()
		}
		if measure(work) >= seen {
			drawn++
		}
	}
	return float64(max(permuted, drawn)) / (kneeWays + 1)
}

// pValueOfEither is the p-value of a line whose errors are relative, against
// two parts on the same axes or, in the other search, on logarithmic ones: how
// often a measured line would seem to be so much worse than the better of the
// two.
func (s kneeSearch) pValueOfEither(logs kneeSearch, rng *rand.Rand) float64 {
	// In the logarithms' metric the line is the logarithm of its height, and
	// what its coefficients can change there is what they change here.
	height, rest := make([]float64, len(s.x)), make([]float64, len(s.x))
	for i := range s.x {
		height[i] = -math.Log(s.weight[i])
		rest[i] = logs.y[i] - height[i]
	}
	rest = without(rest, s.base)
	if floats.Dot(rest, rest) <= 1e-20*float64(len(rest)) {
		return 1
	}
	left := make([]float64, len(rest))
	return drawLots(rest, rng, func(errors []float64) float64 {
		takeAway(errors, s.base)
		for i := range left {
			left[i] = height[i] + errors[i]
		}
		takeAway(left, logs.base)
		here := 1 / (1 - s.gain(errors))
		there := floats.Dot(errors, errors) / (floats.Dot(left, left) * (1 - logs.gain(left)))
		return max(here, there)
	})
}

// parts is the height of the two parts that meet at c, at each measurement.
func (s kneeSearch) parts(c float64) []float64 {
	coefs := s.coefs(c)
	height := make([]float64, len(s.x))
	for i, x := range s.x {
		height[i] = coefs[0] + coefs[1]*x + coefs[2]*max(x-c, 0)
	}
	if slices.Min(height) <= 0 {
		return s.y
	}
	return height
}

// coefs are the line's intercept and slope before c, and the change of slope.
func (s kneeSearch) coefs(c float64) []float64 {
	coefs, _, ok := leastSquares([][]float64{s.weight, times(s.x, s.weight), s.bend(c)}, times(s.y, s.weight))
	if !ok {
		return []float64{math.NaN(), math.NaN(), math.NaN()}
	}
	return coefs
}

// fill says where the knee is, and what lies beside it.
func (k *Knee) fill(s kneeSearch, confidence float64) {
	all := floats.Dot(s.left, s.left)
	sums := make([]float64, len(s.at))
	for i, h := range s.hinge {
		g := floats.Dot(h, s.left)
		sums[i] = max(all-g*g, 0)
	}
	best := s.best()
	bound := profileBound(sums[best], len(s.x), 4, confidence)
	lo, hi := best, best
	for i, v := range sums {
		if v <= bound {
			lo, hi = min(lo, i), max(hi, i)
		}
	}
	// The interval ends between the last place that is in it and the next.
	k.At = Estimate{s.at[best], math.Inf(-1), math.Inf(1)}
	if lo > 0 {
		k.At.Lo = s.at[lo-1]
	}
	if hi < len(s.at)-1 {
		k.At.Hi = s.at[hi+1]
	}
	coefs := s.coefs(s.at[best])
	k.c, k.y0 = s.at[best], coefs[0]+coefs[1]*s.at[best]
	k.Before, k.After = coefs[1], coefs[1]+coefs[2]
	if k.LogLog {
		k.At = Estimate{math.Exp(k.At.Value), math.Exp(k.At.Lo), math.Exp(k.At.Hi)}
		if k.At.Lo == 0 {
			k.At.Lo = math.Inf(-1)
		}
	}
	k.Gradual = s.smooth(k.LogLog) <= bound
}

// smooth is the least sum of squares of a smooth curve: a line and one further
// column, of second degree, a power, or a hyperbola, such as the waiting time of a
// queue on the way to its capacity or a throughput on the way to its own. With
// logarithmic axes the curve is that of the figures themselves.
func (s kneeSearch) smooth(logs bool) float64 {
	x, y, weight := s.x, s.y, s.weight
	if logs {
		x, y, weight = make([]float64, len(s.x)), make([]float64, len(s.x)), make([]float64, len(s.x))
		for i := range s.x {
			x[i], y[i] = math.Exp(s.x[i]), math.Exp(s.y[i])
			weight[i] = 1 / y[i] // a relative error is that of the logarithm
		}
	}
	highest := slices.Max(x)
	least := math.Inf(1)
	try := func(curve func(x float64) float64) {
		further := make([]float64, len(x))
		for i, v := range x {
			further[i] = curve(v/highest) * weight[i]
		}
		if _, rest, ok := leastSquares([][]float64{weight, times(x, weight), further}, times(y, weight)); ok {
			least = min(least, floats.Dot(rest, rest))
		}
	}
	for _, power := range []float64{0.5, 2, 3, 5} {
		try(func(x float64) float64 { return math.Pow(math.Abs(x), power) })
	}
	// A hyperbola ends at so many times the highest level, or, with a minus, levels
	// off from such a part of it on.
	for _, end := range []float64{1.005, 1.01, 1.02, 1.04, 1.08, 1.15, 1.3, 1.6, 2, 3, 5} {
		try(func(x float64) float64 { return 1 / (1 - x/end) })
	}
	for _, half := range []float64{0.03, 0.06, 0.12, 0.25, 0.5, 1, 2} {
		try(func(x float64) float64 { return 1 / (1 + math.Abs(x)/half) })
	}
	return least
}

// Bounded reports whether the levels bound where the knee is, on both sides.
func (k Knee) Bounded() bool { return !math.IsInf(k.At.Lo, 0) && !math.IsInf(k.At.Hi, 0) }

// BesideOrder reports whether figures still bend at a level when they may have
// changed steadily with the order in which they were measured as well.
func BesideOrder(x, y, order []float64, at, confidence float64) bool {
	// Errors are taken for relative where they can be.
	weight := slices.Repeat([]float64{1}, len(y))
	if slices.Min(y) > 0 {
		for i, v := range positiveLine(x, y) {
			weight[i] = 1 / v
		}
	}
	bend := make([]float64, len(x))
	for i, v := range x {
		bend[i] = max(v-at, 0) * weight[i]
	}
	list, ok := estimates([][]float64{weight, times(x, weight), bend, times(order, weight)}, times(y, weight), confidence)
	return ok && (list[2].Lo > 0 || list[2].Hi < 0)
}

// orthonormal makes two columns orthogonal and of length 1.
func orthonormal(a, b []float64) [][]float64 {
	first := unit(a)
	return [][]float64{first, unit(without(b, [][]float64{first}))}
}

// unit is a column made of length 1.
func unit(v []float64) []float64 {
	return floats.ScaleTo(make([]float64, len(v)), 1/math.Sqrt(floats.Dot(v, v)), v)
}

// without is a column less what orthonormal ones tell of it. It is done twice:
// once leaves rounding errors of the size of what was taken away.
func without(v []float64, base [][]float64) []float64 {
	r := slices.Clone(v)
	for range 2 {
		takeAway(r, base)
	}
	return r
}

// takeAway takes from a column what orthonormal ones tell of it.
func takeAway(r []float64, base [][]float64) {
	for _, b := range base {
		floats.AddScaled(r, -floats.Dot(r, b), b)
	}
}

// times is the product of two columns, number by number.
func times(a, b []float64) []float64 { return floats.MulTo(make([]float64, len(a)), a, b) }
