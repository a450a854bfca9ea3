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
	for _, s := range f.stood {
		c.stood = max(c.stood, s.seconds())
		value := round(s.seconds(), 3)
		c.Breaches = append(c.Breaches, Breach{
			Step: c.ID, What: fmt.Sprintf("all writes stood still for %s", seconds(s.to-s.from)), Value: &value, Kind: BreachStandstill,
			Count: s.released, Message: s.evidence, at: s.from,
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
