package judge

import (
	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// damage is what is known of steps of which a part of the record cannot be read.
type damage struct {
	// tainted says that what is in place is unknown: since a step was under way, or
	// objects were made or removed, in the part that is damaged.
	tainted bool
	// lost says that steps are missing or decide nothing for it.
	lost bool
	// last is the last step that has begun, and ends whether the damage is the last that is on record.
	last int
	ends bool
}

const (
	damagedWhy  = "a part of its record is damaged"
	damagedStop = "a part of the record is damaged, and what happened in it is unknown"
)

// begin takes in that a part is damaged.
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

// step takes in what a step does next. From empty all is known again.
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

// undecide takes back what steps decide together that are not all there.
func (d *damage) undecide(r *result.Result) {
	if !d.lost && !d.ends {
		return
	}
	for i := range r.Goals {
		r.Goals[i].Verdict, r.Goals[i].Why = slo.Inconclusive, r.Goals[i].Why+"; "+damagedStop
	}
	r.Verdict, r.Why, r.ExitCode = slo.Inconclusive, r.Why+"; "+damagedStop, exitCodeOf(slo.Inconclusive)
}
