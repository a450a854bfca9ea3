package analyze

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
)

// zeroOf is an object's time zero, from which its latency counts; that of its
// request as long as there is no news of it.
func (b *Builder) zeroOf(s *slot, o *object) record.Micros {
	if o == nil || o.name == s.name && s.told {
		return s.zero
	}
	return o.first
}

// lateAt is when it was certain that an object of the step would not be at a
// milestone within the bound: when its time was over, or earlier where its
// request was refused, or where it ended or went without having been there.
// What the step did not wait for is certain at its end.
func (b *Builder) lateAt(c *building, u unit, m int, bound record.Micros) record.Micros {
	at := c.end
	if zero := b.zeroOf(u.slot, u.object); bound < at-zero {
		at = zero + bound
	}
	o := u.object
	switch {
	case u.fate == fateCreateFailed || u.fate == fateDropped:
		at = min(at, u.slot.replied)
	case o == nil || o.reached(m) != never:
	case o.gone && o.reached(b.milestone(milestoneDeleted)) != never:
		at = min(at, o.reached(b.milestone(milestoneDeleted)))
	case o.failed && o.fell != never:
		at = min(at, o.fell)
	}
	return max(at, c.start)
}

// shortAt is when an object in place was first short of what is asked of all:
// when its time was over, or when it fell from where it was, or went.
func (b *Builder) shortAt(c *building, u unit, m int, bound record.Micros) record.Micros {
	at := c.end
	o := u.object
	if u.own {
		if l := b.latency(u.slot, o, m); l == unreached || l > bound {
			at = b.lateAt(c, u, m, bound)
		}
	} else if o == nil || o.reached(m) == never {
		at = c.start // it was so before the step
	}
	if o != nil && o.fell != never && m == b.arrived {
		at = min(at, o.fell)
	}
	if o != nil && o.gone && !c.Open {
		if t := o.reached(b.milestone(milestoneDeleted)); t != never {
			at = min(at, t)
		} else if o.fell == never {
			at = c.start // another one took its place; when it went was not told
		}
	}
	return min(max(at, c.start), c.end)
}

// quantileAt is when so many of the step's own objects were late that the
// objective could no longer hold, and how many were in the end: of n objects
// the quantile is the ceil(q n)-th smallest latency, so that it takes
// n - ceil(q n) + 1 of them. An objective that asks for slow objects is lost
// once ceil(q n) of them were quick.
func (b *Builder) quantileAt(c *building, s slo.SLO, f *facts, sample sample) (record.Micros, int) {
	m, bound := b.milestone(s.Milestone), record.MicrosOf(s.Within)
	need := sample.N() - sample.Rank(s.Q) + 1
	slow := s.Op == slo.Greater || s.Op == slo.GreaterEqual
	if slow {
		need = sample.Rank(s.Q)
	}
	var moments []record.Micros
	for _, u := range f.units {
		if !u.own {
			continue
		}
		took := b.latency(u.slot, u.object, m)
		reached := took <= c.timeout
		if reached && s.Op.Holds(took.Seconds(), s.Within.Seconds()) || !reached && slow {
			continue
		}
		if slow {
			moments = append(moments, u.object.reached(m))
			continue
		}
		moments = append(moments, b.lateAt(c, u, m, min(bound, c.timeout)))
	}
	if len(moments) < need {
		return c.end, len(moments) // some of those that are lost count as late
	}
	slices.Sort(moments)
	return min(max(moments[need-1], c.start), c.end), len(moments)
}

// errorsAt is when so many of the step's requests had failed that their share
// could no longer be what the objective allows.
func (b *Builder) errorsAt(c *building, s slo.SLO, asked int) record.Micros {
	var moments []record.Micros
	for _, x := range c.slots {
		failed := x.told && (x.outcome == record.SlotFailed || x.outcome == record.SlotUnknown) || x.outcome == record.SlotDropped
		if failed && c.judges(x) {
			moments = append(moments, x.replied)
		}
	}
	slices.Sort(moments)
	for i, t := range moments {
		if !s.Op.Holds(100*float64(i+1)/float64(asked), s.Percent) {
			return min(max(t, c.start), c.end)
		}
	}
	return c.end
}

// achievedAt is when the rate could no longer be achieved, even if every
// object had got there at that moment: with a schedule that is at the end of
// the hold.
func achievedAt(c *building, s slo.SLO) record.Micros {
	at := c.end
	switch {
	case c.Open && c.reached != never:
		at = c.reached + c.hold
	case !c.Open && c.loaded != never && s.Percent > 0 && (s.Op == slo.GreaterEqual || s.Op == slo.Greater):
		if took := float64(c.loaded-c.start) * 100 / s.Percent; took < float64(c.end-c.start) {
			at = c.start + record.Micros(took)
		}
	}
	return min(max(at, c.start), c.end)
}

// heldBackAt is when so many arrivals had found no place that the rate counts
// as not achieved: when one too many was late, or the first was dropped.
func (b *Builder) heldBackAt(c *building, a *Arrivals) record.Micros {
	at := c.end
	var late []record.Micros
	for _, s := range c.slots {
		if !c.judges(s) {
			continue
		}
		if s.outcome == record.SlotDropped {
			at = min(at, s.replied)
		}
		if s.outcome == record.SlotDropped || s.waited > 0 {
			late = append(late, s.intended)
		}
	}
	slices.Sort(late)
	for i, t := range late {
		if 100*float64(i+1)/float64(a.Judged) > lateTolerated {
			at = min(at, t)
			break
		}
	}
	return min(max(at, c.start), c.end)
}
