package gluster

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local"
)

// Part names the work of a process of a System.
type Part string

// Parts of a System.
const (
	Management Part = "glusterd"  // for commands, one on each server
	Bricks     Part = "bricks"    // serve bricks
	SelfHeal   Part = "self-heal" // brings replicas to the same state
	Mounts     Part = "mounts"    // one for each mount, at the client
)

// Parts lists all parts.
func Parts() []Part { return []Part{Management, Bricks, SelfHeal, Mounts} }

// Process is a running process of a System.
type Process struct {
	Server int // its server, -1 for the client; PID is its number there
	PID    int
	Part   Part
	proc.Usage
}

// Processes returns GlusterFS's processes with their usage, and their shares of memory where shares, or
// nil, selects them, which takes the kernel a tenth of a millisecond.
func (s *System) Processes(shares func(server, pid int) bool) ([]Process, error) {
	var list []Process
	for n, m := range append(s.machines(), s.client.Machine) {
		if n == len(s.servers) {
			n = -1
		}
		own, err := processesOf(m, n, shares)
		if err != nil {
			return nil, err
		}
		list = append(list, own...)
	}
	return list, nil
}

// Places returns the servers as places of a load. One is not ready if glusterd has ended, or no process
// serves the brick of one of the volumes, if any.
func (s *System) Places(volumes func() []string) (noun record.Noun, list []local.Place) {
	for _, x := range s.servers {
		list = append(list, local.Place{Name: "server-" + strconv.Itoa(x.number+1), Look: func() record.Place {
			if p := x.management.Load(); p != nil && p.Ended() {
				return record.Place{State: record.PlaceNotReady, What: "has no glusterd: it ended (" + p.State().String() + ")"}
			}
			if volumes == nil {
				return record.Place{}
			}
			for _, v := range volumes() {
				if x.serves(v) == 0 {
					return record.Place{State: record.PlaceNotReady, What: "has no process for the brick of " + v}
				}
			}
			return record.Place{}
		}})
	}
	return record.Noun{One: "storage server", Many: "storage servers"}, list
}

func processesOf(m *machine.Machine, n int, shares func(server, pid int) bool) ([]Process, error) {
	fs, err := m.Proc()
	if err != nil {
		return nil, fmt.Errorf("read GlusterFS's processes: %w", err)
	}
	all, err := fs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("read GlusterFS's processes: %w", err)
	}
	var list []Process
	for _, p := range all {
		name, err := p.Comm()
		if err != nil || !strings.HasPrefix(name, "gluster") {
			continue // it has ended, or is another program
		}
		x := Process{Server: n, PID: p.PID}
		switch name {
		case "glusterd":
			x.Part = Management
		case "glusterfsd":
			x.Part = Bricks
		case "glusterfs":
			x.Part = Mounts
			if n >= 0 {
				x.Part = SelfHeal
			}
		default:
			continue // a command
		}
		if x.Usage, err = proc.ReadAny(p, shares == nil || shares(n, p.PID), x.Part == Management); err != nil {
			continue // it has ended
		}
		list = append(list, x)
	}
	return list, nil
}

// Bricks returns the bricks of all started volumes, with the processes that serve them.
func (s *System) Bricks(ctx context.Context) ([]Brick, error) {
	lists := make([][]Brick, len(s.servers))
	err := s.each(func(x *Server) (err error) {
		lists[x.number], err = x.Bricks(ctx)
		return err
	})
	return slices.Concat(lists...), err
}

// readState reads the bricks of a host from glusterd's state; the port of an unserved brick is 0.
func readState(lines *bufio.Scanner, host string) ([]Brick, error) {
	lines.Buffer(nil, 1<<20)
	var list []Brick
	volume := ""
	var brick *Brick
	for lines.Scan() {
		key, value, ok := strings.Cut(strings.TrimSpace(lines.Text()), ": ")
		if !ok || !strings.HasPrefix(key, "Volume") {
			continue
		}
		_, rest, _ := strings.Cut(key, ".")
		number, field, ok := strings.Cut(rest, ".")
		switch {
		case rest == "name":
			volume, brick = value, nil
		case !ok || !strings.HasPrefix(number, "Brick"):
		case field == "path":
			if brick = nil; strings.HasPrefix(value, host+":") {
				list = append(list, Brick{Volume: volume})
				brick = &list[len(list)-1]
			}
		case brick == nil: // of another host
		case field == "port":
			port, err := strconv.Atoi(value)
			if err != nil {
				return nil, fmt.Errorf("the port of a brick is %q: %w", value, err)
			}
			brick.Port = port
		case field == "status" && value != "Started":
			brick.Port = -1
		}
	}
	for i := range list {
		list[i].Port = max(list[i].Port, 0)
	}
	return list, lines.Err()
}

// Serving reports whether bricks are served: with multiplexing GlusterFS may only report a start.
func (s *System) Serving(volume string) bool {
	return !slices.ContainsFunc(s.servers, func(x *Server) bool { return x.serves(volume) == 0 })
}
