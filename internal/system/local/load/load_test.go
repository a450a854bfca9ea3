package load_test

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) {
	runtime.GOMAXPROCS(16) // more than threads that make requests, of all tests at once
	m.Run()
}

// listen serves with what is given and returns the address.
func listen(t *testing.T, serve func(net.Listener)) string {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go serve(l)
	return l.Addr().String()
}

// pages serves pages of a size.
func pages(t *testing.T, spec backend.Spec) string {
	t.Helper()
	s, err := backend.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return listen(t, func(l net.Listener) { _ = s.Serve(l) })
}

// total adds windows up.
type total struct {
	mu      sync.Mutex
	windows []*record.Window
	record.Window
}

func (s *total) add(w *record.Window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.windows = append(s.windows, w)
	s.Intended, s.Sent, s.Done, s.Late, s.Dropped, s.Lost = s.Intended+w.Intended, s.Sent+w.Sent, s.Done+w.Done, s.Late+w.Late, s.Dropped+w.Dropped, s.Lost+w.Lost
	s.Retried += w.Retried
	for kind, n := range w.Failed {
		if s.Failed == nil {
			s.Failed = make(map[string]int)
		}
		s.Failed[kind] += n
	}
}

// run makes a stream and returns what became of it.
func run(t *testing.T, p load.Plan, s streams.Schedule) (*total, load.Counts) {
	t.Helper()
	clock := record.StartClock(time.Now)
	g := load.New(p, clock.Now, 1)
	if s.Timeout == 0 {
		s.Timeout = 5 * time.Second
	}
	s.Begin, s.Window, s.DropAfter = clock.Now(), 100*time.Millisecond, 5*time.Second
	var sum total
	if err := g.Run(context.Background(), s, sum.add); err != nil {
		t.Fatal(err)
	}
	if sum.Intended != sum.Sent+sum.Dropped || sum.Sent != sum.Done+sum.FailedAll()+sum.Lost {
		t.Errorf("the account does not add up: %+v", sum.Window)
	}
	return &sum, g.Counts()
}

func plan(address string) load.Plan {
	return load.Plan{Address: address, Hosts: []load.Host{{Name: "a.test", Weight: 1}, {Name: "b.test", Weight: 2}}, Method: "GET", Path: "/", Size: 1024, Want: backend.Begin(1024)}
}

const span = 400 * time.Millisecond

func TestClosedLoop(t *testing.T) {
	address := pages(t, backend.Spec{PageSize: 1024})
	sum, counts := run(t, plan(address), streams.Schedule{Value: 4, Hold: span})
	if sum.Done < 100 || sum.FailedAll()+sum.Lost > 0 {
		t.Errorf("%+v", sum.Window)
	}
	if counts.Opened != 4 {
		t.Errorf("4 clients that keep their connections have opened %d", counts.Opened)
	}
	p := plan(address)
	p.Close, p.Sources = true, []net.IP{net.IPv4(127, 0, 0, 2), net.IPv4(127, 0, 0, 3)}
	sum, counts = run(t, p, streams.Schedule{Value: 4, Hold: span})
	if sum.Done < 50 || sum.FailedAll()+sum.Lost > 0 || counts.Opened != int64(sum.Done) {
		t.Errorf("closing: %+v, %d connections", sum.Window, counts.Opened)
	}
}

func TestBodiesAreSent(t *testing.T) {
	p := plan(pages(t, backend.Spec{PageSize: 1024, Header: 5000}))
	p.Method, p.Body, p.Header = "POST", 40_000, 9000
	sum, _ := run(t, p, streams.Schedule{Value: 2, Hold: span})
	if sum.Done < 20 || sum.FailedAll() > 0 {
		t.Errorf("%+v", sum.Window)
	}
}

func TestOpenLoop(t *testing.T) {
	address := pages(t, backend.Spec{PageSize: 1024})
	for _, closing := range []bool{false, true} {
		p := plan(address)
		p.Close = closing
		sum, _ := run(t, p, streams.Schedule{Open: true, Value: 500, Hold: span, MaxInFlight: 50})
		if sum.Intended != 200 || sum.Done != 200 {
			t.Errorf("closing %v: %+v", closing, sum.Window)
		}
	}
}

// A server that answers one request after the other, 100 a second, is asked for
// 400 a second: latencies count from when requests were due.
func TestOpenLoopDoesNotWaitForAnswers(t *testing.T) {
	suite.Long(t, "what it counts depends on when answers come")
	p := plan(pages(t, backend.Spec{PageSize: 1024, Service: "constant:10ms", Workers: 1}))
	sum, _ := run(t, p, streams.Schedule{Open: true, Value: 400, Hold: span, MaxInFlight: 8})
	if sum.Intended != 160 || sum.Done != 160 {
		t.Fatalf("%+v", sum.Window)
	}
	if sum.Late < 100 {
		t.Errorf("%d of 160 found no place among 8", sum.Late)
	}
	last := sum.windows[len(sum.windows)-1]
	h, err := last.Histograms[load.Response].Counts()
	if err != nil {
		t.Fatal(err)
	}
	// Some 160 x 10 ms, less when they were due.
	if p50 := time.Duration(h.ValueAtPercentile(50)) * time.Microsecond; p50 < 800*time.Millisecond {
		t.Errorf("those due last waited %v", p50)
	}
}

// A failure has its kind.
func TestKindsOfFailure(t *testing.T) {
	answer := func(text string) func(net.Listener) {
		return func(l net.Listener) {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					defer c.Close()
					buf := make([]byte, 4096)
					if _, err := c.Read(buf); err != nil {
						return
					}
					_, _ = io.WriteString(c, text)
				}()
			}
		}
	}
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refused := gone.Addr().String()
	gone.Close() // before anything is sent
	for _, c := range []struct{ why, address, kind string }{
		{"nobody listens", refused, load.FailedRefused},
		{"another status", listen(t, answer("HTTP/1.1 503 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")), load.FailedStatus + "503"},
		{"a page of another size", pages(t, backend.Spec{PageSize: 1000}), load.FailedBody},
		{"cut within the body", listen(t, answer("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\npl")), load.FailedClosed},
		{"no HTTP", listen(t, answer("SSH-2.0-x\r\n")), load.FailedAnswer},
		{"no answer in time", listen(t, func(net.Listener) {}), record.FailedTimeout},
	} {
		p := plan(c.address)
		sum, _ := run(t, p, streams.Schedule{Open: true, Value: 50, Hold: 100 * time.Millisecond, MaxInFlight: 10, Timeout: 300 * time.Millisecond})
		if sum.Failed[c.kind] != 5 {
			t.Errorf("%s: %+v, want 5 of %s", c.why, sum.Window, c.kind)
		}
	}
}

// A kept connection that is closed just as a request comes is no failure to who
// sends it again.
func TestKeptConnectionsThatAreClosedAreRetried(t *testing.T) {
	page := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"
	var served atomic.Int64
	address := listen(t, func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				for range 3 { // three answers, and the fourth request finds it closed
					if _, err := c.Read(buf); err != nil {
						return
					}
					served.Add(1)
					_, _ = io.WriteString(c, page)
				}
				_, _ = c.Read(buf)
			}()
		}
	})
	p := plan(address)
	p.Size, p.Want, p.Retry = 4, []byte("page"), true
	sum, counts := run(t, p, streams.Schedule{Value: 2, Hold: span})
	if sum.FailedAll() > 0 || counts.Retried < 5 || sum.Retried != int(counts.Retried) {
		t.Errorf("%+v, %d were retried", sum.Window, counts.Retried)
	}
	if int64(sum.Done) != served.Load() {
		t.Errorf("%d done, the server has answered %d", sum.Done, served.Load())
	}
}

// The end of the load's context ends it within a bound, and what was under way
// is lost, not failed.
func TestALoadThatIsCut(t *testing.T) {
	suite.Long(t, "what it counts depends on when answers come")
	for _, open := range []bool{false, true} {
		clock := record.StartClock(time.Now)
		g := load.New(plan(pages(t, backend.Spec{PageSize: 1024, Service: "constant:1m"})), clock.Now, 1)
		ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		defer cancel()
		var sum total
		err := g.Run(ctx, streams.Schedule{Open: open, Value: 20, Hold: time.Minute, Window: time.Second, Timeout: time.Minute, DropAfter: time.Second, MaxInFlight: 100}, sum.add)
		if err != nil || sum.FailedAll() > 0 || sum.Lost == 0 || sum.Lost != sum.Sent {
			t.Errorf("open %v: %v, %+v", open, err, sum.Window)
		}
		if clock.Now() > record.MicrosOf(10*time.Second) {
			t.Errorf("open %v: it took %v", open, clock.Now().Duration())
		}
	}
}
