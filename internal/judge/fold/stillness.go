package fold

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

const (
	leastStill = record.Micros(5e6) // shortest time without any work that counts as standing still
	// stillWeight is the least factor beyond the usual wait, certainWeight that without any doubt.
	stillWeight, certainWeight = 3, 20
	// usualWaits waits show the usual one, and at least stillWaiting objects wait at its end.
	usualWaits, stillWaiting = 10, 3
	// Without a usual wait it lasts aloneWeight times as long, and this share of objects moves at once.
	aloneWeight   = 2
	releasedShare = 0.9
	stillsTried   = 20 // the longest gaps of one actor
)

// interval is a wait for an actor. Open says that it did not end within the step.
type interval struct {
	from, to record.Micros
	open     bool
}

// stillness returns the times in which an actor did nothing although objects waited much longer than
// usual. An actor that was stopped may renew its lease before anybody misses it; then only the times of
// the objects show it. A time does not count in which all writes, all news or this program stood still,
// or in which another actor did nothing.
func (f *Facts) stillness() []Silence {
	var list []Silence
	waits, owners := f.waitsByOwner()
	for _, owner := range owners {
		for _, gap := range gapsOf(waits[owner]) {
			if s, still := f.stillIn(owner, gap, waits[owner]); still {
				list = append(list, s)
			}
		}
	}
	slices.SortFunc(list, func(a, b Silence) int { return cmp.Compare(a.Since, b.Since) })
	return list
}

// waitsByOwner returns how long each of the step's own objects waited for each actor, and the actors in
// order of their milestones. The first actor answers requests: see standstills.
func (f *Facts) waitsByOwner() (waits map[string][]interval, owners []string) {
	waits = make(map[string][]interval)
	for _, u := range f.ownUnits() {
		if u.object == nil {
			continue
		}
		since := u.sent()
		for m, name := range f.names {
			owner := f.kind.Owner(name)
			if m == f.gone || m == f.created {
				since = max(since, u.object.reached(m))
				continue
			}
			at := u.object.reached(m)
			if at == Never && m != u.slot.arrival || !f.reaches(u.slot, m) {
				continue // some systems do not report every milestone
			}
			if !slices.Contains(owners, owner) {
				owners = append(owners, owner)
			}
			switch {
			case at != Never:
				waits[owner] = append(waits[owner], interval{since, max(at, since), false})
				since = max(since, at)
			case !u.object.gone && !u.object.failed && u.object.reason == "":
				waits[owner] = append(waits[owner], interval{since, f.End, true})
			}
			if m == u.slot.arrival {
				break
			}
		}
	}
	return waits, owners
}

// gapsOf returns the longest times without the end of any wait.
func gapsOf(waits []interval) []interval {
	ends := make([]record.Micros, 0, len(waits)+2)
	first := unreached
	for _, w := range waits {
		ends, first = append(ends, w.to), min(first, w.from)
	}
	if len(ends) == 0 {
		return nil
	}
	ends = append(ends, first)
	slices.Sort(ends)
	var gaps []interval
	for i := 1; i < len(ends); i++ {
		if ends[i]-ends[i-1] >= leastStill {
			gaps = append(gaps, interval{from: ends[i-1], to: ends[i]})
		}
	}
	slices.SortFunc(gaps, func(a, b interval) int { return cmp.Compare(b.to-b.from, a.to-a.from) })
	return gaps[:min(len(gaps), stillsTried)]
}

func (f *Facts) stillIn(owner string, gap interval, waits []interval) (Silence, bool) {
	var usual []record.Micros
	waiting, released, since := 0, 0, gap.to
	for _, w := range waits {
		switch {
		case w.from < gap.to && w.to >= gap.to:
			waiting, since = waiting+1, min(since, max(w.from, gap.from))
			if !w.open && w.to <= gap.to+releasedWithin {
				released++
			}
		case (w.to <= gap.from || w.from >= gap.to) && !w.open:
			usual = append(usual, w.to-w.from)
		}
	}
	gap.from = since // before that nobody waited
	length := gap.to - gap.from
	if waiting < stillWaiting || length < leastStill || f.otherwiseStill(gap) {
		return Silence{}, false
	}
	evidence, doubtful := "", true
	if len(usual) >= usualWaits {
		slices.Sort(usual)
		most := usual[len(usual)*9/10]
		if length < stillWeight*most {
			return Silence{}, false
		}
		doubtful = length < certainWeight*most
		evidence = fmt.Sprintf("; 90%% of the others waited for at most %s", most.Duration().Round(time.Millisecond))
	} else if length < aloneWeight*leastStill || float64(released) < releasedShare*float64(waiting) {
		return Silence{}, false // it may always take so long
	}
	return Silence{At: gap.to, Doubtful: doubtful, Actor: record.Actor{
		Actor: owner, Says: "nothing came from the " + owner, Since: gap.from, Over: gap.to < f.End, Waiting: waiting, Of: f.kind.Object,
		Message: fmt.Sprintf("from %s to %s after the step's start, then %d went on within a second%s", seconds(gap.from-f.Start), seconds(gap.to-f.Start), released, evidence),
	}}, true
}

// otherwiseStill reports whether something else explains that nothing was seen in a time.
func (f *Facts) otherwiseStill(gap interval) bool {
	length := gap.to - gap.from
	if d := f.readings.OwnDelay; d != nil && d.Max >= length.Seconds()/2 || f.canaries.LagAt(gap.to) >= length/2 {
		return true
	}
	overlaps := func(from, to record.Micros) bool { return from < gap.to && to > gap.from }
	return slices.ContainsFunc(f.Stood, func(s Standstill) bool { return overlaps(s.From, s.To) }) ||
		slices.ContainsFunc(f.Silent, func(s Silence) bool { return overlaps(s.Since, s.At) })
}

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
