package fold

import (
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/judge/watch"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// Tables says who takes the facts of single objects and windows as soon as nothing more comes of them.
type Tables struct {
	// Rows, if set, takes every slot's objects once nothing more is followed.
	Rows func(record.ObjectRow)
	// Windows, if set, takes every window of a stream, with its step as it was at its start.
	Windows func(*result.Step, *record.Window)
}

// Collector hands each event to the collectors that it concerns, which hold the objects in place.
type Collector struct {
	spec    *result.Spec
	tables  *Tables
	known   *record.KnownTroubles
	matcher *signature.Matcher
	kept    record.Names

	current    *Facts // the step under way, nil between steps
	objects    *objects
	places     places
	faults     watch.Faults
	histograms usage.Histograms
	phases     Phases
	cost       usage.OwnCost
	heads      map[int]*result.Step // of the steps that have ended, for their objects' rows
}

// NewCollector makes a run's collector, which is whole also with an error: why it seeks no signature.
func NewCollector(spec *result.Spec, tables *Tables) (*Collector, error) {
	c := &Collector{
		spec: spec, tables: tables, known: record.NewKnownTroubles(&spec.Kind), objects: newObjects(spec),
		histograms: usage.NewHistograms(), kept: record.NewNames(), heads: make(map[int]*result.Step),
		places: places{noun: spec.Kind.Place, now: make(map[string]placeNow), first: make(map[string]map[string]bool)},
	}
	var err error
	if c.matcher, err = signature.NewMatcher(spec.Signatures); err != nil {
		c.matcher, _ = signature.NewMatcher(nil)
		err = fmt.Errorf("known failures are not recognised: the signatures cannot be used: %w", err)
	}
	return c, err
}

// UnderWay reports whether a step is under way.
func (c *Collector) UnderWay() bool { return c.current != nil }

// Add takes in an event of the target; one with a step of its own counts in that step only.
func (c *Collector) Add(e record.Event) {
	f := c.current
	e.Body = c.kept.Kept(e.Body)
	switch body := e.Body.(type) {
	case *record.Slot:
		c.objects.addSlot(e.Step, f != nil && f.head.Open, body)
	case *record.Object:
		c.objects.addObject(e, body)
	case *record.Release:
		c.objects.release(body)
	case *record.State:
		if was, removed, ok := c.objects.addState(e, body); ok && f != nil {
			f.Troubles.addState(e.T, body, was, removed)
			c.matcher.State(e.T, body, was)
		}
	case *record.Place:
		c.places.add(e, body, f)
	case *record.ComponentHistogram:
		c.histograms.Add(body)
	case *record.Reading:
		c.cost.Add(body)
	}
	if f != nil {
		c.addTo(f, e)
	}
}

func (c *Collector) addTo(f *Facts, e record.Event) {
	switch body := e.Body.(type) {
	case *record.Slot:
		if f.head.ID == e.Step {
			f.Troubles.addRequest(body)
			c.matcher.Request(body)
		}
	case *record.TargetEvent:
		f.Troubles.addEvent(e.T, body)
		c.matcher.Event(e.T, body)
	case *record.Log:
		f.addLog(body)
		c.matcher.Log(e.T, body)
	case *record.Window:
		if f.head.ID == e.Step {
			if !f.Account.Streams() {
				f.CountStream(stream.New(f.hold, boundsOf(c.spec.Goals)))
			}
			f.Account.add(body)
			if c.tables.Windows != nil {
				c.tables.Windows(&f.head, body)
			}
		}
	case *record.Request, *record.Trial:
		if f.head.ID == e.Step {
			f.Account.add(body)
		}
	case *record.Reading:
		f.readings.Add(e.T, body)
	case *record.Canary:
		f.canaries.Add(body)
	case *record.Guard:
		if len(f.Guards) < maxTold {
			f.Guards = append(f.Guards, Stop{*body, e.T})
		}
	case *record.Actor:
		f.addActor(e.T, body)
	case *record.Answer:
		if len(f.Answers) < maxTold {
			f.Answers = append(f.Answers, body)
		}
	}
}

const maxTold = 200 // bound of the guards, and the idle actors, that are kept of one step: the first ended it

// AddStep takes in what a step does next. End the one under way before a begin or an emptied target.
func (c *Collector) AddStep(e record.Event, s *record.StepEvent) {
	f := c.current
	switch s.Phase {
	case record.PhaseStart:
		c.emitRows(c.objects.begin(s.Units))
		c.current = newFacts(e.T, e.Step, s, c.known)
		c.places.begin(c.current)
		c.histograms.Begin()
		c.matcher.Begin(e.Step)
	case record.PhaseLoaded:
		if f != nil {
			f.loaded = e.T
		}
	case record.PhaseReached:
		if f != nil {
			f.Reached = e.T
		}
	case record.PhaseEnd:
		if f != nil {
			f.ended(s)
		}
	case record.PhaseReset:
		c.emitRows(c.objects.empty())
	}
}

// AddFault takes in a fault, and returns the warning about one that is over.
func (c *Collector) AddFault(r *record.Fault) (w record.Warning, over bool) {
	step := 0
	if f := c.current; f != nil {
		step = f.head.ID
		if r.To != 0 && !r.Beside && !r.Late {
			f.canaries.Gaps = append(f.canaries.Gaps, *r)
		}
		if r.From >= f.Start && !r.Beside {
			f.Troubles.observe(result.BreachWatch, r.From, r.What, "", r.Message).reports = 1
		}
	}
	return c.faults.Add(r, step)
}

// AddCorrected takes in what a list has shown, and returns the warning about it.
func (c *Collector) AddCorrected(r *record.Corrected) record.Warning {
	step := 0
	if f := c.current; f != nil {
		step = f.head.ID
		if f.head.Missed == nil {
			f.head.Missed = make(map[string]int)
		}
		f.head.Missed[r.Watch] += r.Missed
	}
	w := watch.Warning(step)
	w.Text, w.Count = "the watch of "+r.Watch+" missed changes, which a list showed", r.Missed
	return w
}

// End measures and ends the step under way, nil outside of one. One whose end is not on record was cut.
func (c *Collector) End(t record.Micros) (*Measured, *Facts) {
	f := c.current
	if f == nil {
		return nil, nil
	}
	c.current = nil
	f.End, f.Blind = t, c.faults.Blind()
	f.canaries.Close(t)
	if f.head.Ending == "" {
		f.head.Ending, f.message = record.EndInterrupted, "its end is not on record"
	}
	c.objects.end(f)
	c.places.end(f)
	s := measure(c.spec, f)
	s.Durations = c.histograms.End()
	c.showed(f, s)
	s.Hits = c.matcher.End(f.End, peaksOf(s, c.spec, f))
	c.phases.add(c.spec, f)
	c.cost.AddStep(s.Requested, s.Resources)
	if c.heads[s.ID] == nil {
		head := f.head // and not all of the facts
		c.heads[s.ID] = &head
	}
	return s, f
}

// emitRows hands the objects of slots to the table: no more news of them can come.
func (c *Collector) emitRows(slots []*slot) {
	if c.tables.Rows == nil {
		return
	}
	for _, s := range slots {
		for i := range max(s.count(), len(s.objects)) {
			c.tables.Rows(c.objects.row(s, i, c.heads[s.step]))
		}
	}
}

// Empty counts all that was in place as gone: no more news of any object can come.
func (c *Collector) Empty() {
	c.emitRows(c.objects.empty())
	c.emitRows(c.objects.empty())
}

// Forget leaves out the step under way.
func (c *Collector) Forget() { c.current = nil }

// Resume takes in that the run was cut here. It returns warnings about the faults that lasted until then.
func (c *Collector) Resume() []record.Warning {
	lasting := c.faults.Lasting("until the run was cut off")
	c.faults = nil
	c.cost.Before = c.cost.CPUSeconds
	return lasting
}

// Lasting returns warnings about the faults that last to the end of the run.
func (c *Collector) Lasting() []record.Warning { return c.faults.Lasting("to the end") }

// OtherPlaces says which places differ from the first step's, and not by the load itself, or "".
func (c *Collector) OtherPlaces() string {
	changes := c.places.changed()
	changes.changes = slices.DeleteFunc(changes.changes, func(p placeNow) bool { return p.State == record.PlaceNotReady })
	return changes.String()
}

// Milestones returns the milestones of the objects, in their order.
func (c *Collector) Milestones() []string { return c.objects.names }

// OwnCost returns what this program itself has used.
func (c *Collector) OwnCost() result.Cost { return c.cost.Cost }

// Phases returns what the steps show of the cost of an object.
func (c *Collector) Phases() *Phases { return &c.phases }

// Live says how far the step under way has come.
type Live struct {
	There    int // of the step's own objects
	P50, P99 *float64
}

// Live sums up the step under way. It takes time in proportion to its objects.
func (c *Collector) Live() Live {
	if c.current == nil {
		return Live{}
	}
	return c.current.Account.live(c.objects.own, c.spec.Kind.There)
}
