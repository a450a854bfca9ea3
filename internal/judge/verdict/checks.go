package verdict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

type evidence struct {
	*verdicts
	goal   slo.Goal
	broken []breach // guards first, then in the order of the objectives
	open   []string // unknown facts
}

// breach is a bound that was exceeded, with other possible causes than the target.
type breach struct {
	result.Breach
	missing bool // objects were not ready
	delay   delay
	late    string            // says that the late generator explains it, or ""
	by      *result.Neighbour // a resource that others took, which explains it; nil for none
}

// delay says whether the delay of a stream's own generator could explain a breach.
type delay int

const (
	delayBears delay = iota // it explains the breach where it is long enough
	delayApart              // it has no bearing on the objective
	delayShort              // the breach exceeds its bound by far more
	delayNever              // no delay explains a refused request, or an object that never came
)

type check struct {
	name    string
	verdict slo.Verdict
	why     func(*evidence) string // the reason, "" where the check does not apply
}

// The names of checks whose verdict has further consequences.
const (
	seenOnly = "places taken"    // its breaches were seen, and decide nothing
	compared = "late, of an arm" // its figures count where arms are compared
)

// checks lists the reasons for a verdict: the first that applies decides. A check that voids a breach
// comes before the breach, fail before inconclusive, and pass is last.
func checks() []check {
	return []check{
		{"other load", slo.Invalid, func(e *evidence) string { return when(e.step.Ending == record.EndVoid, e.step.Message) }},
		{"void", slo.Invalid, (*evidence).isVoid},
		{"generator used up", slo.Invalid, (*evidence).generatorUsedUp},
		{"own delay", slo.Invalid, (*evidence).ownDelay},
		{compared, slo.Inconclusive, (*evidence).lateArm},
		{"late", slo.Invalid, (*evidence).lateGenerator},
		{seenOnly, slo.Inconclusive, (*evidence).placesTaken},
		{"neighbours", slo.Invalid, (*evidence).neighbours},
		{"broken", slo.Fail, (*evidence).isBroken},
		{"open", slo.Inconclusive, func(e *evidence) string { return strings.Join(e.open, "; ") }},
		{"latencies unknown", slo.Inconclusive, (*evidence).latenciesUnknown},
		{"places changed", slo.Inconclusive, func(e *evidence) string { return e.f.Places.String() }},
		{"lost", slo.Inconclusive, (*evidence).lost},
		{"blind", slo.Inconclusive, func(e *evidence) string { return when(e.f.Blind, "the watch was cut at the end of the step") }},
		{"cut", slo.Inconclusive, (*evidence).cut},
		{"requests unknown", slo.Inconclusive, (*evidence).requestsUnknown},
		{"nothing asked", slo.Inconclusive, (*evidence).nothingAsked},
		{"held", slo.Pass, func(*evidence) string { return "every objective held" }},
	}
}

type decision struct {
	check check
	why   string
}

func (e *evidence) decide() (d decision) {
	for _, d.check = range checks() {
		if d.why = d.check.why(e); d.why != "" {
			break
		}
	}
	return d
}

func (e *evidence) some(is func(breach) bool) bool { return slices.ContainsFunc(e.broken, is) }

func (e *evidence) hasDelay(d delay) bool { return e.some(func(b breach) bool { return b.delay == d }) }

func (e *evidence) missing() bool { return e.some(func(b breach) bool { return b.missing }) }

func texts(list []breach) string {
	said := make([]string, len(list))
	for i, b := range list {
		said[i] = b.What
	}
	return strings.Join(said, "; ")
}

// stopped reports whether an idle actor explains missing objects, however busy the machine was.
func (e *evidence) stopped() bool { return len(e.broken) > 0 && e.f.Stopped() }

// excusable reports whether a delay of this program could have caused something that broke.
func (e *evidence) excusable() bool {
	return len(e.broken) > 0 && !e.stopped() && !(e.f.Account.Streams() && e.hasDelay(delayNever))
}

func (e *evidence) isVoid() string { return when(!e.stopped(), e.void()) }

func when(holds bool, text string) string {
	if holds {
		return text
	}
	return ""
}

func (e *evidence) generatorUsedUp() string {
	bound := e.step.Bottleneck.Bound()
	if bound == nil || !bound.Generator || !e.excusable() {
		return ""
	}
	return bound.String() + ": this says nothing about the target: " + texts(e.broken)
}

// ownDelay excuses breaches only: an unknown fact is not invalid.
func (e *evidence) ownDelay() string {
	if !e.excusable() || e.f.Account.Streams() && e.hasDelay(delayShort) {
		return ""
	}
	own := e.own()
	if bound := e.step.Bottleneck.Bound(); own == "" && (bound == nil || bound.Generator || bound.Slow) {
		own = e.f.Account.OwnBound(e.step.Arrivals, e.goal) // nothing of the target was used up
	}
	return own
}

// lateGenerator says that the late generator explains everything that broke.
func (e *evidence) lateGenerator() string {
	i := slices.IndexFunc(e.broken, func(b breach) bool { return b.late != "" })
	if i < 0 || !e.excusable() || e.hasDelay(delayShort) || e.hasDelay(delayApart) {
		return ""
	}
	return e.broken[i].late
}

// lateArm says so where arms are compared by figures that no delay touches.
func (e *evidence) lateArm() string { return when(e.spec.Arms != nil && e.known(), e.lateGenerator()) }

func (e *evidence) placesTaken() string {
	return when(e.f.Places.Taken && len(e.f.Guards) == 0, e.f.Places.String())
}

func (e *evidence) neighbours() string {
	if len(e.broken) == 0 || e.stopped() || e.some(func(b breach) bool { return b.by == nil }) {
		return ""
	}
	return e.broken[0].by.String() + ": this says nothing about the target: " + texts(e.broken)
}

func (e *evidence) isBroken() string {
	if len(e.broken) == 0 {
		return ""
	}
	what := texts(e.broken)
	if text := e.f.Final(); e.missing() && text != "" {
		what += "; " + text
	}
	if len(e.f.Silent) > 0 {
		what = e.f.Silent[0].String() + "; " + what
	}
	if len(e.f.Guards) > 0 && !e.f.Account.Streams() {
		what += fmt.Sprintf("; %d of %d were ready", e.step.Objects.Ready, e.step.Objects.Intended)
	}
	return what
}

func (e *evidence) latenciesUnknown() string {
	err := e.f.Account.Damage()
	if err == nil {
		return ""
	}
	return "its latencies are unknown: " + err.Error()
}

func (e *evidence) lost() string {
	n := e.step.Account().Lost
	return when(n != 0, "the state of "+e.many(n)+" is unknown")
}

func (e *evidence) cut() string {
	switch {
	case e.f.Cut():
		return "the step was cut short: " + e.step.Message
	case e.step.Ending == record.EndUnfinished:
		return cmp.Or(e.step.Message, "an action on the target had not ended at the end of the hold")
	}
	return ""
}

func (e *evidence) requestsUnknown() string {
	n := e.f.ToAsk - e.step.Requested
	return when(n > 0, "the requests for "+result.ManyObjects(n)+" are not on record")
}

func (e *evidence) nothingAsked() string {
	switch {
	case e.step.Account().Intended > 0 || e.step.APIRequests.N > 0:
		return ""
	case e.f.Others > 0:
		return fmt.Sprintf("%d %s that are not this run's already make %.10g %s: no load was sent", e.f.Others, e.spec.Kind.Object.Many, e.step.LevelReached, e.spec.Unit)
	}
	return "nothing was asked for"
}

// describe records the conditions at the first breach, and those of the first step as normal.
func (c *Judged) describe(f *fold.Facts, first *Judged) {
	if first == nil {
		to := f.End
		if f.Reached != fold.Never && !c.Open {
			to = f.Reached
		}
		c.normal = f.FiguresIn(f.Start, to, f.MostPending(to))
	}
	i := FirstOf(c.Breaches)
	if i < 0 {
		return
	}
	x := c.Breaches[i]
	from, to := max(x.At-usage.Window, f.Start), x.At
	if x.Kind == result.BreachStandstill {
		from, to = x.At, x.At+record.Micros(*x.Value*1e6)
	}
	figures := f.FiguresIn(from, to, x.Load)
	c.Conditions = &result.Conditions{Time: x.Time, Figures: []result.Figure{}}
	all := maps.Clone(figures) // for the names
	normal := first.asBaseline()
	if normal != nil {
		c.Conditions.NormalStep = normal.ID
		maps.Copy(all, normal.normal)
	}
	for _, name := range slices.SortedFunc(maps.Keys(all), compareFigures) {
		figure := result.Figure{Name: name, Unit: unitOf(name)}
		value, known := figures[name]
		if known {
			figure.Value = &value
		}
		if normal != nil {
			if was, ok := normal.normal[name]; ok {
				figure.Normal = &was
				if known && was > 0 {
					figure.Ratio = new(result.Round(value/was, 3))
				}
			}
		}
		c.Conditions.Figures = append(c.Conditions.Figures, figure)
	}
}

// compareFigures puts the figures of objects first, then the API, then the processes.
func compareFigures(x, y string) int {
	return cmp.Or(cmp.Compare(orderOf(x), orderOf(y)), cmp.Compare(x, y))
}

func orderOf(figure string) int {
	for i, name := range [...]string{result.FigurePending, result.FigureUnplaced, result.FigureBacklog, result.FigureInFlight, result.FigureRequest, result.FigureAPI, result.FigureWatchLag, result.FigureMachine} {
		if figure == name {
			return i
		}
	}
	return 100
}

func unitOf(figure string) string {
	switch figure {
	case result.FigurePending, result.FigureUnplaced, result.FigureInFlight, result.FigureBacklog:
		return ""
	case result.FigureRequest, result.FigureAPI, result.FigureWatchLag:
		return "s"
	}
	return "%"
}
