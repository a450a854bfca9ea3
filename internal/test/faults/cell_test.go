package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// cell is one faulted run, or a twin without a fault.
type cell struct {
	m     *matrix
	fault fault
	load  load
	random
	p     *harness.Program
	lab   *sharedLab // nil for what is loaded on this machine
	nodes string     // the label of the lab's nodes that are its own
	plan  Plan
	proxy *Proxy
	out   string // its run directory
	// moment holds when its fault comes; without a name the fault has none. Before says that
	// the run ended by itself before that.
	moment moment
	before bool

	run      *harness.Started
	begun    time.Time
	got      harness.Outcome
	took     time.Duration
	late     bool           // it did not end within its bound
	result   *result.Result // nil without one
	problems []string
}

// random draws for a cell, by its seed.
type random struct {
	*rand.Rand
	seed uint64
}

func (c *cell) problem(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// start starts the run, through a proxy where there is an API.
func (c *cell) start(t *testing.T) {
	args := append(append([]string{"sweep"}, c.load.args...), "--out", c.out)
	if c.fault.act != nil {
		args = append(args, c.load.slow...)
	}
	if c.lab != nil {
		c.proxy = Start(t, c.lab.p.Kubeconfig, c.plan)
		// The guards that a cluster has which is not a lab.
		args = append(args, "--kubeconfig", c.proxy.Kubeconfig, "--guard", "nodesNotReady=1", "--guard", "apiErrors=5%")
		switch {
		case strings.HasPrefix(args[1], "./"):
			args = append(args, "--set", "cell="+c.nodes)
		case !c.load.virt:
			args = append(args, "--set", "nodeSelector="+cellLabel+"="+c.nodes)
		}
	}
	c.begun = time.Now()
	c.run = c.p.Start(t, args...)
}

// end waits for the run's end, at most until its bound.
func (c *cell) end() {
	timer := time.AfterFunc(time.Until(c.begun.Add(c.load.bound)), func() { c.late = true; c.run.Signal(os.Kill) })
	c.got = c.run.Wait()
	timer.Stop()
	c.took = time.Since(c.begun)
	c.read()
}

func (c *cell) read() {
	c.result = nil
	r := new(result.Result)
	if record.Dir(filepath.Join(c.p.Dir, c.out)).ReadJSON(record.ResultFile, r) == nil {
		c.result = r
	}
}

// said returns all that the run has printed.
func (c *cell) said() string { return c.got.Stdout + c.got.Stderr }

// first returns the first sentence of what broke, and the first known failure.
func (c *cell) first() string {
	if c.result == nil {
		return ""
	}
	text := ""
	if b := c.result.BrokeFirst; b != nil {
		text = b.Breach.What + ": " + b.Breach.Message
	}
	if len(c.result.Diagnosis) > 0 {
		text += "; " + c.result.Diagnosis[0].Evidence
	}
	return text
}

// reasons says why requests and objects of the run failed.
func (c *cell) reasons() string {
	var list []string
	if c.result != nil {
		for _, s := range c.result.Steps {
			for _, r := range s.Reasons {
				list = append(list, r.Reason+": "+r.Message)
			}
		}
	}
	return strings.Join(list, "\n")
}

// whole checks what holds of each run, whatever the fault.
func (c *cell) whole(t *testing.T) {
	if c.late && !c.swamped() {
		c.problem("it did not end within %v", c.load.bound)
	}
	if strings.Contains(c.said(), "panic: ") || strings.Contains(c.said(), "goroutine 1 [") {
		c.problem("it has panicked")
	}
	if c.got.Code == process.ExitUsage {
		c.problem("it calls the fault a mistake of the user's")
	}
	c.counted()
	c.analyzed(t)
	c.removed(t)
	c.secret()
}

// unwritten bounds the objects that a SIGKILL can cost the record, of those that were asked
// for in its latest 100 ms: of 25 a second and what was in flight.
const unwritten = 8

// counted compares what is on record with what the proxy has seen.
func (c *cell) counted() {
	if c.proxy == nil || c.load.created == "" || c.result == nil {
		return
	}
	created, unknown := 0, 0
	c.p.Count(c.out, func(e record.Event) bool {
		if s, is := e.Body.(*record.Slot); is && s.Units > 0 {
			switch s.Outcome {
			case record.SlotCreated:
				created++
			case record.SlotUnknown:
				unknown++
			}
		}
		return false
	})
	seen := 0
	for _, name := range c.proxy.Counts().Created[c.load.created] {
		if !strings.HasSuffix(name, "/canary") {
			seen++
		}
	}
	killed := 0
	if c.fault.must == resumed {
		killed = unwritten
	}
	if seen < created || seen > created+unknown+killed {
		c.problem("%d were created and %d are unknown by the record, %d by the proxy", created, unknown, seen)
	}
}

// analyzed judges the record again: result and output must be the same.
func (c *cell) analyzed(t *testing.T) {
	if c.result == nil {
		return
	}
	file := filepath.Join(c.p.Dir, c.out, record.ResultFile)
	before, _ := os.ReadFile(file)
	again := c.p.Run(t, "analyze", c.out)
	after, err := os.ReadFile(file)
	if strings.Contains(c.got.Stderr, "has ended before it was done") {
		before, after = withoutRemoval(before), withoutRemoval(after)
	}
	if err != nil || !bytes.Equal(before, after) {
		c.problem("analyze comes to another result.json: %v\n%s", err, different(before, after))
	}
	shown := func(text string) (lines []string) {
		for line := range strings.Lines(text) {
			// What the removal came to is on record after the result was printed.
			if !strings.HasPrefix(line, "Record: ") && !strings.HasPrefix(line, "Report: ") && !strings.HasPrefix(line, "warning: clean up: ") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	if c.got.Stdout != "" && !slices.Equal(shown(again.Stdout), shown(c.got.Stdout)) {
		c.problem("analyze prints\n%s\nthe run had printed\n%s", again.Stdout, c.got.Stdout)
	}
}

// different lists what one of two results has and the other has not, at most some.
func different(before, after []byte) string {
	const most = 12
	var list []string
	var walk func(path string, a, b any)
	walk = func(path string, a, b any) {
		if of, is := a.(map[string]any); is {
			if other, is := b.(map[string]any); is {
				keys := maps.Clone(of)
				maps.Copy(keys, other)
				for _, key := range slices.Sorted(maps.Keys(keys)) {
					walk(path+"."+key, of[key], other[key])
				}
				return
			}
		}
		if x, y := fmt.Sprint(a), fmt.Sprint(b); x != y {
			list = append(list, fmt.Sprintf("%s: %.300s | %.300s", path, x, y))
		}
	}
	var a, b any
	json.Unmarshal(before, &a)
	json.Unmarshal(after, &b)
	walk("", a, b)
	return strings.Join(list[:min(len(list), most)], "\n")
}

// withoutRemoval returns a result without what the removal came to: a run that a signal has
// ended in the middle of it may have put that on record, and not yet judged it.
func withoutRemoval(text []byte) []byte {
	var r map[string]any
	if json.Unmarshal(text, &r) != nil {
		return text
	}
	delete(r, "cleanup")
	delete(r, "sha256") // of the rest
	if list, is := r["warnings"].([]any); is {
		r["warnings"] = slices.DeleteFunc(list, func(w any) bool {
			of, _ := w.(map[string]any)
			return of["kind"] == string(record.WarningCleanup)
		})
	}
	text, _ = json.Marshal(r)
	return text
}

// removalPatience bounds the time of the command that removes the rest.
const removalPatience = 2 * time.Minute

// removed checks, past the proxy and the program, that nothing is left, or that
// what is left is said with the command that removes it, and that this does.
func (c *cell) removed(t *testing.T) {
	left := c.left(t)
	done := c.result != nil && c.result.Cleanup != nil && c.result.Cleanup.Done
	command := regexp.MustCompile(`(plimsoll clean\b.*)`).FindString(c.got.Stderr)
	switch {
	case len(left) == 0:
		return
	case done:
		c.problem("cleanup is done, and these are left: %q", left)
	case command == "" && !(c.late && c.swamped()):
		c.problem("no command is named that removes what is left: %q", left)
	}
	if c.proxy != nil {
		command = strings.ReplaceAll(command, c.proxy.Kubeconfig, c.lab.p.Kubeconfig)
	}
	c.clean(t, strings.Fields(command))
}

// clean removes the rest by a command, or, without one, by the one that the documentation
// has.
func (c *cell) clean(t *testing.T, command []string) {
	if len(command) == 0 {
		command = []string{"plimsoll", "clean"}
		if c.lab != nil {
			command = append(command, "--kubeconfig", c.lab.p.Kubeconfig) // others go on: they are left alone
		}
	}
	got := c.p.Run(t, command[1:]...)
	if c.fault.must == resumed {
		// For a minute nobody but us knows that a run that was killed is dead: the
		// command says how to remove what it left all the same.
		for _, run := range c.ids() {
			if again := regexp.MustCompile(`plimsoll (clean\b.* --run ` + run + ` --force)`).FindStringSubmatch(got.Stdout + got.Stderr); again != nil {
				got = c.p.Run(t, strings.Fields(again[1])...)
			}
		}
	}
	var left []string
	for deadline := time.Now().Add(removalPatience); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		if left = c.left(t); len(left) == 0 {
			return
		}
	}
	c.problem("after '%s', exit code %d, these are left: %q\n%s%s", strings.Join(command, " "), got.Code, left, got.Stdout, got.Stderr)
}

// ids lists the names under which the run has changed its target.
func (c *cell) ids() (list []string) {
	c.p.Count(c.out, func(e record.Event) bool {
		if r, is := e.Body.(*record.RunEvent); is && r.ID != "" {
			list = append(list, r.ID)
		}
		return false
	})
	return list
}

// isThere asks the API server itself for an object, until it answers that.
func (c *cell) isThere(t *testing.T, path string) bool {
	for code, begun := 0, time.Now(); ; time.Sleep(200 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := c.lab.client.CoreV1().RESTClient().Get().AbsPath(path).Do(ctx).StatusCode(&code).Error()
		cancel()
		switch {
		case code == http.StatusOK, code == http.StatusNotFound:
			return code == http.StatusOK
		case time.Since(begun) > removalPatience:
			t.Fatalf("whether %s is left is unknown: %d, %v", path, code, err)
		}
	}
}

// left lists what still exists of the run.
func (c *cell) left(t *testing.T) (list []string) {
	if c.lab != nil {
		for _, path := range c.proxy.Counts().Paths {
			if c.isThere(t, path) {
				list = append(list, path)
			}
		}
		return list
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil && strings.HasPrefix(dir, c.p.State+"/") {
			list = append(list, link+" in "+dir)
		}
	}
	for _, kind := range []string{"routers", "volumes", "io"} {
		files, _ := filepath.Glob(filepath.Join(c.p.State, "plimsoll", kind, "*"))
		list = append(list, files...)
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, c.p.State+"/") {
			list = append(list, line)
		}
	}
	files, _ := filepath.Glob(filepath.Join(c.p.Dir, "mount", "*"))
	return append(list, files...)
}

// secret looks for the proxy's token in what the run has printed and written.
func (c *cell) secret() {
	if c.proxy == nil {
		return
	}
	if strings.Contains(c.said(), c.proxy.Secret) {
		c.problem("the planted secret was printed")
	}
	filepath.WalkDir(filepath.Join(c.p.Dir, c.out), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil
		}
		if strings.HasSuffix(path, ".zst") {
			if zip, err := zstd.NewReader(bytes.NewReader(data)); err == nil {
				data, _ = io.ReadAll(zip) // a history may be cut
				zip.Close()
			}
		}
		if bytes.Contains(data, []byte(c.proxy.Secret)) {
			c.problem("the planted secret is in %s", filepath.Base(path))
		}
		return nil
	})
}

// verdict compares a run's end with its twin's.
type verdict string

const (
	same      verdict = "as the twin"
	unknown   verdict = "inconclusive"
	named_    verdict = "named"
	differs   verdict = "differs"
	notJudged verdict = "not judged: the machine was busy"
	// endedBefore is of a run that ended before the moment of its fault.
	endedBefore verdict = "ended before"
)

// judged compares the run's end with its twin's, by what must hold of it.
func (c *cell) judged(twin *cell) verdict {
	names := func(text string) bool { return c.fault.says != nil && c.fault.says.MatchString(text) }
	switch {
	case c.before && (c.got.Code == process.ExitPass || c.busy()):
		return endedBefore
	case c.before:
		return differs
	case c.fault.must == prompt && c.late:
		return notJudged
	case c.fault.must == prompt:
		return same // its problems tell
	case c.got.Code == process.ExitCouldNotRun && c.fault.must != healed && names(c.said()):
		return named_
	case c.got.Code == process.ExitFail && (names(c.first()) || c.fault.mustOn(c.load) == told && names(c.reasons())):
		return named_
	case c.got.Code == process.ExitPass: // as every twin that the machine had room for
		return same
	case c.busy() || twin.busy():
		return notJudged
	case c.got.Code == process.ExitInconclusive:
		return unknown
	}
	return differs
}

// busy reports whether a run could not be judged because the machine did
// something else: it is invalid, or while other programs took processors it did not
// hold, or did not know whether a backlog grows.
func (c *cell) busy() bool {
	return c.got.Code == process.ExitInvalid || c.late && c.swamped() || c.crowded() && (c.got.Code == process.ExitFail ||
		c.got.Code == process.ExitInconclusive && strings.Contains(c.said(), "whether the backlog grows is not decided"))
}

// swamped reports whether other programs took most of the processors: how long a run
// takes then is the machine's doing.
func (c *cell) swamped() bool {
	return c.result != nil && slices.ContainsFunc(c.result.Steps, func(s result.Step) bool {
		return slices.ContainsFunc(s.Neighbours, func(n result.Neighbour) bool { return n.What == result.Processors && n.Others > 50 })
	})
}

// crowded reports whether the run says that other programs took processors.
func (c *cell) crowded() bool {
	return c.result != nil && strings.Contains(strings.Join(c.result.Warnings.Lines(), "\n"), "other programs used")
}

// holds reports whether a verdict is what must hold. That of a fault that a client
// can heal is also judged over all of them.
func (m must) holds(v verdict) bool {
	switch {
	case v == notJudged, v == endedBefore:
		return true
	case v == differs:
		return false
	case m == named:
		return v == named_
	case m == resumed:
		return v == same
	case m == refused:
		return v == named_ || v == same
	}
	return true
}

// decided reports whether a run came to a verdict, whichever the machine let it have.
func decided(code int) bool {
	return slices.Contains([]int{process.ExitPass, process.ExitFail, process.ExitInconclusive, process.ExitInvalid}, code)
}

// killed kills the run at its moment and resumes it.
func (c *cell) killed(t *testing.T, twin *cell) {
	c.start(t)
	if !c.await() {
		c.end()
		c.before = true
		return
	}
	c.got = c.run.Kill()
	c.took = time.Since(c.begun)
	if c.got.Code != -1 {
		c.read()
		c.before = true
		return
	}
	if _, err := os.Stat(filepath.Join(c.p.Dir, c.out, record.HistoryFile)); err != nil {
		// It had not begun a record: there is nothing to resume, and what it made
		// is removed by the next command.
		if len(c.left(t)) > 0 {
			c.clean(t, nil)
		}
		c.got.Code = twin.got.Code
		return
	}
	emptied := func(e record.Event) bool {
		cleanup, is := e.Body.(*record.Cleanup)
		return is && cleanup.Done
	}
	if c.lab == nil && c.p.Count(c.out, emptied) > 0 && len(c.left(t)) > 0 {
		// The record is whole, and to resume it finds nothing to do. The directory
		// that the run had on this machine goes last: the next command removes it.
		c.clean(t, nil)
	}
	c.begun = time.Now()
	c.run = c.p.Start(t, "run", "--resume", c.out)
	c.end()
}

// terminated is the exit code of a run that SIGTERM has ended.
const terminated = 128 + int(syscall.SIGTERM)

// ended ends the run by SIGTERM at its moment.
func (c *cell) ended(t *testing.T) {
	const bound = 2 * time.Second
	c.start(t)
	if !c.await() {
		c.end()
		c.before = true
		return
	}
	c.run.Signal(syscall.SIGTERM)
	asked := time.Now()
	c.end()
	took := time.Since(asked)
	switch c.got.Code {
	case terminated:
		t.Logf("SIGTERM ended it in %v", took.Round(time.Millisecond))
		if took > bound && c.quiet() {
			c.problem("it has ended %v after SIGTERM, more than %v", took.Round(10*time.Millisecond), bound)
		}
	default:
		c.before = decided(c.got.Code) // the signal came when it had its verdict
		if !c.before && !c.late {      // what is late was killed, and whole judges that
			c.problem("after SIGTERM its exit code is %d", c.got.Code)
		}
	}
}

// quiet reports whether the run says that the machine did nothing else. A run that was
// cut before it had a step does not know.
func (c *cell) quiet() bool {
	return c.result != nil && len(c.result.Steps) > 0 && !c.crowded()
}

// onTmpfs makes the run with its directory in a file system of its own.
func (c *cell) onTmpfs(t *testing.T, flags uintptr, options string) {
	dir := filepath.Join(c.p.Dir, c.out+"-fs")
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", flags, options)
	}
	if err != nil {
		t.Fatalf("mount a small file system: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	c.out = filepath.Join(filepath.Base(dir), "r")
	c.start(t)
	c.end()
	// analyze writes: a directory with room gets the record.
	room := filepath.Base(dir) + "-copy"
	if err := os.CopyFS(filepath.Join(c.p.Dir, room), os.DirFS(filepath.Join(c.p.Dir, c.out))); err == nil {
		c.out = room
	}
}

// make makes the run with its fault.
func (c *cell) make(t *testing.T, twin *cell) {
	switch size, full := strings.CutPrefix(c.fault.name, "a disk of "); {
	case c.fault.must == resumed:
		c.killed(t, twin)
	case c.fault.must == prompt:
		c.ended(t)
	case full:
		c.onTmpfs(t, 0, "size="+strings.Fields(size)[0])
	case c.fault.must == refused:
		c.onTmpfs(t, syscall.MS_RDONLY, "")
	default:
		c.start(t)
		if c.fault.act != nil {
			if c.await() {
				defer c.fault.act(c)()
			} else {
				c.before = true
			}
		}
		c.end()
	}
}

// stopped stops a component of the lab.
func stopped(component string) func(c *cell) func() {
	return func(c *cell) func() {
		pid := c.lab.component(component)
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			c.problem("stop %s: %v", component, err)
		}
		return func() { syscall.Kill(pid, syscall.SIGCONT) }
	}
}

// restarted kills a component of the lab and starts it again.
func restarted(component string) func(c *cell) func() {
	return func(c *cell) func() {
		c.restart(component)
		return func() {}
	}
}

// killed kills a component of the lab, which is started again for the runs after it.
func killed(component string) func(c *cell) func() {
	return func(c *cell) func() {
		if err := syscall.Kill(c.lab.component(component), syscall.SIGKILL); err != nil {
			c.problem("kill %s: %v", component, err)
		}
		return func() { c.restart(component) }
	}
}

func (c *cell) restart(component string) {
	if out, err := c.lab.p.Command("lab", "restart", c.lab.p.Lab, component).CombinedOutput(); err != nil {
		c.problem("restart %s: %v\n%s", component, err, out)
	}
}

// serversGet sends a signal to all processes that serve the load on this machine.
func serversGet(signal syscall.Signal) func(c *cell) func() {
	return func(c *cell) func() {
		pids := c.servers()
		if len(pids) == 0 && !c.run.Ended() {
			c.problem("no process of %q", c.load.servers)
		}
		send := func(s syscall.Signal) {
			for _, pid := range pids {
				syscall.Kill(pid, s)
			}
		}
		send(signal)
		return func() { send(syscall.SIGCONT) }
	}
}

// servers returns the processes that serve the load: they work in the run's state, or have
// it, the run's directory or a room of the run among their arguments.
func (c *cell) servers() (pids []int) {
	of := []string{c.p.State, c.p.Dir}
	rooms, _ := filepath.Glob(filepath.Join(c.p.State, "plimsoll", "*", "*", "made"))
	for _, file := range rooms {
		made, _ := os.ReadFile(file)
		of = append(of, strings.Fields(string(made))...)
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if !slices.Contains(c.load.servers, strings.TrimSpace(string(name))) {
			continue
		}
		at, _ := os.Readlink(filepath.Join(dir, "cwd"))
		told, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if slices.ContainsFunc(of, func(room string) bool { return strings.Contains(at+string(told), room) }) {
			if pid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// component returns the process of a component of the lab.
func (l *sharedLab) component(name string) int {
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	out, _ := l.p.Command("lab", "status", l.p.Lab, "-o", "json").Output()
	json.Unmarshal(out, &status)
	for _, c := range status.Components {
		if c.Name == name {
			return c.PID
		}
	}
	return 0
}
