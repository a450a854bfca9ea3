package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// checked runs a check with JSON for its output.
func checked(t *testing.T, p *harness.Program, want int, args ...string) ceiling.Check {
	t.Helper()
	got := p.Run(t, append([]string{"check", "-o", "json"}, args...)...)
	var c ceiling.Check
	if err := json.Unmarshal([]byte(got.Stdout), &c); err != nil || got.Code != want || c.ExitCode != want {
		t.Fatalf("check %v: exit code %d, want %d: %v\n%s%s", args, got.Code, want, err, got.Stdout, got.Stderr)
	}
	return c
}

func ceilingNamed(t *testing.T, list []record.Ceiling, name string) record.Ceiling {
	t.Helper()
	i := slices.IndexFunc(list, func(c record.Ceiling) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no ceiling %s in %+v", name, list)
	}
	return list[i]
}

// finding finds what was found about something, with part of its text.
func finding(list []record.HealthFinding, what, text string) *record.HealthFinding {
	for i, f := range list {
		if f.What == what && strings.Contains(f.Text, text) {
			return &list[i]
		}
	}
	return nil
}

// The demo's shape, without a load.
func TestCheckPredictsTheDemo(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	c := checked(t, p, process.ExitPass, "node-density", "--lab-nodes", "20", "--lab-max-pods", "110")
	b := c.Table.Binding()
	if c.Schema != "plimsoll/check/v1" || b == nil || *c.Binding != "allocatablePods" || *b.Level != 110 || *b.Total != 2200 || b.Reason != "Too many pods on 20 of 20 nodes" {
		t.Errorf("binding %+v", b)
	}
	if c.Severity != record.SeverityOK || !c.Target.Private || c.Target.Version != "v1.36.3" {
		t.Errorf("severity %s, target %+v, findings %+v", c.Severity, c.Target, c.Findings)
	}
	p.LeavesNoLab(t)
}

// What is predicted is what a run then finds, in the same words.
func TestPredictionAndRunAgree(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	withQuota(t, p, "twenty", 20)
	tests := []struct {
		args   []string
		run    string
		level  float64 // that holds
		reason string
		why    string
	}{
		{[]string{"./twenty"}, "sweep --levels 6,7", 6, "exceeded quota: few", "20 pods on 3 nodes are 6 and two thirds of a pod"},
		{[]string{"node-density"}, "limit --from 15 --step 1 --max 16 --confirm 1", 15, "Too many pods on 3 of 3 nodes", "nodes are full"},
		{[]string{"node-density", "--set", "cpuRequest=4"}, "sweep --levels 8,9", 8, "Insufficient cpu on 3 of 3 nodes", "32 cores hold 8 pods of 4"},
	}
	for _, tt := range tests[:suite.Size(1, len(tests))] {
		c := checked(t, p, process.ExitPass, append(tt.args, "--lab", p.Lab)...)
		b := c.Table.Binding()
		if b == nil || int(*b.Level) != int(tt.level) || !strings.Contains(b.Reason, tt.reason) {
			t.Errorf("%s: check predicts %+v, want %g by %q", tt.why, b, tt.level, tt.reason)
			continue
		}
		dir := "r" + tt.reason[:3]
		got := p.RunTo(t, dir, append(append(strings.Fields(tt.run), tt.args...), "--lab", p.Lab, "--hold", "500ms", "--slo", "all Ready")...)
		r := p.Result(t, dir)
		if r.Prediction == nil || r.Prediction.Agreement != ceiling.AsPredicted || *r.Prediction.Found != tt.level || !strings.Contains(r.Prediction.FoundBinding, tt.reason) || !strings.Contains(got.Stdout, "bound by the same") {
			t.Errorf("%s: predicted and found: %+v\n%s%s", tt.why, r.Prediction, got.Stdout, got.Stderr)
			continue
		}
		if l := r.LoadLine; l != nil && (got.Code != process.ExitPass || *l.Level != tt.level || l.Binding != b.Reason) {
			t.Errorf("%s: exit code %d, line %+v", tt.why, got.Code, l)
		}
		if one := ceilingNamed(t, r.Ceilings, b.Name); one.Reason != b.Reason || *one.Level != *b.Level {
			t.Errorf("%s: the run's own ceiling is %+v, check's %+v", tt.why, one, b)
		}
		if want := fmt.Sprintf("%g lies above", tt.level+1); !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: no warning %q of a level above the ceiling:\n%s", tt.why, want, got.Stderr)
		}
		// It is in the record: analysis tells it again.
		if again := p.Run(t, "analyze", dir); !strings.Contains(again.Stdout, "Predicted ") {
			t.Errorf("%s: analyze does not tell of the prediction:\n%s", tt.why, again.Stdout)
		}
		page, err := os.ReadFile(filepath.Join(p.Dir, dir, "report.html"))
		if err != nil || !strings.Contains(string(page), "Predicted and found") {
			t.Errorf("%s: the page has no prediction: %v", tt.why, err)
		}
	}
}

// withQuota makes a namespace with a quota on pods, and a workload of its name
// whose pods go there.
func withQuota(t *testing.T, p *harness.Program, name string, pods int64) {
	t.Helper()
	ctx := context.Background()
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	if _, err := typed.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "few"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)},
	}}
	if _, err := typed.CoreV1().ResourceQuotas(name).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// It counts once its controller has seen it.
	harness.Await(t, "the quota to count", func() bool {
		q, err := typed.CoreV1().ResourceQuotas(name).Get(ctx, "few", metav1.GetOptions{})
		return err == nil && len(q.Status.Hard) > 0
	})
	if got := p.Run(t, "workloads", "export", "node-density", name); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	for file, change := range map[string][2]string{
		"pod.yml":       {"metadata:\n", "metadata:\n  namespace: " + name + "\n"},
		"workload.yaml": {"name: node-density\n", "name: " + name + "\n"},
	} {
		path := filepath.Join(p.Dir, name, file)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// inventory returns every object of a cluster with its version, but for what changes
// by itself.
func inventory(t *testing.T, kubeconfig string) map[string]string {
	t.Helper()
	typed, untyped := e2e.LabClient(t, kubeconfig)
	_, lists, err := typed.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "list") {
				continue
			}
			objects, err := untyped.Resource(gv.WithResource(r.Name)).List(context.Background(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range objects.Items {
				version := o.GetResourceVersion()
				if r.Name == "leases" || r.Name == "nodes" || r.Name == "ipaddresses" {
					version = "" // they are kept alive
				}
				all[r.Name+" "+o.GetNamespace()+"/"+o.GetName()] = version
			}
		}
	}
	return all
}

// A check makes nothing, needs no right to make anything, and no confirmation;
// what it may not read is unknown.
func TestCheckOnlyReads(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	reader := e2e.AsUser(t, p, "reader", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}})
	nobody := e2e.AsUser(t, p, "nobody")
	before := inventory(t, p.Kubeconfig)

	if c := checked(t, p, process.ExitPass, "node-density", "--lab", p.Lab); *c.Table.Binding().Level != 110 {
		t.Errorf("binding %+v", c.Table.Binding())
	}
	// A user that can only read: everything is known, and that it could not run.
	c := checked(t, p, process.ExitFail, "node-density", "--kubeconfig", reader)
	if f := finding(c.Findings, "rights", "may not create pods, patch pods, create namespaces, patch namespaces, delete namespaces, delete pods"); f == nil || f.Severity != record.SeverityError {
		t.Errorf("findings %+v", c.Findings)
	}
	if b := c.Table.Binding(); b == nil || *b.Level != 110 || b.Reason != "Too many pods on 2 of 2 nodes" {
		t.Errorf("what a reader is told: %+v", b)
	}
	// Without a workload there is nothing that the user would have to do.
	checked(t, p, process.ExitPass, "--kubeconfig", reader)
	// A user who may read nothing gets a finding for each part.
	c = checked(t, p, process.ExitFail, "node-density", "--kubeconfig", nobody)
	if c.Binding != nil {
		t.Errorf("without a right %s is said to bind", *c.Binding)
	}
	for _, name := range []string{"allocatablePods", "allocatableCPU", "podAddressesPerNode", "serviceAddresses", "testedPods", "testedNamespaces"} {
		if one := ceilingNamed(t, c.Table.Ceilings, name); one.Class != record.CeilingUnknown || !strings.Contains(one.Note, "may not read it") || one.Level != nil {
			t.Errorf("%s for a user without rights: %+v", name, one)
		}
	}
	for what, text := range map[string]string{"nodes": "may not read it", "pods": "may not read it", "leftovers": "unknown", "rights": "may not create pods, list pods, watch pods"} {
		if f := finding(c.Findings, what, text); f == nil || f.Severity == record.SeverityOK {
			t.Errorf("what a user without rights is told of %s: %+v", what, c.Findings)
		}
	}

	after := inventory(t, p.Kubeconfig)
	for name, version := range after {
		if was, there := before[name]; !there || was != version {
			t.Errorf("%s: there before: %v, version %q, now %q", name, there, was, version)
		}
	}
	if gone := len(before) - len(after); gone != 0 {
		t.Errorf("%d objects are gone:\n%v", gone, slices.Sorted(maps.Keys(before)))
	}
}

// check lists what an earlier run left, with the command that removes it.
func TestCheckTellsOfLeftovers(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "node-density-x-0", Labels: map[string]string{"app.kubernetes.io/managed-by": "plimsoll", "plimsoll.dev/run": "0badcafe"}}}
	if _, err := typed.CoreV1().Namespaces().Create(context.Background(), left, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c := checked(t, p, process.ExitPass, "--lab", p.Lab)
	f := finding(c.Findings, "leftovers", "run 0badcafe (1 namespace)")
	if f == nil || f.Severity != record.SeverityWarning || f.Hint != "plimsoll clean --lab "+p.Lab {
		t.Fatalf("findings %+v", c.Findings)
	}
	if got := p.Run(t, strings.Fields(strings.TrimPrefix(f.Hint, "plimsoll "))...); got.Code != 0 || !strings.Contains(got.Stdout, "removed run 0badcafe") {
		t.Errorf("%s: %d %s%s", f.Hint, got.Code, got.Stdout, got.Stderr)
	}
	if c := checked(t, p, process.ExitPass, "--lab", p.Lab); finding(c.Findings, "leftovers", "no earlier run") == nil {
		t.Errorf("after cleaning: %+v", c.Findings)
	}
}

// A cluster without a node that is ready is not loaded, unless somebody insists.
func TestALoadDoesNotBeginOnAnUnfitCluster(t *testing.T) {
	t.Parallel()
	p := suite.Program(t) // its nodes go: this lab is not shared
	if got := p.Run(t, "lab", "up", "l", "--nodes", "2"); got.Code != 0 {
		t.Fatalf("lab up: %d %s", got.Code, got.Stderr)
	}
	p.Lab, p.Kubeconfig = "l", strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout)
	if got := p.Run(t, "sweep", "node-density", "--lab", p.Lab, "--levels", "1", "--slo", "ImagesReady p99 <= 5s", "--out", "images"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "these nodes are simulated, and fetch no images") {
		t.Errorf("a goal that simulated nodes cannot reach: %d\n%s", got.Code, got.Stderr)
	}
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	ctx := context.Background()
	// A node without a kubelet, real or simulated, is never ready.
	if err := typed.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := typed.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "dead"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	args := []string{"sweep", "node-density", "--lab", p.Lab, "--levels", "2", "--hold", "500ms", "--step-timeout", "2s", "--out", "r"}
	got := p.Run(t, args...)
	if got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "not fit to be loaded: nodes: none of 1 is Ready: dead") || !strings.Contains(got.Stderr, "--ignore-health") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "r")); err == nil {
		t.Error("a run that never began has left a directory")
	}
	c := checked(t, p, process.ExitFail, "node-density", "--lab", p.Lab)
	if f := finding(c.Findings, "nodes", "none of 1 is Ready"); f == nil || !f.Stops {
		t.Errorf("check found %+v", c.Findings)
	}
	// Who insists gets a run: it finds out that nothing can land there.
	if got := p.Run(t, append(args, "--ignore-health")...); got.Code == process.ExitCouldNotRun || !strings.Contains(got.Stderr, "warning: nodes: none of 1 is Ready: dead") {
		t.Errorf("with --ignore-health: exit code %d\n%s", got.Code, got.Stderr)
	}
}

// A sweep says what was predicted too, and warns of levels above it.
func TestSweepAboveACeilingIsWarnedOf(t *testing.T) {
	suite.Long(t, "a lab of its own is filled above its places")
	t.Parallel()
	p := suite.Program(t)
	got := p.RunTo(t, "r", "sweep", "node-density", "--lab-nodes", "2", "--lab-max-pods", "5", "--levels", "4,8,9", "--hold", "500ms", "--step-timeout", "5s")
	if got.Code != process.ExitFail || !strings.Contains(got.Stderr, "warning: --levels 8, --levels 9 lie above 5 pods/node, the ceiling by the allocatable pods of the nodes: Too many pods on 2 of 2 nodes") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
	var r result.Result
	if r = p.Result(t, "r"); r.Prediction == nil || r.Prediction.Agreement != ceiling.AsPredicted || r.Prediction.Found == nil || r.Prediction.FoundFailing == nil || *r.Prediction.Found != 4 || *r.Prediction.FoundFailing != 8 {
		t.Errorf("predicted and found: %+v", r.Prediction)
	}
}

// On a real node, whose network plug-in keeps to the node's range of addresses,
// the run ends where the range does, in the plug-in's own words.
func TestPodAddressesOfARealNode(t *testing.T) {
	suite.Long(t, "a real node is brought up and filled")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	// What its node cannot run is said before anything is made.
	if got := p.Run(t, "limit", "node-density-heavy", "--lab", p.Lab); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, `has no image postgresql`) || !strings.Contains(got.Stderr, "plimsoll image build postgresql") {
		t.Errorf("a lab made without PostgreSQL: %d\n%s", got.Code, got.Stderr)
	}
	c := checked(t, p, process.ExitPass, "node-density", "--lab", p.Lab)
	b := c.Table.Binding()
	if b == nil || b.Name != "podAddressesPerNode" || *b.Level != 5 || !strings.Contains(b.Reason, "no IP addresses available in range set") {
		t.Fatalf("a /29 has 6 addresses, of which the gateway takes one: %+v", b)
	}
	if m := ceilingNamed(t, c.Table.Ceilings, "kubeletMaxPods"); m.Level == nil || *m.Level != 30 {
		t.Errorf("what the kubelet is configured to: %+v", m)
	}
	if m := ceilingNamed(t, c.Table.Ceilings, "bridgePorts"); m.Class != record.CeilingHard || *m.Level != 1023 {
		t.Errorf("the bridge of a lab's real node: %+v", m)
	}
	// A search makes again what a busy machine has made invalid; a sweep would not.
	got := p.RunTo(t, "r", "limit", "node-density", "--lab", p.Lab, "--from", "5", "--step", "2", "--max", "7", "--resolution", "2", "--confirm", "1",
		"--hold", "500ms", "--step-timeout", "20s", "--slo", "all Ready")
	r := p.Result(t, "r")
	if f := r.Prediction; f == nil || f.Agreement != ceiling.AsPredicted || f.Found == nil || *f.Found != 5 {
		t.Errorf("exit code %d, predicted and found: %+v\n%s%s", got.Code, r.Prediction, got.Stdout, got.Stderr)
	}
	// Only a kubelet tells when an image is on its node.
	images, started := r.Steps[0].Latency["ImagesReady"], r.Steps[0].Latency["ContainersStarted"]
	if images.P50 == nil || started.P50 == nil || *images.P50 <= 0 || *images.P50 > *started.P50+1 {
		t.Errorf("images: %+v, containers: %+v", images, started)
	}
}
