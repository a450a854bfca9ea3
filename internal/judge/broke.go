package judge

import (
	"cmp"
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// BreachKind is the sort of trouble that a Breach is.
type BreachKind string

// The kinds of breaches. The first ones are of bounds, and decide; the others
// are seen on the way, and decide nothing by themselves. Further ones are the
// classes of the troubles that the kind of object knows.
const (
	BreachLatency   BreachKind = "latency"   // a quantile was above its objective
	BreachMissing   BreachKind = "missing"   // objects were not ready, or not in time
	BreachErrors    BreachKind = "errors"    // requests failed
	BreachAchieved  BreachKind = "achieved"  // fewer became ready a second than was asked for
	BreachNotSteady BreachKind = "notSteady" // the backlog grew throughout the hold
	BreachReplaced  BreachKind = "replaced"  // objects took the place of others
	BreachGuard     BreachKind = "guard"     // a guard stopped the load

	BreachThrottling BreachKind = "throttling" // answers of 429
	BreachReadiness  BreachKind = "readiness"  // an object that was there is there no more
	BreachDeleted    BreachKind = "deleted"    // an object was deleted, and not by the run
	BreachWatch      BreachKind = "watch"      // news was cut off: what came meanwhile is known late
	BreachStandstill BreachKind = "standstill" // no write was answered, and nothing moved
)

// Breach is something that broke, at the moment at which it did. Where Decided
// is set it is a bound of an objective, or a guard, and is why goals did not
// hold; else it was only seen on the way.
type Breach struct {
	Time  string     `json:"time"`
	Step  int        `json:"step"`
	What  string     `json:"what"`
	Value *float64   `json:"value"`
	Bound *float64   `json:"bound"`
	Kind  BreachKind `json:"kind"`
	// Decided says that Goals did not hold for it.
	Decided bool     `json:"decided"`
	Goals   []string `json:"goals,omitempty"`
	// First marks, in the list of the run, what broke first in the step that
	// decided it.
	First bool `json:"first"`
	// Usual says that the first step, which held, saw it about as often for
	// each object that it asked for: it belongs to what is normal.
	Usual bool `json:"usual"`
	// Count is how many objects, requests or events it is of, all through the
	// step; Object is the first of them, and Message what was said of it.
	Count   int          `json:"count"`
	Object  string       `json:"object,omitempty"`
	Message string       `json:"message,omitempty"`
	Load    StepProgress `json:"load"`

	at record.Micros
}

// StepProgress is how far a step had come at a moment.
type StepProgress struct {
	Asked int `json:"asked"` // objects asked for and in place
	There int `json:"there"` // of them, those that are ready
	// Unplaced had no place. It is 0 where objects are given none.
	Unplaced int `json:"unplaced"`
	// Level is the level that the objects asked for come to; on an axis of
	// arrivals per second it is that of the step.
	Level float64 `json:"level"`
	// Backlog is how many requests of a stream were due and not done.
	Backlog int `json:"backlog,omitempty"`
}

// pending is how many objects were asked for and not there.
func (l StepProgress) pending() int { return max(l.Asked-l.There, 0) }

// guardBreach is the breach of a guard that stopped the load.
func guardBreach(g stop) Breach {
	return Breach{What: "guard:" + g.Name, Value: finite(g.Value), Bound: finite(g.Bound), Kind: BreachGuard, Count: 1, Message: g.Message, at: g.at}
}

// addBreach notes a bound that was exceeded, which decided a goal: once for each
// step, whatever the goals that share it.
func (c *judged) addBreach(goals []string, b Breach) {
	b.Step, b.Decided = c.ID, true
	for i := range c.Breaches {
		if x := &c.Breaches[i]; x.Decided && x.What == b.What {
			for _, g := range goals {
				if !slices.Contains(x.Goals, g) {
					x.Goals = append(x.Goals, g)
				}
			}
			return
		}
	}
	b.Goals = slices.Clone(goals)
	c.Breaches = append(c.Breaches, b)
}

func goalNames(spec *Spec) []string {
	names := make([]string, len(spec.Goals))
	for i, g := range spec.Goals {
		names[i] = g.Name
	}
	return names
}

// orderBreaches completes a step's breaches: what was only seen is added, all are put
// in order of time, and each gets the load at its moment.
func (c *judged) orderBreaches(spec *Spec, f *facts, first *judged) {
	normal := first.asBaseline()
	for kind, s := range f.troubles.seen {
		n := float64(s.count())
		x := Breach{Step: c.ID, What: s.what, Value: &n, Kind: kind, Count: s.count(), Object: s.object, Message: s.message, at: s.first}
		x.Usual = normal != nil && normal.troublesPerObject(kind)*usualSlack >= n/float64(max(c.asked, 1))
		c.Breaches = append(c.Breaches, x)
	}
	for _, s := range f.standstills() {
		c.stood = max(c.stood, s.seconds())
		value := round(s.seconds(), 3)
		c.Breaches = append(c.Breaches, Breach{
			Step: c.ID, What: fmt.Sprintf("all writes stood still for %s", seconds(s.to-s.from)), Value: &value, Kind: BreachStandstill,
			Count: s.released, Message: f.evidence(s), at: s.from,
		})
	}
	slices.SortFunc(c.Breaches, func(x, y Breach) int {
		// What was seen comes before the objective that was lost by it.
		return cmp.Or(cmp.Compare(x.at, y.at), compareBool(x.Decided, y.Decided), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.What, y.What))
	})
	moments := make([]record.Micros, len(c.Breaches))
	for i, x := range c.Breaches {
		moments[i] = x.at
	}
	loads := f.loadsAt(moments)
	for i := range c.Breaches {
		x := &c.Breaches[i]
		x.Time, x.Load = spec.wall(x.at), loads[i]
	}
	c.sightings = make(map[BreachKind]int, len(f.troubles.seen))
	for _, x := range c.Breaches {
		if !x.Decided {
			c.sightings[x.Kind] = x.Count
		}
	}
}

// usualSlack is how much more often than in the first step a trouble may be
// seen and still belong to what is normal.
const usualSlack = 2

// troublesPerObject is how often a trouble was seen for each object of a step.
func (c *judged) troublesPerObject(kind BreachKind) float64 {
	return float64(c.sightings[kind]) / float64(max(c.asked, 1))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// firstStep is the first step that decides anything, nil before it has ended.
func firstStep(steps []*judged) *judged {
	if i := slices.IndexFunc(steps, func(s *judged) bool { return !s.again }); i >= 0 {
		return steps[i]
	}
	return nil
}

// asBaseline is a first step as the one that tells what is normal: nil where it
// did not hold.
func (c *judged) asBaseline() *judged {
	if c == nil || c.Verdict != slo.Pass {
		return nil
	}
	return c
}

// firstOf is the index of what broke first: what is normal is passed over,
// unless nothing else is there. It is -1 where nothing broke.
func firstOf(list []Breach) int {
	if i := slices.IndexFunc(list, func(x Breach) bool { return !x.Usual }); i >= 0 {
		return i
	}
	return min(len(list), 1) - 1
}

// loadsAt is the load of a step at each of several moments, which are in
// order.
func (f *facts) loadsAt(moments []record.Micros) []StepProgress {
	loads := make([]StepProgress, len(moments)+1)
	if f.stream != nil {
		for i, t := range moments {
			loads[i].Level = f.head.Level
			if w := f.stream.windowAt(t); w != nil {
				loads[i].Backlog = w.backlog
			}
		}
		return loads[:len(moments)]
	}
	// from is the first moment at or after t: what happened at t holds from
	// there on.
	from := func(t record.Micros) int {
		i, _ := slices.BinarySearch(moments, t)
		return i
	}
	placedAt := f.of(f.kind.Placed)
	for _, s := range f.place {
		if s.outcome == record.SlotDropped {
			continue
		}
		n := s.count()
		if s.onRecord {
			loads[from(s.sent)].Asked += n
		}
		for i, o := range s.filling() {
			if i >= n {
				break
			}
			if !s.onRecord {
				loads[from(o.first)].Asked++
			}
			end := len(moments)
			if o.gone {
				if t := o.reached(f.gone); t != never {
					end = from(t)
					if f.head.Open {
						loads[end].Asked-- // it was removed as it aged
					}
				}
			}
			if o.fell != never {
				end = min(end, from(o.fell))
			}
			if t := o.reached(f.there); t != never && from(t) < end {
				loads[from(t)].There++
				loads[end].There--
			}
			if placedAt >= 0 {
				placed := len(moments)
				if t := o.reached(placedAt); t != never {
					placed = from(t)
				}
				if first := from(o.first); first < placed {
					loads[first].Unplaced++
					loads[placed].Unplaced--
				}
			}
		}
	}
	total := max(f.setOut, len(f.units))
	for i := range moments {
		if i > 0 {
			loads[i].Asked += loads[i-1].Asked
			loads[i].There += loads[i-1].There
			loads[i].Unplaced += loads[i-1].Unplaced
		}
	}
	for i := range moments {
		l := &loads[i]
		switch {
		case f.head.Open:
			l.Level = f.head.Level
		case f.places > 0:
			l.Level = round(float64(f.others+l.Asked)/float64(f.places), 6)
		case total > 0:
			l.Level = round(f.head.LevelReached*(float64(l.Asked)/float64(total)), 6)
		}
	}
	return loads[:len(moments)]
}

// BrokeFirst is what broke first in the step that decided a goal: its lowest
// failing level.
type BrokeFirst struct {
	Goal   string  `json:"goal"`
	Step   int     `json:"step"`
	Level  float64 `json:"level"` // that the step reached
	Breach Breach  `json:"breach"`
	// Says is what follows from it, "" where no limit was looked for.
	Says       string      `json:"says"`
	Conditions *Conditions `json:"conditions"`
}

// functionalMaximum is what the second source document concludes from a limit
// whose cause is not known.
const functionalMaximum = "a limit of one or more components was reached; the functional maximum is lower than these conditions"

// noLimit is what follows where all stood still first.
const noLimit = "all writes stood still before anything else broke: that is no limit of the load, and the step should be made again"

// brokeFirst finds what broke first in the step that decided. It is nil where
// every goal held.
func brokeFirst(kind string, steps []*judged, goals []GoalResult) *BrokeFirst {
	says := ""
	if kind == "limit" {
		says = functionalMaximum
	}
	for _, g := range goals {
		c := decidingStep(steps, g)
		if c == nil {
			continue
		}
		i := firstOf(c.Breaches)
		if i < 0 {
			continue
		}
		first := c.Breaches[i]
		first.First = true
		other := func(x Breach) bool { return x.Decided && x.Kind != BreachLatency && x.Kind != BreachAchieved }
		switch {
		case says != "" && len(c.Reasons) > 0 && top(c.Reasons).mistaken():
			says = "the server refused requests for what they asked for: that is a mistake in the workload, and no limit"
		case first.Kind == BreachStandstill && !slices.ContainsFunc(c.Breaches, other):
			says = noLimit
		}
		return &BrokeFirst{Goal: g.Name, Step: c.ID, Level: c.LevelReached, Breach: first, Says: says, Conditions: c.Conditions}
	}
	return nil
}

// decidingStep is the step that a goal failed in: the last one at the lowest
// failing level, since that was made from empty; where no line is sought, the
// one at the lowest level. It is nil where the goal did not fail.
func decidingStep(steps []*judged, g GoalResult) *judged {
	var best *judged
	for _, s := range steps {
		if s.again || s.Goals[g.Name] != slo.Breached {
			continue
		}
		if l := g.LoadLine; l != nil && l.LowestFailing != nil {
			if s.Level == *l.failingAsked() {
				best = s
			}
			continue
		}
		if best == nil || s.LevelReached < best.LevelReached {
			best = s
		}
	}
	return best
}

// breachesInOrder are the breaches of all steps, and what guards have stopped
// outside of any, in order of time; the first of all is marked.
func breachesInOrder(steps []*judged, stray []Breach, first *BrokeFirst) []Breach {
	list := slices.Clone(stray)
	for _, s := range steps {
		list = append(list, s.Breaches...)
	}
	slices.SortStableFunc(list, func(x, y Breach) int { return cmp.Compare(x.at, y.at) })
	for i := range list {
		x := &list[i]
		x.First = first != nil && x.Step == first.Step && x.Kind == first.Breach.Kind && x.What == first.Breach.What
	}
	if list == nil {
		list = []Breach{}
	}
	return list
}
