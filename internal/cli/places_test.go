package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// A place that somebody takes leaves nothing that holds: what is measured on fewer
// is another level. What the run itself does to one is no matter.
func TestPlacesThatAreTaken(t *testing.T) {
	at := func(objects string, how ...string) []string {
		return append([]string{"sweep", "simulated", "--levels", "5,15", "--set", "takeAt=" + objects}, how...)
	}
	limit := []string{"limit", "simulated", "--set", "limit=23", "--seed", "1", "--set", "takeAt=50"}
	for _, c := range []struct {
		why   string
		args  []string
		code  int
		says  string // in the reason for the verdict, or nowhere if it begins with "!"
		steps int    // that are made
	}{
		{"deleted in the first level", at("12", "--set", "take=delete"), process.ExitInconclusive, "places 4, then 3: place-3 was deleted in step 1", 1},
		{"closed", at("12", "--set", "take=close"), process.ExitInconclusive, "places 4, then 3: place-3 was closed in step 1", 1},
		{"closed, and open again", at("12", "--set", "take=close", "--set", "takeFor=20ms"), process.ExitInconclusive, "place-3 was closed in step 1", 2},
		{"deleted in the second", at("33", "--set", "take=delete"), process.ExitInconclusive, "place-3 was deleted in step 2", 2},
		{"broken, and the guard ends the step", at("12", "--set", "take=break", "--hold", "3s", "--guard", "placesNotReady=1"), process.ExitCouldNotRun, "guard", 1},
		{"broken for a moment, and the guard sees it", at("12", "--set", "take=break", "--set", "takeFor=2s", "--hold", "3s", "--guard", "placesNotReady=1"), process.ExitBreached, "guard:placesNotReady", 2},
		{"broken, and no guard would have it end", at("12", "--set", "take=break", "--guard", "placesNotReady=2"), process.ExitInconclusive, "places 4, then 3: place-3 is not ready in step 1", 2},
		{"broken for a moment, and nothing was lost by it", at("12", "--set", "take=break", "--set", "takeFor=20ms", "--guard", "placesNotReady=2"), process.ExitHeld, "!place-3", 2},
		{"restarted by the run", at("12", "--set", "take=restart"), process.ExitHeld, "!place-3", 2},
		{"never", at("0"), process.ExitHeld, "!place-3", 2},
		{"a search ends with its bracket", append(limit, "--set", "take=delete"), process.ExitInconclusive, "places 4, then 3: place-3 was deleted in step 3", 3},
		{"a search goes on where the place is there again", append(limit, "--set", "take=close", "--set", "takeFor=20ms"), process.ExitHeld, "!place-3", 0},
		{"a comparison", []string{"ab", "simulated", "--arm", "a:latency=constant:2ms", "--arm", "b:latency=constant:2ms", "--levels", "5", "--repeat", "4", "--set", "takeAt=19", "--set", "take=delete"}, process.ExitInconclusive, "places 4, then 3: place-3 was deleted in step 1", 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			onVirtualClock(t, func(t *testing.T) {
				dir, got := measured(t, c.args...)
				r := resultIn(t, dir)
				text, not := strings.CutPrefix(c.says, "!")
				if got.code != c.code || strings.Contains(r.Why, text) == not || c.steps > 0 && len(r.Steps) != c.steps {
					t.Errorf("exit code %d, want %d, %d steps, want %d: %q, want %q\n%s%s", got.code, c.code, len(r.Steps), c.steps, r.Why, c.says, got.stdout, got.stderr)
				}
				for _, s := range r.Steps {
					if o := s.Objects; o.Created != o.Ready+o.NeverReady+o.Lost {
						t.Errorf("step %d: %+v", s.ID, o)
					}
					if strings.Contains(s.VerdictWhy, "deleted") && (s.Verdict != slo.Inconclusive || s.Objects.Lost == 0) {
						t.Errorf("step %d is %s: %+v", s.ID, s.Verdict, s.Objects)
					}
				}
			})
		})
	}
}

// A node that somebody takes while a level is held leaves nothing that holds.
func TestNodesThatAreTaken(t *testing.T) {
	t.Parallel()
	suite.Long(t, "make faults-core has nodes that are deleted and cordoned")
	p := suite.Program(t) // its nodes go: this lab is not shared
	if got := p.Run(t, "lab", "up", "l", "--nodes", "4"); got.Code != 0 {
		t.Fatalf("lab up: %d %s", got.Code, got.Stderr)
	}
	p.Kubeconfig = strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout)
	typed, _ := labClient(t, p.Kubeconfig)
	nodes, ctx := typed.CoreV1().Nodes(), context.Background()
	list, err := nodes.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 4 {
		t.Fatalf("%d nodes: %v", len(list.Items), err)
	}
	name := list.Items[1].Name
	patch := func(body string, sub ...string) func(t *testing.T) {
		return func(t *testing.T) {
			if _, err := nodes.Patch(ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{}, sub...); err != nil {
				t.Fatal(err)
			}
		}
	}
	cases := []struct {
		why        string
		take, back func(t *testing.T)
		code       int
		says       string
	}{
		{"cordoned", patch(`{"spec":{"unschedulable":true}}`), patch(`{"spec":{"unschedulable":false}}`), process.ExitInconclusive, "nodes 4, then 3: " + name + " was cordoned in step 1"},
		{"tainted", patch(`{"spec":{"taints":[{"key":"upkeep","value":"now","effect":"NoSchedule"}]}}`), patch(`{"spec":{"taints":null}}`), process.ExitInconclusive, "was tainted (upkeep=now:NoSchedule) in step 1"},
		{"tainted as no pod minds", patch(`{"spec":{"taints":[{"key":"upkeep","value":"soon","effect":"PreferNoSchedule"}]}}`), patch(`{"spec":{"taints":null}}`), process.ExitHeld, ""},
		{"not ready", func(t *testing.T) {
			patch(`{"metadata":{"annotations":{"` + lab.DownAnnotation + `":"planted"}}}`)(t)
			patch(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Planted","message":"planted"}]}}`, "status")(t)
		}, patch(`{"metadata":{"annotations":{"` + lab.DownAnnotation + `":null}}}`), process.ExitBreached, "guard:nodesNotReady"},
		{"deleted", func(t *testing.T) {
			if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}, nil, process.ExitInconclusive, "nodes 4, then 3: " + name + " was deleted in step 1"},
	}
	for _, c := range cases {
		t.Run(c.why, func(t *testing.T) {
			run := p.Start(t, "sweep", "node-density", "--lab", "l", "--levels", "5,15", "--hold", "2500ms", "--step-timeout", "20s", "--out", c.why)
			harness.Await(t, "the hold of the first level", func() bool {
				return p.Count(c.why, func(e record.Event) bool {
					s, is := e.Body.(*record.StepEvent)
					return is && s.Phase == record.PhaseReached
				}) > 0
			})
			c.take(t)
			if c.code == process.ExitBreached {
				harness.Await(t, "the guard", func() bool {
					return p.Count(c.why, func(e record.Event) bool { return e.Body.Kind() == record.KindGuard }) > 0
				})
				c.back(t)
			}
			got := run.Wait()
			r := p.Result(t, c.why)
			first := r.Steps[0]
			if got.Code != c.code || !strings.Contains(r.Why, c.says) {
				t.Errorf("exit code %d, want %d: %q, want %q\n%s%s", got.Code, c.code, r.Why, c.says, got.Stdout, got.Stderr)
			}
			if o := first.Objects; o.Created != o.Ready+o.NeverReady+o.Lost || strings.Contains(c.says, "deleted") && o.Lost == 0 {
				t.Errorf("%+v", o)
			}
			if c.back != nil {
				c.back(t)
			}
		})
	}
}

// A host of machines that somebody cordons is taken as well.
func TestHostsThatAreTaken(t *testing.T) {
	suite.Long(t, "boots machines")
	t.Parallel()
	p := suite.Program(t) // its nodes are changed: this lab is not shared
	if got := p.Run(t, "lab", "up", "l", "--virt", "--nodes", "3", "--time-scale", "20"); got.Code != 0 {
		t.Fatalf("lab up: %d %s", got.Code, got.Stderr)
	}
	typed, _ := labClient(t, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout))
	run := p.Start(t, "sweep", "vm-boot-storm", "--lab", "l", "--levels", "6", "--hold", "4s", "--out", "r")
	harness.Await(t, "the hold", func() bool {
		return p.Count("r", func(e record.Event) bool {
			s, is := e.Body.(*record.StepEvent)
			return is && s.Phase == record.PhaseReached
		}) > 0
	})
	_, err := typed.CoreV1().Nodes().Patch(t.Context(), "node-0001", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := run.Wait()
	if r := p.Result(t, "r"); got.Code != process.ExitInconclusive || !strings.Contains(r.Why, "node-0001 was cordoned in step 1") {
		t.Errorf("exit code %d: %q\n%s%s", got.Code, r.Why, got.Stdout, got.Stderr)
	}
}

// A server behind the router, and a brick, that end while the others go on serving
// leave nothing that holds either.
func TestServersThatEnd(t *testing.T) {
	t.Parallel()
	volumes := []string{"--set", "volumes=1", "--set", "size=1MiB", "--set", "drive=false", "--set", "replica=3", "--set", "rate=50", "--slo", "errors < 50%"}
	for _, c := range []struct {
		why     string
		program func(*testing.T) *harness.Program
		one     func(*testing.T, *harness.Program) int // process that is killed, 0 for none yet
		args    []string
		code    int
		says    string
	}{
		{"a server behind the router", routerProgram, func(t *testing.T, p *harness.Program) int {
			processes, _ := inRooms(t, p, "routers")
			for _, line := range processes {
				dir := filepath.Dir(strings.Fields(line)[0])
				if text, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil && strings.Contains(string(text), "server-1.json") {
					pid, _ := strconv.Atoi(filepath.Base(dir))
					return pid
				}
			}
			return 0
		}, []string{"router", "--levels", "2", "--hold", "4s", "--set", "servers=3", "--slo", "errors < 50%"},
			process.ExitInconclusive, "servers 3, then 2: server-1 ended (signal: killed) in step 1"},
		{"the same, as the event of the step", routerProgram, nil,
			[]string{"router", "--levels", "2", "--hold", "3s", "--set", "servers=3", "--set", "event=kill-server", "--slo", "errors < 50%"}, process.ExitHeld, ""},
		{"a brick", glusterProgram, func(_ *testing.T, p *harness.Program) int {
			return append(glusters(p, "glusterfsd"), 0)[0]
		}, append([]string{"io-volumes", "--levels", "1", "--hold", "4s"}, volumes...), process.ExitInconclusive, "has no process for the brick of volume-1 in step 1"},
		{"glusterd", glusterProgram, func(_ *testing.T, p *harness.Program) int {
			for _, pid := range glusters(p, "--no-daemon") {
				if text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm")); err == nil && strings.TrimSpace(string(text)) == "glusterd" {
					return pid
				}
			}
			return 0
		}, append([]string{"io-volumes", "--levels", "1", "--hold", "4s"}, volumes...), process.ExitInconclusive, "has no glusterd: it ended (signal: killed) in step 1"},
	} {
		t.Run(c.why, func(t *testing.T) {
			if c.why == "a brick" || c.why == "glusterd" {
				suite.Long(t, "a GlusterFS of three servers is made")
			}
			p := c.program(t)
			run := p.Start(t, append([]string{"sweep", "--out", "r"}, c.args...)...)
			if c.one != nil {
				harness.Await(t, "the load", func() bool { return windows(p, "r") > 0 })
				if pid := c.one(t, p); pid == 0 || unix.Kill(pid, unix.SIGKILL) != nil {
					t.Fatalf("no process to end: %d", pid)
				}
			}
			got := run.Wait()
			r := p.Result(t, "r")
			if got.Code != c.code || !strings.Contains(r.Why, c.says) {
				t.Errorf("exit code %d, want %d: %q, want %q\n%s%s", got.Code, c.code, r.Why, c.says, got.Stdout, got.Stderr)
			}
			if seen := slices.ContainsFunc(r.Breaches, func(x result.Breach) bool { return x.Kind == result.BreachPlace }); seen != (c.says != "") {
				t.Errorf("breaches %+v", r.Breaches)
			}
		})
	}
}
