package survey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// message is an object in the API's protobuf encoding.
type message interface{ Marshal() ([]byte, error) }

// fakeAPI is an API server that answers from what is written down. A path that
// is not there is not found.
type fakeAPI struct {
	lists map[string]message // by path
	json  map[string]string  // by path
	code  map[string]int     // by path: refused with that code
	ready []string           // answers to /readyz, the last again and again; those with [-] are failures

	mu    sync.Mutex
	asked []string // method and path
}

func (f *fakeAPI) serve(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		path := r.URL.Path
		f.asked = append(f.asked, r.Method+" "+path)
		w.Header().Set("Date", time.Unix(1_000_000, 0).UTC().Format(http.TimeFormat))
		switch {
		case f.code[path] != 0:
			status := metav1.Status{Status: "Failure", Code: int32(f.code[path]), Reason: metav1.StatusReasonForbidden, Message: `x is forbidden: User "someone" cannot list resource "x"`}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.code[path])
			status.Kind, status.APIVersion = "Status", "v1"
			json.NewEncoder(w).Encode(status)
		case path == "/readyz":
			text := f.ready[0]
			if len(f.ready) > 1 {
				f.ready = f.ready[1:]
			}
			if strings.Contains(text, "[-]") {
				w.WriteHeader(http.StatusInternalServerError)
			}
			fmt.Fprint(w, text)
		case f.lists[path+"?"+r.URL.Query().Get("continue")] != nil:
			kubetest.Answer(t, w, 200, f.lists[path+"?"+r.URL.Query().Get("continue")])
		case f.lists[path] != nil:
			kubetest.Answer(t, w, 200, f.lists[path])
		case f.json[path] != "":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, f.json[path])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

// well is a fake API with two nodes.
func well() *fakeAPI {
	return &fakeAPI{
		lists: map[string]message{
			"/api/v1/nodes":      &corev1.NodeList{Items: []corev1.Node{nodeOf("a", nil), nodeOf("b", nil)}},
			"/api/v1/pods":       &corev1.PodList{},
			"/api/v1/services":   &corev1.ServiceList{Items: []corev1.Service{serviceOf("default", "kubernetes", "10.96.0.1")}},
			"/api/v1/namespaces": &corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "default"}}}},
		},
		json: map[string]string{
			"/version": `{"gitVersion": "v1.36.3"}`,
			"/apis/networking.k8s.io/v1/servicecidrs": `{"items": [{"metadata": {"name": "kubernetes"}, "spec": {"cidrs": ["10.96.0.0/16"]}}]}`,
		},
		code:  map[string]int{},
		ready: []string{"[+]ping ok\n[+]etcd ok\nreadyz check passed\n"},
	}
}

func nodeOf(name string, change func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{"pods": resource.MustParse("110"), "cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi")},
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	if change != nil {
		change(&n)
	}
	return n
}

func serviceOf(namespace, name string, ips ...string) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIPs: ips}}
}

func podOn(node, namespace, name string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

// surveyed surveys a fake API.
func surveyed(t *testing.T, f *fakeAPI) (*Survey, error) {
	t.Helper()
	server := httptest.NewServer(f.serve(t))
	t.Cleanup(server.Close)
	client, err := api.NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	return Of(context.Background(), client, system.Host{Now: func() time.Time { return time.Unix(1_000_000, 0) }})
}

// tableOf returns the survey's table for pods that ask for nothing.
func tableOf(t *testing.T, s *Survey) record.CeilingTable {
	t.Helper()
	look, err := s.Assess(context.Background(), Demand{Axis: ceiling.Axis{Name: "pods-per-node", Unit: "pods/node"}})
	if err != nil {
		t.Fatal(err)
	}
	return ceiling.Compute(look.Facts)
}

func rowOf(t *testing.T, table record.CeilingTable, name string) record.Ceiling {
	t.Helper()
	i := slices.IndexFunc(table.Ceilings, func(c record.Ceiling) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no ceiling %s in %+v", name, table.Ceilings)
	}
	return table.Ceilings[i]
}

// What stands on nodes is added up by node, whatever made it.
func TestSurveyCountsWhatStandsThere(t *testing.T) {
	f := well()
	requests := func(cpu string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse(cpu)}
		}
	}
	old := metav1.NewTime(time.Unix(1_000_000, 0).Add(-time.Hour))
	waiting := func(reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
		}
	}
	// Two pages: what is listed page by page is added up all the same.
	f.lists["/api/v1/pods?"] = &corev1.PodList{ListMeta: metav1.ListMeta{Continue: "next"}, Items: []corev1.Pod{
		podOn("a", "kube-system", "static", func(p *corev1.Pod) {
			p.Annotations, p.Spec.HostNetwork = map[string]string{corev1.MirrorPodAnnotationKey: "x"}, true
		}),
		podOn("a", "kube-system", "daemon", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet"}} }),
		podOn("a", "x", "half", requests("500m")),
		podOn("a", "x", "crashing", waiting("CrashLoopBackOff")),
		podOn("b", "x", "imageless", waiting("ImagePullBackOff")),
	}}
	f.lists["/api/v1/pods?next"] = &corev1.PodList{Items: []corev1.Pod{
		podOn("b", "x", "two", requests("2")),
		podOn("gone", "x", "elsewhere", nil),
		podOn("", "x", "lost", func(p *corev1.Pod) { p.CreationTimestamp = old }),
		podOn("", "x", "selective", func(p *corev1.Pod) {
			p.CreationTimestamp, p.Spec.NodeSelector = metav1.NewTime(time.Unix(1_000_000, 0)), map[string]string{"no": "node"}
		}),
		podOn("", "x", "canary", func(p *corev1.Pod) { p.Labels = map[string]string{api.LabelCanary: ""} }),
	}}
	s, err := surveyed(t, f)
	if err != nil {
		t.Fatal(err)
	}
	look, err := s.Assess(context.Background(), Demand{Axis: ceiling.Axis{Unit: "pods/node"}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := look.Facts.Nodes[0], look.Facts.Nodes[1]
	if a.Standing != 4 || a.Static != 1 || a.Daemons != 1 || a.HostNetwork != 1 || a.Requested["cpu"] != 500 || b.Standing != 2 || b.Requested["cpu"] != 2000 {
		t.Errorf("nodes %+v and %+v", a, b)
	}
	if look.Facts.Pods != 9 || look.Facts.Addresses != 8 || look.Facts.Pending != 1 {
		t.Errorf("%d pods, %d with an address, %d that wait for one of these nodes", look.Facts.Pods, look.Facts.Addresses, look.Facts.Pending)
	}
	h := s.Health()
	if fmt.Sprint(h.Unplaced, h.Restarting, h.NoImage) != "[x/lost] [x/crashing] [x/imageless]" {
		t.Errorf("in trouble: %v, %v, %v", h.Unplaced, h.Restarting, h.NoImage)
	}
	// 220 places, 7 of them taken: what is there counts in the level.
	if c := rowOf(t, ceiling.Compute(look.Facts), "allocatablePods"); *c.Level != 110 || *c.Used != 6 {
		t.Errorf("allocatable pods %+v", c)
	}
}

// Ranges of addresses are read from wherever a cluster keeps them.
func TestSurveyFindsRanges(t *testing.T) {
	withRange := func(cidr string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Spec.PodCIDR, n.Spec.PodCIDRs = cidr, []string{cidr} }
	}
	manager := func(args ...string) message {
		return &corev1.PodList{Items: []corev1.Pod{podOn("a", "kube-system", "m", func(p *corev1.Pod) {
			p.Labels = map[string]string{"component": "kube-controller-manager"}
			p.Spec.HostNetwork, p.Spec.Containers[0].Command = true, append([]string{"kube-controller-manager"}, args...)
		}), podOn("a", "kube-system", "s", func(p *corev1.Pod) {
			p.Labels = map[string]string{"component": "kube-apiserver"}
			p.Spec.HostNetwork, p.Spec.Containers[0].Command = true, []string{"kube-apiserver", "--service-cluster-ip-range", "10.0.0.0/24,fd00::/112"}
		})}}
	}
	for _, tt := range []struct {
		change func(*fakeAPI)
		name   string
		class  record.CeilingClass
		level  float64 // 0 is none
		limit  float64
		from   string
		why    string
	}{
		{func(f *fakeAPI) {
			f.lists["/api/v1/nodes"] = &corev1.NodeList{Items: []corev1.Node{nodeOf("a", withRange("10.1.0.0/24")), nodeOf("b", withRange("10.1.1.0/24"))}}
		}, "podAddressesPerNode", record.CeilingHard, 253, 506, "spec.podCIDRs", "the nodes' own ranges"},
		{func(f *fakeAPI) {
			f.json["/apis/config.openshift.io/v1/networks/cluster"] = `{"status": {"clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}], "serviceNetwork": ["172.30.0.0/16"]}}`
		}, "podAddressesPerNode", record.CeilingHard, 509, 1018, "networks.config.openshift.io", "OpenShift's hostPrefix"},
		{func(f *fakeAPI) {
			f.json["/apis/config.openshift.io/v1/networks/cluster"] = `{"status": {"clusterNetwork": [{"cidr": "10.128.0.0/14", "hostPrefix": 23}]}}`
		}, "nodeRanges", record.CeilingUnbound, 0, 512, "networks.config.openshift.io", "and for how many nodes it has ranges (R15)"},
		{func(f *fakeAPI) {
			f.json["/apis/config.openshift.io/v1/networks/cluster"] = `{"status": {}}`
		}, "defaultPodsPerNode", record.CeilingAdvisory, 250, 500, "OpenShift", "OpenShift's own published figures"},
		{func(f *fakeAPI) {
			ovn := func(n *corev1.Node) {
				n.Annotations = map[string]string{ovnSubnets: `{"default":["10.128.2.0/22"]}`}
			}
			f.lists["/api/v1/nodes"] = &corev1.NodeList{Items: []corev1.Node{nodeOf("a", ovn), nodeOf("b", ovn)}}
		}, "podAddressesPerNode", record.CeilingHard, 1021, 2042, "k8s.ovn.org/node-subnets", "OVN-Kubernetes' annotation"},
		{func(f *fakeAPI) {
			ovn := func(n *corev1.Node) { n.Annotations = map[string]string{ovnSubnets: `{"default":"10.128.2.0/23"}`} }
			f.lists["/api/v1/nodes"] = &corev1.NodeList{Items: []corev1.Node{nodeOf("a", ovn), nodeOf("b", ovn)}}
		}, "podAddressesPerNode", record.CeilingHard, 509, 1018, "k8s.ovn.org/node-subnets", "and its older form"},
		{func(f *fakeAPI) {
			f.lists["/api/v1/pods"] = manager("--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16", "--node-cidr-mask-size=25")
		}, "podAddressesPerNode", record.CeilingHard, 126, 250, "--cluster-cidr", "the controller manager's command line; two pods of the host's network stand there"},
		{func(f *fakeAPI) {
			f.lists["/api/v1/pods"] = manager("--allocate-node-cidrs=true", "--cluster-cidr", "10.244.0.0/16")
		}, "nodeRanges", record.CeilingUnbound, 0, 256, "--cluster-cidr", "a /24 for each node unless it says otherwise"},
		{func(f *fakeAPI) {
			f.lists["/api/v1/pods"] = manager("--cluster-cidr=10.244.0.0/24")
		}, "podAddresses", record.CeilingHard, 128, 254, "--cluster-cidr", "where nodes get no part, they share the whole"},
		{func(f *fakeAPI) {
			f.lists["/api/v1/pods"] = manager()
			delete(f.json, "/apis/networking.k8s.io/v1/servicecidrs")
		}, "serviceAddresses", record.CeilingUnbound, 0, 254, "--service-cluster-ip-range", "an older API server's command line, of the default family"},
		{func(f *fakeAPI) { delete(f.json, "/apis/networking.k8s.io/v1/servicecidrs") }, "serviceAddresses", record.CeilingUnknown, 0, 0, "", "an older API server that keeps it to itself"},
		{func(f *fakeAPI) {
			f.json["/apis/networking.k8s.io/v1/servicecidrs"] = `{"items": [{"spec": {"cidrs": ["10.96.0.0/24", "fd00::/112"]}}, {"spec": {"cidrs": ["10.97.0.0/24"]}}]}`
		}, "serviceAddresses", record.CeilingUnbound, 0, 508, "servicecidrs", "a range that was added later, without the other family's"},
		{func(f *fakeAPI) {
			f.json["/apis/networking.k8s.io/v1/servicecidrs"] = `{"items": [{"spec": {"cidrs": ["10.96.0.0/24", "fd00::/112"]}}]}`
			f.lists["/api/v1/services"] = &corev1.ServiceList{Items: []corev1.Service{serviceOf("default", "kubernetes", "fd00::1"), serviceOf("x", "headless", "None"), serviceOf("x", "both", "fd00::2", "10.96.0.2")}}
		}, "serviceAddresses", record.CeilingUnbound, 0, 65535, "servicecidrs", "a cluster whose default family is the sixth"},
		{func(f *fakeAPI) {
			f.lists["/api/v1/nodes"] = &corev1.NodeList{Items: []corev1.Node{nodeOf("a", withRange("10.1.0.0/24"))}}
			f.lists["/api/v1/pods"] = &corev1.PodList{Items: []corev1.Pod{podOn("a", "kube-system", "n", func(p *corev1.Pod) { p.Labels = map[string]string{"k8s-app": "cilium"} })}}
		}, "podAddressesPerNode", record.CeilingUnknown, 0, 0, "", "a plug-in with ranges of its own"},
		{func(f *fakeAPI) {
			flannel := func(n *corev1.Node) { n.Annotations = map[string]string{flannelBackend: "vxlan"} }
			f.lists["/api/v1/nodes"] = &corev1.NodeList{Items: []corev1.Node{nodeOf("a", flannel), nodeOf("b", flannel)}}
		}, "bridgePorts", record.CeilingHard, 1023, 2046, "kernel", "flannel hangs pods on a bridge"},
		{func(f *fakeAPI) { f.code["/api/v1/pods"] = 403 }, "testedPods", record.CeilingUnknown, 0, 150_000, "", "a user that may not list pods"},
		{func(f *fakeAPI) { f.code["/api/v1/nodes"] = 403 }, "allocatablePods", record.CeilingUnknown, 0, 0, "", "a user that may not list nodes"},
		{func(f *fakeAPI) { f.code["/api/v1/services"] = 403 }, "serviceAddresses", record.CeilingUnknown, 0, 65534, "servicecidrs", "a user that may not list services"},
		{func(f *fakeAPI) { f.code["/api/v1/namespaces"] = 403 }, "testedNamespaces", record.CeilingUnknown, 0, 10_000, "", "a user that may not list namespaces"},
	} {
		f := well()
		tt.change(f)
		s, err := surveyed(t, f)
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
			continue
		}
		c := rowOf(t, tableOf(t, s), tt.name)
		level, limit := 0.0, 0.0
		if c.Level != nil {
			level = *c.Level
		}
		if c.Limit != nil {
			limit = *c.Limit
		}
		if c.Class != tt.class || level != tt.level || limit != tt.limit || !strings.Contains(c.From, tt.from) {
			t.Errorf("%s: %s is %s, level %g, limit %g, from %q; want %s, %g, %g, %q\nnote %s", tt.why, tt.name, c.Class, level, limit, c.From, tt.class, tt.level, tt.limit, tt.from, c.Note)
		}
		for _, request := range f.asked {
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("%s: a survey only reads, and asked %s", tt.why, request)
			}
		}
	}
}

// An API server that is not ready is asked again for a while, and what it says
// then counts.
func TestSurveyAsksTheServer(t *testing.T) {
	starting, broken := "[+]ping ok\n[-]poststarthook/x failed: reason withheld\nreadyz check failed\n", "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed\n"
	for _, tt := range []struct {
		answers []string
		code    int // of a refusal
		want    string
		stops   bool
		why     string
	}{
		{[]string{"[+]ping ok\n[+]etcd ok\nreadyz check passed\n"}, 0, "ready, 2 checks passed", false, "one that is ready"},
		{[]string{starting, starting, "[+]ping ok\n[+]etcd ok\nreadyz check passed\n"}, 0, "ready, 2 checks passed", false, "one that is about to be"},
		{[]string{broken}, 0, "it is not ready: etcd failing", true, "one that has no database"},
		{[]string{"ok"}, 403, "may not ask", false, "one that does not answer this user"},
	} {
		f := well()
		f.ready = tt.answers
		f.code["/readyz"] = tt.code
		s, err := surveyed(t, f)
		if err != nil {
			t.Errorf("%s: %v", tt.why, err)
			continue
		}
		list := ceiling.Vital(s.Health())
		found := slices.ContainsFunc(list, func(f record.HealthFinding) bool { return f.What == "API server" && strings.Contains(f.Text, tt.want) })
		if !found || len(ceiling.Stopping(list)) > 0 != tt.stops {
			t.Errorf("%s: %+v, want %q", tt.why, list, tt.want)
		}
	}
	// Lines of another form are no checks.
	if got := parseChecks("ok\n[+]\n[?]a ok\n[+] ok\n[-]b failed: reason withheld"); len(got) != 1 || got["b"] {
		t.Errorf("checks %v", got)
	}
}

// A cluster that answers nobody about rights refuses no run: each right is unknown.
func TestRightsThatNobodyTells(t *testing.T) {
	f := well()
	f.code["/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"] = http.StatusForbidden
	s, err := surveyed(t, f)
	if err != nil {
		t.Fatal(err)
	}
	h := s.Health()
	if err := s.review(t.Context(), &h, []ceiling.Right{{Verb: "create", Resource: "pods", Where: "x"}}); err != nil {
		t.Fatal(err)
	}
	list := ceiling.Judge(h)
	i := slices.IndexFunc(list, func(f record.HealthFinding) bool { return f.What == "rights" })
	if i < 0 || list[i].Severity != record.SeverityWarning || !strings.Contains(list[i].Text, "whether this user may create pods in x is unknown: this user may not read it") {
		t.Errorf("%+v", list)
	}
}

// A server that is gone is no unknown figure.
func TestSurveyOfAServerThatIsGone(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	client, err := api.NewClient(&rest.Config{Host: server.URL}, "test")
	if err != nil {
		t.Fatal(err)
	}
	_, err = Of(context.Background(), client, system.Host{Now: time.Now})
	var unreachable *api.UnreachableError
	if !errors.As(err, &unreachable) {
		t.Errorf("got %v, want an UnreachableError", err)
	}
}

// lookAt renders a workload of some documents on a fake API.
func lookAt(t *testing.T, f *fakeAPI, job string, docs map[string]string) *Assessment {
	t.Helper()
	s, err := surveyed(t, f)
	if err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Pod", "Service", "ResourceQuota", "LimitRange", "ConfigMap"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	s.Know(mapper)
	files := fstest.MapFS{"c.yml": {Data: []byte(job)}}
	for name, text := range docs {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	config, err := kubeburner.Load(files, "c.yml", kubeburner.Input{UUID: "00000000-0000-4000-8000-000000000000"})
	if err != nil {
		t.Fatal(err)
	}
	templates, err := config.Templates(files)
	if err != nil {
		t.Fatal(err)
	}
	look, err := s.Assess(context.Background(), Demand{
		Workload: "w", Variant: prepared.Variant{Config: config, Templates: templates}, RunID: "r", UUID: "u", Axis: ceiling.Axis{Name: "pods-per-node", Unit: "pods/node"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return look
}

const (
	bareTemplate    = "apiVersion: v1\nkind: Pod\nmetadata: {name: 'p-{{.Iteration}}'}\nspec: {containers: [{name: c, image: i}]}\n"
	serviceTemplate = "apiVersion: v1\nkind: Service\nmetadata: {name: 's-{{.Iteration}}'}\nspec: {ports: [{port: 5432}]}\n"
	deployTemplate  = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: 'd-{{.Iteration}}'}\nspec:\n  replicas: 3\n  template:\n    spec:\n      enableServiceLinks: false\n      containers: [{name: c, image: i, resources: {limits: {cpu: 250m}}}]\n"
)

// What a workload asks for is read from its first iteration.
func TestLookReadsWhatAWorkloadAsksFor(t *testing.T) {
	look := lookAt(t, well(), `jobs:
- {name: before, namespace: other, jobIterations: 5, objects: [{objectTemplate: p.yml, replicas: 2}]}
- name: main
  namespace: w
  iterationsPerNamespace: 7
  objects:
  - {objectTemplate: d.yml, replicas: 2}
  - {objectTemplate: s.yml, replicas: 1, repeatEveryNIterations: 4}
  - {objectTemplate: h.yml, replicas: 1, runOnce: true}
  - {objectTemplate: none.yml, replicas: 0}
`, map[string]string{
		"p.yml": bareTemplate, "d.yml": deployTemplate, "s.yml": serviceTemplate, "none.yml": bareTemplate,
		"h.yml": "apiVersion: v1\nkind: Service\nmetadata: {name: h}\nspec: {clusterIP: None, ports: [{port: 1}]}\n",
	})
	l := look.Facts.Load
	if l.PerNamespace != 7 || len(l.Entries) != 4 {
		t.Fatalf("load %+v", l)
	}
	before, deployment, service, headless := l.Entries[0], l.Entries[1], l.Entries[2], l.Entries[3]
	if before.Copies != 10 || before.Every != 0 || before.Pods != 1 || before.Namespace != "other-0" || !before.Pod.ServiceLinks {
		t.Errorf("a job before the last is made once, whole: %+v", before)
	}
	if deployment.Resource != "deployments.apps" || deployment.Copies != 2 || deployment.Every != 1 || deployment.Pods != 3 || deployment.Pod.Requests["cpu"] != 250 || deployment.Pod.Limits["cpu"] != 250 || deployment.Pod.ServiceLinks {
		t.Errorf("a deployment's pods request what they are limited to: %+v", deployment)
	}
	// Some 7 variables for each service (D16).
	if service.Every != 4 || !service.ClusterIP || service.LinkBytes < 200 || service.LinkBytes > 500 {
		t.Errorf("a service: %+v", service)
	}
	if headless.ClusterIP || headless.LinkBytes != 0 || headless.Every != 0 {
		t.Errorf("a service without an address: %+v", headless)
	}
	var rights []string
	for _, r := range look.Needs {
		rights = append(rights, r.String())
	}
	for _, want := range []string{"create deployments.apps", "create services", "create pods", "watch events", "patch pods"} {
		if !slices.Contains(rights, want) {
			t.Errorf("a run needs to %s, and is asked about %v", want, rights)
		}
	}
	if slices.Contains(rights, "delete services") {
		t.Errorf("what goes with its namespace is deleted by nobody: %v", rights)
	}
}

// What belongs to a namespace that is there already is read and counts.
func TestLookReadsLimitsOfNamespaces(t *testing.T) {
	const job = "jobs: [{name: main, namespace: w, objects: [{objectTemplate: p.yml, replicas: 1}]}]\n"
	inThere := strings.Replace(bareTemplate, "metadata: {", "metadata: {namespace: there, ", 1)
	f := well()
	f.lists["/api/v1/namespaces"] = &corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "there", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}}}}}
	f.lists["/api/v1/namespaces/there/resourcequotas"] = &corev1.ResourceQuotaList{Items: []corev1.ResourceQuota{{
		ObjectMeta: metav1.ObjectMeta{Name: "q"},
		Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"pods": resource.MustParse("9"), "requests.cpu": resource.MustParse("2")},
			Used: corev1.ResourceList{"pods": resource.MustParse("3"), "requests.cpu": resource.MustParse("500m")},
		},
	}}}
	f.lists["/api/v1/namespaces/there/limitranges"] = &corev1.LimitRangeList{Items: []corev1.LimitRange{{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("100m")}, Default: corev1.ResourceList{"cpu": resource.MustParse("2")},
		Max: corev1.ResourceList{"cpu": resource.MustParse("1")},
	}}}}}}
	look := lookAt(t, f, job, map[string]string{"p.yml": inThere})
	table := ceiling.Compute(look.Facts)
	if c := rowOf(t, table, "quota:q:pods"); *c.Level != 3 || *c.Left != 6 || c.Sign != "exceeded quota" {
		t.Errorf("6 pods are left for 2 nodes: %+v", c)
	}
	if c := rowOf(t, table, "quota:q:requests.cpu"); *c.Level != 7.5 || *c.Limit != 2 {
		t.Errorf("1.5 cores are left for pods that the limit range gives 100m: %+v", c)
	}
	if p := look.Facts.Load.Entries[0].Pod; p.Requests["cpu"] != 100 || p.Limits["cpu"] != 2000 {
		t.Errorf("what the limit range fills in: %+v", p)
	}
	text := fmt.Sprint(look.Findings)
	for _, want := range []string{"a limit range allows at most 1 of cpu for a container, and c has a limit of 2", "namespace there enforces Pod Security restricted", "allowPrivilegeEscalation"} {
		if !strings.Contains(text, want) {
			t.Errorf("findings lack %q: %s", want, text)
		}
	}
	// What may not be read is said.
	f.code["/api/v1/namespaces/there/resourcequotas"] = 403
	look = lookAt(t, f, job, map[string]string{"p.yml": inThere})
	if c := rowOf(t, ceiling.Compute(look.Facts), "quotas"); c.Class != record.CeilingUnknown || !strings.Contains(c.Note, "may not read it") {
		t.Errorf("quotas that may not be read: %+v", c)
	}
}

func TestLookFindsWhatIsWrongWithAWorkload(t *testing.T) {
	const job = "jobs: [{name: main, namespace: w, objects: [{objectTemplate: p.yml, replicas: 1}]}]\n"
	for _, tt := range []struct {
		job, doc string
		change   func(*fakeAPI)
		want     string
		why      string
	}{
		{job, "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\n", nil, "the cluster knows no kind Thing in example.com/v1", "a kind that is not there"},
		{job, strings.Replace(bareTemplate, "spec: {", "spec: {runtimeClassName: crun, ", 1), nil, "there is no RuntimeClass crun", "a runtime class that is not there"},
		{job, strings.Replace(bareTemplate, "spec: {", "spec: {nodeSelector: {a: b}, ", 1), nil, "no node takes the workload's pods: all 2", "a selector that fits no node"},
		{job, bareTemplate, func(f *fakeAPI) {
			f.lists["/api/v1/nodes"] = &corev1.NodeList{Items: []corev1.Node{nodeOf("a", nil), nodeOf("b", func(n *corev1.Node) { n.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"} })}}
		}, "1 real and 1 simulated nodes", "nodes of two fidelities"},
		{strings.Replace(job, "namespace: w", "namespace: default, namespacedIterations: false", 1), bareTemplate, nil, "namespace default exists and was not made by plimsoll", "a namespace that is somebody's"},
		{strings.Replace(job, "namespace: w", "namespace: w, namespaceLabels: {pod-security.kubernetes.io/enforce: baseline}", 1), strings.Replace(bareTemplate, "spec: {", "spec: {hostNetwork: true, ", 1), nil, "enforce Pod Security baseline", "labels that the workload gives its own namespaces"},
	} {
		f := well()
		if tt.change != nil {
			tt.change(f)
		}
		look := lookAt(t, f, tt.job, map[string]string{"p.yml": tt.doc})
		found := slices.ContainsFunc(look.Findings, func(f record.HealthFinding) bool {
			return f.Severity == record.SeverityError && strings.Contains(f.Text, tt.want)
		})
		if !found {
			t.Errorf("%s: findings %+v, want %q", tt.why, look.Findings, tt.want)
		}
	}
	if look := lookAt(t, well(), job, map[string]string{"p.yml": bareTemplate}); len(look.Findings) != 0 {
		t.Errorf("a workload that is well: %+v", look.Findings)
	}
}

// What a kubelet is configured to is asked of one node of each kind.
func TestKubeletsAreAsked(t *testing.T) {
	f := well()
	f.lists["/api/v1/nodes"] = &corev1.NodeList{Items: []corev1.Node{nodeOf("a", nil), nodeOf("b", nil), nodeOf("c", func(n *corev1.Node) {
		n.Status.Allocatable["pods"] = resource.MustParse("250")
	})}}
	f.json["/api/v1/nodes/a/proxy/configz"] = `{"kubeletconfig": {"maxPods": 500}}`
	f.code["/api/v1/nodes/c/proxy/configz"] = 403
	s, err := surveyed(t, f)
	if err != nil {
		t.Fatal(err)
	}
	look, err := s.Assess(context.Background(), Demand{})
	if err != nil {
		t.Fatal(err)
	}
	s.Kubelets(context.Background(), look)
	n := look.Facts.Nodes
	if n[0].MaxPods.Value != 500 || n[1].MaxPods.Value != 500 || n[2].MaxPods.Known() || !strings.Contains(n[2].MaxPods.Why, "may not read it") {
		t.Errorf("%+v, %+v, %+v", n[0].MaxPods, n[1].MaxPods, n[2].MaxPods)
	}
	if slices.Contains(f.asked, "GET /api/v1/nodes/b/proxy/configz") {
		t.Error("a second node of the same kind was asked")
	}
}

// serviceVariables are the variables that a kubelet sets for a service, as
// Kubernetes documents them.
func serviceVariables(name, ip string, port int) []string {
	upper := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	url := fmt.Sprintf("tcp://%s:%d", ip, port)
	base := fmt.Sprintf("%s_PORT_%d_TCP", upper, port)
	return []string{
		upper + "_SERVICE_HOST=" + ip, fmt.Sprintf("%s_SERVICE_PORT=%d", upper, port), upper + "_PORT=" + url,
		base + "=" + url, base + "_PROTO=tcp", fmt.Sprintf("%s_PORT=%d", base, port), base + "_ADDR=" + ip,
	}
}

// The estimate of how many services an environment holds is the kernel's own
// figure: a process is started with one as large, and not with a larger one.
func TestServiceLinksFillAnEnvironment(t *testing.T) {
	var stack syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_STACK, &stack); err != nil || stack.Cur != 8<<20 {
		t.Skipf("the stack of this process is not 8 MiB: %d, %v", stack.Cur, err)
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "postgresql-0"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 5432}}}}
	load := ceiling.Load{Entries: []ceiling.Entry{
		{Resource: "services", Copies: 1, Every: 1, ClusterIP: true, LinkBytes: linkBytes(service)},
		{Resource: "pods", Copies: 2, Every: 1, Pods: 1, Pod: ceiling.Pod{Containers: 1, ServiceLinks: true}},
	}}
	f := ceiling.Facts{Axis: ceiling.Axis{Unit: "pods/node"}, Load: &load, NodesRead: ceiling.Source{From: "x"}, AllNodes: 1, Nodes: []ceiling.Node{{Name: "n"}}}
	services := int(*rowOf(t, ceiling.Compute(f), "serviceLinks").Total) / 2
	starts := func(n int) error {
		var env []string
		for i := range n {
			env = append(env, serviceVariables(fmt.Sprintf("postgresql-%04d", i), "172.30.225.60", 5432)...)
		}
		cmd := exec.Command("/bin/true")
		cmd.Env = env
		return cmd.Run()
	}
	t.Logf("estimated: %d services; 26 nodes with 450 pods have 5850 (D16)", services)
	if services >= 5850 || services <= 5000 {
		t.Errorf("%d services: want more than the 5000 that are published, and less than the 5850 that failed", services)
	}
	if err := starts(services); err != nil {
		t.Errorf("with %d services: %v", services, err)
	}
	// What was set aside for the container's own variables is not used here.
	if err := starts(services + services/100); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("with a hundredth more: %v, want %v", err, syscall.E2BIG)
	}
}
