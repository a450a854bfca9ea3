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

// Looks are after how many blocks a comparison of least to most blocks is judged:
// the numbers of a fixed list that lie within, and most. A look costs some of what
// the later ones may find, so they are few, and further apart the later they are.
func Looks(least, most int) []int {
	looks := slices.DeleteFunc([]int{4, 6, 9, 13, 20, 30, 45, 68, 100}, func(n int) bool { return n < least || n >= most })
	return append(looks, most)
}

// spentBy is the share of an error rate that is spent after so many of at most so
// many blocks: of the family of Kim and DeMets (1987), the power of 1.5.
func spentBy(blocks, most int) float64 { return math.Pow(float64(blocks)/float64(most), 1.5) }

// End says how a sequential comparison ended, as far as that is not by what it found.
type End int

// The ends.
const (
	Scheduled   End = iota // all blocks were made, or it goes on
	OutOfBudget            // nothing more comes: what is left of the error rate is spent
	Interrupted            // it may go on: only what is due by then is spent
)

// Sequential judges a comparison that goes on until it is decided. Whenever it is looked at, the interval
// holds the change, at all looks together with the probability that was asked for: it is wider than that
// of as many blocks that were fixed before. One may not be used by several goroutines at once.
type Sequential struct {
	Least, Most int
	// Alpha is the error rate; better and worse are found at Alpha/Among each, which
	// is how many comparisons are made together (0 is 1).
	Alpha  float64
	Among  int
	Margin float64
	// NotWorse ends it as soon as the arm is not worse, too.
	NotWorse bool

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
	// Change has the repeated interval at the error rate, and Strict the one by which better and worse
	// are found; they are the same where one comparison is made.
	Change, Strict Change
	Bound          float64 // by how many standard errors Change reaches from the mean
	Verdict        Verdict
	// SignFlip is the two-sided p-value of the blocks' signs, NaN before it counts.
	SignFlip float64
	// Predicted is the probability that the last look decides, NaN before it counts.
	Predicted float64
	// Done says that it ends here: decided, without hope, or after the last block.
	Done, Futile bool
	// Unbiased is the change that is as likely to be found so far out as not: an
	// early end exaggerates what it found.
	Unbiased float64
}

const (
	// signFlipFrom is from how many blocks on better and worse must also be found by
	// the signs alone, which need no distribution.
	signFlipFrom = 6
	// futileFrom is from how many blocks on it ends without hope, where the last
	// look decides with less than futileBelow.
	futileFrom  = 9
	futileBelow = 0.1
)

// Judge looks at the blocks of a comparison, of which a[i] and b[i] are the figures of the baseline and
// the arm: after each number of blocks at which a look is due, and where it ended otherwise, after all of
// them. It is the last look that was made, or the first one at which it was done: blocks after that do
// not count. It follows from the blocks alone. Less is as in Change.Judge.
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

// look judges the first blocks, where looks are those up to and with this one.
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

// Bounds are by how many standard errors the interval reaches from the mean at each look.
func (s *Sequential) Bounds() []float64 {
	return s.boundsOf(s.Alpha, Looks(s.Least, s.Most), Scheduled)
}

func last(list []float64) float64 { return list[len(list)-1] }

// repeated is the change of blocks, with an interval of so many standard errors.
func repeated(d []float64, bound float64) Change {
	mean, sd := stat.MeanStdDev(d, nil)
	sd = max(sd, leastSpread)
	half := bound * sd / math.Sqrt(float64(len(d)))
	return Change{Blocks: len(d), D: math.Expm1(mean), Lo: math.Expm1(mean - half), Hi: math.Expm1(mean + half), SD: sd, df: float64(len(d) - 1)}
}

// JudgeTogether is the verdict where several comparisons are made: better and worse are found by the
// strict interval, which allows for their number, and the rest by the other.
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

// boundsOf are the bounds at looks, of an error rate.
func (s *Sequential) boundsOf(alpha float64, looks []int, end End) []float64 {
	// The bounds of the looks up to one follow from those alone.
	key := boundsKey{alpha, looks[len(looks)-1], end}
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
	// How many paths beyond each bound tell where it is: 4000 tell it to half of one percent.
	pathsBeyond = 4000
	leastPaths  = 200_000
	mostPaths   = 8_000_000
	pathsAtOnce = 50_000 // of one sequence of chance
)

// sequentialBounds are by how many standard errors a mean may lie from 0 at each of some looks, so that
// with a mean of 0 the share of all series beyond it by that look, or before, is what is spent by then.
// The first is Student's, the others come from paths drawn at random, always the same.
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
	// Only what lies beyond Student's bound of all that is spent by a look can lie beyond the look's.
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

// tOf is Student's t, without its sign.
func tOf(sum, squares float64, n int) float64 {
	count := float64(n)
	return math.Abs(sum) / math.Sqrt(count*max(squares-sum*sum/count, 0)/(count-1))
}

const (
	// Up to so many blocks all ways to choose signs are counted, of more as many as are drawn.
	mostSigns  = 14
	drawnSigns = 20_000
)

// SignFlip is the share of all ways to choose the signs of differences whose sum is
// at least as far from 0: the two-sided p-value of there being no change, whatever
// their distribution is, as long as it is symmetric.
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

// drawnFutures is how many futures a prediction draws.
const drawnFutures = 2000

// predict is the probability that the last look decides, after what was seen: of
// futures whose mean and spread are drawn from what the blocks leave possible.
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

// unbiased is the change of which half of all comparisons, made as this one was and with its spread,
// would end with as much evidence: at an earlier look, or at the same one as far out (the stagewise order
// of Jennison and Turnbull, 1999). Of changes far beyond the margin it is rather too small, as a small
// spread ends them early. More says that the change is above 0.
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
	// That of better and worse beyond the margin, on the side that was found.
	margin := math.Log1p(sign * s.Margin)
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

// Fisher is the two-sided p-value of Fisher's exact test: of the shares x of n and y
// of m being those of one probability.
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
