package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Spec is what must be known of an experiment, besides its history, to judge
// it.
type Spec struct {
	Experiment, Workload, Command, Version string
	ExperimentKind                         string // limit, sweep, ab or run
	Axis, Unit                             string
	Goals                                  []slo.Goal // the headline first
	// Require names the goal that the exit code follows, plan.RequireAll for the
	// worst of all, or "" for the headline.
	Require string
	// Kind is that of the objects that are asked for. Milestones are those of
	// the kind that the run's objects reach, in their order.
	Kind       record.ObjectKind
	Milestones []string
	// Arms are those of a comparison; nil for any other experiment.
	Arms *ArmsSpec
	// FreshLab says that each step from empty has a lab made for it.
	FreshLab bool
	// Published are figures to be shown beside those of the run.
	Published []PublishedSpec
	// Signatures are the failures that are looked for; nil for none.
	Signatures []signature.Signature
	// Start is the wall clock at T = 0.
	Start time.Time
}

// wall is the wall clock at t, to the microsecond.
func (s *Spec) wall(t record.Micros) string {
	return s.Start.Add(t.Duration()).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// Builder takes in a run's events in the order of its history and judges each
// step at its end. It hands each event to the collectors that it concerns: they
// hold the objects that are in place, and forget them when the target is
// emptied.
type Builder struct {
	// Rows, if set, takes every slot's objects once nothing more is followed.
	Rows func(record.ObjectRow)
	// Windows, if set, takes every window of a stream with its step, of which
	// only what is known at its start is filled in.
	Windows func(*Step, *record.Window)

	spec    Spec
	known   *knownTroubles
	matcher *signature.Matcher

	current    *facts // the step under way, nil between steps
	objects    *objects
	faults     faults
	histograms histograms
	phases     phases
	cost       ownCost

	steps    []*judged
	stray    []Breach // guards outside of any step
	warnings record.Warnings
	cleanup  *record.Cleanup // of the last part of the run, nil is not known
	ended    bool            // the run's end was recorded
	paused   bool            // until the next of the parts that it is made in
	endWhy   string
	lastT    record.Micros
}

// NewBuilder makes a Builder for one run.
func NewBuilder(spec Spec) *Builder {
	b := &Builder{spec: spec, histograms: newHistograms()}
	b.known, b.objects = newKnownTroubles(&b.spec.Kind), newObjects(&b.spec)
	var err error
	if b.matcher, err = signature.NewMatcher(spec.Signatures); err != nil {
		b.matcher, _ = signature.NewMatcher(nil)
		b.Warn(record.Warning{Kind: record.WarningSignatures, Text: fmt.Sprintf("known failures are not recognised: the signatures cannot be used: %v", err)})
	}
	return b
}

// Warn adds something that the reader must know.
func (b *Builder) Warn(w record.Warning) { b.warnings.Add(w) }

// Add takes in the next event.
func (b *Builder) Add(e record.Event) {
	if run, ok := e.Body.(*record.RunEvent); ok && run.Phase == record.PhaseResume {
		b.addResume(e.T, run) // what was under way ended before, and not now
	}
	b.lastT = max(b.lastT, e.T)
	f := b.current
	switch body := e.Body.(type) {
	case *record.RunEvent:
		if body.Phase == record.PhaseEnd {
			b.ended, b.endWhy, b.paused = true, body.Message, body.Paused
		}
	case *record.Cleanup:
		b.cleanup = body
	case *record.StepEvent:
		b.addStep(e, body)
	case *record.Slot:
		b.objects.addSlot(e.Step, f != nil && f.head.Open, body)
		if f != nil && f.head.ID == e.Step {
			f.troubles.addRequest(body)
			b.matcher.Request(body)
		}
	case *record.Object:
		b.objects.addObject(e, body)
	case *record.State:
		if was, ok := b.objects.addState(e, body); ok && f != nil {
			f.troubles.addState(e.T, body, was)
			b.matcher.State(e.T, body, was)
		}
	case *record.KubeEvent:
		if f != nil {
			f.troubles.addEvent(e.T, body)
			b.matcher.Event(e.T, body)
		}
	case *record.Log:
		if f != nil {
			f.addLog(body)
			b.matcher.Log(e.T, body)
		}
	case *record.Window:
		if f != nil && f.head.ID == e.Step {
			if f.stream == nil {
				f.stream = NewStream(f.hold, boundsOf(b.spec.Goals))
			}
			f.stream.Add(body)
			if b.Windows != nil {
				b.Windows(&f.head, body)
			}
		}
	case *record.Request:
		if f != nil && f.head.ID == e.Step && f.stream != nil {
			f.stream.recorded = append(f.stream.recorded, body)
		}
	case *record.ComponentHistogram:
		b.histograms.add(body)
	case *record.Reading:
		b.cost.add(body)
		if f != nil {
			f.readings.add(e.T, body)
		}
	case *record.Canary:
		if f != nil {
			f.canaries.add(body)
		}
	case *record.Guard:
		if f != nil {
			f.guards = append(f.guards, stop{*body, e.T})
		} else {
			breach := guardBreach(stop{*body, e.T})
			breach.Time, breach.Step, breach.Decided = b.spec.wall(e.T), e.Step, true
			b.stray = append(b.stray, breach)
		}
	case *record.Fault:
		b.addFault(body)
	case *record.Note:
		w := record.Warning{Kind: cmp.Or(body.Warning, record.WarningNote), Text: body.Text}
		if body.About > 0 {
			w.Steps = []int{body.About}
		}
		if body.Place != "" {
			w.Places = []string{body.Place}
		}
		b.Warn(w)
	}
}

func (b *Builder) addStep(e record.Event, s *record.StepEvent) {
	if s.Phase == record.PhaseStart || s.Phase == record.PhaseReset {
		b.closeStep(e.T)
	}
	f := b.current
	switch s.Phase {
	case record.PhaseStart:
		b.emitRows(b.objects.begin(s.Units))
		b.current = newFacts(e.T, e.Step, s, b.known)
		b.histograms.begin()
		b.matcher.Begin(e.Step)
	case record.PhaseLoaded:
		if f != nil {
			f.loaded = e.T
		}
	case record.PhaseReached:
		if f != nil {
			f.reached = e.T
		}
	case record.PhaseEnd:
		if f != nil {
			f.ended(s)
			b.closeStep(e.T)
		}
	case record.PhaseReset:
		b.emitRows(b.objects.empty())
	}
}

func (b *Builder) addFault(r *record.Fault) {
	step := 0
	if f := b.current; f != nil {
		step = f.head.ID
		if r.From >= f.start {
			f.troubles.observe(BreachWatch, r.From, r.What, "", r.Message).reports = 1
		}
	}
	if w, over := b.faults.add(r, step); over {
		b.Warn(w)
	}
}

// closeStep judges the current step; one whose end was never recorded was cut.
func (b *Builder) closeStep(t record.Micros) {
	f := b.current
	if f == nil {
		return
	}
	b.current = nil
	f.end, f.blind = t, len(b.faults) > 0
	if f.head.Ending == "" {
		f.head.Ending, f.message = record.EndInterrupted, "its end is not on record"
	}
	b.objects.end(f)
	s := judge(&b.spec, f, firstStep(b.steps))
	s.Durations = b.histograms.end()
	b.found(f, s)
	s.hits = b.matcher.End(f.end, s.peaks(&b.spec, f))
	b.phases.add(&b.spec, f)
	b.cost.addStep(s)
	b.steps = append(b.steps, s)
}

// emitRows hands the objects of slots to Rows: no news of them is awaited any more.
func (b *Builder) emitRows(slots []*slot) {
	if b.Rows == nil {
		return
	}
	for _, s := range slots {
		var step *Step
		if i := slices.IndexFunc(b.steps, func(x *judged) bool { return x.ID == s.step }); i >= 0 {
			step = &b.steps[i].Step
		}
		for i := range max(s.count(), len(s.objects)) {
			b.Rows(b.objects.row(s, i, step))
		}
	}
}

// close closes the step under way, if there is one, as of the last event: no
// news of any object is awaited any more.
func (b *Builder) close() {
	b.closeStep(b.lastT)
	b.emitRows(b.objects.empty())
	b.emitRows(b.objects.empty())
}

// LastStep is the last step that has ended, or nil.
func (b *Builder) LastStep() *Step {
	if len(b.steps) == 0 {
		return nil
	}
	return &b.steps[len(b.steps)-1].Step
}

// Live is how far the step under way has come, as far as its objects tell.
type Live struct {
	There    int // of the step's own objects
	P50, P99 *float64
}

// Live sums up the step under way. It takes time in proportion to its objects.
func (b *Builder) Live() Live {
	if b.current == nil {
		return Live{}
	}
	return b.current.live(b.objects.own, b.spec.Kind.There, b.objects.milestones.there)
}

// Steps are the steps that have ended, in order.
func (b *Builder) Steps() []Step {
	steps := make([]Step, len(b.steps))
	for i, s := range b.steps {
		steps[i] = s.Step
	}
	return steps
}
