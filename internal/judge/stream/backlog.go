package stream

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

const (
	backlogBatches = 20
	steadyShare    = 0.01 // of the arrivals, by which a backlog may grow
	leastRise      = 3.0  // least rise of a backlog in arrivals: in a short hold one slow arrival is steep
)

// Change is a change of a backlog at a time.
type Change struct {
	At record.Micros
	By int
}

// BatchMeans returns the means over time of a number that changes, in equal batches of a span.
func BatchMeans(changes []Change, from, to record.Micros) []float64 {
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.At, b.At) })
	means := make([]float64, backlogBatches)
	n, next := 0, 0
	for i := range means {
		at := from + (to-from)*record.Micros(i)/backlogBatches
		end := from + (to-from)*record.Micros(i+1)/backlogBatches
		area, began := 0.0, at
		for ; next < len(changes) && changes[next].At < end; next++ {
			if t := changes[next].At; t > began {
				area += float64(n) * (t - began).Seconds()
				began = t
			}
			n += changes[next].By
		}
		area += float64(n) * (end - began).Seconds()
		if end > at {
			means[i] = area / (end - at).Seconds()
		}
	}
	return means
}

// NewBacklog judges a backlog's means over a hold with so many arrivals, by a tolerated slope per second.
func NewBacklog(means []float64, hold record.Micros, arrivals int, tolerated float64) *result.Backlog {
	b := &result.Backlog{Means: means}
	seconds := hold.Seconds()
	each := seconds / float64(len(means))
	slope, ok := drift(means, each)
	if !ok {
		return b
	}
	tolerated = max(tolerated, leastRise/seconds)
	b.Slope = result.Interval{Value: result.Finite(slope.Value), Lo: result.Finite(slope.Lo), Hi: result.Finite(slope.Hi)}
	b.Tolerated = result.Digits(tolerated)
	b.Rise = result.Round(100*slope.Value*seconds/float64(arrivals), 2)
	before := beforeStall(means, stallSize*math.Sqrt(2*float64(arrivals)/float64(len(means))))
	switch {
	case slope.Hi <= tolerated, slices.Max(means) <= leastRise:
	case before > 0:
		early, ok := drift(means[:before], each)
		b.Growing = ok && early.Lo > tolerated
		b.Stalled = !b.Growing
	case slope.Lo > tolerated:
		b.Growing = true
	default:
		b.Undecided = true
	}
	return b
}

// drift returns the growth of means per second, each of so many seconds; false with too few. A backlog
// depends on its past, so residuals are a first-order autoregression with at least the measured
// coefficient, corrected for their number (Marriott and Pope, 1954).
func drift(means []float64, each float64) (stats.Estimate, bool) {
	x := make([]float64, len(means))
	for i := range x {
		x[i] = float64(i) * each
	}
	l, err := stats.FitLine(x, means, driftConfidence)
	if err != nil {
		return stats.Estimate{}, false
	}
	n := float64(len(means))
	squares, lagged, before := 0.0, 0.0, 0.0
	for i, y := range means {
		r := y - l.Intercept.Value - l.Slope.Value*x[i]
		squares, lagged, before = squares+r*r, lagged+r*before, r
	}
	if squares == 0 {
		return l.Slope, true
	}
	rho := lagged / squares
	rho = min(max(rho+(2+4*rho)/n, 0), mostRho)
	wider := math.Sqrt((1 + rho) / (1 - rho))
	half := (l.Slope.Hi - l.Slope.Value) * wider
	return stats.Estimate{Value: l.Slope.Value, Lo: l.Slope.Value - half, Hi: l.Slope.Value + half}, true
}

const (
	driftConfidence = 0.997 // an undecided step is repeated, so there are several chances to be wrong
	mostRho         = 0.9   // keeps the interval of a backlog that depends wholly on its past finite
)

// beforeStall counts the means before the backlog rose once, by most of its range and at least by a size,
// within a part of the hold, and then fell or had no time to; 0 for any other course.
func beforeStall(means []float64, size float64) int {
	n := len(means)
	least, most := slices.Min(means), slices.Max(means)
	bound := least + stallShare*(most-least)
	first := slices.IndexFunc(means, func(y float64) bool { return y > bound })
	last := first
	for last >= 0 && last < n && means[last] > bound {
		last++
	}
	if first < 2 || slices.ContainsFunc(means[last:], func(y float64) bool { return y > bound }) {
		return 0
	}
	peak, start := first+slices.Index(means[first:last], most), first
	for start > 0 && means[start]-means[start-1] > stallStep*(most-least) {
		start--
	}
	if start < 2 || float64(peak-start) > max(2, stallLength*float64(n)) || most-means[start] < max(2*stallShare*(most-least), size) {
		return 0
	}
	return start + 1
}

const (
	stallShare  = 0.4 // of its range, above which a stall brings a backlog
	stallStep   = 0.1 // of its range, the least rise from one mean to the next in a stall
	stallLength = 0.3 // of the hold, the longest rise of a stall
	stallSize   = 5.0 // times the random variation within a mean
)

// Backlog returns the backlog at the end of each judged period, in batches; nil where too few are on
// record. Where it fell by arrivals given up, they waited until then.
func (s *Stream) Backlog(spec *result.Spec) *result.Backlog {
	var means []float64
	arrivals, before := 0, 0
	for i := 0; i < len(s.Windows); {
		w := s.Windows[i]
		dropped, intended := 0, 0
		for ; i < len(s.Windows) && s.Windows[i].From == w.From; i++ {
			dropped, intended = dropped+s.Windows[i].Dropped, intended+s.Windows[i].Intended
		}
		if w.WarmUp {
			continue
		}
		means = append(means, float64(max(w.Backlog, min(before, w.Backlog+dropped))))
		arrivals, before = arrivals+intended, w.Backlog
	}
	for len(means) >= 2*backlogBatches {
		half := make([]float64, len(means)/2)
		for i := range half {
			half[i] = (means[2*i] + means[2*i+1]) / 2
		}
		means = half
	}
	if len(means) == 0 || arrivals == 0 {
		return nil
	}
	return NewBacklog(means, s.hold, arrivals, SteadyGrowth(spec, arrivals, s.hold))
}

// StallOf describes a backlog that rose once, and not throughout the hold; "" for any other.
func StallOf(b *result.Backlog) string {
	if b == nil || !b.Stalled {
		return ""
	}
	at := slices.Index(b.Means, slices.Max(b.Means))
	text := fmt.Sprintf("the backlog rose once, to %.0f", b.Means[at])
	if last := b.Means[len(b.Means)-1]; at < len(b.Means)-1 {
		text += fmt.Sprintf(", and fell to %.0f by the end of the hold", last)
	}
	return text + ": a stall, and no trend"
}

// SteadyGrowth returns the growth of a backlog per second that result.Backlog tolerates.
func SteadyGrowth(spec *result.Spec, arrivals int, hold record.Micros) float64 {
	most := steadyShare * float64(arrivals) / hold.Seconds()
	if spec.Resolution > 0 {
		most = min(most, spec.Resolution)
	}
	return most
}
