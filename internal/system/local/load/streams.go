package load

import (
	"errors"
	"os"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// manyStreams is a closed loop of several requests at once on an HTTP/2 connection, as many as the other
// side accepts. A request that is given up leaves the others alone.
func (c *conn) manyStreams() {
	slots := make([]*slot, c.plan.Streams)
	for i := range slots {
		slots[i] = &slot{conn: &conn{loop: c.loop, fd: -1, rng: c.rng, times: make(map[string]record.Micros, 3)}}
	}
	for {
		pending := slices.ContainsFunc(slots, func(s *slot) bool { return s.pending })
		active := c.framed != nil && len(c.framed.streams) > 0
		switch {
		case !active && (c.cut.Load() || !pending && c.last >= c.End()):
			for _, s := range slots {
				if s.pending {
					s.bound = 0
					s.end(system.Outcome{Lost: true}) // cut off
				}
			}
			c.bound = 0
			c.live--
			return
		case c.framed == nil:
			if !c.openFor(slots) && c.fruitless > 1 {
				c.pause(record.MicrosOf(fruitlessPause))
			}
		default:
			if c.send(slots); len(c.framed.streams) == 0 {
				c.close() // it accepts no more requests
			} else {
				c.advance(slots)
			}
		}
	}
}

// slot is a place for a request on a connection.
type slot struct {
	*conn
	exchange *exchange // nil without one
	pending  bool      // has an unsent request
}

// openFor opens a connection for the first pending request, or a new one.
func (c *conn) openFor(slots []*slot) (ok bool) {
	first := slots[0]
	for _, s := range slots {
		if s.pending {
			first = s
			break
		}
	}
	if !first.pending {
		first.begin(c.tick())
		first.sent(first.intended, false, 0)
		first.pending = true
	}
	c.begin(first.intended)
	c.bound, c.host = first.bound, first.host
	x, ok := c.open()
	if !ok {
		first.pending, first.bound = false, 0
		first.end(x)
		return false
	}
	first.times[Connected], first.times[Secured] = c.times[Connected], c.times[Secured]
	return true
}

// send sends requests in all free places, first those that were not taken in before.
func (c *conn) send(slots []*slot) {
	for i := range 2 * len(slots) {
		s, first := slots[i%len(slots)], i < len(slots)
		over := c.cut.Load() || c.last >= c.End()
		if s.exchange != nil || c.framed.full() || first && !s.pending || !s.pending && over {
			continue
		}
		if !s.pending {
			s.begin(c.tick())
			s.sent(s.intended, false, 0)
		}
		s.pending = false
		if s.host != c.host {
			// A TLS connection is for one host.
			s.host = c.host
			s.asked = &c.requests[s.host][c.choosers[s.host].draw(c.rng)]
			s.answer.Reset(s.asked.want, s.asked.Method == "HEAD")
		}
		s.exchange = c.framed.begin(s.conn)
	}
}

// advance reads a frame, and ends the requests that it completes.
func (c *conn) advance(slots []*slot) {
	c.bound = never
	for _, s := range slots {
		if s.exchange != nil {
			c.bound = min(c.bound, s.bound)
		}
	}
	c.nextBound = min(c.nextBound, c.bound)
	c.aborted = false
	f := c.framed
	err := f.advance()
	c.tick()
	if errors.Is(err, os.ErrDeadlineExceeded) && f.within == 0 && c.abortAt.Load() == 0 {
		// Between two frames the connection can go on for the others.
		for _, s := range slots {
			if s.exchange != nil && s.bound <= c.last {
				s.over(c, os.ErrDeadlineExceeded)
			}
		}
		return
	}
	for _, s := range slots {
		switch {
		case s.exchange == nil:
		case s.exchange.over():
			s.over(c, s.exchange.err)
		case err != nil:
			s.over(c, err)
		}
	}
	if err != nil {
		c.close()
	}
}

// over ends the request of a place, or makes it pending again.
func (s *slot) over(c *conn, err error) {
	c.framed.end(s.exchange)
	s.exchange, s.answered = nil, c.answered
	x, again := s.outcome(err)
	if s.pending = again; again {
		return
	}
	if err == nil {
		c.answered++
	}
	s.end(x)
}
