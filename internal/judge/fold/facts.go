package fold

import (
	"cmp"
	"iter"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/judge/watch"
	"plimsoll.dev/plimsoll/internal/record"
)

// Facts holds what the record says of a step by its end. All judging reads them and changes nothing.
type Facts struct {
	head                        result.Step // the step before it is judged
	Start, loaded, Reached, End record.Micros
	timeout, hold               record.Micros
	places, Others              int
	ToAsk                       int // objects that it set out to ask for, 0 is unknown
	message                     string
	Blind                       bool // the watch was cut at the end

	*milestones
	own        []*slot // requests of the step
	place      []*slot // all in place
	units      []unit  // the objects that count for the verdict
	setOut     int     // objects that the steps set out to ask for since the target was empty
	asked      int     // objects that its own requests on record ask for
	made       map[kindIn]int
	placeNames []string // by index
	Places     PlaceChanges
	away       []placeNow // by index, without a state for one that is there
	Replaced   int
	ReplacedAt record.Micros // the first of them

	Account Account

	readings usage.Readings
	Troubles Troubles
	canaries watch.Canaries
	Silent   []Silence // idle actors, in the order of the reports
	Guards   []Stop
	logs     []result.LogTail
	Answers  []*record.Answer // to objectives on queries

	// The rest is set when the step is measured.
	outcomes []unitOutcome     // of the units
	Samples  map[string]Sample // by milestone, of the step's own objects
	Dropped  int               // requests of the step that were never sent
	Achieved *float64          // in percent of the offered rate, nil is unknown
	Stood    []Standstill
}

type unit struct {
	slot   *slot
	object *object // nil: no news of it came
	zero   record.Micros
	own    bool // requested in this step
}

func (u *unit) sent() record.Micros { return cmp.Or(u.slot.sent, u.zero) }

// ownUnits yields the units that the step itself asked for, with their indexes.
func (f *Facts) ownUnits() iter.Seq2[int, *unit] {
	return func(yield func(int, *unit) bool) {
		for i := range f.units {
			if u := &f.units[i]; u.own && !yield(i, u) {
				return
			}
		}
	}
}

// ownOf yields those of the own units that reach a milestone.
func (f *Facts) ownOf(milestone int) iter.Seq2[int, *unit] {
	return func(yield func(int, *unit) bool) {
		for i, u := range f.ownUnits() {
			if f.reaches(u.slot, milestone) && !yield(i, u) {
				return
			}
		}
	}
}

// Asks reports whether the step itself asked for objects that reach a milestone if all is well.
func (f *Facts) Asks(milestone string) bool {
	for range f.ownOf(f.find(milestone)) {
		return true
	}
	return false
}

// Of counts the objects that reach a milestone if all is well.
func (f *Facts) Of(milestone string) (n int) {
	m := f.find(milestone)
	for i := range f.units {
		if f.reaches(f.units[i].slot, m) {
			n++
		}
	}
	return n
}

// Stopped reports whether an actor certainly did nothing although objects waited for it.
func (f *Facts) Stopped() bool {
	return slices.ContainsFunc(f.Silent, func(s Silence) bool { return !s.Doubtful })
}

// Stop is a guard that stopped the load.
type Stop struct {
	record.Guard
	At record.Micros
}

func newFacts(t record.Micros, id int, s *record.StepEvent, known *record.KnownTroubles) *Facts {
	f := &Facts{
		head: result.Step{
			ID: id, StepPlan: s.StepPlan, LevelReached: s.Reached, Open: s.Open, Pace: s.Pace,
			Breaches: []result.Breach{},
		},
		Start: t, loaded: Never, Reached: Never, End: Never,
		timeout: s.Timeout, hold: s.Hold, places: s.Places, Others: s.Others, ToAsk: s.Units,
		readings: usage.NewReadings(known.Kind.Metrics), canaries: watch.NewCanaries(), Troubles: newTroubles(known, s.Open),
	}
	f.CountObjects()
	if s.Timeout <= 0 {
		f.timeout = unreached - 1
	}
	return f
}

func (f *Facts) ended(s *record.StepEvent) {
	if s.Places > 0 {
		f.places, f.Others = s.Places, s.Others
		f.head.PerPlace = &result.PerPlace{Places: s.Places, Min: s.Least, Max: s.Most, Others: s.Others}
	}
	f.head.Ending, f.message = s.Ending, s.Message
}

const (
	maxLogs     = 12 // of a step, in its result
	maxLogLines = 8  // of one of them
)

func (f *Facts) addLog(r *record.Log) {
	if len(f.logs) < maxLogs {
		lines := r.Lines[max(len(r.Lines)-maxLogLines, 0):]
		f.logs = append(f.logs, result.LogTail{Object: r.Object, Container: r.Container, Reason: r.Reason, Previous: r.Previous, Lines: append([]string{}, lines...), Masked: r.Masked, Error: r.Error})
	}
}

// Cut reports whether the follow-up was cut short.
func (f *Facts) Cut() bool {
	return f.head.Ending == record.EndInterrupted || f.head.Ending == record.EndGuard
}

// judges reports whether a request counts for the verdict: not in the warm-up of an open loop.
func (f *Facts) judges(s *slot) bool {
	return !f.head.Open || f.Reached != Never && s.intended >= f.Reached && s.intended < f.Reached+f.hold
}

// latency returns the time from time zero to a milestone, or unreached.
func (u *unit) latency(milestone int) record.Micros {
	if t := u.reached(milestone); t != Never {
		return max(t-u.zero, 0)
	}
	return unreached
}

func (u *unit) reached(milestone int) record.Micros {
	if u.object == nil {
		return Never
	}
	return u.object.reached(milestone)
}

// least returns the shortest possible time to a milestone, which late news may hide.
func (f *Facts) least(u *unit, milestone int) record.Micros {
	l := u.latency(milestone)
	switch {
	case l == unreached:
		return l
	case u.object.isLate(milestone):
		return min(u.earliest(milestone)-u.zero, l)
	}
	return max(l-f.canaries.LagAt(u.object.reached(milestone)), 0)
}

func (f objectAccount) live(own []*slot, _ string) Live {
	var values []float64
	for _, s := range own {
		if !f.judges(s) {
			continue
		}
		for _, o := range s.filling() {
			u := unit{object: o, zero: s.zeroOf(o)}
			if l := u.latency(s.arrival); l <= f.timeout {
				values = append(values, l.Seconds())
			}
		}
	}
	sample := stats.NewSample(values, 0)
	return Live{There: len(values), P50: result.Finite(sample.Quantile(0.5)), P99: result.Finite(sample.Quantile(0.99))}
}

func (f *Facts) startsInPlace(started int) []record.Micros {
	var starts []record.Micros
	for _, s := range f.place {
		for _, o := range s.objects {
			if t := o.reached(started); t != Never && !o.gone {
				starts = append(starts, t)
			}
		}
	}
	slices.Sort(starts)
	return starts
}
