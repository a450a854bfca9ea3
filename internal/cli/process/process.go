// Package process is what all commands share of the operating system and of the
// command line: standard streams, signals, environment, arguments, clusters,
// mistakes and exit codes. It is the only package besides main that touches the
// operating system's signals, environment and terminal.
package process

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"k8s.io/klog/v2"

	"plimsoll.dev/plimsoll/internal/cli/screen"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/lab/agent"
	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Component runs one part of the embedded control plane in this process until
// it ends, and returns its exit code. Arguments exclude the component's name.
type Component = func(args []string) int

// Process is all of the operating system that a command may touch, so that a
// test can run a whole command in memory.
type Process struct {
	Args       []string // without the program's name
	Name       string   // that it was called by, perhaps with a path
	Executable string   // path of this program, to start components with
	LookupEnv  func(key string) (value string, set bool)
	Stdin      io.Reader
	Stdout     io.Writer
	Signals    <-chan os.Signal // those that end the program, as they arrive
	// StdinTerminal and StderrTerminal report whether a person is at the other
	// end: without one nothing is asked and nothing is animated.
	StdinTerminal, StderrTerminal bool
	// Console is standard error, with the wall clock.
	screen.Console
	Components map[string]Component
	// Roles add to those of the agent, where this program acts as it.
	Roles []agent.Role
	// KubeletFaults returns what the kubelet's own validation refuses in a configuration; nil: it is not linked.
	KubeletFaults func(config []byte) []string
	// Secrets are values that are neither shown nor put on record.
	Secrets *redact.Secrets
	Random  io.Reader // a source of random bytes
	// Used reads what this process has used so far, by that clock; Prefer makes it
	// go first on the processors.
	Used   func() (record.Reading, error)
	Prefer func(exact bool) (how string, undo func())

	unread *atomic.Bool // see WatchPipes
}

// Env returns a variable of the environment, "" if it is not set.
func (p *Process) Env(key string) string {
	value, _ := p.LookupEnv(key)
	return value
}

// Quieten keeps the flags and the log of Kubernetes' packages away from commands. It is called once, before the first
// command: they belong to the whole program.
func Quieten() {
	pflag.CommandLine = pflag.NewFlagSet("plimsoll", pflag.ContinueOnError) // cobra gives its flags to each command
	klog.SetLogger(klog.Logger{})                                           // the client logs what it also returns
}

// OSProcess returns the process that the program really runs in.
func OSProcess() Process {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	guarded := len(os.Args) < 2 || os.Args[1] != ComponentCommand
	if guarded {
		// A component outlives the terminal of the command that started it, and
		// so does what nohup has started.
		if !signal.Ignored(syscall.SIGHUP) {
			signal.Notify(signals, syscall.SIGHUP)
		}
		// Who writes to a pipe that nobody reads would be killed, and leave what
		// it has made. The signal itself tells nothing: it also comes of a
		// connection that was closed.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	p := Process{
		Args:           os.Args[1:],
		Name:           os.Args[0],
		Executable:     executable,
		LookupEnv:      os.LookupEnv,
		Stdin:          os.Stdin,
		Stdout:         os.Stdout,
		Signals:        signals,
		StdinTerminal:  term.IsTerminal(int(os.Stdin.Fd())),
		StderrTerminal: term.IsTerminal(int(os.Stderr.Fd())),
		Console: screen.Console{
			Stderr:         os.Stderr,
			StdoutTerminal: term.IsTerminal(int(os.Stdout.Fd())),
			Width:          func() int { width, _ := terminalSize(); return width },
			Height:         func() int { _, height := terminalSize(); return height },
			Now:            time.Now,
		},
		Random: rand.Reader,
		Used: func() (record.Reading, error) {
			used, err := proc.Read(os.Getpid())
			return used.Sample(usage.SourceSelf), err
		},
		Prefer: cpu.Prefer,
	}
	if guarded {
		Quieten()
		p.WatchPipes(signals)
	}
	return p
}

// WatchPipes has the process end as by SIGPIPE, once, where what it prints is read no
// more.
func (p *Process) WatchPipes(signals chan<- os.Signal) {
	p.unread = new(atomic.Bool)
	closed := func() {
		if p.unread.CompareAndSwap(false, true) {
			signals <- syscall.SIGPIPE
		}
	}
	p.Stdout, p.Stderr = &pipe{p.Stdout, closed}, &pipe{p.Stderr, closed}
}

// Unread reports whether something that was printed was read no more.
func (p *Process) Unread() bool { return p.unread != nil && p.unread.Load() }

// pipe tells when what it writes is read no more.
type pipe struct {
	w      io.Writer
	closed func()
}

// Write implements io.Writer.
func (p *pipe) Write(data []byte) (int, error) {
	n, err := p.w.Write(data)
	if errors.Is(err, syscall.EPIPE) {
		p.closed()
	}
	return n, err
}

// terminalSize returns the size of the terminal of standard error, or of standard
// output: 80 by 24 for one that does not say, 0 for none.
func terminalSize() (width, height int) {
	for _, file := range []*os.File{os.Stderr, os.Stdout} {
		width, height, err := term.GetSize(int(file.Fd()))
		switch {
		case err != nil:
			continue
		case width == 0 || height == 0:
			return noTerminalWidth, 24
		}
		return width, height
	}
	return 0, 0
}

// noTerminalWidth is the width of tables without a terminal.
const noTerminalWidth = 80

// Text returns standard output for results. Tables on it are at most as wide as the terminal.
func (p *Process) Text() text.Terminal {
	columns := noTerminalWidth
	if p.StdoutTerminal && p.Width != nil {
		columns = cmp.Or(p.Width(), columns)
	}
	return text.Terminal{Writer: p.Stdout, Columns: columns}
}

// Animate lets standard error be drawn on, if it is a terminal that can.
func (p *Process) Animate() {
	if kind := p.Env("TERM"); !p.StderrTerminal || kind == "" || kind == "dumb" {
		return
	}
	p.Draw(p.Env("NO_COLOR") == "")
}

// Guard lets nothing secret be shown, and nothing that steers the terminal, until
// the returned function is called.
func (p *Process) Guard() (end func()) {
	if p.Secrets == nil {
		p.Secrets = new(redact.Secrets)
	}
	out, err := &redact.Screen{W: p.Stdout, Secrets: p.Secrets}, &redact.Screen{W: p.Stderr, Secrets: p.Secrets}
	p.Stdout, p.Stderr = out, err
	return func() { _, _ = out.Flush(), err.Flush() }
}

// Raw returns standard output for binary data, without the prefix of Guard.
func (p *Process) Raw() io.Writer {
	if guarded, ok := p.Stdout.(*redact.Screen); ok {
		return guarded.W
	}
	return p.Stdout
}

// StateDir returns the directory of labs: $XDG_STATE_HOME/plimsoll, or
// ~/.local/state/plimsoll.
func (p *Process) StateDir() (string, error) {
	if dir := p.Env("XDG_STATE_HOME"); dir != "" {
		if !filepath.IsAbs(dir) {
			return "", Usagef("give an absolute path, or unset it for ~/.local/state",
				"XDG_STATE_HOME is the relative path %q", dir)
		}
		return filepath.Join(dir, "plimsoll"), nil
	}
	home := cmp.Or(p.Env("HOME"), p.Env("USERPROFILE")) // Windows has the latter
	if home == "" {
		return "", Usagef("set XDG_STATE_HOME to a directory of yours", "neither HOME nor XDG_STATE_HOME is set")
	}
	return filepath.Join(home, ".local", "state", "plimsoll"), nil
}

// Printf prints a result on standard output.
func (p *Process) Printf(format string, args ...any) { fmt.Fprintf(p.Stdout, format, args...) }

// RandomSeed draws a seed that is not 0.
func (p *Process) RandomSeed() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(p.Random, b[:]); err != nil {
		return 0, fmt.Errorf("draw a seed: %w", err)
	}
	// 53 bits survive every reader of JSON and YAML.
	return binary.BigEndian.Uint64(b[:])>>11 | 1, nil
}

// Names draws the names of a run, by which what it makes is known. The long one
// is a UUID of version 4 (RFC 9562).
func (p *Process) Names() (id, long string, err error) {
	var u [16]byte
	if _, err := io.ReadFull(p.Random, u[:]); err != nil {
		return "", "", fmt.Errorf("draw the run's name: %w", err)
	}
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return hex.EncodeToString(u[:4]), fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}

// Version is the program's version.
const Version = "0.1.0"

// kubernetesVersion names the version of the compiled control plane and client.
const kubernetesVersion = "1.36.3"

// Build returns the facts of this build, as far as the compiler knew them.
func Build() record.Build {
	b := record.Build{Version: Version, Go: runtime.Version(), ControlPlane: kubernetesVersion, Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Date = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// ComponentCommand begins the command line of a part of the control plane.
const ComponentCommand = "component"
