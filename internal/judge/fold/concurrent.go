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

// concurrentIn counts objects at once, and says how far each limit was used up while others waited.
func concurrentIn(spec *result.Spec, f *Facts) (a *result.Concurrent, bounds []result.BoundShare) {
	if spec.Kind.Concurrent == nil {
		return nil, nil
	}
	a = &result.Concurrent{Concurrent: *spec.Kind.Concurrent}
	from, to := f.find(a.From), f.find(a.To)
	var all, waits []edge
	byPlace, waitsAt := make(map[int32][]edge), make(map[int32][]edge)
	for i := range f.units {
		u := &f.units[i]
		o := u.object
		if o == nil {
			continue
		}
		if u.own && !o.troubled {
			wait := []edge{{u.sent(), 1}, {min(o.reached(from), f.End), -1}}
			waits = append(waits, wait...)
			if o.where >= 0 {
				waitsAt[o.where] = append(waitsAt[o.where], wait...)
			}
		}
		if o.reached(from) == Never {
			continue
		}
		if o.troubled {
			a.LeftOut++
			continue
		}
		edges := []edge{{o.reached(from), 1}}
		end := o.reached(to)
		if end == Never {
			end = o.reached(f.gone)
		}
		if end != Never {
			edges = append(edges, edge{end, -1})
		}
		all = append(all, edges...)
		if o.where >= 0 {
			byPlace[o.where] = append(byPlace[o.where], edges...)
		}
	}
	a.Most = mostAtOnce(all)
	for _, at := range slices.Sorted(maps.Keys(byPlace)) {
		if most := mostAtOnce(byPlace[at]); most > a.PerPlace {
			a.PerPlace, a.Place = most, f.placeNames[at]
		}
	}
	var use, useAt usedUp
	use.add(all, waits)
	for at, edges := range byPlace {
		useAt.add(edges, waitsAt[at])
	}
	bounds = append(boundOf(a, use, a.Limit, a.Most, "", a.Setting), boundOf(a, useAt, a.PerPlaceLimit, a.PerPlace, " of one "+spec.Kind.Place.One, a.PerPlaceSetting)...)
	for i := range bounds {
		bounds[i].By = spec.Kind.Owner(a.From)
	}
	slices.SortStableFunc(bounds, func(x, y result.BoundShare) int { return cmp.Compare(y.Share, x.Share) })
	return a, bounds
}

// usedUp averages the objects under way while others waited, weighted by the number of waiting ones.
type usedUp struct {
	weighted, waited float64 // by the second
	from, to         record.Micros
}

// add takes in the objects under way and the waiting ones, of all or of one place.
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

const limitFull = 0.7 // share of a limit of objects at once that must be in use while others wait

// boundOf says how far a limit was used up, if there is one and some waited.
func boundOf(a *result.Concurrent, n usedUp, limit, most int, where, setting string) []result.BoundShare {
	if limit == 0 || !(n.waited > 0) {
		return nil
	}
	share := n.weighted / n.waited / float64(limit)
	waiting := n.waited / (n.to - n.from).Seconds()
	return []result.BoundShare{{
		Name:  cmp.Or(setting, "limit at once"+where),
		What:  fmt.Sprintf("the limit of %d between %s and %s at once%s%s", limit, a.From, a.To, where, strings.TrimSuffix(" ("+setting+")", " ()")),
		Share: result.Round(share, 3), Held: most >= limit && share >= limitFull && waiting >= result.LeastWaiting, Waiting: new(result.Round(waiting, 1)),
	}}
}
