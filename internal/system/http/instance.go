package http

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

const (
	// probeBound is how long a request may take that is tried before the load.
	probeBound = 10 * time.Second
	// mostErrors is the percentage of the latest requests that may fail before the
	// load ends.
	mostErrors = 50
	// atPace is the part of the pace from which on it bounds a closed loop.
	atPace = 0.9
)

// instance is what the engine loads.
type instance struct {
	*session
	local.Streamed
	rec  system.Recorder
	made uint64

	mu      sync.Mutex
	clients *load.Generator // nil before the first step
	arm     string
	loaded  bool // by a step that was not reset
	threads int
	last    struct {
		at     record.Micros
		wanted float64 // seconds that this program ran or waited for a processor
	}
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	return record.Environment{
		Start: i.rec.Clock.Start(), Target: i.naming(),
		Fidelity: local.Fidelity(fmt.Sprintf("%s (%s) is real and not plimsoll's: nothing was seen of it but its answers", i.server, i.server.address)),
		Facts:    []record.Fact{listFact(i.arms[""].digest)},
	}, nil
}

// Raise implements system.Target.
func (i *instance) Raise(_ context.Context, level system.Level) (system.Batch, error) {
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
	i.made++
	g := load.New(one.plan, i.rec.Clock.Now, i.Plan.Seed+i.made)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.clients, i.threads, i.last.at = g, one.plan.Threads, 0
	i.arm, i.loaded = level.Arm, true
	return system.Batch{Reached: reached, Stream: func(ctx context.Context, s system.Schedule) error { return i.stream(ctx, s, g, one.plan.Pace) }}, nil
}

// stream makes the load of a step.
func (i *instance) stream(ctx context.Context, s system.Schedule, g *load.Generator, pace float64) error {
	sent := 0
	err := g.Load(ctx, s, func(w *record.Window) {
		if !w.WarmUp {
			sent += w.Sent
		}
		i.rec.Emit(w)
	}, i.rec.Emit)
	note := func(format string, args ...any) {
		i.rec.Emit(&record.Note{About: i.rec.Step(), Text: fmt.Sprintf(format, args...)})
	}
	if n := g.Counts().NoPort; n > 0 {
		note("this machine had no free port or file handle for %d connections: what became of their requests is not known", n)
	}
	if rate := float64(sent) / s.Hold.Seconds(); !s.Open && rate > atPace*pace {
		note("the load was bound by maxRate, at most %g requests a second, and not by the server", pace)
	}
	return err
}

// Progress implements system.Target.
func (i *instance) Progress() system.Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.clients == nil {
		return system.Progress{}
	}
	return i.clients.Progress()
}

// Readings are what the generator uses, and the machine that it runs on.
func (i *instance) Readings() (list []record.Reading) {
	i.mu.Lock()
	g := i.clients
	i.mu.Unlock()
	if g != nil {
		g.Beside(func() { list = i.read() })
	}
	return list
}

// read reads them, which takes milliseconds.
func (i *instance) read() []record.Reading {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.clients == nil {
		return nil
	}
	machine := telemetry.Reading()
	if i.server.here {
		machine.Values["targetUnread"] = 1 // the server is one of the programs of this machine
	}
	list := []record.Reading{machine}
	wanted := 0.0
	for _, t := range proc.Threads(os.Getpid()) {
		wanted += t.Ran + t.Waited
	}
	now, counts := i.rec.Clock.Now(), i.clients.Counts()
	values := map[string]float64{
		"opened": float64(counts.Opened), "resumed": float64(counts.Resumed), "retried": float64(counts.Retried), "noPort": float64(counts.NoPort),
	}
	if seconds := (now - i.last.at).Seconds(); i.last.at > 0 && seconds > 0.1 {
		values["demand"] = min((wanted-i.last.wanted)/seconds/float64(i.threads), 1)
	}
	i.last.at, i.last.wanted = now, wanted
	return append(list, record.Reading{Source: sourceLoad, Values: values})
}

// Reset implements system.Target: nothing was made.
func (i *instance) Reset(context.Context) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.loaded = false
	return nil
}

// Health implements system.Target: after a step that a guard stopped, the server has to
// answer again. While it is loaded nothing else is asked of it.
func (i *instance) Health(context.Context) (map[string]float64, error) {
	i.mu.Lock()
	idle, arm := i.clients != nil && !i.loaded, i.arm
	i.mu.Unlock()
	var err error
	if idle {
		i.probe(i.arms[arm].plan, func(request, failed string) bool {
			err = fmt.Errorf("the server does not answer %s: %s", request, failed)
			return false
		})
	}
	return map[string]float64{}, err
}

// Close implements system.Instance: connections end with each step.
func (*instance) Close(context.Context) error { return nil }

// Renew implements system.Session.
func (*session) Renew(context.Context) error {
	return errors.New("a server that is not plimsoll's cannot be made anew")
}
