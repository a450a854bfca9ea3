package cli_test

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
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// A node that somebody takes while a level is held leaves nothing that holds.
func TestNodesThatAreTaken(t *testing.T) {
	t.Parallel()
	suite.Long(t, "make faults-core has nodes that are deleted and cordoned")
	p := suite.Program(t) // its nodes go: this lab is not shared
	if got := p.Run(t, "lab", "up", "l", "--nodes", "4"); got.Code != 0 {
		t.Fatalf("lab up: %d %s", got.Code, got.Stderr)
	}
	p.Kubeconfig = strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
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

// A server behind the router, and a brick, that end while the others go on serving
// leave nothing that holds either.
func TestServersThatEnd(t *testing.T) {
	t.Parallel()
	volumes := []string{"--set", "volumes=1", "--set", "size=1MiB", "--set", "drive=false", "--set", "replica=3", "--set", "rate=50", "--slo", "errors < 50%"}
	for _, c := range []struct {
		why     string
		program func(*testing.T, *harness.Suite) *harness.Program
		one     func(*testing.T, *harness.Program) int // process that is killed, 0 for none yet
		args    []string
		code    int
		says    string
	}{
		{"a server behind the router", e2e.RouterProgram, func(t *testing.T, p *harness.Program) int {
			processes, _ := e2e.InRooms(t, p, "routers")
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
		{"the same, as the event of the step", e2e.RouterProgram, nil,
			[]string{"router", "--levels", "2", "--hold", "3s", "--set", "servers=3", "--set", "event=kill-server", "--slo", "errors < 50%"}, process.ExitHeld, ""},
		{"a brick", e2e.GlusterProgram, func(_ *testing.T, p *harness.Program) int {
			return append(e2e.Glusters(p, "glusterfsd"), 0)[0]
		}, append([]string{"io-volumes", "--levels", "1", "--hold", "4s"}, volumes...), process.ExitInconclusive, "has no process for the brick of volume-1 in step 1"},
		{"glusterd", e2e.GlusterProgram, func(_ *testing.T, p *harness.Program) int {
			for _, pid := range e2e.Glusters(p, "--no-daemon") {
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
			p := c.program(t, suite)
			run := p.Start(t, append([]string{"sweep", "--out", "r"}, c.args...)...)
			if c.one != nil {
				harness.Await(t, "the load", func() bool { return e2e.Windows(p, "r") > 0 })
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
