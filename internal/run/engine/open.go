package engine

import (
	"context"
	"strconv"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// DropAfter is how long an arrival waits for a place among the requests under
// way before it is given up.
const DropAfter = 5 * time.Second

// stagesOpen are the stages of a step whose requests come by a schedule: the
// warm-up, after which as many objects go as come, the hold, and the follow-up
// of what the hold asked for.
func (r *run) stagesOpen(ctx context.Context) record.Ending {
	if r.arrive(ctx) != nil {
		return record.EndInterrupted
	}
	r.emit(&record.StepEvent{Phase: record.PhaseLoaded})
	return r.await(ctx)
}

// arrive makes the load's requests, each at its time whatever became of the
// ones before. Only a bound on requests under way can hold one back: it then
// keeps its intended time, and is dropped once it has waited for DropAfter.
// Like raise it returns early once ctx ends, with every request on record.
func (r *run) arrive(ctx context.Context) error {
	r.status = Status{Step: r.current(), Stage: StageWarming, Level: r.Level, Purpose: r.Purpose, Arm: r.Arm, Requests: r.load.Requests, Unasked: r.load.Units, Bound: r.options.MaxInFlight}
	replies := make(chan *record.Slot, r.options.MaxInFlight)
	inFlight := 0
	// freed is when there last was a place again after there had been none:
	// only from then on is it our own doing that an arrival waits.
	var freed record.Micros
	take := func(slot *record.Slot) {
		if inFlight == r.options.MaxInFlight {
			freed = slot.Replied
		}
		inFlight--
		r.countOutcome(slot)
	}
	begin := r.clock.Now()
	span := record.MicrosOf(r.level().Span)
	warm := begin + record.MicrosOf(r.options.Warmup)
	end := begin + span
	intendedAt := func(i int) record.Micros {
		// Counted from the start, so that rounding does not add up.
		return begin + record.Micros(float64(span)*float64(i)/float64(max(r.load.Requests, 1)))
	}
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	<-alarm.C
	// until waits for a time, taking replies meanwhile; with place it returns
	// as soon as there is one for a further request.
	until := func(t record.Micros, place bool) {
		for ctx.Err() == nil && !(place && inFlight < r.options.MaxInFlight) {
			left := (t - r.clock.Now()).Duration()
			if left <= 0 {
				return
			}
			alarm.Reset(left)
			select {
			case slot := <-replies:
				take(slot)
			case <-alarm.C:
			case <-tick.C:
				r.reportArrivals(inFlight, warm, end)
			case <-ctx.Done():
			}
		}
	}
	warming := true
	reached := func(t record.Micros) {
		if warming && t >= warm {
			warming = false
			r.status.Stage = StageArriving
			r.sink.Append(record.Event{T: warm, Step: r.current(), Body: &record.StepEvent{Phase: record.PhaseReached}})
			r.sample()
		}
	}
	for i := 0; i < r.load.Requests && ctx.Err() == nil; i++ {
		intended := intendedAt(i)
		until(intended, false)
		reached(intended)
		// Replies that lie in the queue have freed places already.
		for drained := false; !drained; {
			select {
			case slot := <-replies:
				take(slot)
			default:
				drained = true
			}
		}
		if inFlight >= r.options.MaxInFlight {
			until(intended+record.MicrosOf(DropAfter), true)
		}
		if ctx.Err() != nil {
			break
		}
		if inFlight >= r.options.MaxInFlight {
			r.drop(i, intended)
			continue
		}
		// Also one that became due while there was none may find a place by now.
		waited := max(freed-intended, 0)
		if waited > 0 {
			r.status.Late++
		}
		inFlight++
		r.status.Sent++
		sent := r.clock.Now()
		go func() {
			slot := r.load.Send(ctx, i)
			slot.Intended, slot.Waited, slot.Sent, slot.Replied = intended, waited, sent, r.clock.Now()
			replies <- &slot
		}()
	}
	until(end, false)
	reached(r.clock.Now())
	for inFlight > 0 {
		select {
		case slot := <-replies:
			take(slot)
		case <-tick.C:
			r.reportArrivals(inFlight, warm, end)
		}
	}
	return ctx.Err()
}

// drop gives up an arrival that waited for too long.
func (r *run) drop(i int, intended record.Micros) {
	r.status.Late++
	r.status.Dropped++
	now := r.clock.Now()
	units := r.load.Units / max(r.load.Requests, 1)
	r.refused += units
	r.status.Unasked -= units
	r.sink.Append(record.Event{T: now, Step: r.current(), Body: &record.Slot{
		Slot: "arrival/" + strconv.Itoa(r.current()) + "-" + strconv.Itoa(i), Units: units, Iteration: i,
		Intended: intended, Waited: now - intended, Sent: now, Replied: now, Outcome: record.SlotDropped,
	}})
}

func (r *run) reportArrivals(inFlight int, warm, end record.Micros) {
	next := end
	if r.status.Stage == StageWarming {
		next = warm
	}
	r.report(inFlight, r.options.MaxInFlight, max((next-r.clock.Now()).Duration(), 0))
}
