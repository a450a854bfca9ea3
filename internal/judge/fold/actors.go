package fold

import "plimsoll.dev/plimsoll/internal/record"

// Silence is a time in a step in which somebody did nothing whose work was waited
// for. At is when that was last told, or when it was over.
type Silence struct {
	record.Actor
	At record.Micros
	// Doubtful says that the times of the objects alone show it, and not clearly: the
	// actor may have been slow, and not stopped.
	Doubtful bool
}

// Seconds is how long it was.
func (s *Silence) Seconds() float64 { return (s.At - s.Since).Seconds() }

// String says it in a sentence.
func (s *Silence) String() string { return s.Sentence(s.At) }

// addActor takes in that an actor does nothing, or that this is over.
func (f *Facts) addActor(t record.Micros, r *record.Actor) {
	for i := range f.Silent {
		if s := &f.Silent[i]; s.Actor.Actor == r.Actor && !s.Over {
			if s.At, s.Over = t, r.Over; !r.Over {
				s.Waiting, s.Of, s.Message = r.Waiting, r.Of, r.Message
			}
			return
		}
	}
	if !r.Over && len(f.Silent) < maxTold {
		f.Silent = append(f.Silent, Silence{Actor: *r, At: t})
	}
}
