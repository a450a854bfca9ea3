package router

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
)

// event is a change that is made in the middle of each hold.
type event string

// The events.
const (
	noEvent    event = "none"
	evReload   event = "reload"        // HAProxy is started again and takes the listeners over
	evKill     event = "kill-server"   // a server is killed, for good
	evRoute    event = "route-reload"  // a route is added, by a reload
	evRouteAPI event = "route-runtime" // likewise, by the runtime API
	evChange   event = "route-change"  // a route gets another server, by a reload
)

// changes makes the changes of a router that runs.
type changes struct {
	*deployment
	now func() record.Micros

	reloading sync.Mutex
	config    haproxy.Config // that HAProxy runs with, and reloading guards

	added, refused atomic.Int64 // routes, by churn
	took           atomic.Int64 // microseconds of the event, until a window tells of it
}

// tell has a window tell of the event, once it has ended.
func (c *changes) tell(w *record.Window) error {
	took := c.took.Swap(0)
	if took == 0 {
		return nil
	}
	counts := record.NewCounts()
	record.Count(counts, record.Micros(took))
	h, err := record.HistogramOf(counts)
	w.Histograms[changed] = h
	return err
}

// make makes the event, and returns what it took.
func (c *changes) make(ctx context.Context) (values map[string]float64, err error) {
	defer func() {
		if err == nil {
			c.took.Store(int64(values["seconds"] * 1e6))
		}
	}()
	began := c.now()
	switch c.event {
	case evReload:
		err = c.reload(ctx, func(*haproxy.Config) {})
	case evKill:
		c.servers[0].meant.Store(true)
		err = c.servers[0].process.Stop()
	case evRoute, evRouteAPI, evChange:
		return c.reroute(ctx)
	}
	return map[string]float64{"seconds": (c.now() - began).Seconds(), "asked": 0, "wrong": 0}, err
}

// reroute adds or changes a route, and asks for it all the while, until it is answered as it should be.
func (c *changes) reroute(ctx context.Context) (map[string]float64, error) {
	added := c.newHost("added-under-load")
	asked, begin := added, backend.Begin(c.pageSize)
	change := func(to *haproxy.Config) {
		to.Routes, to.Spares = append(slices.Clone(to.Routes), c.route(added)), to.Spares-1
	}
	if c.event == evChange {
		change = func(to *haproxy.Config) { to.Moved = 1 }
		asked, begin = c.hosts[0].Name, []byte(backend.OtherMark[:min(len(backend.OtherMark), c.pageSize)])
	}
	probe := make(chan answered, 1)
	go func() { probe <- c.awaitRoute(ctx, asked, begin) }()
	began := c.now()
	var err error
	if c.event == evRouteAPI {
		err = c.runtime(c.router.Adding(added, 0))
	} else {
		err = c.reload(ctx, change)
	}
	if err != nil {
		return nil, err
	}
	first := <-probe
	return map[string]float64{"seconds": (first.at - began).Seconds(), "asked": float64(first.asked), "wrong": float64(first.wrong), "former": float64(first.former)}, first.err
}

// reload has HAProxy go on with a changed configuration. Reloads wait for each other.
func (c *changes) reload(ctx context.Context, change func(*haproxy.Config)) error {
	c.reloading.Lock()
	defer c.reloading.Unlock()
	next := c.config
	change(&next)
	err := c.proxy.Reload(ctx, next)
	if err == nil {
		c.config = next
	}
	return err
}

// runtime gives HAProxy commands that answer nothing where they succeed.
func (c *changes) runtime(commands []string) error {
	all := strings.Join(commands, "; ")
	text, err := c.proxy.Stats().Ask(all)
	if text = strings.TrimSpace(text); err == nil && text != "" {
		err = fmt.Errorf("HAProxy answers %q to %q", text, all)
	}
	return err
}

// churn adds and removes routes, at most so many each second, until ctx ends. It counts refused ones:
// while HAProxy reloads, the process that is asked may not know them.
func (c *changes) churn(ctx context.Context) {
	if c.churned == 0 {
		return
	}
	spare := c.router.Spares - 1
	tick := time.NewTicker(time.Second / time.Duration(c.churned))
	defer tick.Stop()
	for n, last := 0, ""; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		next := c.newHost("churn-" + strconv.Itoa(n))
		var err error
		if c.reloads {
			err = c.reload(ctx, func(to *haproxy.Config) {
				to.Routes = append(slices.DeleteFunc(slices.Clone(to.Routes), func(r haproxy.Route) bool { return r.Host == last }), c.route(next))
			})
		} else {
			var commands []string
			if last != "" {
				commands = c.router.Removing(last, spare)
			}
			err = c.runtime(append(commands, c.router.Adding(next, spare)...))
		}
		last = next
		switch {
		case err == nil:
			c.added.Add(1)
		case ctx.Err() == nil:
			c.refused.Add(1)
		}
	}
}

// newHost names a host that has no route yet, in the domain of the others.
func (c *changes) newHost(name string) string {
	_, rest, _ := strings.Cut(c.hosts[0].Name, ".")
	return name + "." + rest
}

// route leads to a host as those do that are under load.
func (c *changes) route(host string) haproxy.Route {
	return haproxy.Route{Host: host, Termination: c.router.Termination}
}

// answered tells when a route was first answered rightly, after how many requests, and wrong answers, of
// which former came from the former server.
type answered struct {
	at                   record.Micros
	asked, wrong, former int
	err                  error
}

const routeBound = 30 * time.Second // bounds the time until a route that was changed is answered

// awaitRoute asks for a host about every millisecond until the answer begins as it should.
func (c *changes) awaitRoute(ctx context.Context, host string, begin []byte) answered {
	p := c.load()
	p.Hosts, p.Close, p.Work, p.Want = []load.Host{{Name: host, Weight: 1}}, true, 0, begin
	one := load.NewOne(p, c.now)
	var x answered
	for until := c.now() + record.MicrosOf(routeBound); c.now() < until && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		x.asked++
		switch failed := one.Ask(time.Second); failed {
		case "":
			x.at = c.now()
			return x
		case load.FailedBody:
			x.former++
		}
		x.wrong++
	}
	x.err = fmt.Errorf("the route %s was not answered within %v", host, routeBound)
	return x
}

const (
	opening     = 16              // idle connections that are opened at a time
	askedWithin = 5 * time.Second // for the opening of one
	againAfter  = 100 * time.Millisecond
	headBesides = 1 << 10 // bytes of a buffer that a half-sent head leaves free
	leastHead   = 64
)

// idlers are connections that are held beside the load.
type idlers struct {
	*deployment
	held atomic.Int64
}

// halfHead begins the head of a request, as long as a buffer of HAProxy takes.
func (s *idlers) halfHead(host string) string {
	head := fmt.Sprintf("%s / HTTP/1.1\r\nHost: %s\r\nX-Half: ", s.method, host)
	return head + strings.Repeat("h", max(s.router.Bufsize-s.router.Maxrewrite-headBesides-len(head), leastHead))
}

// hold keeps idle connections open, after half a request or a whole one, until ctx ends, and opens those
// again that HAProxy ends (timeout http-request).
func (s *idlers) hold(ctx context.Context) {
	if s.idle == 0 {
		return
	}
	places := make(chan struct{}, opening)
	secure, address := s.load().TLS, s.router.Plain
	if secure != nil {
		address = s.router.Secure
	}
	var all sync.WaitGroup
	for n := range s.idle {
		host := s.hosts[n%len(s.hosts)]
		all.Go(func() {
			for ctx.Err() == nil {
				places <- struct{}{}
				conn, err := s.open(ctx, cmp.Or(host.Address, address), secure, host.Name)
				<-places
				if err == nil {
					s.held.Add(1)
					stop := context.AfterFunc(ctx, func() { conn.Close() })
					_, _ = io.Copy(io.Discard, conn) // until it is ended from either side
					stop()
					conn.Close()
					s.held.Add(-1)
					continue
				}
				select {
				case <-time.After(againAfter):
				case <-ctx.Done():
				}
			}
		})
	}
	all.Wait()
}

func (s *idlers) open(ctx context.Context, address string, secure *tls.Config, host string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, askedWithin)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("hold an idle connection: %w", err)
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	whole := conn
	if secure != nil {
		own := secure.Clone()
		own.ServerName, own.ClientSessionCache = host, nil
		whole = tls.Client(conn, own)
	}
	head := fmt.Sprintf("GET / HTTP/1.1\r\nHost: %s\r\n\r\n", host)
	if s.idleAfter == afterHalf {
		head = s.halfHead(host)
	}
	if _, err := io.WriteString(whole, head); err != nil {
		conn.Close()
		return nil, fmt.Errorf("hold an idle connection: %w", err)
	}
	return whole, nil
}
