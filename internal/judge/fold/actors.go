package fold

import "plimsoll.dev/plimsoll/internal/record"

// Silence is a time in a step in which an actor did nothing although objects waited for it.
type Silence struct {
	record.Actor
	At       record.Micros // the last report of it, or its end
	Doubtful bool          // only the times of the objects show it: the actor may have been slow
}

// Seconds returns how long it lasted.
func (s *Silence) Seconds() float64 { return (s.At - s.Since).Seconds() }

func (s *Silence) String() string { return s.Sentence(s.At) }

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
