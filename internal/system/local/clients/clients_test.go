package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
	"plimsoll.dev/plimsoll/internal/test/ring"
)

// Clients are processes of their own, as in pods: a test runs itself as one, or as many that make up what they report.
const (
	asClient = "PLIMSOLL_TEST_CLIENT"
	asMadeUp = "PLIMSOLL_TEST_MADE_UP"
	skewed   = "PLIMSOLL_TEST_SKEWED" // durations that its clock is off by, before and after a signal SIGUSR1
)

func TestMain(m *testing.M) {
	run := func() error {
		return Role(clock(), nil).Run(context.Background(), []string{"-address", "127.0.0.1:0"}, os.Stdout)
	}
	switch {
	case os.Getenv(asMadeUp) != "":
		run = makeUp
	case os.Getenv(asClient) == "":
		os.Exit(m.Run())
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// clock returns the clock of a client, which may be off from its second reading on.
func clock() func() time.Time {
	first, second, is := strings.Cut(os.Getenv(skewed), " ")
	if !is {
		return time.Now
	}
	by, _ := time.ParseDuration(first)
	then, _ := time.ParseDuration(second)
	moves := make(chan os.Signal, 1)
	signal.Notify(moves, syscall.SIGUSR1)
	var off, read atomic.Int64
	off.Store(int64(by))
	go func() { <-moves; off.Store(int64(then)) }()
	return func() time.Time { return time.Now().Add(time.Duration(min(read.Add(1)-1, 1) * off.Load())) }
}

// startClient starts a client, which ends with the test.
func startClient(t testing.TB, n int, env ...string) (*Client, *os.Process) {
	t.Helper()
	address, process := startSelf(t, asClient, env...)
	client := NewClient(fmt.Sprintf("client %d", n), func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	})
	t.Cleanup(client.Close)
	return client, process
}

// startSelf starts this test's program as something that listens, until the test ends.
func startSelf(t testing.TB, as string, env ...string) (address string, process *os.Process) {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(append(os.Environ(), as+"=1"), env...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	if _, err := fmt.Fscanf(out, "listening on %s\n", &address); err != nil {
		t.Fatal(err)
	}
	return address, c.Process
}

// answering starts a server that counts its requests, and waits before each answer.
func answering(t testing.TB, wait func()) (order Order, answered *atomic.Int64) {
	answered = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answered.Add(1)
		wait()
		_, _ = w.Write([]byte("mark and more"))
	}))
	t.Cleanup(server.Close)
	return Order{
		Server: server.Listener.Addr().String(), Seed: 1,
		Plan: load.Plan{Threads: 1, Hosts: []load.Host{{Name: "example.test", Weight: 1, Requests: []load.Request{{Method: "GET", Path: "/", Weight: 1, Want: []byte("mark")}}}}},
	}, answered
}

func slowly() { time.Sleep(3 * time.Millisecond) }

func newFleet(t testing.TB, n int) (*Fleet, []*os.Process) {
	f := &Fleet{Now: record.StartClock(time.Now).Now, Late: 10 * time.Second}
	var processes []*os.Process
	for i := range n {
		c, p := startClient(t, i)
		f.Clients, processes = append(f.Clients, c), append(processes, p)
	}
	return f, processes
}

// schedule begins so soon that the orders have time to arrive.
func schedule(f *Fleet, open bool, value float64) streams.Schedule {
	return streams.Schedule{
		Open: open, Value: value, Begin: f.Now() + record.MicrosOf(300*time.Millisecond), Warm: 200 * time.Millisecond, Hold: time.Second,
		Window: 100 * time.Millisecond, Timeout: 2 * time.Second, DropAfter: time.Second, MaxInFlight: 100,
	}
}

// stream makes a stream, and returns its windows, which hold the account of a window each.
func stream(t testing.TB, f *Fleet, o Order, meanwhile func()) (windows []*record.Window, lost []string, err error) {
	t.Helper()
	if silent := f.Agree(t.Context()); len(silent) > 0 {
		t.Fatal(silent)
	}
	var mu sync.Mutex
	if meanwhile != nil {
		go meanwhile()
	}
	err = f.Stream(t.Context(), o, func(w *record.Window) { windows = append(windows, w) }, func(client, _ string) {
		mu.Lock()
		defer mu.Unlock()
		lost = append(lost, client)
	})
	for i, w := range windows {
		if w.Intended != w.Sent+w.Dropped || w.Sent != w.Done+w.FailedAll()+w.Lost {
			t.Errorf("window %d does not add up: %+v", i, w)
		}
		if want := o.Schedule.Begin + record.Micros(i)*record.MicrosOf(o.Schedule.Window); w.From != want {
			t.Errorf("window %d begins at %v, want %v", i, w.From, want)
		}
	}
	return windows, lost, err
}

func sumOf(windows []*record.Window) (all record.Window) {
	for _, w := range windows {
		sum(&all, w)
	}
	return all
}

// Four clients make the load of one: the server counts as many requests as the windows, the schedule has as
// many, and each quantile is that of all single requests.
func TestClientsMakeOneLoad(t *testing.T) {
	ring.Long(t, "real loads, whose requests take the time that they take")
	for _, tt := range []struct {
		why     string
		clients int
		open    bool
		value   float64
		random  bool
	}{
		{"one client is the generator itself", 1, true, 400, false},
		{"the parts of a schedule make the whole of it", 4, true, 400, false},
		{"so do the parts of random arrivals", 3, true, 400, true},
		{"a closed loop is shared, the rest among the first", 3, false, 8, false},
	} {
		t.Run(tt.why, func(t *testing.T) {
			f, _ := newFleet(t, tt.clients)
			o, answered := answering(t, slowly)
			o.Plan.Record, o.Plan.Random = 1e6, tt.random
			o.Schedule = schedule(f, tt.open, tt.value)
			windows, lost, err := stream(t, f, o, nil)
			if err != nil || len(lost) > 0 {
				t.Fatal(lost, err)
			}
			all := sumOf(windows)
			if int64(all.Sent) != answered.Load() || all.Done != all.Sent {
				t.Errorf("sent %d, done %d, and the server answered %d", all.Sent, all.Done, answered.Load())
			}
			if want := o.Schedule.Requests(); tt.open && !tt.random && all.Intended != want {
				t.Errorf("%d requests were due, want %d", all.Intended, want)
			}
			if p := f.Progress(); p.Done != all.Done || p.InFlight != 0 {
				t.Errorf("progress %+v, and done were %d", p, all.Done)
			}
			byClient := 0
			for _, n := range all.ByPlace {
				byClient += n
			}
			merged := record.NewCounts()
			for _, w := range windows {
				for _, n := range w.ByPlace {
					byClient += n
				}
				if !w.WarmUp {
					if err := into(merged, w.Histograms[load.Response]); err != nil {
						t.Fatal(err)
					}
				}
			}
			if byClient != all.Done || len(windows[3].ByPlace) != tt.clients {
				t.Errorf("by client %d of %d, by %d clients", byClient, all.Done, len(windows[3].ByPlace))
			}
			var single []float64
			for _, r := range f.Recorded() {
				single = append(single, float64(r.Ended-r.Intended))
			}
			slices.Sort(single)
			if int64(len(single)) != merged.TotalCount() {
				t.Fatalf("%d single requests, %d in the windows", len(single), merged.TotalCount())
			}
			for q := 0.5; q <= 100; q += 0.5 {
				want := single[max(int(q/100*float64(len(single))+0.5)-1, 0)] // the rank that the histogram's quantiles mean
				if got := float64(merged.ValueAtQuantile(q)); math.Abs(got-want) > 1e-3*want+1 {
					t.Errorf("p%g is %g µs, of the single requests %g", q, got, want)
				}
			}
			if uses := f.Uses(); len(uses) != tt.clients || uses["client 0"].Wanted <= 0 {
				t.Errorf("the clients' use is %+v", uses)
			}
		})
	}
}

// What becomes of a client that is killed, or stopped, is unknown: never a smaller load that passes.
func TestALostClientIsUnknown(t *testing.T) {
	ring.Long(t, "real loads, and a client that is silent for seconds")
	t.Parallel()
	for _, tt := range []struct {
		why    string
		signal syscall.Signal
		open   bool
	}{
		{"killed at a rate", syscall.SIGKILL, true},
		{"killed in a closed loop", syscall.SIGKILL, false},
		{"stopped for longer than a client may be silent", syscall.SIGSTOP, true},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			f, processes := newFleet(t, 4)
			o, _ := answering(t, slowly)
			o.Schedule = schedule(f, tt.open, 200)
			if !tt.open {
				o.Schedule.Value = 8
			}
			var once sync.Once
			windows, lost, err := stream(t, f, o, func() {
				for f.Progress().Done < 40 { // the moment: a part of the load was answered
					time.Sleep(time.Millisecond)
				}
				once.Do(func() { _ = processes[2].Signal(tt.signal) })
			})
			if !errors.As(err, new(*streams.UnfinishedError)) || !slices.Equal(lost, []string{"client 2"}) {
				t.Errorf("lost %q: %v", lost, err)
			}
			all := sumOf(windows)
			if all.Lost == 0 || all.Done == 0 || all.FailedAll() != 0 {
				t.Errorf("lost %d, done %d, failed %v", all.Lost, all.Done, all.Failed)
			}
			if want := o.Schedule.Requests(); tt.open && all.Intended != want {
				t.Errorf("%d requests were due, want %d", all.Intended, want)
			}
		})
	}
}

// A load that some clients began late is another load than was asked for.
func TestClientsBeginTogether(t *testing.T) {
	ring.Long(t, "when a client begins is up to the machine")
	f, _ := newFleet(t, 2)
	f.Late = 100 * time.Millisecond
	o, _ := answering(t, func() {})
	o.Schedule = schedule(f, true, 100)
	if silent := f.Agree(t.Context()); len(silent) > 0 {
		t.Fatal(silent)
	}
	f.offsets[1] -= record.MicrosOf(600 * time.Millisecond) // its order is of a moment that is over
	err := f.Stream(t.Context(), o, func(*record.Window) {}, func(string, string) {})
	if void, is := errors.AsType[*streams.VoidError](err); !is || !strings.Contains(void.What, "client 1 by ") || strings.Contains(void.What, "client 0") {
		t.Errorf("%v", err)
	}
}

func TestMistakesOfAnOrder(t *testing.T) {
	f, _ := newFleet(t, 1)
	for _, tt := range []struct {
		why    string
		change func(*Order)
		says   string
	}{
		{"a name that nobody knows", func(o *Order) { o.Server = "no..where:80" }, "no..where: "},
		{"no port", func(o *Order) { o.Server = "127.0.0.1" }, "missing port"},
		{"a host's address that nobody knows", func(o *Order) { o.Plan.Hosts[0].Address = "no..where:80" }, "no..where: "},
		{"no certificates", func(o *Order) { o.Trust = &Trust{Authorities: []byte("no")} }, "no certificate"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			o, answered := answering(t, func() {})
			tt.change(&o)
			o.Schedule = schedule(f, true, 10)
			if _, _, err := stream(t, f, o, nil); err == nil || !strings.Contains(err.Error(), "client 0: ") || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			failed, err := f.Clients[0].Ask(t.Context(), o)
			if err != nil || !strings.Contains(failed, tt.says) || answered.Load() != 0 {
				t.Errorf("%q, %v", failed, err)
			}
		})
	}
	o, _ := answering(t, func() {})
	o.Schedule.Timeout = time.Second
	if failed, err := f.Clients[0].Ask(t.Context(), o); failed != "" || err != nil {
		t.Errorf("%q, %v", failed, err)
	}
	o.Plan.Hosts[0].Requests[0].Want = []byte("other")
	if failed, err := f.Clients[0].Ask(t.Context(), o); failed != load.FailedBody || err != nil {
		t.Errorf("an answer without the mark: %q, %v", failed, err)
	}
}

// A client tells how large its packets to a server are: on this machine's own link as large as the link takes.
func TestSizesOfPackets(t *testing.T) {
	f, _ := newFleet(t, 1)
	o, _ := answering(t, func() {})
	link, err := net.InterfaceByName("lo")
	if err != nil {
		t.Skip(err)
	}
	p, err := f.Clients[0].Path(t.Context(), o.Server)
	if err != nil || p.MTU != link.MTU || p.Segment <= 0 || p.Segment > link.MTU {
		t.Errorf("%+v, want an MTU of %d: %v", p, link.MTU, err)
	}
	if _, err := f.Clients[0].Path(t.Context(), "127.0.0.1:1"); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("nobody listens: %v", err)
	}
}

// A client reaches a server that has an IPv6 address alone, by its address.
func TestIPv6Alone(t *testing.T) {
	listener, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("mark")) }))
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	defer server.Close()
	f, _ := newFleet(t, 1)
	o, _ := answering(t, func() {})
	o.Server = listener.Addr().String()
	o.Schedule.Timeout = time.Second
	if failed, err := f.Clients[0].Ask(t.Context(), o); failed != "" || err != nil {
		t.Errorf("%q, %v", failed, err)
	}
}

// A client that is stopped has failed: else its job counts it as complete, and does not replace it.
func TestAStoppedClientHasFailed(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := Role(time.Now, nil).Run(ctx, []string{"-address", "127.0.0.1:0"}, io.Discard); !errors.Is(err, errStopped) {
		t.Errorf("it ends with %v", err)
	}
}

// Clocks that differ by far are brought together by round trips. One that moves during the load makes it void.
func TestClocksAreBroughtTogether(t *testing.T) {
	ring.Long(t, "real loads, and when a client begins is up to the machine")
	t.Parallel()
	for _, tt := range []struct {
		why      string
		by, then string // before and during the load
		void     string
	}{
		{"ahead", "5s", "5s", ""},
		{"moved ahead during the load", "0s", "5s", "the clocks of clients moved during the load: client 1 by 5"},
		{"moved back during the load", "5s", "4s", "the clocks of clients moved during the load: client 1 by 1"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			f, _ := newFleet(t, 1)
			f.Late = 500 * time.Millisecond
			began := f.Now()
			c, process := startClient(t, 1, skewed+"="+tt.by+" "+tt.then)
			f.Clients = append(f.Clients, c)
			offset, within, err := c.Offset(t.Context(), f.Now)
			by, _ := time.ParseDuration(tt.by)
			// Its clock began between the start of its process and now.
			if most := record.MicrosOf(by) - began; err != nil || offset > most+within || offset < record.MicrosOf(by)-f.Now()-within {
				t.Errorf("%v within %v, want %v at most: %v", offset, within, most, err)
			}
			o, answered := answering(t, slowly)
			o.Plan.Record = 1e6
			o.Schedule = schedule(f, true, 100)
			windows, lost, err := stream(t, f, o, func() {
				for f.Progress().Done < 40 {
					time.Sleep(time.Millisecond)
				}
				_ = process.Signal(syscall.SIGUSR1)
			})
			void, is := errors.AsType[*streams.VoidError](err)
			if is != (tt.void != "") || is && !strings.Contains(void.What, tt.void) || len(lost) > 0 {
				t.Errorf("lost %q: %v", lost, err)
			}
			if all := sumOf(windows); tt.void == "" && (int64(all.Sent) != answered.Load() || all.Done != o.Schedule.Requests()) {
				t.Errorf("sent %d, done %d, and the server answered %d", all.Sent, all.Done, answered.Load())
			}
			for _, r := range f.Recorded() {
				if tt.void == "" && (r.Sent < o.Schedule.Begin || r.Ended > f.Now()) {
					t.Errorf("a request at %v of a load that began at %v", r.Sent, o.Schedule.Begin)
				}
			}
		})
	}
}

// The clients that do not answer are named, each with its reason.
func TestSilentClientsAreNamed(t *testing.T) {
	f := &Fleet{Now: record.StartClock(time.Now).Now}
	well, _ := startClient(t, 0)
	f.Clients = []*Client{well, NewClient("gone", func(context.Context) (net.Conn, error) { return nil, errors.New("no route") })}
	if silent := f.Agree(t.Context()); len(silent) != 1 || silent[f.Clients[1]] == nil || silent[f.Clients[1]].Error() != "gone: no route" {
		t.Errorf("%v", silent)
	}
}

// The windows of the parts add up to one stream. A part that reports fewer windows loses the rest. No window is
// emitted before every part has reported it or is lost.
func TestMergedWindowsAddUp(t *testing.T) {
	s := streams.Schedule{Open: true, Value: 100, Begin: 7e6, Warm: time.Second, Hold: 3 * time.Second, Window: time.Second}
	for _, tt := range []struct {
		why  string
		told []int // number of windows that each part reports before it ends
		lost []int // in each window
	}{
		{"all of them", []int{4, 4, 4}, []int{0, 0, 0, 0}},
		{"one ends in the second window", []int{4, 1, 4}, []int{0, 34, 33, 33}},
		{"one never begins", []int{0, 4, 4}, []int{34, 33, 33, 34}},
		{"nobody does", []int{0, 0, 0}, []int{100, 100, 100, 100}},
	} {
		t.Run(tt.why, func(t *testing.T) {
			var windows []*record.Window
			list := []*Client{{Name: "a"}, {Name: "b"}, {Name: "c"}}
			m := newMerge(Order{Schedule: s}, list, func(w *record.Window) { windows = append(windows, w) })
			for i := range 4 {
				for part, n := range tt.told {
					if i < n {
						due := m.due(part, s.Begin+record.Micros(i)*1e6, s.Begin+record.Micros(i+1)*1e6)
						if err := m.add(part, []*record.Window{{Intended: due, Sent: due, Done: due - 1, Failed: map[string]int{"reset": 1}, InFlight: 2}}); err != nil {
							t.Fatal(err)
						}
					}
				}
				if most := slices.Min(tt.told); len(windows) > most {
					t.Errorf("%d windows were emitted, and a part has reported %d", len(windows), most)
				}
			}
			for part := range tt.told {
				if err := m.end(part, s.End()); err != nil {
					t.Fatal(err)
				}
			}
			var lost []int
			for i, w := range windows {
				lost = append(lost, w.Lost)
				if w.Intended != 100 || w.Sent != w.Done+w.FailedAll()+w.Lost || w.From != s.Begin+record.Micros(i)*1e6 || w.WarmUp != (i == 0) {
					t.Errorf("window %d: %+v", i, w)
				}
			}
			if !slices.Equal(lost, tt.lost) {
				t.Errorf("lost %v, want %v", lost, tt.lost)
			}
			if len(tt.told) == 3 && slices.Min(tt.told) == 4 {
				if err := m.add(0, []*record.Window{{}}); err == nil {
					t.Error("a fifth window of four is taken")
				}
			}
		})
	}
}

// BenchmarkCoordinator makes a load with 100 clients that report made-up windows of 1000 requests/s each, and gives
// the processors and the memory that this takes, with the encoding and the connections.
func BenchmarkCoordinator(b *testing.B) {
	const n, seconds = 100, 20
	address, _ := startSelf(b, asMadeUp)
	f := &Fleet{Now: record.StartClock(time.Now).Now, Late: time.Second}
	for i := range n {
		c := NewClient(fmt.Sprint("client ", i), func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", address) })
		b.Cleanup(c.Close)
		f.Clients = append(f.Clients, c)
	}
	for b.Loop() {
		if silent := f.Agree(b.Context()); len(silent) > 0 {
			b.Fatal(silent)
		}
		o := Order{Schedule: streams.Schedule{Open: true, Value: n * madeUp, Begin: f.Now() + record.MicrosOf(time.Second), Hold: seconds * time.Second, Window: time.Second}}
		before, err := proc.Read(os.Getpid())
		if err != nil {
			b.Fatal(err)
		}
		done := 0
		err = f.Stream(b.Context(), o, func(w *record.Window) { done += w.Done }, func(client, why string) { b.Errorf("%s was lost: %s", client, why) })
		after, readErr := proc.Read(os.Getpid())
		if err := errors.Join(err, readErr); err != nil || done != n*madeUp*seconds {
			b.Fatalf("%d done: %v", done, err)
		}
		b.ReportMetric((after.CPUSeconds-before.CPUSeconds)/seconds, "cores")
		b.ReportMetric(float64(after.PeakBytes)/1e6, "MB")
	}
	b.ReportMetric(0, "ns/op")
}

const madeUp = 1000 // requests a second of a client that makes its windows up

// makeUp serves clients that send nothing, and report windows as if they did.
func makeUp() error {
	c := &client{clock: record.StartClock(time.Now)}
	now := c.now
	h := record.NewCounts()
	for n := range madeUp {
		record.Count(h, record.Micros(1000+n*n%50000))
	}
	text, err := record.HistogramOf(h)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/", c.handler())
	mux.HandleFunc(pathOrder, func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		say := func(t told) {
			c.tell(w, t)
			_ = http.NewResponseController(w).Flush()
		}
		time.Sleep((o.Schedule.Begin - now()).Duration())
		began := now()
		say(told{Began: &began})
		for at := o.Schedule.Begin; at < o.Schedule.End(); at += record.MicrosOf(tellInterval) {
			time.Sleep((at - now()).Duration())
			say(told{Progress: new(streams.Progress), Use: new(Use)})
			if record.Micros(at-o.Schedule.Begin)%record.MicrosOf(o.Schedule.Window) == 0 {
				say(told{Windows: []*record.Window{{Intended: madeUp, Sent: madeUp, Done: madeUp, Histograms: map[string]record.Histogram{load.Connected: text, load.Response: text}, OwnDelay: text}}})
			}
		}
		say(told{Over: new(over)})
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("listening on %s\n", listener.Addr())
	return http.Serve(listener, mux) //nolint:gosec // of a test
}
