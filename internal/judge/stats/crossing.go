package stats

import "math"

// Trial is a step that passed or failed at a level.
type Trial struct {
	Level  float64
	Passed bool
	Weight float64 // beside a trial with full weight: 1 or less
}

// What is taken for possible of a crossing before any trial: that it lies from a third of the lowest
// level to three times the highest, and that the probability falls, by a logistic curve, within a width
// of crossingSharp to crossingSoft of its level. By the order of magnitude all are equally likely, widths
// beyond crossingWide the less the wider they are. By simulated searches (make truth) an interval of 95%
// holds the planted level in 95% and more up to widths of a tenth; of softer limits in fewer.
const (
	crossingReach = 3.0
	crossingSharp = 0.002
	crossingWide  = 0.13
	crossingSoft  = 0.4
	// How finely both are looked at.
	crossingLevels = 600
	crossingWidths = 16
)

// FindCrossing estimates the level at which a trial passes with a probability of a half, where that falls
// as the level rises: the median of the posterior and its interval (Bayes), to which the choice of levels
// by what was seen does not matter. FD.io's PLRsearch does the same for the loss of packets; MLRsearch
// (RFC 9971) weighs trials by their durations, and here weights say how far a trial is like one from
// empty with the whole hold. An end that no trial bounds is infinite: the lower one where none passed,
// the upper one where none failed. It is not ok without any trial, or with a level that is not above 0.
func FindCrossing(trials []Trial, confidence float64) (e Estimate, ok bool) {
	e = Estimate{math.NaN(), math.Inf(-1), math.Inf(1)}
	lowest, highest, passed, failed := math.Inf(1), 0.0, false, false
	for _, t := range trials {
		lowest, highest = min(lowest, t.Level), max(highest, t.Level)
		passed, failed = passed || t.Passed, failed || !t.Passed
	}
	if len(trials) == 0 || !(lowest > 0) || math.IsInf(highest, 1) {
		return e, false
	}
	from, to := lowest/crossingReach, highest*crossingReach
	at := func(i int) float64 { return from * math.Pow(to/from, float64(i)/crossingLevels) }
	var likely [crossingLevels + 1][crossingWidths]float64 // logarithms
	most := math.Inf(-1)
	for i := range likely {
		level := at(i)
		for j := range likely[i] {
			width := level * widthOf(j)
			for _, t := range trials {
				x := (t.Level - level) / width
				if t.Passed {
					x = -x
				}
				// The logarithm of 1/(1+exp(-x)), which neither overflows nor rounds off.
				likely[i][j] += t.Weight * (min(x, 0) - math.Log1p(math.Exp(-math.Abs(x))))
			}
			most = max(most, likely[i][j])
		}
	}
	var share [crossingLevels + 1]float64
	all := 0.0
	for i := range likely {
		for j, l := range likely[i] {
			all += math.Exp(l-most) * min(1, math.Pow(crossingWide/widthOf(j), 2))
		}
		share[i] = all
	}
	below := func(part float64) float64 {
		for i, s := range share {
			if s >= part*all {
				return at(i)
			}
		}
		return to
	}
	tail := (1 - confidence) / 2
	e.Value = below(0.5)
	if passed {
		e.Lo = below(tail)
	}
	if failed {
		e.Hi = below(1 - tail)
	}
	return e, true
}

func widthOf(j int) float64 {
	return crossingSoft * math.Pow(crossingSharp/crossingSoft, float64(j)/(crossingWidths-1))
}
