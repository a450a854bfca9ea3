package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/ring"
)

// Program is the built program as one test uses it.
type Program struct {
	// State is its XDG_STATE_HOME, Dir the test's own directory, which commands
	// run in.
	State, Dir string
	// Lab is the name of the shared lab that the test has, and Kubeconfig the
	// path of that lab's kubeconfig; "" without one.
	Lab, Kubeconfig string
	// Env has further variables of its commands' environment.
	Env      []string
	binary   string
	suite    *Suite
	mu       sync.Mutex
	commands strings.Builder // that were run, with what they printed
	kept     bool            // what it left, since its test failed
}

// Outcome is the output of a command that has ended. Code is -1 if a signal ended it.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Command returns a command that has not been started. It knows no cluster from its
// environment, and is a session of its own: where the kernel shares the processors
// among sessions first, it need not share those of the tests and compilers.
func (p *Program) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.binary, args...)
	cmd.Dir = p.Dir
	cmd.Env = append(append(cmd.Environ(), "XDG_STATE_HOME="+p.State, "KUBECONFIG=/nonexistent/kubeconfig"), p.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd
}

// goFirst lets the session of a command go before those of the labs and tests
// beside it, as far as this user may: the program does so within its session, and
// where the kernel shares the processors among sessions that is not enough.
func goFirst(cmd *exec.Cmd) {
	os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", cmd.Process.Pid), []byte("-10"), 0)
}

// Run runs a command to its end. In make test-long, where tests run beside each other, it skips a test whose run is
// invalid because of these.
func (p *Program) Run(t testing.TB, args ...string) Outcome {
	t.Helper()
	cmd := p.Command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil {
		goFirst(cmd)
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return p.ended(t, args, Outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()})
}

// ended notes what a command did, and skips a long test whose run says that other tests disturbed it.
func (p *Program) ended(t testing.TB, args []string, got Outcome) Outcome {
	t.Helper()
	p.note(args, got)
	if why, is := beside(got.Stdout); is && p.suite.getenv(ring.Variable) != "" && p.suite.getenv(MeasureVariable) == "" {
		t.Skip("other tests kept the processors busy, and the run says so: ", why)
	}
	return got
}

// beside returns the line of a report by which a step is invalid for what other programs used.
func beside(report string) (line string, is bool) {
	for line := range strings.Lines(report) {
		if at := strings.Index(line, "is invalid: other programs used "); at >= 0 && strings.Contains(line, "this says nothing about the target") {
			return strings.TrimSpace(line[at:]), true
		}
	}
	return "", false
}

// RunTo runs an experiment to its end, whose record goes to the directory out.
func (p *Program) RunTo(t testing.TB, out string, args ...string) Outcome {
	t.Helper()
	return p.Run(t, append(args, "--out", out)...)
}

// note puts down a command that has ended, for the case that the test fails.
func (p *Program) note(args []string, got Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(&p.commands, "$ plimsoll %s\nexit code %d\n%s%s\n", strings.Join(args, " "), got.Code, got.Stdout, got.Stderr)
}

// Result returns the result of the run that was recorded in a directory.
func (p *Program) Result(t testing.TB, dir string) result.Result {
	t.Helper()
	return read[result.Result](t, p, dir, record.ResultFile)
}

// Environment returns the environment of the run that was recorded in a directory.
func (p *Program) Environment(t testing.TB, dir string) record.Environment {
	t.Helper()
	return read[record.Environment](t, p, dir, record.EnvironmentFile)
}

func read[T any](t testing.TB, p *Program, dir, file string) (v T) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(p.Dir, dir, file))
	if err == nil {
		err = json.Unmarshal(data, &v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// Count counts the events that a history holds, be it still being written. It
// is 0 where there is no history yet.
func (p *Program) Count(dir string, which func(record.Event) bool) (n int) {
	record.ReadHistory(record.Dir(filepath.Join(p.Dir, dir)), func(e record.Event) error {
		if which(e) {
			n++
		}
		return nil
	})
	return n
}

// Requested reports whether at least n requests are on record.
func (p *Program) Requested(dir string, n int) bool {
	return p.Count(dir, func(e record.Event) bool { return e.Body.Kind() == record.KindSlot }) >= n
}

// Leftover names something that a run has left. Alive: the run may still go on. Target is the
// kind of a target of this machine, "" in a cluster.
type Leftover struct {
	Run, Target string
	Things      []string
	Alive       bool
}

// Leftovers returns what 'plimsoll clean' finds in the shared lab's cluster.
func (p *Program) Leftovers(t testing.TB) (list []Leftover) {
	t.Helper()
	for _, l := range p.Cleaned(t, "--lab", p.Lab, "--dry-run") {
		if l.Target == "" {
			list = append(list, l)
		}
	}
	return list
}

// Cleaned returns what 'plimsoll clean' removes, or would, and what it leaves alone.
func (p *Program) Cleaned(t testing.TB, args ...string) []Leftover {
	t.Helper()
	got := p.Run(t, append([]string{"clean", "-o", "json"}, args...)...)
	var cleaned struct{ Removed, Left []Leftover }
	if err := json.Unmarshal([]byte(got.Stdout), &cleaned); err != nil || got.Code != 0 {
		t.Fatalf("clean %q: exit code %d, %v\n%s%s", args, got.Code, err, got.Stdout, got.Stderr)
	}
	return append(cleaned.Removed, cleaned.Left...)
}

// LeavesNoProcess fails the test if a process of this program's labs is alive
// ten seconds from now.
func (p *Program) LeavesNoProcess(t testing.TB) {
	t.Helper()
	gone(t, "processes", p.Processes)
}

// gone fails the test if anything of what found lists is left ten seconds from now.
func gone(t testing.TB, what string, found func() []string) {
	t.Helper()
	left := found()
	for range 100 {
		if len(left) == 0 {
			return
		}
		time.Sleep(100 * time.Millisecond)
		left = found()
	}
	t.Errorf("%s that were left:\n%s", what, strings.Join(left, "\n"))
}

// LeavesNoLab fails the test if there is a lab, a process or a file of one.
func (p *Program) LeavesNoLab(t testing.TB) {
	t.Helper()
	p.LeavesNoProcess(t)
	got := p.Run(t, "lab", "list", "-o", "json")
	if strings.TrimSpace(got.Stdout) != "[]" {
		t.Errorf("labs that were left: %s%s", got.Stdout, got.Stderr)
	}
	for _, file := range p.labFiles() {
		t.Errorf("a file that was left: %s", file)
	}
}

// LeavesNothing fails the test if a process, a mount or a directory of a run is left
// ten seconds from now.
func (p *Program) LeavesNothing(t testing.TB) {
	t.Helper()
	gone(t, "traces", p.traces)
}

// traces lists the processes that name the program's directories in their command
// line, environment or working directory, the mounts below these, and the
// directories that runs work in.
func (p *Program) traces() (list []string) {
	of := func(text string) bool {
		return strings.Contains(text, p.State+"/") || strings.Contains(text, p.Dir+"/")
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		line, _ := os.ReadFile(process + "/cmdline") // a process may just have ended
		environment, _ := os.ReadFile(process + "/environ")
		dir, _ := os.Readlink(process + "/cwd")
		if of(string(line)) || of(string(environment)) || of(dir+"/") {
			list = append(list, fmt.Sprintf("process %s: %s", filepath.Base(process), bytes.ReplaceAll(line[:min(len(line), 100)], []byte{0}, []byte(" "))))
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if of(line) {
			list = append(list, "mount "+strings.TrimSpace(line))
		}
	}
	for _, kind := range []string{"labs", "routers", "volumes", "io", "networks"} {
		rooms, _ := filepath.Glob(filepath.Join(p.State, "plimsoll", kind, "*"))
		list = append(list, rooms...)
	}
	return list
}

// Processes returns the processes of this program's labs, each with its place below /proc and its command line.
func (p *Program) Processes() (list []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(p.State+"/")) && bytes.Contains(line, []byte("component")) {
			list = append(list, file+" "+string(bytes.ReplaceAll(line[:min(len(line), 100)], []byte{0}, []byte(" "))))
		}
	}
	return list
}

// labFiles returns the files of this program's labs.
func (p *Program) labFiles() (list []string) {
	filepath.WalkDir(p.State, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "/labs/") {
			list = append(list, path)
		}
		return nil
	})
	return list
}

// Started is a command under way.
type Started struct {
	t              testing.TB
	program        *Program
	cmd            *exec.Cmd
	stdout, stderr buffer
	ended          chan struct{} // closed when it has ended
}

// Start starts a command. At the end of the test it is killed, with what it
// started in its process group.
func (p *Program) Start(t testing.TB, args ...string) *Started {
	t.Helper()
	s := &Started{t: t, program: p, cmd: p.Command(args...), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	goFirst(s.cmd)
	go func() { defer close(s.ended); s.cmd.Wait() }()
	t.Cleanup(func() { syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL); <-s.ended })
	return s
}

// Ended reports whether the command has ended.
func (s *Started) Ended() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// Stderr returns the command's messages so far.
func (s *Started) Stderr() string { return s.stderr.String() }

// Stdout returns the command's output so far.
func (s *Started) Stdout() string { return s.stdout.String() }

// Signal sends the command a signal.
func (s *Started) Signal(signal os.Signal) { s.cmd.Process.Signal(signal) }

// Wait waits until the command has ended.
func (s *Started) Wait() Outcome {
	<-s.ended
	return s.program.ended(s.t, s.cmd.Args[1:], Outcome{s.cmd.ProcessState.ExitCode(), s.stdout.String(), s.stderr.String()})
}

// Kill ends the command as SIGKILL does, and nothing that it started.
func (s *Started) Kill() Outcome {
	s.Signal(os.Kill)
	return s.Wait()
}

// buffer is a bytes.Buffer that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	held bytes.Buffer
}

func (b *buffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held.Write(data)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held.String()
}

// Await waits until a condition holds, and ends the test if it does not within
// two minutes.
func Await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	const poll, most = 50 * time.Millisecond, 2 * time.Minute
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	for !condition() {
		select {
		case <-timeout.C:
			t.Fatalf("waited %v for %s", most, what)
		case <-time.After(poll):
		}
	}
}
