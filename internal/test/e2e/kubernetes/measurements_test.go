package kubernetes_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// services is a configuration whose services are measured; the last one has no endpoint that answers.
var services = map[string]string{
	"services.yml": "global: {measurements: [{name: serviceLatency, svcTimeout: 2s}]}\njobs:\n- {name: s, qps: 50, burst: 50, jobIterations: 2, namespace: s, maxWaitTimeout: 1m, objects: [{objectTemplate: server.yml}, {objectTemplate: headless.yml}]}\n",
	"silent.yml":   "global: {measurements: [{name: serviceLatency, svcTimeout: 300ms}]}\njobs:\n- {name: s, qps: 50, burst: 50, namespace: s, maxWaitTimeout: 30s, objects: [{objectTemplate: silent.tpl}]}\n",
	"server.yml": "apiVersion: v1\nkind: Pod\nmetadata: {name: server, labels: {app: server}}\nspec: {containers: [{name: c, image: '" + image.AgentReference + "', imagePullPolicy: IfNotPresent, args: [serve]}]}\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: inside}\nspec: {selector: {app: server}, ports: [{port: 80, targetPort: 8080}]}\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: outside}\nspec: {type: NodePort, selector: {app: server}, ports: [{port: 80, targetPort: 8080}]}\n",
	"headless.yml": "apiVersion: v1\nkind: Service\nmetadata: {name: headless}\nspec: {clusterIP: None, selector: {app: server}, ports: [{port: 80}]}\n",
	"silent.tpl": "apiVersion: v1\nkind: Pod\nmetadata: {name: server, labels: {app: server}}\nspec: {containers: [{name: c, image: '" + image.AgentReference + "', imagePullPolicy: IfNotPresent, args: [pause]}]}\n---\n" +
		"apiVersion: v1\nkind: Service\nmetadata: {name: mute}\nspec: {selector: {app: server}, ports: [{port: 80, targetPort: 8080}]}\n",
}

// Services count once they answer a pod of the cluster; where nothing can answer, by their endpoints.
func TestServicesOfAConfiguration(t *testing.T) {
	suite.Long(t, "it loads a real node")
	t.Parallel()
	real := func(t *testing.T) *harness.Program { return e2e.OnRealNode(t, suite) }
	simulated := func(t *testing.T) *harness.Program { return suite.Lab(t, e2e.WideLab()...) }
	for _, tt := range []struct {
		why       string
		lab       func(*testing.T) *harness.Program
		config    string
		code      int
		documents int
		answers   bool
		says      string
	}{
		{"a real node", real, "services.yml", 0, 4, true, ""},
		{"a port that nobody serves", real, "silent.yml", 2, 1, false, "NoAnswer"},
		{"simulated nodes", simulated, "services.yml", 0, 4, false, "nothing answers on simulated nodes"},
	} {
		t.Run(strings.ReplaceAll(tt.why, " ", "-"), func(t *testing.T) {
			p := tt.lab(t)
			writeFiles(t, p.Dir, services)
			got := p.RunTo(t, "r", "kube-burner", "init", "-c", tt.config, "--lab", p.Lab, "--metrics-directory", "m")
			if got.Code != tt.code && !strings.Contains(got.Stdout, "invalid") || !strings.Contains(got.Stdout+got.Stderr, tt.says) {
				t.Errorf("want exit code %d and %q: %+v", tt.code, tt.says, got)
			}
			list := documentsIn(t, filepath.Join(p.Dir, "m"))["svcLatencyMeasurement-s.json"]
			if len(list) != tt.documents {
				t.Errorf("%v", list)
			}
			for _, d := range list {
				if (d["ready"] != nil) != tt.answers || !strings.Contains("inside outside mute", d["service"].(string)) {
					t.Errorf("%v", d)
				}
			}
			if left := p.Leftovers(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// policies is a configuration of two namespaces, whose pods may be called by each other once policies allow it.
var policies = map[string]string{
	"policies.yml": "global: {measurements: [{name: netpolLatency}]}\njobs:\n" +
		"- {name: pods, qps: 50, burst: 50, jobIterations: 2, namespace: np, namespaceLabels: {kube-burner.io/skip-networkpolicy-latency: 'true'}, objects: [{objectTemplate: pod.yml}]}\n" +
		"- {name: policies, qps: 50, burst: 50, jobIterations: 2, namespace: np, maxWaitTimeout: 1m, hooks: [{when: beforeJobExecution, cmd: [sh, -c, 'until test -e go; do sleep 0.1; done']}], objects: [{objectTemplate: policy.yml}, {objectTemplate: none.yml}]}\n",
	"pod.yml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - {name: server, image: '" + image.AgentReference + "', imagePullPolicy: IfNotPresent, args: [serve]}\n" +
		"  - {name: client, image: '" + image.AgentReference + "', imagePullPolicy: IfNotPresent, args: [try]}\n",
	"policy.yml": "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: 'from-{{ sub 1 .Iteration }}'}\nspec: {podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: 'np-{{ sub 1 .Iteration }}'}}}], ports: [{port: 8080}]}]}\n",
	"none.yml":   "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: none}\nspec: {podSelector: {}}\n",
}

// Network policies count once pods have made the connections that they allow. As a lab enforces none, the test does,
// by a rule in the pods' own networks; without it all is open before, which measures nothing.
func TestPoliciesOfAConfiguration(t *testing.T) {
	suite.Long(t, "it loads a real node")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	typed, _ := e2e.LabClient(t, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", p.Lab).Stdout))
	start := func(out string) (s *harness.Started, pods []corev1.Pod) {
		writeFiles(t, p.Dir, policies)
		s = p.Start(t, "kube-burner", "init", "-c", "policies.yml", "--lab", p.Lab, "--hooks", "--metrics-directory", "of-"+out, "--out", out)
		harness.Await(t, "the pods run", func() bool {
			list, err := typed.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "kube-burner.io/job=pods"})
			if err != nil || s.Ended() {
				t.Fatalf("%v: %s%s", err, s.Stdout(), s.Stderr())
			}
			pods = list.Items
			return len(pods) == 2 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Status.Phase != corev1.PodRunning })
		})
		return s, pods
	}
	goOn := func() { writeFiles(t, p.Dir, map[string]string{"go": ""}) }

	s, pods := start("enforced")
	for _, pod := range pods {
		inNetworkOf(t, pod, "-I")
	}
	goOn()
	harness.Await(t, "the policies are there", func() bool {
		list, err := typed.NetworkingV1().NetworkPolicies("").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 4
	})
	denied := time.Now()
	<-time.After(time.Second)
	least := float64(time.Since(denied).Milliseconds())
	for _, pod := range pods {
		inNetworkOf(t, pod, "-D")
	}
	if got := s.Wait(); got.Code != process.ExitPass && !strings.Contains(got.Stdout, "invalid") {
		t.Errorf("%+v", got)
	}
	list := documentsIn(t, filepath.Join(p.Dir, "of-enforced"))["netpolLatencyMeasurement-policies.json"]
	if len(list) != 2 {
		t.Fatalf("%v", list)
	}
	for _, d := range list {
		if ready, is := d["ready"].(float64); !is || ready < least || d["minReady"] == nil || !strings.HasPrefix(d["netpol"].(string), "from-") {
			t.Errorf("%v, but connections were possible %v ms after the policies", d, least)
		}
	}

	os.Remove(filepath.Join(p.Dir, "go"))
	s, _ = start("open")
	goOn()
	if got := s.Wait(); got.Code == process.ExitPass || !strings.Contains(got.Stdout+got.Stderr, "before any policy allowed it") {
		t.Errorf("%+v", got)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// inNetworkOf inserts (-I) or deletes (-D) the rule that denies port 8080 in the network of a pod of this machine.
func inNetworkOf(t *testing.T, pod corev1.Pod, change string) {
	t.Helper()
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range groups {
		text, _ := os.ReadFile(file)
		if !strings.Contains(strings.ReplaceAll(string(text), "_", "-"), "pod"+string(pod.UID)) {
			continue
		}
		pid := strings.Split(file, "/")[2]
		out, err := exec.CommandContext(t.Context(), "nsenter", "-t", pid, "-n", "iptables", change, "INPUT", "-p", "tcp", "--dport", "8080", "-j", "DROP").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return
	}
	t.Fatalf("no process of pod %s/%s", pod.Namespace, pod.Name)
}

// Profiles of the load's own pods are beside the record, of the start and the end of the job.
func TestProfilesBesideTheRecord(t *testing.T) {
	suite.Long(t, "it loads a real node")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	writeFiles(t, p.Dir, services)
	writeFiles(t, p.Dir, map[string]string{"profiles.yml": "jobs:\n" +
		"- {name: make, qps: 50, burst: 50, namespace: profiles, namespacedIterations: false, objects: [{objectTemplate: server.yml}]}\n" +
		"- {name: read, jobType: read, qps: 50, burst: 50, objects: [{kind: Pod, labelSelector: {kube-burner.io/job: make}}], measurements: [{name: pprof, pprofTargets: [{name: heap, namespace: profiles, labelSelector: {app: server}, url: 'http://localhost:8080/debug/pprof/heap'}]}]}\n"})
	got := p.RunTo(t, "r", "run", "profiles.yml", "--lab", p.Lab)
	if got.Code != 0 && !strings.Contains(got.Stdout, "invalid") {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"heap-server-read-start.pprof", "heap-server-read-end.pprof"} {
		if text, err := os.ReadFile(filepath.Join(p.Dir, "r", "pprof", name)); err != nil || len(text) != 128 {
			t.Errorf("%s: %q, %v: %s", name, text, err, got.Stdout)
		}
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Images are pulled before a job by pods that are gone when it begins. A run that is killed meanwhile leaves a
// DaemonSet, which clean removes.
func TestImagesBeforeAJob(t *testing.T) {
	suite.Long(t, "it loads a real node")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	writeFiles(t, p.Dir, services)
	writeFiles(t, p.Dir, map[string]string{
		"preload.yml": "jobs:\n- {name: p, qps: 50, burst: 50, namespace: preload, objects: [{objectTemplate: server.yml}]}\n",
		"never.yml":   "jobs:\n- {name: p, qps: 50, burst: 50, namespace: preload, objects: [{objectTemplate: never.tpl}]}\n",
		"never.tpl":   "apiVersion: v1\nkind: Pod\nmetadata: {name: never}\nspec: {containers: [{name: c, image: 'localhost/no-such-image:1'}]}\n",
	})
	got := p.RunTo(t, "r", "run", "preload.yml", "--lab", p.Lab)
	if s := p.Result(t, "r").Steps; len(s) != 1 || s[0].Objects.Ready != 1 || strings.Contains(got.Stdout+got.Stderr, "were not all pulled") {
		t.Errorf("%+v", got)
	}
	typed, _ := e2e.LabClient(t, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", p.Lab).Stdout))
	pulling := func() bool {
		sets, err := typed.AppsV1().DaemonSets("").List(t.Context(), metav1.ListOptions{LabelSelector: "plimsoll.dev/preload"})
		return err == nil && len(sets.Items) == 1 && sets.Items[0].Status.DesiredNumberScheduled == 1
	}
	s := p.Start(t, "run", "never.yml", "--lab", p.Lab, "--out", "killed", "--ignore-health")
	harness.Await(t, "the images are being pulled", pulling)
	s.Kill()
	if !pulling() {
		t.Error("SIGKILL has removed the DaemonSet")
	}
	p.Run(t, "clean", "--lab", p.Lab)
	if left := p.Leftovers(t); len(left) > 0 || pulling() {
		t.Errorf("left: %v", left)
	}
}

// What others make is measured without a load, by their labels: here a pod that is there before.
func TestMeasureWithoutALoad(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	writeFiles(t, p.Dir, map[string]string{
		"measure.yml": "global: {measurements: [{name: podLatency}, {name: jobLatency}]}\nmetricsEndpoints: [{indexer: {type: local, metricsDirectory: measured}}]\n",
	})
	typed, _ := e2e.LabClient(t, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", p.Lab).Stdout))
	pods := typed.CoreV1().Pods("default")
	for name, app := range map[string]string{"mine": "measured", "other": "another"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "pause"}}}}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = pods.Delete(context.Background(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		})
	}
	harness.Await(t, "the pod is ready", func() bool {
		pod, err := pods.Get(t.Context(), "mine", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
	})
	got := p.Run(t, "kube-burner", "measure", "-c", "measure.yml", "--lab", p.Lab, "--duration", "500ms", "-l", "app=measured", "-n", "default")
	if got.Code != process.ExitPass || !strings.Contains(got.Stdout, "podLatencyQuantilesMeasurement Ready: P50 ") || !strings.Contains(got.Stdout, "Documents: 2 files in measured") {
		t.Errorf("%+v", got)
	}
	made := documentsIn(t, filepath.Join(p.Dir, "measured"))
	if list := made["podLatencyMeasurement-kube-burner-measure.json"]; len(list) != 1 || list[0]["podName"] != "mine" || list[0]["podReadyLatency"] == nil {
		t.Errorf("%v", made)
	}
}

// What cannot be measured without a load is refused before any cluster is asked.
func TestMeasureRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"measure.yml": "global: {measurements: [{name: podLatency}]}\n",
		"calls.yml":   "global:\n  measurements: [{name: serviceLatency}]\n",
		"pprof.yml":   "global:\n  measurements: [{name: pprof}]\n",
		"nothing.yml": "jobs:\n- {name: a, objects: [{objectTemplate: calls.yml}]}\n",
	})
	for _, tt := range []struct{ config, args, want string }{
		{"calls.yml", "--lab x", "this command makes nothing there"},
		{"pprof.yml", "--lab x", "pprof is not measured without a load"},
		{"nothing.yml", "--lab x", "nothing.yml asks for no measurement"},
		{"measure.yml", "--lab x --duration 0s", "--duration must be above 0"},
		{"measure.yml", "--lab x -l a=b=c", "--selector: "},
		{"measure.yml", "--lab x -n A_B", `"A_B" is not the name of a namespace`},
		{"measure.yml", "", "which cluster?"},
		{"none.yml", "--lab x", "none.yml"},
	} {
		got := e2e.Command(t, nil, append([]string{"kube-burner", "measure", "-c", filepath.Join(dir, tt.config)}, strings.Fields(tt.args)...)...)
		if got.Code != 1 || !strings.Contains(got.Stderr, tt.want) {
			t.Errorf("%s %s: want %q: %+v", tt.config, tt.args, tt.want, got)
		}
	}
}

// A dry run names what is made beside the load: what calls services and pulls images, where nodes can be real.
func TestADryRunNamesWhatIsMadeBeside(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFiles(t, dir, services)
	const relay, puller = "pod that calls services, of image localhost/plimsoll-agent:latest", "DaemonSet that pulls the images of job s"
	for lab, want := range map[string]bool{"--lab-real-node": true, "--lab-nodes=2": false} {
		got := e2e.Command(t, nil, "run", filepath.Join(dir, "services.yml"), "--dry-run", lab)
		if got.Code != process.ExitPass || strings.Contains(got.Stdout, relay) != want || strings.Contains(got.Stdout, puller) != want {
			t.Errorf("%s: %+v", lab, got)
		}
	}
	writeFiles(t, dir, map[string]string{"bound.yml": strings.Replace(services["services.yml"], "svcTimeout: 2s", "thresholds: [{conditionType: Ready, metric: P99, threshold: 1s}]", 1)})
	got := e2e.Command(t, nil, "run", filepath.Join(dir, "bound.yml"), "--dry-run", "--lab-nodes", "2")
	if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "no service answers there") {
		t.Errorf("an objective that simulated nodes cannot meet: %+v", got)
	}
}
