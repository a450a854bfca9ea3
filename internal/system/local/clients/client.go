package clients

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// Role returns the agent's role of a client, which does other work than requests if there is a worker. It listens
// within its pod alone.
func Role(now func() time.Time, worker Worker) agent.Role {
	return agent.Role{Name: "client", Help: "send requests, or do IO, by the orders of a run: client [-address 127.0.0.1:7070]", Run: func(ctx context.Context, args []string, out io.Writer) error {
		address := fmt.Sprintf("127.0.0.1:%d", Port)
		if _, err := agent.Parse(args, 0, func(f *flag.FlagSet) { f.StringVar(&address, "address", address, "where to listen") }); err != nil {
			return err
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "listening on %s\n", listener.Addr())
		err = (&client{clock: record.StartClock(now), worker: worker}).serve(ctx, listener)
		return cmp.Or(err, errStopped)
	}}
}

// errStopped ends a client that is stopped. Its job would count success as complete, and make no other.
var errStopped = errors.New("it was stopped")

// Port is the port of a client's server.
const Port = 7070

// client carries out one order at a time.
type client struct {
	clock  *record.Clock
	worker Worker // nil for requests alone
	busy   sync.Mutex
	work   Work // that is prepared, or nil
	teller *teller
}

func (c *client) now() record.Micros { return c.clock.Now() }

func (c *client) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: c.handler(), ReadHeaderTimeout: 30 * time.Second}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

func (c *client) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(pathClock, func(w http.ResponseWriter, _ *http.Request) { c.tell(w, told{}) })
	mux.HandleFunc(pathAsk, func(w http.ResponseWriter, r *http.Request) {
		var o Order
		if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if o.Work != nil {
			c.prepare(w, r, o)
			return
		}
		err := o.resolve(r.Context())
		if err != nil {
			c.tell(w, told{Failed: err.Error()})
			return
		}
		c.tell(w, told{Failed: load.NewOne(o.Plan, c.now).Ask(o.Schedule.Timeout)})
	})
	mux.HandleFunc(pathLook, func(w http.ResponseWriter, r *http.Request) {
		var o Order
		p, err := new(Path), json.NewDecoder(r.Body).Decode(&o)
		if err == nil {
			*p, err = look(r.Context(), o.Server)
		}
		if err != nil {
			c.tell(w, told{Failed: err.Error()})
			return
		}
		c.tell(w, told{Path: p})
	})
	mux.HandleFunc(pathOrder, c.order)
	return mux
}

func (c *client) tell(w io.Writer, t told) {
	t.Clock = c.now()
	_ = json.NewEncoder(w).Encode(t) // who no longer reads has left
}

// resolve looks up the servers, and makes what an order cannot carry.
func (o *Order) resolve(ctx context.Context) (err error) {
	if o.Plan.TLS, err = o.Trust.config(len(o.Plan.Hosts)); err != nil {
		return err
	}
	if o.Plan.Address, err = lookUp(ctx, o.Server); err != nil {
		return err
	}
	for n := range o.Plan.Hosts {
		if h := &o.Plan.Hosts[n]; h.Address != "" {
			if h.Address, err = lookUp(ctx, h.Address); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookUp returns the address of a server with its port.
func lookUp(ctx context.Context, server string) (string, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return "", err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return "", fmt.Errorf("%s: not a port", server)
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		if dns, is := errors.AsType[*net.DNSError](err); is {
			return "", fmt.Errorf("%s: %s", host, dns.Err)
		}
		return "", err
	}
	return netip.AddrPortFrom(found[0].Unmap(), uint16(number)).String(), nil
}

// look connects to a server, and returns the sizes of packets.
func look(ctx context.Context, server string) (p Path, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", server)
	if err != nil {
		return p, err
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return p, err
	}
	if failed := raw.Control(func(fd uintptr) {
		var info *unix.TCPInfo
		if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			p.Segment = int(info.Snd_mss)
		}
	}); failed != nil || err != nil {
		return p, cmp.Or(failed, err)
	}
	links, err := net.Interfaces()
	for _, l := range links {
		own, _ := l.Addrs() // of one that has gone there are none
		if slices.ContainsFunc(own, func(a net.Addr) bool {
			at, is := a.(*net.IPNet)
			return is && at.IP.Equal(conn.LocalAddr().(*net.TCPAddr).IP)
		}) {
			p.MTU = l.MTU
		}
	}
	return p, err
}

// take begins an order, once one has ended that is about to. The caller unlocks busy.
func (c *client) take(w http.ResponseWriter) bool {
	for range 40 {
		if c.busy.TryLock() {
			return true
		}
		time.Sleep(50 * time.Millisecond)
	}
	http.Error(w, "another order is under way", http.StatusConflict)
	return false
}

// order carries out an order while who gave it listens.
func (c *client) order(w http.ResponseWriter, r *http.Request) {
	if !c.take(w) {
		return
	}
	defer c.busy.Unlock()
	var o Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var mu sync.Mutex // two goroutines write messages
	buffer := bufio.NewWriter(w)
	say := func(t told) {
		mu.Lock()
		defer mu.Unlock()
		c.tell(buffer, t)
		_ = buffer.Flush()
		_ = http.NewResponseController(w).Flush()
	}
	if o.Work != nil {
		c.carryOut(r.Context(), o, say)
		return
	}
	looking := signs(r.Context(), func() { say(told{}) }) // a name server may take seconds
	err := o.resolve(r.Context())
	looking()
	if err != nil {
		say(told{Over: &over{Error: err.Error()}})
		return
	}
	g := load.New(o.Plan, c.now, o.Seed)
	end := signs(r.Context(), func() {
		g.Beside(func() {
			progress := g.Progress()
			say(told{Progress: &progress, Use: use()})
		})
	})
	// A schedule is begun a little early: its first request is due at its begin.
	early := time.Duration(0)
	if o.Schedule.Open {
		early = 20 * time.Millisecond
	}
	c.await(r.Context(), o.Schedule.Begin-record.MicrosOf(early))
	began := c.now()
	say(told{Began: &began, Use: use()})
	err = g.Run(r.Context(), o.Schedule, func(w *record.Window) { say(told{Windows: []*record.Window{w}}) })
	end()
	last := &over{Counts: g.Counts(), Recorded: g.Recorded()}
	if err != nil {
		last.Error = err.Error()
	}
	progress := g.Progress()
	say(told{Progress: &progress, Use: use(), Over: last})
}

// await waits for a moment, or the end of ctx.
func (c *client) await(ctx context.Context, at record.Micros) {
	if wait := (at - c.now()).Duration(); wait > 0 {
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// signs gives a sign of life again and again, until its end is called or ctx ends.
func signs(ctx context.Context, sign func()) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var signing sync.WaitGroup
	signing.Go(func() {
		tick := time.NewTicker(tellInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				sign()
			}
		}
	})
	return func() {
		cancel()
		signing.Wait()
	}
}

// use reads the processor time of this process, and the limit of its control group.
func use() *Use {
	u := &Use{Wanted: proc.Wanted(os.Getpid())}
	const group = "/sys/fs/cgroup/" // a container sees its own group there
	if text, err := os.ReadFile(group + "cpu.stat"); err == nil {
		for line := range strings.Lines(string(text)) {
			if value, is := strings.CutPrefix(line, "throttled_usec "); is {
				n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64) // zero where the kernel says nothing
				u.Throttled = n / 1e6
			}
		}
	}
	if text, err := os.ReadFile(group + "cpu.max"); err == nil {
		if of := strings.Fields(string(text)); len(of) == 2 {
			quota, _ := strconv.ParseFloat(of[0], 64) // "max" is no limit
			period, _ := strconv.ParseFloat(of[1], 64)
			u.Limit = quota / cmp.Or(period, 1)
		}
	}
	return u
}
