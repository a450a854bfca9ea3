package router

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// instance is what the engine loads: each step has a router of its own, so that
// none inherits what another one left.
type instance struct {
	*session
	local.Streamed
	rec  system.Recorder
	made uint64 // routers

	mu         sync.Mutex
	deployment *deployment // nil between steps
	changes    *changes
	idlers     *idlers
	gauges     gauges
	undo       func() // lets this program have all processors again
	unfollow   func() // the servers
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	one := i.arms[""]
	e := record.Environment{
		Start: i.rec.Clock.Start(), Target: naming(),
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

// Raise implements system.Target: a router is started for the level.
func (i *instance) Raise(ctx context.Context, level system.Level) (system.Batch, error) {
	if err := i.stop(); err != nil {
		return system.Batch{}, err
	}
	one, ok := i.arms[level.Arm]
	if !ok {
		return system.Batch{}, fmt.Errorf("there is no arm %q", level.Arm)
	}
	reached := level.Value
	if level.Span == 0 {
		reached = math.Floor(level.Value + 1e-9)
	}
	if reached <= 0 {
		return system.Batch{}, fmt.Errorf("a level of %g is no load", level.Value)
	}
	switch i.Plan.Axis.Name {
	case axisIdle:
		one.idle = int(reached)
	case axisRoutes:
		one.lead(made(int(reached)))
	}
	s := &deployment{settings: one, dir: i.dir, host: i.Host, tied: i.Tied}
	i.made++
	if err := s.start(ctx, i.rec.Clock.Now, i.Plan.Seed+i.made); err != nil {
		return system.Batch{}, errors.Join(err, s.stop())
	}
	undo := func() {}
	if cpus := one.placement.generator; len(cpus) > 0 {
		var err error
		if undo, err = cpu.Keep(cpus); err != nil {
			return system.Batch{}, errors.Join(err, s.stop())
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.deployment, i.gauges, i.undo = s, gauges{}, undo
	i.unfollow = local.FollowPlaces(i.rec, record.Noun{One: "server", Many: "servers"}, s.places())
	i.changes, i.idlers = &changes{deployment: s, now: i.rec.Clock.Now, config: s.router}, &idlers{deployment: s}
	return system.Batch{Reached: reached, Stream: i.stream}, nil
}

// stream makes the load of a step.
func (i *instance) stream(ctx context.Context, schedule system.Schedule) error {
	s := i.deployment
	if axis := i.Plan.Axis.Name; axis == axisIdle || axis == axisRoutes {
		schedule.Value = float64(s.settings.clients)
	}
	made := make(chan error, 1)
	changing, stop := context.WithCancel(ctx)
	go func() { made <- i.makeEvent(ctx, schedule) }()
	var beside sync.WaitGroup
	beside.Go(func() { i.changes.churn(changing) })
	beside.Go(func() { i.idlers.hold(changing) })
	var told error
	err := s.clients.Load(ctx, schedule, func(w *record.Window) {
		if how := s.proxy.Died(); how != "" {
			blame(w, how)
		}
		if err := i.changes.tell(w); err != nil {
			told = err
		}
		i.rec.Emit(w)
	}, i.rec.Emit)
	err = errors.Join(err, told, <-made)
	stop()
	beside.Wait()
	if n := s.clients.Counts().NoPort; n > 0 {
		i.rec.Emit(&record.Note{About: i.rec.Step(), Text: fmt.Sprintf("this machine had no free port or file handle for %d connections: what became of their requests is not known", n)})
	}
	return err
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

// Progress implements system.Target.
func (i *instance) Progress() system.Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.deployment == nil {
		return system.Progress{}
	}
	return i.deployment.clients.Progress()
}

// Reset implements system.Target.
func (i *instance) Reset(context.Context) error { return i.stop() }

// Close implements system.Instance.
func (i *instance) Close(context.Context) error { return i.stop() }

// stop ends the router of the last step.
func (i *instance) stop() error {
	i.mu.Lock()
	s, undo := i.deployment, i.undo
	i.deployment, i.undo = nil, nil
	i.mu.Unlock()
	if s == nil {
		return nil
	}
	undo()
	i.unfollow()
	return s.stop()
}
