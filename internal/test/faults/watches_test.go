package faults

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// warnings returns a result's warnings, one a line.
func warnings(r result.Result) string { return strings.Join(r.Warnings.Lines(), "\n") }

// leftOf lists what carries the label of any run in a cluster, asked directly.
func leftOf(t *testing.T, p *harness.Program) (left []string) {
	t.Helper()
	c := client(t, p.Kubeconfig, nil)
	ours := metav1.ListOptions{LabelSelector: "plimsoll.dev/run"}
	spaces, err := c.CoreV1().Namespaces().List(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range spaces.Items {
		left = append(left, "namespace "+ns.Name)
	}
	pods, err := c.CoreV1().Pods("").List(t.Context(), ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods.Items {
		left = append(left, "pod "+pod.Namespace+"/"+pod.Name)
	}
	return left
}

// What a watch does not tell in time, or at all, is asked of the API: nothing of it
// becomes a breach, and nothing is left.
func TestWatchesAreGuarded(t *testing.T) {
	t.Parallel()
	suite.Long(t, "a run with a watch that is late or hangs takes half a minute")
	lost := []Rule{{On: Match{Verb: "watch", Resource: "pods", Event: "MODIFIED"}, Do: Drop(), Share: 0.05}, {On: Match{Verb: "watch", Resource: "pods", Event: "DELETED"}, Do: Drop(), Share: 0.05}}
	for _, tt := range []struct {
		why   string
		rules []Rule
		args  []string
		check func(t *testing.T, got harness.Outcome, r result.Result)
	}{
		{"events are lost", lost, []string{"--slo", "all Ready"}, func(t *testing.T, got harness.Outcome, r result.Result) {
			s := r.Steps[0]
			if got.Code != process.ExitPass || s.Objects.NeverReady != 0 || s.Objects.Ready != s.Objects.Intended {
				t.Errorf("exit code %d, %+v: %s", got.Code, s.Objects, s.VerdictWhy)
			}
			if s.Missed["pods"] == 0 || !strings.Contains(warnings(r), "the watch of pods missed changes, which a list showed") {
				t.Errorf("missed %v, %s", s.Missed, warnings(r))
			}
		}},
		// At this pace the load takes longer than the watch is in time.
		{"the watch of pods is 8 s late", []Rule{{On: Watches("pods"), Do: Late(8 * time.Second), From: 3 * time.Second}}, []string{"--slo", "Ready p99 <= 5s", "--pace", "20"}, func(t *testing.T, got harness.Outcome, r result.Result) {
			s := r.Steps[0]
			if got.Code != process.ExitInconclusive || s.Verdict != slo.Inconclusive || !strings.Contains(s.VerdictWhy, "the news of objects was late, by ") {
				t.Errorf("exit code %d, %s: %s", got.Code, s.Verdict, s.VerdictWhy)
			}
			if s.WatchLag == nil || s.WatchLag.P99 == nil || *s.WatchLag.P99 < 7 || !strings.Contains(warnings(r), "watch of pods late") {
				t.Errorf("%+v, %s", s.WatchLag, warnings(r))
			}
		}},
		{"namespaces were never told of", []Rule{{On: Watches("namespaces"), Do: Drop()}, {On: Match{Verb: "watch", Resource: "pods", Event: "DELETED"}, Do: Drop()}}, []string{"--slo", "all Ready"}, saysLate("namespaces")},
		{"namespaces hang", []Rule{{On: Watches("namespaces"), Do: Hang(), Nth: 2}}, []string{"--slo", "all Ready"}, saysLate("namespaces")},
		{"events hang", []Rule{{On: Watches("events"), Do: Hang(), Nth: 2}}, []string{"--slo", "all Ready"}, saysLate("events")},
	} {
		t.Run(tt.why, func(t *testing.T) {
			p := suite.Lab(t, "--nodes", "4", "--max-pods", "60")
			proxy := Start(t, p.Kubeconfig, Plan{Seed: 7, Rules: tt.rules})
			got := p.RunTo(t, "r", append([]string{"sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "50", "--pace", "max", "--hold", "8s"}, tt.args...)...)
			r := p.Result(t, "r")
			tt.check(t, got, r)
			if r.Cleanup == nil || !r.Cleanup.Done {
				t.Errorf("cleanup %+v", r.Cleanup)
			}
			if left := leftOf(t, p); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if t.Failed() {
				t.Logf("exit code %d, faults %v\n%s", got.Code, proxy.Counts().Faults, warnings(r))
			}
		})
	}
}

// saysLate returns the check of a run that held, and says which watch was late.
func saysLate(watch string) func(t *testing.T, got harness.Outcome, r result.Result) {
	return func(t *testing.T, got harness.Outcome, r result.Result) {
		if got.Code != process.ExitPass {
			t.Errorf("exit code %d: %s", got.Code, r.Why)
		}
		for _, w := range r.Warnings {
			if w.Kind == record.WarningWatch && strings.Contains(w.Text, "watch of "+watch+" late") {
				return
			}
		}
		t.Errorf("no warning of the watch of %s:\n%s", watch, warnings(r))
	}
}

// Nodes tell of nothing while nothing happens to them: what a watch of them has not
// brought, a list shows.
func TestAWatchOfNodesThatHangsIsReported(t *testing.T) {
	suite.Long(t, "nodes are listed every ten seconds")
	t.Parallel()
	p := suite.Lab(t, "--nodes", "4", "--max-pods", "60")
	proxy := Start(t, p.Kubeconfig, Plan{Seed: 7, Rules: []Rule{{On: Watches("nodes"), Do: Hang()}}})
	s := p.Start(t, "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "20", "--slo", "all Ready", "--hold", "30s", "--out", "nodes")
	harness.Await(t, "the hold", func() bool { return s.Ended() || holding().happened(record.Dir(filepath.Join(p.Dir, "nodes"))) })
	nodes := client(t, p.Kubeconfig, nil).CoreV1().Nodes()
	list, err := nodes.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = nodes.Patch(t.Context(), list.Items[0].Name, types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/noted":"now"}}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	saysLate("nodes")(t, s.Wait(), p.Result(t, "nodes"))
}
