package fio

import (
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
	"plimsoll.dev/plimsoll/internal/proc"
)

// Program describes fio on this machine.
func Program() proc.Program {
	return proc.Program{Name: "fio", Package: "fio", For: "io", Asks: "--version", Version: versionLine}
}

// Binary is an installed fio.
type Binary proc.Found

var versionLine = regexp.MustCompile(`(?m)^fio-(\d+\.\d+\S*)`)

// Find finds fio at a path, or with "" where it is installed.
func Find(ctx context.Context, path string) (Binary, error) {
	found, err := Program().Find(ctx, path)
	return Binary(found), err
}

// Check makes fio parse a job file without running it.
func (b Binary) Check(ctx context.Context, job string) error {
	cmd := exec.CommandContext(ctx, b.Path, "--parse-only", "-")
	cmd.Env, cmd.Stdin = proc.Environment(), strings.NewReader(job)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("fio refuses the job: %s", firstLine(string(text), err.Error()))
	}
	return nil
}

// firstLine returns the first line that is not empty, else another text.
func firstLine(text, other string) string {
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
	}
	return other
}

// Args returns the arguments of a fio that reads its job from standard input; every 0 reports at the end.
func Args(every time.Duration) []string {
	args := []string{"--output-format=json+", "-"}
	if every > 0 {
		args = append([]string{"--status-interval=" + strconv.FormatInt(every.Milliseconds(), 10) + "ms"}, args...)
	}
	return args
}

// Process is a started fio.
type Process struct {
	*proc.Process
	stdin io.WriteCloser
	tail  proc.Tail // of its other output

	mu      sync.Mutex
	reports []Report // not taken yet
	last    Report
	told    int   // number of reports
	err     error // of reading its output
	watched []*os.File
}

// Start starts a fio with Args, which waits for its job, as a user. start ties it to this program.
func Start(cmd *exec.Cmd, as proc.User, start func(*exec.Cmd, proc.How) (*proc.Process, error)) (*Process, error) {
	p := &Process{}
	var err error
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start fio: %w", err)
	}
	cmd.Stderr = &p.tail
	p.Process, err = start(cmd, proc.How{Name: "fio", As: &as, Output: p.read})
	return p, err
}

func (p *Process) read(out io.Reader) {
	err := ReadReports(out, p.add, func(line string) { fmt.Fprintln(&p.tail, line) })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = err
	for _, f := range p.watched {
		f.Close()
	}
	p.watched = nil
}

func (p *Process) add(r Report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports, p.last, p.told = append(p.reports, r), r, p.told+1
}

// Feed gives the process its job, which begins.
func (p *Process) Feed(job string) error {
	_, err := io.WriteString(p.stdin, job)
	if err = errors.Join(err, p.stdin.Close()); err != nil {
		return fmt.Errorf("give fio its job: %w", err)
	}
	return nil
}

// Take returns the reports since the last call.
func (p *Process) Take() []Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := p.reports
	p.reports = nil
	return list
}

// Last returns the last report and the number of reports.
func (p *Process) Last() (Report, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.told
}

// PID returns the process ID of fio itself: the started program may be one that starts fio.
func (p *Process) PID() int { return p.Inner() }

// Kinds of failure of a process.
const (
	FailedVerify = "verify"    // data differs from what was written
	FailedFull   = "disk full" // ENOSPC
	FailedKilled = "killed"    // by a signal that was not ours
	FailedEnded  = "ended"     // for another reason
)

// Failure returns the kind of failure of an ended process, or "", and details. asked says that we ended it.
func (p *Process) Failure(asked bool) (kind, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := ""
	for lines := p.tail.Lines(); len(lines) > 0 && text == ""; lines = lines[:len(lines)-1] {
		if l := lines[len(lines)-1]; !strings.Contains(l, "terminating on signal") && !strings.Contains(l, "will never start") {
			text = l
		}
	}
	status, _ := p.State().Sys().(syscall.WaitStatus)
	switch e := syscall.Errno(p.last.Errno); {
	case e == syscall.EILSEQ:
		return FailedVerify, cmp.Or(mismatch(p.tail.Lines()), text)
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

var mismatched = regexp.MustCompile(`at file (\S+) offset (\d+), length (\d+)`)

// mismatch says where data differs from what was written, by fio's lines, or "".
func mismatch(lines []string) string {
	blocks := make(map[string]bool)
	first, length := "", ""
	for _, line := range lines {
		if m := mismatched.FindStringSubmatch(line); m != nil {
			if blocks[m[1]+" "+m[2]] = true; first == "" {
				first, length = fmt.Sprintf("%s at offset %s", m[1], m[2]), m[3]
			}
		}
	}
	if first == "" {
		return ""
	}
	many, was := "1 block", "was"
	if n := len(blocks); n > 1 {
		many, was = fmt.Sprintf("%d blocks", n), "were"
	}
	return fmt.Sprintf("%s of %s bytes %s not what was written, the first in %s; fio looked no further", many, length, was, first)
}

// besideThreads counts a fio's first threads, which do no IO: the main one, and one that prints.
const besideThreads = 2

// Prefer raises the priority of a process that waits for its job, if allowed: at its start fio measures
// how exactly it wakes up. Watch takes that back for threads that do no IO.
func (p *Process) Prefer() { _ = cpu.PreferThread(p.PID(), true) } // without it Waits shows the delay

// Watch begins to measure how long threads that do IO wait for a processor, and may raise their priority.
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
			_ = cpu.PreferThread(tid, n >= besideThreads)
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

// Waits returns how long and how often the threads of Watch have waited for a processor, by schedstat.
func (p *Process) Waits() (waited time.Duration, times uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var text [64]byte
	for _, f := range p.watched {
		n, err := f.ReadAt(text[:], 0)
		if err != nil && !errors.Is(err, io.EOF) {
			continue // the thread has ended
		}
		if fields := strings.Fields(string(text[:n])); len(fields) == 3 {
			ns, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes numbers
			k, _ := strconv.ParseUint(fields[2], 10, 64)
			waited, times = waited+time.Duration(ns), times+k
		}
	}
	return waited, times
}
