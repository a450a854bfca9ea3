package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// The whole way without a cluster: a private lab, whatever KUBECONFIG names, the
// search, a record, a result, and nothing left behind.
func TestLimitFindsThePlantedLimit(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	away := filepath.Join(p.Dir, "kubeconfig")
	if err := os.WriteFile(away, []byte("apiVersion: v1\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: {server: https://127.0.0.1:1}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = []string{"KUBECONFIG=" + away}
	got := p.RunTo(t, "r", "limit", "node-density", "--lab-nodes", "2", "--lab-max-pods", "11", "--from", "10", "--step", "5", "--max", "30",
		"--hold", "500ms", "--slo", "all Ready", "-o", "json")
	if got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	var shown result.Result
	if err := json.Unmarshal([]byte(got.Stdout), &shown); err != nil {
		t.Fatalf("-o json printed %v:\n%s", err, got.Stdout)
	}
	r := p.Result(t, "r")
	line := r.LoadLine
	if *line.Level != 11 || *line.LowestFailing != 12 || line.Confirmations != 3 || line.Binding != "Too many pods on 2 of 2 nodes" || *shown.LoadLine.Level != 11 {
		t.Errorf("line %+v", line)
	}
	if r.Fidelity.ControlPlane != record.Real || r.Fidelity.Nodes != record.Simulated || len(r.Fidelity.Notes) == 0 {
		t.Errorf("fidelity %+v", r.Fidelity)
	}
	if !strings.HasPrefix(r.Command, "plimsoll limit node-density --lab-nodes 2") {
		t.Errorf("command %q", r.Command)
	}
	env := p.Environment(t, "r")
	if env.Value("kubernetes") != "v1.36.3" || env.Value("nodes") != "2" || !env.Target.Private || env.Value("host:cpus") == "" {
		t.Errorf("environment %+v", env)
	}
	p.LeavesNoLab(t)

	before, err := os.ReadFile(filepath.Join(p.Dir, "r", record.ResultFile))
	if err != nil {
		t.Fatal(err)
	}
	again := p.Run(t, "analyze", "r", "--explain")
	after, err := os.ReadFile(filepath.Join(p.Dir, "r", record.ResultFile))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("analyze came to another result: %v", err)
	}
	for _, part := range []string{"11 pods/node, confirmed 3 of 3", "12 failed", "Too many pods on 2 of 2 nodes", "Why each level was chosen", "Simulated: nodes, containers; the control plane was real"} {
		if !strings.Contains(again.Stdout, part) {
			t.Errorf("analyze lacks %q:\n%s", part, again.Stdout)
		}
	}
	// The plan that the run has left runs again.
	if text, err := os.ReadFile(filepath.Join(p.Dir, "r", record.ExperimentFile)); err != nil || !bytes.Contains(text, []byte("schema: plimsoll/experiment/v1")) {
		t.Errorf("experiment.yaml: %v\n%s", err, text)
	}
}

func TestARunThatIsKilled(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	w := p.Start(t, "sweep", "node-density", "--lab", p.Lab, "--levels", "100", "--pace", "60", "--set", "startLatency=constant:3s", "--out", "r")
	harness.Await(t, "the load to be under way", func() bool { return p.Requested("r", 60) })
	w.Kill()

	got := p.Run(t, "analyze", "r")
	if got.Code != process.ExitInconclusive {
		t.Errorf("analyze: exit code %d, want 3\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	r := p.Result(t, "r")
	o := r.Steps[0].Objects
	if r.Verdict != slo.Inconclusive || o.Intended < 60 || o.Lost == 0 || o.NeverReady != 0 || o.Created != o.Ready+o.Lost {
		t.Errorf("verdict %s, %+v", r.Verdict, o)
	}
	if len(r.Warnings) == 0 || !strings.Contains(strings.Join(r.Warnings.Lines(), " "), "was cut") {
		t.Errorf("warnings %q", r.Warnings)
	}
	// Here it is known at once that it is dead; who has another state directory
	// knows only of its signs of life.
	if left := p.Leftovers(t); len(left) != 1 || left[0].Alive {
		t.Fatalf("left %+v", left)
	}
	elsewhere := func(args ...string) (stdout, stderr string, code int) {
		t.Helper()
		cmd := p.Command(args...)
		cmd.Env = append(cmd.Env, "XDG_STATE_HOME="+t.TempDir())
		var out, err strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &err
		cmd.Run()
		return out.String(), err.String(), cmd.ProcessState.ExitCode()
	}
	id := p.Leftovers(t)[0].Run
	command := "plimsoll clean --kubeconfig " + p.Kubeconfig + " --run " + id + " --force"
	if out, err, code := elsewhere("clean", "--kubeconfig", p.Kubeconfig); code != 0 || !strings.Contains(out, "left alone, it gave a sign of life at ") ||
		!strings.Contains(out, "it counts as dead from ") || !strings.Contains(out, command) || strings.Contains(out, "nothing to remove") {
		t.Errorf("clean from elsewhere: %d %s%s", code, out, err)
	}
	// Its pods count in the levels of a run from elsewhere, whose result says so.
	out, err, _ := elsewhere("sweep", "node-density", "--kubeconfig", p.Kubeconfig, "--levels", "4", "--hold", "100ms", "--yes", "--out", "beside")
	if r := p.Result(t, "beside"); !strings.Contains(strings.Join(r.Warnings.Lines(), "\n"), "run "+id+" may be loading this cluster too") || !strings.Contains(out, command) {
		t.Errorf("beside a dead run: %q\n%s%s", r.Warnings, out, err)
	}
	if got := p.Run(t, "clean", "--lab", p.Lab, "--dry-run"); got.Code != 0 || !strings.Contains(got.Stdout, "would remove") {
		t.Errorf("clean --dry-run: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := p.Run(t, "clean", "--lab", p.Lab); got.Code != 0 || !strings.Contains(got.Stdout, "removed run") {
		t.Errorf("clean: %d %s%s", got.Code, got.Stdout, got.Stderr)
	}
	if left := p.Leftovers(t); len(left) != 0 {
		t.Errorf("left after clean: %+v", left)
	}
}

func TestInterrupts(t *testing.T) {
	t.Parallel()
	t.Run("one Ctrl-C ends the load, writes the result and cleans up", func(t *testing.T) {
		t.Parallel()
		p := suite.Lab(t, e2e.WideLab()...)
		w := p.Start(t, "sweep", "node-density", "--lab", p.Lab, "--levels", "100", "--pace", "50", "--out", "r")
		harness.Await(t, "the load to be under way", func() bool { return p.Requested("r", 40) })
		w.Signal(os.Interrupt)
		if got := w.Wait(); got.Code != process.ExitInterrupted {
			t.Errorf("exit code %d, want 130\n%s", got.Code, got.Stderr)
		}
		if r := p.Result(t, "r"); r.Verdict != slo.Inconclusive || r.Steps[0].Objects.Intended < 40 {
			t.Errorf("verdict %s, %+v", r.Verdict, r.Steps[0].Objects)
		}
		// On a busy machine the run does not wait for the end of all, and says so.
		harness.Await(t, "the cluster to finish the removal", func() bool { return len(p.Leftovers(t)) == 0 })
	})
	t.Run("two do not wait, and leave nothing", func(t *testing.T) {
		t.Parallel()
		p := suite.Lab(t, e2e.WideLab()...)
		w := p.Start(t, "sweep", "node-density", "--lab", p.Lab, "--levels", "100", "--pace", "100", "--out", "r")
		harness.Await(t, "the load to be under way", func() bool { return p.Requested("r", 100) })
		w.Signal(os.Interrupt)
		time.Sleep(200 * time.Millisecond)
		w.Signal(os.Interrupt)
		if got := w.Wait(); got.Code != process.ExitInterrupted {
			t.Errorf("exit code %d, want 130\n%s", got.Code, got.Stderr)
		}
		harness.Await(t, "the cluster to finish the removal", func() bool { return len(p.Leftovers(t)) == 0 })
	})
	for _, closed := range []struct {
		why    string
		redo   func(cmd *exec.Cmd, pipe *os.File) // which of its outputs is the pipe
		signal syscall.Signal                     // sent too, twice, as a terminal does; 0 for none
		code   int
	}{
		{"nobody reads what it says on the way", func(cmd *exec.Cmd, pipe *os.File) { cmd.Stderr = pipe }, 0, 141},
		{"nobody reads anything", func(cmd *exec.Cmd, pipe *os.File) { cmd.Stdout, cmd.Stderr = pipe, pipe }, 0, 141},
		{"its terminal is closed", func(cmd *exec.Cmd, pipe *os.File) { cmd.Stdout, cmd.Stderr = io.Discard, io.Discard }, syscall.SIGHUP, 129},
	} {
		t.Run(closed.why+": it cleans up", func(t *testing.T) {
			t.Parallel()
			p := suite.Lab(t, e2e.WideLab()...)
			cmd := p.Command("sweep", "node-density", "--lab", p.Lab, "--levels", "2,100,101,102", "--pace", "50", "--out", "r")
			read, write, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			closed.redo(cmd, write)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			write.Close()
			if closed.signal == 0 {
				read.Read(make([]byte, 1)) // like head: one line, and away
			}
			read.Close()
			if closed.signal != 0 {
				harness.Await(t, "the load to be under way", func() bool { return p.Requested("r", 10) })
				cmd.Process.Signal(closed.signal)
				cmd.Process.Signal(closed.signal)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != closed.code {
				t.Errorf("%v, want exit code %d", cmd.ProcessState, closed.code)
			}
			if r := p.Result(t, "r"); r.Cleanup == nil || !r.Cleanup.Done {
				t.Errorf("cleanup %+v", r.Cleanup)
			}
			if left := p.Leftovers(t); len(left) != 0 {
				t.Errorf("left %+v", left)
			}
		})
	}
	t.Run("SIGTERM says so", func(t *testing.T) {
		t.Parallel()
		p := suite.Program(t)
		w := p.Start(t, "sweep", "node-density", "--lab-nodes", "3", "--levels", "100", "--pace", "20", "--out", "r")
		harness.Await(t, "the load to be under way", func() bool { return p.Requested("r", 5) })
		w.Signal(syscall.SIGTERM)
		if got := w.Wait(); got.Code != 143 {
			t.Errorf("exit code %d, want 143\n%s", got.Code, got.Stderr)
		}
		p.LeavesNoLab(t)
	})
	t.Run("two while a private lab comes up leave nothing", func(t *testing.T) {
		t.Parallel()
		p := suite.Program(t)
		w := p.Start(t, "sweep", "node-density", "--lab-nodes", "3", "--levels", "10", "--out", "r")
		harness.Await(t, "a component to be started", func() bool {
			files, _ := filepath.Glob(p.State + "/plimsoll/labs/*/logs/*.log")
			return len(files) > 0
		})
		w.Signal(os.Interrupt)
		w.Signal(os.Interrupt)
		if got := w.Wait(); got.Code != process.ExitInterrupted {
			t.Errorf("exit code %d, want 130\n%s", got.Code, got.Stderr)
		}
		p.LeavesNoLab(t)
	})
}

// A lab's kubeconfig without its marker is any cluster: refused, or
// loaded with care.
func TestAClusterThatIsNoLab(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	config, err := clientcmd.LoadFromFile(p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	marked := filepath.Join(p.Dir, "marked")
	if err := clientcmd.WriteToFile(*config, marked); err != nil {
		t.Fatal(err)
	}
	for _, c := range config.Contexts {
		delete(c.Extensions, lab.MarkerExtension)
	}
	stripped := filepath.Join(p.Dir, "stripped")
	if err := clientcmd.WriteToFile(*config, stripped); err != nil {
		t.Fatal(err)
	}

	got := p.Run(t, "sweep", "node-density", "--kubeconfig", stripped, "--levels", "2")
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "--yes") || !strings.Contains(got.Stderr, "v1.36.3, 2 nodes") {
		t.Errorf("without --yes: %d %s", got.Code, got.Stderr)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "plimsoll-runs")); err == nil {
		t.Error("a run that was refused has left a record")
	}
	got = p.RunTo(t, "careful", "sweep", "node-density", "--kubeconfig", stripped, "--levels", "12", "--yes", "--hold", "1s")
	if got.Code != 0 {
		t.Fatalf("with --yes: %d %s", got.Code, got.Stderr)
	}
	r := p.Result(t, "careful")
	if s := r.Steps[0]; s.Pace != "20/s" || *s.OfferedRate > 21 || s.Objects.Ready != 24 {
		t.Errorf("pace %s, offered %v, %+v", s.Pace, *s.OfferedRate, s.Objects)
	}
	plan, err := os.ReadFile(filepath.Join(p.Dir, "careful", record.ExperimentFile))
	if err != nil || !strings.Contains(string(plan), "nodesNotReady: 1") || !strings.Contains(string(plan), "apiErrors: 5") {
		t.Errorf("no guards in the plan: %v\n%s", err, plan)
	}
	if left := p.Leftovers(t); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
	// A copy with its marker is a lab, wherever it lies.
	got = p.RunTo(t, "lab", "sweep", "node-density", "--kubeconfig", marked, "--levels", "2", "--hold", "100ms")
	if got.Code != 0 || p.Result(t, "lab").Steps[0].Pace != "max" {
		t.Errorf("with its marker: %d %s", got.Code, got.Stderr)
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
	if got = p.Run(t, "sweep", "node-density", "--kubeconfig", marked, "--levels", "2"); got.Code != process.ExitUsage {
		t.Errorf("with a wrong marker: %d %s", got.Code, got.Stderr)
	}
}

// A disk that is full ends the run: nothing goes on without a record.
func TestAFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	small := filepath.Join(p.Dir, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", small, "tmpfs", 0, "size=48k"); err != nil {
		t.Skip("cannot mount a small file system: ", err)
	}
	defer syscall.Unmount(small, 0)
	got := p.Run(t, "sweep", "node-density", "--lab", p.Lab, "--levels", "100,20,100,20,100,20,100", "--hold", "100ms", "--out", filepath.Join(small, "r"))
	if got.Code != process.ExitCouldNotRun || strings.Count(got.Stderr, "write history: ") != 1 || !strings.Contains(got.Stderr, "no space left") {
		t.Errorf("exit code %d, want 5\n%s", got.Code, got.Stderr)
	}
	if left := p.Leftovers(t); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
}

// The plan file, the example among them, runs as it stands.
func TestPlanFiles(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	file := filepath.Join(p.Dir, "plan.yaml")
	text := "schema: plimsoll/experiment/v1\nname: small\nworkload: node-density\ntarget: {lab: {nodes: 3, maxPods: 20}}\naxis: {levels: [5, 30, 10]}\nhold: 200ms\nparams: {startLatency: \"uniform:100ms,200ms\"}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := p.RunTo(t, "r", "run", file)
	if got.Code != process.ExitFail {
		t.Fatalf("exit code %d, want 1: 30 is above 20\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	r := p.Result(t, "r")
	want := []string{"5 pass 15/15", "30 fail 60/90", "10 pass 30/30"}
	for i, s := range r.Steps {
		if have := fmt.Sprintf("%g %s %d/%d", s.LevelReached, s.Verdict, s.Objects.Ready, s.Objects.Intended); have != want[i] {
			t.Errorf("step %d: %s, want %s", s.ID, have, want[i])
		}
	}
	if p50 := *r.Steps[0].Latency["Ready"].P50 - *r.Steps[0].Latency["Scheduled"].P50; p50 < 0.09 { // how much more is the machine's matter
		t.Errorf("with at least 100 ms planted, Ready came %.3f s after Scheduled", p50)
	}
	if !r.Steps[2].FromEmpty {
		t.Error("a lower level was not made from empty")
	}
	// The copy that the run has left is such a file.
	again := p.Run(t, "run", filepath.Join("r", record.ExperimentFile), "--dry-run")
	if again.Code != process.ExitPass || !strings.Contains(again.Stdout, "5 30 10 pods/node") {
		t.Errorf("run of experiment.yaml: %d\n%s", again.Code, again.Stderr)
	}
}

// A mistake in a template is found before the load, by the cluster's own words
// and with its place in the file; nothing stays of the attempt.
func TestAMistakeInATemplate(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	if got := p.Run(t, "workloads", "export", "node-density", "w"); got.Code != 0 {
		t.Fatalf("export: %d %s", got.Code, got.Stderr)
	}
	config, err := os.ReadFile(filepath.Join(p.Dir, "w", "node-density.yml"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.Dir, "w", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("node-density.yml", strings.TrimRight(string(config), "\n")+"\n  - objectTemplate: more.yml\n    replicas: 1\n")
	for _, tt := range []struct{ why, template, want string }{
		{"a version that the cluster does not have", "# more\napiVersion: apps/v2\nkind: Deployment\nmetadata: {name: " + "\"a-{{.Iteration}}\"" + "}\n", "more.yml:2: apiVersion: the cluster knows no kind Deployment in apps/v2 (it knows Deployment in apps/v1)"},
		{"a value that the server refuses", "apiVersion: v1\nkind: Service\nmetadata:\n  name: s-{{.Iteration}}\nspec:\n  ports:\n  - port: 800000\n", "more.yml:7: spec.ports[0].port: Invalid value: 800000"},
		{"a value of another type", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: s-{{.Iteration}}\ndata:\n  a: 5\n", "more.yml:5: data: this is not a ConfigMap: json: cannot unmarshal number"},
		{"a name that comes again", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: same\n", `more.yml:4: metadata.name: ConfigMap "same" is asked for twice`},
	} {
		write("more.yml", tt.template)
		got := p.Run(t, "sweep", "./w", "--lab", p.Lab, "--levels", "2", "--hold", "100ms", "--out", "r")
		if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "plimsoll: "+tt.want) {
			t.Errorf("%s: exit code %d, want 2 and %q\n%s%s", tt.why, got.Code, tt.want, got.Stdout, got.Stderr)
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "r")); err == nil {
			t.Errorf("%s: the run directory stays", tt.why)
		}
		if left := p.Leftovers(t); len(left) != 0 {
			t.Errorf("%s: left %+v", tt.why, left)
		}
	}
	grid := p.Run(t, "limit", "./w", "--lab", p.Lab, "--vary", "gracePeriod=0,1", "--out", "g")
	if _, err := os.Stat(filepath.Join(p.Dir, "g")); grid.Code != process.ExitUsage || err == nil || strings.Contains(grid.Stderr, "--resume") || strings.Contains(grid.Stdout, "cells") {
		t.Errorf("in a grid: exit code %d, directory %v\n%s%s", grid.Code, err, grid.Stdout, grid.Stderr)
	}
	write("more.yml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c-{{.Iteration}}\n")
	if got := p.Run(t, "sweep", "./w", "--lab", p.Lab, "--levels", "2", "--hold", "100ms", "--out", "r"); got.Code != 0 {
		t.Errorf("once it is right: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}
