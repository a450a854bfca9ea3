package router_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	kubernetescluster "plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Requests of clients in pods are those that a server outside of the cluster counts.
func TestClientsInPodsAreCounted(t *testing.T) {
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	// The API server is at an address of this machine that the node reaches.
	found, err := typed.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
	if err != nil || len(found.Items) == 0 || len(found.Items[0].Endpoints) == 0 {
		t.Fatal(found, err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(found.Items[0].Endpoints[0].Addresses[0], "0"))
	if err != nil {
		t.Fatal(err)
	}
	var answered atomic.Int64
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answered.Add(1)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/", http.StatusFound)
		case "/error":
			fmt.Fprint(w, "an error page with status 200")
		default:
			fmt.Fprint(w, "mark and more")
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	at := "http://" + outside(t, typed, listener.Addr().(*net.TCPAddr))
	args := func(path string, more ...string) []string {
		return append([]string{"sweep", "ingress", "--lab", p.Lab, "--levels", "20", "--hold", "1s", "--slo", "errors < 50%", "--set", "via=url", "--set", "mark=mark", "--set", "url=" + at + path}, more...)
	}

	const clients = 2
	p.RunTo(t, "r", args("/", "--yes", "--set", fmt.Sprint("clients=", clients))...)
	sent, done, places := 0, 0, 0
	p.Count("r", func(e record.Event) bool {
		switch b := e.Body.(type) {
		case *record.Window:
			sent, done = sent+b.Sent, done+b.Done
		case *record.Place:
			places = max(places, len(b.Set))
		}
		return false
	})
	if int64(sent) != answered.Load()-clients || sent == 0 || done != sent || places != clients { // each client makes a request before the load
		t.Errorf("sent %d, done %d, by %d clients; the server answered %d", sent, done, places, answered.Load())
	}
	if env := p.Environment(t, "r"); env.Places == nil || env.Places.Rows[0].Count != clients || env.Places.Rows[0].Values[0] != "real-0" {
		t.Errorf("the clients are %+v", env.Places)
	}

	for _, tt := range []struct {
		why  string
		args []string
		code int
		says string
	}{
		{"a server that is not confirmed", args("/"), process.ExitUsage, "is not a server of plimsoll's, and was not confirmed"},
		{"an error page with status 200", args("/error", "--yes"), process.ExitCouldNotRun, "the request failed: body"},
		{"a redirect", args("/moved", "--yes"), process.ExitCouldNotRun, "the request failed: status 302"},
		{"nobody listens", []string{"sweep", "ingress", "--lab", p.Lab, "--levels", "5", "--set", "via=url", "--set", "url=http://127.0.0.1:1/", "--yes"}, process.ExitCouldNotRun, "the request failed: refused"},
		{"no gateway API", []string{"sweep", "ingress", "--lab", p.Lab, "--levels", "5", "--set", "via=gateway", "--set", "gateway=a/b"}, process.ExitUsage, "the cluster does not know /apis/gateway.networking.k8s.io/v1"},
		{"a plan beyond what may be sent", args("/", "--yes", "--levels", "300"), process.ExitUsage, "at most 200 are sent there"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			suite.Long(t, "each makes its clients")
			if got := p.Run(t, tt.args...); got.Code != tt.code || !strings.Contains(got.Stderr, tt.says) {
				t.Errorf("exit code %d, want %d and %q\n%s", got.Code, tt.code, tt.says, got.Stderr)
			}
		})
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left is %+v", left)
	}
}

// outside makes a service that leads to an address of this machine, and returns its own.
func outside(t *testing.T, typed kubernetes.Interface, at *net.TCPAddr) string {
	t.Helper()
	const name = "outside"
	service, err := typed.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = typed.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(t.Context(), &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}}, AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.IP.String()}}}, Ports: []discoveryv1.EndpointPort{{Port: new(int32(at.Port))}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = typed.CoreV1().Services(metav1.NamespaceDefault).Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{})
	})
	return service.Spec.ClusterIP
}

// A client that is killed leaves the step undecided, with its requests lost.
func TestAClientIsKilled(t *testing.T) {
	suite.Long(t, "back ends and clients are made several times")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	load := []string{"sweep", "ingress", "--lab", p.Lab, "--levels", "50", "--hold", "4s", "--set", "clients=4", "--set", "backEnds=1"}
	for i := range 3 {
		out := fmt.Sprint("killed-", i)
		run := p.Start(t, append(load, "--out", out)...)
		harness.Await(t, "the load", func() bool { return e2e.Windows(p, out) > i%8 })
		if err := unix.Kill(clientProcess(t, p, i%4), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		got := run.Wait()
		lost := 0
		p.Count(out, func(e record.Event) bool {
			if w, is := e.Body.(*record.Window); is {
				lost += w.Lost
			}
			return false
		})
		if r := p.Result(t, out); got.Code != process.ExitInconclusive || !strings.Contains(r.Why, "clients 4, then 3: ") || lost == 0 {
			t.Errorf("%d: exit code %d, %d lost: %s\n%s", i, got.Code, lost, r.Why, got.Stderr)
		}
	}
}

// A run that is killed at any moment leaves what the next command removes.
func TestAKilledRunIsRemoved(t *testing.T) {
	suite.Long(t, "twenty runs are killed and removed")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	step := func(id int, phase record.Phase) func(record.Event) bool {
		return func(e record.Event) bool {
			s, is := e.Body.(*record.StepEvent)
			return is && e.Step == id && s.Phase == phase
		}
	}
	window := func(id int) func(record.Event) bool {
		return func(e record.Event) bool { _, is := e.Body.(*record.Window); return is && e.Step == id }
	}
	run := func(phase record.Phase) func(record.Event) bool {
		return func(e record.Event) bool { r, is := e.Body.(*record.RunEvent); return is && r.Phase == phase }
	}
	spaces := func() int {
		list, err := typed.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: "plimsoll.dev/run"})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	for n, tt := range []struct {
		when string
		on   func(record.Event) bool // of the record
		made func() (n int)          // in the cluster, before the load, of which the record has nothing
		n    int                     // of these, at least one
		kill bool                    // a client first
	}{
		{when: "the run begins", on: run(record.PhaseStart)},
		{when: "the namespace is made", made: spaces},
		{when: "the clients are made", made: func() int { return len(clientPods(t, p)) }},
		{when: "the back ends are made", made: func() int {
			list, err := typed.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{LabelSelector: "plimsoll.dev/run"})
			if err != nil {
				t.Fatal(err)
			}
			return len(list.Items)
		}},
		{when: "the clients run", made: func() (n int) {
			for _, pod := range clientPods(t, p) {
				if pod.Status.Phase == corev1.PodRunning {
					n++
				}
			}
			return n
		}, n: 2},
		{when: "the target is described", on: func(e record.Event) bool {
			f, is := e.Body.(*record.File)
			return is && f.Name == record.EnvironmentFile
		}},
		{when: "the clients are ready", on: func(e record.Event) bool { p, is := e.Body.(*record.Place); return is && len(p.Set) > 0 }},
		{when: "the first step begins", on: step(1, record.PhaseStart)},
		{when: "its first window", on: window(1)},
		{when: "its fifteenth window, of the warm-up", on: window(1), n: 15},
		{when: "it is warm", on: step(1, record.PhaseReached)},
		{when: "a window of the hold", on: window(1), n: 22},
		{when: "a client is lost", on: func(e record.Event) bool {
			p, is := e.Body.(*record.Place)
			return is && p.State == record.PlaceGone
		}, kill: true},
		{when: "the route was changed", on: func(e record.Event) bool { r, is := e.Body.(*record.Reading); return is && r.Source == "change" }},
		{when: "all requests are sent", on: step(1, record.PhaseLoaded)},
		{when: "the first step ends", on: step(1, record.PhaseEnd)},
		{when: "the second step begins", on: step(2, record.PhaseStart)},
		{when: "its first window", on: window(2)},
		{when: "the second step ends", on: step(2, record.PhaseEnd)},
		{when: "the run empties its target", on: run(record.PhaseEnd)},
	} {
		out := fmt.Sprint("run-", n)
		run := p.Start(t, "sweep", "ingress", "--lab", p.Lab, "--levels", "20,30", "--hold", "1s", "--set", "clients=2", "--set", "backEnds=1", "--set", "event=route-change", "--slo", "errors < 50%", "--out", out)
		if tt.kill {
			harness.Await(t, "the load", func() bool { return run.Ended() || e2e.Windows(p, out) > 0 })
			if err := unix.Kill(clientProcess(t, p, 1), unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
		harness.Await(t, tt.when, func() bool {
			if run.Ended() {
				t.Fatalf("%s: the run ended before\n%s", tt.when, run.Stderr())
			}
			if tt.made != nil {
				return tt.made() >= max(tt.n, 1)
			}
			return p.Count(out, tt.on) >= max(tt.n, 1)
		})
		run.Kill()
		p.Cleaned(t, "--lab", p.Lab)
		if left := p.Leftovers(t); len(left) > 0 || spaces() > 0 || len(clientPods(t, p)) > 0 {
			t.Errorf("killed when %s, left is %+v in %d namespaces", tt.when, left, spaces())
		}
	}
}

// A search whose client is evicted, paused or silent makes the step again, with another pod if need be, and finds the
// line. It ends with the results so far where nothing can replace the client.
func TestASearchSurvivesALostClient(t *testing.T) {
	suite.Long(t, "searches, and clients that are made again")
	t.Parallel()
	const label = "plimsoll.dev/test"
	p := e2e.OnRealNode(t, suite)
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	mark := func(value string) {
		t.Helper()
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, value)
		if _, err := typed.CoreV1().Nodes().Patch(t.Context(), "real-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	mark(`"clients"`)
	evict := func(all []corev1.Pod) {
		for _, gone := range all {
			if err := typed.PolicyV1().Evictions(gone.Namespace).Evict(t.Context(), &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: gone.Name, Namespace: gone.Namespace}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	pause := func() (pid int) {
		if pid = clientProcess(t, p, 1); unix.Kill(pid, unix.SIGSTOP) != nil {
			t.Fatal("no client runs")
		}
		return pid
	}
	for _, tt := range []struct {
		out     string
		clients int
		do      func()
		code    int
		says    string // of a note, or of the result
	}{
		{"evicted", 2, func() { evict(clientPods(t, p)[1:]) }, process.ExitPass, "was lost: a pod on real-0 replaces it"},
		{"drained", 3, func() { evict(clientPods(t, p)) }, process.ExitPass, "the clients are made again"},
		{"paused", 2, func() { pid := pause(); time.AfterFunc(10*time.Second, func() { _ = unix.Kill(pid, unix.SIGCONT) }) }, process.ExitPass, ""},
		{"silent", 2, func() { pause() }, process.ExitPass, "client-1 on real-0 was silent: its pod "},
		{"lost", 2, func() { mark("null"); evict(clientPods(t, p)[1:]) }, process.ExitInconclusive, ", and nothing replaces it: pod clients-1-"},
	} {
		run := p.Start(t, "limit", "ingress", "--lab", p.Lab, "--from", "20", "--step", "10", "--max", "30", "--resolution", "10", "--hold", "3s", "--confirm", "1", "--set", fmt.Sprint("clients=", tt.clients), "--set", "clientNodes="+label+"=clients", "--set", "backEnds=1", "--slo", "errors < 50%", "--out", tt.out)
		harness.Await(t, "the load", func() bool { return e2e.Windows(p, tt.out) > 1 })
		tt.do()
		got, r := run.Wait(), p.Result(t, tt.out)
		said := strings.Contains(r.Why, tt.says)
		p.Count(tt.out, func(e record.Event) bool {
			note, is := e.Body.(*record.Note)
			said = said || is && strings.Contains(note.Text, tt.says)
			return false
		})
		if got.Code != tt.code || !said || len(r.Steps) == 0 || r.Steps[0].Verdict != slo.Inconclusive {
			t.Errorf("%s: exit code %d, the steps are %+v: %s\n%s", tt.out, got.Code, r.Steps, r.Why, got.Stderr)
		}
		if left := p.Leftovers(t); len(left) > 0 {
			t.Errorf("%s: left is %+v", tt.out, left)
		}
	}
}

// Two runs load one lab at once, each its own back ends, and leave nothing.
func TestTwoLoadsAtOnce(t *testing.T) {
	suite.Long(t, "two loads in one lab")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	var runs []*harness.Started
	for _, out := range []string{"one", "two"} {
		runs = append(runs, p.Start(t, "sweep", "ingress", "--lab", p.Lab, "--levels", "20", "--hold", "3s", "--set", "backEnds=1", "--slo", "errors < 50%", "--out", out))
	}
	for n, run := range runs {
		if got := run.Wait(); got.Code != process.ExitPass {
			t.Errorf("run %d: exit code %d\n%s", n, got.Code, got.Stderr)
		}
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left is %+v", left)
	}
}

// In a lab without an ingress class or gateway the load goes through a Traefik, which the record names and the run removes.
func TestThroughAnIngressOfALab(t *testing.T) {
	suite.Long(t, "a lab of its own, and an ingress controller in it")
	t.Parallel()
	p := e2e.WithImage(t, suite, "traefik", "missing for ingress: traefik")
	for _, tt := range []struct {
		out, event, milestone string
		sets                  []string
	}{
		{"ingress-made", "route", "Programmed", []string{"via=ingress", "shards=2"}},
		{"ingress-changed", "route-change", "Changed", []string{"via=ingress", "shards=2"}},
		{"gateway-made", "route", "Programmed", []string{"via=gateway"}},
		{"gateway-changed", "route-change", "Changed", []string{"via=gateway", "tls=true", "verify=false"}},
	} {
		args := []string{"sweep", "ingress", "--lab", "l", "--levels", "40", "--hold", "4s", "--set", "backEnds=1", "--set", "event=" + tt.event, "--slo", "errors < 5%"}
		for _, set := range tt.sets {
			args = append(args, "--set", set)
		}
		p.RunTo(t, tt.out, args...)
		step := p.Result(t, tt.out).Steps[0]
		if l := step.Latency[tt.milestone]; l.N != 1 || step.Metrics["requestsPerCPUSecond"] <= 0 || step.Metrics["change"] <= 0 {
			t.Errorf("%s: %+v, %v", tt.out, l, step.Metrics)
		}
		env := p.Environment(t, tt.out)
		n := slices.IndexFunc(env.Facts, func(f record.Fact) bool { return f.Name == "controller" })
		if n < 0 || !strings.HasPrefix(env.Facts[n].Value, "Traefik ") {
			t.Errorf("%s: the facts are %+v", tt.out, env.Facts)
		}
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("a run left %+v", left)
	}
	_, untyped := e2e.LabClient(t, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout))
	for via, class := range map[string]schema.GroupVersionResource{
		"ingress": networkingv1.SchemeGroupVersion.WithResource("ingressclasses"), "gateway": {Group: "gateway.networking.k8s.io", Version: "v1", Resource: "gatewayclasses"},
	} {
		run := p.Start(t, "sweep", "ingress", "--lab", "l", "--levels", "20", "--hold", "10s", "--set", "via="+via, "--set", "backEnds=1", "--out", "killed-"+via)
		harness.Await(t, "the load", func() bool { return e2e.Windows(p, "killed-"+via) > 0 })
		run.Kill()
		p.Cleaned(t, "--lab", "l")
		if left := p.Leftovers(t); len(left) > 0 {
			t.Errorf("left is %+v", left)
		}
		harness.Await(t, "the class is gone with its run", func() bool {
			list, err := untyped.Resource(class).List(t.Context(), metav1.ListOptions{})
			return err == nil && len(list.Items) == 0
		})
	}
}

// Pods are loaded at their own addresses and at their node's, and the record says how packets go. A place that no
// node has is an error that says so.
func TestBetweenPods(t *testing.T) {
	suite.Long(t, "back ends and clients are made several times")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	args := []string{"--lab", p.Lab, "--hold", "2s", "--set", "backEnds=1", "--set", "responseSize=100000", "--slo", "errors < 5%"}
	p.RunTo(t, "ab", append([]string{"ab", "ingress", "--level", "50", "--repeat", "2", "--arm", "pod:via=pod,place=same", "--arm", "host:via=host", "--metric", "throughput"}, args...)...)
	for _, s := range p.Result(t, "ab").Steps {
		if got := s.Metrics["throughput"]; s.Requests.Failed["reset"] > 0 || got < 0.03 || got > 0.06 { // 50 × 100 kB a second
			t.Errorf("%s: %g Gbit/s, %+v", s.Arm, got, s.Requests)
		}
	}
	facts := make(map[string]string)
	for _, f := range p.Environment(t, "ab").Facts {
		facts[f.Name] = f.Value
	}
	if facts["network"] != "bridge" || facts["encapsulation"] != "none" || !strings.HasPrefix(facts["mtu"], "1500 (segments of 14") {
		t.Errorf("the facts are %v", facts)
	}
	got := p.Run(t, append([]string{"sweep", "ingress", "--levels", "20", "--set", "via=pod", "--set", "place=other"}, args...)...)
	if got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "wait for the back ends: pod back-end-0-") || !strings.Contains(got.Stderr, "anti-affinity") {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left is %+v", left)
	}
}

// The rights that rbac prints are enough for a run, and it leaves nothing.
func TestRightsOfClients(t *testing.T) {
	suite.Long(t, "back ends and a client are made")
	t.Parallel()
	p := e2e.OnRealNode(t, suite)
	var account kubernetescluster.Account
	if err := json.Unmarshal([]byte(p.Run(t, "rbac", "ingress", "-o", "json").Stdout), &account); err != nil {
		t.Fatal(err)
	}
	var rules []rbacv1.PolicyRule
	for _, r := range account.Rights {
		resource, group, _ := strings.Cut(r.Resource, ".")
		rules = append(rules, rbacv1.PolicyRule{Verbs: []string{r.Verb}, APIGroups: []string{group}, Resources: []string{resource}})
	}
	got := p.Run(t, "sweep", "ingress", "--kubeconfig", e2e.AsUser(t, p, "clients", rules...), "--yes", "--levels", "20", "--hold", "1s", "--set", "backEnds=1", "--slo", "errors < 50%", "--out", "r")
	if r := p.Result(t, "r"); r.Steps[0].Requests.Done == 0 || strings.Contains(got.Stderr, "forbidden") {
		t.Errorf("exit code %d: %s\n%s", got.Code, r.Why, got.Stderr)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left is %+v", left)
	}
}

// clientPods returns the pods of the clients of the lab.
func clientPods(t *testing.T, p *harness.Program) []corev1.Pod {
	t.Helper()
	typed, _ := e2e.LabClient(t, p.Kubeconfig)
	pods, err := typed.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: "plimsoll.dev/part=clients"})
	if err != nil {
		t.Fatal(err)
	}
	return pods.Items
}

// clientProcess returns the process of one of the clients of the lab.
func clientProcess(t *testing.T, p *harness.Program, n int) (pid int) {
	t.Helper()
	pods := clientPods(t, p)
	groups, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range groups {
		dir := filepath.Dir(file)
		group, _ := os.ReadFile(file) // it may have ended
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		uid := string(pods[n].UID)
		ofPod := strings.Contains(string(group), uid) || strings.Contains(string(group), strings.ReplaceAll(uid, "-", "_"))
		if ofPod && strings.HasSuffix(string(command), "\x00client\x00") {
			pid, _ = strconv.Atoi(filepath.Base(dir))
			return pid
		}
	}
	t.Fatalf("none of %d clients runs as the %dth", len(pods), n)
	return 0
}
