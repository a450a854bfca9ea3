package record

import (
	"fmt"
	"hash/maphash"
	"maps"
)

// The bounds of a history that is read, which may be hostile, and small as a file. The first three bound the
// memory for judging it, the others the time.
const (
	mostObjects = 500_000    // bound of the objects since the target was last empty; one takes about 2 kB
	mostBeside  = 1 << 30    // bytes of lines that are not about objects
	mostSteps   = 20_000     // of a run
	mostJudged  = 50_000_000 // bound of the objects in all steps: each is judged at every step's end that it stands in
	mostText    = 8 << 30    // bytes of the unpacked file
)

// BoundError says that a history has more of something than is read.
type BoundError struct {
	What string
	Most int
}

func (e *BoundError) Error() string {
	return fmt.Sprintf("it has more than %d %s, which is the most that is read", e.Most, e.What)
}

type bounds struct {
	seed                         maphash.Seed
	seen                         map[uint64]struct{} // objects with news, by the hash of their names
	asked, beside, steps, judged int
}

func newBounds() *bounds { return &bounds{seed: maphash.MakeSeed(), seen: make(map[uint64]struct{})} }

// add takes in the next event, with the length of its line. The error is a *BoundError.
func (b *bounds) add(e Event, length int) error {
	switch body := e.Body.(type) {
	case *Slot:
		b.asked += min(max(body.Units, 1), mostObjects+1) // without an overflow
	case *Object:
		b.seen[maphash.String(b.seed, body.Object)] = struct{}{}
	case *State:
		b.seen[maphash.String(b.seed, body.Object)] = struct{}{}
	case *RunEvent:
		if body.Phase == PhaseResume {
			b.empty()
		}
	case *StepEvent:
		switch body.Phase {
		case PhaseReset:
			b.empty()
		case PhaseStart:
			b.steps++
		case PhaseEnd:
			b.judged += b.asked
		}
	default:
		b.beside += length
	}
	for _, of := range [...]struct {
		n, most int
		what    string
	}{
		{b.asked, mostObjects, "objects at a time"}, {len(b.seen), mostObjects, "objects with news at a time"},
		{b.beside, mostBeside, "bytes of events beside those of objects"}, {b.steps, mostSteps, "steps"}, {b.judged, mostJudged, "objects in all of its steps"},
	} {
		if of.n > of.most {
			return &BoundError{of.what, of.most}
		}
	}
	return nil
}

func (b *bounds) empty() {
	b.asked = 0
	clear(b.seen)
}

// OtherNames is the one name for all that a record names beyond a bound.
const OtherNames = "(others)"

// names holds the names of one sort. Any run has a few. What a damaged or hostile record names beyond a
// bound gets one name: its figures are kept, and their number does not grow with the record.
type names struct {
	most int
	seen map[string]bool
}

func (n *names) kept(name string) string {
	switch {
	case n.seen[name] || name == "":
		return name
	case len(n.seen) >= n.most:
		return OtherNames
	case n.seen == nil:
		n.seen = make(map[string]bool)
	}
	n.seen[name] = true
	return name
}

func (n *names) counts(by map[string]int) map[string]int {
	kept, whole := by, true
	for name, count := range by {
		to := n.kept(name)
		if to == name {
			continue
		}
		if whole {
			kept, whole = maps.Clone(by), false
		}
		delete(kept, name)
		kept[to] += count
	}
	return kept
}

// Names bounds the names of each sort that grow a result, or the time that it takes.
type Names struct {
	milestones, components, resources, sources, guards, places, failures names
}

// NewNames returns the bounds of one run.
func NewNames() Names {
	few, many := names{most: 200}, names{most: 2000}
	return Names{milestones: few, components: few, resources: few, sources: many, guards: few, places: many, failures: few}
}

// Kept returns an event with the names that are kept, usually all of its own.
func (b *Names) Kept(body Body) Body {
	switch x := body.(type) {
	case *Object:
		if m, c := b.milestones.kept(x.Milestone), b.components.kept(x.Component); m != x.Milestone || c != x.Component {
			kept := *x
			kept.Milestone, kept.Component = m, c
			return &kept
		}
	case *Slot:
		if c, r := b.components.kept(x.Component), b.resources.kept(x.Resource); c != x.Component || r != x.Resource {
			kept := *x
			kept.Component, kept.Resource = c, r
			return &kept
		}
	case *Reading:
		kept := *x
		kept.Source = b.sources.kept(x.Source)
		return &kept
	case *Guard:
		kept := *x
		kept.Name = b.guards.kept(x.Name)
		return &kept
	case *Request:
		kept := *x
		kept.Component, kept.Place, kept.Failed = b.components.kept(x.Component), b.places.kept(x.Place), b.failures.kept(x.Failed)
		return &kept
	case *Window:
		kept := *x
		kept.Component, kept.Failed = b.components.kept(x.Component), b.failures.counts(x.Failed)
		kept.ByPlace, kept.FailedByPlace = b.places.counts(x.ByPlace), b.places.counts(x.FailedByPlace)
		for name := range x.Histograms {
			if b.milestones.kept(name) != name {
				kept.Histograms = maps.Clone(kept.Histograms)
				delete(kept.Histograms, name)
			}
		}
		return &kept
	}
	return body
}
