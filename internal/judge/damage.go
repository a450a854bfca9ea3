package judge

import (
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// damage says which steps suffer from a damaged part of the record.
type damage struct {
	tainted bool // the target's content is unknown: a step, or a change of the target, was in the damaged part
	lost    bool // steps are missing or decide nothing because of it
	last    int  // the last step that has begun
	ends    bool // nothing is on record after the damage
}

const (
	damagedWhy  = "a part of its record is damaged"
	damagedStop = "a part of the record is damaged, and what happened in it is unknown"
)

func (d *damage) begin(underWay bool) {
	d.tainted, d.ends = true, true
	d.lost = d.lost || underWay
}

// numbered takes in the number of an event's step: one that has not begun is missing.
func (d *damage) numbered(e record.Event) {
	step, ok := e.Body.(*record.StepEvent)
	begins := ok && step.Phase == record.PhaseStart
	if _, damaged := e.Body.(*record.Damaged); damaged {
		return
	}
	if d.tainted && e.Step > d.last && !(begins && e.Step == d.last+1) {
		d.lost = true
	}
	if begins || d.tainted {
		d.last = max(d.last, e.Step)
	}
	d.ends = false
}

func (d *damage) step(c *fold.Collector, e record.Event, s *record.StepEvent) {
	if !d.tainted || s.Phase != record.PhaseReset && (s.Phase != record.PhaseStart || !s.FromEmpty) {
		d.lost = d.lost || d.tainted && s.Phase == record.PhaseStart
		return
	}
	if s.Phase == record.PhaseStart {
		c.End(e.T)
		c.AddStep(e, &record.StepEvent{Phase: record.PhaseReset})
	}
	d.tainted = false
}

// undecide withdraws the verdicts of steps together where some are missing.
func (d *damage) undecide(r *result.Result) {
	if !d.lost && !d.ends {
		return
	}
	for i := range r.Goals {
		r.Goals[i].Verdict, r.Goals[i].Why = slo.Inconclusive, r.Goals[i].Why+"; "+damagedStop
	}
	r.Verdict, r.Why, r.ExitCode = slo.Inconclusive, r.Why+"; "+damagedStop, exitCodeOf(slo.Inconclusive)
}

// Resumable says where a run that was cut goes on.
type Resumable struct {
	Step, Whole int           // the last step that began, and the last whole one; 0 for none
	Cut         int           // the step that was cut and is repeated, 0 for none
	Last        record.Micros // the last event on record
}

// Resume counts the run as cut here, and lets it go on from an empty target: a step in progress is closed
// as interrupted, and cut steps no longer count, so that the search repeats them. A step that a guard
// ended is not repeated, even if its end is not on record: the target must not suffer it twice.
func (b *Builder) Resume() Resumable {
	b.close()
	r := Resumable{Last: b.lastT}
	for _, s := range b.steps {
		r.Step = max(r.Step, s.ID)
		if s.Ending == record.EndInterrupted && !s.Guarded {
			r.Cut = s.ID
			s.ClearVerdicts()
		} else {
			r.Whole, r.Cut = s.ID, 0
		}
	}
	for _, w := range b.collector.Resume() {
		b.Warn(w)
	}
	return r
}

// Forget leaves out the step in progress, whose record is not reliable.
func (b *Builder) Forget() { b.collector.Forget() }

func (b *Builder) addResume(t record.Micros, r *record.RunEvent) {
	brokeOff := "after the end of its record, of which up to 100 ms may be missing"
	if b.ended {
		brokeOff = "after it had ended"
		if b.endWhy != "" {
			brokeOff += " (" + b.endWhy + ")"
		}
	}
	paused := b.paused && r.Message == ""
	b.ended, b.endWhy, b.cleanup, b.paused, b.signal = false, "", nil, false, 0
	at := b.Resume()
	if paused {
		return
	}
	gap := (t - at.Last).Duration().Round(time.Millisecond).String()
	if r.Message != "" {
		gap = "an unknown time"
	}
	after := "before its first step"
	if at.Whole > 0 {
		after = fmt.Sprintf("after step %d", at.Whole)
	}
	text := fmt.Sprintf("the run was resumed %s, at %s, %s %s", after, b.spec.Wall(t), gap, brokeOff)
	if at.Cut > 0 {
		text += fmt.Sprintf(": step %d was cut off and is repeated", at.Cut)
	}
	b.Warn(record.Warning{Kind: record.WarningResumed, Text: text})
	if r.Message != "" {
		b.Warn(record.Warning{Kind: record.WarningResumed, Text: r.Message})
	}
}
