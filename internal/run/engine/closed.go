package engine

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

const (
	paceSlack = 10 * time.Millisecond // lateness of a paced request that the following ones make up
	duePoll   = 5 * time.Millisecond  // between two looks whether a waiting request is due
)

type sender struct {
	*run
	replies  chan *record.Slot
	inFlight int
	tick     *time.Ticker
	alarm    *time.Timer
	take     func(*record.Slot) // is called for each reply
	tell     func()             // reports the status
}

func (r *run) sending() sender {
	s := sender{run: r, replies: make(chan *record.Slot, r.options.MaxInFlight), tick: time.NewTicker(statusInterval), alarm: time.NewTimer(0)}
	<-s.alarm.C
	return s
}

func (s *sender) send(ctx context.Context, i int, complete func(*record.Slot)) {
	s.inFlight++
	s.status.Sent++
	go func() {
		slot := s.load.Send(ctx, i)
		slot.Replied = s.clock.Now()
		complete(&slot)
		s.replies <- &slot
	}()
}

func (s *sender) wait(alarm <-chan time.Time, done <-chan struct{}) {
	select {
	case slot := <-s.replies:
		s.take(slot)
		s.inFlight--
		s.countOutcome(slot)
	case <-alarm:
	case <-s.tick.C:
		s.tell()
	case <-done:
	}
}

func (s *sender) drain() {
	for s.inFlight > 0 {
		s.wait(nil, nil)
	}
	s.tick.Stop()
	s.alarm.Stop()
}

// dispatcher makes the requests of a closed loop, within a bound in flight and a pace.
type dispatcher struct {
	sender
	bound *inFlightBound
	next  record.Micros // the pace's earliest time for the next request
	gap   record.Micros
	zero  record.Micros // moment of a load at once; it moves to each request that was held back until due
	held  bool
}

// raise makes the load's requests until ctx ends; every request that was sent is then on record.
func (r *run) raise(ctx context.Context) error {
	r.status = Status{Step: r.current(), Stage: StageRaising, StepPlan: r.StepPlan, Requests: r.load.Requests, Unasked: r.load.Units}
	now := r.clock.Now()
	d := &dispatcher{sender: r.sending(), bound: newInFlightBound(r.options.MaxInFlight, r.load.AtOnce), next: now, zero: now}
	d.take = func(slot *record.Slot) {
		d.bound.Replied((slot.Replied - slot.Sent).Duration(), slot.Throttled > 0)
	}
	d.tell = func() { r.report(d.inFlight, d.bound.Limit(), 0) }
	if r.options.Pace > 0 {
		d.gap = record.Micros(1e6 / r.options.Pace)
	}
	for i := 0; ctx.Err() == nil; i++ {
		for i == r.load.Requests && d.inFlight > 0 && r.load.More != nil {
			d.wait(nil, nil)
		}
		if i == r.load.Requests && !d.more(ctx) || !d.turn(ctx, i) {
			break
		}
		d.request(ctx, i)
	}
	d.drain()
	return cmp.Or(r.failed, ctx.Err())
}

// turn waits until request i may be made. It reports false once ctx has ended.
func (d *dispatcher) turn(ctx context.Context, i int) bool {
	for ctx.Err() == nil {
		wait := (d.next - d.clock.Now()).Duration()
		free := d.inFlight < d.bound.Limit()
		if free && wait <= 0 {
			if d.load.Due == nil || d.load.Due(i) {
				return true
			}
			wait, d.held = duePoll, true
		}
		var due <-chan time.Time
		if free {
			d.alarm.Reset(wait)
			due = d.alarm.C
		}
		d.wait(due, ctx.Done())
	}
	return false
}

func (d *dispatcher) request(ctx context.Context, i int) {
	sent := d.clock.Now()
	d.next = max(d.next+d.gap, sent-record.MicrosOf(paceSlack)) // a pace is a bound, not a schedule
	intended := sent
	if d.load.AtOnce {
		if d.held {
			d.zero, d.held = sent, false
		}
		intended = d.zero
	}
	d.send(ctx, i, func(slot *record.Slot) {
		slot.Intended, slot.Sent, slot.AtOnce = intended, sent, d.load.AtOnce
		for s := slot.Before; s != nil && slot.AtOnce; s = s.Before {
			s.Intended, s.AtOnce = intended, true
		}
	})
}

func (d *dispatcher) more(ctx context.Context) bool {
	if d.load.More == nil || ctx.Err() != nil {
		return false
	}
	var n, units int
	done := make(chan error, 1)
	go func() (err error) {
		defer func() { done <- err }()
		n, units, err = d.load.More(ctx)
		return err
	}()
	for {
		select {
		case err := <-done:
			if err != nil && ctx.Err() == nil {
				d.failed = fmt.Errorf("make the load: %w", err)
			}
			d.load.Requests += n
			d.units += units
			d.status.Requests = d.load.Requests
			d.status.Unasked += units
			return err == nil && n > 0
		case <-d.tick.C:
			d.report(0, 0, 0)
		}
	}
}
