package fold

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

type reasons struct {
	spec     *result.Spec
	f        *Facts
	groups   map[eventKey]*reasonGroup
	byObject map[string]eventKey // the warning that names an object, built when first needed
}

type reasonGroup struct {
	count     int // objects and other requests
	units     int // objects
	certain   int // not merely lost
	places    map[int32]bool
	found, of int            // nodes that the scheduler's message counts, of how many
	messages  map[string]int // how often the scheduler said each
	unplaced  bool           // there was no place for them
}

func reasonsOf(spec *result.Spec, f *Facts) []result.Reason {
	r := &reasons{spec: spec, f: f, groups: make(map[eventKey]*reasonGroup)}
	count := func(g *reasonGroup, units, certain int) {
		g.count, g.units, g.certain = g.count+1, g.units+units, g.certain+certain
	}
	for i := range f.units {
		switch u := &f.units[i]; f.outcomes[i] {
		case unitNeverReady:
			count(r.add(u), 1, 1)
		case unitLost:
			count(r.add(u), 1, 0)
		case unitCreateFailed:
			count(r.addRequest(u.slot), 1, 1)
		}
	}
	for _, s := range f.place {
		if s.units == 0 && s.step == f.head.ID && s.failed() && f.judges(s) {
			count(r.addRequest(s), 0, 1)
		}
	}
	return r.grouped()
}

func (r *reasons) add(u *unit) *reasonGroup {
	name, where := u.slot.name, int32(-1)
	key := eventKey{"NoNews", "the object was never seen"}
	silent := true // it had no trouble: there may be a warning about it
	switch o := u.object; {
	case o == nil && u.slot.outcome == record.SlotUnknown:
		key = eventKey{"NoAnswer", u.slot.err}
	case o == nil:
	case r.f.awayOf(u).State == record.PlaceGone:
		place := r.spec.Kind.Place.One
		key = eventKey{"Gone", "the " + cmp.Or(place, "place") + " that it was on " + r.f.awayOf(u).What}
		name, where, silent = o.name, o.where, false
	default:
		name, where = o.name, o.where
		// Containers that are not ready say no more than that the pod is not: warnings of probes do.
		silent = o.reason == "" || strings.HasPrefix(o.reason, "Not") || o.reason == "ContainersNotReady"
		aged := r.f.head.Open && o.gone && o.reached(u.slot.arrival) != Never // with arrivals by a schedule
		switch {
		case !aged && o.gone && (silent || o.reason == r.spec.Kind.Removing):
			key = eventKey{r.spec.Kind.Gone, "the object was deleted, but not by this run"}
		case !aged && o.reason != "":
			key = eventKey{o.reason, o.message}
		case aged || o.there:
			key = eventKey{"TooLate", "the object was ready only after the step timeout"}
		default:
			key = eventKey{"NotReady", "no reason given"}
		}
	}
	if silent {
		if event, ok := r.eventOf(name); ok {
			key = event
		}
	}
	if key.reason == r.spec.Kind.Unplaced {
		if counts, of := signature.Unschedulable(key.message); len(counts) > 0 {
			// The reason of the most nodes binds; the counts of the others differ from object to object.
			g := r.group(eventKey{counts[0].Reason, ""})
			g.found, g.of = max(g.found, counts[0].Count), max(g.of, of)
			g.messages[key.message]++
			g.unplaced = true
			return g
		}
	}
	key.message = normalise(key.message, name)
	g := r.group(key)
	g.unplaced = key.reason == r.spec.Kind.Unplaced && key.reason != ""
	if where >= 0 {
		g.places[where] = true
	}
	return g
}

func (r *reasons) addRequest(s *slot) *reasonGroup {
	reason := result.RequestFailed
	if s.code != 0 {
		reason = result.HTTPReason + strconv.Itoa(s.code)
	}
	return r.group(eventKey{reason, normalise(s.err, s.name)})
}

func (r *reasons) group(key eventKey) *reasonGroup {
	g, ok := r.groups[key]
	if !ok {
		g = &reasonGroup{places: make(map[int32]bool), messages: make(map[string]int)}
		r.groups[key] = g
	}
	return g
}

func (r *reasons) eventOf(name string) (eventKey, bool) {
	if r.byObject == nil {
		r.byObject = make(map[string]eventKey)
		for key, g := range r.f.Troubles.warnings {
			for object := range g.objects {
				best, ok := r.byObject[object]
				if !ok || cmp.Or(cmp.Compare(g.count, r.f.Troubles.warnings[best].count), best.compare(key)) > 0 {
					r.byObject[object] = key
				}
			}
		}
	}
	key, ok := r.byObject[name]
	return key, ok
}

func (r *reasons) grouped() []result.Reason {
	list := make([]result.Reason, 0, len(r.groups))
	for key, g := range r.groups {
		reason := result.Reason{Reason: key.reason, Message: key.message, Count: g.count, Places: len(g.places), PlacesOf: r.f.places, Requests: g.units == 0, Certain: g.certain, Nowhere: g.unplaced && g.found == g.of}
		if g.of > 0 {
			reason.Places, reason.PlacesOf = g.found, g.of
			most := 0
			for message, n := range g.messages {
				if n > most || n == most && message < reason.Message {
					most, reason.Message = n, message
				}
			}
		}
		list = append(list, reason)
	}
	slices.SortFunc(list, func(a, b result.Reason) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), eventKey{a.Reason, a.Message}.compare(eventKey{b.Reason, b.Message}))
	})
	return fewest(list)
}

const maxReasons = 200 // bound of the reasons that a step lists one by one

// fewest returns the most frequent reasons, and the rest as one for objects and one for requests.
func fewest(list []result.Reason) []result.Reason {
	if len(list) <= maxReasons {
		return list
	}
	var rest [2]result.Reason
	for _, r := range list[maxReasons:] {
		x := &rest[0]
		if r.Requests {
			x = &rest[1]
		}
		x.Reason, x.Message, x.Requests = record.OtherNames, "reasons that are less frequent", r.Requests
		x.Count, x.Certain, x.Places, x.PlacesOf = x.Count+r.Count, x.Certain+r.Certain, max(x.Places, r.Places), r.PlacesOf
	}
	list = list[:maxReasons:maxReasons]
	for _, x := range rest {
		if x.Count > 0 {
			list = append(list, x)
		}
	}
	return list
}

var (
	variable = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?|\b[0-9a-f]{32,}\b`)
	backOff  = regexp.MustCompile(`\b([Bb]ack-off) [0-9hms.]+\b`)
)

// normalise replaces what differs between objects, so that equal causes fall into one group.
func normalise(message, object string) string {
	message = variable.ReplaceAllString(signature.Unnamed(message, object), "*")
	return strings.TrimSpace(backOff.ReplaceAllString(message, "$1 *"))
}
