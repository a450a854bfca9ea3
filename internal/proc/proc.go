// Package proc runs programs: it finds one and its version, starts it tied to
// this process and placed, waits until it is ready, keeps the tail of what it
// says, reads what it uses, and ends it.
//
//	found, err := program.Find(ctx, "")
//	p, err := proc.Start(exec.Command(found.Path), proc.How{Name: "HAProxy", On: tie.Do})
//	err = p.Await(ctx, time.Second, func() error { ... })
//	used, err := p.Usage()
//	err = p.Stop()
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// How says how a program is started.
type How struct {
	// Name stands for the process in errors.
	Name string
	// On calls a function on a thread that the process dies with, and where it is
	// to run: Tie.Do, or what enters a namespace there. The process then begins at
	// normal priority, whatever this one has. Nil lets it outlive this one.
	On func(func() error) error
	// As is whom it runs as, nil for whom this program does. One that is given gets
	// no more rights either, whatever it starts: what the thread of On starts from
	// then on does not.
	As *User
	// CPUs are the processors that it is kept to, none for those of the thread.
	CPUs []int
	// Namespaces has the flags of new namespaces (CLONE_NEW...).
	Namespaces uintptr
	// Output reads what it writes to its standard output, to the end.
	Output func(io.Reader)
	// Log is a file that what it says is added to; "" keeps the last lines.
	Log string
}

// Environment returns the default environment of a program. It has none of this program's
// variables, which may hold secrets and the user's settings.
func Environment() []string {
	return []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
}

// Process is a program that was started.
type Process struct {
	name  string
	cmd   *exec.Cmd
	log   string
	tail  Tail
	ended chan struct{} // closed once it was waited for
	err   error         // how it ended, once it has
}

// Start starts a command, in a session of its own: the terminal's Ctrl-C is not
// for it. Its tail, or log, is of what it writes and the command leads nowhere.
func Start(cmd *exec.Cmd, how How) (*Process, error) {
	if cmd.Env == nil {
		cmd.Env = Environment()
	}
	p := &Process{name: how.Name, cmd: cmd, log: how.Log, ended: make(chan struct{})}
	var says io.Writer = &p.tail
	if how.Log != "" {
		log, err := os.OpenFile(how.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, p.failed("start", err)
		}
		defer log.Close()
		says = log
	}
	var out io.Reader
	switch {
	case how.Output != nil:
		var err error
		if out, err = cmd.StdoutPipe(); err != nil {
			return nil, p.failed("start", err)
		}
	case cmd.Stdout == nil:
		cmd.Stdout = says
	}
	if cmd.Stderr == nil {
		cmd.Stderr = says
	}
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = time.Second // what it has started may hold what it wrote to
	}
	if err := how.start(cmd); err != nil {
		return nil, p.failed("start", err)
	}
	go func() {
		if out != nil {
			how.Output(out)
		}
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *Process) failed(what string, err error) error {
	return fmt.Errorf("%s %s: %w", what, p.name, err)
}

// PID returns the number of the process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Inner returns the process ID of the program itself, if the started process only starts it,
// as nsenter does.
func (p *Process) Inner() int {
	pid := p.PID()
	for range 4 {
		below := children(pid)
		if len(below) == 0 {
			break
		}
		pid = below[0]
	}
	return pid
}

// children returns the processes that a process has started.
func children(pid int) (list []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is well formed
	for _, file := range files {
		text, _ := os.ReadFile(file) // its thread may have ended
		for word := range strings.FieldsSeq(string(text)) {
			if n, err := strconv.Atoi(word); err == nil {
				list = append(list, n)
			}
		}
	}
	return list
}

// Done closes once the process has ended and its output was read.
func (p *Process) Done() <-chan struct{} { return p.ended }

// Ended reports whether it has.
func (p *Process) Ended() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// Wait waits until it has; the error is that of exec.Cmd.Wait.
func (p *Process) Wait() error {
	<-p.ended
	return p.err
}

// State returns how it ended, once it has.
func (p *Process) State() *os.ProcessState { return p.cmd.ProcessState }

// Said returns the last lines of what it has said; see How.Log.
func (p *Process) Said() string {
	if p.log != "" {
		return LogTail(p.log, saidLines)
	}
	return strings.Join(p.tail.Lines(), "\n")
}

// saidLines is the number of log lines in an error.
const saidLines = 3

// EndedError says that a process ended before it was ready.
type EndedError struct {
	Name string
	Said string // the end of what it said
}

// Error implements error.
func (e *EndedError) Error() string { return e.Name + " ended at its start: " + e.Said }

// Await returns once the process is ready, which it is asked again and again for
// at most so long. One that ends before gives an *EndedError.
func (p *Process) Await(ctx context.Context, bound time.Duration, ready func() error) error {
	over := time.NewTimer(bound)
	defer over.Stop()
	// How long it takes is known to 1/64.
	for pause := 2 * time.Millisecond; ; pause += pause / 64 {
		err := ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.ended:
			return &EndedError{p.name, p.Said()}
		case <-ctx.Done():
			return p.failed("start", context.Cause(ctx))
		case <-over.C:
			return fmt.Errorf("%s is not ready after %v: %w: %s", p.name, bound, err, p.Said())
		case <-time.After(pause):
		}
	}
}

// Interrupt asks the program to end, as Ctrl-C does.
func (p *Process) Interrupt() {
	if !p.Ended() {
		signal(p.Inner(), syscall.SIGINT)
	}
}

// Kill kills the process, and does not wait.
func (p *Process) Kill() { _ = p.cmd.Process.Kill() } // it may have ended

// KillAll kills the process with all that it has started, and does not wait.
func (p *Process) KillAll() {
	if p.Ended() {
		return
	}
	all := []int{p.PID()}
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	for _, pid := range slices.Backward(all[1:]) {
		signal(pid, syscall.SIGKILL)
	}
	p.Kill()
}

// KillGroup kills what is left of the process's own group, also once the process itself has ended.
func (p *Process) KillGroup() { signal(-p.PID(), syscall.SIGKILL) }

// EndBound bounds the wait for a killed process: one that waits for a disk ends late.
const EndBound = 30 * time.Second

// Stop kills it and returns once it has ended.
func (p *Process) Stop() error {
	p.Kill()
	select {
	case <-p.ended:
		return nil
	case <-time.After(EndBound):
		return p.failed("end", errors.New("it was killed and does not end"))
	}
}

// Usage returns the use of the process so far; after its end, its whole use.
func (p *Process) Usage() (Usage, error) {
	if p.Ended() {
		return Usage{CPUSeconds: (p.State().UserTime() + p.State().SystemTime()).Seconds()}, nil
	}
	return Read(p.PID())
}

// A Tail keeps mostLines lines of at most mostBytes bytes.
const (
	mostLines = 20
	mostBytes = 16 << 10
)

// Tail keeps the last lines that are written to it.
type Tail struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (t *Tail) Write(text []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, text...)
	t.text = t.text[max(0, len(t.text)-mostBytes):]
	return len(text), nil
}

// Lines returns the lines with text, the last one last.
func (t *Tail) Lines() (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for line := range strings.Lines(string(t.text)) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines[max(0, len(lines)-mostLines):]
}

// LogTail returns the end of a program's log for an error message, or why it cannot be read;
// "" without a log.
func LogTail(file string, lines int) string {
	const most = 64 << 10
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return ""
		}
		return err.Error()
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err.Error()
	}
	data := make([]byte, min(info.Size(), most))
	n, err := f.ReadAt(data, info.Size()-int64(len(data)))
	if n < len(data) && err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
