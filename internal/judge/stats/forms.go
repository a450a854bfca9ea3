package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// The bounds of a form of a distribution.
const (
	formsNeed   = 100  // observations
	formsPoints = 500  // of the sample, evenly by rank, that the density is drawn from
	formsGrid   = 200  // points of the density
	formsMass   = 0.05 // share of the observations that a form has at least
	formsValley = 0.5  // the highest valley between two peaks, as a share of the lower one
	formsValues = 20   // different observations, below which the clock has forms
)

// Forms counts the separate forms of the observations that came: peaks of their density on a logarithmic
// axis with deep valleys between; 0 for too few observations, or too few different ones. The density is a
// Gaussian kernel estimate with Silverman's bandwidth (1986, equation 3.31): closer forms are one.
func Forms(s Sample) int {
	before := s.AtMost(0)
	came := s.came() - before
	if came < formsNeed {
		return 0
	}
	points := make([]float64, 0, formsPoints)
	different := 0
	for i := range min(came, formsPoints) {
		v := math.Log(s.order(before + 1 + i*came/min(came, formsPoints)))
		if len(points) == 0 || v != points[len(points)-1] {
			different++
		}
		points = append(points, v)
	}
	if different < formsValues {
		return 0
	}
	sd := stat.StdDev(points, nil)
	n := len(points)
	spread := min(sd, (points[n*3/4]-points[n/4])/1.34)
	if spread <= 0 {
		spread = sd
	}
	h := 0.9 * spread * math.Pow(float64(n), -0.2)
	lo, hi := points[0]-3*h, points[n-1]+3*h
	density := make([]float64, formsGrid)
	for g := range density {
		at := lo + (hi-lo)*float64(g)/(formsGrid-1)
		for _, p := range points {
			z := (at - p) / h
			density[g] += math.Exp(-z * z / 2)
		}
	}
	return peaks(density)
}

// peaks counts the peaks of a density that hold enough of it and have deep valleys between them.
func peaks(density []float64) int {
	// Valleys divide the density; a shallow one is taken away by joining the two parts beside it.
	type part struct{ peak, mass, valley float64 } // the valley is that before it
	var parts []part
	total := 0.0
	p := part{}
	falling := false
	for i, d := range density {
		if falling && d > density[i-1] {
			parts = append(parts, p)
			p = part{valley: density[i-1]}
			falling = false
		}
		if i > 0 && d < density[i-1] {
			falling = true
		}
		p.peak = max(p.peak, d)
		p.mass += d
		total += d
	}
	parts = append(parts, p)
	for len(parts) > 1 {
		// The shallowest valley, or the one beside too small a part, goes first.
		worst, depth := -1, formsValley
		for i := 1; i < len(parts); i++ {
			a, b := parts[i-1], parts[i]
			d := b.valley / min(a.peak, b.peak)
			if min(a.mass, b.mass) < formsMass*total {
				d = 1 + d
			}
			if d > depth {
				worst, depth = i, d
			}
		}
		if worst < 0 {
			break
		}
		a, b := parts[worst-1], parts[worst]
		parts[worst-1] = part{max(a.peak, b.peak), a.mass + b.mass, a.valley}
		parts = append(parts[:worst], parts[worst+1:]...)
	}
	return len(parts)
}
