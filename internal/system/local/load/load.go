package load

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
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
	FailedStream  = "refused stream"
	// FailedStatus begins the kind of an answer with another status than 200.
	FailedStatus = "status "
)

// Plan is what requests are like. A Plan is not changed once it is in use.
type Plan struct {
	Address string // IP address and port that connections go to
	// TLS is nil for plain text. The name of the server is the request's host.
	TLS *tls.Config
	// HTTP2 sends by HTTP/2, which takes TLS: one request at a time on each
	// connection, as by HTTP/1.1, or in a closed loop Streams of them.
	HTTP2   bool
	Streams int // at most MostStreams
	Hosts   []Host
	Method  string
	Path    string
	Header  int // bytes of a header besides the usual ones
	Body    int // bytes of body that are sent
	// Size is how many bytes of body an answer must have, and Want how it must
	// begin. Method to Want are for hosts without requests of their own.
	Size int64
	Want []byte
	// Close opens a connection for each request.
	Close bool
	// Retry sends a request again, once, whose kept connection ended before the
	// first byte of an answer, where its method allows it, as browsers do. What
	// was certainly not taken in is sent again in any case.
	Retry bool
	// Sources are the addresses that connections come from, in turn; none leaves
	// it to the system. A port of each can be used once for each destination
	// until the system forgets it.
	Sources []net.IP
	// Pace is how many requests a second a closed loop makes at most, 0 for no
	// bound.
	Pace float64
	// Random draws the arrivals of an open loop as of many independent users.
	Random bool
	// Threads is how many threads make requests, at least one: no more than there
	// are processors for them, for they stay at work while they wait.
	Threads int
	// Enter puts the calling thread where connections are made from, for good; nil
	// leaves it where it is.
	Enter func() error
	// Record is how many of the slowest requests of a stream's hold, and of those
	// that failed, Recorded tells.
	Record int
	// Work is a time that the generator is kept busy with for each request, to
	// see what comes of a slow one.
	Work time.Duration
}

// Counts are what happened to connections since the generator was made.
type Counts struct {
	Opened  int64 // connections
	Resumed int64 // of them, by a TLS session of before
	Retried int64 // times that a request was sent again
	NoPort  int64 // connections for which this machine had no port left
	// Received is the bytes that connections have brought, heads of answers and the
	// encryption of TLS included.
	Received int64
}

// Values returns the counts of connections as values of a reading.
func (c Counts) Values() map[string]float64 {
	return map[string]float64{"opened": float64(c.Opened), "resumed": float64(c.Resumed), "retried": float64(c.Retried), "noPort": float64(c.NoPort)}
}

// Generator makes streams.
type Generator struct {
	plan     Plan
	requests [][]request   // for each host
	choosers []chooser     // likewise, of its requests
	configs  []*tls.Config // for each host, none for plain text
	chooser  chooser
	family   int // of the address
	peer     func() unix.Sockaddr
	wrong    error // with the address
	now      func() record.Micros
	seed     uint64
	streams  uint64

	opened, resumed, retried, noPort, received atomic.Int64
	source                                     atomic.Uint32

	beside   sync.RWMutex // read by who works beside a stream, held to collect garbage
	sending  bool         // a stream is under way
	progress progress
	recorded recorded
	held     held // of the last stream
}

type progress struct {
	sent, done, failed, late, dropped, moved atomic.Int64
	inFlight                                 atomic.Int64
}

// New makes a generator.
func New(p Plan, now func() record.Micros, seed uint64) *Generator {
	g := &Generator{plan: p, chooser: newChooser(weightsOf(p.Hosts, func(h Host) float64 { return h.Weight })), now: now, seed: seed}
	peer, err := netip.ParseAddrPort(p.Address)
	// A call writes to its address, so that each has one of its own.
	switch {
	case err != nil:
		g.wrong = fmt.Errorf("connect to %s: not an address and a port", p.Address)
	case peer.Addr().Unmap().Is4():
		g.family = unix.AF_INET
	default:
		g.family = unix.AF_INET6
	}
	g.peer = func() unix.Sockaddr { return sockaddr(peer.Addr().AsSlice(), int(peer.Port())) }
	for _, h := range p.Hosts {
		var list []request
		for _, r := range h.Requests {
			list = append(list, requestOf(p, h.Name, r, -1, nil))
		}
		if len(list) == 0 {
			list = []request{requestOf(p, h.Name, p.own(), p.Size, p.Want)}
		}
		g.requests, g.choosers = append(g.requests, list), append(g.choosers, newChooser(weightsOf(h.Requests, func(r Request) float64 { return r.Weight })))
		if p.TLS != nil {
			config := p.TLS.Clone()
			config.ServerName = h.Name
			if name, _, err := net.SplitHostPort(h.Name); err == nil {
				config.ServerName = name
			}
			if p.HTTP2 {
				config.NextProtos = []string{http2.NextProtoTLS}
			}
			g.configs = append(g.configs, config)
		}
	}
	return g
}

// own is the request of hosts that have none of their own.
func (p Plan) own() Request {
	r := Request{Method: p.Method, Path: p.Path, Body: bytes.Repeat([]byte{'b'}, p.Body)}
	if p.Header > 0 {
		r.Fields = append(r.Fields, [2]string{"X-Load", strings.Repeat("h", p.Header)})
	}
	if p.Body > 0 {
		r.Fields = append(r.Fields, [2]string{"Content-Type", "application/octet-stream"})
	}
	return r
}

// request is one as it is sent, and what its answer must be like.
type request struct {
	Request
	text []byte // by HTTP/1.1
	size int64  // of the answer's body, -1 for any
	want []byte // how that begins
}

func requestOf(p Plan, host string, r Request, size int64, want []byte) request {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", r.Method, r.Path, host)
	usual := slices.DeleteFunc([][2]string{{"User-Agent", "plimsoll"}, {"Accept", "*/*"}}, func(f [2]string) bool {
		return slices.ContainsFunc(r.Fields, func(x [2]string) bool { return strings.EqualFold(x[0], f[0]) })
	})
	r.Fields = append(usual, r.Fields...)
	for _, f := range r.Fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f[0], f[1])
	}
	if len(r.Body) > 0 || r.Method == "POST" || r.Method == "PUT" {
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(r.Body))
	}
	if p.Close {
		b.WriteString("Connection: close\r\n")
	}
	b.WriteString("\r\n")
	b.Write(r.Body)
	r.Status = cmp.Or(r.Status, 200)
	return request{r, b.Bytes(), size, want}
}

// Counts tells what happened to connections so far.
func (g *Generator) Counts() Counts {
	return Counts{g.opened.Load(), g.resumed.Load(), g.retried.Load(), g.noPort.Load(), g.received.Load()}
}

// Progress sums up the stream under way, or the last one.
func (g *Generator) Progress() system.Progress {
	p := &g.progress
	return system.Progress{
		There: int(p.done.Load()), Arrived: int(p.done.Load()), Failed: int(p.failed.Load()), Sent: int(p.sent.Load()), InFlight: int(p.inFlight.Load()),
		Late: int(p.late.Load()), Dropped: int(p.dropped.Load()), Moved: record.Micros(p.moved.Load()),
	}
}

// stream is a stream under way.
type stream struct {
	*Generator
	system.Schedule
	windows *system.Windows
	loops   int
	noted   []atomic.Int64 // by each loop, until when all that happened is noted
	// cut says that no more requests are sent, and abortAt when those under way
	// are given up, 0 for never.
	cut     atomic.Bool
	abortAt atomic.Int64
}

const (
	// tick is how often what is over is told of.
	tick = 20 * time.Millisecond
	// lastWords is how long requests under way may take when the load is cut.
	lastWords = time.Second
)

// Run makes a stream and returns once all is known of its requests, or once
// what was under way when ctx ended has had time to end.
func (g *Generator) Run(ctx context.Context, schedule system.Schedule, emit func(*record.Window)) error {
	g.held = held{Schedule: schedule}
	collect, undo := g.uncollected()
	defer undo()
	p := &g.progress
	for _, n := range []*atomic.Int64{&p.sent, &p.done, &p.failed, &p.late, &p.dropped, &p.moved, &p.inFlight} {
		n.Store(0)
	}
	g.streams++
	s := &stream{Generator: g, Schedule: schedule, windows: system.NewWindows(schedule, "", func(w *record.Window) {
		g.held.add(w)
		emit(w)
	}), loops: max(g.plan.Threads, 1)}
	most := int(schedule.Value)
	if schedule.Open {
		most = schedule.MaxInFlight
	}
	s.loops = max(min(s.loops, most), 1)
	s.noted = make([]atomic.Int64, s.loops)
	g.recorded = recorded{most: g.plan.Record}
	type end struct {
		recorded recorded
		err      error
	}
	over := make(chan end, s.loops)
	for n := range s.loops {
		go func() {
			l := newLoop(s, n)
			err := l.run()
			s.noted[n].Store(int64(never))
			over <- end{l.recorded, err}
		}()
	}
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	stopped := ctx.Done()
	var failed error
	for left := s.loops; ; {
		select {
		case e := <-over:
			left--
			g.recorded.merge(e.recorded)
			if e.err != nil && failed == nil {
				failed = e.err
				s.stop(0)
			}
		case <-stopped:
			stopped = nil
			s.stop(lastWords)
		case <-ticker.C:
		}
		now := g.now()
		for n := range s.noted {
			now = min(now, record.Micros(s.noted[n].Load()))
		}
		if failed == nil {
			if failed = s.windows.Tell(now); failed != nil {
				s.stop(0)
			}
			collect()
		}
		switch {
		case left > 0:
		case failed != nil:
			return failed
		case s.cut.Load():
			return s.windows.Lose(now)
		case now >= schedule.End():
			return nil
		default:
			// The last window is told of once it is over.
			time.Sleep((schedule.End() - now).Duration())
			return s.windows.Tell(g.now())
		}
	}
}

// Beside runs f, which takes milliseconds, so that a stream under way is not late by it.
func (g *Generator) Beside(f func()) {
	g.beside.RLock()
	defer g.beside.RUnlock()
	if !g.sending {
		f()
		return
	}
	cpu.Aside(f)
}

// Recorded are single requests of the last stream, which is over: the slowest,
// the slowest first, and then the first ones that failed.
func (g *Generator) Recorded() []record.Request {
	return slices.Concat(g.recorded.slowest, g.recorded.failed)
}

// stop ends the load: requests under way have so long to end.
func (s *stream) stop(after time.Duration) {
	s.abortAt.Store(int64(s.now() + record.MicrosOf(after)))
	s.cut.Store(true)
}

const (
	// mostGarbage is at how much memory garbage is collected during a stream, and
	// mostMemory at how much the runtime does that by itself.
	mostGarbage = 512 << 20
	mostMemory  = 1 << 30
)

// uncollected gives the threads that make requests places of their own among those that
// run Go, collects garbage, and collects none until undo is called, unless it comes to
// much: collect is called now and then, and sees to that. At real-time priority a thread
// that collects runs for tens of milliseconds, and the one that sends is late by them.
func (g *Generator) uncollected() (collect, undo func()) {
	var procs, percent int
	var limit int64
	evenly := func(f func()) {
		g.beside.Lock()
		defer g.beside.Unlock()
		cpu.Evenly(f)
	}
	evenly(func() {
		// One more than make requests: they hold theirs all the while.
		procs = runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), max(g.plan.Threads, 1)+1))
		runtime.GC()
		percent, limit = debug.SetGCPercent(-1), debug.SetMemoryLimit(mostMemory)
		g.sending = true
	})
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	collect = func() {
		if metrics.Read(heap); heap[0].Value.Uint64() > mostGarbage {
			evenly(runtime.GC)
		}
	}
	return collect, func() {
		evenly(func() {
			g.sending = false
			runtime.GC() // else it would be done at once, at real-time priority
			debug.SetMemoryLimit(limit)
			debug.SetGCPercent(percent)
			runtime.GOMAXPROCS(procs)
		})
	}
}
