package fold

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// places follows the places that a level is an average over, all through a run.
type places struct {
	noun  record.Noun
	now   map[string]placeNow
	first map[string]map[string]bool // those that were there as the first step of each arm began
	arm   string                     // of the last step
}

type placeNow struct {
	record.Place
	step int
}

// there reports whether a place counts for the level. The run's own changes take none from it.
func (p placeNow) there() bool { return p.State == record.PlaceThere || p.Meant && p.State != "" }

// PlaceChanges says how the places of a step differ from those of the first.
type PlaceChanges struct {
	Taken      bool // somebody took, closed or added places, or they differed from the start
	noun       record.Noun
	first, now int // how many there were at first, and then
	changes    []placeNow
}

const mostChanges = 3 // places that a sentence names

// String lists the changed places, "" for none: "nodes 4, then 3: n2 was deleted in step 1".
func (c *PlaceChanges) String() string {
	if len(c.changes) == 0 {
		return ""
	}
	var list []string
	for _, p := range c.changes[:min(len(c.changes), mostChanges)] {
		list = append(list, fmt.Sprintf("%s %s in step %d", p.Place.Place, p.What, p.step))
	}
	if more := len(c.changes) - mostChanges; more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("%s %d, then %d: %s", cmp.Or(c.noun.Many, "places"), c.first, c.now, strings.Join(list, ", "))
}

func (s *places) add(e record.Event, b *record.Place, f *Facts) {
	if len(b.Set) > 0 {
		s.declare(e.Step, b.Set, b.Meant)
		if b.Noun != nil {
			s.noun = *b.Noun
		}
		return
	}
	was, now := s.now[b.Place], placeNow{*b, max(e.Step, 1)}
	s.now[b.Place] = now
	if f == nil || b.Meant {
		return
	}
	broken := func(p placeNow) bool { return p.State == record.PlaceNotReady && !p.Meant }
	switch in, c := s.first[f.head.Arm][b.Place], &f.Places; {
	case in && now.there():
		// Damage by the load may end; what somebody did stays.
		c.changes = slices.DeleteFunc(c.changes, func(p placeNow) bool { return p.Place.Place == b.Place && broken(p) })
	case now.there() == was.there() && (!broken(was) || broken(now)):
	default:
		c.changes = slices.DeleteFunc(c.changes, func(p placeNow) bool { return p.Place.Place == b.Place })
		c.changes, c.now, c.Taken = append(c.changes, now), s.count(), c.Taken || !broken(now)
		if in {
			f.Troubles.observe(result.BreachPlace, e.T, strings.TrimPrefix(s.noun.One+" "+b.Place, " ")+" "+b.What, b.Place, "").reports++
		}
	}
}

// declare takes in all places. Those that the run itself meant to add, or to do without, change nothing.
func (s *places) declare(step int, names []string, meant bool) {
	before := s.now
	s.now = make(map[string]placeNow, len(names))
	for _, name := range names {
		s.now[name] = placeNow{Place: record.Place{Place: name, State: record.PlaceThere, What: "was added", Meant: meant}, step: max(step, 1)}
	}
	for name, p := range before {
		if _, there := s.now[name]; there {
			continue
		}
		if p.there() {
			p = placeNow{Place: record.Place{Place: name, State: record.PlaceGone, What: "was missing", Meant: meant}, step: max(step, 1)}
		}
		s.now[name] = p
	}
}

func (s *places) count() (n int) {
	for _, p := range s.now {
		if p.there() {
			n++
		}
	}
	return n
}

func (s *places) begin(f *Facts) {
	s.arm = f.head.Arm
	if s.first[s.arm] == nil && len(s.now) > 0 {
		first := make(map[string]bool, len(s.now))
		for name, p := range s.now {
			if p.there() {
				first[name] = true
			}
		}
		s.first[s.arm] = first
	}
	f.Places = s.changed()
}

// changed returns the places that differ from the first step of the arm.
func (s *places) changed() PlaceChanges {
	first := s.first[s.arm]
	c := PlaceChanges{noun: s.noun, first: len(first), now: s.count()}
	for _, name := range slices.Sorted(maps.Keys(s.now)) {
		if p := s.now[name]; len(first) > 0 && p.there() != first[name] && !(p.there() && p.Meant) {
			c.changes, c.Taken = append(c.changes, p), true
		}
	}
	return c
}

func (s *places) end(f *Facts) {
	f.away = make([]placeNow, len(f.placeNames))
	for i, name := range f.placeNames {
		if p, known := s.now[name]; known && !p.there() {
			f.away[i] = p
		}
	}
}

// awayOf returns what happened to an object's place that is gone; the state is "" for any other place.
func (f *Facts) awayOf(u *unit) (p placeNow) {
	if o := u.object; o != nil && o.where >= 0 && int(o.where) < len(f.away) {
		return f.away[o.where]
	}
	return p
}

// levelLeft returns the level over the places at the end, where those differ from the start.
func (f *Facts) levelLeft() (float64, bool) {
	if len(f.Places.changes) == 0 || f.places == 0 || f.head.Open {
		return 0, false
	}
	n := f.Others
	for i := range f.units {
		if f.awayOf(&f.units[i]).State == "" {
			n++
		}
	}
	return result.Round(float64(n)/float64(f.places), 2), true
}
