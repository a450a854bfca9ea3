package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

const (
	delayPart    = 0.1  // largest part of a latency that the generator's own delay may be
	asAsked      = 99.0 // percentage of a hold's requests answered in it that makes the load the level's
	shiftedBelow = 0.95 // quantile below which the shift by many late requests is estimated
)

// short says that the program, or a scheduled stream's generator, was late for lack of CPUs; or "".
func (v *verdicts) short() string {
	d := v.step.OwnDelay
	if v.f.Account.Streams() && v.step.Open || !d.Short(v.step.Open) {
		return ""
	}
	return fmt.Sprintf("plimsoll itself was short of CPU: of %d wakeups, %d were late by more than %v", d.Wakes, d.Late, result.OwnDelayBound)
}

// tooLate says that the program sent requests late, at p99 by more than OwnDelayBound, or "".
func (v *verdicts) tooLate() string {
	a := v.step.Arrivals
	if a == nil || a.OwnDelayP99 == nil {
		return ""
	}
	return v.lateBy("p99", *a.OwnDelayP99, math.Inf(1), "")
}

// explains says that the generator of a stream was so late that this may have broken an objective, or "".
func (v *verdicts) explains(s slo.SLO) string {
	switch {
	case !v.f.Account.Streams():
		return ""
	case s.Form == slo.Quantile:
		return v.lateFor(slo.Figure{Milestone: s.Milestone, Q: s.Q})
	case s.Form == slo.Mean:
		return v.lateForMean(s.Milestone)
	}
	return v.tooLate()
}

// lateFor says that a quantile shows the generator's delay, or "": the delay there is more than a tenth
// of it or OwnDelayBound, or so many requests were late that it is shifted by more than a tenth.
func (v *verdicts) lateFor(f slo.Figure) string {
	x, ok := v.f.Samples[f.Milestone]
	if !ok || x.N() == 0 || v.step.Arrivals == nil || v.step.Arrivals.OwnDelayP99 == nil {
		return ""
	}
	own, seen := v.f.Account.OwnDelays(), x.Quantile(f.Q)
	if why := v.lateBy(stats.QuantileName(f.Q), own.Quantile(f.Q), seen, f.String()); why != "" || f.Q >= shiftedBelow {
		return why
	}
	if by := shift(x.Sample, own, f.Q); by > delayPart*seen {
		return fmt.Sprintf("%s itself was late: its own delay, which of %d arrivals was %s at p90 and %s at p99, shifts %s by about %s, more than a tenth", v.generator(), v.step.Arrivals.Judged,
			result.DurationText(own.Quantile(0.9), 0), result.DurationText(own.Quantile(0.99), 0), f, result.DurationText(by, 0))
	}
	return ""
}

// lateForMean does the same for the mean of a milestone.
func (v *verdicts) lateForMean(milestone string) string {
	x, ok := v.f.Samples[milestone]
	if !ok || x.N() == 0 || v.step.Arrivals == nil || v.step.Arrivals.OwnDelayP99 == nil {
		return ""
	}
	return v.lateBy("mean", v.f.Account.OwnDelays().Mean(), x.Mean(), milestone+" mean")
}

// lateBy says that the own delay is more than a tenth of a figure, or than OwnDelayBound.
func (v *verdicts) lateBy(name string, delay, seen float64, of string) string {
	bound := result.OwnDelayBound.Seconds()
	if part := delayPart * seen; part < bound {
		bound, of = part, ", a tenth of "+of
	} else {
		of = ""
	}
	if delay <= bound {
		return ""
	}
	most := time.Duration(bound * float64(time.Second)).Round(time.Microsecond)
	return fmt.Sprintf("%s itself was late: its own delay, %s of %d arrivals, was %s, more than %v%s", v.generator(), name, v.step.Arrivals.Judged, result.DurationText(delay, most), most, of)
}

func (v *verdicts) generator() string { return cmp.Or(v.spec.Kind.Generator, "plimsoll") }

// shift estimates how far a delay has shifted a quantile: as far as it would once more.
func shift(latency, delay stats.Sample, q float64) float64 {
	const parts = 100
	delays := make([]float64, parts)
	for i := range delays {
		delays[i] = delay.Quantile((float64(i) + 0.5) / parts)
	}
	was := latency.Quantile(q)
	holds := func(x float64) bool { // a part q of the latencies with the delay are at most x
		sum := 0.0
		for _, d := range delays {
			sum += float64(latency.AtMost(x - d))
		}
		return sum >= q*parts*float64(latency.N())
	}
	lo, hi := was, was+delays[parts-1]
	if math.IsInf(was, 1) || !holds(hi) {
		return 0
	}
	const halvings = 40
	for range halvings {
		if middle := (lo + hi) / 2; holds(middle) {
			hi = middle
		} else {
			lo = middle
		}
	}
	return hi - was
}

// leaveOut notes the figures of a stream that do not count for arms because the late generator shifts
// them. Others, such as the CPU time of a request, count if the load was the level's.
func (v *verdicts) leaveOut() {
	if v.spec.Arms == nil || !v.f.Account.Streams() {
		return
	}
	out := make(map[string]string)
	for name := range v.f.Samples {
		for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 1} {
			f := slo.Figure{Milestone: name, Q: q}
			out[f.String()] = v.lateFor(f)
		}
		out[name+" mean"] = v.lateForMean(name)
	}
	late := v.tooLate()
	if a := v.f.Achieved; a != nil && late != "" && *a < asAsked {
		late += fmt.Sprintf(": %.4g%% of the requests were answered in the hold", *a)
	} else {
		late = ""
	}
	for _, metric := range v.spec.Arms.Metrics() {
		f, err := slo.ParseFigure(metric)
		switch _, ok := out[metric]; {
		case ok:
		case err == nil:
			out[metric] = v.lateFor(f)
		default:
			out[metric] = late
		}
	}
	maps.DeleteFunc(out, func(_, why string) bool { return why == "" })
	if len(out) > 0 {
		v.step.LeftOut = out
	}
}

// allLeftOut says why none of the metrics of the arms counts in the step, or "".
func (v *verdicts) allLeftOut() string {
	if v.spec.Arms == nil {
		return ""
	}
	var why []string
	for _, metric := range v.spec.Arms.Metrics() {
		if v.step.LeftOut[metric] == "" {
			return ""
		}
		why = append(why, v.step.LeftOut[metric])
	}
	return strings.Join(slices.Compact(why), "; ")
}

// known reports whether a stream's step is whole, with known outcomes of its requests.
func (v *verdicts) known() bool {
	f, c := v.f, v.step
	return !f.Places.Taken && f.Places.String() == "" && f.Account.Damage() == nil && c.Account().Lost == 0 && !f.Blind && !f.Cut()
}
