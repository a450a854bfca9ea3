package simulated

import (
	"container/heap"
	"context"
	"math/rand/v2"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// The axes of streams.
const (
	axisRequests = "requests"
	axisClients  = "clients"
)

// What a request reaches.
const (
	connected = "Connected"
	responded = "Responded"
)

// Requests describes the requests of a stream.
func Requests() record.ObjectKind {
	return record.ObjectKind{
		Object:     record.Noun{One: "request", Many: "requests"},
		Milestones: []record.Milestone{{Name: connected, Owner: "network"}, {Name: responded, Owner: "server"}},
		There:      responded,
	}
}

// stream is a stream of requests under way: a server with planted times and a generator. It simulates
// events, each at its own time, in steps of a few milliseconds.
type stream struct {
	*Target
	schedule streams.Schedule
	windows  *streams.Windows

	arrivals   *streams.Arrivals
	events     events
	waiting    []record.Micros // when requests were due that find no place, from first
	first      int
	inFlight   int
	serverFree float64 // when the server can begin with the next request, in microseconds
	ownFree    float64 // when the generator can send the next one
}

// event is the end of a request, or in a closed loop a client that is free.
type event struct {
	at       record.Micros
	intended record.Micros
	outcome  streams.Outcome
	start    bool // a client's first request
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *events) Push(x any) { *e = append(*e, x.(event)) }

// Pop implements heap.Interface.
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

const streamTick = 2 * time.Millisecond // between two looks at what is due

func (t *Target) stream(ctx context.Context, schedule streams.Schedule) error {
	s := &stream{Target: t, schedule: schedule, serverFree: float64(schedule.Begin), ownFree: float64(schedule.Begin)}
	var random *rand.Rand
	if t.plan.RandomArrivals {
		random = t.rng
	}
	s.arrivals = schedule.Arrivals(random)
	s.windows = streams.NewWindows(schedule, "", func(w *record.Window) {
		t.sink.Append(record.Event{T: t.clock.Now(), Step: t.step(), Body: w})
	})
	if !schedule.Open {
		for range int(schedule.Value) {
			s.events = append(s.events, event{at: schedule.Begin, start: true})
		}
	}
	tick := time.NewTicker(streamTick)
	defer tick.Stop()
	for {
		now := t.clock.Now()
		over := s.workOff(now)
		if err := s.windows.Tell(now); err != nil || over && now >= schedule.End() {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return s.windows.Lose(t.clock.Now())
		}
	}
}

// workOff works off what is due until a time, in order, and reports whether nothing more is to come.
func (s *stream) workOff(until record.Micros) (over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		arrival, arrives := s.arrivals.Next()
		end := record.Micros(-1)
		if len(s.events) > 0 {
			end = s.events[0].at
		}
		switch {
		case arrives && arrival <= until && (end < 0 || arrival <= end):
			s.arrivals.Take()
			s.giveUp(arrival)
			if s.inFlight < s.schedule.MaxInFlight {
				s.send(arrival, arrival, false)
			} else {
				s.waiting = append(s.waiting, arrival)
				s.windows.Wait(arrival)
			}
		case end >= 0 && end <= until:
			s.end(heap.Pop(&s.events).(event))
		default:
			s.giveUp(until)
			s.progress.InFlight = s.inFlight
			return !arrives && len(s.events) == 0 && s.first == len(s.waiting)
		}
	}
}

// end takes in the end of a request, and sends the one that its place goes to.
func (s *stream) end(e event) {
	if !e.start {
		s.inFlight--
		s.windows.End(e.intended, e.at, e.outcome)
		switch {
		case e.outcome.Failed != "":
			s.progress.Failed++
		case !e.outcome.Lost:
			s.progress.There++
			s.progress.Arrived++
		}
	}
	s.giveUp(e.at)
	switch {
	case !s.schedule.Open && e.at < s.schedule.End():
		s.send(e.at, e.at, false)
	case s.first < len(s.waiting):
		intended := s.waiting[s.first]
		s.first++
		s.progress.Late++
		s.send(intended, e.at, true)
	}
}

// giveUp drops what has waited for a place for too long.
func (s *stream) giveUp(now record.Micros) {
	for s.first < len(s.waiting) && s.waiting[s.first]+record.MicrosOf(s.schedule.DropAfter) <= now {
		s.windows.Drop(s.waiting[s.first], now)
		s.first++
		s.progress.Late++
		s.progress.Dropped++
	}
	if s.first > 1024 && 2*s.first > len(s.waiting) {
		s.waiting, s.first = append(s.waiting[:0], s.waiting[s.first:]...), 0
	}
}

// send sends a request that was due at intended and found its place at a time.
func (s *stream) send(intended, at record.Micros, late bool) {
	sent := at
	if s.plan.Generator > 0 {
		free := max(float64(at), s.ownFree)
		sent, s.ownFree = record.Micros(free), free+1e6/s.plan.Generator
	}
	if !s.schedule.Open {
		intended = sent
	}
	s.windows.Sent(intended, sent, late, sent-at)
	s.inFlight++
	s.sent++
	s.progress.Sent++
	s.progress.Moved = sent

	connect := record.MicrosOf(s.plan.Connect.At(s.rng.Float64()))
	free := max(float64(sent+connect), s.serverFree)
	begin := record.Micros(free)
	if s.plan.Pause > 0 {
		from := s.schedule.Begin + record.MicrosOf(s.schedule.Warm+s.schedule.Hold/2)
		if to := from + record.MicrosOf(s.plan.Pause); begin >= from && begin < to {
			begin, free = to, float64(to)
		}
	}
	if s.plan.Rate > 0 {
		s.serverFree = free + 1e6/s.plan.Rate
	}
	end := begin + record.MicrosOf(s.plan.Latency.At(s.rng.Float64()))
	e := event{at: end, intended: intended, outcome: streams.Outcome{BytesOut: requestBytes}}
	switch bound := intended + record.MicrosOf(s.schedule.Timeout); {
	case s.plan.LoseAfter > 0 && s.sent > s.plan.LoseAfter:
		e.outcome.Lost = true
	case end > bound:
		e.at, e.outcome.Failed = bound, record.FailedTimeout
	case s.plan.FailEvery > 0 && s.sent%s.plan.FailEvery == 0:
		e.outcome.Failed = plantedFailure
	default:
		e.outcome.Times = map[string]record.Micros{connected: sent + connect - intended, responded: end - intended}
		e.outcome.BytesIn = responseBytes
	}
	heap.Push(&s.events, e)
}

// The planted sizes of a request and of its answer.
const (
	requestBytes  = 128
	responseBytes = 1024
)
