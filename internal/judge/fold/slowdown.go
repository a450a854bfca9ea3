package fold

import (
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// slowdownOf finds the first milestone that was reached less often from some object on, or nil.
func slowdownOf(spec *result.Spec, f *Facts) *result.Slowdown {
	if f.head.Open {
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
		var ways []stats.Passage
		for i, u := range f.ownUnits() {
			if t := u.reached(m); t != Never {
				ways = append(ways, stats.Passage{From: since[i].Duration(), At: t.Duration()})
				since[i] = max(since[i], t)
			}
		}
		if s, slowed := stats.FindSlowdown(ways); slowed {
			return &result.Slowdown{
				Milestone: name, For: spec.Kind.Owner(name), After: s.After, Of: s.Of, Before: result.Round(s.Before, 3), Then: result.Round(s.Then, 3),
			}
		}
		if m == f.there {
			break
		}
	}
	return nil
}
