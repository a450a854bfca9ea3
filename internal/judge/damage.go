package judge

import (
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
