package judge

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// within is a moment of the step's: its start or end for one before or after.
func (f *facts) within(t record.Micros) record.Micros { return min(max(t, f.start), f.end) }

// lateAt is when it was certain that an object of the step would not be at a
// milestone within the bound: when its time was over, or earlier where its
// request was refused, or where it ended or went without having been there.
// What the step did not wait for is certain at its end.
func (v *verdicts) lateAt(i, m int, bound record.Micros) record.Micros {
	f, u, outcome := v.f, &v.f.units[i], v.outcomes[i]
	at := f.end
	if bound < at-u.zero {
		at = u.zero + bound
	}
	o := u.object
	switch {
	case outcome == unitCreateFailed || outcome == unitDropped:
		at = min(at, u.slot.replied)
	case o == nil || o.reached(m) != never:
	case o.gone && o.reached(f.gone) != never:
		at = min(at, o.reached(f.gone))
	case o.failed && o.fell != never:
		at = min(at, o.fell)
	}
	return max(at, f.start)
}

// shortAt is when an object in place was first short of what is asked of all:
// when its time was over, or when it fell from where it was, or went.
func (v *verdicts) shortAt(i, m int, bound record.Micros) record.Micros {
	f, u := v.f, &v.f.units[i]
	at := f.end
	o := u.object
	if u.own {
		if l := u.latency(m); l == unreached || l > bound {
			at = v.lateAt(i, m, bound)
		}
	} else if o == nil || o.reached(m) == never {
		at = f.start // it was so before the step
	}
	if o != nil && o.fell != never && m == f.there {
		at = min(at, o.fell)
	}
	if o != nil && o.gone && !f.head.Open {
		if t := o.reached(f.gone); t != never {
			at = min(at, t)
		} else if o.fell == never {
			at = f.start // another one took its place; when it went is not known
		}
	}
	return f.within(at)
}

// quantileAt is when so many of the step's own objects were late that the
// objective could no longer hold, and how many were in the end: of n objects
// the quantile is the ceil(q n)-th smallest latency, so that it takes
// n - ceil(q n) + 1 of them. An objective that asks for slow objects is lost
// once ceil(q n) of them were quick.
func (v *verdicts) quantileAt(s slo.SLO, sample sample) (record.Micros, int) {
	f := v.f
	if f.stream != nil {
		return f.stream.quantileAt(f, s, sample)
	}
	m, bound := f.of(s.Milestone), record.MicrosOf(s.Within)
	need := sample.N() - sample.Rank(s.Q) + 1
	slow := s.Op == slo.Greater || s.Op == slo.GreaterEqual
	if slow {
		need = sample.Rank(s.Q)
	}
	var moments []record.Micros
	for i := range f.units {
		u := &f.units[i]
		if !u.own {
			continue
		}
		took := u.latency(m)
		reached := took <= f.timeout
		if reached && s.Op.Holds(took.Seconds(), s.Within.Seconds()) || !reached && slow {
			continue
		}
		if slow {
			moments = append(moments, u.object.reached(m))
			continue
		}
		moments = append(moments, v.lateAt(i, m, min(bound, f.timeout)))
	}
	if len(moments) < need {
		return f.end, len(moments) // some of those that are lost count as late
	}
	slices.Sort(moments)
	return f.within(moments[need-1]), len(moments)
}

// errorsAt is when so many of the step's requests had failed that their share
// could no longer be what the objective allows.
func (f *facts) errorsAt(s slo.SLO, asked int) record.Micros {
	if f.stream != nil {
		most := 0 // that the objective allows
		for most < asked && s.Op.Holds(100*float64(most+1)/float64(asked), s.Percent) {
			most++
		}
		at, _ := f.stream.since(f, most+1, func(w windowCounts) int { return w.failed + w.dropped })
		return at
	}
	var moments []record.Micros
	for _, x := range f.own {
		if (x.failed() || x.outcome == record.SlotDropped) && f.judges(x) {
			moments = append(moments, x.replied)
		}
	}
	return f.within(firstBeyond(moments, f.end, func(n int) bool { return s.Op.Holds(100*float64(n)/float64(asked), s.Percent) }))
}

// firstBeyond is the moment with which there were more than are tolerated, or
// the end where there never were.
func firstBeyond(moments []record.Micros, end record.Micros, tolerated func(n int) bool) record.Micros {
	slices.Sort(moments)
	for i, t := range moments {
		if !tolerated(i + 1) {
			return t
		}
	}
	return end
}

// achievedAt is when the rate could no longer be achieved, even if every
// object was ready at that moment: with a schedule that is at the end of
// the hold.
func (f *facts) achievedAt(s slo.SLO) record.Micros {
	at := f.end
	switch {
	case f.head.Open && f.reached != never:
		at = f.reached + f.hold
	case !f.head.Open && f.loaded != never && s.Percent > 0 && (s.Op == slo.GreaterEqual || s.Op == slo.Greater):
		if took := float64(f.loaded-f.start) * 100 / s.Percent; took < float64(f.end-f.start) {
			at = f.start + record.Micros(took)
		}
	}
	return f.within(at)
}

// heldBackAt is when so many arrivals had found no place that the rate counts
// as not achieved: when one too many was late, or the first was dropped.
func (f *facts) heldBackAt(a *Arrivals) record.Micros {
	at := f.end
	if f.stream != nil {
		at, _ := f.stream.since(f, int(lateTolerated/100*float64(a.Judged))+1, func(w windowCounts) int { return w.late })
		return at
	}
	var late []record.Micros
	for _, s := range f.own {
		if !f.judges(s) {
			continue
		}
		if s.outcome == record.SlotDropped {
			at = min(at, s.replied)
		}
		if s.outcome == record.SlotDropped || s.waited > 0 {
			late = append(late, s.intended)
		}
	}
	tooMany := firstBeyond(late, f.end, func(n int) bool { return 100*float64(n)/float64(a.Judged) <= lateTolerated })
	return f.within(min(at, tooMany))
}
