package haproxy

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
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

	"plimsoll.dev/plimsoll/internal/proc"
)

// Binary describes an HAProxy that is installed.
type Binary struct {
	Path      string
	Version   string // such as 2.6.12-1+deb12u4
	TLS       string // the library that it runs with, "" for none
	Publishes bool   // by the exporter of metrics that it was built with
}

// Program names the HAProxy of this machine.
func Program() proc.Program {
	return proc.Program{Name: "haproxy", Package: "haproxy", For: "router", Asks: "-vv", Version: versionText}
}

// versionText reads what haproxy -vv prints, with the library that it runs with.
var versionText = regexp.MustCompile(`(?m)^HA-?Proxy version (\S+)(?:(?s:.*)^Running on (?:OpenSSL|SSL library) version : (.+)$)?`)

// Find finds an HAProxy: at a path, or where it is installed for "".
func Find(ctx context.Context, path string) (Binary, error) {
	found, err := Program().Find(ctx, path)
	b := Binary{Path: found.Path, Version: found.Version, TLS: found.Library}
	if err == nil {
		text, _ := exec.CommandContext(ctx, b.Path, "-vv").Output() // it has answered that already
		b.Publishes = strings.Contains(string(text), "prometheus-exporter")
	}
	return b, err
}

// Process holds an HAProxy that runs: after reloads, several processes.
type Process struct {
	binary Binary
	dir    string
	how    proc.How
	stats  *Stats

	mu    sync.Mutex
	all   []*proc.Process // that run; the last one serves
	last  *proc.Process   // that came to serve
	ended float64         // CPU seconds of those that ran
}

// Check holds a configuration against the rules and HAProxy's reading. Its error may be a *LineError.
func Check(ctx context.Context, b Binary, dir string, c Config, how proc.How) error {
	if err := write(dir, c, true); err != nil {
		return err
	}
	cmd := exec.Command(b.Path, "-c", "-f", configFile)
	cmd.Dir = dir
	how.Name = "HAProxy"
	p, err := proc.Start(cmd, how)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, p.Kill)()
	if err := p.Wait(); err != nil {
		return fmt.Errorf("HAProxy refuses its configuration: %s", said(p.Said()))
	}
	return nil
}

// Allowed holds a configuration against what one may hold. Its error is a *LineError.
func Allowed(c Config) error {
	files, err := c.files()
	if err != nil {
		return err
	}
	return c.allow(string(files[configFile]))
}

// said returns the lines in which HAProxy tells what is wrong.
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

// write writes the configuration's files, after a look at those of users' templates, and at ours if asked.
func write(dir string, c Config, look bool) error {
	files, err := c.files()
	if err == nil && (look || c.Template != "") {
		err = c.allow(string(files[configFile]))
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := proc.Least().Write(filepath.Join(dir, name), files[name]); err != nil {
			return fmt.Errorf("write HAProxy's configuration: %w", err)
		}
	}
	return nil
}

// Prepare makes the directory for sockets that HAProxy, as the user that it runs as, writes into.
func Prepare(dir string, as proc.User) error {
	run := filepath.Join(dir, sockets)
	if err := errors.Join(os.MkdirAll(run, 0o700), as.Give(run)); err != nil {
		return fmt.Errorf("make a directory for HAProxy's sockets: %w", err)
	}
	return nil
}

// startBound bounds the time until HAProxy serves: with thousands of routes that is seconds.
const startBound = 30 * time.Second

// Start starts HAProxy with a configuration in a directory of its own, and returns once it serves.
func Start(ctx context.Context, b Binary, dir string, c Config, how proc.How) (*Process, error) {
	if err := write(dir, c, false); err != nil {
		return nil, err
	}
	how.Name = "HAProxy"
	p := &Process{binary: b, dir: dir, how: how, stats: &Stats{dir: dir}}
	if err := p.start(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// start starts one more process with what the files say, and returns once it serves.
func (p *Process) start(ctx context.Context, more ...string) error {
	cmd := exec.Command(p.binary.Path, append([]string{"-db", "-f", configFile}, more...)...)
	cmd.Dir = p.dir
	x, err := proc.Start(cmd, p.how)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.all = append(p.all, x)
	p.mu.Unlock()
	err = x.Await(ctx, startBound, func() error {
		info, err := p.stats.Info()
		if err == nil && info.PID != x.PID() {
			err = errors.New("another process serves")
		}
		return err
	})
	if err == nil {
		p.mu.Lock()
		p.last = x
		p.mu.Unlock()
	}
	if ended, ok := errors.AsType[*proc.EndedError](err); ok {
		ended.Said = said(ended.Said)
	}
	return err
}

// Reload has a new process take the listeners over; the old one keeps its connections until they end.
func (p *Process) Reload(ctx context.Context, c Config) error {
	if err := write(p.dir, c, false); err != nil {
		return err
	}
	more := []string{"-x", "./" + statsSocket, "-sf"}
	for _, pid := range p.PIDs() {
		more = append(more, strconv.Itoa(pid))
	}
	return p.start(ctx, more...)
}

// running returns the processes that run, the serving one last; the mutex is held.
func (p *Process) running() []*proc.Process {
	p.all = slices.DeleteFunc(p.all, func(x *proc.Process) bool {
		if !x.Ended() {
			return false
		}
		used, _ := x.Usage() // of one that has ended it is known
		p.ended += used.CPUSeconds
		return true
	})
	return p.all
}

// PIDs returns the processes that run, the serving one last.
func (p *Process) PIDs() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var list []int
	for _, x := range p.running() {
		list = append(list, x.PID())
	}
	return list
}

// Died says how the process that serves has ended, "" while it runs.
func (p *Process) Died() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil || !p.last.Ended() {
		return ""
	}
	state := p.last.State()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return fmt.Sprintf("HAProxy ended by signal %d", status.Signal())
	}
	return fmt.Sprintf("HAProxy ended with exit code %d", state.ExitCode())
}

// Stats returns the socket on which it tells of itself.
func (p *Process) Stats() *Stats { return p.stats }

// Usage adds up what all of its processes have used.
func (p *Process) Usage() (u proc.Usage, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.running() {
		used, readErr := x.Usage()
		err = cmp.Or(err, readErr)
		u = u.Plus(used)
	}
	u.CPUSeconds += p.ended
	return u, err
}

// Stop ends all processes and returns once they are gone.
func (p *Process) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for _, x := range p.running() {
		err = cmp.Or(err, x.Stop())
	}
	return err
}

// Stats asks an HAProxy on its socket.
type Stats struct{ dir string }

const askBound = 5 * time.Second // for an answer on the socket
// Ask sends a command and returns what is answered.
func (s *Stats) Ask(command string) (string, error) {
	conn, err := s.dial(context.Background(), statsSocket)
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

func (s *Stats) dial(ctx context.Context, socket string) (net.Conn, error) {
	// The path of a socket may have a hundred bytes, that of the directory more.
	dir, err := os.Open(s.dir)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	dialer := net.Dialer{Timeout: askBound}
	return dialer.DialContext(ctx, "unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), socket))
}

// Metrics makes requests for its metrics on separate connections, which do not count for long.
func (s *Stats) Metrics() http.RoundTripper {
	return &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.dial(ctx, metricsSocket)
	}}
}

// MetricsURL returns the address of these: of many routes each one's figures would cost too much.
func MetricsURL(routes int) string {
	const most = 50
	address := "http://haproxy/metrics?scope=global&scope=frontend"
	if routes <= most {
		address += "&scope=backend&scope=server"
	}
	return address
}

// Info holds what HAProxy tells of itself as a whole.
type Info struct {
	PID    int
	Values map[string]float64 // all figures, by HAProxy's own names
}

// Info asks for the figures of the whole process.
func (s *Stats) Info() (Info, error) {
	text, err := s.Ask("show info")
	if err != nil {
		return Info{}, err
	}
	return parseInfo(text)
}

func parseInfo(text string) (Info, error) {
	i := Info{Values: make(map[string]float64)}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		if x, err := strconv.ParseFloat(value, 64); err == nil {
			i.Values[name] = x
		}
	}
	if i.PID = int(i.Values["Pid"]); i.PID == 0 {
		return i, fmt.Errorf("HAProxy does not tell its process: %q", text[:min(len(text), 80)])
	}
	return i, nil
}

// Totals hold the figures of all frontends, backends and servers.
type Totals struct {
	Queue    float64 // requests that wait for a place at a server
	Retries  float64 // of connections to servers, since the start
	Moved    float64 // to another server, likewise
	Denied   float64 // requests and answers, likewise
	Refused  float64 // requests that are none, likewise
	Unserved float64 // connections to servers that failed, likewise
	Down     float64 // servers that are down
	// What requests took lately on average, in seconds, over the servers that had any.
	QueueTime, ConnectTime, ServerTime, AllTime float64
}

// Totals asks for the figures of all parts and adds them up.
func (s *Stats) Totals() (Totals, error) {
	text, err := s.Ask("show stat")
	if err != nil {
		return Totals{}, err
	}
	return parseStat(text)
}

func parseStat(text string) (Totals, error) {
	var t Totals
	rows := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "# ")))
	rows.ReuseRecord, rows.FieldsPerRecord = true, -1
	header, err := rows.Read()
	if err != nil {
		return t, fmt.Errorf("read HAProxy's figures: %w", err)
	}
	column := make(map[string]int, len(header))
	for i, name := range header {
		column[name] = i
	}
	if _, ok := column["svname"]; !ok {
		return t, fmt.Errorf("read HAProxy's figures: there is no column svname")
	}
	served := 0.0
	for {
		row, err := rows.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return t, fmt.Errorf("read HAProxy's figures: %w", err)
		}
		text := func(name string) string {
			if i, ok := column[name]; ok && i < len(row) {
				return row[i]
			}
			return ""
		}
		value := func(name string) float64 {
			x, err := strconv.ParseFloat(text(name), 64)
			if err != nil {
				return 0
			}
			return x
		}
		switch text("svname") {
		case "FRONTEND":
			t.Denied += value("dreq") + value("dcon") + value("dses")
			t.Refused += value("ereq")
		case "BACKEND":
			t.Queue += value("qcur")
			t.Retries, t.Moved, t.Unserved = t.Retries+value("wretr"), t.Moved+value("wredis"), t.Unserved+value("econ")
			t.Denied += value("dresp")
		default:
			if strings.HasPrefix(text("status"), "DOWN") {
				t.Down++
			}
			if strings.HasPrefix(text("svname"), "fe_") {
				continue // a frontend of ours, behind another
			}
			// HAProxy averages over the last 1024 requests of each.
			n := min(value("stot"), 1024)
			served += n
			t.QueueTime, t.ConnectTime = t.QueueTime+n*value("qtime"), t.ConnectTime+n*value("ctime")
			t.ServerTime, t.AllTime = t.ServerTime+n*value("rtime"), t.AllTime+n*value("ttime")
		}
	}
	if served > 0 {
		for _, x := range []*float64{&t.QueueTime, &t.ConnectTime, &t.ServerTime, &t.AllTime} {
			*x /= served * 1000
		}
	}
	return t, nil
}
