package fold

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

func boundsOf(goals []slo.Goal) []slo.SLO {
	var list []slo.SLO
	for _, g := range goals {
		for _, s := range g.SLOs {
			if s.Within > 0 && !slices.Contains(list, s) {
				list = append(list, s)
			}
		}
	}
	return list
}

func (f requestAccount) measure(spec *result.Spec, step *Measured) {
	s := f.stream
	step.Requests, step.Objects.None = &s.Account, true
	step.Requested, step.Asked = s.WarmUp+s.Account.Intended, s.Account.Intended
	f.Samples = make(map[string]Sample)
	step.Latency = make(result.Latencies)
	for name, x := range s.Samples(spec.Kind.There) {
		one := Sample{Sample: x}
		if name == spec.Kind.There {
			one.Lost = s.Account.Lost
		}
		f.Samples[name], step.Latency[name] = one, result.LatencyOf(x)
	}
	s.Account.PlacesFailed = s.PlacesFailed()
	if !f.Cut() {
		f.fillStalls(spec)
	}
	own := s.OwnDelays()
	step.Arrivals = &result.Arrivals{WarmUp: s.WarmUp, Judged: s.Account.Intended, Late: s.Account.Late, Dropped: s.Account.Dropped, OwnDelayP99: result.Finite(own.Quantile(0.99)), OwnDelayMax: result.Finite(own.Max())}
	step.Reasons = s.Reasons()
	s.Account.Recorded = s.Shown(spec)
	for _, w := range s.Windows {
		step.InFlightMax = max(step.InFlightMax, w.InFlight)
	}
	from, to := f.held()
	if to <= from || f.Cut() {
		return
	}
	step.OfferedRate = rate(s.Account.Intended, to-from)
	if f.head.Open {
		step.Backlog = s.Backlog(spec)
	}
	done, bytes := s.Answered()
	step.AchievedRate = rate(done, to-from)
	if bits := 8 * float64(bytes) / (to - from).Seconds(); bits > 0 {
		s.Account.BitsPerSecond = result.Significant(bits)
	}
	if s.Account.Intended > 0 {
		f.Achieved = new(100 * float64(done) / float64(s.Account.Intended))
	}
}

func (f requestAccount) fillStalls(spec *result.Spec) {
	s, loop := f.stream, stream.Loop{Open: f.head.Open}
	if f.timeout < unreached-1 {
		loop.Timeout = f.timeout
	}
	if own := f.readings.OwnDelay; own != nil {
		loop.OwnDelay = own.Max
	}
	s.FindStalls(spec.Kind.There, loop)
	for _, x := range s.Stood {
		s.Account.Stalls = append(s.Account.Stalls, result.Stall{Place: x.Place, From: spec.Wall(x.From), Seconds: x.Lasted().Seconds(), Windows: x.Windows})
	}
	for name, x := range s.Corrected {
		if s.Account.Corrected == nil {
			s.Account.Corrected = make(result.Latencies)
		}
		s.Account.Corrected[name] = result.LatencyOf(x)
	}
}

func (f requestAccount) Corrected(milestone string) (x stats.Sample, stalled bool) {
	x, stalled = f.stream.Corrected[milestone]
	return x, stalled
}

func (f requestAccount) OwnBound(a *result.Arrivals, goal slo.Goal) string {
	if a == nil || !HeldBack(a) {
		return ""
	}
	return f.stream.OwnBound(a, goal, f.head.Open)
}

func (f requestAccount) LoadsAt(moments []record.Micros) []result.StepProgress {
	loads := make([]result.StepProgress, len(moments))
	for i, t := range moments {
		loads[i].Level = f.head.Level
		if w := f.stream.WindowAt(t); w != nil {
			loads[i].Backlog = w.Backlog
		}
	}
	return loads
}

func (f requestAccount) addFigures(figures map[string]float64, to record.Micros, load result.StepProgress) {
	if w := f.stream.WindowAt(to); w != nil {
		figures[result.FigureInFlight] = float64(w.InFlight)
	}
	figures[result.FigureBacklog] = float64(load.Backlog)
}

func (f requestAccount) bounds(spec *result.Spec, _ []result.BoundShare) []result.BoundShare {
	from, to := f.held()
	if to <= from {
		return nil
	}
	return f.readings.BoundsIn(spec.Kind.Bounds, from, to, false)
}

func (f requestAccount) parts(map[string]Sample) map[string][]Part {
	parts := make(map[string][]Part)
	for _, x := range f.stream.ByComponent(f.kind.There, f.names) {
		parts[x.Milestone] = append(parts[x.Milestone], Part{x.Component, x.Sample})
	}
	return parts
}

func (f requestAccount) live(_ []*slot, milestone string) (l Live) {
	l.There, l.P50, l.P99 = f.stream.Live(milestone)
	return l
}

func (f requestAccount) done(*Measured) int {
	n, _ := f.stream.Answered()
	return n
}

func (f requestAccount) add(body record.Body) {
	s := f.stream
	switch x := body.(type) {
	case *record.Window:
		s.Add(x)
	case *record.Request:
		s.Recorded = append(s.Recorded, x)
	case *record.Trial:
		if len(s.Trials) < maxTold {
			s.Trials = append(s.Trials, x)
		}
	}
}

// since returns when a count over the windows reached n, or the end of the step, and the whole count.
func (f requestAccount) since(n int, count func(w *stream.Window) int) (at record.Micros, all int) {
	at, reached, all := f.stream.Since(n, count)
	if !reached {
		at = f.End
	}
	return f.within(at), all
}

func (f requestAccount) PlacesFailedAt() record.Micros {
	for _, w := range f.stream.Windows {
		for _, place := range f.stream.Account.PlacesFailed {
			if w.FailedByPlace[place] > 0 {
				return f.within(w.From)
			}
		}
	}
	return f.End
}

func (f requestAccount) StalledAt() record.Micros {
	if len(f.stream.Stood) == 0 {
		return f.End
	}
	return f.within(f.stream.Stood[0].To)
}

func (f requestAccount) QuantileAt(s slo.SLO, sample Sample) (record.Micros, int) {
	over := f.stream.Over(s)
	if s.Op == slo.Greater || s.Op == slo.GreaterEqual {
		return f.since(sample.Rank(s.Q), func(w *stream.Window) int { return w.Intended - over(w) })
	}
	return f.since(sample.N()-sample.Rank(s.Q)+1, over)
}

func (f requestAccount) ErrorsAt(s slo.SLO, asked int) record.Micros {
	most := 0 // that the objective allows
	for most < asked && s.Op.Holds(100*float64(most+1)/float64(asked), s.Percent) {
		most++
	}
	at, _ := f.since(most+1, func(w *stream.Window) int {
		if s.Form == slo.Retried {
			return w.Retried
		}
		return w.Failed + w.Dropped
	})
	return at
}

func (f requestAccount) HeldBackAt(a *result.Arrivals) record.Micros {
	at, _ := f.since(int(LateTolerated/100*float64(a.Judged))+1, func(w *stream.Window) int { return w.Late })
	return at
}

func (f requestAccount) Short(s slo.SLO) (short, lost int, first record.Micros) {
	first, short = f.since(1, f.stream.Over(s))
	return short, f.stream.Account.Lost, first
}
