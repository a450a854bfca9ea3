package engine

import (
	"context"
	"strconv"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// DropAfter is the longest wait of an arrival for a place in flight before it is given up.
const DropAfter = 5 * time.Second

// stagesOpen makes the warm-up, the hold, and the follow-up of a step with a schedule.
func (r *run) stagesOpen(ctx context.Context) record.Ending {
	if r.arrive(ctx) != nil {
		return record.EndInterrupted
	}
	r.emit(&record.StepEvent{Phase: record.PhaseLoaded})
	return r.await(ctx)
}

// arrive makes the load's requests, each at its time. Only a bound in flight can hold one back, which
// keeps its intended time and is dropped after DropAfter. Like raise it returns early once ctx ends.
func (r *run) arrive(ctx context.Context) error {
	r.status = Status{Step: r.current(), Stage: StageWarming, StepPlan: r.StepPlan, Requests: r.load.Requests, Unasked: r.load.Units, Bound: r.options.MaxInFlight}
	begin := r.clock.Now()
	a := &arrivals{sender: r.sending(), begin: begin, warm: begin + record.MicrosOf(r.options.Warmup), end: begin + record.MicrosOf(r.level().Span)}
	a.take, a.tell = a.replied, a.told
	for i := 0; i < r.load.Requests && ctx.Err() == nil; i++ {
		a.request(ctx, i)
	}
	a.until(ctx, a.end, false)
	a.reached(r.clock.Now())
	if ctx.Err() == nil {
		r.over(ctx)
	}
	a.drain()
	return ctx.Err()
}

type arrivals struct {
	sender
	freed            record.Micros // time of the last free place after there was none: from then on arrivals wait for us
	begin, warm, end record.Micros
	warmed           bool
}

func (a *arrivals) full() bool { return a.inFlight >= a.options.MaxInFlight }

func (a *arrivals) request(ctx context.Context, i int) {
	// Counted from the start, so that rounding does not add up.
	intended := a.begin + record.Micros(float64(a.end-a.begin)*float64(i)/float64(max(a.load.Requests, 1)))
	a.until(ctx, intended, false)
	a.reached(intended)
	for len(a.replies) > 0 { // they have freed places already
		a.wait(nil, nil)
	}
	if a.full() {
		a.until(ctx, intended+record.MicrosOf(DropAfter), true)
	}
	switch {
	case ctx.Err() != nil:
		return
	case a.full():
		a.drop(i, intended)
		return
	}
	waited := max(a.freed-intended, 0) // also if there is a place by now
	if waited > 0 {
		a.status.Late++
	}
	sent := a.clock.Now()
	a.send(ctx, i, func(slot *record.Slot) { slot.Intended, slot.Waited, slot.Sent = intended, waited, sent })
}

func (a *arrivals) replied(slot *record.Slot) {
	if a.full() {
		a.freed = slot.Replied
	}
}

// until waits for a time, or with place until there is room for a request, and takes replies meanwhile.
func (a *arrivals) until(ctx context.Context, t record.Micros, place bool) {
	for ctx.Err() == nil && !(place && !a.full()) {
		left := (t - a.clock.Now()).Duration()
		if left <= 0 {
			return
		}
		a.alarm.Reset(left)
		a.wait(a.alarm.C, ctx.Done())
	}
}

func (a *arrivals) told() {
	next := a.end
	if a.status.Stage == StageWarming {
		next = a.warm
	}
	a.report(a.inFlight, a.options.MaxInFlight, max((next-a.clock.Now()).Duration(), 0))
}

func (a *arrivals) reached(t record.Micros) {
	if !a.warmed && t >= a.warm {
		a.warmed = true
		a.status.Stage = StageArriving
		a.sink.Append(record.Event{T: a.warm, Step: a.current(), Body: &record.StepEvent{Phase: record.PhaseReached}})
		a.sample()
	}
}

func (a *arrivals) drop(i int, intended record.Micros) {
	a.status.Late++
	a.status.Dropped++
	now := a.clock.Now()
	units := a.load.Units / max(a.load.Requests, 1)
	a.refused += units
	a.status.Unasked -= units
	a.sink.Append(record.Event{T: now, Step: a.current(), Body: &record.Slot{
		Slot: "arrival/" + strconv.Itoa(a.current()) + "-" + strconv.Itoa(i), Units: units, Iteration: i,
		Intended: intended, Waited: now - intended, Sent: now, Replied: now, Outcome: record.SlotDropped,
	}})
}
