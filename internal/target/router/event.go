package router

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/router/backend"
	"plimsoll.dev/plimsoll/internal/target/router/haproxy"
	"plimsoll.dev/plimsoll/internal/target/router/load"
)

// event is a change that is made in the middle of each hold.
type event string

// The events.
const (
	noEvent    event = "none"
	evReload   event = "reload"        // HAProxy is started anew and takes the listeners over
	evKill     event = "kill-server"   // a server is killed, for good
	evRoute    event = "route-reload"  // a route is added, by a reload
	evRouteAPI event = "route-runtime" // likewise, by the runtime API
	evChange   event = "route-change"  // a route gets another server, by a reload
)

// parseEvent reads the name of an event.
func parseEvent(text string) (event, error) {
	all := []string{string(noEvent), string(evReload), string(evKill), string(evRoute), string(evRouteAPI), string(evChange)}
	if !slices.Contains(all, text) {
		return noEvent, fmt.Errorf("%q is none of %s", text, strings.Join(all, ", "))
	}
	return event(text), nil
}

// change makes the event of a step in the middle of its hold, and puts on record
// how long it took.
func (i *instance) change(ctx context.Context, s *system, schedule target.Schedule) error {
	if s.event == noEvent {
		return nil
	}
	middle := schedule.Begin + record.MicrosOf(schedule.Warm+schedule.Hold/2)
	select {
	case <-time.After((middle - i.rec.Clock.Now()).Duration()):
	case <-ctx.Done():
		return nil
	}
	values, err := s.change(ctx, i.rec.Clock.Now)
	if ctx.Err() != nil {
		return nil // the step was over before it was
	}
	if err != nil {
		return fmt.Errorf("make the event %s: %w", s.event, err)
	}
	i.rec.Emit(&record.Reading{Source: sourceChange, Values: values})
	return nil
}

// change makes the system's event.
func (s *system) change(ctx context.Context, now func() record.Micros) (map[string]float64, error) {
	began := now()
	var err error
	switch s.event {
	case evReload:
		err = s.reload(ctx, func(*haproxy.Config) {})
	case evKill:
		err = s.servers[0].kill()
	case evRoute, evRouteAPI, evChange:
		return s.reroute(ctx, now)
	}
	return map[string]float64{"seconds": (now() - began).Seconds(), "asked": 0, "wrong": 0}, err
}

// reroute adds a route, or gives one another server, and returns once it is
// answered as it should be. It is asked for all the while, so that the first
// right answer is seen.
func (s *system) reroute(ctx context.Context, now func() record.Micros) (map[string]float64, error) {
	added := s.newHost("added-under-load")
	asked, begin := added, backend.Begin(s.pageSize)
	change := func(c *haproxy.Config) { c.Routes, c.Spares = append(slices.Clone(c.Routes), added), c.Spares-1 }
	if s.event == evChange {
		change = func(c *haproxy.Config) { c.Moved = 1 }
		asked, begin = s.hosts[0].Name, []byte(backend.OtherMark[:min(len(backend.OtherMark), s.pageSize)])
	}
	probe := make(chan answered, 1)
	go func() { probe <- s.awaitRoute(ctx, asked, begin, now) }()
	began := now()
	var err error
	if s.event == evRouteAPI {
		err = s.runtime(s.router.Adding(added, 0))
	} else {
		err = s.reload(ctx, change)
	}
	if err != nil {
		return nil, err
	}
	first := <-probe
	return map[string]float64{"seconds": (first.at - began).Seconds(), "asked": float64(first.asked), "wrong": float64(first.wrong), "former": float64(first.former)}, first.err
}

// reload has HAProxy go on with a configuration that is changed from its last one.
// One reload waits for another.
func (s *system) reload(ctx context.Context, change func(*haproxy.Config)) error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	next := s.config
	change(&next)
	err := s.proxy.Reload(ctx, next)
	if err == nil {
		s.config = next
	}
	return err
}

// runtime gives HAProxy commands that answer nothing where they succeed.
func (s *system) runtime(commands []string) error {
	all := strings.Join(commands, "; ")
	text, err := s.proxy.Stats().Ask(all)
	if err == nil && strings.TrimSpace(text) != "" {
		err = fmt.Errorf("HAProxy answers %q to %q", strings.TrimSpace(text), all)
	}
	return err
}

// churn adds and removes routes by the runtime API or by reloads, so many each
// second or as many as HAProxy comes to, until the context is done. Those that HAProxy refuses are counted: while it is
// reloaded, the process that is asked may not know them.
func (s *system) churn(ctx context.Context) {
	if s.churned == 0 {
		return
	}
	spare := s.router.Spares - 1
	tick := time.NewTicker(time.Second / time.Duration(s.churned))
	defer tick.Stop()
	for n, last := 0, ""; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		next := s.newHost("churn-" + strconv.Itoa(n))
		var err error
		if s.reloads {
			err = s.reload(ctx, func(c *haproxy.Config) {
				c.Routes = append(slices.DeleteFunc(slices.Clone(c.Routes), func(host string) bool { return host == last }), next)
			})
		} else {
			var commands []string
			if last != "" {
				commands = s.router.Removing(last, spare)
			}
			err = s.runtime(append(commands, s.router.Adding(next, spare)...))
		}
		last = next
		switch {
		case err == nil:
			s.added.Add(1)
		case ctx.Err() == nil:
			s.refused.Add(1)
		}
	}
}

// newHost is the name of a host that has no route yet, in the domain of the
// others.
func (s *system) newHost(name string) string {
	_, rest, _ := strings.Cut(s.hosts[0].Name, ".")
	return name + "." + rest
}

// answered is when a route was answered rightly for the first time, and how often
// it was asked for and was not until then. Former are those of the wrong answers
// that came from the server that the route had before.
type answered struct {
	at                   record.Micros
	asked, wrong, former int
	err                  error
}

// routeBound is how long a route that was changed may take to be answered.
const routeBound = 30 * time.Second

// awaitRoute asks for a host about every millisecond until the answer begins as
// it should.
func (s *system) awaitRoute(ctx context.Context, host string, begin []byte, now func() record.Micros) answered {
	p := s.load()
	p.Hosts, p.Close, p.Work, p.Want = []load.Host{{Name: host, Weight: 1}}, true, 0, begin
	one := load.NewOne(p, now)
	var x answered
	for until := now() + record.MicrosOf(routeBound); now() < until && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		x.asked++
		switch failed := one.Ask(time.Second); failed {
		case "":
			x.at = now()
			return x
		case load.FailedBody:
			x.former++
		}
		x.wrong++
	}
	x.err = fmt.Errorf("the route %s was not answered within %v", host, routeBound)
	return x
}
