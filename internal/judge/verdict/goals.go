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
)

// verdicts judges a step by the goals. It reads the facts, and notes in the step
// what it broke on.
type verdicts struct {
	spec   *result.Spec
	f      *fold.Facts
	step   *Judged
	normal *Judged // the first step, nil where it tells of nothing
}

// goal judges a step by one goal: the worst of its objectives.
func (v *verdicts) goal(g slo.Goal) (slo.Verdict, string) {
	c, f := v.step, v.f
	// A stream's own delay only adds to latencies, so that a pass stays one. Arms
	// are compared by what it adds to, unless it leaves their figures alone.
	isStream := f.Stream != nil
	own := v.short() // why the program itself could be the reason for what was seen
	if !isStream {
		own = cmp.Or(v.tooLate(), own)
	}
	void := own
	if isStream && (own == "" || v.spec.Arms == nil) {
		void = v.allLeftOut()
	}
	if c.Ending == record.EndInterrupted {
		void = ""
	}
	if void != "" && !f.Stopped() {
		return slo.Invalid, void
	}
	on := v.objectives(g)
	// An actor that is known to have done nothing explains the missing objects, however
	// busy the machine was.
	stopped := f.Stopped() && len(on.broken) > 0
	if void != "" && !stopped {
		return slo.Invalid, void
	}
	bound := c.Bottleneck.Bound()
	if bound == nil || bound.Generator || bound.Slow {
		own = cmp.Or(own, f.OwnBound(c.Arrivals, g)) // nothing of the target was used up
	}
	switch {
	case stopped, len(on.broken) > 0 && isStream && on.sure:
		// What was refused, or never came, is no matter of delay.
	case len(on.broken) > 0 && bound != nil && bound.Generator:
		return slo.Invalid, bound.String() + ": this says nothing of the target: " + strings.Join(on.broken, "; ")
	case len(on.broken) > 0 && own != "" && !(isStream && on.beyond):
		return slo.Invalid, own // what decides nothing is not known, and not invalid
	case len(on.broken) > 0 && on.late != "" && !on.beyond && !on.untouched:
		if v.spec.Arms != nil && v.known() {
			c.Compared = true
			return slo.Inconclusive, on.late
		}
		return slo.Invalid, on.late
	}
	switch places := f.Places.String(); {
	case f.Places.Taken && len(f.Guards) == 0:
		c.takeBack(g.Name)
		return slo.Inconclusive, places
	case len(on.broken) > 0 && on.taken != nil && !on.certain && !stopped:
		return slo.Invalid, on.taken.String() + ": this says nothing of the target: " + strings.Join(on.broken, "; ")
	case len(on.broken) > 0:
		what := strings.Join(on.broken, "; ")
		if text := f.Final(); on.missing && text != "" {
			what += "; " + text
		}
		v.bind(g.Name, on)
		if len(f.Silent) > 0 {
			what = f.Silent[0].String() + "; " + what
		}
		if len(f.Guards) > 0 && f.Stream == nil {
			what += fmt.Sprintf("; %d of %d were ready", c.Objects.Ready, c.Objects.Intended)
		}
		return slo.Breached, what
	case len(on.open) > 0:
		return slo.Inconclusive, strings.Join(on.open, "; ")
	case f.Stream != nil && f.Stream.Err != nil:
		return slo.Inconclusive, "its latencies are not known: " + f.Stream.Err.Error()
	case places != "":
		return slo.Inconclusive, places
	case c.Account().Lost > 0:
		return slo.Inconclusive, "the state of " + v.many(c.Account().Lost) + " is not known"
	case f.Blind:
		return slo.Inconclusive, "the watch was cut at the end of the step"
	case f.Cut():
		return slo.Inconclusive, "the step was cut short: " + c.Message
	case c.Ending == record.EndUnfinished:
		return slo.Inconclusive, c.Message
	case f.ToAsk > c.Requested:
		return slo.Inconclusive, "the requests for " + result.ManyObjects(f.ToAsk-c.Requested) + " are not on record"
	case c.Account().Intended == 0 && c.APIRequests.N == 0 && f.Others > 0:
		return slo.Inconclusive, fmt.Sprintf("%d %s that are not this run's already make %.10g %s: nothing was asked for", f.Others, v.spec.Kind.Object.Many, c.LevelReached, v.spec.Unit)
	case c.Account().Intended == 0 && c.APIRequests.N == 0:
		return slo.Inconclusive, "nothing was asked for"
	}
	return slo.Pass, "every objective held"
}

// breaks is what a goal broke on, and what of it is not known.
type breaks struct {
	broken, open []string
	missing      bool   // it broke on objects that were not ready
	refused      string // why requests failed, where it broke on those
	sure         bool   // it broke on what no delay of the generator's explains
	beyond       bool   // it broke by far more than the generator was late
	// late says that the generator of a stream was late by so much that this explains
	// something that broke; untouched, that something broke on which it has no bearing.
	late      string
	untouched bool
	// taken, if not nil, is a resource that others took, which explains what it broke
	// on; certain says that it broke on something that none explains.
	taken   *result.Neighbour
	certain bool
}

// explain notes whether something that broke at a moment is explained by what others
// took of this machine: over the step, or shortly before that moment.
func (v *verdicts) explain(on *breaks, explicable bool, at record.Micros) {
	taken := v.step.Neighbours
	if len(taken) == 0 && explicable {
		taken = v.f.NeighboursAt(at)
	}
	if !explicable || len(taken) == 0 {
		on.certain = true
		return
	}
	if on.taken == nil {
		on.taken = &taken[0]
	}
}

// objectives judges a step by all objectives of a goal, and by what every goal
// asks for. What it broke on is noted in the step.
func (v *verdicts) objectives(g slo.Goal) (on breaks) {
	c, f := v.step, v.f
	for _, guard := range f.Guards {
		on.broken, on.sure, on.certain = append(on.broken, "guard:"+guard.Name), true, true
	}
	if f.Replaced > 0 {
		n := float64(f.Replaced)
		what := "replaced: " + result.ManyObjects(f.Replaced) + " replaced others during the step"
		on.broken, on.certain = append(on.broken, what), true
		c.addBreach([]string{g.Name}, result.Breach{What: what, Value: &n, Bound: new(float64), Kind: result.BreachReplaced, Count: f.Replaced, At: max(f.ReplacedAt, f.Start)})
	}
	tried, says := f.Tried()
	if a := c.Arrivals; a != nil && c.Open && fold.HeldBack(a) && !(tried == stream.PlacesEnough && a.Dropped == 0) {
		value, bound := 100-100*float64(a.Late)/float64(a.Judged), 100-fold.LateTolerated
		what := fmt.Sprintf("achievedRate: %d of %d arrivals waited because answers were slow and the limit of requests in flight was reached; %d were dropped", a.Late, a.Judged, a.Dropped)
		if says != "" {
			what += "; " + says
		}
		on.broken, on.late = append(on.broken, what), v.tooLate()
		b := result.Breach{What: what, Value: &value, Bound: &bound, Kind: result.BreachAchieved, Count: a.Late, At: f.Moments().HeldBackAt(a)}
		v.explain(&on, true, b.At)
		c.addBreach([]string{g.Name}, b)
	}
	v.backlog(g, &on)
	slos := g.SLOs
	if c.Requests != nil && !slices.ContainsFunc(slos, func(s slo.SLO) bool { return s.Form == slo.Failed }) {
		// A place that is dead weighs next to nothing among requests that come one
		// after the other: none may be, unless the goal says otherwise.
		if s, err := slo.Parse(cmp.Or(v.spec.Kind.Place.Many, "places") + " failed <= 0"); err == nil {
			slos = append(slices.Clip(slos), s)
		}
	}
	for _, s := range slos {
		o := v.objective(s)
		switch o.verdict {
		case slo.Breached:
			if f.Moments().CutBefore(s) {
				// What the rest of the step would have added may change it.
				on.open = append(on.open, "the step was cut short: "+o.what+" until then")
				continue
			}
			if text, explained := v.late(s, o); explained {
				on.open = append(on.open, text)
				continue
			}
			on.broken = append(on.broken, o.what)
			late := v.explains(s)
			on.late, on.untouched = cmp.Or(on.late, late), on.untouched || late == ""
			on.missing = on.missing || o.missing
			on.sure, on.beyond = on.sure || o.sure, on.beyond || o.beyond
			v.explain(&on, !v.refused(s), o.at)
			if o.kind == result.BreachErrors && f.Stream == nil {
				on.refused = result.Refusal(c.Reasons)
			}
			c.addBreach([]string{g.Name}, result.Breach{What: o.what, Value: o.value, Bound: o.bound, Kind: o.kind, Count: o.count, At: o.at})
		case slo.Inconclusive:
			on.open = append(on.open, o.what)
		}
	}
	return on
}

// backlog judges whether the backlog of a schedule grew. What arrives while news is
// late is in it until the news comes.
func (v *verdicts) backlog(g slo.Goal, on *breaks) {
	b := v.step.Backlog
	x, grew := notSteady(b)
	switch {
	case grew && v.f.Stream == nil && !v.f.Moments().Grows(v.spec, v.step.Arrivals.Judged):
		on.open = append(on.open, x.What+v.lateNews()+", which explains as much")
	case grew:
		x.At = v.f.End
		on.broken, on.late = append(on.broken, x.What), cmp.Or(on.late, v.tooLate())
		v.explain(on, true, x.At)
		v.step.addBreach([]string{g.Name}, x)
	case b != nil && b.Undecided && v.spec.Arms == nil:
		on.open = append(on.open, fmt.Sprintf("whether the backlog grows is not decided in a hold of %s: by %.3g a second (99.7 %% interval %.3g to %.3g), of which %.3g are tolerated",
			result.DurationText(v.step.Hold.Seconds(), 0), *b.Slope.Value, *b.Slope.Lo, *b.Slope.Hi, b.Tolerated))
	}
}

// lateNews says how late the news of objects came.
func (v *verdicts) lateNews() string {
	text := "; the news of objects was late"
	if lag := v.f.Moments().MostLag(); lag > 0 {
		text += ", by " + result.DurationText(lag, 0) + " at most"
	}
	return text
}

// late reports whether the lag of the news explains a breach, and says so.
func (v *verdicts) late(s slo.SLO, o judgement) (string, bool) {
	least, explained := v.f.Moments().Explained(s)
	if !explained {
		return "", false
	}
	text := o.what + v.lateNews()
	if (s.Form == slo.Quantile || s.Form == slo.Mean) && o.value != nil {
		text += fmt.Sprintf(": it was between %s and %s", result.DurationText(least, s.Within), result.DurationText(*o.value, s.Within))
	}
	return text, true
}

// bind notes what a goal broke on in the words of what bound it.
func (v *verdicts) bind(goal string, on breaks) {
	c, f := v.step, v.f
	what := strings.Join(on.broken, "; ")
	switch {
	case len(f.Silent) > 0:
		// What it bound is not what is used up, nor what is slow.
		c.Binding[goal] = f.Silent[0].String()
	case len(f.Guards) > 0:
		// What a guard interrupted is not what bound.
		c.Binding[goal] = strings.Join(on.broken[:len(f.Guards)], "; ")
	case on.missing && len(c.Reasons) > 0 && c.Bottleneck.Bound() == nil:
		c.Binding[goal] = result.Binding(&v.spec.Kind, c.Reasons)
	default:
		c.Binding[goal] = what
		if b := c.Bottleneck.Bound(); b != nil {
			c.Binding[goal] = b.String() + "; " + what
		}
		if on.refused != "" {
			c.Binding[goal] += "; " + on.refused
		}
		if text := growthOf(c.Bottleneck, v.normal, c.WatchLag); text != "" && (c.Open || f.Stream != nil) {
			c.Binding[goal] += "; " + text
		}
		if text := longestOf(c.Bottleneck); text != "" && !c.Open && f.Stream == nil {
			c.Binding[goal] += "; " + text
		}
	}
}

// many is a number of what the step asked for.
func (v *verdicts) many(n int) string {
	if v.f.Stream != nil {
		return result.ManyOf("request", n)
	}
	return result.ManyObjects(n)
}

// addGuards notes the guards that stopped the load, each at the time it came.
func (v *verdicts) addGuards() {
	for _, guard := range v.f.Guards {
		v.step.addBreach(goalNames(v.spec), GuardBreach(guard))
	}
}

// judgement is what one objective makes of a step.
type judgement struct {
	verdict      slo.Verdict
	what         string // was breached, or is not known
	value, bound *float64
	missing      bool // it broke on objects that were not ready
	sure         bool // it broke on what no delay explains
	beyond       bool // it broke by far more than the delay
	// Of a breach: its sort, how many objects or requests it is of, and when
	// the objective could no longer hold.
	kind  result.BreachKind
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
	case slo.Quantile, slo.Mean:
		return v.latencies(s)
	case slo.Query:
		return v.query(s)
	case slo.Errors, slo.Retried:
		asked, failed := c.APIRequests.N+f.Dropped, c.APIRequests.Failed+f.Dropped
		if r := c.Requests; r != nil {
			asked, failed = r.Intended-r.Lost, r.FailedAll()+r.Dropped
		}
		if s.Form == slo.Retried {
			if failed = c.APIRequests.Retried; c.Requests != nil {
				failed = c.Requests.Retried
			}
		}
		if asked == 0 {
			return inconclusive("%s: no request was made", s)
		}
		o := judgePercent(s, 100*float64(failed)/float64(asked))
		// A delay explains what was given up unsent.
		unsent := c.Account().Dropped
		o.sure = s.Form == slo.Retried || !s.Op.Holds(100*float64(failed-unsent)/float64(asked), s.Percent)
		o.kind, o.count, o.at = result.BreachErrors, failed, f.Moments().ErrorsAt(s, asked)
		return o
	case slo.Failed:
		if c.Requests == nil {
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
		return judgement{verdict: slo.Breached, what: what, value: &n, bound: &bound, sure: true, kind: result.BreachPlaces, count: len(list), at: f.Moments().PlacesFailedAt()}
	default: // slo.Achieved
		if f.Achieved == nil {
			return inconclusive("%s: the rate is not known", s)
		}
		o := judgePercent(s, *f.Achieved)
		if r := c.Requests; r != nil && r.Lost > 0 && s.Op.Holds(*f.Achieved+100*float64(r.Lost)/float64(r.Intended), s.Percent) != (o.verdict == slo.Pass) {
			return inconclusive("%s: it depends on %s whose state is not known", s, v.many(r.Lost))
		}
		o.kind, o.at = result.BreachAchieved, f.Moments().AchievedAt(s)
		return o
	}
}

// refused reports whether what was refused alone breaks an objective, however quick
// all else was: no lack of processors, memory or IO explains that.
func (v *verdicts) refused(s slo.SLO) bool {
	c, f := v.step, v.f
	switch s.Form {
	case slo.All:
		return f.RefusedObjects(s.Milestone, false) > 0
	case slo.Quantile, slo.Mean:
		n, refused := f.Samples[s.Milestone].N(), f.RefusedObjects(s.Milestone, true)
		return !s.Op.Holds(s.Figure(stats.NewSample(make([]float64, max(n-refused, 0)), refused)), s.Within.Seconds())
	case slo.Failed:
		return f.Refused() > 0
	case slo.Retried:
		return true
	case slo.Query:
		return false
	}
	asked := c.APIRequests.N + f.Dropped
	if c.Requests != nil {
		asked = c.Requests.Intended - c.Requests.Lost
	}
	share := 100 * float64(f.Refused()) / float64(max(asked, 1))
	if s.Form == slo.Achieved {
		share = 100 - share
	}
	return !s.Op.Holds(share, s.Percent)
}

// query judges by what metrics came to at the end of the hold.
func (v *verdicts) query(s slo.SLO) judgement {
	i := slices.IndexFunc(v.f.Answers, func(a *record.Answer) bool { return a.Objective == s.String() })
	if i < 0 {
		return inconclusive("%s: it was not asked", s)
	}
	a := v.f.Answers[i]
	if a.Broken > 0 && a.Why == "" {
		value, _ := strconv.ParseFloat(a.Value, 64)
		what := fmt.Sprintf("%s: it was %.4g", s, value)
		if a.Of != "" {
			what += " of " + a.Of
		}
		if a.Series > 1 {
			what += fmt.Sprintf(" (%d of %d series)", a.Broken, a.Series)
		}
		return judgement{
			verdict: slo.Breached, what: what, value: result.Finite(value), bound: &s.Value, kind: result.BreachQuery, count: a.Broken,
			at: min(max(a.Since, v.f.Start), v.f.End),
		}
	}
	if a.Why != "" || a.Series == 0 || a.NaN > 0 {
		return inconclusive("%s: %s", s, cmp.Or(a.Why, "it is not known"))
	}
	return passed()
}

func judgePercent(s slo.SLO, value float64) judgement {
	if s.Op.Holds(value, s.Percent) {
		return passed()
	}
	return judgement{verdict: slo.Breached, what: fmt.Sprintf("%s: it was %.4g%%", s, value), value: result.Finite(value), bound: &s.Percent}
}

// latencies judges those of the step's own objects by a quantile or their mean.
func (v *verdicts) latencies(s slo.SLO) judgement {
	sample, ok := v.f.Samples[s.Milestone]
	if v.step.Account().Intended == 0 && v.step.APIRequests.N > 0 {
		return passed() // what was made has no milestones
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
		// What is lost may have been ready at once, or never.
		best := s.Figure(sample.AtOnce(sample.Lost))
		if s.Op.Holds(best, bound) != holds {
			return inconclusive("%s: it depends on %s whose state is not known", s, v.many(sample.Lost))
		}
	}
	with, stalled := v.f.Corrected(s.Milestone)
	switch {
	case holds && stalled && !s.Op.Holds(s.Figure(with), bound):
		// Those that a stall kept from being sent would have broken it.
		sent := value
		value = s.Figure(with)
		return judgement{
			verdict: slo.Breached, value: result.Finite(value), bound: &bound, kind: result.BreachLatency, count: with.N() - with.AtMost(bound), at: v.f.Moments().StalledAt(),
			beyond: value-bound > delayWeight*v.mostDelay(),
			what:   fmt.Sprintf("%s: it was %s of those that were sent, and %s with those that a stall kept from being sent", s, result.DurationText(sent, s.Within), result.DurationText(value, s.Within)),
		}
	case holds:
		return passed()
	}
	at, count := v.f.End, sample.N()-sample.AtMost(bound)
	if s.Form == slo.Quantile { // a mean is not known before the last has come
		at, count = v.f.Moments().QuantileAt(s, sample)
	}
	return judgement{
		verdict: slo.Breached, what: fmt.Sprintf("%s: it was %s", s, result.DurationText(value, s.Within)), value: result.Finite(value), bound: &bound,
		missing: math.IsInf(value, 1), beyond: value-bound > delayWeight*v.mostDelay(), kind: result.BreachLatency, count: count, at: at,
	}
}

// delayWeight is how many times the longest delay of the generator's own a latency
// must exceed its bound by, that the delay does not explain it: it moves arrivals
// together, which then wait for each other as well.
const delayWeight = 10

// mostDelay is by how much the generator itself was late at most, in seconds;
// infinite where that is not known, or it gave up requests unsent.
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

// all judges all objects in place: whether they are there, and, of the
// step's own, whether they were in time.
func (v *verdicts) all(s slo.SLO) judgement {
	f := v.f
	short, lost, first := f.Moments().Short(s)
	n := float64(short)
	broken := judgement{verdict: slo.Breached, value: &n, bound: new(float64), missing: true, kind: result.BreachMissing, count: short, at: first}
	switch {
	case short > 0 && f.Stream != nil:
		broken.what = s.String() + ": " + v.many(short) + " did not reach it"
		return broken
	case short > 0:
		broken.what = fmt.Sprintf("%s: %d of %d did not reach it", s, short, v.step.Asked)
		return broken
	case lost > 0 && f.Stream != nil:
		return inconclusive("%s: what became of %s is not known", s, v.many(lost))
	case lost > 0:
		return inconclusive("%s: the state of %d of %d is not known", s, lost, v.step.Asked)
	}
	return passed()
}

// notSteady is what a goal breaks on where the backlog grew throughout the hold.
func notSteady(b *result.Backlog) (result.Breach, bool) {
	if b == nil || !b.Growing {
		return result.Breach{}, false
	}
	return result.Breach{
		What: fmt.Sprintf("notSteady: the backlog grew throughout the hold, from %.0f to %.0f: by %.3g a second (99.7 %% interval %.3g to %.3g), of which %.3g are tolerated",
			b.Means[0], b.Means[len(b.Means)-1], *b.Slope.Value, *b.Slope.Lo, *b.Slope.Hi, b.Tolerated),
		Value: b.Slope.Value, Bound: &b.Tolerated, Kind: result.BreachNotSteady,
	}, true
}
