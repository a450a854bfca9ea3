package kubernetes_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
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
		{"tainted as no pod minds", patch(`{"spec":{"taints":[{"key":"upkeep","value":"soon","effect":"PreferNoSchedule"}]}}`), patch(`{"spec":{"taints":null}}`), process.ExitPass, ""},
		{"not ready", func(t *testing.T) {
			patch(`{"metadata":{"annotations":{"` + protocol.DownAnnotation + `":"planted"}}}`)(t)
			patch(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"Planted","message":"planted"}]}}`, "status")(t)
		}, patch(`{"metadata":{"annotations":{"` + protocol.DownAnnotation + `":null}}}`), process.ExitFail, "guard:nodesNotReady"},
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
			if c.code == process.ExitFail {
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
