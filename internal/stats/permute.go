package stats

import (
	"math"
	"math/bits"
	"slices"
)

// Merge is the sample of all observations of several.
func Merge(samples ...Sample) Sample {
	var m Sample
	parts := make([][]float64, 0, len(samples))
	for _, s := range samples {
		m.censored += s.censored
		if len(s.sorted) > 0 {
			parts = append(parts, s.sorted)
		}
	}
	for len(parts) > 1 {
		next := make([][]float64, 0, (len(parts)+1)/2)
		for i := 0; i < len(parts); i += 2 {
			if i+1 == len(parts) {
				next = append(next, parts[i])
				break
			}
			next = append(next, merge(parts[i], parts[i+1]))
		}
		parts = next
	}
	if len(parts) == 1 {
		m.sorted = parts[0]
	}
	return m
}

// merge makes one sorted list of two.
func merge(x, y []float64) []float64 {
	list := make([]float64, 0, len(x)+len(y))
	i, j := 0, 0
	for i < len(x) && j < len(y) {
		if x[i] <= y[j] {
			list = append(list, x[i])
			i++
		} else {
			list = append(list, y[j])
			j++
		}
	}
	list = append(list, x[i:]...)
	return append(list, y[j:]...)
}

// Bounds of a permutation test.
const (
	// allWays is the most ways that are all tried; beyond, as many are drawn.
	allWays = 4096
	// gridPoints is at how many points distributions are compared there: their
	// largest distance is found to within 1/gridPoints of all observations.
	gridPoints = 1024
)

// PermuteBlocks is the p-value of the Kolmogorov-Smirnov distance of two arms
// whose runs a[i] and b[i] were made side by side: the share of all ways to
// swap the runs of a block whose distance is at least as large. The run is the
// replicate, not the object: with n blocks there are 2^n ways, and no p-value
// below 2/2^n. Beyond 12 blocks 4096 ways of a fixed sequence are tried.
func PermuteBlocks(a, b []Sample) float64 {
	runs := countsOf(slices.Concat(a, b))
	n := len(a)
	inA := make([]bool, 2*n)
	share := func(swapped func(i int) bool) float64 {
		for i := range n {
			inA[i] = !swapped(i)
			inA[n+i] = !inA[i]
		}
		return runs.distance(inA)
	}
	seen := share(func(int) bool { return false })
	ways, asFar := allWays, 0
	if n < bits.Len(allWays) {
		ways = 1 << n
	}
	draw := sequence(1)
	for w := range ways {
		d := share(func(i int) bool {
			if ways < allWays || 1<<n == allWays {
				return w>>i&1 == 1
			}
			return w > 0 && draw()&1 == 1
		})
		if d >= seen-1e-12 {
			asFar++
		}
	}
	return float64(asFar) / float64(ways)
}

// PermuteRuns is as PermuteBlocks for runs that were made apart: the runs are
// given to the arms in every way, or in 4096 ways where there are more.
func PermuteRuns(a, b []Sample) float64 {
	runs := countsOf(slices.Concat(a, b))
	n, all := len(a), len(a)+len(b)
	inA := make([]bool, all)
	for i := range n {
		inA[i] = true
	}
	seen := runs.distance(inA)
	ways, asFar := 0, 0
	count := func() {
		ways++
		if runs.distance(inA) >= seen-1e-12 {
			asFar++
		}
	}
	if binomial(all, n) <= allWays {
		choose(inA, 0, n, count)
		return float64(asFar) / float64(ways)
	}
	draw := sequence(1)
	count()
	for ways < allWays {
		for i := all - 1; i > 0; i-- {
			j := int(draw() % uint64(i+1))
			inA[i], inA[j] = inA[j], inA[i]
		}
		count()
	}
	return float64(asFar) / float64(ways)
}

// choose calls visit with every way to set n of in[from:].
func choose(in []bool, from, n int, visit func()) {
	if len(in)-from < n {
		return
	}
	if from == len(in) {
		visit()
		return
	}
	if n > 0 {
		in[from] = true
		choose(in, from+1, n-1, visit)
	}
	in[from] = false
	choose(in, from+1, n, visit)
}

func binomial(n, k int) float64 {
	x := 1.0
	for i := range k {
		x *= float64(n-i) / float64(i+1)
	}
	return math.Round(x)
}

// sequence is SplitMix64 (Steele, Lea and Flood, 2014).
func sequence(state uint64) func() uint64 {
	return func() uint64 {
		state += 0x9e3779b97f4a7c15
		z := state
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		return z ^ z>>31
	}
}

// counts says how many observations of each run lie at or below each point of
// a grid.
type counts struct {
	n     []float64
	below [][]float64 // by run and point
}

// countsOf counts samples at points that share all their observations evenly.
func countsOf(samples []Sample) counts {
	all := Merge(samples...).sorted
	var grid []float64
	step := max(1, len(all)/gridPoints)
	for i := step - 1; i < len(all); i += step {
		if len(grid) == 0 || grid[len(grid)-1] != all[i] {
			grid = append(grid, all[i])
		}
	}
	c := counts{n: make([]float64, len(samples)), below: make([][]float64, len(samples))}
	for r, s := range samples {
		c.n[r] = float64(s.N())
		c.below[r] = make([]float64, len(grid))
		i := 0
		for g, v := range grid {
			for i < len(s.sorted) && s.sorted[i] <= v {
				i++
			}
			c.below[r][g] = float64(i)
		}
	}
	return c
}

// distance is the Kolmogorov-Smirnov distance on the grid between the runs
// that are in and the others.
func (c counts) distance(in []bool) float64 {
	nIn, nOut := 0.0, 0.0
	for r, n := range c.n {
		if in[r] {
			nIn += n
		} else {
			nOut += n
		}
	}
	most := 0.0
	for g := range c.below[0] {
		x, y := 0.0, 0.0
		for r, below := range c.below {
			if in[r] {
				x += below[g]
			} else {
				y += below[g]
			}
		}
		most = max(most, math.Abs(x/nIn-y/nOut))
	}
	return most
}
