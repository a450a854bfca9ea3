package verdict

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// verdicts judges a step by the goals. It reads the facts, and notes the breaches in the step.
type verdicts struct {
	spec   *result.Spec
	f      *fold.Facts
	step   *Judged
	normal *Judged // the first step, nil where it is not normal
}

func (v *verdicts) goal(g slo.Goal) (slo.Verdict, string) {
	e := &evidence{verdicts: v, goal: g}
	if v.void() == "" || v.f.Stopped() {
		e.gather()
	}
	d := e.decide()
	seen := d.check.name == seenOnly
	for i := range e.broken {
		v.step.addBreach(e.broken[i].Breach, g.Name, !seen)
	}
	switch {
	case d.check.verdict == slo.Fail:
		e.bind()
	case d.check.name == compared:
		v.step.Compared = true
	}
	return d.check.verdict, d.why
}

// void says why the step decides nothing, or "". A stream's own delay only adds to latencies, so a pass
// stays one; arms are compared by figures with that delay, unless it leaves them alone.
func (v *verdicts) void() string {
	switch own := v.own(); {
	case v.step.Ending == record.EndInterrupted:
		return ""
	case v.f.Account.Streams() && (own == "" || v.spec.Arms == nil):
		return v.allLeftOut()
	default:
		return own
	}
}

// own says why the program itself could have caused the breaches, or "".
func (v *verdicts) own() string {
	if v.f.Account.Streams() {
		return v.short()
	}
	return cmp.Or(v.tooLate(), v.short())
}

func (e *evidence) gather() {
	c, f := e.step, e.f
	for _, guard := range f.Guards {
		e.broken = append(e.broken, breach{Breach: GuardBreach(guard), delay: delayNever})
	}
	if f.Replaced > 0 {
		n := float64(f.Replaced)
		what := "replaced: " + result.ManyObjects(f.Replaced) + " replaced others during the step"
		e.broken = append(e.broken, breach{Breach: result.Breach{What: what, Value: &n, Bound: new(float64), Kind: result.BreachReplaced, Count: f.Replaced, At: max(f.ReplacedAt, f.Start)}})
	}
	tried, says := f.Account.Tried()
	if a := c.Arrivals; a != nil && c.Open && fold.HeldBack(a) && !(tried == stream.PlacesEnough && a.Dropped == 0) {
		value, bound := 100-100*float64(a.Late)/float64(a.Judged), 100-fold.LateTolerated
		what := fmt.Sprintf("achievedRate: %d of %d arrivals waited because answers were slow and the limit of requests in flight was reached; %d were dropped", a.Late, a.Judged, a.Dropped)
		if says != "" {
			what += "; " + says
		}
		at := f.Account.HeldBackAt(a)
		e.broken = append(e.broken, breach{
			Breach: result.Breach{What: what, Value: &value, Bound: &bound, Kind: result.BreachAchieved, Count: a.Late, At: at},
			late:   e.tooLate(), by: e.neighbour(at),
		})
	}
	e.backlog()
	slos := e.goal.SLOs
	if c.Streams() && !slices.ContainsFunc(slos, func(s slo.SLO) bool { return s.Form == slo.Failed }) {
		// A dead place weighs little in serial requests. Without such an objective none may fail.
		if s, err := slo.Parse(cmp.Or(e.spec.Kind.Place.Many, "places") + " failed <= 0"); err == nil {
			slos = append(slices.Clip(slos), s)
		}
	}
	for _, s := range slos {
		e.take(s, e.objective(s))
	}
}

func (e *evidence) take(s slo.SLO, o judgement) {
	switch text, explained := e.late(s, o); {
	case o.verdict == slo.Inconclusive:
		e.open = append(e.open, o.What)
	case o.verdict != slo.Fail:
	case e.f.CutBefore(s): // the rest of the step might have changed it
		e.open = append(e.open, "the step was cut short: "+o.What+" until then")
	case explained:
		e.open = append(e.open, text)
	default:
		b := o.breach
		b.late = e.explains(s)
		if b.delay == delayBears && b.late == "" {
			b.delay = delayApart
		}
		if !e.refused(s) {
			b.by = e.neighbour(b.At)
		}
		e.broken = append(e.broken, b)
	}
}

// neighbour returns a resource that others took, which explains a breach at a moment; nil for none.
func (v *verdicts) neighbour(at record.Micros) *result.Neighbour {
	taken := v.step.Neighbours
	if len(taken) == 0 {
		taken = v.f.NeighboursAt(at)
	}
	if len(taken) == 0 {
		return nil
	}
	return &taken[0]
}

// backlog judges whether the backlog of a schedule grew. It contains arrivals whose news is late.
func (e *evidence) backlog() {
	b := e.step.Backlog
	x, grew := notSteady(b)
	switch {
	case grew && !e.f.Account.Grows(e.spec, e.step.Arrivals.Judged):
		e.open = append(e.open, x.What+e.lateNews()+", which explains as much")
	case grew:
		x.At = e.f.HoldEnd() // afterwards the backlog is worked off
		e.broken = append(e.broken, breach{Breach: x, late: e.tooLate(), by: e.neighbour(x.At)})
	case b != nil && b.Undecided && e.spec.Arms == nil:
		e.open = append(e.open, fmt.Sprintf("whether the backlog grows is not decided in a hold of %s: by %s a second (99.7%% interval %s to %s), of which %s are tolerated",
			result.DurationText(e.step.Hold.Seconds(), 0), number.Text(*b.Slope.Value, 3), number.Text(*b.Slope.Lo, 3), number.Text(*b.Slope.Hi, 3), number.Text(b.Tolerated, 3)))
	}
}

func (v *verdicts) lateNews() string {
	text := "; the news of objects was late"
	if lag := v.f.MostLag(); lag > 0 {
		text += ", by " + result.DurationText(lag, 0) + " at most"
	}
	return text
}

// late reports whether the lag of the news explains a breach, and says so.
func (v *verdicts) late(s slo.SLO, o judgement) (string, bool) {
	if o.verdict != slo.Fail {
		return "", false
	}
	least, explained := v.f.Account.Explained(s)
	if !explained {
		return "", false
	}
	text := o.What + v.lateNews()
	if (s.Form == slo.Quantile || s.Form == slo.Mean) && o.Value != nil {
		text += fmt.Sprintf(": it was between %s and %s", result.DurationText(least, s.Within), result.DurationText(*o.Value, s.Within))
	}
	return text, true
}

func (e *evidence) bind() {
	c, f := e.step, e.f
	switch {
	case len(f.Silent) > 0:
		c.Binding[e.goal.Name] = f.Silent[0].String() // nothing was used up or slow
	case len(f.Guards) > 0:
		c.Binding[e.goal.Name] = texts(e.broken[:len(f.Guards)]) // the rest was interrupted
	case e.missing() && len(c.Reasons) > 0 && c.Bottleneck.Bound() == nil:
		c.Binding[e.goal.Name] = result.Binding(&e.spec.Kind, c.Reasons)
	default:
		list := []string{texts(e.broken)}
		if b := c.Bottleneck.Bound(); b != nil {
			list = slices.Insert(list, 0, b.String())
		}
		if !f.Account.Streams() && slices.ContainsFunc(e.broken, func(b breach) bool { return b.Kind == result.BreachErrors }) {
			list = append(list, result.Refusal(c.Reasons))
		}
		if c.Open || f.Account.Streams() {
			list = append(list, growthOf(c.Bottleneck, e.normal, c.WatchLag))
		} else {
			list = append(list, longestOf(c.Bottleneck))
		}
		c.Binding[e.goal.Name] = strings.Join(slices.DeleteFunc(list, func(text string) bool { return text == "" }), "; ")
	}
}

func (v *verdicts) many(n int) string {
	if v.f.Account.Streams() {
		return result.ManyOf("request", n)
	}
	return result.ManyObjects(n)
}

func (v *verdicts) addGuards() {
	for _, guard := range v.f.Guards {
		for _, g := range v.spec.Goals {
			v.step.addBreach(GuardBreach(guard), g.Name, true)
		}
	}
}

type judgement struct {
	verdict slo.Verdict
	breach  // if it is slo.Fail; else What names the unknown
}

func passed() judgement { return judgement{verdict: slo.Pass} }

func inconclusive(format string, args ...any) judgement {
	return judgement{slo.Inconclusive, breach{Breach: result.Breach{What: fmt.Sprintf(format, args...)}}}
}

func (v *verdicts) objective(s slo.SLO) judgement {
	c, f := v.step, v.f
	switch s.Form {
	case slo.All:
		return v.all(s)
	case slo.Quantile, slo.Mean:
		return v.latencies(s)
	case slo.Query:
		return v.query(s)
	case slo.Errors, slo.Retried:
		asked, failed, retried := f.Account.Requests(&c.Step)
		if s.Form == slo.Retried {
			failed = retried
		}
		if asked == 0 {
			return inconclusive("%s: no request was made", s)
		}
		o := judgePercent(s, 100*float64(failed)/float64(asked))
		unsent := c.Account().Dropped // a delay explains these
		if s.Form == slo.Retried || !s.Op.Holds(100*float64(failed-unsent)/float64(asked), s.Percent) {
			o.delay = delayNever
		}
		o.Kind, o.Count, o.At = result.BreachErrors, failed, f.Account.ErrorsAt(s, asked)
		return o
	case slo.Failed:
		if !c.Streams() {
			return inconclusive("%s: only loads of requests tell which failed", s)
		}
		list := c.Requests.PlacesFailed
		n, bound := float64(len(list)), float64(s.Count)
		if s.Op.Holds(n, bound) {
			return passed()
		}
		what := fmt.Sprintf("%s: %d failed: %s", s, len(list), strings.Join(list[:min(len(list), 3)], ", "))
		if more := len(list) - 3; more > 0 {
			what += fmt.Sprintf(" and %d more", more)
		}
		return judgement{slo.Fail, breach{
			Breach: result.Breach{What: what, Value: &n, Bound: &bound, Kind: result.BreachPlaces, Count: len(list), At: f.Account.PlacesFailedAt()},
			delay:  delayNever,
		}}
	default: // slo.Achieved
		if f.Achieved == nil {
			return inconclusive("%s: the rate is unknown", s)
		}
		o := judgePercent(s, *f.Achieved)
		if r := c.Account(); c.Streams() && r.Lost > 0 && s.Op.Holds(*f.Achieved+100*float64(r.Lost)/float64(r.Intended), s.Percent) != (o.verdict == slo.Pass) {
			return inconclusive("%s: it depends on %s whose state is unknown", s, v.many(r.Lost))
		}
		o.Kind, o.At = result.BreachAchieved, f.AchievedAt(s)
		return o
	}
}

// refused reports whether refusals alone break an objective: no lack of processors explains them.
func (v *verdicts) refused(s slo.SLO) bool {
	f := v.f
	switch s.Form {
	case slo.All:
		return f.Account.RefusedObjects(s.Milestone, false) > 0
	case slo.Quantile, slo.Mean:
		n, refused := f.Samples[s.Milestone].N(), f.Account.RefusedObjects(s.Milestone, true)
		return !s.Op.Holds(s.Figure(stats.NewSample(make([]float64, max(n-refused, 0)), refused)), s.Within.Seconds())
	case slo.Failed:
		return f.Account.Refused() > 0
	case slo.Retried:
		return true
	case slo.Query:
		return false
	}
	asked, _, _ := f.Account.Requests(&v.step.Step)
	share := 100 * float64(f.Account.Refused()) / float64(max(asked, 1))
	if s.Form == slo.Achieved {
		share = 100 - share
	}
	return !s.Op.Holds(share, s.Percent)
}

func (v *verdicts) query(s slo.SLO) judgement {
	i := slices.IndexFunc(v.f.Answers, func(a *record.Answer) bool { return a.Objective == s.String() })
	if i < 0 {
		return inconclusive("%s: it was not asked", s)
	}
	a := v.f.Answers[i]
	if a.Broken > 0 && a.Why == "" {
		value, _ := strconv.ParseFloat(a.Value, 64)
		what := fmt.Sprintf("%s: it was %s", s, number.Text(value, 4))
		if a.Of != "" {
			what += " of " + a.Of
		}
		if a.Series > 1 {
			what += fmt.Sprintf(" (%d of %d series)", a.Broken, a.Series)
		}
		return judgement{slo.Fail, breach{Breach: result.Breach{
			What: what, Value: result.Finite(value), Bound: &s.Value, Kind: result.BreachQuery, Count: a.Broken, At: min(max(a.Since, v.f.Start), v.f.End),
		}}}
	}
	if a.Why != "" || a.Series == 0 || a.NaN > 0 {
		return inconclusive("%s: %s", s, cmp.Or(a.Why, "it is unknown"))
	}
	return passed()
}

func judgePercent(s slo.SLO, value float64) judgement {
	if s.Op.Holds(value, s.Percent) {
		return passed()
	}
	return judgement{slo.Fail, breach{Breach: result.Breach{What: fmt.Sprintf("%s: it was %s%%", s, number.Text(value, 4)), Value: result.Finite(value), Bound: &s.Percent}}}
}

func (v *verdicts) latencies(s slo.SLO) judgement {
	sample, ok := v.f.Samples[s.Milestone]
	if v.step.APIRequests.N > 0 && !v.f.Asks(s.Milestone) {
		return passed() // it asked for no objects with the milestone
	}
	if !ok || sample.N() == 0 {
		return inconclusive("%s: nothing of the step could be judged", s)
	}
	if s.Form == slo.Quantile && s.Q < 1 && !stats.Resolves(s.Q, sample.N()) {
		v.step.Largest = append(v.step.Largest, fmt.Sprintf("%s is judged by the maximum: %s needs %s, and there were fewer",
			s, stats.QuantileName(s.Q), v.many(int(math.Ceil((1-1e-9)/(1-s.Q))))))
	}
	value, bound := s.Figure(sample), s.Within.Seconds()
	holds := s.Op.Holds(value, bound)
	if sample.Lost > 0 {
		best := s.Figure(sample.AtOnce(sample.Lost)) // they may have been ready at once, or never
		if s.Op.Holds(best, bound) != holds {
			return inconclusive("%s: it depends on %s whose state is unknown", s, v.many(sample.Lost))
		}
	}
	b := breach{
		Breach:  result.Breach{What: fmt.Sprintf("%s: it was %s", s, result.DurationText(value, s.Within)), Kind: result.BreachLatency, Count: sample.N() - sample.AtMost(bound), At: v.f.End},
		missing: math.IsInf(value, 1),
	}
	if s.Form == slo.Quantile && !holds { // a mean is unknown before the last has come
		b.At, b.Count = v.f.Account.QuantileAt(s, sample)
	}
	if with, stalled := v.f.Account.Corrected(s.Milestone); holds && stalled && !s.Op.Holds(s.Figure(with), bound) {
		holds, value = false, s.Figure(with) // with the requests that a stall held back
		b.missing, b.Count, b.At = false, with.N()-with.AtMost(bound), v.f.Account.StalledAt()
		b.What += fmt.Sprintf(" of the requests that were sent, and %s with those that a stall held back", result.DurationText(value, s.Within))
	}
	if holds {
		return passed()
	}
	if b.Value, b.Bound = result.Finite(value), &bound; value-bound > delayWeight*v.mostDelay() {
		b.delay = delayShort
	}
	return judgement{slo.Fail, b}
}

// delayWeight is the least excess of a latency over its bound, in longest delays of the generator, that
// the delay does not explain: delayed arrivals come together, and wait for each other as well.
const delayWeight = 10

// mostDelay returns the generator's longest delay in seconds; infinite if unknown, or with drops.
func (v *verdicts) mostDelay() float64 {
	a := v.step.Arrivals
	if a == nil || a.OwnDelayMax == nil || a.Dropped > 0 {
		return math.Inf(1)
	}
	most := *a.OwnDelayMax
	if d := v.step.OwnDelay; d != nil {
		most = max(most, d.Max)
	}
	return most
}

func (v *verdicts) all(s slo.SLO) judgement {
	f := v.f
	short, lost, first := f.Account.Short(s)
	n := float64(short)
	broken := breach{Breach: result.Breach{Value: &n, Bound: new(float64), Kind: result.BreachMissing, Count: short, At: first}, missing: true}
	switch {
	case short > 0 && f.Account.Streams():
		broken.What = s.String() + ": " + v.many(short) + " did not reach it"
		return judgement{slo.Fail, broken}
	case short > 0:
		broken.What = fmt.Sprintf("%s: %d of %d did not reach it", s, short, v.f.Of(s.Milestone))
		return judgement{slo.Fail, broken}
	case lost > 0 && f.Account.Streams():
		return inconclusive("%s: what became of %s is unknown", s, v.many(lost))
	case lost > 0:
		return inconclusive("%s: the state of %d of %d is unknown", s, lost, v.f.Of(s.Milestone))
	}
	return passed()
}

func notSteady(b *result.Backlog) (result.Breach, bool) {
	if b == nil || !b.Growing {
		return result.Breach{}, false
	}
	return result.Breach{
		What: fmt.Sprintf("notSteady: the backlog grew throughout the hold, from %.0f to %.0f: by %s a second (99.7%% interval %s to %s), of which %s are tolerated",
			b.Means[0], b.Means[len(b.Means)-1], number.Text(*b.Slope.Value, 3), number.Text(*b.Slope.Lo, 3), number.Text(*b.Slope.Hi, 3), number.Text(b.Tolerated, 3)),
		Value: b.Slope.Value, Bound: &b.Tolerated, Kind: result.BreachNotSteady,
	}, true
}
