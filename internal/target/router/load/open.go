package load

import (
	"context"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

// openLoop sends by the schedule, whatever became of earlier requests. Requests
// go out from one thread that does nothing else, on connections that have none
// under way; the connections' own goroutines read the answers.
func (s *stream) openLoop(ctx context.Context) {
	// The thread ends with the goroutine, so that its priority and slack stay
	// its own.
	runtime.LockOSThread()
	prompt()
	var random *rand.Rand
	if s.plan.Random {
		random = rand.New(rand.NewPCG(s.seed, s.streams))
	}
	arrivals := s.Arrivals(random)
	for n := uint64(0); ctx.Err() == nil; n++ {
		at, ok := arrivals.Next()
		if !ok {
			break
		}
		for now := s.now(); now < at; now = s.now() {
			// Short enough to see that the load was cut.
			sleep(min(at-now, longestSleep))
			if ctx.Err() != nil {
				break
			}
		}
		if ctx.Err() != nil {
			break
		}
		arrivals.Take()
		s.arrive(at, n)
	}
	s.mu.Lock()
	s.ended = s.ended || ctx.Err() != nil
	s.over = true
	idle := s.idle
	s.idle = nil
	s.mu.Unlock()
	for _, c := range idle {
		if c.abort(); s.plan.HTTP2 {
			s.remove(c) // nobody reads on it
		}
	}
	s.done.Wait()
}

// longestSleep is how long the sender sleeps at a time, in microseconds.
const longestSleep = 50_000

// prompt makes the calling thread wake up when it asked to. Its priority stays
// that of the others: Go's threads wait for each other by turning round, and one
// that goes first would wait for ever.
func prompt() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }

func sleep(d record.Micros) {
	ts := unix.NsecToTimespec(int64(d) * 1000)
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &ts, nil) // woken early, it is asked again
}

// arrive sends a request that is due at a time, or has it wait for a place.
func (s *stream) arrive(at record.Micros, n uint64) {
	s.mu.Lock()
	if last := len(s.idle) - 1; last >= 0 {
		c := s.idle[last]
		s.idle = s.idle[:last]
		c.slot = -1
		c.begin(at)
		wire, request := c.wire, s.requests[c.host]
		s.mu.Unlock()
		s.sent(at, false, s.now()-at)
		if c.plan.HTTP2 {
			s.done.Go(func() { s.serve(c) })
			return
		}
		// What is wrong with the connection, its reader sees.
		_, _ = wire.Write(request)
		return
	}
	if s.places >= s.MaxInFlight {
		s.waiting = append(s.waiting, at)
		s.dropOld(at)
		s.mu.Unlock()
		return
	}
	s.places++
	s.mu.Unlock()
	c := s.newConn(n)
	c.slot = -1
	c.begin(at)
	s.sent(at, false, s.now()-at)
	s.done.Go(func() { s.serve(c) })
}

// serve makes the requests of a connection of an open loop, beginning with one
// that is under way.
func (s *stream) serve(c *conn) {
	for {
		s.end(c, c.transact())
		for {
			more, idle := s.next(c)
			if idle && s.plan.HTTP2 {
				return // the next request comes with a goroutine of its own
			}
			if !more && !idle {
				s.remove(c)
				return
			}
			if more {
				break
			}
			// The next request is sent by another goroutine, on this connection.
			n, err := c.wire.Read(c.buf)
			if !s.taken(c) {
				s.remove(c)
				return // it was closed while it had nothing to do
			}
			if err = c.read(n, err); err != nil {
				if x, again := c.outcome(err); !again {
					s.end(c, x)
					continue
				}
				break // made again, on a connection of its own
			}
			x, _ := c.outcome(nil)
			s.end(c, x)
		}
	}
}

// next gives a connection that has done its request the next one that waits, or
// puts it among the idle ones. Where it is of no use, its place goes free.
func (s *stream) next(c *conn) (more, idle bool) {
	s.mu.Lock()
	now := s.now()
	s.dropOld(now)
	if s.first < len(s.waiting) && !s.ended {
		intended := s.waiting[s.first]
		s.first++
		c.begin(intended)
		s.mu.Unlock()
		s.progress.late.Add(1)
		s.sent(intended, true, s.now()-now)
		return true, false
	}
	defer s.mu.Unlock()
	if c.wire == nil || s.ended || s.over {
		s.places--
		return false, false
	}
	c.slot = len(s.idle)
	s.idle = append(s.idle, c)
	return false, true
}

// taken reports whether a connection was given a request; else it is no longer
// among the idle ones, and its place is free.
func (s *stream) taken(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.slot < 0 {
		return true
	}
	if c.slot < len(s.idle) && s.idle[c.slot] == c {
		last := len(s.idle) - 1
		s.idle[c.slot] = s.idle[last]
		s.idle[c.slot].slot = c.slot
		s.idle = s.idle[:last]
	}
	c.slot = -1
	s.places--
	return false
}

// dropOld drops what has waited for a place for too long. It is called with the
// lock held.
func (s *stream) dropOld(now record.Micros) {
	for s.first < len(s.waiting) && s.waiting[s.first]+record.MicrosOf(s.DropAfter) <= now {
		s.windows.Drop(s.waiting[s.first])
		s.first++
		s.progress.late.Add(1)
		s.progress.dropped.Add(1)
	}
	if s.first > 1024 && 2*s.first > len(s.waiting) {
		s.waiting, s.first = append(s.waiting[:0], s.waiting[s.first:]...), 0
	}
}
