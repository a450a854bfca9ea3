package chart

import (
	"math"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// A curve is drawn through some of its vertices, within a tolerance on linear and logarithmic axes.
const (
	tolerance   = 0.001 // largest vertical error by thinning, as a share of a curve's own height
	maxVertices = 400   // bound of a curve's vertices; beyond it the error is larger, and stated
)

// vertex is a corner of a curve of straight lines; at a jump two vertices share x.
type vertex struct{ x, y float64 }

// thin chooses vertices so that lines between them stay within a vertical distance of the curve, with
// logX also on a logarithmic axis. The first, the last and those in keep, which may be nil, are among
// them. It returns indices and the distance, larger than given only where most vertices do not do.
func thin(curve []vertex, keep []bool, distance float64, most int, logX bool) (chosen []int, took float64) {
	for {
		chosen = thinWithin(curve, keep, distance, logX)
		kept := 0
		for _, k := range keep {
			if k {
				kept++
			}
		}
		if len(chosen) <= max(most, 2*kept+2) {
			return chosen, distance
		}
		distance *= 1.25
	}
}

// cone is the set of slopes of lines from one vertex that pass all later vertices within the distance.
type cone struct{ lo, hi float64 }

func newCone() cone { return cone{math.Inf(-1), math.Inf(1)} }

// narrow takes in a vertex at a distance du on the axis and dy in height.
func (c *cone) narrow(du, dy, distance float64) {
	if du <= 0 {
		if math.Abs(dy) > distance {
			c.lo, c.hi = math.Inf(1), math.Inf(-1) // a jump that no line may skip
		}
		return
	}
	c.lo, c.hi = max(c.lo, (dy-distance)/du), min(c.hi, (dy+distance)/du)
}

func (c *cone) empty() bool { return c.lo > c.hi }

// holds reports whether the line to a vertex lies in the cone, as any vertical line does.
func (c *cone) holds(du, dy float64) bool {
	if du <= 0 {
		return true
	}
	s := dy / du
	return c.lo <= s && s <= c.hi
}

// thinWithin goes from each chosen vertex to the furthest that a straight line may reach.
func thinWithin(curve []vertex, keep []bool, distance float64, logX bool) []int {
	if len(curve) == 0 {
		return nil
	}
	chosen := []int{0}
	for at := 0; at < len(curve)-1; {
		next := at + 1
		linear, logarithmic := newCone(), newCone()
		for i := at + 1; i < len(curve); i++ {
			du, dy := curve[i].x-curve[at].x, curve[i].y-curve[at].y
			dl := logarithm(curve[i].x) - logarithm(curve[at].x)
			if linear.holds(du, dy) && (!logX || logarithmic.holds(dl, dy)) {
				next = i
			}
			if keep != nil && keep[i] {
				break
			}
			linear.narrow(du, dy, distance)
			logarithmic.narrow(dl, dy, distance)
			if linear.empty() || logX && logarithmic.empty() {
				break
			}
		}
		if keep != nil {
			for i := at + 1; i < next; i++ { // a line may end before a kept vertex, never beyond it
				if keep[i] {
					next = i
				}
			}
		}
		chosen = append(chosen, next)
		at = next
	}
	return chosen
}

func logarithm(x float64) float64 { return math.Log(max(x, 1)) }

// distributionOf thins the distribution of sorted times out of n, of which the rest never came.
func distributionOf(sorted []int64, n, most int) curve {
	if len(sorted) == 0 || n == 0 {
		return curve{N: n, X: []int64{}, Y: []int64{}}
	}
	line := make([]vertex, 0, 2*len(sorted))
	var rank []int // of the curve's upper vertices: how many are there
	for i := 0; i < len(sorted); {
		j := i
		for j < len(sorted) && sorted[j] == sorted[i] {
			j++
		}
		x := float64(sorted[i])
		line = append(line, vertex{x, float64(i)}, vertex{x, float64(j)})
		rank = append(rank, j)
		i = j
	}
	keep := make([]bool, len(line))
	for _, q := range []float64{0.5, 0.9, 0.95, 0.99} { // where a distribution is drawn exactly
		k := int(math.Ceil(q*float64(n) - 1e-9*float64(n)))
		if i, _ := slices.BinarySearch(rank, k); i < len(rank) {
			keep[2*i], keep[2*i+1] = true, true
		}
	}
	return thinned(line, keep, n, most, true)
}

// thinned returns a curve of n objects through about most vertices, and those in keep; see thin.
func thinned(line []vertex, keep []bool, n, most int, logX bool) curve {
	chosen, took := thin(line, keep, tolerance*float64(n), most, logX)
	if len(chosen) == len(line) {
		took = 0
	}
	var x, y []int64
	for _, i := range chosen {
		x, y = append(x, int64(line[i].x)), append(y, int64(line[i].y))
	}
	return curve{N: n, X: differences(x), Y: differences(y), Took: result.Round(took/float64(n), 5)}
}
