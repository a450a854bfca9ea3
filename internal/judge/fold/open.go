package fold

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

const (
	LateTolerated   = 1.0  // percentage of arrivals without a place at which the rate is still achieved
	othersTolerated = 15.0 // percentage of the CPUs that other programs may use without a remark
)

// HeldBack reports whether the target held back so many arrivals that the rate was not achieved.
func HeldBack(a *result.Arrivals) bool {
	return a.Judged > 0 && (a.Dropped > 0 || 100*float64(a.Late)/float64(a.Judged) > LateTolerated)
}

func arrivalsOf(f *Facts) *result.Arrivals {
	a := &result.Arrivals{}
	if f.Reached == Never {
		return a
	}
	var own []float64
	for _, s := range f.own {
		if !f.judges(s) {
			a.WarmUp++
			continue
		}
		a.Judged++
		if s.outcome == record.SlotDropped {
			a.Late++
			a.Dropped++
			continue
		}
		if s.waited > 0 {
			a.Late++
		}
		if s.onRecord {
			own = append(own, max(s.sent-s.intended-s.waited, 0).Seconds())
		}
	}
	if from, to := f.held(); to > from {
		a.OwnDelayP99 = result.Finite(stats.NewSample(own, 0).Quantile(0.99))
		a.DeletionsPerSecond = *rate(f.reachedIn(f.gone, from, to), to-from)
	}
	return a
}

// arrivalRates returns the rates of arrivals and ready objects in the hold, and their percentage, or nil.
func arrivalRates(f *Facts, a *result.Arrivals) (offered, rateOf, achieved *float64) {
	from, to := f.held()
	if to <= from {
		return nil, nil, nil
	}
	offered, rateOf = rate(a.Judged, to-from), rate(f.reachedIn(f.there, from, to), to-from)
	if *offered > 0 {
		achieved = new(100 * *rateOf / *offered)
	}
	return offered, rateOf, achieved
}

// backlogOf returns an open step's backlog over the hold, nil if that was cut. thereAt may return Never.
func backlogOf(spec *result.Spec, f *Facts, arrivals int, thereAt func(*slot, *object) record.Micros) *result.Backlog {
	from, to := f.held()
	if f.Cut() || to <= from || arrivals == 0 || f.hold <= 0 || to < f.Reached+f.hold {
		return nil
	}
	var changes []stream.Change
	for _, s := range f.own {
		if s.outcome == record.SlotFailed || s.outcome == record.SlotDropped {
			continue
		}
		n := max(s.units, len(s.objects))
		changes = append(changes, stream.Change{At: s.intended, By: n})
		for i := range n {
			var o *object
			if i < len(s.objects) {
				o = s.objects[i]
			}
			if t := thereAt(s, o); t != Never {
				changes = append(changes, stream.Change{At: max(t, s.intended), By: -1})
			}
		}
	}
	return stream.NewBacklog(stream.BatchMeans(changes, from, to), to-from, arrivals, stream.SteadyGrowth(spec, arrivals, to-from))
}

// held returns the begin and the end of the hold, both Never where it was not reached.
func (f *Facts) held() (from, to record.Micros) {
	if f.Reached == Never {
		return Never, Never
	}
	return f.Reached, min(f.Reached+f.hold, f.End)
}

// HoldEnd returns the end of the hold, or of the step where it was not reached.
func (f *Facts) HoldEnd() record.Micros {
	if _, to := f.held(); to != Never {
		return to
	}
	return f.End
}

func (f *Facts) reachedIn(milestone int, from, to record.Micros) int {
	n := 0
	for _, s := range f.own {
		for _, o := range s.objects {
			if t := o.reached(milestone); t != Never && t >= from && t < to {
				n++
			}
		}
	}
	return n
}

// bottleneckOf returns what the step's objects waited for, and what the CPUs did for it and for others.
func bottleneckOf(spec *result.Spec, f *Facts, atOnce []result.BoundShare) (n *result.Bottleneck, others float64) {
	n = &result.Bottleneck{Waits: waitsOf(spec, f), Slowdown: slowdownOf(spec, f)}
	if m, ok := f.readings.Usage[usage.SourceMachine]; ok && m.CPUs > 0 && m.Span > 0 {
		others = addCPUs(n, m, f.readings.Usage)
		if peak, ok := usage.PeakCPU(f.readings.CPU[usage.SourceMachine]); ok {
			n.CPUPeak = min(f.readings.Percent(peak), 100)
		}
	}
	n.Bounds = f.Account.bounds(spec, atOnce)
	if len(n.Waits) == 0 && n.CPUs == 0 && len(n.Bounds) == 0 {
		return nil, 0
	}
	return n, others
}

func (f objectAccount) bounds(spec *result.Spec, atOnce []result.BoundShare) []result.BoundShare {
	until := cmp.Or(max(min(f.Reached, f.End), 0), f.End) // it may never have been reached
	return append(atOnce, f.readings.BoundsIn(spec.Kind.Bounds, f.Start, until, true)...)
}

// waitsOf returns the ways between milestones of the step's own objects, the longest on average first.
func waitsOf(spec *result.Spec, f *Facts) []result.Wait {
	type way struct{ from, to int }
	ways := make(map[way][]float64)
	total := 0.0
	for _, u := range f.ownUnits() {
		if u.slot.outcome == record.SlotDropped || !u.slot.onRecord && u.object == nil {
			continue
		}
		at, from := u.sent(), -1
		if f.head.Open && u.slot.onRecord {
			at = u.slot.intended
		}
		add := func(m int, until record.Micros) {
			took := max(until-at, 0).Seconds()
			ways[way{from, m}] = append(ways[way{from, m}], took)
			total += took
		}
		onTheWay := -1 // to the first milestone after the last that was reached
		for m := range f.names {
			if m == f.gone || !f.reaches(u.slot, m) {
				continue
			}
			if t := u.reached(m); t != Never {
				add(m, t)
				at, from, onTheWay = max(t, at), m, -1
			} else if onTheWay < 0 { // not every system reports every milestone
				onTheWay = m
			}
			if m == u.slot.arrival {
				break
			}
		}
		if onTheWay >= 0 {
			add(onTheWay, f.End)
		}
	}
	list := []result.Wait{}
	for w, took := range ways {
		s, to := stats.NewSample(took, 0), f.names[w.to]
		wait := result.Wait{From: "request", To: to, For: spec.Kind.Owner(to), Mean: result.Round(s.Mean(), 6), P99: result.Round(s.Quantile(0.99), 6)}
		if w.from >= 0 {
			wait.From = f.names[w.from]
		}
		if total > 0 {
			wait.Share = result.Round(100*s.Mean()*float64(len(took))/total, 1)
		}
		list = append(list, wait)
	}
	slices.SortFunc(list, func(x, y result.Wait) int {
		return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(x.To, y.To))
	})
	return list
}

// addCPUs adds what the machine's CPUs did, and returns other programs' percentage, 0 if tolerated.
func addCPUs(n *result.Bottleneck, machine *usage.StepUsage, by map[string]*usage.StepUsage) float64 {
	n.CPUs = machine.CPUs
	all := float64(machine.CPUs) * machine.Span
	busy := result.Round(min(100*machine.Used/all, 100), 1)
	n.CPUBusy = &busy
	others := busy
	split := make(map[string]bool) // sources whose parts are known too, which say more
	for source := range by {
		if whole, _, ok := strings.Cut(source, "/"); ok {
			split[whole] = true
		}
	}
	for source, u := range by {
		if source == usage.SourceMachine || source == usage.SourcePlace {
			continue
		}
		percent := result.Round(100*u.Used/all, 1)
		if !usage.PartOfAnother(source) {
			others -= percent
		}
		if !split[source] {
			n.CPUBy = append(n.CPUBy, result.CPUShare{Source: source, Percent: percent})
		}
	}
	others = result.Round(max(others, 0), 1) // the same in whichever order they were taken off
	n.CPUBy = append(n.CPUBy, result.CPUShare{Source: result.Others, Percent: others})
	slices.SortFunc(n.CPUBy, func(x, y result.CPUShare) int {
		return cmp.Or(cmp.Compare(y.Percent, x.Percent), cmp.Compare(x.Source, y.Source))
	})
	if others <= othersTolerated {
		return 0
	}
	return others
}
