package record

import "maps"

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
