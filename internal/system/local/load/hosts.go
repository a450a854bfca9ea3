package load

import (
	"math/rand/v2"
)

// Host is the name of a server, and its share of the requests.
type Host struct {
	Name     string
	Weight   float64   // above 0
	Requests []Request // Requests are made to it; without any, the plan's
}

// Request describes a request to a host, and its share of the host's requests.
type Request struct {
	Method, Path string
	Fields       [][2]string // names and values of further header fields
	Body         []byte
	Weight       float64 // above 0
	Status       int     // of the answer, 0 for 200
}

func weightsOf[T any](list []T, weight func(T) float64) []float64 {
	weights := make([]float64, len(list))
	for i, x := range list {
		weights[i] = weight(x)
	}
	return weights
}

// chooser draws an index by weight in constant time: an alias table (Walker 1977, in Vose's form).
type chooser struct {
	keep  []float64 // probability of the column's own index, else its alias
	alias []int32
}

func newChooser(weights []float64) chooser {
	n := len(weights)
	c := chooser{make([]float64, n), make([]int32, n)}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	var small, large []int32
	for i, w := range weights {
		c.keep[i] = w * float64(n) / sum
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

// draw draws an index, 0 without any.
func (c *chooser) draw(rng *rand.Rand) int {
	if len(c.keep) <= 1 {
		return 0
	}
	x := rng.Float64() * float64(len(c.keep))
	i := int(x)
	if x-float64(i) < c.keep[i] {
		return i
	}
	return int(c.alias[i])
}
