package fold

import (
	"cmp"
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

const (
	backlogBatches = 20
	// SteadyRise is how much of the hold's arrivals a backlog may rise by, in
	// percent.
	SteadyRise = 5.0
	// leastRise is how many arrivals a backlog must rise by to be told from its
	// own steps: in a short hold with few arrivals, one of them that is slow
	// makes a slope that is more than steadyRise of them.
	leastRise = 3.0
	// throughout is the part of the hold, from its start, in which a backlog
	// that grows throughout must grow as well.
	throughout = 0.75
)

// backlogOf is the backlog over the hold of an open step, nil where the hold was
// not made whole.
func backlogOf(f *Facts, arrivals int) *result.Backlog {
	from, to := f.held()
	if f.Cut() || to <= from || arrivals == 0 || f.hold <= 0 || to < f.Reached+f.hold {
		return nil
	}
	var changes []change
	for _, s := range f.own {
		if s.outcome == record.SlotFailed || s.outcome == record.SlotDropped {
			continue
		}
		changes = append(changes, change{s.intended, max(s.units, len(s.objects))})
		for _, o := range s.objects {
			if t := o.reached(f.there); t != Never {
				changes = append(changes, change{max(t, s.intended), -1})
			}
		}
	}
	return newBacklog(batchMeans(changes, from, to), to-from, arrivals)
}

// change is by how many a backlog changes at a time.
type change struct {
	at record.Micros
	by int
}

// batchMeans are the means over time, in equal batches of a span, of a number
// that changes.
func batchMeans(changes []change, from, to record.Micros) []float64 {
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	means := make([]float64, backlogBatches)
	n, next := 0, 0
	for i := range means {
		at := from + (to-from)*record.Micros(i)/backlogBatches
		end := from + (to-from)*record.Micros(i+1)/backlogBatches
		area, began := 0.0, at
		for ; next < len(changes) && changes[next].at < end; next++ {
			if t := changes[next].at; t > began {
				area += float64(n) * (t - began).Seconds()
				began = t
			}
			n += changes[next].by
		}
		area += float64(n) * (end - began).Seconds()
		if end > at {
			means[i] = area / (end - at).Seconds()
		}
	}
	return means
}

// newBacklog judges the means of a backlog over a hold with so many arrivals.
func newBacklog(means []float64, hold record.Micros, arrivals int) *result.Backlog {
	b := &result.Backlog{Means: means}
	each := hold.Seconds() / float64(len(means))
	whole, ok := risingSlope(means, each)
	if !ok {
		return b
	}
	b.Slope = result.Interval{Value: result.Finite(whole.Value), Lo: result.Finite(whole.Lo), Hi: result.Finite(whole.Hi)}
	rise := whole.Value * hold.Seconds()
	b.Rise = result.Round(100*rise/float64(arrivals), 2)
	if whole.Lo <= 0 || b.Rise <= SteadyRise || rise < leastRise {
		return b
	}
	early, ok := risingSlope(means[:int(throughout*float64(len(means)))], each)
	b.Growing = ok && early.Lo > 0
	b.Stalled = !b.Growing
	return b
}

// risingSlope is by how much means grow a second, each of so many seconds; not
// known of too few.
func risingSlope(means []float64, each float64) (stats.Estimate, bool) {
	x := make([]float64, len(means))
	for i := range x {
		x[i] = float64(i) * each
	}
	l, err := stats.FitLine(x, means, stats.Absolute, result.Confidence)
	return l.Slope, err == nil
}

// backlog is the backlog of a stream over its hold: that at the end of each
// period that is judged, in batches where there are more. It is nil where too
// few are on record. The windows that several components have of one period have
// the same backlog. Where it fell because arrivals were given up, and not because
// they were done, they had waited until then.
func (s *Stream) backlog() *result.Backlog {
	var means []float64
	arrivals, before := 0, 0
	for i := 0; i < len(s.windows); {
		w := s.windows[i]
		dropped, intended := 0, 0
		for ; i < len(s.windows) && s.windows[i].from == w.from; i++ {
			dropped, intended = dropped+s.windows[i].dropped, intended+s.windows[i].intended
		}
		if w.warmUp {
			continue
		}
		means = append(means, float64(max(w.backlog, min(before, w.backlog+dropped))))
		arrivals, before = arrivals+intended, w.backlog
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
	return newBacklog(means, s.hold, arrivals)
}

// StallOf says what a backlog that rose at the end of the hold alone is, "" for
// any other.
func StallOf(b *result.Backlog) string {
	if b == nil || !b.Stalled {
		return ""
	}
	at := int(throughout * float64(len(b.Means)))
	return fmt.Sprintf("the backlog rose from %.0f to %.0f in the last quarter of the hold and not before: a stall, and no trend", b.Means[at-1], b.Means[len(b.Means)-1])
}
