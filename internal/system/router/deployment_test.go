package router

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// came holds the outcome of a stream.
type came struct {
	done, lost int
	failed     map[string]int
	load.Counts
}

// loaded loads a system from some clients and calls during in the middle.
func loaded(t *testing.T, s *deployment, clients float64, span time.Duration, during func()) came {
	t.Helper()
	clock := record.StartClock(time.Now)
	g := load.New(s.load(), clock.Now, 1)
	x := came{failed: make(map[string]int)}
	var mu sync.Mutex
	var middle sync.WaitGroup
	if during != nil {
		middle.Go(func() {
			time.Sleep(span / 2)
			during()
		})
	}
	err := g.Run(context.Background(), streams.Schedule{Value: clients, Hold: span, Window: 100 * time.Millisecond, Timeout: 10 * time.Second}, func(w *record.Window) {
		mu.Lock()
		defer mu.Unlock()
		x.done, x.lost = x.done+w.Done, x.lost+w.Lost
		for kind, n := range w.Failed {
			x.failed[kind] += n
		}
	})
	middle.Wait()
	if err != nil {
		t.Fatal(err)
	}
	x.Counts = g.Counts()
	return x
}

// clean says that every request was answered as it should be.
func (x came) clean(t *testing.T, least int) {
	t.Helper()
	if len(x.failed) > 0 || x.lost > 0 || x.done < least {
		t.Errorf("%d done, failed %v, %d lost", x.done, x.failed, x.lost)
	}
}

// short is enough for requests to be answered, also where the generator waits for a processor for a second:
// how many are is not judged.
const short = 2 * time.Second

func TestEveryTermination(t *testing.T) {
	for _, termination := range []string{"none", "edge", "passthrough", "reencrypt"} {
		for _, keep := range []string{"true", "false"} {
			t.Run(termination+", kept "+keep, func(t *testing.T) {
				t.Parallel()
				s := running(t, map[string]string{"termination": termination, "keepAlive": keep, "routes": "20", "pageSize": "3KiB"})
				loaded(t, s, 4, short, nil).clean(t, 20)
			})
		}
	}
}

func TestWhatARouterCanBe(t *testing.T) {
	for _, c := range []struct {
		why    string
		params map[string]string
	}{
		{"routes of several terminations, with certificates of their own and redirects", map[string]string{"termination": "edge+none+passthrough+reencrypt", "certificates": "each", "insecure": "redirect", "routes": "20"}},
		{"certificates of their own by TLS to the servers", map[string]string{"termination": "reencrypt", "certificates": "each", "routes": "10"}},
		{"HTTP/1.1 to servers that are reached by TLS", map[string]string{"termination": "reencrypt", "serverHTTP": "1.1"}},
		{"two services of different weights", map[string]string{"weights": "3+1", "servers": "2"}},
		{"as of OpenShift 4.11", map[string]string{"openshift": "4.11"}},
		{"2000 routes", map[string]string{"routes": "2000"}},
		{"2000 routes by TLS, by their exact names", map[string]string{"routes": "2000", "termination": "edge", "lookup": "exact"}},
		{"exact names that pass through", map[string]string{"termination": "passthrough", "lookup": "exact"}},
		{"several servers, checked, without cookies", map[string]string{"servers": "3", "cookies": "false"}},
		{"HTTP/2 to the servers", map[string]string{"serverHTTP": "2"}},
		{"HTTP/2 to the servers by TLS", map[string]string{"serverHTTP": "2", "termination": "reencrypt"}},
		{"TLS 1.2 without resumption", map[string]string{"tlsVersion": "1.2", "resumption": "false", "termination": "edge"}},
		{"HTTP/2", map[string]string{"http": "2", "termination": "edge"}},
		{"HTTP/2 that passes through", map[string]string{"http": "2", "termination": "passthrough"}},
		{"HTTP/2 with bodies, closing", map[string]string{"http": "2", "termination": "reencrypt", "method": "POST", "bodySize": "20KiB", "keepAlive": "false"}},
		{"bodies", map[string]string{"method": "POST", "bodySize": "50KiB"}},
		{"no bodies", map[string]string{"method": "HEAD"}},
		{"two threads on any processor", map[string]string{"threads": "2", "pinning": "none"}},
		{"pages of an nginx", map[string]string{"backend": "nginx"}},
		{"pages of an nginx by TLS", map[string]string{"backend": "nginx", "termination": "reencrypt", "cookies": "false", "servers": "2"}},
		{"a link by IPv6", map[string]string{"link": "1Gbit", "ip": "6", "keepAlive": "false", "termination": "edge"}},
		{"IPv6", map[string]string{"ip": "6", "keepAlive": "false", "idle": "3"}},
		{"a link", map[string]string{"link": "1Gbit", "keepAlive": "false", "termination": "edge"}},
		{"pages of 1 MiB", map[string]string{"pageSize": "1MiB"}},
		{"a page of a byte", map[string]string{"pageSize": "1B"}},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			if c.params["backend"] == "nginx" {
				_, err := backend.FindNginx(t.Context())
				harness.Able(t, err)
			}
			if os.Getuid() != 0 && c.params["link"] != "" {
				t.Skip("only root makes a link")
			}
			s := running(t, c.params)
			loaded(t, s, 4, short, nil).clean(t, 4)
		})
	}
}

func TestSessionsAreResumed(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"1.2", "1.3"} {
		for _, resumption := range []string{"true", "false"} {
			s := running(t, map[string]string{"termination": "edge", "keepAlive": "false", "resumption": resumption, "routes": "1", "tlsVersion": version})
			x := loaded(t, s, 2, short, nil)
			x.clean(t, 10)
			if resumption == "true" && x.Resumed < x.Opened*9/10-2 || resumption == "false" && x.Resumed > 0 {
				t.Errorf("TLS %s, resumption=%s: %d of %d connections were resumed", version, resumption, x.Resumed, x.Opened)
			}
		}
	}
}

// R11: a header beyond the buffer is refused, of a request with 400 and of an
// answer with 502, and taken with a larger buffer.
func TestOversizedHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		why    string
		params map[string]string
		failed string
	}{
		{"a request's header beyond the buffer", map[string]string{"requestHeader": "30KiB"}, load.FailedStatus + "400"},
		{"the same, with a larger buffer", map[string]string{"requestHeader": "30KiB", "bufsize": "65536"}, ""},
		{"an answer's header beyond the buffer", map[string]string{"answerHeader": "30KiB"}, load.FailedStatus + "502"},
		{"the same, with a larger buffer", map[string]string{"answerHeader": "30KiB", "bufsize": "65536"}, ""},
	} {
		x := loaded(t, running(t, c.params), 2, short, nil)
		switch {
		case c.failed == "":
			x.clean(t, 4)
		case x.done > 0 || x.failed[c.failed] == 0 || len(x.failed) > 1:
			t.Errorf("%s: %d done, failed %v, want only %q", c.why, x.done, x.failed, c.failed)
		}
	}
}

// changing returns the changes of a running system.
func changing(s *deployment) *changes {
	return &changes{deployment: s, now: record.StartClock(time.Now).Now, config: s.router}
}

func TestAReloadLosesNoRequest(t *testing.T) {
	t.Parallel()
	for _, keep := range []string{"true", "false"} {
		s := running(t, map[string]string{"event": "reload", "keepAlive": keep, "retry": "browser"})
		x := loaded(t, s, 4, 2*time.Second, func() {
			if _, err := changing(s).make(context.Background()); err != nil {
				t.Error(err)
			}
		})
		x.clean(t, 100)
		if keep == "true" && x.Opened <= 4 {
			t.Errorf("%d connections were opened by 4 clients: none was moved to the new process", x.Opened)
		}
	}
}

// Failures of a HAProxy that was killed say so.
func TestAKilledRouterIsNamed(t *testing.T) {
	s := running(t, map[string]string{"routes": "1"})
	if how := s.proxy.Died(); how != "" {
		t.Errorf("it serves, and %s", how)
	}
	if err := syscall.Kill(s.proxy.PIDs()[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, "the end of HAProxy", func() bool { return s.proxy.Died() != "" })
	w := &record.Window{Failed: map[string]int{load.FailedRefused: 3, load.FailedReset: 1, load.FailedStatus + "503": 2}}
	blame(w, s.proxy.Died())
	if len(w.Failed) != 2 || w.Failed["HAProxy ended by signal 9"] != 4 || w.Failed[load.FailedStatus+"503"] != 2 {
		t.Errorf("%v", w.Failed)
	}
}

// An event that ends after the hold says so, and is on record.
func TestAnEventThatEndsAfterTheHold(t *testing.T) {
	clock := record.StartClock(time.Now)
	s := running(t, map[string]string{"event": "reload", "routes": "1"})
	var list events
	rec, c := system.Recorder{Sink: &list, Clock: clock, Step: func() int { return 1 }}, changing(s)
	for hold, late := range map[time.Duration]bool{time.Microsecond: true, time.Minute: false} {
		err := local.Midway(t.Context(), rec, streams.Schedule{Begin: clock.Now() - record.MicrosOf(hold/2), Hold: hold}, "reload", sourceChange, func() (map[string]float64, error) { return c.make(t.Context()) })
		if _, is := errors.AsType[*streams.UnfinishedError](err); is != late || !late && err != nil {
			t.Errorf("a hold of %v: %v", hold, err)
		}
	}
	if len(list) != 2 {
		t.Errorf("%d of 2 events are on record", len(list))
	}
}

// events keeps what is put on record.
type events []record.Event

func (e *events) Append(x record.Event) { *e = append(*e, x) }

func TestARouteIsAddedUnderLoad(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"route-reload", "none"}, {"route-runtime", "edge"},
		{"route-reload", "edge"}, {"route-reload", "passthrough"}, {"route-runtime", "none"}, {"route-runtime", "passthrough"},
	}[:suite.Size(2, 6)] {
		s := running(t, map[string]string{"event": c[0], "termination": c[1], "retry": "browser"})
		var values map[string]float64
		x := loaded(t, s, 2, 2*time.Second, func() {
			var err error
			if values, err = changing(s).make(context.Background()); err != nil {
				t.Errorf("%v: %v", c, err)
			}
		})
		x.clean(t, 50)
		if values["seconds"] <= 0 || values["seconds"] > 10 || values["asked"] < 1 {
			t.Errorf("%v: %v", c, values)
		}
	}
}

// Shards share the routes under load, each with a part of the threads, and no other has its routes.
func TestShardsShareTheRoutes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ termination, certificates string }{{"edge+none", "each"}, {"none", "one"}, {"reencrypt", "one"}, {"passthrough", "one"}}[:suite.Size(2, 4)] {
		s := running(t, map[string]string{"shards": "2", "routes": "8", "termination": c.termination, "certificates": c.certificates, "threads": "2", "retry": "browser"})
		clock := record.StartClock(time.Now)
		for n, h := range s.hosts {
			p := s.load()
			p.Hosts = []load.Host{h}
			if failed := load.NewOne(p, clock.Now).Ask(5 * time.Second); failed != "" {
				t.Errorf("%v: %s: %s", c, h.Name, failed)
			}
			p.Hosts = []load.Host{{Name: h.Name, Weight: 1}} // at the first one's address
			if failed := load.NewOne(p, clock.Now).Ask(5 * time.Second); (failed != "") != (n%2 == 1) {
				t.Errorf("%v: %s at the first HAProxy: %q", c, h.Name, failed)
			}
		}
		loaded(t, s, 8, time.Second, func() {}).clean(t, 50)
		for n, p := range s.proxies() {
			info, err := p.Stats().Info()
			if err != nil || info.Values["CumReq"] < 4 || info.Values["Nbthread"] != 1 {
				t.Errorf("%v: HAProxy %d: %v requests by %v threads, %v", c, n, info.Values["CumReq"], info.Values["Nbthread"], err)
			}
		}
		if len(s.proxies()) != 2 {
			t.Errorf("%d HAProxies run", len(s.proxies()))
		}
	}
}

// A route that gets another server costs no request, and the first right answer
// is the new server's: until then the former one's come.
func TestARouteIsChangedUnderLoad(t *testing.T) {
	t.Parallel()
	for _, termination := range []string{"passthrough", "none", "reencrypt"}[:suite.Size(1, 3)] {
		s := running(t, map[string]string{"event": "route-change", "termination": termination, "routes": "1", "retry": "browser"})
		change := func() map[string]float64 {
			values, err := changing(s).make(context.Background())
			if err != nil {
				t.Errorf("%s: %v", termination, err)
			}
			return values
		}
		var values map[string]float64
		x := loaded(t, s, 2, 2*time.Second, func() { values = change() })
		x.clean(t, 50)
		if values["seconds"] <= 0 || values["seconds"] > 10 || values["former"] < 1 || values["former"] != values["wrong"] {
			t.Errorf("%s: %v", termination, values)
		}
	}
}

// Under churn of other routes a route that is added is answered, and so are all
// others; no route of the churn is left but the last one.
func TestRoutesChurn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ event, termination, file, by string }{
		{"route-runtime", "none", "http.map", "runtime"}, {"none", "passthrough", "tcp.map", "runtime"}, {"route-reload", "edge", "secure.map", "runtime"},
		{"route-reload", "none", "http.map", "reload"},
	}[:suite.Size(1, 4)] {
		s := running(t, map[string]string{"event": c.event, "termination": c.termination, "churn": "50", "churnBy": c.by, "retry": "browser"})
		under := changing(s)
		ctx, stop := context.WithCancel(context.Background())
		var churn sync.WaitGroup
		churn.Go(func() { under.churn(ctx) })
		loaded(t, s, 2, 2*time.Second, func() {
			if _, err := under.make(ctx); err != nil {
				t.Errorf("%s, %s: %v", c.event, c.termination, err)
			}
		}).clean(t, 50)
		stop()
		churn.Wait()
		if least := map[string]int64{"runtime": 20, "reload": 5}[c.by]; under.added.Load() < least || under.refused.Load() > under.added.Load()/10 {
			t.Errorf("%s, %s: %d routes added, %d refused", c.event, c.termination, under.added.Load(), under.refused.Load())
		}
		text, err := s.proxy.Stats().Ask("show map " + c.file)
		if n := strings.Count(text, "churn-"); err != nil || n > 1+int(under.refused.Load()) {
			t.Errorf("%s, %s: %d routes of the churn are left, %v", c.event, c.termination, n, err)
		}
	}
}

// With another server for each route, a killed one costs what was under way on it
// and no more: HAProxy asks the other one.
func TestAKilledServer(t *testing.T) {
	t.Parallel()
	s := running(t, map[string]string{"event": "kill-server", "servers": "2", "cookies": "false"})
	x := loaded(t, s, 4, 2*time.Second, func() {
		if _, err := changing(s).make(context.Background()); err != nil {
			t.Error(err)
		}
	})
	failed := 0
	for _, n := range x.failed {
		failed += n
	}
	if x.done < 50 || failed > x.done/10 {
		t.Errorf("%d done, failed %v", x.done, x.failed)
	}
	totals, err := s.proxy.Stats().Totals()
	if err != nil || totals.Retries+totals.Moved == 0 {
		t.Errorf("HAProxy tells of no retry: %+v, %v", totals, err)
	}
}

// What HAProxy tells of itself is what is going on.
func TestWhatHAProxyTells(t *testing.T) {
	t.Parallel()
	s := running(t, map[string]string{"maxconn": "20"})
	loaded(t, s, 10, short, func() {
		info, err := s.proxy.Stats().Info()
		if err != nil || info.Values["CurrConns"] < 10 || info.Values["Maxconn"] != 20 {
			t.Errorf("%v, %v", info.Values, err)
		}
	}).clean(t, 20)
	u, err := s.proxy.Usage()
	if err != nil || u.CPUSeconds <= 0 || u.RSSBytes < 1<<20 {
		t.Errorf("%+v, %v", u, err)
	}
	if threads := proc.Threads(s.proxy.PIDs()[0]); len(threads) != s.router.Threads {
		t.Errorf("%d threads, want %d", len(threads), s.router.Threads)
	}
	r, err := http.Get("http://" + s.router.Plain)
	if err != nil || r.StatusCode != 503 {
		t.Errorf("a host without a route gets %v, %v, want 503", r, err)
	}
	if r != nil {
		r.Body.Close()
	}
}

// What HAProxy does not take is left in its listener's queue.
func TestTheListenersQueue(t *testing.T) {
	t.Parallel()
	for termination, ip := range map[string]string{"none": "6", "edge": "4"} {
		s := running(t, map[string]string{"maxconn": "4", "termination": termination, "ip": ip})
		address := s.router.Plain
		if termination == "edge" {
			address = s.router.Secure
		}
		if waiting, most, err := accepting(address); err != nil || waiting != 0 || most != 4 {
			t.Errorf("%s, without load: %d of %d wait, %v", termination, waiting, most, err)
		}
		for range 7 { // which say nothing
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
		}
		waiting, most, err := 0, 0, error(nil)
		for until := time.Now().Add(3 * time.Second); waiting != 3 && time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			waiting, most, err = accepting(address)
		}
		if err != nil || waiting != 3 || most != 4 {
			t.Errorf("%s: %d of %d wait, %v, want the 3 for which there is no place", termination, waiting, most, err)
		}
	}
	if _, _, err := accepting("127.64.0.1:1"); err == nil {
		t.Error("nobody listens there")
	}
}

// What crosses a link is no more than its rate, and all but that where enough is
// asked for; nothing of the link is left. The link is so slow, and so many pages
// wait for it, that it stays full while others have the processors.
func TestALinkIsFull(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes a link")
	}
	const rate = 10e6
	s := running(t, map[string]string{"link": "10Mbit", "pageSize": "64KiB"})
	before, err := s.link.received()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	loaded(t, s, 16, 2*time.Second, nil).clean(t, 20)
	after, err := s.link.received()
	if bits := 8 * (after - before) / time.Since(began).Seconds(); err != nil || bits > 1.1*rate || bits < 0.7*rate {
		t.Errorf("the link of %g bit/s carried %g, %v", rate, bits, err)
	}
	name := s.link.end.Attrs().Name
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if _, err := net.InterfaceByName(name); err == nil {
		t.Errorf("the link %s is left", name)
	}
	s.link = nil
}

// HAProxy holds a buffer for each half-sent header, none for a connection that
// is idle after a request, and serves others as before.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		termination, after string
		least, most        int64 // bytes of each
	}{
		{"none", "half-header", 16 << 10, 200 << 10}, {"edge", "half-header", 16 << 10, 200 << 10}, {"none", "request", 0, 12 << 10},
	} {
		s := running(t, map[string]string{"idle": "200", "termination": c.termination, "idleAfter": c.after})
		idle := &idlers{deployment: s}
		ctx, stop := context.WithCancel(context.Background())
		before, err := s.proxy.Usage()
		if err != nil {
			t.Fatal(err)
		}
		var held sync.WaitGroup
		held.Go(func() { idle.hold(ctx) })
		for until := time.Now().Add(10 * time.Second); idle.held.Load() < 200 && time.Now().Before(until); {
			time.Sleep(10 * time.Millisecond)
		}
		loaded(t, s, 4, short, nil).clean(t, 20)
		after, err := s.proxy.Usage()
		if each := (after.RSSBytes - before.RSSBytes) / 200; err != nil || idle.held.Load() != 200 || each < c.least || each > c.most {
			t.Errorf("%s, %s: %d connections are held, for %v bytes each, %v", c.termination, c.after, idle.held.Load(), each, err)
		}
		stop()
		held.Wait()
	}
}
