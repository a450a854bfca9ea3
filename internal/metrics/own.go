package metrics

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"
	"unicode"

	"plimsoll.dev/plimsoll/internal/record"
)

// The record's own figures are series with a sample at each change and second, or reading.
const (
	Level    = "plimsoll_level"          // of the step
	Step     = "plimsoll_step"           // 1 during a step; labels say which, and its verdict
	Hold     = "plimsoll_hold"           // 1 during the hold of a step
	Objects  = "plimsoll_objects_total"  // by the milestones that they reached
	Requests = "plimsoll_requests_total" // by their outcome
	Errors   = "plimsoll_errors_total"   // requests that failed or were dropped
	InFlight = "plimsoll_in_flight"      // requests
	readings = "plimsoll_reading_"       // begins the names of readings
)

const second = record.Micros(1e6)

type own struct {
	b        *builder
	start    time.Time
	verdicts map[int]string
	end      record.Micros
	unasked  map[string]bool // names of series that no query needs
	counted  map[*head]*growth
	step     *openStep
}

// growth holds by how much a series has grown, by time in ms since the start of the run.
type growth struct {
	list   []grown
	sorted bool
}

type grown struct {
	at int64
	by float64
}

func (g *growth) add(at int64, by float64) {
	switch n := len(g.list); {
	case n > 0 && g.list[n-1].at == at:
		g.list[n-1].by += by
	default:
		g.sorted = n == 0 || g.sorted && g.list[n-1].at < at
		g.list = append(g.list, grown{at, by})
	}
}

// inOrder returns the growth in the order of time.
func (g *growth) inOrder() []grown {
	if !g.sorted {
		slices.SortStableFunc(g.list, func(a, b grown) int { return cmp.Compare(a.at, b.at) })
		g.sorted = true
	}
	return g.list
}

type openStep struct {
	record.StepEvent
	id       int
	from     record.Micros
	reached  record.Micros
	isToHold bool
}

// ownFigures adds the record's own figures to b. It reads a damaged history as far as it goes.
func ownFigures(dir record.Dir, start time.Time, b *builder) error {
	o := &own{b: b, start: start, verdicts: make(map[int]string), counted: make(map[*head]*growth)}
	var judged struct {
		Steps []struct {
			ID      int
			Verdict string
		}
	}
	if dir.ReadJSON(record.ResultFile, &judged) == nil { // else the verdicts are unknown
		for _, s := range judged.Steps {
			o.verdicts[s.ID] = s.Verdict
		}
	}
	_, err := record.ReadHistory(dir, func(e record.Event) error {
		o.event(e)
		return nil
	})
	if err != nil && !errors.As(err, new(*record.DamagedError)) {
		return err
	}
	o.endStep(o.end)
	o.eachCount(o.end, func(h *head) *head { return h })
	b.built.From, b.built.To = start, start.Add(o.end.Duration())
	return nil
}

func (o *own) at(t record.Micros) int64 { return o.start.Add(t.Duration()).UnixMilli() }

func (o *own) series(name string, of ...string) *head {
	return o.b.series(labelsOf(append([]string{nameLabel, name, "job", "plimsoll"}, of...)))
}

func (o *own) count(t record.Micros, n float64, name string, of ...string) {
	if o.unasked[name] {
		return
	}
	h := o.series(name, of...)
	if h.ignored() {
		return
	}
	if o.counted[h] == nil {
		o.counted[h] = new(growth)
	}
	o.counted[h].add(int64(t)/1000, n)
}

func (o *own) event(e record.Event) {
	o.end = max(o.end, e.T)
	switch x := e.Body.(type) {
	case *record.StepEvent:
		o.phase(e, x)
	case *record.Object:
		o.count(e.T, 1, Objects, "milestone", x.Milestone, "component", x.Component)
	case *record.Slot:
		o.slot(e.T, x)
	case *record.Window:
		o.window(x)
	case *record.Reading:
		for name, v := range x.Values {
			o.series(readings+snake(name), "source", x.Source).add(o.at(e.T), v)
		}
	}
}

func (o *own) slot(t record.Micros, x *record.Slot) {
	o.count(t, 1, Requests, "outcome", string(x.Outcome))
	failed := 0.0 // also for an unknown outcome
	if x.Outcome == record.SlotFailed || x.Outcome == record.SlotDropped {
		failed = 1
	}
	o.count(t, failed, Errors)
	if x.Sent > 0 && x.Replied >= x.Sent {
		o.count(x.Sent, 1, InFlight)
		o.count(x.Replied, -1, InFlight)
	}
}

func (o *own) window(w *record.Window) {
	for kind, n := range w.Failed {
		o.count(w.To, float64(n), Requests, "outcome", kind, "component", w.Component)
	}
	for outcome, n := range map[string]int{"done": w.Done, "dropped": w.Dropped, "lost": w.Lost} {
		o.count(w.To, float64(n), Requests, "outcome", outcome, "component", w.Component)
	}
	o.count(w.To, float64(w.FailedAll()+w.Dropped), Errors, "component", w.Component)
	o.series(InFlight, "component", w.Component).add(o.at(w.To), float64(w.InFlight))
}

func (o *own) phase(e record.Event, x *record.StepEvent) {
	switch x.Phase {
	case record.PhaseStart:
		o.endStep(e.T)
		o.step = &openStep{StepEvent: *x, id: e.Step, from: e.T}
	case record.PhaseReached:
		if s := o.step; s != nil {
			s.reached, s.isToHold = e.T, true
			if x.Reached != 0 {
				s.Reached = x.Reached
			}
		}
	case record.PhaseEnd:
		o.endStep(e.T)
	}
}

func (o *own) endStep(until record.Micros) {
	s := o.step
	if s == nil {
		return
	}
	o.step = nil
	span := Span{ID: s.id, Level: s.level(), From: o.start.Add(s.from.Duration()), To: o.start.Add(until.Duration())}
	if s.isToHold {
		span.Held = o.start.Add(s.reached.Duration())
	}
	o.b.built.Steps = append(o.b.built.Steps, span)
	o.constants(s, func(h *head, v float64, from record.Micros) {
		o.constant(h, v, from, until)
		o.b.stale(h, o.at(until)+1)
	})
}

func (s *openStep) level() float64 {
	if s.Reached != 0 {
		return s.Reached
	}
	return s.Level
}

// constants hands out the series of a step: each has a value from a time on.
func (o *own) constants(s *openStep, each func(h *head, v float64, from record.Micros)) {
	id := strconv.Itoa(s.id)
	each(o.series(Level), s.level(), s.from)
	each(o.series(Step, "step", id, "arm", s.Arm, "purpose", string(s.Purpose), "verdict", o.verdicts[s.id]), 1, s.from)
	if s.isToHold {
		each(o.series(Hold, "step", id), 1, s.reached)
	}
}

// constant adds a value for each second of a span, its begin and its end.
func (o *own) constant(h *head, v float64, from, until record.Micros) {
	h.add(o.at(from), v)
	for t := (from/second + 1) * second; t < until; t += second {
		h.add(o.at(t), v)
	}
	h.add(o.at(until), v)
}

// eachCount writes the counted series until a time, each to its head by into, at seconds and changes.
func (o *own) eachCount(until record.Micros, into func(*head) *head) {
	for h, grew := range o.counted {
		total, to, at := 0.0, into(h), record.Micros(0)
		list := grew.inOrder()
		for i, g := range list {
			t := record.Micros(g.at) * 1000
			if t > until {
				break
			}
			for ; at < t; at += second {
				to.add(o.at(at), total)
			}
			if total += g.by; i+1 == len(list) || list[i+1].at != g.at {
				to.add(o.at(t), total)
			}
		}
		for ; at <= until; at += second {
			to.add(o.at(at), total)
		}
		to.add(o.at(until), total)
	}
}

// snake turns a name such as cpuSeconds into cpu_seconds.
func snake(name string) string {
	var b []rune
	for i, r := range name {
		switch {
		case unicode.IsUpper(r):
			if i > 0 && len(b) > 0 && b[len(b)-1] != '_' && !unicode.IsUpper(rune(name[i-1])) {
				b = append(b, '_')
			}
			r = unicode.ToLower(r)
		case r != '_' && (r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r)):
			r = '_'
		}
		b = append(b, r)
	}
	return string(b)
}
