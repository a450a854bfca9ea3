package haproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
)

// Binary is an HAProxy that is installed.
type Binary struct {
	Path    string
	Version string // such as 2.6.12-1+deb12u4
	TLS     string // the library that it runs with, "" for none
}

// NotFoundError says that there is no HAProxy.
type NotFoundError struct{ Path string }

// Error implements error.
func (e *NotFoundError) Error() string { return "there is no HAProxy: " + e.Path + " was not found" }

// Install is the command that installs HAProxy.
const Install = "apt-get install --no-install-recommends haproxy"

// places are where HAProxy lies besides the directories of commands.
func places() []string {
	return []string{"/usr/sbin/haproxy", "/usr/local/sbin/haproxy", "/usr/bin/haproxy", "/usr/local/bin/haproxy"}
}

// Find finds an HAProxy: at a path, or where they are installed for "". One
// that is not there is a *NotFoundError.
func Find(ctx context.Context, path string) (Binary, error) {
	if path == "" {
		path = "haproxy"
		if found := slices.IndexFunc(places(), func(p string) bool { _, err := exec.LookPath(p); return err == nil }); found >= 0 {
			path = places()[found]
		}
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return Binary{}, &NotFoundError{path}
	}
	text, err := exec.CommandContext(ctx, found, "-vv").Output()
	if err != nil {
		return Binary{}, fmt.Errorf("ask %s for its version: %w", found, err)
	}
	return parseVersion(found, string(text))
}

var (
	versionLine = regexp.MustCompile(`(?m)^HA-?Proxy version (\S+)`)
	tlsLine     = regexp.MustCompile(`(?m)^Running on (?:OpenSSL|SSL library) version : (.+)$`)
)

// parseVersion reads what haproxy -vv prints.
func parseVersion(path, text string) (Binary, error) {
	version := versionLine.FindStringSubmatch(text)
	if version == nil {
		return Binary{}, fmt.Errorf("%s does not tell a version of HAProxy: it is another program", path)
	}
	b := Binary{Path: path, Version: version[1]}
	if lib := tlsLine.FindStringSubmatch(text); lib != nil {
		b.TLS = strings.TrimSpace(lib[1])
	}
	return b, nil
}

// Process is an HAProxy that runs: after reloads, several processes.
type Process struct {
	binary Binary
	dir    string
	run    func(func() error) error
	stats  *Stats

	mu    sync.Mutex
	all   []*one  // that run; the last one serves
	ended float64 // CPU seconds of those that ran
}

type one struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// Check holds a configuration against HAProxy's own reading of it. The error
// holds what HAProxy says.
func Check(ctx context.Context, b Binary, dir string, c Config) error {
	if err := write(dir, c); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, b.Path, "-c", "-f", configFile)
	cmd.Dir = dir
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("HAProxy refuses its configuration: %s", said(string(text)))
	}
	return nil
}

// said are the lines in which HAProxy tells what is wrong.
func said(text string) string {
	var alerts []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "[ALERT]") {
			if _, rest, ok := strings.Cut(line, " : "); ok {
				line = rest
			}
			alerts = append(alerts, line)
		}
	}
	if len(alerts) == 0 {
		return strings.TrimSpace(text)
	}
	return strings.Join(alerts[:min(len(alerts), 3)], "; ")
}

// write writes the configuration's files.
func write(dir string, c Config) error {
	files, err := c.Files()
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o600); err != nil {
			return fmt.Errorf("write HAProxy's configuration: %w", err)
		}
	}
	return nil
}

// startBound is how long HAProxy may take until it serves: with thousands of
// routes that is seconds.
const startBound = 30 * time.Second

// Start starts HAProxy with a configuration in a directory of its own, and
// returns once it serves. Run calls a function that starts a process, on a thread
// with which HAProxy dies.
func Start(ctx context.Context, b Binary, dir string, c Config, run func(func() error) error) (*Process, error) {
	if err := write(dir, c); err != nil {
		return nil, err
	}
	p := &Process{binary: b, dir: dir, run: run, stats: &Stats{dir: dir}}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// start starts one more process with what the files say, and returns once it
// serves.
func (p *Process) start(ctx context.Context, more ...string) error {
	log, err := os.OpenFile(filepath.Join(p.dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("start HAProxy: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(p.binary.Path, append([]string{"-db", "-f", configFile}, more...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.run(cmd.Start); err != nil {
		return fmt.Errorf("start HAProxy: %w", err)
	}
	x := &one{cmd, make(chan struct{})}
	p.mu.Lock()
	p.all = append(p.all, x)
	p.mu.Unlock()
	go func() {
		_ = cmd.Wait() // its outcome is in ProcessState
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended += (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		p.all = slices.DeleteFunc(p.all, func(y *one) bool { return x == y })
		close(x.ended)
	}()
	ctx, cancel := context.WithTimeout(ctx, startBound)
	defer cancel()
	for {
		if info, err := p.stats.Info(); err == nil && info.PID == cmd.Process.Pid {
			return nil
		}
		select {
		case <-x.ended:
			text, _ := os.ReadFile(filepath.Join(p.dir, logFile))
			return fmt.Errorf("HAProxy ended at its start: %s", said(string(text)))
		case <-ctx.Done():
			return fmt.Errorf("HAProxy does not serve: %w", ctx.Err())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Reload has a new process take the listeners over with a configuration, as
// OpenShift's router does: connections stay with the old one until they end.
func (p *Process) Reload(ctx context.Context, c Config) error {
	if err := write(p.dir, c); err != nil {
		return err
	}
	more := []string{"-x", "./" + statsSocket, "-sf"}
	for _, pid := range p.PIDs() {
		more = append(more, strconv.Itoa(pid))
	}
	return p.start(ctx, more...)
}

// PIDs are the processes that run, the serving one last.
func (p *Process) PIDs() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []int
	for _, x := range p.all {
		list = append(list, x.cmd.Process.Pid)
	}
	return list
}

// Stats is the socket on which it tells of itself.
func (p *Process) Stats() *Stats { return p.stats }

// Usage is what all of its processes have used.
func (p *Process) Usage() (u telemetry.Usage, err error) {
	p.mu.Lock()
	u.CPUSeconds = p.ended
	p.mu.Unlock()
	for _, pid := range p.PIDs() {
		x, readErr := telemetry.ReadProcess(pid)
		if readErr != nil {
			err = readErr
			continue
		}
		u.CPUSeconds, u.RSSBytes = u.CPUSeconds+x.CPUSeconds, u.RSSBytes+x.RSSBytes
	}
	return u, err
}

// Thread is what one thread has had of the processors since its start.
type Thread struct {
	ID      int
	Ran     float64 // seconds
	Waited  float64 // seconds for which it could have run and did not
	Process int
}

// Threads are the threads of a process in their order, none where they cannot
// be read.
func Threads(pid int) []Thread {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var list []Thread
	for _, t := range tasks {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile(dir + "/" + t.Name() + "/schedstat")
		if err != nil {
			continue
		}
		fields := bytes.Fields(text)
		if len(fields) < 2 {
			continue
		}
		ran, _ := strconv.ParseFloat(string(fields[0]), 64)
		waited, _ := strconv.ParseFloat(string(fields[1]), 64)
		list = append(list, Thread{ID: id, Ran: ran / 1e9, Waited: waited / 1e9, Process: pid})
	}
	slices.SortFunc(list, func(a, b Thread) int { return a.ID - b.ID })
	return list
}

// Stop ends all processes and returns once they are gone.
func (p *Process) Stop() error {
	p.mu.Lock()
	all := slices.Clone(p.all)
	p.mu.Unlock()
	for _, x := range all {
		if err := x.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("end HAProxy: %w", err)
		}
		<-x.ended
	}
	return nil
}

// Stats asks an HAProxy on its socket.
type Stats struct{ dir string }

// askBound is how long an answer on the socket may take.
const askBound = 5 * time.Second

// Ask sends a command and returns what is answered.
func (s *Stats) Ask(command string) (string, error) {
	// The path of a socket may have a hundred bytes, that of the directory more.
	dir, err := os.Open(s.dir)
	if err != nil {
		return "", fmt.Errorf("ask HAProxy: %w", err)
	}
	defer dir.Close()
	conn, err := net.DialTimeout("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), statsSocket), askBound)
	if err != nil {
		return "", fmt.Errorf("ask HAProxy: %w", err)
	}
	defer conn.Close()
	defer time.AfterFunc(askBound, func() { conn.Close() }).Stop()
	if _, err := io.WriteString(conn, command+"\n"); err != nil {
		return "", fmt.Errorf("ask HAProxy %q: %w", command, err)
	}
	text, err := io.ReadAll(conn)
	if err != nil {
		return "", fmt.Errorf("ask HAProxy %q: %w", command, err)
	}
	return string(text), nil
}
