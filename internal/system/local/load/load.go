// Package load sends streams of HTTP requests and records the outcome of each: at a rate by a schedule, or
// from a number of clients as fast as they are answered. It uses little CPU, which the target would lack.
//
// It is an event loop of coroutines. One thread for each of its processors waits for all its connections
// (epoll) and resumes the coroutine (iter.Pull) of one that can go on. With a goroutine for each connection,
// Go's poller, scheduler and monitor thread cost more than the requests. crypto/tls and the frames of HTTP/2
// run in the coroutines, on a connection whose reads yield.
//
// Whatever else runs on its processor makes a request late. At a rate the program's threads are real-time
// ones: other work, such as encoding windows and reading the kernel's figures ([Generator.Beside]), is done
// on other threads, and garbage is collected before and after a stream. To prefer only the loop's thread does
// not help: every 10 ms Go takes the processor from its goroutine and gives it back by another thread.
package load

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
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

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// Milestones of a request.
const (
	Connected = "Connected" // only if it opened a connection
	Secured   = "Secured"   // likewise: end of the TLS handshake
	Response  = "Response"  // the whole answer was read
)

// Kinds of failure, besides record.FailedTimeout.
const (
	FailedRefused = "refused"   // the connection
	FailedReset   = "reset"     // the connection, before or during the answer
	FailedClosed  = "closed"    // the connection ended before the answer
	FailedTLS     = "handshake" // of TLS
	FailedBody    = "body"      // not as requested
	FailedAnswer  = "answer"    // not HTTP
	FailedStream  = "refused stream"
	FailedStatus  = "status " // begins the kind of an answer with another status
)

// Plan describes the requests. It must not change while in use.
type Plan struct {
	Address string      // IP address and port that connections go to
	TLS     *tls.Config `json:"-"` // nil for plain text. The server's name is the request's host
	HTTP2   bool        // sends by HTTP/2 with TLS: one request at a time, or Streams in a closed loop.
	Streams int
	Hosts   []Host
	Method  string
	Path    string
	Header  int // bytes of a further header field
	Body    int // bytes of the request's body
	// Size counts an answer body's bytes, Want begins it; Method to Want are for hosts without requests.
	Size  int64
	Want  []byte
	Close bool // uses a new connection for each request
	// Retry retries a request once, if its method allows it and its kept connection ended before an
	// answer, as browsers do. Those that were certainly not taken in are always retried.
	Retry   bool
	Sources []net.IP      // addresses of connections, in turn: each port is used once for a destination
	Pace    float64       // bounds the requests per second of a closed loop, 0 for no bound
	Random  bool          // draws the arrivals of an open loop, as from many independent users
	Threads int           // that make requests, one for each processor at most: they never sleep
	Enter   func() error  `json:"-"` // moves the calling thread to where connections come from, for good; nil leaves it
	Record  int           // bounds the slowest requests of a hold, and the failed ones, that Recorded returns
	Work    time.Duration // keeps the generator busy for so long per request, to test a slow one
	// Part and Parts let several generators share a schedule: each makes every Parts-th request from the
	// Part-th on, and a share of the clients of a closed loop. Parts of 0 is the whole.
	Part, Parts int
}

// Counts holds the numbers of connections since New.
type Counts struct {
	Opened   int64 // connections
	Resumed  int64 // resumed TLS sessions among them
	Retried  int64 // retries of requests
	NoPort   int64 // connections that lacked a free port of this machine
	Received int64 // number of bytes received, with heads of answers and TLS
}

// Values returns the counts of connections as values of a reading.
func (c Counts) Values() map[string]float64 {
	return map[string]float64{"opened": float64(c.Opened), "resumed": float64(c.Resumed), "retried": float64(c.Retried), "noPort": float64(c.NoPort)}
}

// Generator makes streams of requests.
type Generator struct {
	plan     Plan
	requests [][]request   // by host
	choosers []chooser     // of each host's requests
	configs  []*tls.Config // by host, none for plain text
	chooser  chooser
	peers    []netip.AddrPort // by host
	apart    bool             // a connection is for one host
	wrong    error            // error of an address
	now      func() record.Micros
	seed     uint64
	streams  uint64

	opened, resumed, retried, noPort, received atomic.Int64
	source                                     atomic.Uint32

	beside   sync.RWMutex // read-locked by work beside a stream, locked to collect garbage
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
	g.apart = p.TLS != nil
	for _, h := range p.Hosts {
		address := cmp.Or(h.Address, p.Address)
		peer, err := netip.ParseAddrPort(address)
		if err != nil {
			g.wrong = fmt.Errorf("connect to %s: not an address and a port", address)
		}
		g.peers, g.apart = append(g.peers, peer), g.apart || h.Address != ""
		var list []request
		for _, r := range h.Requests {
			list = append(list, requestOf(p, h.Name, r, -1, r.Want))
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

// own returns the request of hosts without their own ones.
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

// request is a request as sent, with the demands on its answer.
type request struct {
	Request
	text []byte // in HTTP/1.1
	size int64  // of the answer's body, -1 for any
	want []byte // its beginning
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

// Counts returns the counts of connections so far.
func (g *Generator) Counts() Counts {
	return Counts{g.opened.Load(), g.resumed.Load(), g.retried.Load(), g.noPort.Load(), g.received.Load()}
}

// Progress sums up the present or last stream.
func (g *Generator) Progress() streams.Progress {
	p := &g.progress
	return streams.Progress{
		Done: int(p.done.Load()), Failed: int(p.failed.Load()), Sent: int(p.sent.Load()), InFlight: int(p.inFlight.Load()),
		Late: int(p.late.Load()), Dropped: int(p.dropped.Load()), Moved: record.Micros(p.moved.Load()),
	}
}

type stream struct {
	*Generator
	streams.Schedule
	windows *streams.Windows
	loops   int
	noted   []atomic.Int64 // by loop, the time until which everything is noted
	// cut says that no more requests are sent, and abortAt when the ones in flight end, 0 for never.
	cut     atomic.Bool
	abortAt atomic.Int64
}

const (
	tick      = 20 * time.Millisecond // interval of reports
	lastWords = time.Second           // bounds the requests in flight when the load is cut
)

// Run makes a stream and returns when all outcomes are known, or after the last words when ctx ends.
func (g *Generator) Run(ctx context.Context, schedule streams.Schedule, emit func(*record.Window)) error {
	g.held = held{Schedule: schedule}
	collect, undo := g.uncollected()
	defer undo()
	p := &g.progress
	for _, n := range []*atomic.Int64{&p.sent, &p.done, &p.failed, &p.late, &p.dropped, &p.moved, &p.inFlight} {
		n.Store(0)
	}
	g.streams++
	s := &stream{Generator: g, Schedule: schedule, windows: streams.NewWindows(schedule, "", func(w *record.Window) {
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
			// The last window is reported when it is over.
			time.Sleep((schedule.End() - now).Duration())
			return s.windows.Tell(g.now())
		}
	}
}

// Beside runs f, which takes milliseconds, without delaying a stream.
func (g *Generator) Beside(f func()) {
	g.beside.RLock()
	defer g.beside.RUnlock()
	if !g.sending {
		f()
		return
	}
	cpu.Aside(f)
}

// Recorded returns single requests of the last stream: the slowest in order, and the first failed ones.
func (g *Generator) Recorded() []record.Request {
	return slices.Concat(g.recorded.slowest, g.recorded.failed)
}

// stop ends the load; requests in flight may take so long.
func (s *stream) stop(after time.Duration) {
	s.abortAt.Store(int64(s.now() + record.MicrosOf(after)))
	s.cut.Store(true)
}

const (
	// mostGarbage is the memory at which garbage is collected, mostMemory that at which the runtime does so.
	mostGarbage = 512 << 20
	mostMemory  = 1 << 30
)

// uncollected gives the threads that make requests their own places among Go's, and collects garbage now
// and at undo; in between only the frequent collect does, if there is much: it delays the sender by tens
// of milliseconds.
func (g *Generator) uncollected() (collect, undo func()) {
	var procs, percent int
	var limit int64
	evenly := func(f func()) {
		g.beside.Lock()
		defer g.beside.Unlock()
		cpu.Evenly(f)
	}
	evenly(func() {
		// One more than the request threads, which hold theirs all the time.
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
			runtime.GC() // otherwise it would run soon at real-time priority
			debug.SetMemoryLimit(limit)
			debug.SetGCPercent(percent)
			runtime.GOMAXPROCS(procs)
		})
	}
}

// One makes single requests outside of a stream, each on a new connection.
type One struct{ conn *conn }

// NewOne makes a One for a plan's requests.
func NewOne(p Plan, now func() record.Micros) *One {
	l := newLoop(&stream{Generator: New(p, now, 0)}, 0)
	return &One{&conn{loop: l, fd: -1, rng: rand.New(rand.NewPCG(0, 0)), times: make(map[string]record.Micros, 3)}}
}

// Ask makes a request and returns the kind of its failure, "" for none. To exceed the bound is a failure.
func (o *One) Ask(bound time.Duration) (failed string) {
	o.conn.Schedule = streams.Schedule{Timeout: bound}
	o.conn.begin(o.conn.now())
	defer o.conn.close()
	x := o.conn.transact()
	if x.Lost {
		return "lost"
	}
	return x.Failed
}

// Host is the name of a server, and its share of the requests.
type Host struct {
	Name     string
	Address  string    // that connections for it go to, "" for the plan's
	Weight   float64   // above 0
	Requests []Request // made to it; without any, the plan's
}

// Request describes a request to a host, and its share of the host's requests.
type Request struct {
	Method, Path string
	Fields       [][2]string // names and values of further header fields
	Body         []byte
	Weight       float64 // above 0
	Status       int     // of the answer, 0 for 200
	Want         []byte  // begins the answer's body; nothing takes any
}

func weightsOf[T any](list []T, weight func(T) float64) []float64 {
	weights := make([]float64, len(list))
	for i, x := range list {
		weights[i] = weight(x)
	}
	return weights
}

// chooser draws an index by weight in constant time: an alias table (Walker 1977, in Vose's form).
type chooser struct {
	keep  []float64 // probability of the column's own index, else its alias
	alias []int32
}

func newChooser(weights []float64) chooser {
	n := len(weights)
	c := chooser{make([]float64, n), make([]int32, n)}
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	var small, large []int32
	for i, w := range weights {
		c.keep[i] = w * float64(n) / sum
		if c.keep[i] < 1 {
			small = append(small, int32(i))
		} else {
			large = append(large, int32(i))
		}
	}
	for len(small) > 0 && len(large) > 0 {
		s, l := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		c.alias[s] = l
		if c.keep[l] -= 1 - c.keep[s]; c.keep[l] < 1 {
			large = large[:len(large)-1]
			small = append(small, l)
		}
	}
	for _, i := range append(small, large...) {
		c.keep[i], c.alias[i] = 1, i
	}
	return c
}

func (c *chooser) draw(rng *rand.Rand) int {
	if len(c.keep) <= 1 {
		return 0
	}
	x := rng.Float64() * float64(len(c.keep))
	i := int(x)
	if x-float64(i) < c.keep[i] {
		return i
	}
	return int(c.alias[i])
}

// recorded keeps a stream's requests for the record: the slowest, and the first that failed.
type recorded struct {
	most            int
	slowest, failed []record.Request
}

func (r *recorded) add(x record.Request) {
	if x.Failed != "" {
		if len(r.failed) < r.most {
			r.failed = append(r.failed, x)
		}
		return
	}
	n := len(r.slowest)
	if n == r.most && !slower(x, r.slowest[n-1]) {
		return
	}
	at, _ := slices.BinarySearchFunc(r.slowest, x, func(a, b record.Request) int {
		if slower(b, a) {
			return 1
		}
		return -1
	})
	r.slowest = slices.Insert(r.slowest, at, x)[:min(n+1, r.most)]
}

func slower(a, b record.Request) bool { return a.Ended-a.Intended > b.Ended-b.Intended }

// merge adds the requests of another part of the stream.
func (r *recorded) merge(other recorded) {
	for _, x := range other.slowest {
		r.add(x)
	}
	r.failed = append(r.failed, other.failed...)
	slices.SortStableFunc(r.failed, func(a, b record.Request) int { return cmp.Compare(a.Ended, b.Ended) })
	r.failed = r.failed[:min(len(r.failed), r.most)]
}

// note keeps the ended request, if it belongs to the hold.
func (c *conn) note(x streams.Outcome) {
	if c.plan.Record == 0 || x.Lost || c.intended < c.Begin+record.MicrosOf(c.Warm) {
		return
	}
	c.recorded.add(record.Request{
		Place: c.plan.Hosts[c.host].Name, Intended: c.intended, Sent: c.began, Ended: c.last, Status: c.answer.Status,
		Failed: x.Failed, Retried: c.retries > 0, BytesIn: x.BytesIn, BytesOut: x.BytesOut,
	})
}
