package verdict

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// GuardBreach returns the breach of a guard that stopped the load.
func GuardBreach(g fold.Stop) result.Breach {
	return result.Breach{What: "guard:" + g.Name, Value: result.Finite(g.Value), Bound: result.Finite(g.Bound), Kind: result.BreachGuard, Count: 1, Message: g.Message, At: g.At}
}

// addBreach notes an exceeded bound once per step. It decides the goal, or was only seen.
func (c *Judged) addBreach(b result.Breach, goal string, decides bool) {
	i := slices.IndexFunc(c.Breaches, func(x result.Breach) bool { return x.What == b.What })
	if i < 0 {
		i, b.Step = len(c.Breaches), c.ID
		c.Breaches = append(c.Breaches, b)
	}
	if x := &c.Breaches[i]; decides && !slices.Contains(x.Goals, goal) {
		x.Goals, x.Decided = append(x.Goals, goal), true
	}
}

// orderBreaches adds the breaches that were only seen, orders all by time, and adds their loads.
func (c *Judged) orderBreaches(spec *result.Spec, f *fold.Facts, first *Judged) {
	normal := first.asBaseline()
	for kind, s := range f.Troubles.Seen {
		n := float64(s.Count())
		x := result.Breach{Step: c.ID, What: s.What, Value: &n, Kind: kind, Count: s.Count(), Object: s.Object, Message: s.Message, At: s.First}
		x.Usual = normal != nil && normal.troublesPerObject(kind)*usualSlack >= n/float64(max(c.Asked, 1))
		c.Breaches = append(c.Breaches, x)
	}
	for _, s := range f.Stood {
		c.Stood = max(c.Stood, s.Seconds())
		value := result.Round(s.Seconds(), 3)
		c.Breaches = append(c.Breaches, result.Breach{
			Step: c.ID, What: s.String(), Value: &value, Kind: result.BreachStandstill,
			Count: s.Released, Message: s.Evidence, At: s.From,
		})
	}
	for i := range f.Silent {
		s := &f.Silent[i]
		value := result.Round(s.Seconds(), 3)
		c.Silent = append(c.Silent, s.String())
		c.Breaches = append(c.Breaches, result.Breach{Step: c.ID, What: s.String(), Value: &value, Kind: result.BreachActor, Count: s.Waiting, Message: s.Message, At: s.Since})
	}
	slices.SortFunc(c.Breaches, func(x, y result.Breach) int {
		// A sighting comes before the objective that was lost by it.
		return cmp.Or(cmp.Compare(x.At, y.At), result.CompareBool(x.Decided, y.Decided), cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.What, y.What))
	})
	moments := make([]record.Micros, len(c.Breaches))
	for i, x := range c.Breaches {
		moments[i] = x.At
	}
	loads := f.Account.LoadsAt(moments)
	for i := range c.Breaches {
		x := &c.Breaches[i]
		x.Time, x.Load = spec.Wall(x.At), loads[i]
	}
	// An idle actor comes before its consequences.
	slices.SortStableFunc(c.Breaches, func(x, y result.Breach) int {
		return result.CompareBool(y.Kind == result.BreachActor, x.Kind == result.BreachActor)
	})
	c.sightings = make(map[result.BreachKind]int, len(f.Troubles.Seen))
	for _, x := range c.Breaches {
		if !x.Decided {
			c.sightings[x.Kind] = x.Count
		}
	}
}

const usualSlack = 2 // factor by which a normal trouble may be more frequent than in the first step

func (c *Judged) troublesPerObject(kind result.BreachKind) float64 {
	return float64(c.sightings[kind]) / float64(max(c.Asked, 1))
}

// FirstStep returns the first step that decides anything, nil before it has ended.
func FirstStep(steps []*Judged) *Judged {
	if i := slices.IndexFunc(steps, func(s *Judged) bool { return !s.Again }); i >= 0 {
		return steps[i]
	}
	return nil
}

// asBaseline returns a first step that held, or was too short for a verdict on its backlog, or nil.
func (c *Judged) asBaseline() *Judged {
	if c == nil || c.Verdict != slo.Pass && (c.Verdict != slo.Inconclusive || c.Backlog == nil || !c.Backlog.Undecided) {
		return nil
	}
	return c
}

// FirstOf returns the index of what broke first, of normal troubles only if there is nothing else, or -1.
func FirstOf(list []result.Breach) int {
	if i := slices.IndexFunc(list, func(x result.Breach) bool { return !x.Usual }); i >= 0 {
		return i
	}
	return min(len(list), 1) - 1
}
