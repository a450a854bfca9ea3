package judge

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// troubles collects what went wrong in a step as it is seen: what objects,
// requests and the target's own events tell of.
type troubles struct {
	known *knownTroubles
	open  bool // objects are removed as they age
	seen  map[BreachKind]*sighting
	// warnings are the target's own, grouped.
	warnings map[eventKey]*eventGroup
}

// sighting is one kind of trouble as it is seen in a step.
type sighting struct {
	first record.Micros
	// reports is how many objects or requests had it themselves, events how
	// many events did: both may be of the same.
	reports, events int
	what            string
	object, message string
}

func (s *sighting) count() int { return cmp.Or(s.reports, s.events) }

// eventKey groups the target's own warnings.
type eventKey struct{ reason, message string }

func (k eventKey) compare(l eventKey) int {
	return cmp.Or(cmp.Compare(k.reason, l.reason), cmp.Compare(k.message, l.message))
}

type eventGroup struct {
	count   int
	objects map[string]bool
}

// maxEventObjects bounds what is remembered of one group of warnings.
const maxEventObjects = 100_000

func newTroubles(known *knownTroubles, open bool) troubles {
	return troubles{known: known, open: open, seen: make(map[BreachKind]*sighting), warnings: make(map[eventKey]*eventGroup)}
}

// observe notes that a trouble was seen.
func (c *troubles) observe(kind BreachKind, t record.Micros, what, object, message string) *sighting {
	s, ok := c.seen[kind]
	if !ok {
		s = &sighting{first: t, what: what, object: object, message: message}
		c.seen[kind] = s
	}
	if t < s.first {
		// Events of several goroutines can be on record a little out of order.
		s.first, s.what, s.object, s.message = t, what, object, message
	}
	return s
}

// addRequest notes what a request met.
func (c *troubles) addRequest(r *record.Slot) {
	if r.Throttled > 0 {
		at := r.ThrottledAt
		if at == 0 {
			at = r.Replied // a record of before that was known
		}
		c.observe(BreachThrottling, at, "the server throttled requests (429)", r.Slot, r.Trouble).reports += r.Throttled
	}
	if r.Outcome == record.SlotFailed || r.Outcome == record.SlotUnknown {
		c.observe(BreachErrors, r.Replied, "requests failed", r.Slot, r.Error).reports++
	}
}

// addState notes what an object tells of itself. Was is the reason that it gave
// before.
func (c *troubles) addState(t record.Micros, r *record.State, was string) {
	if r.Lost == c.known.kind.There {
		switch {
		case r.Reason == "" || r.Reason != c.known.kind.Removing:
			c.observe(BreachReadiness, t, "ready objects became unready", r.Object, signature.ReasonText(r.Reason, r.Message)).reports++
		case !c.open: // else it is removed as it ages
			c.observe(BreachDeleted, t, "objects were deleted, but not by the run", r.Object, "").reports++
		}
	}
	if r.Reason == was {
		return // the same trouble in other words
	}
	if x := c.known.classify(r.Reason, ""); x != nil {
		c.observe(BreachKind(x.Class), t, x.What, r.Object, signature.ReasonText(r.Reason, r.Message)).reports++
	}
}

// addEvent notes what the target has published.
func (c *troubles) addEvent(t record.Micros, e *record.KubeEvent) {
	if x := c.known.classify(e.Reason, e.Message); x != nil {
		c.observe(BreachKind(x.Class), t, x.What, e.Object, signature.ReasonText(e.Reason, e.Message)).events++
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
	}
}

// knownTroubles are those that a kind of object knows, by the reasons that tell
// of them.
type knownTroubles struct {
	kind     *record.ObjectKind
	byReason map[string][]*record.Trouble
}

func newKnownTroubles(kind *record.ObjectKind) *knownTroubles {
	k := &knownTroubles{kind: kind, byReason: make(map[string][]*record.Trouble)}
	for i := range kind.Troubles {
		x := &kind.Troubles[i]
		for _, reason := range x.Reasons {
			k.byReason[reason] = append(k.byReason[reason], x)
		}
	}
	return k
}

// classify is what a reason tells of, nil for nothing that is known: the first
// trouble that holds.
func (k *knownTroubles) classify(reason, message string) *record.Trouble {
	for _, x := range k.byReason[reason] {
		if len(x.Message) == 0 || slices.ContainsFunc(x.Message, func(text string) bool { return strings.Contains(message, text) }) {
			return x
		}
	}
	return nil
}
