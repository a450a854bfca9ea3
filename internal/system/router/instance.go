package router

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// instance builds a router for each step.
type instance struct {
	*session
	local.Rig[settings]
}

type step struct {
	local.Requests
	*deployment
	changes *changes
	idlers  *idlers
	gauges  gauges
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	one := i.arms[""]
	e := record.Environment{
		Start: i.Rec.Clock.Start(), Target: naming(),
		Fidelity: local.Fidelity("HAProxy is real and runs on this machine, as its servers and the generator do: requests cross the loopback interface and no network card"),
	}
	if one.rate > 0 {
		e.Fidelity.Notes[0] = fmt.Sprintf("HAProxy is real and runs on this machine, as its servers and the generator do: requests cross a link that the kernel limits to %s each way, and no network card", param.Rate(one.rate))
	}
	programs := map[string]string{"haproxy": one.binary.Version, "haproxy TLS": one.binary.TLS}
	for name, arm := range i.arms {
		if name != "" && arm.binary != one.binary {
			programs["haproxy of "+name], programs["haproxy TLS of "+name] = arm.binary.Version, arm.binary.TLS
		}
		if arm.nginx.Version != "" {
			programs["nginx"] = arm.nginx.Version
		}
	}
	e.Facts = append(record.Versions(programs), record.Placement(one.placement.text()), record.RunsAs("haproxy", proc.Least().String()), record.RunsAs("the servers", proc.Least().String()))
	return e, nil
}

// text says who has which processors.
func (p placement) text() string {
	switch {
	case len(p.router) == 0:
		return "HAProxy, its servers and the generator share all processors"
	case len(p.generator) > 0 && len(p.servers) > 0 && p.generator[0] == p.servers[0]:
		return fmt.Sprintf("HAProxy has the processors %s, and the generator and the servers share %s", list(p.router), list(p.generator))
	}
	return fmt.Sprintf("HAProxy has the processors %s, the servers %s and the generator %s", list(p.router), list(p.servers), list(p.generator))
}

func (i *instance) start(ctx context.Context, one settings, level *system.Level) (local.Load, error) {
	switch i.Plan.Axis.Name {
	case axisIdle:
		one.idle = int(level.Value)
	case axisRoutes:
		one.lead(made(int(level.Value)))
	}
	d := &deployment{settings: one, dir: i.dir, host: i.Host, tied: i.Tied}
	if err := d.start(ctx); err != nil {
		return nil, errors.Join(err, d.stop())
	}
	s := &step{deployment: d, changes: &changes{deployment: d, now: i.Rec.Clock.Now, config: d.router}, idlers: &idlers{deployment: d}}
	s.Requests = local.Requests{
		Plan: d.load(), Client: "this machine", CPUs: one.placement.generator, Noun: record.Noun{One: "server", Many: "servers"}, Places: d.places(),
		Sees: s.sees, Read: s.read, Stop: d.stop,
	}
	if axis := i.Plan.Axis.Name; axis == axisIdle || axis == axisRoutes {
		s.Clients = one.clients
	}
	return s, i.Begin(&s.Requests)
}

// Stream implements local.Load.
func (s *step) Stream(ctx context.Context, schedule streams.Schedule) error {
	made := make(chan error, 1)
	changing, stop := context.WithCancel(ctx)
	go func() {
		made <- local.Midway(ctx, s.Rec, schedule, string(s.event), sourceChange, func() (map[string]float64, error) { return s.changes.make(ctx) })
	}()
	var beside sync.WaitGroup
	beside.Go(func() { s.changes.churn(changing) })
	beside.Go(func() { s.idlers.hold(changing) })
	err := errors.Join(s.Requests.Stream(ctx, schedule), <-made)
	stop()
	beside.Wait()
	return err
}

// sees adds to a window what is known of the router.
func (s *step) sees(w *record.Window) error {
	for _, p := range s.proxies() {
		if how := p.Died(); how != "" {
			blame(w, how)
		}
	}
	return s.changes.tell(w)
}

// blame tells of a window that connections failed because HAProxy had ended.
func blame(w *record.Window, how string) {
	for _, kind := range []string{load.FailedRefused, load.FailedReset, load.FailedClosed} {
		if n := w.Failed[kind]; n > 0 {
			w.Failed[how] += n
			delete(w.Failed, kind)
		}
	}
}
