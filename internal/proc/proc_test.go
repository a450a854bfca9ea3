package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/test/ring"
)

// sh starts a shell that dies with the test.
func sh(t *testing.T, how How, script string) *Process {
	t.Helper()
	tie := NewTie()
	t.Cleanup(tie.Close)
	if how.On == nil {
		how.On = tie.Do
	}
	p, err := Start(exec.Command("sh", "-c", script), how)
	if err != nil {
		t.Skip("no shell: ", err)
	}
	t.Cleanup(p.KillAll)
	return p
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func TestWhatEndsIsReported(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for _, c := range []struct {
		why, script string
		log         string
		want        string
	}{
		{"its last lines, of either output", "echo one; echo two >&2; exit 3", "", "one\ntwo"},
		{"the end of its log", "for i in 1 2 3 4 5; do echo $i; done", log, "3\n4\n5"},
		{"nothing was said", "exit 1", "", ""},
		{"a line that has no end", "printf unfinished", "", "unfinished"},
	} {
		p := sh(t, How{Name: "it", Log: c.log}, c.script)
		err := p.Await(t.Context(), 20*time.Second, func() error { return errors.New("not yet") })
		ended, ok := errors.AsType[*EndedError](err)
		if !ok || ended.Said != c.want {
			t.Errorf("%s: %v", c.why, err)
		}
	}
}

func TestAwait(t *testing.T) {
	asked := 0
	p := sh(t, How{Name: "it"}, "exec sleep 60")
	if err := p.Await(t.Context(), time.Minute, func() error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || asked != 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	no := func() error { return errors.New("no") }
	if err := p.Await(t.Context(), 10*time.Millisecond, no); err == nil || !strings.Contains(err.Error(), "it is not ready after 10ms: no") {
		t.Errorf("one that is never ready: %v", err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := p.Await(ctx, time.Minute, no); !errors.Is(err, why) {
		t.Errorf("the user wants no more waiting: %v", err)
	}
	if err := p.Stop(); err != nil || !p.Ended() || p.State().Success() {
		t.Errorf("it was stopped: %v, %v", err, p.State())
	}
}

// What is tied dies with the thread that started it, also where nobody waits: on
// whichever thread the Tie's goroutine began, the process's first one included,
// which Go never ends.
func TestATieIsDeadly(t *testing.T) {
	for range 20 {
		tie := NewTie()
		if err := tie.Do(func() error {
			if syscall.Gettid() == syscall.Getpid() {
				return errors.New("it runs on the process's first thread")
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		p := sh(t, How{Name: "it", On: tie.Do}, "exec sleep 60")
		tie.Close()
		if p.Wait() == nil || p.State().Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("it ended so: %v", p.State())
		}
	}
}

// Nothing of what a process has started lives on to say so, once all of it may.
func TestKillAllTakesWhatItStarted(t *testing.T) {
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Skip("no named pipes: ", err)
	}
	inner, said := make(chan int), make(chan string)
	lives := "read x < " + gate + "; echo lives"
	p := sh(t, How{Name: "it", Output: func(out io.Reader) {
		lines := bufio.NewReader(out)
		line, _ := lines.ReadString('\n')
		pid, _ := strconv.Atoi(strings.TrimSpace(line))
		inner <- pid
		rest, _ := io.ReadAll(lines)
		said <- string(rest)
	}}, "sh -c 'sh -c \"echo \\$\\$; "+lives+"\" & "+lives+"' & "+lives)
	if pid := <-inner; p.Inner() != pid {
		t.Errorf("the innermost is %d, want %d", p.Inner(), pid)
	}
	p.KillAll()
	open, err := os.OpenFile(gate, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := open.WriteString("\n\n\n"); err != nil {
		t.Fatal(err)
	}
	if rest := <-said; rest != "" {
		t.Errorf("after the kill: %q", rest)
	}
	p.Wait()
}

// Where it runs and what it used is what was asked for.
func TestPlaceAndUsage(t *testing.T) {
	ring.Long(t, "it waits for processes to end")
	p := sh(t, How{Name: "it", CPUs: []int{0}}, "while :; do :; done")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if list := regexp.MustCompile(`Cpus_allowed_list:\s*(\S+)`).FindStringSubmatch(string(status)); err != nil || list == nil || list[1] != "0" {
		t.Errorf("it may use the processors %q, %v", list, err)
	}
	eventually(t, "it to use a processor", func() bool { u, err := p.Usage(); return err == nil && u.CPUSeconds > 0.02 && u.RSSBytes > 0 })
	if threads := Threads(p.PID()); len(threads) != 1 || threads[0].ID != p.PID() || threads[0].Ran <= 0 {
		t.Errorf("its threads: %+v", threads)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	if u, err := p.Usage(); err != nil || u.CPUSeconds < 0.02 {
		t.Errorf("once it has ended: %+v, %v", u, err)
	}
	sum := Usage{CPUSeconds: 1, RSSBytes: 2, PeakBytes: 9}.Plus(Usage{CPUSeconds: 2, RSSBytes: 3, ShareBytes: 4, Threads: 5, Handles: 6})
	if want := (Usage{CPUSeconds: 3, RSSBytes: 5, ShareBytes: 4, Threads: 5, Handles: 6}); sum != want {
		t.Errorf("two together: %+v", sum)
	}
}

func TestTail(t *testing.T) {
	var tail Tail
	for i := range 10_000 {
		fmt.Fprintf(&tail, "line %d\n\n", i)
	}
	fmt.Fprint(&tail, "unfinished")
	lines := tail.Lines()
	if len(lines) != mostLines || lines[0] != "line 9981" || lines[mostLines-1] != "unfinished" || len(tail.text) > mostBytes {
		t.Errorf("%d lines: %q", len(lines), lines)
	}
}

func TestLogTail(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if got := LogTail(log, 3); got != "" {
		t.Errorf("without a log: %q", got)
	}
	var long strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&long, "line %d of many\n", i)
	}
	for _, tt := range []struct{ text, want, why string }{
		{"", "", "empty"},
		{"one\n", "one", "one line"},
		{"one\ntwo\nthree\nfour\n", "two\nthree\nfour", "the last three"},
		{"one\ntwo", "one\ntwo", "cut off"},
		{long.String(), "line 9997 of many\nline 9998 of many\nline 9999 of many", "longer than what is read"},
	} {
		if err := os.WriteFile(log, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := LogTail(log, 3); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}

func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "it")
	if err := os.WriteFile(at, []byte("#!/bin/sh\n[ \"$1\" = -v ] && echo it 1.2.3, library 4\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	there := Program{Name: "it", Package: "of-it", For: "a test", Asks: "-v", Look: func() string { return at }}
	with := func(change func(*Program)) Program { p := there; change(&p); return p }
	for _, c := range []struct {
		why   string
		p     Program
		path  string
		found Found
		err   string
	}{
		{"where it lies", there, "", Found{at, "1.2.3", ""}, ""},
		{"by a path", with(func(p *Program) { p.Look = func() string { return "" } }), at, Found{at, "1.2.3", ""}, ""},
		{"with its library", with(func(p *Program) { p.Version = regexp.MustCompile(`it (\S+), library (\S+)`) }), "", Found{at, "1.2.3", "4"}, ""},
		{"it is not asked", with(func(p *Program) { p.Asks = "" }), "", Found{at, "", ""}, ""},
		{"it is not there", with(func(p *Program) { p.Look = func() string { return "" } }), "", Found{}, "missing for a test: it"},
		{"a path that is not there", there, "/nowhere/it", Found{}, "/nowhere/it was not found"},
		{"it does not answer", with(func(p *Program) { p.Asks = "-x" }), "", Found{Path: at}, "ask " + at},
		{"it is another program", with(func(p *Program) { p.Version = regexp.MustCompile(`that (\S+)`) }), "", Found{Path: at}, "another program"},
		{"its version does not do", with(func(p *Program) { p.Suits = func(v string) error { return errors.New("too old: " + v) } }), "", Found{at, "1.2.3", ""}, "too old: 1.2.3"},
	} {
		found, err := c.p.Find(t.Context(), c.path)
		if found != c.found || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v", c.why, found, err)
		}
	}
	paths, missing := Look("a test", "", []Program{there, with(func(p *Program) { p.Name, p.Look = "gone", func() string { return "" } }), with(func(p *Program) { p.Name, p.Look, p.Optional = "spare", func() string { return "" }, "for more" })})
	if paths["it"] != at || !slices.Contains(missing.What, "gone") || slices.Contains(missing.What, "spare") || !slices.Equal(missing.Packages, []string{"of-it"}) {
		t.Errorf("%v, %+v", paths, missing)
	}
}

func TestWhatIsMissingIsNamedWithItsRemedy(t *testing.T) {
	for _, c := range []struct {
		err  MissingError
		want string
		why  string
	}{
		{MissingError{Rootless: "simulated nodes need none", What: []string{"runc"}, Packages: []string{"runc"}}, "apt-get install --no-install-recommends runc", "a package"},
		{MissingError{Rootless: "simulated nodes need none", What: []string{"runc", needRoot}, Packages: []string{"runc"}}, "apt-get install --no-install-recommends runc, and run it as root; simulated nodes need none", "a package and root"},
		{MissingError{Rootless: "simulated nodes need none", What: []string{"control groups"}}, "", "what no command brings"},
		{MissingError{What: []string{"traefik"}, Get: "put it into $PATH"}, "put it into $PATH", "what no package has"},
	} {
		if got := c.err.Remedy(); got != c.want {
			t.Errorf("%s: %q, want %q", c.why, got, c.want)
		}
		for _, what := range c.err.What {
			if !strings.Contains(c.err.Error(), what) {
				t.Errorf("%s: %v does not name %s", c.why, &c.err, what)
			}
		}
	}
}

// What runs as a user without rights has none, wherever its directory and its program
// lie, and cannot get any.
func TestAsAUserWithoutRights(t *testing.T) {
	user := Least()
	if user == Self() {
		t.Skip("this is not root")
	}
	closed := t.TempDir()
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(closed, "own")
	if err := errors.Join(os.Mkdir(dir, 0o700), user.Give(dir), user.Write(filepath.Join(dir, "told"), []byte("text"))); err != nil {
		t.Fatal(err)
	}
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	program, err := os.ReadFile(shell)
	if err == nil {
		err = os.WriteFile(filepath.Join(closed, "shell"), program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ why, path string }{{"a program of the system's", shell}, {"one that the user cannot go to", filepath.Join(closed, "shell")}} {
		tie := NewTie()
		defer tie.Close()
		cmd := exec.Command(c.path, "-c", `id -u; id -G; grep -E 'NoNewPrivs|CapEff' /proc/self/status; cat told; echo x > made && echo wrote; ls .. 2>/dev/null; cat /etc/shadow 2>/dev/null; touch ../no 2>/dev/null; true`)
		cmd.Dir = dir
		p, err := Start(cmd, How{Name: "it", On: tie.Do, As: &user})
		if err != nil {
			t.Fatalf("%s: %v", c.why, err)
		}
		if err := p.Wait(); err != nil {
			t.Errorf("%s: %v: %s", c.why, err, p.Said())
		}
		if got, want := strings.Join(strings.Fields(p.Said()), " "), fmt.Sprintf("%d %d CapEff: 0000000000000000 NoNewPrivs: 1 textwrote", user.ID, user.Group); got != want {
			t.Errorf("%s: it said %q, want %q", c.why, got, want)
		}
	}
}
