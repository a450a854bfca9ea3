package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// theirNode makes a node that nobody simulates, as a kubelet would tell of it, and is
// how to select it, and what gives it images.
func theirNode(t *testing.T, p *harness.Program) (selector string, have func(images ...string)) {
	t.Helper()
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	nodes, ctx := typed.CoreV1().Nodes(), t.Context()
	_, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: map[string]string{"node": "theirs"}}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := nodes.Delete(context.Background(), "theirs", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("100")}
	status := corev1.NodeStatus{
		Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}},
		// Where no kubelet is, the API server need not wait for one.
		Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}, DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: 1}},
	}
	have = func(images ...string) {
		t.Helper()
		status.Images = nil
		for _, name := range append(images, "registry.example/theirs:1") {
			status.Images = append(status.Images, corev1.ContainerImage{Names: []string{name}})
		}
		body, err := json.Marshal(map[string]any{"status": status})
		if err == nil {
			_, err = nodes.Patch(ctx, "theirs", types.MergePatchType, body, metav1.PatchOptions{}, "status")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	have()
	harness.Await(t, "the node takes pods", func() bool {
		n, err := nodes.Get(ctx, "theirs", metav1.GetOptions{})
		return err == nil && len(n.Spec.Taints) == 0
	})
	return "nodeSelector=node=theirs", have
}

// An image that a cluster's nodes cannot have is reported before any load, with the
// commands that help.
func TestImagesThatCannotBeHad(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	user := e2e.AsUser(t, p, "images", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"*"}})
	selector, have := theirNode(t, p)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	spaces := func() (names []string) {
		list, err := typed.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list.Items {
			names = append(names, n.Name)
		}
		return names
	}
	plan := filepath.Join(p.Dir, "plan.yaml")
	if err := os.WriteFile(plan, fmt.Appendf(nil, "schema: plimsoll/experiment/v1\nworkload: node-density-cni\nparams: {nodeSelector: node=theirs}\ntarget: {kubeconfig: %s}\naxis: {name: pods-per-node, levels: [2]}\n", user), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := []string{"--kubeconfig", user, "--set", selector}
	full := make([]string, 50)
	for i := range full {
		full[i] = fmt.Sprintf("registry.example/others:%d", i)
	}
	before := spaces()
	const agent, database = "localhost/plimsoll-agent:latest is in no registry, and ", "localhost/plimsoll-postgresql:latest is in no registry, and "
	const pushed = "plimsoll image push REGISTRY/PATH, then plimsoll "
	for _, c := range []struct {
		why  string
		have []string
		args []string
		code int
		says []string
	}{
		{"check", nil, append([]string{"check", "node-density-cni"}, cluster...), process.ExitFail, []string{agent + "1 of 1 nodes do not have it: theirs", pushed + "check node-density-cni "}},
		{"the node does not tell of all", full, append([]string{"limit", "node-density-cni", "--yes"}, cluster...), process.ExitCouldNotRun, []string{agent + "whether 1 of 1 nodes have it is unknown"}},
		{"the node has one of two", []string{image.AgentReference}, append([]string{"limit", "node-density-heavy", "--yes"}, cluster...), process.ExitCouldNotRun, []string{database + "1 of 1", "!" + agent, pushed + "limit node-density-heavy "}},
		{"the node has it", []string{image.AgentReference}, append([]string{"check", "node-density-cni"}, cluster...), process.ExitPass, []string{"!" + agent}},
		{"limit", nil, append([]string{"limit", "node-density-cni", "--yes"}, cluster...), process.ExitCouldNotRun, []string{agent, pushed + "limit node-density-cni "}},
		{"ab", nil, append([]string{"ab", "node-density-cni", "--yes", "--levels", "2", "--arm", "a:pageSize=1", "--arm", "b:pageSize=2"}, cluster...), process.ExitCouldNotRun, []string{agent, pushed + "ab node-density-cni "}},
		{"run", nil, []string{"run", plan, "--yes"}, process.ExitCouldNotRun, []string{agent, pushed + "run " + plan}},
		{"a dry run", nil, append([]string{"sweep", "node-density-cni", "--levels", "2", "--dry-run"}, cluster...), process.ExitPass, []string{"image localhost/plimsoll-agent:latest, which is in no registry", pushed + "sweep node-density-cni "}},
		{"one that was named by hand", nil, append([]string{"limit", "node-density-cni", "--yes", "--set", "image=localhost/mine"}, cluster...), process.ExitCouldNotRun, []string{"localhost/mine is in no registry", "name an image that the nodes can pull", "!image push"}},
		{"one that was named by hand, from a registry", nil, append([]string{"limit", "node-density-cni", "--dry-run", "--set", "image=registry.example/mine", "--images", "registry.example/team"}, cluster...), process.ExitPass, []string{"image registry.example/mine", "!team/plimsoll"}},
		{"nodes that are simulated fetch none", nil, []string{"check", "node-density-cni", "--kubeconfig", user, "--set", "nodeSelector=plimsoll.dev/fidelity=simulated"}, process.ExitPass, []string{"!localhost/"}},
		{"from a registry", nil, append([]string{"check", "node-density-heavy", "--images", "registry.example:5000/team"}, cluster...), process.ExitPass, []string{"!localhost/"}},
		{"from a registry, all of them", nil, append([]string{"sweep", "node-density-heavy", "--levels", "2", "--dry-run", "--images", "registry.example:5000/team/"}, cluster...), process.ExitPass,
			[]string{"image registry.example:5000/team/plimsoll-postgresql:latest", "image registry.example:5000/team/plimsoll-agent:latest", "!localhost/"}},
		{"from a registry, a plan", nil, []string{"run", plan, "--dry-run", "--images", "registry.example/team"}, process.ExitPass, []string{"on the cluster of " + user, "image registry.example/team/plimsoll-agent:latest"}},
		{"from no registry", nil, append([]string{"check", "node-density-cni", "--images", "not/A/registry"}, cluster...), process.ExitUsage, []string{"not/A/registry", "for example --images registry.example:5000/team"}},
	} {
		have(c.have...)
		got := p.Run(t, append(slices.Clone(c.args), map[bool][]string{true: {"--out", "r"}}[slices.Contains(c.args, "--yes")]...)...)
		said := got.Stdout + got.Stderr
		for _, text := range c.says {
			if text, not := strings.CutPrefix(text, "!"); strings.Contains(strings.Join(strings.Fields(said), " "), text) == not {
				t.Errorf("%s: %q is said: %v\n%s", c.why, text, not, said)
			}
		}
		if _, err := os.Stat(filepath.Join(p.Dir, "r")); got.Code != c.code || err == nil {
			t.Errorf("%s: exit code %d, want %d; a record: %v\n%s", c.why, got.Code, c.code, err == nil, said)
		}
	}
	if after := spaces(); !slices.Equal(after, before) {
		t.Errorf("there was %q, and is %q", before, after)
	}

	// The plan of a record has it, for a run that is made again.
	args := []string{"sweep", "node-density-cni", "--levels", "2", "--hold", "100ms", "--kubeconfig", user, "--yes", "--namespace", "default", "--images", "registry.example/team", "--set", "nodeSelector=plimsoll.dev/fidelity=simulated"}
	if got := p.RunTo(t, "made", args...); got.Code != process.ExitPass {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	for args, want := range map[string]string{"": "registry.example/team/", "--images other.example": "other.example/"} {
		got := p.Run(t, append([]string{"run", filepath.Join(p.Dir, "made", "experiment.yaml"), "--dry-run"}, strings.Fields(args)...)...)
		if got.Code != process.ExitPass || !strings.Contains(got.Stdout, "image "+want+"plimsoll-agent:latest") {
			t.Errorf("made again %s: exit code %d\n%s%s", args, got.Code, got.Stdout, got.Stderr)
		}
	}
	// So has one that goes on, and a comparison tells it from a run that has not.
	cut := slices.Clone(args)
	cut[5] = "20s" // it is held when it is interrupted, and when it is once more
	s := p.Start(t, append(cut, "--out", "cut")...)
	harness.Await(t, "a step", func() bool { return s.Ended() || e2e.Steps(p, "cut") > 0 })
	s.Signal(os.Interrupt)
	if got := s.Wait(); got.Code != process.ExitInterrupted {
		t.Fatalf("interrupted: exit code %d\n%s", got.Code, got.Stderr)
	}
	s = p.Start(t, "run", "--resume", "cut", "--yes")
	seen := map[string]bool{}
	harness.Await(t, "pods of the second part", func() bool {
		pods, err := typed.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			for _, c := range pod.Spec.Containers {
				seen[c.Image] = seen[c.Image] || pod.DeletionTimestamp == nil
			}
		}
		return s.Ended() || seen["registry.example/team/plimsoll-agent:latest"]
	})
	s.Signal(os.Interrupt)
	if got := s.Wait(); got.Code != process.ExitInterrupted || seen[image.AgentReference] {
		t.Errorf("gone on: exit code %d, images %v\n%s%s", got.Code, slices.Collect(maps.Keys(seen)), got.Stdout, got.Stderr)
	}
	args[len(args)-3] = "other.example"
	if got := p.RunTo(t, "elsewhere", args...); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	if got := p.Run(t, "compare", "made", "elsewhere"); !regexp.MustCompile(`images +registry\.exam\S* +other\.example`).MatchString(got.Stdout) {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// What is pushed is what runs take from there.
func TestImagesArePushedWhereRunsTakeThem(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	place := strings.TrimPrefix(server.URL, "http://") + "/team"
	if got := p.Run(t, "image", "push", place, "--insecure", "--image", "agent"); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	got := p.Run(t, "sweep", "node-density-cni", "--levels", "2", "--dry-run", "--images", place)
	_, after, _ := strings.Cut(got.Stdout, "would use: image ")
	taken, _, _ := strings.Cut(after, "\n")
	reference, err := name.ParseReference(taken, name.Insecure)
	if err == nil {
		_, err = remote.Head(reference, remote.WithContext(t.Context()))
	}
	if err != nil {
		t.Errorf("a run would take %q: %v\n%s", taken, err, got.Stdout)
	}
}

// The pods of node-density-heavy, whose images are this program's own, are ready as the
// user that OpenShift chooses, of group 0, where restricted Pod Security is enforced.
func TestImagesRunAsAnyUserOfGroup0(t *testing.T) {
	suite.Long(t, "builds PostgreSQL, and brings a real node up")
	_, err := realnode.Check()
	harness.Able(t, err)
	p := suite.Program(t)
	dir := filepath.Join(p.Dir, "any-user")
	if got := p.Run(t, "workloads", "export", "node-density-heavy", dir); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	for file, change := range map[string][2]string{
		"application.yml":        {"        runAsNonRoot: true\n", "        runAsNonRoot: true\n        runAsUser: 1000690000\n        runAsGroup: 0\n"},
		"postgresql.yml":         {"        runAsNonRoot: true\n", "        runAsNonRoot: true\n        runAsUser: 1000690000\n        runAsGroup: 0\n"},
		"node-density-heavy.yml": {"  namespacedIterations: true\n", "  namespacedIterations: true\n  namespaceLabels: {pod-security.kubernetes.io/enforce: restricted}\n"},
	} {
		path := filepath.Join(dir, file)
		text, err := os.ReadFile(path)
		if err != nil || strings.Count(string(text), change[0]) != 1 {
			t.Fatalf("%s has no %q: %v", file, change[0], err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := p.RunTo(t, "r", "sweep", dir, "--lab-real-node", "--lab-max-pods", "30", "--levels", "8", "--hold", "1s", "--set", "probeDelay=2", "--set", "probePeriod=2", "--slo", "all Ready")
	if r := p.Result(t, "r"); got.Code != process.ExitPass || r.Steps[0].Objects.Ready != 8 {
		t.Errorf("exit code %d, %+v\n%s%s", got.Code, r.Steps[0].Objects, got.Stdout, got.Stderr)
	}
}
