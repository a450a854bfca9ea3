package stats

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/combin"
)

// Merge returns the sample of all observations of several.
func Merge(samples ...Sample) Sample {
	if slices.ContainsFunc(samples, func(s Sample) bool { return s.counts != nil }) {
		return mergeCounted(samples)
	}
	var m Sample
	lists := make([][]float64, len(samples))
	for i, s := range samples {
		m.censored += s.censored
		lists[i] = s.sorted
	}
	m.sorted = mergeLists(lists)
	return m
}

func mergeLists(lists [][]float64) []float64 {
	switch n := len(lists); n {
	case 0:
		return nil
	case 1:
		return lists[0]
	default:
		x, y := mergeLists(lists[:n/2]), mergeLists(lists[n/2:])
		list := make([]float64, len(x)+len(y))
		merge(list, x, y)
		return list
	}
}

func mergeCounted(samples []Sample) Sample {
	var list []Count
	censored, resolution := 0, 0.0
	for _, s := range samples {
		censored, resolution = censored+s.censored, max(resolution, s.resolution)
		for i, v := range s.sorted {
			list = append(list, Count{v, s.first(i+1) - s.first(i)})
		}
	}
	slices.SortFunc(list, func(a, b Count) int { return cmp.Compare(a.Value, b.Value) })
	merged := list[:0]
	for _, c := range list {
		if last := len(merged) - 1; last >= 0 && merged[last].Value == c.Value {
			merged[last].N += c.N
		} else {
			merged = append(merged, c)
		}
	}
	return Counted(merged, censored, resolution)
}

// merge merges two sorted lists into one, which has the length of both.
func merge(list, x, y []float64) {
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		a, b, fromY := x[i], y[j], 0 // without a branch: which comes next cannot be predicted
		if b < a {
			fromY = 1
		}
		list[i+j] = min(a, b)
		i, j = i+1-fromY, j+fromY
	}
	copy(list[i+j:], x[i:])
	copy(list[i+j:], y[j:])
}

// Arms holds the runs of two arms, and all observations of each together.
type Arms struct {
	a, b []Sample // a[i] and b[i] are of one block where there are blocks
	x, y Sample
}

// NewArms puts the observations of each arm's runs together.
func NewArms(a, b []Sample) Arms { return Arms{a, b, Merge(a...), Merge(b...)} }

// All returns all observations of each arm.
func (s Arms) All() (a, b Sample) { return s.x, s.y }

// The bounds of a permutation test.
const (
	allWays    = 4096 // largest number of ways that are all tried; of more, as many are drawn
	gridPoints = 1024 // number of points at which distributions are compared, to within 1/gridPoints
)

// PermuteBlocks returns the p-value of the Kolmogorov-Smirnov distance of two arms with runs a[i] and
// b[i] side by side: the share of all ways to swap the runs of a block with at least that distance. With
// n blocks no p-value is below 2/2^n; beyond 12 blocks it tries 4096 ways of a fixed sequence.
func (s Arms) PermuteBlocks() float64 {
	n, ways := len(s.a), allWays
	if n < bits.Len(allWays) {
		ways = 1 << n
	}
	draw := sequence(1)
	return s.shareAsFar(ways, func(way int, inA []bool) {
		for i := range n {
			swapped := way>>i&1 == 1
			if 1<<n > allWays {
				swapped = way > 0 && draw()&1 == 1
			}
			inA[i], inA[n+i] = !swapped, swapped
		}
	})
}

// PermuteRuns does the same for runs made apart: it gives them to the arms in all ways, or in 4096.
func (s Arms) PermuteRuns() float64 {
	n, all := len(s.a), len(s.a)+len(s.b)
	if math.Round(combin.GeneralizedBinomial(float64(all), float64(n))) <= allWays {
		choices := combin.Combinations(all, n) // the first one is that of the runs as they were made
		return s.shareAsFar(len(choices), func(way int, inA []bool) {
			clear(inA)
			for _, i := range choices[way] {
				inA[i] = true
			}
		})
	}
	draw := sequence(1)
	return s.shareAsFar(allWays, func(way int, inA []bool) {
		if way > 0 {
			shuffle(inA, draw)
			return
		}
		for i := range n {
			inA[i] = true
		}
	})
}

// shareAsFar returns the share of ways to assign runs with at least the distance of the first, seen one.
// Assign sets which runs are in the first arm.
func (s Arms) shareAsFar(ways int, assign func(way int, inA []bool)) float64 {
	runs := s.counts()
	inA := make([]bool, len(s.a)+len(s.b))
	seen, asFar := 0.0, 0
	for way := range ways {
		assign(way, inA)
		d := runs.distance(inA)
		if way == 0 {
			seen = d
		}
		if d >= seen-1e-12 {
			asFar++
		}
	}
	return float64(asFar) / float64(ways)
}

// sequence returns SplitMix64 (Steele, Lea and Flood, 2014).
func sequence(state uint64) func() uint64 {
	return func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
}

func shuffle[T any](list []T, draw func() uint64) {
	for i := len(list) - 1; i > 0; i-- {
		j := int(draw() % uint64(i+1))
		list[i], list[j] = list[j], list[i]
	}
}

// counts says how many observations of each run lie at or below each point of a grid.
type counts struct {
	n     []float64   // observations of each run
	below [][]float64 // by run and point
	all   []float64   // of all runs, by point
	total float64
	sum   []float64 // room for distance
}

func (s Arms) counts() *counts {
	grid := gridOf(s.x, s.y)
	runs := slices.Concat(s.a, s.b)
	c := &counts{n: make([]float64, len(runs)), below: make([][]float64, len(runs)), all: make([]float64, len(grid)), sum: make([]float64, len(grid))}
	for r, run := range runs {
		c.n[r] = float64(run.N())
		c.total += c.n[r]
		c.below[r] = make([]float64, len(grid))
		for g, v := range grid {
			c.below[r][g] = float64(run.AtMost(v))
			c.all[g] += c.below[r][g]
		}
	}
	return c
}

// gridOf returns values that share the observations of two samples evenly.
func gridOf(x, y Sample) []float64 {
	all := Merge(x, y)
	step := max(1, all.came()/gridPoints)
	var grid []float64
	for k := step; k <= all.came(); k += step {
		grid = append(grid, all.order(k))
	}
	return slices.Compact(grid)
}

// distance returns the Kolmogorov-Smirnov distance on the grid between the chosen runs and the others.
func (c *counts) distance(in []bool) float64 {
	nIn := 0.0
	clear(c.sum)
	for r, below := range c.below {
		if !in[r] {
			continue
		}
		nIn += c.n[r]
		sum := c.sum[:len(below)]
		for g, n := range below {
			sum[g] += n
		}
	}
	nOut := c.total - nIn
	perIn, perOut := 1/nIn+1/nOut, 1/nOut // for x/nIn - (all-x)/nOut
	most := 0.0
	all := c.all[:len(c.sum)]
	for g, x := range c.sum {
		most = max(most, math.Abs(x*perIn-all[g]*perOut))
	}
	return most
}

const rankWays = 999 // lots of RankP

// RankP returns the p-value of Kendall's tau by drawing lots with a seed: the chance that the ranks of y
// follow those of x as closely, up or down. An outlier counts only by its rank. It is 1 for fewer than two
// points and never below 1/1000.
func RankP(x, y []float64, seed uint64) float64 {
	if len(x) < 2 {
		return 1
	}
	rng := rand.New(rand.NewPCG(seed, 0x72616e6b))
	lots := slices.Clone(y)
	together := func() int {
		n := 0
		for i := range x {
			for j := range i {
				n += cmp.Compare(x[i], x[j]) * cmp.Compare(lots[i], lots[j])
			}
		}
		return max(n, -n)
	}
	seen, as := together(), 1
	for range rankWays {
		rng.Shuffle(len(lots), func(i, j int) { lots[i], lots[j] = lots[j], lots[i] })
		if together() >= seen {
			as++
		}
	}
	return float64(as) / (rankWays + 1)
}
