package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// instance is what the engine loads: each step has a path of its own, so that none
// inherits what another one left.
type instance struct {
	*session
	local.Streamed
	rec  system.Recorder
	made uint64 // paths

	mu       sync.Mutex
	network  *network // nil between steps
	clients  *load.Generator
	gauges   gauges
	undo     func() // lets this program have all processors again
	unfollow func()
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	one := i.arms[""]
	carried, notes := i.carriedBy()
	notes = append(notes, i.accounting.note(),
		"client and server are network namespaces of this machine, joined by the kernel's own links: packets cross its network stack and no network card",
		"packets that are segmented or checked late (GSO, TSO, GRO, checksum) cross a virtual link in one piece, which hides what a header for each packet costs: set gso=off and gro=off where that is compared")
	return record.Environment{
		Start: i.rec.Clock.Start(), Target: naming(), Fidelity: local.Fidelity(notes...),
		Facts: []record.Fact{pathFact(one.kind.name), carriedFact(carried), record.Placement(one.placement()), record.RunsAs("the server", proc.Least().String())},
	}, nil
}

// Raise implements system.Target: a path is built for the level.
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
	if i.Plan.Axis.Name == axisSize {
		one.size = int(reached)
	}
	n, err := build(i.Tied, i.Host, i.dir, one)
	if err != nil {
		return system.Batch{}, err
	}
	address, err := i.serve(ctx, n)
	if err != nil {
		n.close()
		return system.Batch{}, err
	}
	undo, err := cpu.Keep(one.clientCPUs)
	if err != nil {
		n.close()
		return system.Batch{}, err
	}
	if i.made == 0 {
		_, notes := i.carriedBy()
		for _, text := range notes {
			i.rec.Emit(&record.Note{Text: text})
		}
	}
	i.made++
	g := load.New(one.load(address, n.client.EnterNetwork), i.rec.Clock.Now, i.Plan.Seed+i.made)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.network, i.clients, i.gauges, i.undo = n, g, gauges{}, undo
	i.unfollow = local.FollowPlaces(i.rec, record.Noun{One: "path", Many: "paths"}, []local.Place{{Name: one.kind.name, Look: i.look(n)}})
	return system.Batch{Reached: reached, Stream: func(ctx context.Context, s system.Schedule) error { return i.stream(ctx, s, g) }}, nil
}

// look says how a path is. What a program of it says is kept, too, since it may be that
// of a known failure.
func (i *instance) look(n *network) func() record.Place {
	told := false
	return func() record.Place {
		what := n.broken()
		if what == "" {
			told = false
			return record.Place{}
		}
		if !told && len(n.carriers) > 0 {
			i.rec.Emit(&record.Log{Object: n.kind.name, Lines: []string{what}})
		}
		told = true
		return record.Place{State: record.PlaceNotReady, What: what}
	}
}

const (
	port = 8080
	// serverBound is how long the server may take until it serves.
	serverBound = 10 * time.Second
)

// serve starts the server, and returns its address once it serves.
func (i *instance) serve(ctx context.Context, n *network) (string, error) {
	address := net.JoinHostPort(n.at.String(), strconv.Itoa(port))
	text, err := json.Marshal(backend.Spec{Plain: address, PageSize: n.size, Service: n.service})
	file := filepath.Join(i.dir, "server.json")
	if err == nil {
		err = proc.Least().Write(file, text)
	}
	if err != nil {
		return "", fmt.Errorf("write what the server serves: %w", err)
	}
	user := proc.Least()
	p, err := n.server.Start(n.server.Command(i.Executable, "component", backend.Component, file), proc.How{Name: "the server", As: &user, CPUs: n.serverCPUs})
	if err != nil {
		return "", err
	}
	err = p.Await(ctx, serverBound, func() error {
		return n.client.InNetwork(func() error {
			conn, err := net.DialTimeout("tcp4", address, probeBound)
			if err == nil {
				conn.Close()
			}
			return err
		})
	})
	n.served = p.Inner()
	return address, err
}

// stream makes the load of a step.
func (i *instance) stream(ctx context.Context, s system.Schedule, g *load.Generator) error {
	if i.Plan.Axis.Name == axisSize {
		s.Value = float64(i.network.streams)
	}
	err := g.Load(ctx, s, func(w *record.Window) { i.rec.Emit(w) }, i.rec.Emit)
	if n := g.Counts().NoPort; n > 0 {
		i.rec.Emit(&record.Note{About: i.rec.Step(), Text: fmt.Sprintf("the client had no free port or file handle for %d connections: what became of their requests is not known", n)})
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

// Reset implements system.Target.
func (i *instance) Reset(context.Context) error { return i.stop() }

// Close implements system.Instance.
func (i *instance) Close(context.Context) error { return i.stop() }

// stop takes the path of the last step away.
func (i *instance) stop() error {
	i.mu.Lock()
	n, undo := i.network, i.undo
	i.network, i.clients, i.undo = nil, nil, nil
	i.mu.Unlock()
	if n == nil {
		return nil
	}
	undo()
	i.unfollow()
	n.close()
	if err := os.Remove(filepath.Join(i.dir, "server.json")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what the server served: %w", err)
	}
	return nil
}
