package cli

import (
	"bytes"
	"context"
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

	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/analyze"
	"plimsoll.dev/plimsoll/internal/cluster"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
)

// program is the built program with a state directory of its own.
type program struct {
	binary, state, dir string
}

// newProgram skips the test without a built program.
func newProgram(t *testing.T) *program {
	t.Helper()
	binary := os.Getenv("PLIMSOLL_BINARY")
	if binary == "" {
		t.Skip("needs the program: make build, and PLIMSOLL_BINARY=$PWD/bin/plimsoll")
	}
	// A short path: sockets have a bound.
	state, err := os.MkdirTemp("", "pl")
	if err != nil {
		t.Fatal(err)
	}
	p := &program{binary: binary, state: state, dir: t.TempDir()}
	t.Cleanup(func() {
		p.run(t, "lab", "down", "--all")
		p.leavesNoProcess(t)
		os.RemoveAll(state)
	})
	return p
}

func (p *program) command(args ...string) *exec.Cmd {
	cmd := exec.Command(p.binary, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+p.state, "KUBECONFIG=/nonexistent/kubeconfig")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// run runs a command to its end.
func (p *program) run(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := p.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// leavesNoProcess fails the test if a process of this program's laboratories
// is alive.
func (p *program) leavesNoProcess(t *testing.T) {
	t.Helper()
	var left []string
	deadline := time.Now().Add(10 * time.Second)
	for {
		left = nil
		files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range files {
			line, err := os.ReadFile(file)
			if err == nil && bytes.Contains(line, []byte(p.state+"/")) && bytes.Contains(line, []byte("component")) {
				left = append(left, file+" "+string(bytes.ReplaceAll(line[:min(len(line), 100)], []byte{0}, []byte(" "))))
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("processes that were left:\n%s", strings.Join(left, "\n"))
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// leavesNoLab fails the test if there is a laboratory.
func (p *program) leavesNoLab(t *testing.T) {
	t.Helper()
	p.leavesNoProcess(t)
	got := p.run(t, "lab", "list", "-o", "json")
	if strings.TrimSpace(got.stdout) != "[]" {
		t.Errorf("laboratories that were left: %s%s", got.stdout, got.stderr)
	}
	filepath.WalkDir(p.state, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(path, "/labs/") {
			t.Errorf("a file that was left: %s", path)
		}
		return nil
	})
}

func (p *program) result(t *testing.T, dir string) analyze.Result {
	t.Helper()
	var r analyze.Result
	data, err := os.ReadFile(filepath.Join(p.dir, dir, record.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// watched is a command under way whose standard error is looked at.
type watched struct {
	cmd *exec.Cmd
	mu  sync.Mutex
	err bytes.Buffer
	out bytes.Buffer
}

func (w *watched) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err.Write(b)
}

func (p *program) start(t *testing.T, args ...string) *watched {
	t.Helper()
	w := &watched{cmd: p.command(args...)}
	w.cmd.Stderr, w.cmd.Stdout = w, &w.out
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Kill(-w.cmd.Process.Pid, syscall.SIGKILL); w.cmd.Wait() })
	return w
}

func (w *watched) stderr() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err.String()
}

// await waits until condition holds.
func await(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited two minutes for %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// historyHolds reports whether the history that is being written holds so many
// events of a kind.
func (p *program) historyHolds(dir string, kind record.Kind, n int) bool {
	found := 0
	record.ReadHistory(record.Dir(filepath.Join(p.dir, dir)), func(e record.Event) error {
		if e.Body.Kind() == kind {
			found++
		}
		return nil
	})
	return found >= n
}

func (p *program) leftIn(t *testing.T, kubeconfig string) []cluster.Leftover {
	t.Helper()
	c, err := cluster.Connect(kubeconfig, "", "plimsoll/test", time.Now)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	left, err := c.Leftovers(context.Background(), false)
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// The whole way without a cluster: a private laboratory, the search, a record,
// a result, and nothing left behind.
func TestLimitFindsThePlantedLimit(t *testing.T) {
	p := newProgram(t)
	got := p.run(t, "limit", "node-density", "--lab-nodes", "4", "--lab-max-pods", "11", "--from", "5", "--step", "5", "--max", "30",
		"--hold", "1s", "--slo", "all Ready", "--out", "r", "-o", "json")
	if got.code != exitHeld {
		t.Fatalf("exit code %d\n%s", got.code, got.stderr)
	}
	var shown analyze.Result
	if err := json.Unmarshal([]byte(got.stdout), &shown); err != nil {
		t.Fatalf("-o json printed %v:\n%s", err, got.stdout)
	}
	r := p.result(t, "r")
	line := r.LoadLine
	if *line.Level != 11 || *line.LowestFailing != 12 || line.Confirmations != 3 || line.Binding != "Too many pods on 4 of 4 nodes" || *shown.LoadLine.Level != 11 {
		t.Errorf("line %+v", line)
	}
	if r.Fidelity.ControlPlane != record.Real || r.Fidelity.Nodes != record.Simulated || len(r.Fidelity.Notes) == 0 {
		t.Errorf("fidelity %+v", r.Fidelity)
	}
	if !strings.HasPrefix(r.Command, "plimsoll limit node-density --lab-nodes 4") {
		t.Errorf("command %q", r.Command)
	}
	var env record.Environment
	if err := record.Dir(filepath.Join(p.dir, "r")).ReadJSON(record.EnvironmentFile, &env); err != nil {
		t.Fatal(err)
	}
	if env.Cluster.Server != "v1.36.3" || len(env.Cluster.Nodes) != 4 || !env.Target.Private || env.Host.CPUs == 0 {
		t.Errorf("environment %+v", env)
	}
	p.leavesNoLab(t)

	before, err := os.ReadFile(filepath.Join(p.dir, "r", record.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	again := p.run(t, "analyze", "r", "--explain")
	after, err := os.ReadFile(filepath.Join(p.dir, "r", record.ResultFile))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("analyze came to another result: %v", err)
	}
	for _, part := range []string{"11 pods/node, confirmed 3 of 3", "12 failed", "Too many pods on 4 of 4 nodes", "Why each level was chosen", "Simulated: nodes, containers; the control plane was real"} {
		if !strings.Contains(again.stdout, part) {
			t.Errorf("analyze lacks %q:\n%s", part, again.stdout)
		}
	}
	// The plan that the run has left runs again.
	if text, err := os.ReadFile(filepath.Join(p.dir, "r", record.ExperimentFile)); err != nil || !bytes.Contains(text, []byte("schema: plimsoll/experiment/v1")) {
		t.Errorf("experiment.yaml: %v\n%s", err, text)
	}
}

// labWith brings up a named laboratory.
func (p *program) labWith(t *testing.T, args ...string) string {
	t.Helper()
	if got := p.run(t, append([]string{"lab", "up", "l"}, args...)...); got.code != 0 {
		t.Fatalf("lab up: %d %s", got.code, got.stderr)
	}
	return strings.TrimSpace(p.run(t, "lab", "kubeconfig", "l").stdout)
}

func TestARunThatIsKilled(t *testing.T) {
	p := newProgram(t)
	kubeconfig := p.labWith(t, "--nodes", "5", "--start-latency", "constant:3s")
	w := p.start(t, "sweep", "node-density", "--lab", "l", "--levels", "40", "--pace", "60", "--out", "r")
	await(t, "the load to be under way", func() bool { return p.historyHolds("r", record.KindSlot, 60) })
	w.cmd.Process.Kill()
	w.cmd.Wait()

	got := p.run(t, "analyze", "r")
	if got.code != exitInconclusive {
		t.Errorf("analyze: exit code %d, want 3\n%s%s", got.code, got.stdout, got.stderr)
	}
	r := p.result(t, "r")
	o := r.Steps[0].Objects
	if r.Verdict != slo.Inconclusive || o.Intended < 60 || o.Lost == 0 || o.NeverReady != 0 || o.Created != o.Ready+o.Lost {
		t.Errorf("verdict %s, %+v", r.Verdict, o)
	}
	if len(r.Warnings) == 0 || !strings.Contains(strings.Join(r.Warnings, " "), "was cut") {
		t.Errorf("warnings %q", r.Warnings)
	}
	if left := p.leftIn(t, kubeconfig); len(left) != 1 || !left[0].Alive {
		t.Fatalf("left %+v", left)
	}
	// A run that may still be going on is left alone, unless it is insisted.
	if got := p.run(t, "clean", "--lab", "l"); got.code != 0 || !strings.Contains(got.stdout, "left alone") {
		t.Errorf("clean: %d %s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.run(t, "clean", "--lab", "l", "--force", "--dry-run"); got.code != 0 || !strings.Contains(got.stdout, "would remove") {
		t.Errorf("clean --dry-run: %d %s%s", got.code, got.stdout, got.stderr)
	}
	if got := p.run(t, "clean", "--lab", "l", "--force"); got.code != 0 || !strings.Contains(got.stdout, "removed run") {
		t.Errorf("clean --force: %d %s%s", got.code, got.stdout, got.stderr)
	}
	if left := p.leftIn(t, kubeconfig); len(left) != 0 {
		t.Errorf("left after clean: %+v", left)
	}
}

// A private laboratory dies with its run, and the next command removes what is
// left of it.
func TestAPrivateLabDiesWithItsRun(t *testing.T) {
	p := newProgram(t)
	w := p.start(t, "sweep", "node-density", "--lab-nodes", "3", "--levels", "40", "--pace", "20", "--out", "r")
	await(t, "the load to be under way", func() bool { return p.historyHolds("r", record.KindSlot, 5) })
	w.cmd.Process.Kill()
	w.cmd.Wait()
	p.leavesNoLab(t) // lab list is the next command
}

func TestInterrupts(t *testing.T) {
	t.Run("one Ctrl-C ends the load, writes the result and cleans up", func(t *testing.T) {
		p := newProgram(t)
		kubeconfig := p.labWith(t, "--nodes", "5")
		w := p.start(t, "sweep", "node-density", "--lab", "l", "--levels", "100", "--pace", "50", "--out", "r")
		await(t, "the load to be under way", func() bool { return p.historyHolds("r", record.KindSlot, 40) })
		w.cmd.Process.Signal(os.Interrupt)
		w.cmd.Wait()
		if code := w.cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("exit code %d, want 130\n%s", code, w.stderr())
		}
		if r := p.result(t, "r"); r.Verdict != slo.Inconclusive || r.Steps[0].Objects.Intended < 40 {
			t.Errorf("verdict %s, %+v", r.Verdict, r.Steps[0].Objects)
		}
		if left := p.leftIn(t, kubeconfig); len(left) != 0 {
			t.Errorf("left %+v", left)
		}
	})
	t.Run("two do not wait, and leave nothing", func(t *testing.T) {
		p := newProgram(t)
		kubeconfig := p.labWith(t, "--nodes", "5")
		w := p.start(t, "sweep", "node-density", "--lab", "l", "--levels", "100", "--pace", "100", "--out", "r")
		await(t, "the load to be under way", func() bool { return p.historyHolds("r", record.KindSlot, 100) })
		w.cmd.Process.Signal(os.Interrupt)
		time.Sleep(200 * time.Millisecond)
		w.cmd.Process.Signal(os.Interrupt)
		w.cmd.Wait()
		if code := w.cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("exit code %d, want 130\n%s", code, w.stderr())
		}
		await(t, "the cluster to finish the removal", func() bool { return len(p.leftIn(t, kubeconfig)) == 0 })
	})
	t.Run("SIGTERM says so", func(t *testing.T) {
		p := newProgram(t)
		w := p.start(t, "sweep", "node-density", "--lab-nodes", "3", "--levels", "100", "--pace", "20", "--out", "r")
		await(t, "the load to be under way", func() bool { return p.historyHolds("r", record.KindSlot, 5) })
		w.cmd.Process.Signal(syscall.SIGTERM)
		w.cmd.Wait()
		if code := w.cmd.ProcessState.ExitCode(); code != exitTerminated {
			t.Errorf("exit code %d, want 143\n%s", code, w.stderr())
		}
		p.leavesNoLab(t)
	})
	t.Run("two while a private laboratory comes up leave nothing", func(t *testing.T) {
		p := newProgram(t)
		w := p.start(t, "sweep", "node-density", "--lab-nodes", "3", "--levels", "10", "--out", "r")
		await(t, "a component to be started", func() bool {
			files, _ := filepath.Glob(p.state + "/plimsoll/labs/*/logs/*.log")
			return len(files) > 0
		})
		w.cmd.Process.Signal(os.Interrupt)
		w.cmd.Process.Signal(os.Interrupt)
		w.cmd.Wait()
		if code := w.cmd.ProcessState.ExitCode(); code != exitInterrupted {
			t.Errorf("exit code %d, want 130\n%s", code, w.stderr())
		}
		p.leavesNoLab(t)
	})
}

// A laboratory's kubeconfig without its marker is any cluster: refused, or
// loaded with care.
func TestAClusterThatIsNoLab(t *testing.T) {
	p := newProgram(t)
	kubeconfig := p.labWith(t, "--nodes", "3")
	config, err := clientcmd.LoadFromFile(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	marked := filepath.Join(p.dir, "marked")
	if err := clientcmd.WriteToFile(*config, marked); err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Contexts {
		delete(c.Extensions, lab.MarkerExtension)
	}
	stripped := filepath.Join(p.dir, "stripped")
	if err := clientcmd.WriteToFile(*config, stripped); err != nil {
		t.Fatal(err)
	}

	got := p.run(t, "sweep", "node-density", "--kubeconfig", stripped, "--levels", "2")
	if got.code != exitUsage || !strings.Contains(got.stderr, "--yes") || !strings.Contains(got.stderr, "v1.36.3, 3 nodes") {
		t.Errorf("without --yes: %d %s", got.code, got.stderr)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "plimsoll-runs")); err == nil {
		t.Error("a run that was refused has left a record")
	}
	got = p.run(t, "sweep", "node-density", "--kubeconfig", stripped, "--levels", "20", "--yes", "--hold", "1s", "--out", "careful")
	if got.code != 0 {
		t.Fatalf("with --yes: %d %s", got.code, got.stderr)
	}
	r := p.result(t, "careful")
	if s := r.Steps[0]; s.Pace != "20/s" || *s.OfferedRate > 21 || s.Objects.Ready != 60 {
		t.Errorf("pace %s, offered %v, %+v", s.Pace, *s.OfferedRate, s.Objects)
	}
	plan, err := os.ReadFile(filepath.Join(p.dir, "careful", record.ExperimentFile))
	if err != nil || !strings.Contains(string(plan), "nodesNotReady: 1") || !strings.Contains(string(plan), "apiErrors: 5") {
		t.Errorf("no guards in the plan: %v\n%s", err, plan)
	}
	if left := p.leftIn(t, kubeconfig); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
	// A copy with its marker is a laboratory, wherever it lies.
	got = p.run(t, "sweep", "node-density", "--kubeconfig", marked, "--levels", "2", "--hold", "100ms", "--out", "lab")
	if got.code != 0 || p.result(t, "lab").Steps[0].Pace != "max" {
		t.Errorf("with its marker: %d %s", got.code, got.stderr)
	}
	// A marker that the cluster does not confirm is none.
	for _, c := range config.Contexts {
		c.Extensions = nil
	}
	text, err := os.ReadFile(marked)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(marked, bytes.Replace(text, []byte("id:"), []byte("id: x"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got = p.run(t, "sweep", "node-density", "--kubeconfig", marked, "--levels", "2"); got.code != exitUsage {
		t.Errorf("with a wrong marker: %d %s", got.code, got.stderr)
	}
}

// KUBECONFIG alone chooses nothing: a private laboratory is made.
func TestKubeconfigInTheEnvironmentIsNotEnough(t *testing.T) {
	p := newProgram(t)
	kubeconfig := p.labWith(t, "--nodes", "3")
	cmd := p.command("sweep", "node-density", "--lab-nodes", "2", "--levels", "1", "--hold", "100ms", "--out", "r")
	cmd.Env = append(cmd.Env, "KUBECONFIG="+kubeconfig)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var env record.Environment
	if err := record.Dir(filepath.Join(p.dir, "r")).ReadJSON(record.EnvironmentFile, &env); err != nil {
		t.Fatal(err)
	}
	if !env.Target.Private || len(env.Cluster.Nodes) != 2 {
		t.Errorf("target %+v with %d nodes", env.Target, len(env.Cluster.Nodes))
	}
}

// A disk that is full ends the run: nothing goes on without a record.
func TestAFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	p := newProgram(t)
	small := filepath.Join(p.dir, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	defer syscall.Unmount(small, 0)
	kubeconfig := p.labWith(t, "--nodes", "5")
	got := p.run(t, "sweep", "node-density", "--lab", "l", "--levels", "110,20,110,20,110,20,110", "--hold", "100ms", "--out", filepath.Join(small, "r"))
	if got.code != exitCouldNotRun || !strings.Contains(got.stderr, "no space left") {
		t.Errorf("exit code %d, want 5\n%s", got.code, got.stderr)
	}
	if left := p.leftIn(t, kubeconfig); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
}

// The plan file, the example among them, runs as it stands.
func TestPlanFiles(t *testing.T) {
	p := newProgram(t)
	file := filepath.Join(p.dir, "plan.yaml")
	text := "schema: plimsoll/experiment/v1\nname: small\nworkload: node-density\ntarget: {lab: {nodes: 3, maxPods: 20}}\naxis: {levels: [5, 30, 10]}\nhold: 200ms\nparams: {startLatency: \"uniform:100ms,200ms\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := p.run(t, "run", file, "--out", "r")
	if got.code != exitBreached {
		t.Fatalf("exit code %d, want 1: 30 is above 20\n%s%s", got.code, got.stdout, got.stderr)
	}
	r := p.result(t, "r")
	want := []string{"5 pass 15/15", "30 breach 60/90", "10 pass 30/30"}
	for i, s := range r.Steps {
		if have := fmt.Sprintf("%g %s %d/%d", s.LevelReached, s.Verdict, s.Objects.Ready, s.Objects.Intended); have != want[i] {
			t.Errorf("step %d: %s, want %s", s.ID, have, want[i])
		}
	}
	if p50 := *r.Steps[0].Latency["Ready"].P50 - *r.Steps[0].Latency["Scheduled"].P50; p50 < 0.09 || p50 > 2 {
		t.Errorf("with 100 to 200 ms planted, Ready came %.3f s after Scheduled", p50)
	}
	if !r.Steps[2].FromEmpty {
		t.Error("a lower level was not made from empty")
	}
	// The copy that the run has left is such a file.
	again := p.run(t, "run", filepath.Join("r", record.ExperimentFile), "--out", "again")
	if again.code != exitBreached || len(p.result(t, "again").Steps) != 3 {
		t.Errorf("run of experiment.yaml: %d\n%s", again.code, again.stderr)
	}
}
