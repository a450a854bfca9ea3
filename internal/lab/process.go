package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
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
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := inspect(pid, labs); ok {
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
func inspect(pid int, labs string) (process, bool) {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	cmdline, err := os.ReadFile(filepath.Join(proc, "cmdline"))
	if err != nil {
		return process{}, false
	}
	component, lab, ok := parseCmdline(cmdline, labs)
	if !ok {
		return process{}, false
	}
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return process{}, false
	}
	start, err := parseStart(stat)
	if err != nil {
		return process{}, false
	}
	return process{pid, start, component, lab}, true
}

// parseCmdline tells whether a command line, NUL-separated as in /proc, is
// that of a component whose arguments name a file in a lab below labs.
func parseCmdline(cmdline []byte, labs string) (component, lab string, ok bool) {
	args := strings.Split(string(bytes.TrimSuffix(cmdline, []byte{0})), "\x00")
	switch {
	case len(args) >= 4 && args[1] == "component":
		component, args = args[2], args[3:]
	case len(args) >= 2 && filepath.Base(args[0]) == Containerd: // the one program that is the system's
		component, args = Containerd, args[1:]
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

// parseStart reads the start time, field 22, from the text of /proc/PID/stat.
// The second field is a program's name in parentheses and may itself hold
// spaces and parentheses.
func parseStart(stat []byte) (uint64, error) {
	end := bytes.LastIndexByte(stat, ')')
	fields := strings.Fields(string(stat[end+1:]))
	const startField = 22 - 3 // counted from the one after the name
	if end < 0 || len(fields) <= startField {
		return 0, fmt.Errorf("process status %q is not in the kernel's format", stat)
	}
	return strconv.ParseUint(fields[startField], 10, 64)
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
	if now, ok := inspect(p.pid, labs); !ok || now != p {
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
	proc := filepath.Join("/proc", strconv.Itoa(p.pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return true
	}
	start, err := parseStart(stat)
	if err != nil || start != p.start {
		return true
	}
	if !hasExited(stat) {
		return false
	}
	threads, err := os.ReadDir(filepath.Join(proc, "task"))
	return err != nil || len(threads) <= 1
}

// hasExited reads from the text of /proc/PID/stat whether the process's first
// thread has come to its end.
func hasExited(stat []byte) bool {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && (string(fields[0]) == "Z" || string(fields[0]) == "X")
}

// starter starts processes from one operating system thread that lives as
// long as it does. The kernel sends a parent-death signal when the thread that
// forked ends, not the process; Go's threads come and go.
type starter struct{ calls chan func() }

func newStarter() *starter {
	s := &starter{make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for call := range s.calls {
			call()
		}
	}()
	return s
}

func (s *starter) do(call func() error) error {
	result := make(chan error)
	s.calls <- func() { result <- call() }
	return <-result
}

// close ends the thread and with it whatever it started and still runs.
func (s *starter) close() { close(s.calls) }

// child is a component that this process started.
type child struct {
	component string
	pid       int
	ended     chan struct{} // closed when it has ended and been reaped
	state     *os.ProcessState
}

// start runs one component. Its standard input is empty, its output goes to
// its log. With a starter it dies with that starter's thread.
// Apart are the processors that it is kept to, none for all.
func start(executable string, dir directory, component string, args []string, s *starter, apart []int) (*child, error) {
	log, err := os.OpenFile(dir.log(component), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", component, err)
	}
	defer log.Close()
	cmd := exec.Command(executable, append([]string{"component", component}, args...)...)
	cmd.Dir = string(dir)
	cmd.Env = environment(dir, component, usableProcessors())
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own keeps the terminal's Ctrl-C from it: the command
	// that owns the lab decides when it goes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if component == RealNode {
		cmd.SysProcAttr.Cloneflags = realnode.Namespaces
	}
	run := func() error { return onProcessors(apart, cmd.Start) }
	if s != nil {
		cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
		run = func() error { return s.do(func() error { return onProcessors(apart, cmd.Start) }) }
	}
	if err := run(); err != nil {
		return nil, fmt.Errorf("start %s: %w", component, err)
	}
	c := &child{component: component, pid: cmd.Process.Pid, ended: make(chan struct{})}
	go func() {
		cmd.Wait() // its outcome is in ProcessState
		c.state = cmd.ProcessState
		close(c.ended)
	}()
	return c, nil
}

// onProcessors calls f on a thread that is kept to some processors, and so are
// processes that f starts. None means no change.
func onProcessors(processors []int, f func() error) error {
	if len(processors) == 0 {
		return f()
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("read the processors of a thread: %w", err)
	}
	for _, p := range processors {
		wanted.Set(p)
	}
	if err := unix.SchedSetaffinity(0, &wanted); err != nil {
		return fmt.Errorf("keep a thread to processors %v: %w", processors, err)
	}
	defer unix.SchedSetaffinity(0, &before)
	return f()
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
	if component != APIServer {
		// The others need a fraction of what the API server does, but each
		// would use every idle processor to look for work and to collect
		// garbage, which costs two to three times what the work does.
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, cpus/2)))
	}
	return env
}
