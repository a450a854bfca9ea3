package stats

import (
	"cmp"
	"slices"
	"time"
)

// A slowdown is sought in slowParts parts of what came, each of slowLeast at least. It must leave at most
// slowTo of the pace, for slowEnds parts, and be less likely by chance than slowAlpha.
const (
	slowParts  = 40
	slowLeast  = 2
	slowTo     = 0.7
	slowEnds   = 4
	slowAlpha  = 0.001
	slowSource = 1                // of the drawing of orders
	slowApart  = time.Microsecond // between two equal moments
)

// Passage is the way of one thing: the begin of its wait, and its arrival, both since any one moment.
type Passage struct{ From, At time.Duration }

// Slowdown says that things came less often from some of them on.
type Slowdown struct {
	After, Of    int     // things came before it, and in all
	Before, Then float64 // a second
}

// FindSlowdown finds the clearest slowdown in arrivals; false for none. Fewer arrive also at the load's
// end, and slow ones come last: those that came to wait later must have waited longer.
func FindSlowdown(ways []Passage) (found Slowdown, slowed bool) {
	size := len(ways) / slowParts
	if size < slowLeast {
		return found, false
	}
	slices.SortStableFunc(ways, func(a, b Passage) int { return cmp.Compare(a.From, b.From) })
	times, waited := make([]time.Duration, len(ways)), make([]float64, len(ways)+1)
	for i, w := range ways {
		times[i], waited[i+1] = w.At, waited[i]+max(w.At-w.From, 0).Seconds()
	}
	slices.Sort(times)
	var took []float64 // by each part, in seconds
	for i := size; i < len(times); i += size {
		took = append(took, max(times[i]-times[i-size], slowApart).Seconds())
	}
	changes, err := ChangePoints(took, slowAlpha, slowSource)
	if err != nil {
		return found, false
	}
	for i, c := range changes {
		begin, end := 0, len(took)
		if i > 0 {
			begin = changes[i-1].At
		}
		if i+1 < len(changes) {
			end = changes[i+1].At
		}
		pace := func(from, to int) float64 {
			return float64((to-from)*size) / max(times[to*size]-times[from*size], slowApart).Seconds()
		}
		if c.At-begin < slowEnds || end-c.At < slowEnds {
			continue
		}
		s := Slowdown{After: c.At * size, Of: len(times), Before: pace(begin, c.At), Then: pace(c.At, end)}
		earlier, later := waited[s.After]/float64(s.After), (waited[s.Of]-waited[s.After])/float64(s.Of-s.After)
		if s.Then <= slowTo*s.Before && earlier <= slowTo*later && (!slowed || s.Then/s.Before < found.Then/found.Before) {
			found, slowed = s, true
		}
	}
	return found, slowed
}
