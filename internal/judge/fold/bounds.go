package fold

import (
	"maps"

	"plimsoll.dev/plimsoll/internal/record"
)

// names are what a record names of one sort. There are a few in any run; what a
// damaged or hostile record names beyond a bound is one name, others: its figures
// are kept, and their number does not grow with the record.
type names struct {
	most int
	seen map[string]bool
}

const others = "(others)"

// of is the name that something is kept by.
func (n *names) of(name string) string {
	switch {
	case n.seen[name] || name == "":
		return name
	case len(n.seen) >= n.most:
		return others
	}
	if n.seen == nil {
		n.seen = make(map[string]bool)
	}
	n.seen[name] = true
	return name
}

// counts are those of names that are kept.
func (n *names) counts(by map[string]int) map[string]int {
	kept, whole := by, true
	for name, count := range by {
		to := n.of(name)
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

// bounds are the names of each sort that grow a result, or the time that it takes.
type bounds struct {
	milestones, components, resources, sources, guards, places, failures names
}

func newBounds() bounds {
	few, many := func() names { return names{most: 200} }, func() names { return names{most: 2000} }
	return bounds{milestones: few(), components: few(), resources: few(), sources: many(), guards: few(), places: many(), failures: few()}
}

// of is an event with the names that are kept: itself, in any run that was made.
func (b *bounds) of(body record.Body) record.Body {
	switch x := body.(type) {
	case *record.Object:
		if m, c := b.milestones.of(x.Milestone), b.components.of(x.Component); m != x.Milestone || c != x.Component {
			kept := *x
			kept.Milestone, kept.Component = m, c
			return &kept
		}
	case *record.Slot:
		if c, r := b.components.of(x.Component), b.resources.of(x.Resource); c != x.Component || r != x.Resource {
			kept := *x
			kept.Component, kept.Resource = c, r
			return &kept
		}
	case *record.Reading:
		if s := b.sources.of(x.Source); s != x.Source {
			kept := *x
			kept.Source = s
			return &kept
		}
	case *record.Guard:
		if g := b.guards.of(x.Name); g != x.Name {
			kept := *x
			kept.Name = g
			return &kept
		}
	case *record.Request:
		kept := *x
		kept.Component, kept.Place, kept.Failed = b.components.of(x.Component), b.places.of(x.Place), b.failures.of(x.Failed)
		return &kept
	case *record.Window:
		kept := *x
		kept.Component, kept.Failed = b.components.of(x.Component), b.failures.counts(x.Failed)
		kept.ByPlace, kept.FailedByPlace = b.places.counts(x.ByPlace), b.places.counts(x.FailedByPlace)
		for name := range x.Histograms {
			if b.milestones.of(name) != name {
				kept.Histograms = maps.Clone(kept.Histograms)
				delete(kept.Histograms, name)
			}
		}
		return &kept
	}
	return body
}
