// Package load sends streams of HTTP requests and sees what becomes of each: at
// a rate by a schedule, or from a number of clients as fast as they are
// answered. It is made to cost little of a processor, since what it costs is
// missing to what it measures.
package load

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
)

// What a request reaches.
const (
	Connected = "Connected" // only of one that opened a connection
	Secured   = "Secured"   // likewise: the TLS handshake is over
	Response  = "Response"  // the whole answer is there
)

// Kinds of failure, besides record.FailedTimeout.
const (
	FailedRefused = "refused"   // the connection
	FailedReset   = "reset"     // the connection, before or within the answer
	FailedClosed  = "closed"    // the connection ended before the answer was whole
	FailedTLS     = "handshake" // of TLS
	FailedBody    = "body"      // not what was asked for
	FailedAnswer  = "answer"    // no HTTP
	// FailedStatus begins the kind of an answer with another status than 200.
	FailedStatus = "status "
)

// Plan is what requests are like. A Plan is not changed once it is in use.
type Plan struct {
	Address string // host and port that connections go to
	// TLS is nil for plain text. The name of the server is the request's host.
	TLS *tls.Config
	// HTTP2 sends by HTTP/2, which takes TLS: one request at a time on each
	// connection, as by HTTP/1.1.
	HTTP2  bool
	Hosts  []Host
	Method string
	Path   string
	Header int // bytes of a header besides the usual ones
	Body   int // bytes of body that are sent
	// Size is how many bytes of body an answer must have, and Want how it must
	// begin.
	Size int64
	Want []byte
	// Close opens a connection for each request.
	Close bool
	// Sources are the addresses that connections come from, in turn; none leaves
	// it to the system. A port of each can be used once for each destination
	// until the system forgets it.
	Sources []net.IP
	// Random draws the arrivals of an open loop as of many independent users.
	Random bool
	// Work is a time that the generator is kept busy with for each request, to
	// see what comes of a slow one.
	Work time.Duration
}

// Counts are what happened to connections since the generator was made.
type Counts struct {
	Opened  int64 // connections
	Resumed int64 // of them, by a TLS session of before
	Retried int64 // requests, on another connection
	NoPort  int64 // connections for which this machine had no port left
}

// Generator makes streams.
type Generator struct {
	plan     Plan
	requests [][]byte      // for each host
	configs  []*tls.Config // for each host, none for plain text
	chooser  chooser
	now      func() record.Micros
	seed     uint64
	streams  uint64

	opened, resumed, retried, noPort atomic.Int64
	source                           atomic.Uint32
	progress                         progress
}

type progress struct {
	sent, done, failed, late, dropped, moved atomic.Int64
	inFlight                                 atomic.Int64
}

// New makes a generator.
func New(p Plan, now func() record.Micros, seed uint64) *Generator {
	g := &Generator{plan: p, chooser: newChooser(p.Hosts), now: now, seed: seed}
	for _, h := range p.Hosts {
		g.requests = append(g.requests, requestOf(p, h.Name))
		if p.TLS != nil {
			config := p.TLS.Clone()
			config.ServerName = h.Name
			if p.HTTP2 {
				config.NextProtos = []string{http2.NextProtoTLS}
			}
			g.configs = append(g.configs, config)
		}
	}
	return g
}

// requestOf is the text of a request.
func requestOf(p Plan, host string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: plimsoll\r\nAccept: */*\r\n", p.Method, p.Path, host)
	if p.Header > 0 {
		fmt.Fprintf(&b, "X-Load: %s\r\n", strings.Repeat("h", p.Header))
	}
	if p.Body > 0 {
		fmt.Fprintf(&b, "Content-Type: application/octet-stream\r\nContent-Length: %d\r\n", p.Body)
	}
	if p.Close {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n" + strings.Repeat("b", p.Body))
	return []byte(b.String())
}

// Counts tells what happened to connections so far.
func (g *Generator) Counts() Counts {
	return Counts{g.opened.Load(), g.resumed.Load(), g.retried.Load(), g.noPort.Load()}
}

// Progress sums up the stream under way, or the last one.
func (g *Generator) Progress() target.Progress {
	p := &g.progress
	return target.Progress{
		There: int(p.done.Load()), Arrived: int(p.done.Load()), Failed: int(p.failed.Load()), Sent: int(p.sent.Load()), InFlight: int(p.inFlight.Load()),
		Late: int(p.late.Load()), Dropped: int(p.dropped.Load()), Moved: record.Micros(p.moved.Load()),
	}
}

// stream is a stream under way.
type stream struct {
	*Generator
	target.Schedule
	windows *target.Windows

	mu    sync.Mutex
	conns map[*conn]bool // all there are
	spare []*conn        // that are done
	ended bool           // the load was cut
	over  bool           // no more requests are due

	// Of an open loop: connections without a request, and requests that were
	// due and found no place, from first.
	idle    []*conn
	waiting []record.Micros
	first   int
	places  int // that are taken
	done    sync.WaitGroup
}

const (
	// tick is how often what is over is told of, and late requests are given up.
	tick = 20 * time.Millisecond
	// lastWords is how long requests under way may take when the load is cut.
	lastWords = time.Second
)

// Run makes a stream and returns once all is known of its requests, or once
// what was under way when ctx ended has had time to end.
func (g *Generator) Run(ctx context.Context, schedule target.Schedule, emit func(*record.Window)) error {
	p := &g.progress
	for _, n := range []*atomic.Int64{&p.sent, &p.done, &p.failed, &p.late, &p.dropped, &p.moved, &p.inFlight} {
		n.Store(0)
	}
	g.streams++
	s := &stream{Generator: g, Schedule: schedule, windows: target.NewWindows(schedule, "", emit), conns: make(map[*conn]bool)}
	over := make(chan struct{})
	go func() {
		defer close(over)
		switch {
		case schedule.Open:
			s.openLoop(ctx)
		default:
			s.closedLoop(ctx)
		}
	}()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	var cut record.Micros // when the load was cut, 0 while it was not
	for {
		stopped := ctx.Done()
		if cut > 0 {
			stopped = nil
		}
		ended := false
		select {
		case <-over:
			ended = true
		case <-stopped:
			cut = g.now()
		case <-ticker.C:
		}
		now := g.now()
		s.giveUp(now, cut)
		behind := int(p.inFlight.Load()) + s.unsent()
		if err := s.windows.Tell(now, int(p.inFlight.Load()), behind); err != nil {
			s.cut()
			<-over
			return err
		}
		if !ended {
			continue
		}
		if cut > 0 {
			return s.windows.Lose(now)
		}
		if now >= schedule.End() {
			return nil
		}
		// The last window is told of once it is over.
		over = nil
		time.Sleep((schedule.End() - now).Duration())
		return s.windows.Tell(g.now(), 0, 0)
	}
}

// unsent is how many requests are due and wait for a place.
func (s *stream) unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) - s.first
}

// giveUp ends requests whose time is over, and all of them some time after the
// load was cut.
func (s *stream) giveUp(now, cut record.Micros) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld(now)
	if cut > 0 {
		s.ended = true
	}
	for c := range s.conns {
		if bound := c.bound.Load(); bound > 0 && (int64(now) >= bound || cut > 0 && now >= cut+record.MicrosOf(lastWords)) {
			c.abort()
		}
	}
}

// cut ends everything.
func (s *stream) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for c := range s.conns {
		c.abort()
	}
}

// closedLoop sends from each client as fast as it is answered.
func (s *stream) closedLoop(ctx context.Context) {
	for i := range int(s.Value) {
		s.done.Go(func() {
			c := s.newConn(uint64(i))
			defer s.remove(c)
			for ctx.Err() == nil {
				now := s.now()
				if now >= s.End() {
					return
				}
				c.begin(now)
				s.sent(now, false, 0)
				failed := s.end(c, c.transact())
				if failed && c.fruitless > 1 {
					// One that cannot even connect tries again, not as fast as it can.
					select {
					case <-ctx.Done():
					case <-time.After(fruitlessPause):
					}
				}
			}
		})
	}
	s.done.Wait()
}

// fruitlessPause is how long a client waits that failed to connect, twice in a
// row.
const fruitlessPause = 5 * time.Millisecond

// newConn takes a connection that is done, or makes one. N is a number of its
// own, of those that are made.
func (s *stream) newConn(n uint64) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	var c *conn
	if last := len(s.spare) - 1; last >= 0 {
		c, s.spare = s.spare[last], s.spare[:last]
	} else {
		c = &conn{stream: s, rng: rand.New(rand.NewPCG(s.seed^s.streams, n)), buf: make([]byte, bufferBytes), times: make(map[string]record.Micros, 3)}
	}
	s.conns[c] = true
	return c
}

func (s *stream) remove(c *conn) {
	c.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.spare = append(s.spare, c)
}

// sent notes that a request is sent now.
func (s *stream) sent(intended record.Micros, late bool, own record.Micros) {
	if s.plan.Work > 0 {
		s.toil()
	}
	s.windows.Sent(intended, late, own)
	s.progress.sent.Add(1)
	s.progress.inFlight.Add(1)
}

// toil keeps the generator's processor busy.
func (s *stream) toil() {
	for until := s.now() + record.MicrosOf(s.plan.Work); s.now() < until; {
	}
}

// end notes how a connection's request ended, and reports whether it failed.
func (s *stream) end(c *conn, x target.Outcome) (failed bool) {
	now := s.now()
	if x.Failed != "" && !x.Lost && s.isCut() {
		x = target.Outcome{Lost: true} // it was we who ended it
	}
	x.Retried = c.retried
	s.windows.End(c.intended, x)
	p := &s.progress
	p.inFlight.Add(-1)
	p.moved.Store(int64(now))
	switch {
	case x.Failed != "":
		p.failed.Add(1)
	case !x.Lost:
		p.done.Add(1)
	}
	return x.Failed != "" || x.Lost
}

func (s *stream) isCut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}
