package router

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
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
)

// parseEvent reads the name of an event.
func parseEvent(text string) (event, error) {
	all := []string{string(noEvent), string(evReload), string(evKill), string(evRoute), string(evRouteAPI)}
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
	var asked, wrong int
	var err error
	switch s.event {
	case evReload:
		err = s.proxy.Reload(ctx, s.router)
	case evKill:
		err = s.servers[0].kill()
	case evRoute, evRouteAPI:
		// It is asked for all the while, so that the first right answer is seen.
		host := s.newHost()
		probe := make(chan answered, 1)
		go func() { probe <- s.awaitRoute(ctx, host, now) }()
		began = now()
		if s.event == evRoute {
			changed := s.router
			changed.Routes, changed.Spares = append(slices.Clone(s.router.Routes), host), 0
			err = s.proxy.Reload(ctx, changed)
		} else {
			for _, command := range s.router.Adding(host) {
				var text string
				if text, err = s.proxy.Stats().Ask(command); err == nil && strings.TrimSpace(text) != "" {
					err = fmt.Errorf("HAProxy answers %q to %q", strings.TrimSpace(text), command)
				}
				if err != nil {
					break
				}
			}
		}
		if err != nil {
			return nil, err
		}
		first := <-probe
		return map[string]float64{"seconds": (first.at - began).Seconds(), "asked": float64(first.asked), "wrong": float64(first.wrong)}, first.err
	}
	return map[string]float64{"seconds": (now() - began).Seconds(), "asked": float64(asked), "wrong": float64(wrong)}, err
}

// newHost is the name of a host that has no route yet.
func (s *system) newHost() string {
	_, rest, _ := strings.Cut(s.hosts[0].Name, ".")
	return "added-under-load." + rest
}

// answered is when a route was answered rightly for the first time, and how often
// it was asked for and was not until then.
type answered struct {
	at           record.Micros
	asked, wrong int
	err          error
}

// routeBound is how long a route that was added may take to be answered.
const routeBound = 30 * time.Second

// awaitRoute asks for a host about every millisecond until the answer is right.
func (s *system) awaitRoute(ctx context.Context, host string, now func() record.Micros) answered {
	p := s.load()
	p.Hosts, p.Close, p.Work = []load.Host{{Name: host, Weight: 1}}, true, 0
	one := load.NewOne(p, now)
	var x answered
	for until := now() + record.MicrosOf(routeBound); now() < until && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		x.asked++
		if failed := one.Ask(time.Second); failed == "" {
			x.at = now()
			return x
		}
		x.wrong++
	}
	x.err = fmt.Errorf("the new route %s was not answered within %v", host, routeBound)
	return x
}
