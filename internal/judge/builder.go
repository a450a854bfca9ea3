package judge

import (
	"cmp"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/record"
)

// Builder takes in a run's events in the order of its history, and judges each step at its end.
type Builder struct {
	fold.Tables

	spec       result.Spec
	collector  *fold.Collector
	sequential *stats.Sequential // of a comparison that goes on until it is decided, else nil

	steps    []*verdict.Judged
	stray    []result.Breach // guards outside of any step
	warnings record.Warnings
	cleanup  *record.Cleanup // of the last part of the run, nil is unknown
	ended    bool            // the run's end was recorded
	paused   bool            // until the next of the parts that it is made in
	endWhy   string
	signal   int // the exit code of the signal that cut the run, 0 for none
	lastT    record.Micros
	damage   damage
}

// NewBuilder makes a Builder for one run.
func NewBuilder(spec result.Spec) *Builder {
	b := &Builder{spec: spec}
	if a := spec.Arms; a != nil && a.Until {
		b.sequential = &stats.Sequential{Least: a.Least, Most: a.Most, Alpha: a.Alpha / float64(1+len(a.Further)), Among: a.Among, Margin: a.Margin, NotWorse: a.NotWorse}
	}
	var err error
	if b.collector, err = fold.NewCollector(&b.spec, &b.Tables); err != nil {
		b.Warn(record.Warning{Kind: record.WarningSignatures, Text: err.Error()})
	}
	return b
}

// Warn adds a warning of the result.
func (b *Builder) Warn(w record.Warning) { b.warnings.Add(w) }

// Add takes in the next event.
func (b *Builder) Add(e record.Event) {
	if run, ok := e.Body.(*record.RunEvent); ok && run.Phase == record.PhaseResume {
		b.addResume(e.T, run) // the step in progress ended before, and not now
	}
	b.lastT = max(b.lastT, e.T)
	b.damage.numbered(e)
	if b.ended {
		switch e.Body.(type) {
		case *record.Fault, *record.Corrected, *record.Place:
			return // the target is being removed, and the result is out
		}
	}
	switch body := e.Body.(type) {
	case *record.RunEvent:
		if body.Phase == record.PhaseEnd {
			b.ended, b.endWhy, b.paused, b.signal = true, body.Message, body.Paused, body.Signal
		}
	case *record.Cleanup:
		b.cleanup = body
	case *record.Damaged:
		b.damage.begin(b.collector.UnderWay())
	case *record.StepEvent:
		b.damage.step(b.collector, e, body)
		if body.Phase == record.PhaseStart || body.Phase == record.PhaseReset {
			b.closeStep(e.T)
		}
		b.collector.AddStep(e, body)
		if body.Phase == record.PhaseEnd {
			b.closeStep(e.T)
		}
	case *record.Fault:
		if w, over := b.collector.AddFault(body); over {
			b.Warn(w)
		}
	case *record.Corrected:
		b.Warn(b.collector.AddCorrected(body))
	case *record.Note:
		b.Warn(warningOf(body))
	case *record.Guard:
		if !b.collector.UnderWay() {
			breach := verdict.GuardBreach(fold.Stop{Guard: *body, At: e.T})
			breach.Time, breach.Step, breach.Decided = b.spec.Wall(e.T), e.Step, true
			b.stray = append(b.stray, breach)
		}
		b.collector.Add(e)
	default:
		b.collector.Add(e)
	}
}

func warningOf(n *record.Note) record.Warning {
	w := record.Warning{Kind: cmp.Or(n.Warning, record.WarningNote), Text: n.Text}
	if n.About > 0 {
		w.Steps = []int{n.About}
	}
	if n.Place != "" {
		w.Places = []string{n.Place}
	}
	return w
}

// Amend adds an event of the removal to a result that was judged before it.
func Amend(r *result.Result, body record.Body) {
	switch body := body.(type) {
	case *record.Cleanup:
		r.Cleanup = body
	case *record.Note:
		r.Warnings.Add(warningOf(body))
	case *record.RunEvent:
		if body.Signal != 0 {
			r.ExitCode = body.Signal
		}
	}
}

func (b *Builder) closeStep(t record.Micros) {
	if m, f := b.collector.End(t); m != nil {
		s := verdict.Judge(&b.spec, m, f, verdict.FirstStep(b.steps))
		if b.damage.tainted {
			s.Undecide(damagedWhy)
		}
		b.steps = append(b.steps, s)
	}
}

// close closes the step in progress as of the last event, and counts all objects as gone.
func (b *Builder) close() {
	b.closeStep(b.lastT)
	b.collector.Empty()
}

// LastStep returns the last step that has ended, or nil.
func (b *Builder) LastStep() *result.Step {
	if len(b.steps) == 0 {
		return nil
	}
	return &b.steps[len(b.steps)-1].Step
}

// Live sums up the step in progress. It takes time in proportion to its objects.
func (b *Builder) Live() fold.Live { return b.collector.Live() }

// Steps returns the steps that have ended, in order.
func (b *Builder) Steps() []result.Step {
	steps := make([]result.Step, len(b.steps))
	for i, s := range b.steps {
		steps[i] = s.Step
	}
	return steps
}
