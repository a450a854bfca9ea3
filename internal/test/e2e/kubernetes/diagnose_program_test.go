package kubernetes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// pause is a pod that does nothing, with room for more in its spec.
const pause = `apiVersion: v1
kind: Pod
metadata:
  name: pause-{{.Iteration}}-{{.Replica}}
spec:
  terminationGracePeriodSeconds: 0
  automountServiceAccountToken: false
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
`

// writeWorkload writes a workload that makes the manifests of each iteration in
// the namespace of its name, after those of a first job.
func writeWorkload(t *testing.T, dir, name, labels string, first map[string]string, each ...string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(path, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := "jobs:\n"
	job := func(name string, files []string) {
		config += fmt.Sprintf("- name: %s\n  jobType: create\n  jobIterations: 1\n  namespace: %s\n  namespacedIterations: false\n  namespaceLabels: {%s}\n  cleanup: false\n  podWait: false\n  waitWhenFinished: true\n  preLoadImages: false\n  objects:\n", name, filepath.Base(path), labels)
		for _, f := range files {
			config += fmt.Sprintf("  - objectTemplate: %s\n    replicas: 1\n", f)
		}
	}
	var files []string
	for file, text := range first {
		write(file, text)
		files = append(files, file)
	}
	if len(files) > 0 {
		job("first", files)
	}
	files = nil
	for i, text := range each {
		file := fmt.Sprintf("object-%d.yml", i)
		write(file, text)
		files = append(files, file)
	}
	job("load", files)
	write("config.yml", config)
	write("workload.yaml", fmt.Sprintf(`schema: plimsoll/workload/v1
name: %s
help: pods that fail in a way that is known
config: config.yml
axes:
- {name: pods-per-node, unit: pods/node, help: pods on each node, loop: closed, default: {from: 1, step: 1, max: 10, resolution: 1}}
target: kubernetes
goals:
  ready: [all Ready]
primary: Ready p50
`, name))
	return "./" + name
}

// Failures that are made on a real control plane are recognised. What a
// signature claims to be tested by is what is tested here.
func TestRealFailuresAreRecognised(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, "--nodes", "1", "--max-pods", "10")
	config, err := clientcmd.BuildConfigFromFlags("", p.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	// The lab's user may read logs, which are sampled where nodes are
	// real.
	review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "log", Namespace: "any"}},
	}, metav1.CreateOptions{})
	if err != nil || !review.Status.Allowed {
		t.Errorf("the lab's user may not read logs: %+v, %v", review, err)
	}

	node := []string{"sweep", "node-density"}
	var tested []string
	for _, tt := range []struct {
		signature string
		prepare   func(t *testing.T)
		args      []string
		evidence  string // in part
		exit      int
	}{
		{
			"too-many-pods", nil, append(node, "--levels", "12"),
			"0/1 nodes are available: 1 Too many pods", process.ExitFail,
		},
		{
			"insufficient-cpu", nil, append(node, "--levels", "3", "--set", "cpuRequest=1000"),
			"0/1 nodes are available: 1 Insufficient cpu", process.ExitFail,
		},
		{
			"quota-exceeded", nil,
			[]string{"sweep", writeWorkload(t, p.Dir, "quota", "", map[string]string{"quota.yml": "apiVersion: v1\nkind: ResourceQuota\nmetadata:\n  name: few-pods\nspec:\n  hard: {pods: 3}\n"}, pause), "--levels", "8", "--pace", "20"},
			"quota: few-pods", process.ExitFail,
		},
		{
			"claims-unbound", nil,
			[]string{"sweep", writeWorkload(t, p.Dir, "claims", "", nil,
				"apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata:\n  name: claim-{{.Iteration}}-{{.Replica}}\nspec:\n  storageClassName: none\n  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n",
				pause+"    volumeMounts: [{name: data, mountPath: /data}]\n  volumes:\n  - name: data\n    persistentVolumeClaim: {claimName: \"claim-{{.Iteration}}-{{.Replica}}\"}\n"), "--levels", "3"},
			"waited for volumes that were not provisioned", process.ExitFail,
		},
		{
			"priority-and-fairness", func(t *testing.T) { blackHole(t, client, admissionv1.Ignore, 10); narrow(t, client) },
			[]string{"sweep", writeWorkload(t, p.Dir, "narrow", "", nil, pause), "--levels", "1"},
			"Too many requests, please try again later. (priority level narrow)", process.ExitFail,
		},
		{
			"webhook-timeout", func(t *testing.T) { blackHole(t, client, admissionv1.Fail, 1) },
			[]string{"sweep", writeWorkload(t, p.Dir, "webhook", "plimsoll.test/hole: \"yes\"", nil, pause), "--levels", "1", "--budget", "2s"},
			`failed calling webhook "hole.plimsoll.test"`, process.ExitFail,
		},
	} {
		tested = append(tested, tt.signature)
		// The first takes half a minute until the queue is full; the others are like
		// too-many-pods.
		if slices.Contains([]string{"priority-and-fairness", "insufficient-cpu", "claims-unbound"}, tt.signature) && suite.Size(0, 1) == 0 {
			continue
		}
		t.Run(tt.signature, func(t *testing.T) {
			if tt.prepare != nil {
				tt.prepare(t)
			}
			got := p.RunTo(t, tt.signature, append(tt.args, "--lab", p.Lab, "--hold", "100ms", "--step-timeout", "3s", "--slo", "all Ready")...)
			if got.Code != tt.exit {
				t.Errorf("exit code %d, want %d\n%s%s", got.Code, tt.exit, got.Stdout, got.Stderr)
			}
			r := p.Result(t, tt.signature)
			i := slices.IndexFunc(r.Diagnosis, func(d result.Diagnosis) bool { return d.Signature == tt.signature })
			if i < 0 {
				t.Fatalf("it is not recognised, but %+v\n%s", r.Diagnosis, got.Stdout)
			}
			d := r.Diagnosis[i]
			if !strings.Contains(d.Evidence, tt.evidence) || d.Count == 0 || d.Remedy == "" || d.Failing != (tt.exit == process.ExitFail) || d.Step != 1 {
				t.Errorf("%+v\nwant the evidence %q", d, tt.evidence)
			}
			if len(r.Diagnosis) > 1 {
				t.Errorf("it looks like something else, too: %+v", r.Diagnosis)
			}
			t.Log(d.Evidence)
			if len(r.Breaches) == 0 || tt.exit == process.ExitFail && r.BrokeFirst == nil {
				t.Errorf("nothing broke first: %+v", r.Breaches)
			}
		})
	}
	// The labels are kept honest: what is said to be tested for real is.
	tested = append(tested, "writes-stood-still", "etcd-full") // by TestMeasuredStoresThatFail
	tested = append(tested, "client-limit")                    // by TestASchedulersLimit
	list, err := signature.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if made := slices.Contains(tested, s.Name); made != (s.Tested == signature.Real) {
			t.Errorf("signature %s says that its test is %s, and this test makes one: %v", s.Name, s.Tested, made)
		}
	}
}

// A scheduler that may send 20 requests a second is named, by what it publishes of how
// long its requests waited.
func TestASchedulersLimit(t *testing.T) {
	t.Parallel()
	suite.Long(t, "a scheduler of 20 pods a second schedules 300")
	p := suite.Program(t)
	if got := p.Run(t, "lab", "up", "slow", "--nodes", "10"); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	t.Cleanup(func() { p.Run(t, "lab", "down", "slow") })
	file := filepath.Join(filepath.Dir(strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "slow").Stdout)), "scheduler.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	limited := regexp.MustCompile(`(qps|burst): \d+`).ReplaceAllString(string(text), "$1: 20")
	if err := os.WriteFile(file, []byte(limited), 0o600); err != nil || limited == string(text) {
		t.Fatal(err, limited)
	}
	if got := p.Run(t, "lab", "restart", "slow", "kube-scheduler"); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	p.RunTo(t, "paced", "sweep", "node-density", "--lab", "slow", "--levels", "30", "--slo", "all Ready")
	r := p.Result(t, "paced")
	i := slices.IndexFunc(r.Diagnosis, func(d result.Diagnosis) bool { return d.Signature == "client-limit" })
	if i < 0 {
		t.Fatalf("it is not recognised, but %+v; waits %+v", r.Diagnosis, r.Steps[0].Bottleneck)
	}
	t.Log(r.Diagnosis[i].Evidence)
	if want := "the limit of requests of kube-scheduler's client ("; !strings.Contains(r.Diagnosis[i].Evidence, want) {
		t.Errorf("%q does not say %q", r.Diagnosis[i].Evidence, want)
	}
}

// An etcd that stands still, and one without space, differ from a limit of the load and
// from each other.
func TestMeasuredStoresThatFail(t *testing.T) {
	quiet := suite.Measures(t)
	p := suite.Program(t)
	if got := p.Run(t, "lab", "up", "stores", "--nodes", "10"); got.Code != process.ExitPass {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	t.Cleanup(func() { p.Run(t, "lab", "down", "stores") })
	var status struct {
		Components []struct {
			Name string
			PID  int
		}
	}
	if err := json.Unmarshal([]byte(p.Run(t, "lab", "status", "stores", "-o", "json").Stdout), &status); err != nil {
		t.Fatal(err)
	}
	etcd := status.Components[slices.IndexFunc(status.Components, func(c struct {
		Name string
		PID  int
	}) bool {
		return c.Name == "etcd"
	})].PID
	// sweep makes a step and does something once a hundred pods were asked for.
	sweep := func(out string, then func()) (result.Result, []string) {
		w := p.Start(t, "sweep", "node-density", "--lab", "stores", "--levels", "40", "--pace", "80", "--hold", "1s", "--step-timeout", "10s", "--slo", "Ready p99 <= 2s", "--out", out)
		harness.Await(t, "a hundred requests", func() bool { return p.Requested(out, 100) })
		then()
		if got := w.Wait(); got.Code != process.ExitFail {
			quiet.Needed(t)
			t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
		r := p.Result(t, out)
		var names []string
		for _, d := range r.Diagnosis {
			t.Log(d.Evidence)
			names = append(names, d.Signature)
		}
		return r, names
	}
	stop := func(signal syscall.Signal) {
		if err := syscall.Kill(etcd, signal); err != nil {
			t.Fatal(err)
		}
	}
	r, names := sweep("stopped", func() {
		stop(syscall.SIGSTOP)
		time.Sleep(5 * time.Second)
		stop(syscall.SIGCONT)
	})
	if !slices.Equal(names, []string{"writes-stood-still"}) || !strings.Contains(r.Diagnosis[0].Evidence, "etcd used 0.0% of the CPUs meanwhile") || r.BrokeFirst.Breach.Kind != result.BreachStandstill {
		t.Errorf("an etcd that was stopped: %q, first %+v", names, r.BrokeFirst.Breach)
	}
	full := storeAlarm(t, filepath.Dir(strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "stores").Stdout)), etcd)
	r, names = sweep("full", func() {
		full("ACTIVATE")
		harness.Await(t, "requests that are refused", func() bool {
			return p.Count("full", func(e record.Event) bool {
				s, ok := e.Body.(*record.Slot)
				return ok && s.Outcome == record.SlotFailed
			}) > 20
		})
		full("DEACTIVATE") // so that the load can be removed
	})
	if !slices.Equal(names, []string{"etcd-full"}) || r.Steps[0].Reasons[0].Message != "etcdserver: mvcc: database space exceeded" {
		t.Errorf("a full etcd: %q, %+v", names, r.Steps[0].Reasons)
	}
}

// storeAlarm raises, and takes back, the alarm by which the etcd of a lab takes
// no further change, as one does that has reached its quota.
func storeAlarm(t *testing.T, dir string, etcd int) func(action string) {
	t.Helper()
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", etcd))
	if err != nil {
		t.Fatal(err)
	}
	_, url, _ := strings.Cut(string(arguments), "--listen-client-urls=")
	url, _, _ = strings.Cut(url, "\x00")
	transport, err := rest.TransportFor(&rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{
		CAFile: filepath.Join(dir, "pki", "etcd-ca.crt"), CertFile: filepath.Join(dir, "pki", "etcd-client.crt"), KeyFile: filepath.Join(dir, "pki", "etcd-client.key"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	call := func(path, body string) (answer struct {
		Header struct {
			Member string `json:"member_id"`
		}
	}) {
		got, err := (&http.Client{Transport: transport}).Post(url+"/v3/maintenance/"+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer got.Body.Close()
		if err := json.NewDecoder(got.Body).Decode(&answer); err != nil || got.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %s, %v", path, body, got.Status, err)
		}
		return answer
	}
	member := call("status", "{}").Header.Member
	return func(action string) {
		call("alarm", fmt.Sprintf(`{"action": %q, "alarm": "NOSPACE", "memberID": %q}`, action, member))
	}
}

// narrow gives pods that are created in the namespace of that name a priority
// level without a queue and with the one seat that no level can be without. It
// is held by others, one after the other, who wait for a webhook until the test
// ends.
func narrow(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	none := int32(0)
	level := &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Spec: flowcontrolv1.PriorityLevelConfigurationSpec{
		Type: flowcontrolv1.PriorityLevelEnablementLimited,
		Limited: &flowcontrolv1.LimitedPriorityLevelConfiguration{
			NominalConcurrencyShares: &none, LendablePercent: &none, BorrowingLimitPercent: &none,
			LimitResponse: flowcontrolv1.LimitResponse{Type: flowcontrolv1.LimitResponseTypeReject},
		},
	}}
	if _, err := client.FlowcontrolV1().PriorityLevelConfigurations().Create(t.Context(), level, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "narrow"}, Spec: flowcontrolv1.FlowSchemaSpec{
		PriorityLevelConfiguration: flowcontrolv1.PriorityLevelConfigurationReference{Name: "narrow"}, MatchingPrecedence: 10,
		Rules: []flowcontrolv1.PolicyRulesWithSubjects{{
			Subjects:      []flowcontrolv1.Subject{{Kind: flowcontrolv1.SubjectKindGroup, Group: &flowcontrolv1.GroupSubject{Name: "system:authenticated"}}},
			ResourceRules: []flowcontrolv1.ResourcePolicyRule{{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"pods"}, Namespaces: []string{"narrow", "held"}}},
		}},
	}}
	if _, err := client.FlowcontrolV1().FlowSchemas().Create(t.Context(), schema, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.FlowcontrolV1().FlowSchemas().Delete(context.Background(), "narrow", metav1.DeleteOptions{})
		client.FlowcontrolV1().PriorityLevelConfigurations().Delete(context.Background(), "narrow", metav1.DeleteOptions{})
	})
	harness.Await(t, "the server to know the level", func() bool {
		got, err := client.FlowcontrolV1().FlowSchemas().Get(t.Context(), "narrow", metav1.GetOptions{})
		return err == nil && slices.ContainsFunc(got.Status.Conditions, func(c flowcontrolv1.FlowSchemaCondition) bool {
			return c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionFalse
		})
	})
	held := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "held", Labels: map[string]string{"plimsoll.test/hole": "yes"}}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), held, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "held-"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pause", Image: "pause"}}}}
	var refused atomic.Bool
	// The seat is taken until the test ends: however slow the machine is, the
	// load finds it taken.
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for range 4 {
		go func() {
			for ctx.Err() == nil {
				// The client would try again by itself.
				err := client.CoreV1().RESTClient().Post().Namespace("held").Resource("pods").Param("dryRun", metav1.DryRunAll).Body(pod.DeepCopy()).MaxRetries(0).Do(ctx).Error()
				if apierrors.IsTooManyRequests(err) {
					refused.Store(true)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
	}
	harness.Await(t, "the level to have no seat left", refused.Load)
}

// blackHole returns a webhook for pods that takes connections and never answers; the
// server waits so many seconds for it.
func blackHole(t *testing.T, client kubernetes.Interface, then admissionv1.FailurePolicyType, seconds int32) {
	t.Helper()
	hole, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { hole.Close() })
	url, none := "https://"+hole.Addr().String()+"/", admissionv1.SideEffectClassNone
	webhook := &admissionv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "hole"}, Webhooks: []admissionv1.ValidatingWebhook{{
		Name: "hole.plimsoll.test", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, TimeoutSeconds: &seconds, FailurePolicy: &then, SideEffects: &none,
		AdmissionReviewVersions: []string{"v1"}, NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"plimsoll.test/hole": "yes"}},
		Rules: []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}},
	}}}
	if _, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), webhook, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), "hole", metav1.DeleteOptions{})
	})
}
