package fold

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// Troubles collects what went wrong in a step: reports of objects and requests, and the target's events.
type Troubles struct {
	known *record.KnownTroubles
	open  bool // objects are removed as they age
	Seen  map[result.BreachKind]*Sighting

	warnings map[eventKey]*eventGroup // the target's own, grouped
}

// Sighting says when and how often one kind of trouble was seen in a step.
type Sighting struct {
	First           record.Micros
	reports, events int // by objects or requests themselves, and by events, which may be about the same
	What            string
	Object, Message string
}

// Count returns how often it was seen.
func (s *Sighting) Count() int { return cmp.Or(s.reports, s.events) }

// eventKey groups the target's own warnings.
type eventKey struct{ reason, message string }

func (k eventKey) compare(l eventKey) int {
	return cmp.Or(cmp.Compare(k.reason, l.reason), cmp.Compare(k.message, l.message))
}

type eventGroup struct {
	count   int
	objects map[string]bool
}

const maxEventObjects = 100_000 // bound of the objects that are remembered of one group of warnings

func newTroubles(known *record.KnownTroubles, open bool) Troubles {
	return Troubles{known: known, open: open, Seen: make(map[result.BreachKind]*Sighting), warnings: make(map[eventKey]*eventGroup)}
}

func (c *Troubles) observe(kind result.BreachKind, t record.Micros, what, object, message string) *Sighting {
	s, ok := c.Seen[kind]
	if !ok {
		s = &Sighting{First: t, What: what, Object: object, Message: message}
		c.Seen[kind] = s
	}
	if t < s.First {
		// Events of several goroutines can be on record a little out of order.
		s.First, s.What, s.Object, s.Message = t, what, object, message
	}
	return s
}

func (c *Troubles) addRequest(r *record.Slot) {
	if r.Throttled > 0 {
		at := cmp.Or(r.ThrottledAt, r.Replied) // old records have only the latter
		c.observe(result.BreachThrottling, at, "the server throttled requests (429)", r.Slot, r.Trouble).reports += r.Throttled
	}
	if r.Outcome == record.SlotFailed || r.Outcome == record.SlotUnknown {
		c.observe(result.BreachErrors, r.Replied, "requests failed", r.Slot, r.Error).reports++
	}
}

// addState notes what an object reports of itself. Was is its previous reason, removed says that the run has it
// removed.
func (c *Troubles) addState(t record.Micros, r *record.State, was string, removed bool) {
	if r.Lost != "" {
		switch {
		case r.Reason == "" || r.Reason != c.known.Kind.Removing:
			c.observe(result.BreachReadiness, t, "ready objects became unready", r.Object, signature.ReasonText(r.Reason, r.Message)).reports++
		case !c.open && !removed: // else it is removed as it ages
			c.observe(result.BreachDeleted, t, "objects were deleted, but not by the run", r.Object, "").reports++
		}
	}
	if r.Reason == was {
		return // the same trouble in other words
	}
	if x := c.known.Of(r.Class, r.Reason); x != nil {
		c.observe(result.BreachKind(x.Class), t, x.What, r.Object, signature.ReasonText(r.Reason, r.Message)).reports++
	}
}

func (c *Troubles) addEvent(t record.Micros, e *record.TargetEvent) {
	if x := c.known.Classify(e.Reason, e.Message); x != nil {
		c.observe(result.BreachKind(x.Class), t, x.What, e.Object, signature.ReasonText(e.Reason, e.Message)).events++
	}
	if e.Type != "Warning" {
		return
	}
	key := eventKey{e.Reason, normalise(e.Message, e.Object)}
	g, ok := c.warnings[key]
	if !ok {
		g = &eventGroup{objects: make(map[string]bool)}
		c.warnings[key] = g
	}
	g.count++
	if len(g.objects) < maxEventObjects {
		g.objects[e.Object] = true
		if e.For != "" {
			g.objects[e.For] = true
		}
	}
}

// Final says what kept objects that will never be there, the most frequent trouble first; or "".
func (f *Facts) Final() string {
	counts := make(map[*record.Trouble]int)
	for i := range f.units {
		if o := f.units[i].object; f.outcomes[i] == unitNeverReady && o != nil && o.failed {
			if x := f.Troubles.known.Of(o.class, o.reason); x != nil {
				counts[x]++
			}
		}
	}
	list := slices.SortedFunc(maps.Keys(counts), func(a, b *record.Trouble) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.What, b.What))
	})
	var parts []string
	for _, x := range list {
		parts = append(parts, fmt.Sprintf("%d never will: %s", counts[x], x.What))
	}
	return strings.Join(parts, "; ")
}
