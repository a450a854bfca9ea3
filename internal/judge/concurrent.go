package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Concurrent is how many objects were at most between two milestones at once, by
// when news of them came, beside the target's own limits.
type Concurrent struct {
	record.Concurrent
	Most     int    `json:"most"`
	PerPlace int    `json:"perPlace"` // of the place that had most
	Place    string `json:"place,omitempty"`
	// LeftOut are objects that had a trouble between the milestones: since when
	// they were not under way is not known.
	LeftOut int `json:"leftOut"`
}

// concurrentIn counts a step's objects, and says how far the limits were used up
// while others waited, the most used one first; nil where its kind does not ask
// for it.
func concurrentIn(spec *Spec, f *facts) (a *Concurrent, bounds []BoundShare) {
	if spec.Kind.Concurrent == nil {
		return nil, nil
	}
	a = &Concurrent{Concurrent: *spec.Kind.Concurrent}
	from, to := f.of(a.From), f.of(a.To)
	var all, waits []edge
	byPlace, waitsAt := make(map[int32][]edge), make(map[int32][]edge)
	for i := range f.units {
		u := &f.units[i]
		o := u.object
		if o == nil {
			continue
		}
		if u.own && !o.troubled {
			wait := []edge{{u.zero, 1}, {min(o.reached(from), f.end), -1}}
			waits = append(waits, wait...)
			if o.node >= 0 {
				waitsAt[o.node] = append(waitsAt[o.node], wait...)
			}
		}
		if o.reached(from) == never {
			continue
		}
		if o.troubled {
			a.LeftOut++
			continue
		}
		edges := []edge{{o.reached(from), 1}}
		switch end := o.reached(to); {
		case end != never:
			edges = append(edges, edge{end, -1})
		case o.reached(f.gone) != never:
			edges = append(edges, edge{o.reached(f.gone), -1})
		}
		all = append(all, edges...)
		if o.node >= 0 {
			byPlace[o.node] = append(byPlace[o.node], edges...)
		}
	}
	a.Most = mostAtOnce(all)
	for _, node := range slices.Sorted(maps.Keys(byPlace)) {
		if most := mostAtOnce(byPlace[node]); most > a.PerPlace {
			a.PerPlace, a.Place = most, f.nodeName[node]
		}
	}
	var use, useAt usedUp
	use.add(all, waits)
	for node, edges := range byPlace {
		useAt.add(edges, waitsAt[node])
	}
	bounds = append(a.bound(use, a.Limit, a.Most, "", a.Setting), a.bound(useAt, a.PerPlaceLimit, a.PerPlace, " of one "+spec.Kind.Place.One, a.PerPlaceSetting)...)
	slices.SortStableFunc(bounds, func(x, y BoundShare) int { return cmp.Compare(y.Share, x.Share) })
	return a, bounds
}

// usedUp is how many objects were under way, on average, while others waited:
// each moment counts as often as it was waited through.
type usedUp struct {
	weighted, waited float64 // by the second
	from, to         record.Micros
}

// add takes in those under way and those that waited, of all or of one place.
func (n *usedUp) add(underWay, waits []edge) {
	type step struct {
		edge
		waits bool
	}
	edges := make([]step, 0, len(underWay)+len(waits))
	for i, list := range [][]edge{underWay, waits} {
		for _, e := range list {
			edges = append(edges, step{e, i == 1})
		}
	}
	slices.SortFunc(edges, func(a, b step) int { return cmp.Compare(a.t, b.t) })
	going, waiting := 0, 0
	for i, e := range edges {
		if i > 0 {
			span := (e.t - edges[i-1].t).Seconds()
			n.weighted, n.waited = n.weighted+float64(going*waiting)*span, n.waited+float64(waiting)*span
		}
		if e.waits {
			waiting += e.delta
			if n.to == 0 || e.t < n.from {
				n.from = e.t
			}
			n.to = max(n.to, e.t)
		} else {
			going += e.delta
		}
	}
}

// limitFull is the share of a limit of objects at once that must be in use while
// others wait: the next one begins a little after one has ended.
const limitFull = 0.7

// bound is how far a limit was used up, if there is one and some waited.
func (a *Concurrent) bound(n usedUp, limit, most int, where, setting string) []BoundShare {
	if limit == 0 || !(n.waited > 0) {
		return nil
	}
	share := n.weighted / n.waited / float64(limit)
	waiting := n.waited / (n.to - n.from).Seconds()
	return []BoundShare{{
		Name:  cmp.Or(setting, "limit at once"+where),
		What:  fmt.Sprintf("the limit of %d between %s and %s at once%s%s", limit, a.From, a.To, where, strings.TrimSuffix(" ("+setting+")", " ()")),
		Share: round(share, 3), Held: most >= limit && share >= limitFull && waiting >= leastWaiting, Waiting: new(round(waiting, 1)),
	}}
}

// breach says which limit did not hold, "" for none.
func (a *Concurrent) breach() string {
	switch {
	case a == nil:
	case a.Limit > 0 && a.Most > a.Limit:
		return fmt.Sprintf("%d objects were between %s and %s at once, more than the target's own limit of %d", a.Most, a.From, a.To, a.Limit)
	case a.PerPlaceLimit > 0 && a.PerPlace > a.PerPlaceLimit:
		return fmt.Sprintf("%d objects of %s were between %s and %s at once, more than the target's own limit of %d for one place", a.PerPlace, a.Place, a.From, a.To, a.PerPlaceLimit)
	}
	return ""
}
