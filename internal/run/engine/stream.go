package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

const (
	longestWindow = time.Second // length of a stream's windows, unless the hold is shorter than leastWindows
	leastWindows  = 10
)

func (r *run) window() time.Duration { return min(longestWindow, r.hold()/leastWindows) }

// stagesStream makes the warm-up, the hold, and the follow-up of a step with a stream.
func (r *run) stagesStream(ctx context.Context) record.Ending {
	s := streams.Schedule{
		Open: r.options.Open, Value: r.load.Reached, Begin: r.clock.Now() + record.MicrosOf(r.load.Lead), Warm: r.options.Warmup, Hold: r.hold(),
		Window: r.window(), Timeout: r.options.Timeout, DropAfter: DropAfter, MaxInFlight: r.options.MaxInFlight,
	}
	s.Warm = (s.Warm + s.Window - 1) / s.Window * s.Window // whole windows, so that none is of both
	done := make(chan error, 1)
	go func() { done <- r.load.Stream(ctx, s) }()

	warm, end := s.Begin+record.MicrosOf(s.Warm), s.End()
	r.status = Status{Step: r.current(), Stage: StageWarming, StepPlan: r.StepPlan, Requests: s.Requests(), Bound: s.MaxInFlight}
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	pass := func(now record.Micros) { // the end of stages
		reached := func(phase record.Phase, at record.Micros, stage Stage) {
			r.status.Stage = stage
			r.sink.Append(record.Event{T: at, Step: r.current(), Body: &record.StepEvent{Phase: phase}})
			r.sample()
		}
		if r.status.Stage == StageWarming && now >= warm {
			reached(record.PhaseReached, warm, StageArriving)
		}
		if r.status.Stage == StageArriving && now >= end {
			reached(record.PhaseLoaded, end, StageWaiting)
			r.over(ctx)
		}
	}
	for n := 0; ; n++ {
		var err error
		over := false
		select {
		case err = <-done:
			over = true
		case <-tick.C:
		}
		now := r.clock.Now()
		pass(now)
		switch {
		case over && ctx.Err() != nil:
			return record.EndInterrupted
		case over && errors.As(err, new(*streams.UnfinishedError)):
			r.failed = err
			return record.EndUnfinished
		case over && errors.As(err, new(*streams.VoidError)):
			r.failed = err
			return record.EndVoid
		case over && err != nil:
			r.failed = fmt.Errorf("make the stream: %w", err)
			return record.EndInterrupted
		case over:
			return record.EndHeld
		}
		if n%4 == 0 {
			p := r.target.Progress()
			r.status.Sent, r.status.Replied, r.status.Late, r.status.Dropped = p.Sent, p.Arrived+p.Failed, p.Late, p.Dropped
			next := end
			if r.status.Stage == StageWarming {
				next = warm
			}
			r.report(p.InFlight, s.MaxInFlight, max((next-now).Duration(), 0))
		}
	}
}
