package load_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// each serves connections each by itself. What is served tells by false that the
// connection is at its end.
func each(t *testing.T, serve func(c *net.TCPConn, request int) bool) string {
	return listen(t, func(l net.Listener) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 4096)
				for n := 0; ; n++ {
					if _, err := c.Read(buf); err != nil || !serve(c.(*net.TCPConn), n) {
						return
					}
				}
			}()
		}
	})
}

const answer = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npage"

// short is a plan of requests for answer.
func short(address string) load.Plan {
	p := plan(address)
	p.Size, p.Want = 4, []byte("page")
	return p
}

// An answer may come in pieces cut anywhere.
func TestAnswersInPieces(t *testing.T) {
	suite.Long(t, "its servers pause")
	t.Parallel()
	address := each(t, func(c *net.TCPConn, n int) bool {
		at := n % len(answer)
		_, _ = io.WriteString(c, answer[:at])
		if at > 0 {
			time.Sleep(time.Millisecond)
		}
		_, err := io.WriteString(c, answer[at:])
		return err == nil
	})
	sum, counts := run(t, short(address), streams.Schedule{Value: 1, Hold: 2 * span})
	if sum.Done < 2 || sum.FailedAll()+sum.Lost > 0 || counts.Opened != 1 {
		t.Errorf("%+v, %d connections", sum.Window, counts.Opened)
	}
}

// retries says whether requests are sent again. Some are where the end of a connection
// may be seen before the next request is sent on it.
type retries int

const (
	never retries = iota
	some
	always
)

// What ends a connection, and what is then counted.
func TestEndsOfConnections(t *testing.T) {
	suite.Long(t, "its servers pause")
	t.Parallel()
	reset := func(c *net.TCPConn) bool {
		_ = c.SetLinger(0)
		return false
	}
	for _, x := range []struct {
		why     string
		serve   func(c *net.TCPConn, n int) bool
		failed  string // of all that fail
		retried retries
	}{
		{"closed before the first answer of a new connection", func(*net.TCPConn, int) bool { return false }, load.FailedClosed, never},
		{"closed with the answer: the next one is made anew", func(c *net.TCPConn, n int) bool {
			_, _ = io.WriteString(c, answer)
			return n == 0
		}, "", some},
		{"reset before the first byte, kept: it is made anew", func(c *net.TCPConn, n int) bool {
			if n == 1 {
				return reset(c)
			}
			_, _ = io.WriteString(c, answer)
			return true
		}, "", always},
		{"half closed with the answer", func(c *net.TCPConn, n int) bool {
			_, _ = io.WriteString(c, answer)
			_ = c.CloseWrite()
			return true
		}, "", some},
		{"reset within the answer", func(c *net.TCPConn, n int) bool {
			_, _ = io.WriteString(c, answer[:20])
			time.Sleep(time.Millisecond)
			return reset(c)
		}, load.FailedReset, never},
		{"closed within the answer, kept", func(c *net.TCPConn, n int) bool {
			_, _ = io.WriteString(c, answer[:len(answer)-n])
			return n == 0
		}, load.FailedClosed, never},
		{"more than was asked for", func(c *net.TCPConn, n int) bool {
			_, _ = io.WriteString(c, answer+answer)
			return true
		}, load.FailedAnswer, never},
		{"a body until the end", func(c *net.TCPConn, n int) bool {
			_, _ = io.WriteString(c, "HTTP/1.0 200 OK\r\n\r\npage")
			return false
		}, "", never},
		{"another body", func(c *net.TCPConn, n int) bool {
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npaGe")
			return err == nil
		}, load.FailedBody, never},
	} {
		for _, open := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, open %v", x.why, open), func(t *testing.T) {
				t.Parallel()
				// Long enough for some requests on a busy machine, and few of them.
				s := streams.Schedule{Value: 2, Hold: time.Second}
				if open {
					s = streams.Schedule{Open: true, Value: 50, Hold: time.Second, MaxInFlight: 4}
				}
				p := short(each(t, func(c *net.TCPConn, n int) bool {
					if n == 0 {
						time.Sleep(5 * time.Millisecond)
					}
					return x.serve(c, n)
				}))
				p.Retry = true
				sum, counts := run(t, p, s)
				if sum.FailedAll() != sum.Failed[x.failed] || (x.failed != "") != (sum.FailedAll() > 0) || sum.Lost > 0 || sum.Sent < 2 {
					t.Errorf("%+v, want what fails to be %q", sum.Window, x.failed)
				}
				if x.retried != some && (counts.Retried > 0) != (x.retried == always) && !open {
					t.Errorf("%d were retried", counts.Retried)
				}
			})
		}
	}
}

// Who answers with a byte now and then does not keep a request beyond its time,
// nor does one that does not read it.
func TestTimeouts(t *testing.T) {
	suite.Long(t, "what it counts depends on when answers come")
	t.Parallel()
	for why, serve := range map[string]func(c *net.TCPConn, n int) bool{
		"bytes now and then": func(c *net.TCPConn, _ int) bool {
			for _, b := range []byte(answer) {
				if _, err := c.Write([]byte{b}); err != nil {
					return false
				}
				time.Sleep(20 * time.Millisecond)
			}
			return true
		},
		"a request that is not read": func(c *net.TCPConn, _ int) bool {
			time.Sleep(5 * time.Second)
			return false
		},
	} {
		p := short(each(t, serve))
		p.Body = 16 << 20
		began := time.Now()
		sum, _ := run(t, p, streams.Schedule{Value: 3, Hold: span, Timeout: 150 * time.Millisecond})
		if n := sum.Failed[record.FailedTimeout]; n < 3 || n > 9 || n != sum.Sent {
			t.Errorf("%s: %+v", why, sum.Window)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("%s: it took %v", why, took)
		}
	}
}

// Clients that nobody listens to try again and again, not as fast as they can.
func TestNobodyListens(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	sum, _ := run(t, plan(address), streams.Schedule{Value: 3, Hold: span})
	if n := sum.Failed[load.FailedRefused]; n < 6 || n > 3*82 || n != sum.Sent {
		t.Errorf("%+v", sum.Window)
	}
}

// files returns how many files this process has open.
func files(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// Many connections, from several threads, as the schedule says, and none is left.
func TestManyConnections(t *testing.T) {
	suite.Long(t, "what it counts depends on when answers come")
	address := pages(t, backend.Spec{PageSize: 1024})
	run(t, plan(address), streams.Schedule{Value: 1, Hold: time.Millisecond})
	before := files(t)
	for _, threads := range []int{1, 3} {
		p := plan(address)
		p.Threads = threads
		sum, counts := run(t, p, streams.Schedule{Value: 500, Hold: span})
		if sum.Done < 500 || sum.FailedAll()+sum.Lost > 0 || counts.Opened != 500 {
			t.Errorf("%d threads: %+v, %d connections", threads, sum.Window, counts.Opened)
		}
		sum, counts = run(t, p, streams.Schedule{Open: true, Value: 2000, Hold: span, MaxInFlight: 10})
		if sum.Intended != 800 || sum.Done != 800 || counts.Opened > 10 {
			t.Errorf("%d threads: %+v, %d connections", threads, sum.Window, counts.Opened)
		}
	}
	var left int
	for range 100 { // the server's ends go a little later
		if left = files(t); left <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d files were open before, and %d are", before, left)
}

// Long answers and long requests take turns.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	p := plan(pages(t, backend.Spec{PageSize: size}))
	p.Size, p.Want, p.Method, p.Body = size, backend.Begin(size), "POST", 2<<20
	sum, _ := run(t, p, streams.Schedule{Value: 4, Hold: span})
	if sum.Done < 4 || sum.FailedAll()+sum.Lost > 0 {
		t.Errorf("%+v", sum.Window)
	}
}

// By TLS and by HTTP/2 the same things hold.
func TestSecureConnections(t *testing.T) {
	suite.Long(t, "what it counts depends on when answers come")
	t.Parallel()
	page := strings.Repeat("page", 100_000)
	var stalled atomic.Bool
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		if n != 100_000 || r.Host != "example.com" || len(r.Header.Get("X-Load")) != 20_000 {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		if stalled.Load() {
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, page)
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.CloseClientConnections)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	p := load.Plan{
		Address: server.Listener.Addr().String(), Hosts: []load.Host{{Name: "example.com", Weight: 1}}, Method: "POST", Path: "/",
		Header: 20_000, Body: 100_000, Size: int64(len(page)), Want: []byte(page[:1000]),
	}
	for _, http2 := range []bool{false, true} {
		for _, closing := range []bool{false, true} {
			p.TLS = &tls.Config{RootCAs: roots, ClientSessionCache: tls.NewLRUClientSessionCache(4)}
			p.HTTP2, p.Close = http2, closing
			why := fmt.Sprintf("HTTP/2 %v, closing %v", http2, closing)
			sum, counts := run(t, p, streams.Schedule{Value: 3, Hold: time.Second})
			if sum.Done < 3 || sum.FailedAll()+sum.Lost > 0 || !closing && counts.Opened != 3 || closing && (counts.Opened != int64(sum.Done) || counts.Resumed == 0) {
				t.Errorf("%s: %+v, %+v", why, sum.Window, counts)
			}
			sum, _ = run(t, p, streams.Schedule{Open: true, Value: 50, Hold: span, MaxInFlight: 10})
			if sum.Done != 20 {
				t.Errorf("%s, open: %+v", why, sum.Window)
			}
		}
		stalled.Store(true)
		sum, _ := run(t, p, streams.Schedule{Value: 2, Hold: 100 * time.Millisecond, Timeout: 150 * time.Millisecond})
		if sum.Failed[record.FailedTimeout] != sum.Sent {
			t.Errorf("HTTP/2 %v, no answer in time: %+v", http2, sum.Window)
		}
		stalled.Store(false)
	}
	p.TLS = &tls.Config{}
	sum, _ := run(t, p, streams.Schedule{Open: true, Value: 50, Hold: 100 * time.Millisecond, MaxInFlight: 2})
	if sum.Failed[load.FailedTLS] != 5 {
		t.Errorf("a certificate that nobody trusts: %+v", sum.Window)
	}
}

// The slowest requests and those that failed are reported one by one.
func TestSingleRequests(t *testing.T) {
	suite.Long(t, "its servers pause")
	t.Parallel()
	var asked atomic.Int64
	p := short(each(t, func(c *net.TCPConn, _ int) bool {
		n := asked.Add(1)
		if n == 7 {
			time.Sleep(50 * time.Millisecond)
		}
		if n == 9 {
			_, _ = io.WriteString(c, "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
			return true
		}
		_, _ = io.WriteString(c, answer)
		return n != 11
	}))
	p.Record, p.Retry = 2, true
	clock := record.StartClock(time.Now)
	g := load.New(p, clock.Now, 1)
	if err := g.Run(context.Background(), streams.Schedule{Value: 1, Hold: span, Window: time.Second, Timeout: time.Second}, func(*record.Window) {}); err != nil {
		t.Fatal(err)
	}
	list := g.Recorded()
	if len(list) != 3 || list[0].Ended-list[0].Intended < 50_000 || list[0].Status != 200 || list[0].BytesIn != int64(len(answer)) || list[2].Failed != load.FailedStatus+"503" || list[2].Status != 503 {
		t.Errorf("%+v", list)
	}
	for _, x := range list {
		if x.Sent < x.Intended || x.Ended < x.Sent || x.Place == "" || x.BytesOut == 0 {
			t.Errorf("%+v", x)
		}
	}
}

// Requests of their own are as those of a stream.
func TestOneRequest(t *testing.T) {
	before := files(t)
	ok := load.NewOne(plan(pages(t, backend.Spec{PageSize: 1024})), record.StartClock(time.Now).Now)
	for range 3 {
		if failed := ok.Ask(time.Second); failed != "" {
			t.Errorf("it failed: %s", failed)
		}
	}
	slow := load.NewOne(plan(listen(t, func(net.Listener) {})), record.StartClock(time.Now).Now)
	if failed := slow.Ask(100 * time.Millisecond); failed != record.FailedTimeout {
		t.Errorf("no answer in time: %q", failed)
	}
	if left := files(t); left > before+4 { // two listeners, and what accepts
		t.Errorf("%d files were open before, and %d are", before, left)
	}
}

// A load that is cut while it has more to send than it may, ends.
func TestACutWithABacklog(t *testing.T) {
	suite.Long(t, "what it counts depends on when answers come")
	t.Parallel()
	clock := record.StartClock(time.Now)
	g := load.New(plan(pages(t, backend.Spec{PageSize: 1024, Service: "constant:800ms"})), clock.Now, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	var sum total
	err := g.Run(ctx, streams.Schedule{Open: true, Value: 1000, Hold: time.Minute, Window: time.Second, Timeout: time.Minute, DropAfter: time.Minute, MaxInFlight: 5}, sum.add)
	if err != nil || sum.Done != 5 || sum.FailedAll() > 0 || clock.Now() > record.MicrosOf(10*time.Second) {
		t.Errorf("%v: %+v after %v", err, sum.Window, clock.Now().Duration())
	}
}

// Quick answers leave few connections in use: the hosts get their shares even then,
// though one of TLS serves the host that it was opened for.
func TestHostsGetTheirSharesBySchedule(t *testing.T) {
	suite.Long(t, "what it counts depends on when answers come")
	t.Parallel()
	var few, all atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		all.Add(1)
		if r.Host == "few.example.com" {
			few.Add(1)
		}
	}))
	t.Cleanup(server.CloseClientConnections)
	config := server.Client().Transport.(*http.Transport).TLSClientConfig
	for _, tt := range []struct {
		why    string
		config *tls.Config
	}{
		{"TLS", &tls.Config{RootCAs: config.RootCAs, ServerName: "example.com"}},
		{"plain", nil},
	} {
		address := server.Listener.Addr().String()
		if tt.config == nil {
			plain := httptest.NewServer(server.Config.Handler)
			t.Cleanup(plain.Close)
			address = plain.Listener.Addr().String()
		}
		few.Store(0)
		all.Store(0)
		p := load.Plan{Address: address, TLS: tt.config, Method: "GET", Path: "/", Size: -1, Hosts: []load.Host{{Name: "example.com", Weight: 4}, {Name: "few.example.com", Weight: 1}}}
		sum, _ := run(t, p, streams.Schedule{Open: true, Value: 1000, Hold: span, MaxInFlight: 100})
		if share := float64(few.Load()) / float64(all.Load()); sum.FailedAll() > 0 || share < 0.1 || share > 0.3 {
			t.Errorf("%s: %d of %d requests went to a host of which a fifth should: %+v", tt.why, few.Load(), all.Load(), sum.Window)
		}
	}
}

// Connections for a host of an address of its own go there, in both loops.
func TestHostsHaveTheirAddresses(t *testing.T) {
	suite.Long(t, "real loads")
	t.Parallel()
	var wrong atomic.Int64
	var answered [2]atomic.Int64
	hosts := []load.Host{{Name: "a.example.com", Weight: 1}, {Name: "b.example.com", Weight: 1}}
	for n := range hosts {
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if answered[n].Add(1); r.Host != hosts[n].Name {
				wrong.Add(1)
			}
		}))
		t.Cleanup(server.Close)
		hosts[n].Address = server.Listener.Addr().String()
	}
	for _, open := range []bool{true, false} {
		s := streams.Schedule{Open: open, Value: 400, Hold: span, MaxInFlight: 100}
		if !open {
			s.Value = 8 // each of these draws its host once
		}
		answered[0].Store(0)
		answered[1].Store(0)
		sum, _ := run(t, load.Plan{Method: "GET", Path: "/", Size: -1, Hosts: hosts}, s)
		a, b := float64(answered[0].Load()), float64(answered[1].Load())
		if sum.FailedAll() > 0 || wrong.Load() > 0 || a == 0 || b == 0 || open && (a < b/2 || b < a/2) {
			t.Errorf("open %v: %g and %g requests, %d of them at the wrong address: %v", open, a, b, wrong.Load(), sum.Failed)
		}
	}
}
