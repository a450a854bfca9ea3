package fold

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// A slowdown is looked for in this many parts of the objects, each of so many at
// least; it must leave so much of the pace at most, for so many parts, and be
// less likely by chance than alpha.
const (
	slowParts  = 40
	slowLeast  = 2
	slowTo     = 0.7
	slowEnds   = 4
	slowAlpha  = 0.001
	slowSource = 1 // of the drawing of orders
)

// passage is an object's way to a milestone: since when it waited, and when it was
// there.
type passage struct{ from, at record.Micros }

// slowdownOf finds the first milestone of a closed step that was reached less
// often from some object on; nil for none.
func slowdownOf(spec *result.Spec, f *Facts) *result.Slowdown {
	if f.Stream != nil || f.head.Open {
		return nil
	}
	since := make([]record.Micros, len(f.units)) // of the last milestone, or of the request
	for i := range since {
		since[i] = f.units[i].sent()
	}
	for m, name := range f.names {
		if m == f.gone {
			continue
		}
		var ways []passage
		for i := range f.units {
			if u := &f.units[i]; u.own && u.object != nil && u.object.reached(m) != Never {
				ways = append(ways, passage{since[i], u.object.reached(m)})
				since[i] = max(since[i], u.object.reached(m))
			}
		}
		if s := slowdownIn(ways); s != nil {
			s.Milestone, s.For = name, spec.Kind.Owner(name)
			return s
		}
		if m == f.there {
			break
		}
	}
	return nil
}

// slowdownIn finds the clearest slowdown in when objects reached a milestone. Where
// the load itself comes to its end fewer arrive, too, and where each takes its own
// time the slow ones come last: that is none. So who came to wait later must have
// waited longer, as behind others.
func slowdownIn(ways []passage) *result.Slowdown {
	size := len(ways) / slowParts
	if size < slowLeast {
		return nil
	}
	slices.SortStableFunc(ways, func(a, b passage) int { return cmp.Compare(a.from, b.from) })
	times, waited := make([]record.Micros, len(ways)), make([]float64, len(ways)+1)
	for i, w := range ways {
		times[i], waited[i+1] = w.at, waited[i]+max(w.at-w.from, 0).Seconds()
	}
	slices.Sort(times)
	var took []float64 // by each part, in seconds
	for i := size; i < len(times); i += size {
		took = append(took, max(times[i]-times[i-size], 1).Seconds())
	}
	changes, err := stats.ChangePoints(took, slowAlpha, slowSource)
	if err != nil {
		return nil
	}
	var found *result.Slowdown
	for i, c := range changes {
		begin, end := 0, len(took)
		if i > 0 {
			begin = changes[i-1].At
		}
		if i+1 < len(changes) {
			end = changes[i+1].At
		}
		pace := func(from, to int) float64 {
			return float64((to-from)*size) / max(times[to*size]-times[from*size], 1).Seconds()
		}
		if c.At-begin < slowEnds || end-c.At < slowEnds {
			continue
		}
		s := &result.Slowdown{After: c.At * size, Of: len(times), Before: pace(begin, c.At), Then: pace(c.At, end)}
		earlier, later := waited[s.After]/float64(s.After), (waited[s.Of]-waited[s.After])/float64(s.Of-s.After)
		if s.Then <= slowTo*s.Before && earlier <= slowTo*later && (found == nil || s.Then/s.Before < found.Then/found.Before) {
			found = s
		}
	}
	if found != nil {
		found.Before, found.Then = result.Round(found.Before, 3), result.Round(found.Then, 3)
	}
	return found
}
