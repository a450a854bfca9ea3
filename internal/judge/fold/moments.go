package fold

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// within returns a moment of the step: its start or end for one before or after.
func (f *Facts) within(t record.Micros) record.Micros { return min(max(t, f.Start), f.End) }

// lateAt returns when an object was certainly too late for a milestone: when its time was over, or
// earlier where it was refused, ended or went. What the step did not wait for is certain at its end.
func (f objectAccount) lateAt(i, m int, bound record.Micros) record.Micros {
	u, outcome := &f.units[i], f.outcomes[i]
	at := f.End
	if bound < at-u.zero {
		at = u.zero + bound
	}
	o := u.object
	switch {
	case outcome == unitCreateFailed || outcome == unitDropped:
		at = min(at, u.slot.replied)
	case o == nil || o.reached(m) != Never:
	case o.gone && o.reached(f.gone) != Never:
		at = min(at, o.reached(f.gone))
	case o.failed && o.fell != Never:
		at = min(at, o.fell)
	}
	return max(at, f.Start)
}

// shortAt returns when an object in place was too late, fell or went.
func (f objectAccount) shortAt(i, m int, bound record.Micros) record.Micros {
	u := &f.units[i]
	at := f.End
	o := u.object
	if u.own {
		if l := u.latency(m); l == unreached || l > bound {
			at = f.lateAt(i, m, bound)
		}
	} else if o == nil || o.reached(m) == Never {
		at = f.Start // it was so before the step
	}
	if o != nil && o.fell != Never && m == u.slot.arrival {
		at = min(at, o.fell)
	}
	if o != nil && o.gone && !f.head.Open {
		if t := o.reached(f.gone); t != Never {
			at = min(at, t)
		} else if o.fell == Never {
			at = f.Start // another one took its place; when it went is unknown
		}
	}
	return f.within(at)
}

func (f objectAccount) QuantileAt(s slo.SLO, sample Sample) (record.Micros, int) {
	m, bound := f.find(s.Milestone), record.MicrosOf(s.Within)
	need := sample.N() - sample.Rank(s.Q) + 1
	slow := s.Op == slo.Greater || s.Op == slo.GreaterEqual
	if slow {
		need = sample.Rank(s.Q)
	}
	var moments []record.Micros
	for i, u := range f.ownOf(m) {
		took := u.latency(m)
		reached := took <= f.timeout
		if reached && s.Op.Holds(took.Seconds(), s.Within.Seconds()) || !reached && slow {
			continue
		}
		if slow {
			moments = append(moments, u.object.reached(m))
			continue
		}
		moments = append(moments, f.lateAt(i, m, min(bound, f.timeout)))
	}
	if len(moments) < need {
		return f.End, len(moments) // some of those that are lost count as late
	}
	slices.Sort(moments)
	return f.within(moments[need-1]), len(moments)
}

func (f objectAccount) ErrorsAt(s slo.SLO, asked int) record.Micros {
	var moments []record.Micros
	for _, x := range f.own {
		if counts := x.failed() || x.outcome == record.SlotDropped; (s.Form == slo.Retried && x.retries > 0 || s.Form == slo.Errors && counts) && f.judges(x) {
			moments = append(moments, x.replied)
		}
	}
	return f.within(firstBeyond(moments, f.End, func(n int) bool { return s.Op.Holds(100*float64(n)/float64(asked), s.Percent) }))
}

// firstBeyond returns the moment of the first that was one too many, or the end where there was none.
func firstBeyond(moments []record.Micros, end record.Micros, tolerated func(n int) bool) record.Micros {
	slices.Sort(moments)
	for i, t := range moments {
		if !tolerated(i + 1) {
			return t
		}
	}
	return end
}

// AchievedAt returns when the rate could no longer be achieved; with a schedule at the end of the hold.
func (f *Facts) AchievedAt(s slo.SLO) record.Micros {
	at := f.End
	switch {
	case f.head.Open && f.Reached != Never:
		at = f.Reached + f.hold
	case !f.head.Open && f.loaded != Never && s.Percent > 0 && (s.Op == slo.GreaterEqual || s.Op == slo.Greater):
		if took := float64(f.loaded-f.Start) * 100 / s.Percent; took < float64(f.End-f.Start) {
			at = f.Start + record.Micros(took)
		}
	}
	return f.within(at)
}

func (f objectAccount) HeldBackAt(a *result.Arrivals) record.Micros {
	at := f.End
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
	tooMany := firstBeyond(late, f.End, func(n int) bool { return 100*float64(n)/float64(a.Judged) <= LateTolerated })
	return f.within(min(at, tooMany))
}

func (f objectAccount) Short(s slo.SLO) (short, lost int, first record.Micros) {
	return f.short(s, (*unit).latency)
}

func (f objectAccount) Explained(s slo.SLO) (least float64, explained bool) {
	switch s.Form {
	case slo.All:
		short, _, _ := f.short(s, f.least)
		return 0, short == 0
	case slo.Quantile, slo.Mean:
		m, n := f.find(s.Milestone), 0
		var values []float64
		for _, u := range f.ownOf(m) {
			n++
			if l := f.least(u, m); l <= f.timeout {
				values = append(values, l.Seconds())
			}
		}
		least = s.Figure(stats.NewSample(values, n-len(values)))
		return least, s.Op.Holds(least, s.Within.Seconds())
	case slo.Achieved:
		if f.Achieved == nil {
			return 0, false
		}
		if f.head.Open {
			best := f.mostAchieved()
			return best, s.Op.Holds(best, s.Percent)
		}
		if _, _, best := ratesOf(f.Facts, func(u *unit) record.Micros { return u.zero + f.least(u, u.slot.arrival) }); best != nil {
			return *best, s.Op.Holds(*best, s.Percent)
		}
	}
	return 0, false
}

// mostAchieved returns the highest rate that an open step may have achieved, in percent of the offered
// one: lost objects count, and those with late news that may have been there within the hold.
func (f objectAccount) mostAchieved() float64 {
	from, to := f.held()
	judged, most := 0, 0
	for _, s := range f.own {
		if f.judges(s) {
			judged++
		}
		for _, o := range s.objects {
			u := unit{slot: s, object: o, zero: s.zeroOf(o)}
			l := u.latency(s.arrival)
			if l != unreached && u.zero+l >= from && u.zero+f.least(&u, s.arrival) < to {
				most++
			}
		}
	}
	for i, u := range f.ownUnits() {
		if f.outcomes[i] == unitLost && u.latency(u.slot.arrival) == unreached {
			most++
		}
	}
	return 100 * float64(most) / float64(max(judged, 1))
}

func (f objectAccount) Grows(spec *result.Spec, arrivals int) bool {
	type key struct {
		*slot
		*object
	}
	lost := make(map[key]bool)
	for i, u := range f.ownUnits() {
		if f.outcomes[i] == unitLost {
			lost[key{u.slot, u.object}] = true
		}
	}
	b := backlogOf(spec, f.Facts, arrivals, func(s *slot, o *object) record.Micros {
		u := unit{slot: s, object: o, zero: s.zeroOf(o)}
		switch l := f.least(&u, s.arrival); {
		case lost[key{s, o}]:
			return u.zero
		case l == unreached:
			return Never
		default:
			return u.zero + l
		}
	})
	return b != nil && b.Growing
}

// MostLag returns the longest delay of the step's news, in seconds.
func (f *Facts) MostLag() float64 { return f.canaries.Most().Seconds() }

func (f objectAccount) short(s slo.SLO, latency func(u *unit, m int) record.Micros) (short, lost int, first record.Micros) {
	bound := f.timeout
	if s.Within > 0 {
		bound = min(bound, record.MicrosOf(s.Within))
	}
	m := f.find(s.Milestone)
	first = f.End
	for i := range f.units {
		u := &f.units[i]
		took := latency(u, m)
		late := u.own && took > bound
		switch {
		case !f.reaches(u.slot, m):
			continue
		case took == unreached && f.outcomes[i] == unitLost:
			lost++
			continue
		case took == unreached || late || u.object.gone && !f.head.Open && !u.slot.released:
		case m != u.slot.arrival || f.outcomes[i] == unitReady:
			continue
		case f.outcomes[i] == unitLost:
			lost++
			continue
		}
		short++
		first = min(first, f.shortAt(i, m, bound))
	}
	return short, lost, first
}

// CutBefore reports whether the step was cut before an objective's breach was certain.
func (f *Facts) CutBefore(s slo.SLO) bool {
	return f.head.Ending == record.EndInterrupted && (s.Form == slo.Achieved || s.Form != slo.All && f.Account.unasked())
}
