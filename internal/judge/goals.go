package judge

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// verdicts judges a step by the goals. It reads the facts, and notes in the step
// what it broke on.
type verdicts struct {
	spec   *Spec
	f      *facts
	step   *judged
	normal *judged // the first step, nil where it tells of nothing
}

// goal judges a step by one goal: the worst of its objectives.
func (v *verdicts) goal(g slo.Goal) (slo.Verdict, string) {
	c, f := v.step, v.f
	own := v.tooLate(g) // why the program itself could be the reason for what was seen
	if d := c.OwnDelay; own == "" && d.short(c.Open) {
		own = fmt.Sprintf("plimsoll itself was short of CPU: of %d wakeups, %d were late by more than %v", d.Wakes, d.Late, OwnDelayBound)
	}
	if own != "" && c.Ending != record.EndInterrupted {
		return slo.Invalid, own
	}
	var open, broken []string
	missing := false // the goal broke on objects that were not ready
	refused := ""    // why requests failed, where it broke on those
	for _, guard := range f.guards {
		broken = append(broken, "guard:"+guard.Name)
	}
	if f.replaced > 0 {
		n := float64(f.replaced)
		what := "replaced: " + manyObjects(f.replaced) + " replaced others during the step"
		broken = append(broken, what)
		c.addBreach([]string{g.Name}, Breach{What: what, Value: &n, Bound: new(float64), Kind: BreachReplaced, Count: f.replaced, at: max(f.replacedAt, f.start)})
	}
	if a := c.Arrivals; a != nil && c.Open && heldBack(a) {
		value, bound := 100-100*float64(a.Late)/float64(a.Judged), 100-lateTolerated
		what := fmt.Sprintf("achievedRate: %d of %d arrivals waited because answers were slow and the limit of requests in flight was reached; %d were dropped", a.Late, a.Judged, a.Dropped)
		broken = append(broken, what)
		c.addBreach([]string{g.Name}, Breach{What: what, Value: &value, Bound: &bound, Kind: BreachAchieved, Count: a.Late, at: f.moments().heldBackAt(a)})
	}
	if b, grew := notSteady(c.Backlog); grew {
		b.at = f.end
		broken = append(broken, b.What)
		c.addBreach([]string{g.Name}, b)
	}
	for _, s := range g.SLOs {
		o := v.objective(s)
		switch o.verdict {
		case slo.Breached:
			if f.moments().cutBefore(s) {
				// What the rest of the step would have added may change it.
				open = append(open, "the step was cut short: "+o.what+" until then")
				continue
			}
			broken = append(broken, o.what)
			missing = missing || o.missing
			if o.kind == BreachErrors && f.stream == nil {
				refused = Refusal(c.Reasons)
			}
			c.addBreach([]string{g.Name}, Breach{What: o.what, Value: o.value, Bound: o.bound, Kind: o.kind, Count: o.count, at: o.at})
		case slo.Inconclusive:
			open = append(open, o.what)
		}
	}
	switch {
	case len(broken) > 0 && own != "":
		return slo.Invalid, own // what decides nothing is not known, and not invalid
	case len(broken) > 0 && c.AtLeast:
		return slo.Invalid, "the generator was short of processor time, so that this says nothing of the target: " + strings.Join(broken, "; ")
	case len(broken) > 0:
		what := strings.Join(broken, "; ")
		switch {
		case len(f.guards) > 0:
			// What a guard interrupted is not what bound.
			c.binding[g.Name] = strings.Join(broken[:len(f.guards)], "; ")
		case missing && len(c.Reasons) > 0 && c.Bottleneck.bound() == nil:
			c.binding[g.Name] = binding(&v.spec.Kind, c.Reasons)
		default:
			c.binding[g.Name] = what
			if b := c.Bottleneck.bound(); b != nil {
				c.binding[g.Name] = b.String() + "; " + what
			}
			if refused != "" {
				c.binding[g.Name] += "; " + refused
			}
			if text := growthOf(c.Bottleneck, v.normal, c.WatchLag); text != "" && (c.Open || f.stream != nil) {
				c.binding[g.Name] += "; " + text
			}
			if text := longestOf(c.Bottleneck); text != "" && !c.Open && f.stream == nil {
				c.binding[g.Name] += "; " + text
			}
		}
		if len(f.guards) > 0 && f.stream == nil {
			what += fmt.Sprintf("; %d of %d were ready", c.Objects.Ready, c.Objects.Intended)
		}
		return slo.Breached, what
	case len(open) > 0:
		return slo.Inconclusive, strings.Join(open, "; ")
	case f.stream != nil && f.stream.err != nil:
		return slo.Inconclusive, "its latencies are not known: " + f.stream.err.Error()
	case c.Account().Lost > 0:
		return slo.Inconclusive, "the state of " + v.many(c.Account().Lost) + " is not known"
	case f.blind:
		return slo.Inconclusive, "the watch was cut at the end of the step"
	case f.cut():
		return slo.Inconclusive, "the step was cut short: " + c.message
	case f.toAsk > c.requested:
		return slo.Inconclusive, "the requests for " + manyObjects(f.toAsk-c.requested) + " are not on record"
	case c.Account().Intended == 0 && f.others > 0:
		return slo.Inconclusive, fmt.Sprintf("%d %s that are not this run's already make %.10g %s: nothing was asked for", f.others, v.spec.Kind.Object.Many, c.LevelReached, v.spec.Unit)
	case c.Account().Intended == 0:
		return slo.Inconclusive, "nothing was asked for"
	}
	return slo.Pass, "every objective held"
}

func manyObjects(n int) string { return manyOf("object", n) }

// manyOf is a number of things.
func manyOf(one string, n int) string {
	if n != 1 {
		one += "s"
	}
	return strconv.Itoa(n) + " " + one
}

// many is a number of what the step asked for.
func (v *verdicts) many(n int) string {
	if v.f.stream != nil {
		return manyOf("request", n)
	}
	return manyObjects(n)
}

// addGuards notes the guards that stopped the load, each at the time it came.
func (v *verdicts) addGuards() {
	for _, guard := range v.f.guards {
		v.step.addBreach(goalNames(v.spec), guardBreach(guard))
	}
}

// judgement is what one objective makes of a step.
type judgement struct {
	verdict      slo.Verdict
	what         string // was breached, or is not known
	value, bound *float64
	missing      bool // it broke on objects that were not ready
	// Of a breach: its sort, how many objects or requests it is of, and when
	// the objective could no longer hold.
	kind  BreachKind
	count int
	at    record.Micros
}

func passed() judgement { return judgement{verdict: slo.Pass} }

func inconclusive(format string, args ...any) judgement {
	return judgement{verdict: slo.Inconclusive, what: fmt.Sprintf(format, args...)}
}

// objective judges a step by one objective.
func (v *verdicts) objective(s slo.SLO) judgement {
	c, f := v.step, v.f
	switch s.Form {
	case slo.All:
		return v.all(s)
	case slo.Quantile:
		return v.quantile(s)
	case slo.Errors:
		asked, failed := c.APIRequests.N+f.dropped, c.APIRequests.Failed+f.dropped
		if r := c.Requests; r != nil {
			asked, failed = r.Intended-r.Lost, r.failedAll()+r.Dropped
		}
		if asked == 0 {
			return inconclusive("%s: no request was made", s)
		}
		o := judgePercent(s, 100*float64(failed)/float64(asked))
		o.kind, o.count, o.at = BreachErrors, failed, f.moments().errorsAt(s, asked)
		return o
	default: // slo.Achieved
		if f.achieved == nil {
			return inconclusive("%s: the rate is not known", s)
		}
		o := judgePercent(s, *f.achieved)
		o.kind, o.at = BreachAchieved, f.moments().achievedAt(s)
		return o
	}
}

func judgePercent(s slo.SLO, value float64) judgement {
	if s.Op.Holds(value, s.Percent) {
		return passed()
	}
	return judgement{verdict: slo.Breached, what: fmt.Sprintf("%s: it was %.4g%%", s, value), value: finite(value), bound: &s.Percent}
}

// quantile judges the latencies of the step's own objects.
func (v *verdicts) quantile(s slo.SLO) judgement {
	sample, ok := v.f.samples[s.Milestone]
	if !ok || sample.N() == 0 {
		return inconclusive("%s: nothing of the step could be judged", s)
	}
	if s.Q < 1 && !stats.Resolves(s.Q, sample.N()) {
		v.step.largest = append(v.step.largest, fmt.Sprintf("%s is judged by the maximum: %s needs %s, and there were fewer",
			s, stats.QuantileName(s.Q), v.many(int(math.Ceil((1-1e-9)/(1-s.Q))))))
	}
	value, bound := sample.Quantile(s.Q), s.Within.Seconds()
	holds := s.Op.Holds(value, bound)
	if sample.lost > 0 {
		// What is lost may have been ready at once, or never.
		best := sample.AtOnce(sample.lost).Quantile(s.Q)
		if s.Op.Holds(best, bound) != holds {
			return inconclusive("%s: it depends on %s whose state is not known", s, v.many(sample.lost))
		}
	}
	if holds {
		return passed()
	}
	at, count := v.f.moments().quantileAt(s, sample)
	return judgement{verdict: slo.Breached, what: fmt.Sprintf("%s: it was %s", s, duration(value, s.Within)), value: finite(value), bound: &bound, missing: math.IsInf(value, 1), kind: BreachLatency, count: count, at: at}
}

// all judges all objects in place: whether they are there, and, of the
// step's own, whether they were in time.
func (v *verdicts) all(s slo.SLO) judgement {
	f := v.f
	short, lost, first := f.moments().short(s)
	n := float64(short)
	broken := judgement{verdict: slo.Breached, value: &n, bound: new(float64), missing: true, kind: BreachMissing, count: short, at: first}
	switch {
	case short > 0 && f.stream != nil:
		broken.what = s.String() + ": " + v.many(short) + " did not reach it"
		return broken
	case short > 0:
		broken.what = fmt.Sprintf("%s: %d of %d did not reach it", s, short, v.step.asked)
		return broken
	case lost > 0 && f.stream != nil:
		return inconclusive("%s: what became of %s is not known", s, v.many(lost))
	case lost > 0:
		return inconclusive("%s: the state of %d of %d is not known", s, lost, v.step.asked)
	}
	return passed()
}

// leastOwn is the least quantile of the generator's own delay that is judged: of a
// twentieth of the requests that came later than a median shows little.
const leastOwn = 0.95

// tooLate says that the generator was late by its own doing, "" where it was not:
// its delay at p99 may be a tenth of the quantile that is judged, and OwnDelayBound
// at most. Arms that are compared by a lower quantile are judged by that alone, and
// by the same one of the delay, for what comes beyond does not shift it.
func (v *verdicts) tooLate(g slo.Goal) string {
	a := v.step.Arrivals
	if a == nil || a.OwnDelayP99 == nil {
		return ""
	}
	q, delay, bound, of := 0.99, *a.OwnDelayP99, OwnDelayBound.Seconds(), ""
	if v.f.stream != nil {
		var judged []slo.Figure
		for _, s := range g.SLOs {
			if s.Form == slo.Quantile {
				judged = append(judged, slo.Figure{Milestone: s.Milestone, Q: s.Q})
			}
		}
		if arms := v.spec.Arms; arms != nil {
			if f, err := slo.ParseFigure(arms.Metric); err == nil {
				judged, q = []slo.Figure{f}, min(max(f.Q, leastOwn), q)
				delay = v.f.stream.ownDelay(q)
			}
		}
		for _, f := range judged {
			if x, ok := v.f.samples[f.Milestone]; ok && x.N() > 0 && x.Quantile(f.Q)/10 < bound {
				bound, of = x.Quantile(f.Q)/10, ", a tenth of "+f.String()
			}
		}
	}
	if delay <= bound {
		return ""
	}
	most := time.Duration(bound * float64(time.Second)).Round(time.Microsecond)
	return fmt.Sprintf("%s itself was late: its own delay, %s of %d arrivals, was %s, more than %v%s",
		cmp.Or(v.spec.Kind.Generator, "plimsoll"), stats.QuantileName(q), a.Judged, duration(delay, most), most, of)
}

// notSteady is what a goal breaks on where the backlog grew throughout the hold.
func notSteady(b *Backlog) (Breach, bool) {
	if b == nil || !b.Growing {
		return Breach{}, false
	}
	bound := steadyRise
	return Breach{
		What: fmt.Sprintf("notSteady: the backlog grew throughout the hold, from %.0f to %.0f (%.3g a second, 95 %% interval %.3g to %.3g), by %.3g %% of its arrivals",
			b.Means[0], b.Means[len(b.Means)-1], *b.Slope.Value, *b.Slope.Lo, *b.Slope.Hi, b.Rise),
		Value: &b.Rise, Bound: &bound, Kind: BreachNotSteady,
	}, true
}
