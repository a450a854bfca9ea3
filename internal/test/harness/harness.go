// Package harness runs the built program in whole-program tests: commands with
// what they print and their exit code, commands under way, labs that tests
// share, and the check that nothing is left behind. Only tests import it.
//
// A test package has one Suite, made with os.Getenv, and ends with it:
//
//	var suite = harness.New(os.Getenv)
//
//	func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }
//
// A test then takes the program with a state directory of its own
// (Suite.Program), for what labs do, or one with a lab that tests share
// (Suite.Lab), for what is done to a lab. Such a test runs in make test-long
// alone: the program with its real parts needs time that a busy machine may not
// have. The smoke test of a real part (Suite.Smoke) runs in make test too. Tests
// that mostly wait are parallel.
// Those whose verdict depends on how long something takes begin with
// Suite.Measures, and have the machine for themselves. No test runs anything
// again because it failed.
package harness

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/test/ring"
)

// BinaryVariable names the environment variable that holds the path of the built
// program.
const BinaryVariable = "PLIMSOLL_BINARY"

// Suite is the whole-program tests of one test binary, with the labs that they
// share. Its methods may be called by several tests at once.
type Suite struct {
	getenv func(string) string
	mu     sync.Mutex
	shapes map[string]*shape // by the arguments that make their labs
	smoke  map[string]bool   // names of the tests that make test runs
}

// New makes a suite. It asks for its variables when a test needs them, so that
// a cached result of the test ends with their values.
func New(getenv func(string) string) *Suite {
	return &Suite{getenv: getenv, shapes: make(map[string]*shape), smoke: make(map[string]bool)}
}

// Smoke lets a test take the program in make test. There is one such test for each
// real part: it starts the part, loads it a little, holds the shape of the result,
// and that nothing is left. It asserts no time, no rate, no order among things that
// run at once, and nothing that a busy machine changes.
func (s *Suite) Smoke(t testing.TB) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.smoke[t.Name()] = true
}

// real skips a test that takes the program, unless it is a smoke test or make
// test-long runs. Benchmarks run where they are asked for.
func (s *Suite) real(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	smoke := s.smoke[t.Name()]
	s.mu.Unlock()
	if _, test := t.(*testing.T); test && !smoke {
		s.Long(t, "it runs the program with real parts")
	}
}

// Binary returns the path of the built program. It skips the test without one, and
// in make test every test that is not a smoke test.
func (s *Suite) Binary(t testing.TB) string {
	t.Helper()
	s.real(t)
	binary := s.getenv(BinaryVariable)
	if binary == "" {
		t.Skipf("needs the program: make build, and %s=$PWD/bin/plimsoll", BinaryVariable)
	}
	// A look at the file makes a cached result end with the file, too.
	if _, err := os.Stat(binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

// Long skips the test unless make test-long runs; see ring.Long.
func (s *Suite) Long(t testing.TB, why string) {
	t.Helper()
	ring.Long(t, why)
}

// Able skips the test where this machine lacks something that it needs, and says
// what installs it.
func Able(t testing.TB, err error) {
	t.Helper()
	if missing, ok := errors.AsType[*proc.MissingError](err); ok {
		t.Skipf("%v: %s", err, missing.Remedy())
	}
	if err != nil {
		t.Skip(err)
	}
}

// Size returns short in make test, and long in make test-long; see ring.Size.
func (s *Suite) Size(short, long int) int { return ring.Size(short, long) }

// Program returns the program with a state directory of the test's own, in which at
// the end of the test no lab's process may be alive; labs are taken down.
func (s *Suite) Program(t testing.TB) *Program {
	t.Helper()
	s.Binary(t) // without one no directory is made
	state := newState(t)
	p := s.newProgram(t, state)
	t.Cleanup(func() {
		p.Run(t, "lab", "down", "--all")
		p.LeavesNoProcess(t)
		p.keep(t)
		os.RemoveAll(state)
	})
	t.Cleanup(func() { p.keep(t) }) // before the labs go, with their logs
	return p
}

func (s *Suite) newProgram(t testing.TB, state string) *Program {
	t.Helper()
	return &Program{binary: s.Binary(t), suite: s, State: state, Dir: t.TempDir()}
}

// newState makes a state directory, of a short path: sockets have a bound.
func newState(t testing.TB) string {
	t.Helper()
	state, err := os.MkdirTemp("", "pl")
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// shape is the labs of one shape. Each is had by one test at a time.
type shape struct {
	args  []string
	free  chan *sharedLab // those that no test has
	more  chan struct{}   // one for each that may still be made
	every []*sharedLab
}

// sharedLab is a lab that tests share.
type sharedLab struct{ state, kubeconfig string }

// labsOfAShape bounds the labs of one shape, so that parallel tests need not wait for each
// other; labName is the name of each, in a state directory of its own.
const (
	labsOfAShape = 2
	labName      = "l"
)

// Lab returns the program with a lab that was made by 'lab up' with these arguments.
// Tests that ask for the same share such labs for the test binary's life; a
// test has its lab for itself until its end. It must leave no run's objects in
// the cluster, and may leave others under names that no other test uses.
func (s *Suite) Lab(t testing.TB, args ...string) *Program {
	t.Helper()
	s.Binary(t)
	of := s.shape(args)
	var l *sharedLab
	select {
	case l = <-of.free:
	default:
		select {
		case l = <-of.free:
		case <-of.more:
			l = s.up(t, of)
		}
	}
	t.Cleanup(func() { of.free <- l })
	p := s.newProgram(t, l.state)
	p.Lab, p.Kubeconfig = labName, l.kubeconfig
	t.Cleanup(func() {
		if left := p.Leftovers(t); len(left) > 0 {
			t.Errorf("left in the shared lab: %+v", left)
			p.Run(t, "clean", "--lab", p.Lab, "--force")
		}
		p.keep(t)
	})
	return p
}

// up makes a lab. Where it does not come up, the next test may try again.
func (s *Suite) up(t testing.TB, of *shape) *sharedLab {
	t.Helper()
	p := s.newProgram(t, newState(t))
	got := p.Run(t, append([]string{"lab", "up", labName}, of.args...)...)
	if got.Code != 0 {
		of.more <- struct{}{}
		os.RemoveAll(p.State)
		t.Fatalf("lab up %s: exit code %d\n%s", strings.Join(of.args, " "), got.Code, got.Stderr)
	}
	l := &sharedLab{p.State, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", labName).Stdout)}
	s.mu.Lock()
	defer s.mu.Unlock()
	of.every = append(of.every, l)
	return l
}

// shape finds the labs that these arguments make.
func (s *Suite) shape(args []string) *shape {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.Join(args, " ")
	if s.shapes[name] == nil {
		most := labsOfAShape
		if slices.Contains(args, "--real-node") {
			most = 1 // each takes many of the 128 inotify instances of a user
		}
		of := &shape{args: args, free: make(chan *sharedLab, most), more: make(chan struct{}, most)}
		for range most {
			of.more <- struct{}{}
		}
		s.shapes[name] = of
	}
	return s.shapes[name]
}

// Run runs the tests of a package and then removes the labs that they shared.
// It returns the exit code, which is not 0 if one of these leaves something:
// that is written to stderr. Until the process ends no test binary measures
// beside it, and none at all runs beside one that measures.
func (s *Suite) Run(m *testing.M, stderr io.Writer) int {
	if err := lockMachine(s.getenv(MeasureVariable) != ""); err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	defaultSignals()
	code := m.Run()
	for _, of := range s.shapes {
		for _, l := range of.every {
			p := Program{binary: s.getenv(BinaryVariable), State: l.state, Dir: l.state}
			out, err := p.Command("lab", "down", "--all").CombinedOutput()
			left := append(p.Processes(), p.labFiles()...)
			if err != nil || len(left) > 0 {
				fmt.Fprintf(stderr, "the shared lab %q: %v\n%s%s\n", of.args, err, out, strings.Join(left, "\n"))
				code = 1
			}
			os.RemoveAll(l.state)
		}
	}
	return code
}

// defaultSignals lets what tests start begin with what signals do by default.
// What ignores a signal hands that down, as nohup does to all below it; what
// takes it does not, and these tests still do nothing at it.
func defaultSignals() {
	for _, inherited := range []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE} {
		if signal.Ignored(inherited) {
			signal.Notify(make(chan os.Signal, 1), inherited)
		}
	}
}

// KeepVariable names the environment variable that holds the directory in which
// tests that fail keep what shows why; "" for plimsoll-failed in the system's
// directory of temporary files.
const KeepVariable = "PLIMSOLL_KEEP"

// Files that a test which failed keeps beside what was in its directory.
const (
	commandsFile = "commands.txt" // its commands, with what they printed
	againFile    = "again.txt"    // the command that runs the test again
)

// keep copies what a test that failed has left, and says where it is: the
// directory that its commands ran in, which holds their records, the logs of its
// labs, and its commands. It does nothing for a test that has not failed.
func (p *Program) keep(t testing.TB) {
	t.Helper()
	if !t.Failed() || p.kept {
		return
	}
	p.kept = true
	p.mu.Lock()
	commands := p.commands.String()
	p.mu.Unlock()
	to, err := p.suite.Keep(t, p.Dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(to, commandsFile), []byte(commands), 0o644)
	}
	if err == nil {
		err = copyFiles(filepath.Join(to, "state"), p.State, func(path string) bool { return strings.HasSuffix(path, ".log") })
	}
	if err != nil {
		t.Logf("what it left is not kept whole: %v", err)
	}
}

// Keep copies a directory of a test that failed to where such are kept, says
// where that is and how the test is run again, and returns it.
func (s *Suite) Keep(t testing.TB, dir string) (string, error) {
	t.Helper()
	root := s.getenv(KeepVariable)
	if root == "" {
		root = filepath.Join(os.TempDir(), "plimsoll-failed")
	}
	to := filepath.Join(root, strings.NewReplacer("/", "-", " ", "_").Replace(t.Name()))
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	again := s.again(t)
	t.Logf("what it left is in %s; to run it again: %s", to, again)
	if err := os.WriteFile(filepath.Join(to, againFile), []byte(again+"\n"), 0o644); err != nil {
		return "", err
	}
	return to, copyFiles(filepath.Join(to, "dir"), dir, func(string) bool { return true })
}

// again returns the command that runs a test by itself, from the repository's root.
func (s *Suite) again(t testing.TB) string {
	pkg, _ := os.Getwd() // go test runs each package's tests in its directory
	if at := strings.LastIndex(pkg, "/internal/"); at >= 0 {
		pkg = "." + pkg[at:]
	}
	line := ""
	for _, name := range []string{ring.Variable, MeasureVariable} {
		if s.getenv(name) != "" {
			line += name + "=1 "
		}
	}
	root, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("make build && %s%s=$PWD/bin/plimsoll go test -count=1 -run '^%s$' %s", line, BinaryVariable, root, pkg)
}

// copyFiles copies the regular files of a directory that which accepts. It skips
// those that go meanwhile.
func copyFiles(to, from string, which func(path string) bool) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil || !d.Type().IsRegular() || !which(path) {
			return err
		}
		data, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			return nil
		}
		if err != nil {
			return err
		}
		file := filepath.Join(to, strings.TrimPrefix(path, from))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, data, 0o644)
	})
}
