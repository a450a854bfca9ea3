package fio

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
)

// Install is the command that installs fio.
const Install = "apt-get install --no-install-recommends fio"

// NotFoundError says that there is no fio.
type NotFoundError struct{ Path string }

// Error implements error.
func (e *NotFoundError) Error() string { return "there is no fio: " + e.Path + " was not found" }

// Binary is a fio that is installed.
type Binary struct{ Path, Version string }

var versionLine = regexp.MustCompile(`^fio-(\d+\.\d+\S*)`)

// Find finds a fio: at a path, or where it is installed for "". One that is not
// there is a *NotFoundError.
func Find(ctx context.Context, path string) (Binary, error) {
	if path == "" {
		path = "fio"
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return Binary{}, &NotFoundError{path}
	}
	text, err := exec.CommandContext(ctx, found, "--version").Output()
	if err != nil {
		return Binary{}, fmt.Errorf("ask %s for its version: %w", found, err)
	}
	version := versionLine.FindStringSubmatch(strings.TrimSpace(string(text)))
	if version == nil {
		return Binary{}, fmt.Errorf("%s does not tell a version of fio: it is another program", found)
	}
	return Binary{found, version[1]}, nil
}

// Check has fio read a job file without running it.
func (b Binary) Check(ctx context.Context, job string) error {
	cmd := exec.CommandContext(ctx, b.Path, "--parse-only", "-")
	cmd.Stdin = strings.NewReader(job)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("fio refuses the job: %s", firstLine(string(text), err.Error()))
	}
	return nil
}

// firstLine is the first line that tells something, else another text.
func firstLine(text, other string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return other
}

// Args are the arguments of a fio that reads its job from its standard input, and
// reports that often, 0 for at its end alone.
func Args(every time.Duration) []string {
	args := []string{"--output-format=json+", "-"}
	if every > 0 {
		args = append([]string{"--status-interval=" + strconv.FormatInt(every.Milliseconds(), 10) + "ms"}, args...)
	}
	return args
}

// Process is a fio that was started.
type Process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}

	mu      sync.Mutex
	reports []Report // that were not taken
	last    Report
	told    int      // reports
	lines   []string // the last that it printed beside
	err     error    // why its output could not be read
	watched []*os.File
}

// Start starts a command that is a fio with Args, which then waits for its job.
// How it is started is said, so that it dies with this program.
func Start(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{})}
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start fio: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start fio: %w", err)
	}
	cmd.Stderr = &lineWriter{p: p}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start fio: %w", err)
	}
	go func() {
		readErr := ReadReports(out, p.add, p.line)
		_ = cmd.Wait() // its outcome is in ProcessState
		p.mu.Lock()
		p.err = readErr
		for _, f := range p.watched {
			f.Close()
		}
		p.watched = nil
		p.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

func (p *Process) add(r Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports, p.last, p.told = append(p.reports, r), r, p.told+1
}

const keptLines = 20

func (p *Process) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lines = append(p.lines, text); len(p.lines) > keptLines {
		p.lines = p.lines[1:]
	}
}

// lineWriter keeps the lines that fio writes to its standard error.
type lineWriter struct {
	p    *Process
	rest []byte
}

// Write implements io.Writer.
func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest = append(w.rest, text...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			return len(text), nil
		}
		if line := strings.TrimSpace(string(w.rest[:i])); line != "" {
			w.p.line(line)
		}
		w.rest = w.rest[i+1:]
	}
}

// Feed gives the process its job: it begins.
func (p *Process) Feed(job string) error {
	_, err := io.WriteString(p.stdin, job)
	if err = errors.Join(err, p.stdin.Close()); err != nil {
		return fmt.Errorf("give fio its job: %w", err)
	}
	return nil
}

// Done is closed once the process has ended and its output was read.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended reports whether it has.
func (p *Process) Ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Take are the reports since the last call.
func (p *Process) Take() []Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.reports
	p.reports = nil
	return list
}

// Last is the last report and how many there were.
func (p *Process) Last() (Report, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.told
}

// PID is that of fio itself: what was started may be a program that starts it,
// such as one that enters namespaces.
func (p *Process) PID() int {
	pid := p.cmd.Process.Pid
	for range 4 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		child, _, _ := strings.Cut(string(text), " ")
		n, convErr := strconv.Atoi(child)
		if err != nil || convErr != nil {
			break
		}
		pid = n
	}
	return pid
}

// End asks the process to end: it completes what is under way, and reports.
func (p *Process) End() {
	if !p.Ended() {
		_ = syscall.Kill(p.PID(), syscall.SIGINT) // it may have ended meanwhile
	}
}

// Kill ends it.
func (p *Process) Kill() {
	if !p.Ended() {
		_ = syscall.Kill(p.PID(), syscall.SIGKILL)
		_ = p.cmd.Process.Kill()
	}
}

// Kinds of failure of a process.
const (
	FailedVerify = "verify"    // data was not what was written
	FailedFull   = "disk full" // ENOSPC
	FailedKilled = "killed"    // by a signal that was not ours
	FailedEnded  = "ended"     // for a reason of its own
)

// Failure is how a process that has ended failed: its kind, "" where it did not,
// and what is known of it. Asked says that we ended it.
func (p *Process) Failure(asked bool) (kind, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	for i := len(p.lines) - 1; i >= 0 && text == ""; i-- {
		if l := p.lines[i]; !strings.Contains(l, "terminating on signal") && !strings.Contains(l, "will never start") {
			text = l
		}
	}
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	switch e := syscall.Errno(p.last.Errno); {
	case e == syscall.EILSEQ:
		return FailedVerify, text
	case e == syscall.ENOSPC || e == syscall.EDQUOT:
		return FailedFull, text
	case e != 0 && e != syscall.EINTR:
		return cmp.Or(unix.ErrnoName(e), FailedEnded), text
	case status.Signaled() && !asked:
		return FailedKilled, "a signal ended fio: " + status.Signal().String()
	case asked:
		return "", ""
	case p.err != nil:
		return FailedEnded, p.err.Error()
	case status.ExitStatus() != 0:
		return FailedEnded, cmp.Or(text, fmt.Sprintf("fio ended with code %d", status.ExitStatus()))
	}
	return "", ""
}

// besideThreads are the threads of a fio that do no IO, the first ones: its main
// thread, and the one that prints.
const besideThreads = 2

// Prefer has a process that waits for its job served before others on this machine,
// as far as that is allowed. Watch takes it back for the threads that do no IO. It
// matters from the beginning: fio sees then how exactly it is woken, and is awake
// for as long before each IO that is due.
func (p *Process) Prefer() { _ = cpu.PreferThread(p.PID(), true) } // at worst it waits, which is read

// Watch begins to read what the threads that do IO wait for, which there must be.
// With prefer they are served before others.
func (p *Process) Watch(prefer bool) error {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.PID()))
	if err != nil {
		return fmt.Errorf("read the threads of fio: %w", err)
	}
	var threads []int
	for _, task := range tasks {
		if tid, err := strconv.Atoi(task.Name()); err == nil {
			threads = append(threads, tid)
		}
	}
	slices.Sort(threads)
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, tid := range threads {
		if prefer {
			_ = cpu.PreferThread(tid, n >= besideThreads) // as above
		}
		if n < besideThreads {
			continue
		}
		if f, err := os.Open(fmt.Sprintf("/proc/%d/schedstat", tid)); err == nil {
			p.watched = append(p.watched, f)
		}
	}
	return nil
}

// Waits are how often the threads of Watch have waited for a processor since they
// began, and for how long in all, by the kernel's schedstat: from when a thread
// could run until it did, be it that it was woken or that another took its place.
func (p *Process) Waits() (waited time.Duration, times uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text [64]byte
	for _, f := range p.watched {
		n, err := f.ReadAt(text[:], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			continue // it has ended
		}
		if fields := strings.Fields(string(text[:n])); len(fields) == 3 {
			ns, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers
			k, _ := strconv.ParseUint(fields[2], 10, 64)
			waited, times = waited+time.Duration(ns), times+k
		}
	}
	return waited, times
}
