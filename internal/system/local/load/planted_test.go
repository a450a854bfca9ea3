package load_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// fault names what a planted server does with a request in place of answering it.
type fault string

const (
	none      fault = ""
	reset     fault = "reset" // once the request was read
	truncated fault = "truncated"
	slow      fault = "slow"
	silent    fault = "silent"
	wrong     fault = "wrong"  // page
	status    fault = "status" // 503
	refuses   fault = "refused stream"
	goesAway  fault = "GOAWAY"
)

// asked is a request in a planted server's log: when it was read, when its answer
// began to be written, and when the next one was read on its connection, 0 for
// never.
type asked struct {
	read, answered, next record.Micros
	fault                fault
}

// planted is a server that serves so many requests at once, each for a constant
// time, and keeps a log.
type planted struct {
	now     func() record.Micros
	service time.Duration
	workers chan struct{}
	fault   func(n int) fault // of the n-th request, from 1

	mu  sync.Mutex
	log []*asked
}

const plantedPage = "page"

// begin logs a request, and the one before on its connection.
func (p *planted) begin(last *asked) *asked {
	x := &asked{read: p.now()}
	p.mu.Lock()
	p.log = append(p.log, x)
	if p.fault != nil {
		x.fault = p.fault(len(p.log))
	}
	if last != nil {
		last.next = x.read
	}
	p.mu.Unlock()
	if x.fault == none {
		p.workers <- struct{}{}
		time.Sleep(p.service)
		<-p.workers
	}
	if x.fault == slow {
		time.Sleep(60 * time.Millisecond)
	}
	if x.fault != silent {
		p.mu.Lock()
		x.answered = p.now()
		p.mu.Unlock()
	}
	return x
}

// serve serves a connection.
func (p *planted) serve(raw net.Conn, config *tls.Config) {
	defer raw.Close()
	conn, second := raw, false
	if config != nil {
		secure := tls.Server(raw, config)
		if secure.Handshake() != nil {
			return
		}
		conn, second = secure, secure.ConnectionState().NegotiatedProtocol == http2.NextProtoTLS
	}
	if second {
		p.serve2(raw, conn)
		return
	}
	r := bufio.NewReader(conn)
	var last *asked
	for {
		request, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, request.Body)
		last = p.begin(last)
		head, page := "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", plantedPage
		switch last.fault {
		case reset:
			_ = raw.(*net.TCPConn).SetLinger(0)
			return
		case truncated:
			_, _ = io.WriteString(conn, head+page[:2])
			return
		case silent:
			_, _ = io.Copy(io.Discard, conn)
			return
		case wrong:
			page = "paGe"
		case status:
			head = "HTTP/1.1 503 No\r\nContent-Length: 4\r\n\r\n"
		}
		if _, err := io.WriteString(conn, head+page); err != nil {
			return
		}
	}
}

// serve2 serves a connection of HTTP/2.
func (p *planted) serve2(raw, conn net.Conn) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	var out, block bytes.Buffer
	f := http2.NewFramer(&out, conn)
	encoder := hpack.NewEncoder(&block)
	_ = f.WriteSettings()
	var last *asked
	for {
		if _, err := conn.Write(out.Bytes()); err != nil {
			return
		}
		out.Reset()
		frame, err := f.ReadFrame()
		if err != nil {
			return
		}
		id := frame.Header().StreamID
		if s, ok := frame.(*http2.SettingsFrame); ok && !s.IsAck() {
			_ = f.WriteSettingsAck()
		}
		if !frame.Header().Flags.Has(http2.FlagDataEndStream) || id == 0 {
			continue // of a stream, the flag is the same of headers and of data
		}
		last = p.begin(last)
		code, page := "200", plantedPage
		switch last.fault {
		case reset:
			_ = raw.(*net.TCPConn).SetLinger(0)
			return
		case truncated:
			page = page[:2]
		case silent:
			continue
		case wrong:
			page = "paGe"
		case status:
			code = "503"
		case refuses:
			_ = f.WriteRSTStream(id, http2.ErrCodeRefusedStream)
			continue
		case goesAway:
			_ = f.WriteGoAway(id-2, http2.ErrCodeNo, nil)
			_, _ = conn.Write(out.Bytes())
			return
		}
		block.Reset()
		_ = encoder.WriteField(hpack.HeaderField{Name: ":status", Value: code})
		_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true})
		_ = f.WriteData(id, last.fault != truncated, []byte(page))
		if last.fault == truncated {
			_, _ = conn.Write(out.Bytes())
			return
		}
	}
}

// protocols returns a plan for each protocol that a planted server speaks.
func protocols(t *testing.T) map[string]func(p *planted) load.Plan {
	t.Helper()
	pair, err := haproxy.MakeCertificate([]string{"www.planted.test"}, rand.Reader, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(pair.PEM, pair.PEM)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]func(p *planted) load.Plan)
	for _, name := range []string{"HTTP/1.1", "TLS", "HTTP/2"} {
		all[name] = func(p *planted) load.Plan {
			var config *tls.Config
			if name != "HTTP/1.1" {
				config = &tls.Config{Certificates: []tls.Certificate{certificate}}
			}
			if name == "HTTP/2" {
				config.NextProtos = []string{http2.NextProtoTLS}
			}
			plan := load.Plan{
				Address: listen(t, func(l net.Listener) {
					for {
						c, err := l.Accept()
						if err != nil {
							return
						}
						go p.serve(c, config)
					}
				}),
				Hosts: []load.Host{{Name: "www.planted.test", Weight: 1}}, Method: "GET", Path: "/", Size: 4, Want: []byte(plantedPage), HTTP2: name == "HTTP/2",
			}
			if config != nil {
				plan.TLS = &tls.Config{RootCAs: haproxy.Roots(pair)}
			}
			return plan
		}
	}
	return all
}

// before counts what happened before a time.
func before(list []record.Micros, t record.Micros) int {
	n, _ := slices.BinarySearch(list, t)
	return n
}

// A server of known capacity is asked for less than it can, and for 1.1, 2 and 10
// times as much. Its own log is the witness. By no clock was more answered to the
// client than the server had begun to answer, and no less than it knows to have been
// taken in: by then the next request came on the same connection. Between these two
// must lie what each window says was answered by its end, and the backlog is what
// was due until then less that. The latencies are those of the log but for as long
// as the machine took to bring an answer and the next request.
func TestAPlantedServersLogIsTheWitness(t *testing.T) {
	suite.Long(t, "loads by a schedule, beside the log of a server")
	t.Parallel()
	const service, workers, connections = 5 * time.Millisecond, 10, 40
	const capacity = float64(workers) / 0.005
	for protocol, planFor := range protocols(t) {
		for _, times := range []float64{0.5, 1.1, 2, 10} {
			t.Run(fmt.Sprintf("%s, %g times", protocol, times), func(t *testing.T) {
				t.Parallel()
				clock := record.StartClock(time.Now)
				p := &planted{now: clock.Now, service: service, workers: make(chan struct{}, workers)}
				g := load.New(planFor(p), clock.Now, 1)
				s := streams.Schedule{
					Open: true, Value: times * capacity, Begin: clock.Now(), Warm: 200 * time.Millisecond, Hold: 400 * time.Millisecond, Window: 100 * time.Millisecond,
					Timeout: time.Minute, DropAfter: time.Minute, MaxInFlight: connections,
				}
				if times > 2 {
					s.DropAfter = 500 * time.Millisecond
				}
				var sum total
				if err := g.Run(t.Context(), s, sum.add); err != nil {
					t.Fatal(err)
				}
				witness(t, p, s, &sum)
			})
		}
	}
}

// witness compares windows with a planted server's log.
func witness(t *testing.T, p *planted, s streams.Schedule, sum *total) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.log) != sum.Sent || sum.Done != sum.Sent || sum.FailedAll()+sum.Lost+sum.Retried != 0 || sum.Intended != s.Requests() {
		t.Fatalf("%+v; %d were due, and the log has %d", sum.Window, s.Requests(), len(p.log))
	}
	if len(sum.windows) != 6 {
		t.Fatalf("%d windows", len(sum.windows))
	}
	var answered, known []record.Micros
	slack := record.Micros(0) // the longest time from an answer to the next request, where one waited
	for _, x := range p.log {
		answered = append(answered, x.answered)
		if x.next > 0 {
			known = append(known, x.next)
			slack = max(slack, x.next-x.answered)
		}
	}
	slices.Sort(answered)
	slices.Sort(known)
	due, done, dropped := 0, 0, 0
	for _, w := range sum.windows {
		due, done, dropped = due+w.Intended, done+w.Answered, dropped+w.Dropped
		if wants := int(math.Ceil(s.Value*(w.To-s.Begin).Seconds() - 1e-6)); due != wants {
			t.Errorf("until %v %d were due, %d by the schedule", w.To, due, wants)
		}
		if most, least := before(answered, w.To), before(known, w.To); done < least || done > most {
			t.Errorf("until %v %d were answered, and %d to %d by the log", w.To, done, least, most)
		}
		if w.Backlog < 0 || dropped == 0 && w.Backlog != due-done || w.InFlight > s.MaxInFlight {
			t.Errorf("until %v %d were due and %d answered: the backlog is %d, with %d under way", w.To, due, done, w.Backlog, w.InFlight)
		}
	}
	if s.Value < 2000 || sum.Dropped > 0 {
		return // connections wait for requests, or which of them were sent is unknown
	}
	// Requests are sent in the order in which they are due.
	slices.SortFunc(p.log, func(a, b *asked) int { return int(a.read - b.read) })
	var latencies []record.Micros
	for i, x := range p.log {
		latencies = append(latencies, x.answered-s.Begin-record.Micros(float64(i)/s.Value*1e6))
	}
	slices.Sort(latencies)
	all := record.NewCounts()
	for _, w := range sum.windows {
		h, err := w.Histograms[load.Response].Counts()
		if err != nil {
			t.Fatal(err)
		}
		all.Merge(h)
	}
	for _, q := range []float64{50, 90, 99, 100} {
		want := latencies[max(int(math.Ceil(q/100*float64(len(latencies))))-1, 0)]
		got := record.Micros(all.ValueAtPercentile(q))
		if tolerance := max(want/100, 1000); got < want-tolerance || got > want+tolerance+slack {
			t.Errorf("p%g is %v, by the log %v; answers took up to %v", q, got.Duration(), want.Duration(), slack.Duration())
		}
	}
}

// A fault in place of an answer has its kind, as often as the server's log says, and
// requests sent again are counted: the log has each request, and each that was sent again.
func TestPlantedFaultsAreCounted(t *testing.T) {
	suite.Long(t, "loads by a schedule, beside the log of a server")
	t.Parallel()
	for protocol, planFor := range protocols(t) {
		for _, c := range []struct {
			why    string
			fault  fault
			failed string // the kind, "" where each one is answered in the end
			method string
			retry  bool
			again  bool // it is sent again
		}{
			{"a reset that a user would see", reset, load.FailedReset, "GET", false, false},
			{"a reset that a browser hides", reset, "", "GET", true, true},
			{"a reset of what may not be done twice", reset, load.FailedReset, "POST", true, false},
			{"the begin of an answer", truncated, load.FailedClosed, "GET", true, false},
			{"a late answer", slow, "", "GET", false, false},
			{"no answer", silent, record.FailedTimeout, "GET", true, false},
			{"another page", wrong, load.FailedBody, "GET", false, false},
			{"another status", status, load.FailedStatus + "503", "GET", false, false},
			{"a stream that is refused, which was not begun", refuses, "", "POST", false, true},
			{"a connection that ends before the request", goesAway, "", "POST", false, true},
		} {
			if second := c.fault == refuses || c.fault == goesAway; second && protocol != "HTTP/2" {
				continue
			}
			t.Run(protocol+", "+c.why, func(t *testing.T) {
				t.Parallel()
				clock := record.StartClock(time.Now)
				p := &planted{now: clock.Now, workers: make(chan struct{}, 4)}
				// Of one client, so that each fault meets a connection that has served;
				// one that waits for an answer would keep the others back.
				clients := 1
				if c.fault == silent {
					clients = 40
				}
				p.fault = func(n int) fault {
					if n%5 == 0 {
						return c.fault
					}
					return none
				}
				plan := planFor(p)
				plan.Method, plan.Retry = c.method, c.retry
				g := load.New(plan, clock.Now, 1)
				var sum total
				err := g.Run(t.Context(), streams.Schedule{
					Open: true, Value: 50, Begin: clock.Now(), Hold: 600 * time.Millisecond, Window: 100 * time.Millisecond,
					Timeout: 2 * time.Second, DropAfter: time.Minute, MaxInFlight: clients,
				}, sum.add)
				if err != nil {
					t.Fatal(err)
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				faults := 0
				for _, x := range p.log {
					if x.fault == c.fault {
						faults++
					}
				}
				failed, again := 0, 0
				if c.failed != "" {
					failed = faults
				}
				if c.again {
					again = faults
				}
				if sum.Intended != 30 || sum.FailedAll() != failed || sum.Failed[c.failed] != failed || sum.Retried != again || sum.Done != 30-failed || len(p.log) != 30+again || faults < 6 {
					t.Errorf("%+v; the log has %d requests and %d faults", sum.Window, len(p.log), faults)
				}
			})
		}
	}
}
