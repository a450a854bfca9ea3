package load

import (
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// loop is a thread that makes its part of a stream's requests. It resumes connections, which are
// coroutines, when they can go on. Only its own thread uses it.
type loop struct {
	*stream
	n int // its index
	// Of all loops of all generators that share the schedule: its index, and their number.
	index, stride int
	epoll         int
	events        []unix.EpollEvent
	buf           []byte // shared by its connections, which use the data at once
	conns         []*conn
	last          record.Micros // last reading of the clock
	nextBound     record.Micros // the earliest time at which a request is given up, or earlier
	early         record.Micros // time before an arrival at which the thread wakes up
	later         []*conn       // to resume after this round of reads
	live          int           // clients of a closed loop that are active
	busy          int           // requests in flight
	recorded      recorded

	// For an open loop: source of hosts, idle clients by host (or in one list), and due requests from first.
	rng     *rand.Rand
	idle    [][]*conn
	resting int // clients in idle
	waiting []record.Micros
	first   int
}

const (
	bufferBytes = 64 << 10 // bounds a read
	batch       = 64       // bounds the connections that are handled, or begin, at a time
	never       = record.Micros(math.MaxInt64)
	// wakeUp bounds the wake-up of an idle processor, wakeUpPart the share of time that the thread may poll.
	wakeUp, wakeUpPart = record.Micros(60), 0.1
)

func newLoop(s *stream, n int) *loop {
	parts := max(s.plan.Parts, 1)
	return &loop{stream: s, n: n, index: n*parts + s.plan.Part, stride: s.loops * parts, epoll: -1, events: make([]unix.EpollEvent, batch), buf: make([]byte, bufferBytes), nextBound: never, recorded: recorded{most: s.plan.Record}}
}

func (l *loop) run() (err error) {
	// The thread ends with the goroutine, which keeps its timer slack from others.
	runtime.LockOSThread()
	if l.plan.Enter != nil {
		if err := l.plan.Enter(); err != nil {
			return err
		}
	}
	// Without slack, but at the others' priority: Go's threads wait for each other by spinning.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("watch connections: %w", err)
	}
	defer unix.Close(l.epoll)
	defer func() {
		for _, c := range l.conns {
			c.stop()
		}
	}()
	clients := 0
	var arrivals *streams.Arrivals
	if l.Open {
		var random *rand.Rand
		if l.plan.Random {
			random = rand.New(rand.NewPCG(l.seed, l.streams))
		}
		arrivals = l.Arrivals(random)
		l.early = min(wakeUp, record.Micros(wakeUpPart*1e6*float64(l.stride)/l.Value))
		l.rng, l.idle = rand.New(rand.NewPCG(l.seed, uint64(l.index))), make([][]*conn, 1)
		if l.apart {
			l.idle = make([][]*conn, len(l.plan.Hosts))
		}
		for range l.index {
			arrivals.Take()
		}
	} else {
		clients = l.part(int(l.Value))
		l.live = clients
	}
	for {
		now := l.tick()
		due := now + record.MicrosOf(tick)
		if arrivals != nil {
			if due = l.arrive(arrivals); due == never && l.busy == 0 && len(l.waiting) == l.first {
				return nil
			}
		} else if l.live == 0 {
			return nil
		}
		l.noted[l.n].Store(int64(now))
		for range min(batch, clients-len(l.conns)) {
			live := (*conn).closedLoop
			if l.plan.Streams > 1 {
				live = (*conn).manyStreams
			}
			l.newConn(live).resume()
		}
		l.expire(l.last)
		if len(l.conns) < clients || len(l.later) > 0 {
			due = 0
		}
		n, err := l.poll(min(due, l.nextBound))
		if err != nil {
			return err
		}
		for i := range l.events[:n] {
			e := &l.events[i]
			c := l.conns[e.Fd]
			if c.opens != e.Pad {
				continue // an event of its former connection
			}
			if c.ready |= e.Events; c.waits&c.ready != 0 {
				c.resume()
			}
			if arrivals != nil {
				l.arrive(arrivals)
			}
		}
		for i := 0; i < len(l.later); i++ { // may grow
			l.tick()
			l.later[i].resume()
		}
		l.later = l.later[:0]
	}
}

// part returns the loop's share of all.
func (l *loop) part(all int) int { return max(all-l.index+l.stride-1, 0) / l.stride }

func (l *loop) tick() record.Micros {
	l.last = l.now()
	return l.last
}

// poll waits for connections that can go on until a time, or a while, and counts them. The thread keeps
// its place among Go's.
func (l *loop) poll(until record.Micros) (int, error) {
	wait := max(min(until-l.last, record.MicrosOf(tick)), 0)
	if l.Open || l.plan.Pace > 0 {
		// An idle processor takes time to wake up: the thread sleeps less, and polls for the rest.
		wait = max(wait-l.early, 0)
	}
	if (l.Open || l.plan.Pace > 0) && wait > 0 {
		// Milliseconds would make requests late.
		ts := unix.NsecToTimespec(int64(wait) * 1000)
		fd := unix.PollFd{Fd: int32(l.epoll), Events: unix.POLLIN}
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fd)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0) // after an early wake-up it waits again
		wait = 0
	}
	n, err := call(unix.SYS_EPOLL_PWAIT, l.epoll, unsafe.Pointer(&l.events[0]), len(l.events), uintptr(wait+999)/1000)
	switch err {
	case 0:
		return n, nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, fmt.Errorf("wait for connections: %w", err)
}

// expire ends requests whose time is over, and all of them some time after the load was cut.
func (l *loop) expire(now record.Micros) {
	at := l.abortAt.Load()
	all := at > 0 && int64(now) >= at
	if now < l.nextBound && !all {
		return
	}
	l.nextBound = never
	for _, c := range l.conns {
		switch {
		case c.bound == 0:
		case all || c.bound <= now:
			c.aborted = true
			c.resume()
		default:
			l.nextBound = min(l.nextBound, c.bound)
		}
	}
}

// newConn makes a client that runs live.
func (l *loop) newConn(live func(*conn)) *conn {
	c := &conn{loop: l, fd: -1, id: int32(len(l.conns)), times: make(map[string]record.Micros, 3)}
	c.rng = rand.New(rand.NewPCG(l.seed^l.streams, uint64(len(l.conns)*l.stride+l.index)))
	l.conns = append(l.conns, c)
	next, stop := iter.Pull(func(yield func(struct{}) bool) {
		c.yield = func() bool { return yield(struct{}{}) }
		live(c)
		c.close()
	})
	c.resume, c.stop = func() { next() }, stop
	return c
}

// closedLoop sends as fast as it gets answers.
func (c *conn) closedLoop() {
	for !c.cut.Load() && c.last < c.End() {
		c.begin(c.last)
		c.sent(c.intended, false, 0)
		if failed := c.end(c.transact()); failed && c.fruitless > 1 {
			// A client that cannot connect pauses before it tries again.
			c.pause(record.MicrosOf(fruitlessPause))
			continue
		}
		if p := c.plan.Pace; p > 0 {
			if left := c.intended + record.Micros(c.Value/p*1e6) - c.last; left > 0 {
				c.pause(left)
				continue
			}
		}
		// Requests go out together, to wake their receiver once.
		c.waits, c.later = 0, append(c.later, c)
		c.yield()
	}
	c.live--
}

// arrive sends the due requests, or queues them without a place, and returns when the next one is due.
func (l *loop) arrive(arrivals *streams.Arrivals) record.Micros {
	for {
		at, ok := arrivals.Next()
		if !ok || l.cut.Load() {
			if l.cut.Load() {
				l.first = len(l.waiting)
			}
			return never
		}
		if at > l.last {
			l.dropOld()
			return at
		}
		for range l.stride {
			arrivals.Take()
		}
		host := l.chooser.draw(l.rng)
		c := l.client(host)
		if c == nil {
			l.waiting = append(l.waiting, at)
			l.windows.Wait(at)
			l.dropOld()
			continue
		}
		if served, all := c.serves(); !all {
			host = served
		}
		c.beginAt(host, at)
		c.sent(at, false, l.tick()-at)
		c.resume()
	}
}

// client returns an open loop's idle client: one connected to the host, else a new one, else another; or nil.
func (l *loop) client(host int) *conn {
	for i := 0; i < len(l.idle) && l.resting > 0; i++ {
		list := &l.idle[(host+i)%len(l.idle)]
		if last := len(*list) - 1; last >= 0 {
			c := (*list)[last]
			*list = (*list)[:last]
			l.resting--
			return c
		}
		if i == 0 && len(l.conns) < l.part(l.MaxInFlight) {
			break
		}
	}
	if len(l.conns) < l.part(l.MaxInFlight) {
		return l.newConn((*conn).openLoop)
	}
	return nil
}

func (c *conn) openLoop() {
	for {
		c.end(c.transact())
		for c.free(); c.bound == 0; {
			if c.fd >= 0 && (c.ready&broken != 0 || c.ready&unix.EPOLLIN != 0 && c.plan.TLS == nil) {
				c.close() // the other side closed it while idle
			}
			c.waits = unix.EPOLLIN | broken
			if !c.yield() {
				return
			}
		}
	}
}

// free takes a queued request, or puts the client into the idle list.
func (c *conn) free() {
	l := c.loop
	l.dropOld()
	if l.first == len(l.waiting) || l.cut.Load() {
		list := &l.idle[c.host%len(l.idle)]
		*list = append(*list, c)
		l.resting++
		return
	}
	intended, since := l.waiting[l.first], l.last
	l.first++
	l.progress.late.Add(1)
	c.begin(intended)
	c.sent(intended, true, l.tick()-since)
}

// dropOld drops requests that have waited for a place for too long.
func (l *loop) dropOld() {
	for l.first < len(l.waiting) && l.waiting[l.first]+record.MicrosOf(l.DropAfter) <= l.last {
		l.windows.Drop(l.waiting[l.first], l.last)
		l.first++
		l.progress.late.Add(1)
		l.progress.dropped.Add(1)
	}
	if l.first > 1024 && 2*l.first > len(l.waiting) {
		l.waiting, l.first = append(l.waiting[:0], l.waiting[l.first:]...), 0
	}
}

// sent notes that a request is sent now.
func (l *loop) sent(intended record.Micros, late bool, own record.Micros) {
	if l.plan.Work > 0 {
		// Work keeps the processor busy.
		for until := l.tick() + record.MicrosOf(l.plan.Work); l.tick() < until; {
		}
	}
	l.busy++
	l.windows.Sent(intended, l.last, late, own)
	l.progress.sent.Add(1)
	l.progress.inFlight.Add(1)
}

// end notes the outcome of the client's request, and reports whether it failed.
func (c *conn) end(x streams.Outcome) (failed bool) {
	if failed = x.Failed != "" || x.Lost; failed {
		c.tick()
	}
	if x.Failed != "" && c.cut.Load() {
		x = streams.Outcome{Lost: true} // we ended it
	}
	x.Retries = c.retries
	c.windows.End(c.intended, c.last, x)
	c.note(x)
	c.busy--
	p := &c.progress
	p.inFlight.Add(-1)
	p.moved.Store(int64(c.last))
	switch {
	case x.Failed != "":
		p.failed.Add(1)
	case !x.Lost:
		p.done.Add(1)
	}
	return failed
}
