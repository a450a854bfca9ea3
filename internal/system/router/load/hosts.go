package load

import (
	"math/rand/v2"
)

// Host is a name that requests are sent to, and how often beside the others.
type Host struct {
	Name   string
	Weight float64 // above 0
}

// chooser draws hosts by weight in constant time: an alias table (Walker 1977,
// in Vose's form).
type chooser struct {
	keep  []float64 // with this probability the column's own host, else its alias
	alias []int32
}

func newChooser(hosts []Host) chooser {
	n := len(hosts)
	c := chooser{make([]float64, n), make([]int32, n)}
	sum := 0.0
	for _, h := range hosts {
		sum += h.Weight
	}
	var small, large []int32
	for i, h := range hosts {
		c.keep[i] = h.Weight * float64(n) / sum
		if c.keep[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		c.alias[s] = l
		if c.keep[l] -= 1 - c.keep[s]; c.keep[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		c.keep[i], c.alias[i] = 1, i
	}
	return c
}

// draw draws a host's index.
func (c *chooser) draw(rng *rand.Rand) int {
	if len(c.keep) == 1 {
		return 0
	}
	x := rng.Float64() * float64(len(c.keep))
	i := int(x)
	if x-float64(i) < c.keep[i] {
		return i
	}
	return int(c.alias[i])
}
