package network

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/local/backend"
)

// instance builds a path for each step.
type instance struct {
	*session
	local.Rig[settings]
	noted bool // what carries packets
}

type step struct {
	local.Requests
	*network
	accounting accounting
	gauges     gauges
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	one := i.arms[""]
	carried, notes := i.carriedBy()
	notes = append(notes, i.accounting.note(),
		"client and server are network namespaces of this machine, joined by the kernel's own links: packets cross its network stack and no network card",
		"packets that are segmented or checked late (GSO, TSO, GRO, checksum) cross a virtual link in one piece, which hides what a header for each packet costs: set gso=off and gro=off where that is compared")
	placement := fmt.Sprintf("the client has the processors %v, the server %v", one.clientCPUs, one.serverCPUs)
	if n := runtime.NumCPU(); len(one.clientCPUs) == n && len(one.serverCPUs) == n {
		placement = "client and server share all processors"
	}
	return record.Environment{
		Start: i.Rec.Clock.Start(), Target: naming(), Fidelity: local.Fidelity(notes...),
		Facts: []record.Fact{pathFact(one.kind.name), carriedFact(carried), record.Placement(placement), record.RunsAs("the server", proc.Least().String())},
	}, nil
}

func (i *instance) start(ctx context.Context, one settings, level *system.Level) (local.Load, error) {
	clients := 0
	if i.Plan.Axis.Name == axisSize {
		one.size, clients = int(level.Value), one.streams
	}
	n, err := build(i.Tied, i.Host, i.dir, one)
	if err != nil {
		return nil, err
	}
	address, err := n.serve(ctx)
	if err != nil {
		return nil, errors.Join(err, n.end())
	}
	if !i.noted {
		_, notes := i.carriedBy()
		for _, text := range notes {
			i.Rec.Emit(&record.Note{Text: text})
		}
		i.noted = true
	}
	s := &step{network: n, accounting: i.accounting}
	s.Requests = local.Requests{
		Plan: one.load(address, n.client.EnterNetwork), Client: "the client", Clients: clients, CPUs: one.clientCPUs,
		Noun: record.Noun{One: "path", Many: "paths"}, Places: []local.Place{{Name: one.kind.name, Look: i.look(n)}}, Read: s.read, Stop: n.end,
	}
	return s, i.Begin(&s.Requests)
}

// look says how a path is. It keeps what a program of it says, which may tell a known failure.
func (i *instance) look(n *network) func() record.Place {
	told := false
	return func() record.Place {
		what := n.broken()
		if what == "" {
			told = false
			return record.Place{}
		}
		if !told && len(n.carriers) > 0 {
			i.Rec.Emit(&record.Log{Object: n.kind.name, Lines: []string{what}})
		}
		told = true
		return record.Place{State: record.PlaceNotReady, What: what}
	}
}

const (
	port        = 8080
	serverBound = 10 * time.Second // until the server serves
	serverFile  = "server.json"    // in the network's directory: what the server serves
)

func (n *network) serve(ctx context.Context) (string, error) {
	address := net.JoinHostPort(n.at.String(), strconv.Itoa(port))
	text, err := json.Marshal(backend.Spec{Plain: address, PageSize: n.size, Service: n.service})
	file := filepath.Join(n.keep, serverFile)
	if err == nil {
		err = proc.Least().Write(file, text)
	}
	if err != nil {
		return "", fmt.Errorf("write what the server serves: %w", err)
	}
	user := proc.Least()
	p, err := n.server.Start(n.server.Command(n.executable, "component", backend.Component, file), proc.How{Name: "the server", As: &user, CPUs: n.serverCPUs})
	if err != nil {
		return "", err
	}
	err = p.Await(ctx, serverBound, func() error {
		return n.client.InNetwork(func() error { return local.Answers("tcp4", address) })
	})
	n.served = p.Inner()
	return address, err
}

// end takes the path away, with what its server has served.
func (n *network) end() error {
	n.close()
	if err := os.Remove(filepath.Join(n.keep, serverFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove what the server served: %w", err)
	}
	return nil
}
