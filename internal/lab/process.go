package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/proc"
)

// process is one running component, found in the process table.
type process struct {
	pid int
	// start is the time of its start in clock ticks since boot: a process
	// number is used again, the pair is not.
	start     uint64
	component string
	lab       string // name of the lab, that is of its directory
}

// processesUnder finds the components that work in any directory right below
// labs. They are known by their command lines, which all name files of their
// lab: no written list of process numbers can be lost or out of date.
func processesUnder(labs string) ([]process, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	var found []process
	for _, one := range all {
		if p, ok := inspect(one, labs); ok {
			found = append(found, p)
		}
	}
	return found, nil
}

// processesOf finds the components that work in one lab's directory.
func processesOf(dir string) ([]process, error) {
	all, err := processesUnder(filepath.Dir(dir))
	return slices.DeleteFunc(all, func(p process) bool { return p.lab != filepath.Base(dir) }), err
}

// inspect looks at one process. Those that end meanwhile, and those that have
// ended and wait to be reaped (their command line is empty), do not count.
func inspect(p procfs.Proc, labs string) (process, bool) {
	args, err := p.CmdLine()
	if err != nil {
		return process{}, false
	}
	component, lab, ok := parseCmdline(args, labs)
	if !ok {
		return process{}, false
	}
	stat, err := p.Stat()
	return process{p.PID, stat.Starttime, component, lab}, err == nil
}

// parseCmdline tells whether a command line is that of a component whose
// arguments name a file in a lab below labs.
func parseCmdline(args []string, labs string) (component, lab string, ok bool) {
	switch {
	case len(args) >= 4 && args[1] == "component":
		component, args = args[2], args[3:]
	case len(args) >= 2 && filepath.Base(args[0]) == protocol.Containerd: // a program of the system's
		component, args = protocol.Containerd, args[1:]
	case len(args) >= 3 && filepath.Base(args[0]) == qemu && args[1] == "-name":
		component, args = args[2], args[3:]
	default:
		return "", "", false
	}
	for _, arg := range args {
		_, value, isFlag := strings.Cut(arg, "=")
		if !isFlag {
			value = arg
		}
		below, ok := strings.CutPrefix(value, labs+"/")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(below, "/")
		if ValidateName(name) == nil {
			return component, name, true
		}
	}
	return "", "", false
}

// kill ends p unless its number meanwhile belongs to another process.
func (p process) kill(labs string) error {
	// On Linux this holds the process, not its number: between the check and
	// the signal the number cannot be given to another.
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return fmt.Errorf("end %s (process %d): %w", p.component, p.pid, err)
	}
	defer handle.Release()
	now, err := procfs.NewProc(p.pid)
	if err != nil {
		return nil
	}
	if found, ok := inspect(now, labs); !ok || found != p {
		return nil
	}
	if err := handle.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s (process %d): %w", p.component, p.pid, err)
	}
	return nil
}

// killAll ends the components of one lab and waits until they are
// gone. It looks again after each round: one may have been starting another.
func killAll(ctx context.Context, dir string) error {
	return killMatching(ctx, dir, func(process) bool { return true })
}

func killMatching(ctx context.Context, dir string, match func(process) bool) error {
	var dying []process
	for {
		processes, err := processesOf(dir)
		if err != nil {
			return err
		}
		for _, p := range processes {
			if !match(p) {
				continue
			}
			if err := p.kill(filepath.Dir(dir)); err != nil {
				return err
			}
			if !slices.Contains(dying, p) {
				dying = append(dying, p)
			}
		}
		dying = slices.DeleteFunc(dying, process.ended)
		if len(dying) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d processes did not end: %w", len(dying), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ended reports whether a process is over, be it that it waits to be reaped.
// One that was killed loses its command line first and closes its sockets
// last, with its last thread: only then can another listen on its ports.
func (p process) ended() bool {
	now, err := procfs.NewProc(p.pid)
	if err != nil {
		return true
	}
	stat, err := now.Stat()
	if err != nil || stat.Starttime != p.start {
		return true
	}
	if stat.State != "Z" && stat.State != "X" {
		return false
	}
	threads, err := procfs.AllThreads(p.pid)
	return err != nil || len(threads) <= 1
}

// start runs one component. Its standard input is empty, its output goes to
// its log. With a tie it dies with that. Apart are the processors that it is kept
// to, none for all.
func start(executable string, dir directory, component string, args []string, tie *proc.Tie, apart []int) (*proc.Process, error) {
	cmd := exec.Command(executable, append([]string{"component", component}, args...)...)
	cmd.Dir = string(dir)
	cmd.Env = environment(dir, component, usableProcessors())
	how := proc.How{Name: component, CPUs: apart, Log: dir.log(component)}
	if component == protocol.RealNode {
		how.Namespaces = machine.Namespaces
	}
	if tie != nil {
		how.On = tie.Do
	}
	p, err := proc.Start(cmd, how)
	if err == nil {
		awaitCommandLine(p)
	}
	return p, err
}

// awaitCommandLine waits until a process that was started can be found. The kernel
// ends a start before it has put down the new command line: one that is looked
// for in between would be left behind.
func awaitCommandLine(p *proc.Process) {
	for found, err := procfs.NewProc(p.PID()); err == nil; {
		if line, err := found.CmdLine(); err != nil || len(line) > 0 {
			return
		}
		select {
		case <-p.Done():
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// environment is all that a component gets to see of one. etcd reads its whole
// configuration from ETCD_*, clients read proxies and KUBECONFIG: nothing of
// the caller's may reach them.
func environment(dir directory, component string, cpus int) []string {
	env := []string{
		"PATH=/usr/bin:/bin", "HOME=" + string(dir), "TMPDIR=" + string(dir),
		// Five programs share the processors. Collecting garbage half as often
		// saves a tenth of all time for some more memory.
		"GOGC=200",
	}
	if component != protocol.APIServer {
		// The others need a fraction of what the API server does, but each
		// would use every idle processor to look for work and to collect
		// garbage, which costs two to three times what the work does.
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, cpus/2)))
	}
	return env
}
