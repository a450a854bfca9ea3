package load

import (
	"context"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

const (
	// MostConnections bounds a schedule's connections by default: HAProxy serves less with thousands.
	MostConnections = 1000
	waitedTolerated = 0.01 // share of arrivals that may wait for a place without a trial
	// trialSpan is the shortest part of a trial, mostTook the longest request for which there is one.
	trialSpan        = time.Second
	mostTook         = 5 * time.Second
	leastTrialWindow = 100 * time.Millisecond // shortest window of a trial
	above            = 1.05                   // rate of a trial relative to the schedule
)

type held struct {
	streams.Schedule
	intended, late, answered int
	inFlight, windows        int
}

func (h *held) add(w *record.Window) {
	if w.WarmUp {
		return
	}
	h.intended, h.late, h.answered = h.intended+w.Intended, h.late+w.Late, h.answered+w.Answered
	h.inFlight, h.windows = h.inFlight+w.InFlight, h.windows+1
}

// short reports whether so many arrivals waited for a place that more places might matter.
func (h *held) short() bool {
	return h.Open && h.MaxInFlight > 1 && h.answered > 0 && float64(h.late) > waitedTolerated*float64(h.intended)
}

// took returns how long a request was in flight on average (Little's law).
func (h *held) took() time.Duration {
	return time.Duration(float64(h.inFlight) / float64(h.windows) / float64(h.answered) * float64(h.Hold))
}

// Load makes a stream as Run does, and records it by emit and tell. If requests of a schedule waited for
// a place, it tries whether more places would have raised the rate.
func (g *Generator) Load(ctx context.Context, schedule streams.Schedule, emit func(*record.Window), tell func(record.Body)) error {
	err := g.Run(ctx, schedule, emit)
	for _, x := range g.Recorded() {
		tell(&x)
	}
	if err != nil || ctx.Err() != nil || !g.held.short() {
		return err
	}
	trials, err := g.try(ctx, &g.held)
	for _, x := range trials {
		tell(&x)
	}
	return err
}

// try finds out whether more places raise the rate: it uses three quarters of the places and then all,
// never more than the user's, and sends little faster than the schedule.
func (g *Generator) try(ctx context.Context, h *held) (list []record.Trial, err error) {
	took := max(h.took(), time.Millisecond)
	if took > mostTook {
		return nil, nil // the answers to waiting requests would have come
	}
	// Whole turns of all places count each place equally often.
	window := took * ((leastTrialWindow + took - 1) / took)
	p := g.plan
	p.Record, p.Pace = 0, above*h.Value
	if g.plan.Pace > 0 {
		p.Pace = min(p.Pace, g.plan.Pace)
	}
	for _, n := range []int{max(h.MaxInFlight*3/4, 1), h.MaxInFlight} {
		trial := record.Trial{Places: n}
		s := streams.Schedule{
			Value: float64(n), Begin: g.now(), Warm: window, Hold: window * ((trialSpan + window - 1) / window), Window: window, Timeout: h.Timeout,
		}
		trial.Seconds = s.Hold.Seconds()
		err = New(p, g.now, g.seed).Run(ctx, s, func(w *record.Window) {
			if !w.WarmUp {
				trial.Answered, trial.Failed = trial.Answered+w.Answered, trial.Failed+w.FailedAll()
			}
		})
		if err != nil || ctx.Err() != nil || trial.Failed > trial.Answered {
			return nil, err
		}
		list = append(list, trial)
	}
	return list, nil
}
