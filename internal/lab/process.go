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

	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
)

type process struct {
	pid       int
	start     uint64 // in clock ticks since boot: the kernel reuses a pid, but not the pair
	component string
	lab       string // the name of its directory
}

// processesUnder finds components by their command lines: a list of pids could be out of date.
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

func processesOf(dir string) ([]process, error) {
	all, err := processesUnder(filepath.Dir(dir))
	return slices.DeleteFunc(all, func(p process) bool { return p.lab != filepath.Base(dir) }), err
}

// inspect looks at one process. A process that ends meanwhile or waits to be reaped does not count.
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

// parseCmdline finds the component and lab of a command line whose arguments name a file below labs.
func parseCmdline(args []string, labs string) (component, lab string, ok bool) {
	switch {
	case len(args) >= 4 && args[1] == "component":
		component, args = args[2], args[3:]
	case len(args) >= 2 && filepath.Base(args[0]) == protocol.Containerd:
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

// kill ends p unless its pid meanwhile belongs to another process.
func (p process) kill(labs string) error {
	// On Linux the handle holds the process: between the check and the signal its pid cannot be reused.
	handle, err := os.FindProcess(p.pid)
	if err != nil {
		return fmt.Errorf("end %s (process %d): %w", p.component, p.pid, err)
	}
	defer handle.Release()
	now, err := procfs.NewProc(p.pid)
	if err != nil {
		return nil
	}
	if found, ok := inspect(now, labs); !ok || found != p { // another process's pid
		return nil
	}
	if err := handle.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end %s (process %d): %w", p.component, p.pid, err)
	}
	return nil
}

// killAll ends matching processes and waits. It looks again: one may have been starting another.
func killAll(ctx context.Context, dir string, match func(process) bool) error {
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

// ended reports whether a process is over, with all threads: the last one closes its sockets.
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

// start runs one component, its output in its log, until the tie ends. apart are its processors, nil for all.
func start(executable string, dir directory, component string, args []string, tie *proc.Tie, apart []int) (*proc.Process, error) {
	cmd := exec.Command(executable, append([]string{"component", component}, args...)...)
	cmd.Dir = string(dir)
	cmd.Env = environment(dir, component, usableProcessors())
	how := proc.How{Name: component, CPUs: apart, Log: dir.log(component)}
	if component == protocol.RealNode {
		how.Namespaces = realnode.Namespaces
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

// awaitCommandLine waits for the new command line, by which a removal of the lab finds it.
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

// environment of a component has nothing of the caller's, which etcd and clients would read.
func environment(dir directory, component string, cpus int) []string {
	env := []string{
		"PATH=/usr/bin:/bin", "HOME=" + string(dir), "TMPDIR=" + string(dir),
		// Five programs share the processors: half as many collections save a tenth of all time.
		"GOGC=200",
	}
	if component != protocol.APIServer {
		// With all processors the others would waste time on looking for work and collecting garbage.
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, cpus/2)))
	}
	return env
}
