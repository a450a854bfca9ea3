package judge

import (
	"fmt"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
)

// AtOnce is how many objects were at most between two milestones at once, by
// when news of them came, beside the target's own limits.
type AtOnce struct {
	record.AtOnce
	Most     int    `json:"most"`
	PerPlace int    `json:"perPlace"` // of the place that had most
	Place    string `json:"place,omitempty"`
	// LeftOut are objects that told of a trouble between the milestones: since
	// when they were not under way is not known.
	LeftOut int `json:"leftOut"`
}

// atOnceOf counts a step's objects; nil where its kind does not ask for it.
func atOnceOf(spec *Spec, f *facts) *AtOnce {
	if spec.Kind.AtOnce == nil {
		return nil
	}
	a := &AtOnce{AtOnce: *spec.Kind.AtOnce}
	from, to := f.of(a.From), f.of(a.To)
	var all []edge
	byPlace := make(map[int32][]edge)
	for _, u := range f.units {
		o := u.object
		if o == nil || o.reached(from) == never {
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
	return a
}

// breach says which limit did not hold, "" for none.
func (a *AtOnce) breach() string {
	switch {
	case a == nil:
	case a.Limit > 0 && a.Most > a.Limit:
		return fmt.Sprintf("%d objects were between %s and %s at once, more than the target's own limit of %d", a.Most, a.From, a.To, a.Limit)
	case a.PerPlaceLimit > 0 && a.PerPlace > a.PerPlaceLimit:
		return fmt.Sprintf("%d objects of %s were between %s and %s at once, more than the target's own limit of %d for one place", a.PerPlace, a.Place, a.From, a.To, a.PerPlaceLimit)
	}
	return ""
}
