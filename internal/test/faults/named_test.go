package faults

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// A node that is deleted or cordoned, and a network that is cut, while a load is made:
// that is the first sentence of what broke.
func TestWhatTakesNodesOrTheNetworkIsNamed(t *testing.T) {
	suite.Long(t, "runs that are disturbed take half a minute each")
	t.Parallel()
	p := suite.Program(t) // its nodes go: this lab is not shared
	if got := p.Run(t, "lab", "up", "l", "--nodes", "6"); got.Code != process.ExitPass {
		t.Fatalf("lab up: %d %s", got.Code, got.Stderr)
	}
	p.Kubeconfig = strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout)
	// What ends a disturbance is done after the test's own end, too.
	nodes, ctx := client(t, p.Kubeconfig, nil).CoreV1().Nodes(), context.Background()
	list, err := nodes.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 6 {
		t.Fatalf("%d nodes: %v", len(list.Items), err)
	}
	cordon := func(t *testing.T, name, to string) {
		if _, err := nodes.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"unschedulable":`+to+`}}`), metav1.PatchOptions{}); err != nil {
			t.Error(err)
		}
	}
	remove := func(t *testing.T, name string, _ *Proxy) func() {
		if err := nodes.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
		return func() {}
	}
	closed := func(t *testing.T, name string, _ *Proxy) func() {
		cordon(t, name, "true")
		return func() { cordon(t, name, "false") }
	}
	cut := func(_ *testing.T, _ string, proxy *Proxy) func() {
		proxy.Cut()
		return proxy.Restore
	}
	density := []string{"--levels", "12", "--pace", "4", "--hold", "5s"}
	rate := []string{"--axis", "rate", "--levels", "4", "--life", "5s", "--hold", "30s"}
	for i, tt := range []struct {
		why     string
		args    []string
		disturb func(t *testing.T, node string, proxy *Proxy) (end func())
		kind    result.BreachKind
		says    string // NODE is its name
	}{
		{"cordoned, by density", density, closed, result.BreachPlace, "node NODE was cordoned"},
		{"cordoned, by rate", rate, closed, result.BreachPlace, "node NODE was cordoned"},
		{"deleted, by density", density, remove, result.BreachPlace, "node NODE was deleted"},
		{"deleted, by rate", rate, remove, result.BreachPlace, "node NODE was deleted"},
		{"cut, by density", density, cut, result.BreachActor, "the API server, or the network to it, has not answered for "},
		{"cut, by rate", rate, cut, result.BreachActor, "the API server, or the network to it, has not answered for "},
	} {
		t.Run(tt.why, func(t *testing.T) {
			proxy := Start(t, p.Kubeconfig, Plan{Seed: 1})
			out := strings.NewReplacer(" ", "-", ",", "").Replace(tt.why)
			s := p.Start(t, append([]string{"sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--step-timeout", "1m", "--out", out}, tt.args...)...)
			ready := 8
			if tt.args[0] == "--axis" {
				ready = 40 // the warm-up is over
			}
			dir := record.Dir(filepath.Join(p.Dir, out))
			some := recorded("objects are ready", ready, func(e record.Event) bool {
				o, ok := e.Body.(*record.Object)
				return ok && o.Milestone == "Ready"
			})
			harness.Await(t, some.name, func() bool { return s.Ended() || some.happened(dir) })
			node := list.Items[i].Name
			end := tt.disturb(t, node, proxy)
			harness.Await(t, held().name, func() bool { return s.Ended() || held().happened(dir) })
			end()
			got := s.Wait()
			r, says := p.Result(t, out), strings.ReplaceAll(tt.says, "NODE", node)
			if r.BrokeFirst == nil || r.BrokeFirst.Breach.Kind != tt.kind || !strings.HasPrefix(r.BrokeFirst.Breach.What, says) {
				t.Errorf("first broke %+v, want %q", r.BrokeFirst, says)
			}
			_, told, _ := strings.Cut(got.Stdout, "What broke first")
			if lines := strings.Split(told, "\n"); len(lines) < 2 || !strings.Contains(lines[1], says) {
				t.Errorf("the first sentence of what broke is another one: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
			}
			if got.Code == process.ExitPass {
				t.Errorf("it holds: %s", r.Why)
			}
		})
	}
}
