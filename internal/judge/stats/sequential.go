package stats

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Looks returns the numbers of blocks at which a comparison of least to most blocks is judged, most last.
// They are few, and further apart the later they are: each look costs later ones some of the error rate.
func Looks(least, most int) []int {
	looks := slices.DeleteFunc([]int{4, 6, 9, 13, 20, 30, 45, 68, 100}, func(n int) bool { return n < least || n >= most })
	return append(looks, most)
}

// spentBy returns the spent share of an error rate, by the power 1.5 of Kim and DeMets' family (1987).
func spentBy(blocks, most int) float64 { return math.Pow(float64(blocks)/float64(most), 1.5) }

// End says how a sequential comparison ended if its findings did not end it.
type End int

// The ends.
const (
	Scheduled   End = iota // all blocks were made, or it goes on
	OutOfBudget            // nothing more comes: the rest of the error rate is spent
	Interrupted            // it may go on: only the part that is due by then is spent
)

// Sequential judges a comparison that goes on until it is decided. Intervals of all looks together hold
// the change with the given probability. It must not be used by several goroutines at once.
type Sequential struct {
	Least, Most int
	Alpha       float64 // error rate; better and worse are found at Alpha/Among, those made together (0: 1)
	Among       int
	Margin      float64

	NotWorse bool // it also ends as soon as the arm is not worse

	bounds map[boundsKey][]float64
}

type boundsKey struct {
	alpha float64
	last  int
	end   End
}

// Stage is a look at a sequential comparison.
type Stage struct {
	Blocks int
	// Change has the repeated interval, and Strict that for better and worse among several comparisons.
	Change, Strict Change
	Bound          float64 // half of the interval of Change, in standard errors
	Verdict        Verdict
	SignFlip       float64 // the two-sided p-value of the blocks' signs, NaN before it counts
	Predicted      float64 // the probability that the last look decides, NaN before it counts
	Done, Futile   bool    // it ends here: decided, without hope, or after the last block
	Unbiased       float64 // the median-unbiased change: an early end exaggerates what it found
}

const (
	signFlipFrom = 6 // number of blocks from which better and worse must also be found by signs alone
	futileFrom   = 9 // number of blocks from which it ends where the last look likely decides nothing
	futileBelow  = 0.1
)

// Judge looks at a[i] and b[i], the figures of baseline and arm in block i, after each number of blocks
// at which a look is due, and at another end after all. It returns the last look, or the first at which
// it was done: later blocks do not count. Less is as in Change.Judge.
func (s *Sequential) Judge(a, b []float64, less bool, end End) (Stage, error) {
	if len(a) != len(b) {
		return Stage{}, errors.New("blocks need a run of each arm")
	}
	la, errA := logs(a)
	lb, errB := logs(b)
	if err := cmp.Or(errA, errB); err != nil {
		return Stage{}, err
	}
	d := floats.SubTo(make([]float64, len(a)), lb, la)
	var last Stage
	looks := Looks(s.Least, s.Most)
	for k, n := range looks {
		if n > len(d) {
			break
		}
		last = s.look(d[:n], looks[:k+1], less, Scheduled)
		if last.Done {
			return last, nil
		}
	}
	if len(d) < 2 {
		return last, ErrFewBlocks
	}
	if end == OutOfBudget || end == Interrupted && len(d) > last.Blocks {
		before := slices.DeleteFunc(slices.Clone(looks), func(n int) bool { return n >= len(d) })
		last = s.look(d, append(before, len(d)), less, end)
	}
	if last.Blocks == 0 {
		return last, ErrFewBlocks
	}
	return last, nil
}

// look judges the first blocks. The looks end with this one.
func (s *Sequential) look(d []float64, looks []int, less bool, end End) Stage {
	n := len(d)
	g := Stage{Blocks: n, SignFlip: math.NaN(), Predicted: math.NaN()}
	bound := last(s.boundsOf(s.Alpha, looks, end))
	g.Bound = bound
	g.Change = repeated(d, bound)
	g.Strict = g.Change
	alpha := s.Alpha
	if s.Among > 1 {
		alpha /= float64(s.Among)
		g.Strict = repeated(d, last(s.boundsOf(alpha, looks, end)))
	}
	g.Verdict = JudgeTogether(g.Change, g.Strict, s.Margin, less)
	if n >= signFlipFrom && math.Pow(2, 1-float64(n)) <= alpha {
		if g.SignFlip = SignFlip(d); g.SignFlip > alpha && (g.Verdict == Better || g.Verdict == Worse) {
			g.Verdict = Undecided
		}
	}
	g.Unbiased = g.Change.D
	switch {
	case end != Scheduled || n >= s.Most:
		g.Done = true
	case g.Verdict == Undecided, g.Verdict == NotWorse && !s.NotWorse:
		if n >= futileFrom {
			g.Predicted = s.predict(d, last(s.Bounds()), less)
			g.Futile = g.Predicted < futileBelow
		}
		g.Done = g.Futile
	default:
		g.Done = true
	}
	if g.Done && (g.Verdict == Better || g.Verdict == Worse) {
		g.Unbiased = s.unbiased(d, looks, g.Strict.D > 0, alpha, end)
	}
	return g
}

// Bounds returns half of the interval at each of Looks, in standard errors.
func (s *Sequential) Bounds() []float64 {
	return s.boundsOf(s.Alpha, Looks(s.Least, s.Most), Scheduled)
}

func last(list []float64) float64 { return list[len(list)-1] }

// repeated returns the change of blocks, with an interval of so many standard errors.
func repeated(d []float64, bound float64) Change {
	mean, sd := stat.MeanStdDev(d, nil)
	sd = max(sd, leastSpread)
	half := bound * sd / math.Sqrt(float64(len(d)))
	return Change{Blocks: len(d), D: math.Expm1(mean), Lo: math.Expm1(mean - half), Hi: math.Expm1(mean + half), SD: sd, df: float64(len(d) - 1)}
}

// JudgeTogether returns the verdict among several comparisons: better and worse by the strict interval.
func JudgeTogether(c, strict Change, margin float64, less bool) Verdict {
	if v := strict.Judge(margin, less); v == Better || v == Worse {
		return v
	}
	switch v := c.Judge(margin, less); v {
	case Better:
		return NotWorse
	case Worse:
		return Undecided
	default:
		return v
	}
}

func (s *Sequential) boundsOf(alpha float64, looks []int, end End) []float64 {
	key := boundsKey{alpha, looks[len(looks)-1], end} // earlier looks do not depend on later ones
	if bounds, ok := s.bounds[key]; ok {
		return bounds
	}
	all := looks
	if end == Scheduled {
		all = Looks(s.Least, s.Most) // found once for all looks
	}
	spent := make([]float64, len(all))
	for i, n := range all {
		spent[i] = alpha * spentBy(n, s.Most)
	}
	if end == OutOfBudget {
		spent[len(spent)-1] = alpha
	}
	if s.bounds == nil {
		s.bounds = make(map[boundsKey][]float64)
	}
	bounds := sequentialBounds(all, spent)
	if end != Scheduled {
		s.bounds[key] = bounds
		return bounds
	}
	for i, n := range all {
		s.bounds[boundsKey{alpha, n, end}] = bounds[:i+1]
	}
	return s.bounds[key]
}

const (
	pathsBeyond = 4000 // each bound: they place it to half of one percent
	leastPaths  = 200_000
	mostPaths   = 8_000_000
	pathsAtOnce = 50_000 // of one sequence of chance
)

// sequentialBounds returns the largest distances of a mean from 0 at each of some looks, in standard
// errors, such that with a mean of 0 the share of all series beyond them by that look is what is spent by
// then. The first is Student's, the others come from paths drawn at random, always the same.
func sequentialBounds(looks []int, spent []float64) []float64 {
	bounds := make([]float64, len(looks))
	bounds[0] = studentQuantile(1-spent[0]/2, float64(looks[0]-1))
	if len(looks) == 1 {
		return bounds
	}
	least := math.Inf(1)
	for k := 1; k < len(looks); k++ {
		least = min(least, spent[k]-spent[k-1])
	}
	paths := int(min(max(pathsBeyond/least, leastPaths), mostPaths))
	parts := (paths + pathsAtOnce - 1) / pathsAtOnce
	paths = parts * pathsAtOnce
	// Only a path beyond Student's bound of all that is spent by a look can lie beyond the look's bound.
	type far struct {
		path int
		t    float64
	}
	worth := make([]float64, len(looks))
	for k, n := range looks {
		worth[k] = studentQuantile(1-spent[k]/2, float64(n-1))
	}
	found := make([][][]far, parts)
	var each errgroup.Group
	each.SetLimit(runtime.GOMAXPROCS(0))
	for part := range parts {
		found[part] = make([][]far, len(looks))
		each.Go(func() error {
			rng := rand.New(rand.NewPCG(uint64(part), 26))
			for path := range pathsAtOnce {
				sum, squares, n := 0.0, 0.0, 0
				for k, look := range looks {
					for ; n < look; n++ {
						x := rng.NormFloat64()
						sum, squares = sum+x, squares+x*x
					}
					if t := tOf(sum, squares, n); t > worth[k] {
						found[part][k] = append(found[part][k], far{part*pathsAtOnce + path, t})
					}
				}
			}
			return nil
		})
	}
	_ = each.Wait() // none fails
	crossed := make(map[int]bool)
	for k := range looks {
		var beyond []far
		for _, part := range found {
			for _, f := range part[k] {
				if !crossed[f.path] {
					beyond = append(beyond, f)
				}
			}
		}
		if k > 0 {
			slices.SortFunc(beyond, func(x, y far) int { return cmp.Or(cmp.Compare(y.t, x.t), cmp.Compare(x.path, y.path)) })
			share := int(math.Round((spent[k] - spent[k-1]) * float64(paths)))
			bounds[k] = worth[k]
			if share > 0 && share <= len(beyond) {
				bounds[k] = beyond[share-1].t
			}
		}
		for _, f := range beyond {
			if f.t >= bounds[k] {
				crossed[f.path] = true
			}
		}
	}
	return bounds
}

func tOf(sum, squares float64, n int) float64 {
	count := float64(n)
	return math.Abs(sum) / math.Sqrt(count*max(squares-sum*sum/count, 0)/(count-1))
}

const (
	mostSigns  = 14     // blocks, up to which all ways to choose signs are counted
	drawnSigns = 20_000 // ways for more blocks
)

// SignFlip returns the two-sided p-value of no change, for any symmetric distribution of the differences:
// the share of all ways to choose their signs whose sum is at least as far from 0.
func SignFlip(d []float64) float64 {
	seen := math.Abs(floats.Sum(d)) * (1 - 1e-12)
	if len(d) <= mostSigns {
		far := 0
		for signs := range 1 << len(d) {
			sum := 0.0
			for i, x := range d {
				if signs>>i&1 == 1 {
					x = -x
				}
				sum += x
			}
			if math.Abs(sum) >= seen {
				far++
			}
		}
		return float64(far) / float64(int(1)<<len(d))
	}
	draw := sequence(uint64(len(d)))
	far := 1
	for range drawnSigns - 1 {
		sum, signs := 0.0, draw()
		for i, x := range d {
			if i%64 == 63 {
				signs = draw()
			}
			if signs>>(i%64)&1 == 1 {
				x = -x
			}
			sum += x
		}
		if math.Abs(sum) >= seen {
			far++
		}
	}
	return float64(far) / drawnSigns
}

const drawnFutures = 2000 // of a prediction

// predict returns the probability that the last look decides: the share of futures that do, whose mean and
// spread are drawn from the posterior of the blocks so far.
func (s *Sequential) predict(d []float64, bound float64, less bool) float64 {
	rng := rand.New(rand.NewPCG(uint64(len(d)), 9))
	n := float64(len(d))
	mean, sd := stat.MeanStdDev(d, nil)
	sd = max(sd, leastSpread)
	all := float64(s.Most)
	decided := 0
	for range drawnFutures {
		scale := sd * math.Sqrt((n-1)/chiSquared(rng, len(d)-1))
		middle := mean + scale*rng.NormFloat64()/math.Sqrt(n)
		sum, squares := n*mean, (n-1)*sd*sd+n*mean*mean
		for range s.Most - len(d) {
			x := middle + scale*rng.NormFloat64()
			sum, squares = sum+x, squares+x*x
		}
		m := sum / all
		half := bound * math.Sqrt(max(squares-all*m*m, 0)/(all-1)/all)
		if (Change{Lo: math.Expm1(m - half), Hi: math.Expm1(m + half)}).Judge(s.Margin, less) != Undecided {
			decided++
		}
	}
	return float64(decided) / drawnFutures
}

func chiSquared(rng *rand.Rand, df int) float64 {
	sum := 0.0
	for range df {
		x := rng.NormFloat64()
		sum += x * x
	}
	return sum
}

const (
	drawnUnbiased = 1000
	unbiasedSteps = 20
)

// unbiased returns the change of which half of all such comparisons would end with as much evidence: at
// an earlier look, or at the same one as far out (the stagewise order of Jennison and Turnbull, 1999).
// Changes far beyond the margin come out rather small. More says that the change is above 0.
func (s *Sequential) unbiased(d []float64, looks []int, more bool, alpha float64, end End) float64 {
	mean, sd := stat.MeanStdDev(d, nil)
	sd = max(sd, leastSpread)
	if len(looks) == 1 {
		return math.Expm1(mean)
	}
	bounds := s.boundsOf(alpha, looks, end)
	sign := 1.0
	if !more {
		sign = -1
	}
	margin := math.Log1p(sign * s.Margin) // on the side that was found
	share := func(middle float64) float64 {
		rng := rand.New(rand.NewPCG(uint64(len(d)), 50))
		out := 0
		for range drawnUnbiased {
			sum, squares, n := 0.0, 0.0, 0
			scale := sd * math.Sqrt(float64(len(d)-1)/chiSquared(rng, len(d)-1))
			for k, look := range looks {
				for ; n < look; n++ {
					x := middle + scale*rng.NormFloat64()
					sum, squares = sum+x, squares+x*x
				}
				m := sum / float64(n)
				if k == len(looks)-1 {
					if sign*(m-mean) >= 0 {
						out++
					}
					break
				}
				half := bounds[k] * math.Sqrt(max(squares-sum*m, 0)/float64(n-1)/float64(n))
				if sign*(m-margin) > half {
					out++
					break
				}
			}
		}
		return float64(out) / drawnUnbiased
	}
	lo, hi := mean-4*sd, mean+4*sd
	for range unbiasedSteps {
		middle := (lo + hi) / 2
		if (share(middle) < 0.5) == more {
			lo = middle
		} else {
			hi = middle
		}
	}
	return math.Expm1((lo + hi) / 2)
}

// Fisher returns the two-sided p-value of Fisher's exact test that x of n and y of m come from one
// probability.
func Fisher(x, n, y, m int) float64 {
	choose := func(n, k int) float64 {
		a, _ := math.Lgamma(float64(n + 1))
		b, _ := math.Lgamma(float64(k + 1))
		c, _ := math.Lgamma(float64(n - k + 1))
		return a - b - c
	}
	of := func(i int) float64 { return choose(n, i) + choose(m, x+y-i) - choose(n+m, x+y) }
	seen, p := of(x), 0.0
	for i := max(0, x+y-m); i <= min(n, x+y); i++ {
		if of(i) <= seen+1e-9 {
			p += math.Exp(of(i))
		}
	}
	return min(p, 1)
}
