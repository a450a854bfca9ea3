package fold

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// boundsOf are the objectives on latencies of all goals.
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

// fillStream fills in what a result has of a step whose load was a stream.
func fillStream(spec *result.Spec, f *Facts, step *Measured) {
	s := f.Stream
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
		fillStalls(spec, f)
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

// fillStalls fills in what stood still, and the latencies with what that kept from
// being sent.
func fillStalls(spec *result.Spec, f *Facts) {
	s, loop := f.Stream, stream.Loop{Open: f.head.Open}
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

// Corrected is the distribution of a milestone with the requests that a stall kept a
// closed loop from sending; there is none where nothing stood still.
func (f *Facts) Corrected(milestone string) (x stats.Sample, stalled bool) {
	if f.Stream != nil {
		x, stalled = f.Stream.Corrected[milestone]
	}
	return x, stalled
}

// OwnBound is [stream.Stream.OwnBound] where arrivals were held back, "" elsewhere.
func (f *Facts) OwnBound(a *result.Arrivals, goal slo.Goal) string {
	if f.Stream == nil || a == nil || !HeldBack(a) {
		return ""
	}
	return f.Stream.OwnBound(a, goal, f.head.Open)
}

// Tried is [stream.Stream.Tried], where the load was a stream.
func (f *Facts) Tried() (found stream.Places, says string) {
	if f.Stream == nil {
		return stream.PlacesUnknown, ""
	}
	return f.Stream.Tried()
}

// since is when a count over the windows of the step's stream first came to n, the
// end of the step if it never did, and the whole count.
func (f *Facts) since(n int, count func(w *stream.Window) int) (at record.Micros, all int) {
	at, reached, all := f.Stream.Since(n, count)
	if !reached {
		at = f.End
	}
	return f.within(at), all
}

// slowAt is Moments.QuantileAt for a stream.
func (f *Facts) slowAt(o slo.SLO, sample Sample) (record.Micros, int) {
	over := f.Stream.Over(o)
	if o.Op == slo.Greater || o.Op == slo.GreaterEqual {
		return f.since(sample.Rank(o.Q), func(w *stream.Window) int { return w.Intended - over(w) })
	}
	return f.since(sample.N()-sample.Rank(o.Q)+1, over)
}
