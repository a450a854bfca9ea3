package gluster

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
)

// Part is what a process of a System does.
type Part string

// The parts.
const (
	Management Part = "glusterd"  // takes commands, one on each server
	Bricks     Part = "bricks"    // serve bricks
	SelfHeal   Part = "self-heal" // brings replicas to the same state
	Mounts     Part = "mounts"    // at the client, one for each mount
)

// Parts are all of them.
func Parts() []Part { return []Part{Management, Bricks, SelfHeal, Mounts} }

// Process is one that runs.
type Process struct {
	// Server is whose it is, -1 for the client's; PID is its number there.
	Server int
	PID    int
	Part   Part
	proc.Usage
}

// Processes are those of GlusterFS that run, with what they use. Shares says of
// which the proportional share of memory is read, which takes the kernel about a
// tenth of a millisecond; nil is all.
func (s *System) Processes(shares func(server, pid int) bool) ([]Process, error) {
	var list []Process
	for n, m := range append(slices.Clone(s.servers), s.client) {
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
			continue // it has ended, or is another
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

// Commands is the CPU time of the commands that were given, in seconds: the
// gluster program's, and those that mount and unmount.
func (s *System) Commands() float64 { return time.Duration(s.used.Load()).Seconds() }

// network is the view of a server's sockets.
func (s *System) network(n int) (procfs.FS, error) {
	return procfs.NewFS(filepath.Join("/proc", strconv.Itoa(s.servers[n].PID())))
}

// Bricks are those of all volumes that were started, with the processes that
// serve them. A brick that is not served has none.
func (s *System) Bricks(ctx context.Context) ([]Brick, error) {
	lists := make([][]Brick, len(s.servers))
	err := s.each(func(n int) error {
		var err error
		lists[n], err = s.BricksOf(ctx, n)
		return err
	})
	return slices.Concat(lists...), err
}

// BricksOf asks glusterd of a server which of its bricks serve, in one command
// for all of them.
func (s *System) BricksOf(ctx context.Context, n int) ([]Brick, error) {
	const file = "state"
	dir := filepath.Join(s.Dir, serverName(n))
	if _, err := s.cli(ctx, n, "get-state", "glusterd", "odir", dir, "file", file); err != nil {
		return nil, fmt.Errorf("ask for the state of bricks: %w", err)
	}
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		return nil, fmt.Errorf("read the state of bricks: %w", err)
	}
	defer f.Close()
	list, err := readState(bufio.NewScanner(f), machine.Address(n).String())
	if err != nil {
		return nil, fmt.Errorf("read the state of bricks: %w", err)
	}
	for i := range list {
		list[i].Server = n
		if list[i].Port == 0 {
			continue
		}
		list[i].PID = s.pidOf(list[i])
	}
	return list, nil
}

// readState reads the bricks of one host from what glusterd tells of its state.
// The port of one that does not serve is 0.
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

// Serving reports whether a process serves each brick of a volume: with
// multiplexing GlusterFS says that a volume has started where none does.
func (s *System) Serving(volume string) bool {
	for n := range s.servers {
		if s.pidOf(Brick{Server: n, Volume: volume}) == 0 {
			return false
		}
	}
	return true
}

// OpenFiles is how many files the process of a server has open that serves
// bricks and is nearest to its limit, and that limit.
func (s *System) OpenFiles(n int) (open, limit int, err error) {
	fs, err := s.servers[n].Proc()
	if err != nil {
		return 0, 0, fmt.Errorf("read open files: %w", err)
	}
	all, err := fs.AllProcs()
	if err != nil {
		return 0, 0, fmt.Errorf("read open files: %w", err)
	}
	for _, p := range all {
		if name, err := p.Comm(); err != nil || name != "glusterfsd" {
			continue // it has ended, or is another
		}
		handles, err := p.FileDescriptorsLen()
		if err != nil {
			continue
		}
		if limits, err := p.Limits(); err == nil && handles > open {
			open, limit = handles, int(min(limits.OpenFiles, 1<<40))
		}
	}
	return open, limit, nil
}

// ListensInVain reports whether a process that serves several bricks of a server
// has tried to listen again for a volume that was deleted meanwhile, by its log. It
// attaches and detaches no brick while it tries.
func (s *System) ListensInVain(n int) bool {
	logs, _ := filepath.Glob(filepath.Join(s.Dir, serverName(n), "log", "bricks", "*.log")) // the pattern is well formed
	return s.Multiplex && slices.ContainsFunc(logs, func(log string) bool {
		text, _ := os.ReadFile(log) // one that cannot be read tells nothing
		return bytes.Contains(text, []byte("creation of listener failed"))
	})
}

// pidOf is the process that serves a brick, by the file that it writes; 0 where
// none runs.
func (s *System) pidOf(b Brick) int {
	name := s.address(b.Server).String() + strings.ReplaceAll(b.dir(s), "/", "-") + ".pid"
	text, err := os.ReadFile(s.servers[b.Server].Path(filepath.Join("/run/gluster/vols", b.Volume, name)))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	if _, err := os.Stat(s.servers[b.Server].Path("/proc/" + strconv.Itoa(pid))); err != nil {
		return 0
	}
	return pid
}
