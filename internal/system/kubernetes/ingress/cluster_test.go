package ingress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
)

// onAPI returns an instance on an API server with this handler.
func onAPI(t *testing.T, params map[string]string, handler http.HandlerFunc) *instance {
	t.Helper()
	return opened(t, Provider{}, requestFor(t, params), handler)
}

func opened(t *testing.T, by system.Provider, r system.Request, handler http.HandlerFunc) *instance {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.Contexts["c"], config.CurrentContext = &clientcmdapi.Cluster{Server: server.URL}, &clientcmdapi.Context{Cluster: "c"}, "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	r.Plan.Own = &kubernetes.Settings{Kubeconfig: file}
	r.Host = system.Host{
		Now: time.Now, Log: t.Logf, StateDir: func() (string, error) { return t.TempDir(), nil },
		Progress: func() (func(string), func()) { return func(string) {}, func() {} },
	}
	s, err := by.Open(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	i := &instance{session: s.(*session), namespace: "plimsoll-r", wanted: 1, show: func(string) {}}
	i.Rec = system.Recorder{Sink: &kubetest.Sink{}, Clock: record.StartClock(time.Now), Step: func() int { return 1 }, Fail: func(error) {}}
	return i
}

// answer answers with an object, or with a status that is an error.
func answer(t *testing.T, w http.ResponseWriter, code int, object any) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(object); err != nil {
		t.Error(err)
	}
}

func TestIngressClasses(t *testing.T) {
	class := func(name, controller string, standard bool) networkingv1.IngressClass {
		c := networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}}
		if standard {
			c.Annotations = map[string]string{networkingv1.AnnotationIsDefaultIngressClass: "true"}
		}
		return c
	}
	plain, standard := class("nginx", "k8s.io/ingress-nginx", false), class("traefik", traefikController, true)
	for _, tt := range []struct {
		why, class        string
		code              int // of the list, 0 for success
		list              []networkingv1.IngressClass
		chosen, says, and string // the class, and its controller or the error
	}{
		{"the default", "", 0, []networkingv1.IngressClass{plain, standard}, "traefik", traefikController, ""},
		{"another one", "nginx", 0, []networkingv1.IngressClass{plain, standard}, "nginx", "k8s.io/ingress-nginx", ""},
		{"none is the default", "", 0, []networkingv1.IngressClass{plain}, "", "no ingress class is the default; there are: nginx", "--set class=nginx"},
		{"a typo", "ngin", 0, []networkingv1.IngressClass{plain, standard}, "", "there is no ingress class ngin", "nginx"},
		{"no class at all: a controller may take ingresses without one", "", 0, nil, "", "", ""},
		{"a user who may not list classes", "mine", http.StatusForbidden, nil, "mine", "", ""},
	} {
		i := onAPI(t, map[string]string{"via": "ingress", "class": tt.class}, func(w http.ResponseWriter, r *http.Request) {
			if tt.code != 0 {
				answer(t, w, tt.code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: int32(tt.code)})
				return
			}
			answer(t, w, http.StatusOK, networkingv1.IngressClassList{TypeMeta: metav1.TypeMeta{Kind: "IngressClassList", APIVersion: "networking.k8s.io/v1"}, Items: tt.list})
		})
		s := &site{settings: *i.arms[""]}
		err := i.chooseClass(t.Context(), s)
		mistake, _ := errors.AsType[*system.MistakeError](err)
		switch {
		case err == nil && (tt.and != "" || s.class != tt.chosen || s.controller != tt.says):
			t.Errorf("%s: class %q of %q", tt.why, s.class, s.controller)
		case err != nil && (mistake == nil || tt.and == "" || !strings.Contains(err.Error(), tt.says) || !strings.Contains(mistake.Hint, tt.and)):
			t.Errorf("%s: %v, %+v", tt.why, err, mistake)
		}
	}
}

// clientPod is a pod of the job of the clients.
func clientPod(name string, index int, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{batchv1.JobCompletionIndexAnnotation: fmt.Sprint(index)}}, Spec: corev1.PodSpec{NodeName: "node-" + name}, Status: status}
}

// A client whose pod is evicted keeps its name in another pod. One that does not come back ends the run with the results
// so far, or the load goes on without it where the plan allows fewer clients.
func TestAClientIsEvicted(t *testing.T) {
	running := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: new(corev1.ContainerStateRunning)}}}}
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", Message: "The node was low on memory.", ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: new(corev1.ContainerStateTerminated)}}}}
	waits := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/1 nodes are available"}}}
	answering := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(t, w, http.StatusOK, struct{}{}) }))
	defer answering.Close()
	for _, tt := range []struct {
		why, clients string
		goesOn       bool
	}{{"so many clients", "2", false}, {"clients within bounds", "1..2", true}} {
		pods := []corev1.Pod{clientPod("a", 0, running), clientPod("b", 1, evicted), clientPod("c", 1, waits)}
		i := onAPI(t, map[string]string{"clients": tt.clients}, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/pods") {
				answer(t, w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, Items: pods})
			}
		})
		now := time.Now()
		i.Host.Now = func() time.Time { now = now.Add(awaitBound); return now }
		i.fleet, i.wanted, i.made = &clients.Fleet{Now: i.Rec.Clock.Now}, 2, 2
		err := i.reach(t.Context())
		if !errors.As(err, new(*system.UnableError)) || !strings.Contains(err.Error(), "wait for the clients: pod c on node-c: Unschedulable: 0/1 nodes are available") {
			t.Errorf("%s: %v", tt.why, err)
		}
		i.links[1] = &link{client: &clients.Client{Name: "client-1 on node-b"}, pod: "b"}
		_, err = i.start(t.Context(), new(site), nil)
		if cut := errors.As(err, new(*system.CutError)); !tt.goesOn && (!cut || !strings.Contains(err.Error(), "client-1 on node-b was lost (pod b on node-b: Evicted: The node was low on memory.), and nothing replaces it: pod c on node-c: Unschedulable: 0/1")) {
			t.Errorf("%s: %v", tt.why, err)
		}
		one := clients.NewClient("client-0", func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", answering.Listener.Addr().String())
		})
		i.links[0].client, i.fleet.Clients = one, []*clients.Client{one}
		if i.without(t.Context(), err) != tt.goesOn || tt.goesOn && (i.wanted != 1 || !i.links[1].abandoned || i.links[0].abandoned) {
			t.Errorf("%s: %d clients are wanted, %+v", tt.why, i.wanted, i.links)
		}
		if errors.As(err, new(*system.UnableError)) && i.without(t.Context(), errors.New("another error")) {
			t.Errorf("%s: any error is taken for a lost client", tt.why)
		}
	}

	i := onAPI(t, nil, func(http.ResponseWriter, *http.Request) {})
	i.links = []*link{new(link)}
	for _, name := range []string{"a", "a", "b"} {
		pod := clientPod(name, 0, running)
		if err := i.connect(0, &pod); err != nil {
			t.Fatal(err)
		}
	}
	notes := i.Rec.Sink.(*kubetest.Sink).Events()
	if l := i.links[0]; l.client.Name != "client-0 on node-a" || l.pod != "b" || len(notes) != 1 || notes[0].Body.(*record.Note).Text != "client-0 on node-a was lost: a pod on node-b replaces it" {
		t.Errorf("%+v, %+v", l, notes)
	}
}

// A client that the cluster makes no pod for says why: by the last warning about its job.
func TestAClientThatTheClusterRefuses(t *testing.T) {
	at := func(s int64) metav1.Time { return metav1.Unix(1e9+s, 0) }
	quota := "pods \"clients-0-x\" is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2"
	for _, tt := range []struct {
		why, want string
		events    []corev1.Event
	}{
		{"a quota", "wait for the clients: client-0 has no pod: FailedCreate: " + quota, []corev1.Event{
			{Reason: "FailedCreate", Message: quota, LastTimestamp: at(2)}, {Reason: "FailedCreate", Message: "an older reason", LastTimestamp: at(1)}}},
		{"no event", "wait for the clients: client-0 has no pod", nil},
	} {
		i := onAPI(t, nil, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/pods"):
				answer(t, w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}})
			case strings.HasSuffix(r.URL.Path, "/events") && r.URL.Query().Get("fieldSelector") == "type=Warning,involvedObject.name=clients":
				answer(t, w, http.StatusOK, corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, Items: tt.events})
			default:
				t.Errorf("%s: asked for %s", tt.why, r.URL)
			}
		})
		now := time.Now()
		i.Host.Now = func() time.Time { now = now.Add(awaitBound); return now }
		i.fleet, i.wanted, i.made = &clients.Fleet{Now: i.Rec.Clock.Now}, 1, 1
		if err := i.reach(t.Context()); err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}

// A client that is silent for too long has its pod removed, once, and the load waits for another.
func TestASilentClientIsReplaced(t *testing.T) {
	for _, tt := range []struct {
		why     string
		code    int // of the removal
		removes []string
		says    string
	}{
		{"its job makes another", http.StatusOK, []string{"/api/v1/namespaces/plimsoll-r/pods/p"}, "client-0: connection refused (pod p)"},
		{"a user who may not remove it", http.StatusForbidden, []string{"/api/v1/namespaces/plimsoll-r/pods/p"}, "client-0: connection refused, and it is not replaced: "},
	} {
		var removed []string
		i := onAPI(t, nil, func(w http.ResponseWriter, r *http.Request) {
			removed = append(removed, r.URL.Path)
			answer(t, w, tt.code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: int32(tt.code), Reason: metav1.StatusReasonForbidden, Status: metav1.StatusFailure})
		})
		now := time.Unix(1e9, 0)
		i.Host.Now = func() time.Time { return now }
		paused, well := clients.NewClient("client-0", nil), clients.NewClient("client-1", nil)
		i.links = []*link{{client: paused, pod: "p"}, {client: well, pod: "q"}}
		silent := map[*clients.Client]error{paused: errors.New("client-0: connection refused")}
		for n, after := range []time.Duration{0, silentBound - 1, 1} {
			now = now.Add(after)
			i.fleet = &clients.Fleet{Clients: []*clients.Client{paused, well}}
			says := i.replace(t.Context(), silent)
			if last := n == 2; !strings.HasPrefix(says, "client-0: connection refused") || last && !strings.HasPrefix(says, tt.says) || (len(removed) > 0) != last {
				t.Errorf("%s: look %d says %q, removed is %q", tt.why, n, says, removed)
			}
			if len(i.fleet.Clients) != 1 || i.fleet.Clients[0] != well {
				t.Errorf("%s: the fleet is %+v", tt.why, i.fleet.Clients)
			}
		}
		if !slices.Equal(removed, tt.removes) || len(i.Rec.Sink.(*kubetest.Sink).Events()) != 1 {
			t.Errorf("%s: removed is %q", tt.why, removed)
		}
		now = now.Add(silentBound)
		if i.replace(t.Context(), nil); !i.links[0].since.IsZero() {
			t.Errorf("%s: a client that answers again counts as silent", tt.why)
		}
	}
}

// A job that makes no pod for a lost client, because several have failed, is made again, once it has been waited for.
func TestAJobThatHoldsClientsUp(t *testing.T) {
	for _, tt := range []struct {
		why  string
		code int // of the removal
		want []string
	}{
		{"the job is made again", http.StatusOK, []string{"DELETE /jobs/clients", "POST /jobs", "GET /pods?batch.kubernetes.io/job-name=clients-again-1"}},
		{"a user who may not remove it waits", http.StatusForbidden, []string{"DELETE /jobs/clients", "GET /pods?batch.kubernetes.io/job-name=clients"}},
	} {
		ctx, stop := context.WithCancel(t.Context())
		var asked []string
		i := onAPI(t, map[string]string{"clients": "2"}, func(w http.ResponseWriter, r *http.Request) {
			at := r.Method + " " + strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/batch/v1/namespaces/plimsoll-r"), "/api/v1/namespaces/plimsoll-r")
			if selector := r.URL.Query().Get("labelSelector"); selector != "" {
				at += "?" + selector
			}
			if asked = append(asked, at); len(asked) > 3 && strings.Contains(strings.Join(asked[:len(asked)-1], " "), "DELETE") && r.Method == http.MethodGet {
				stop()
			}
			switch {
			case strings.HasSuffix(r.URL.Path, "/pods"):
				answer(t, w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}})
			case r.Method == http.MethodDelete:
				answer(t, w, tt.code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: int32(tt.code), Reason: metav1.StatusReasonForbidden, Status: map[bool]string{true: metav1.StatusSuccess, false: metav1.StatusFailure}[tt.code == http.StatusOK]})
			default:
				answer(t, w, http.StatusOK, batchv1.Job{TypeMeta: metav1.TypeMeta{Kind: "Job", APIVersion: "batch/v1"}})
			}
		})
		now := time.Unix(1e9, 0)
		i.Host.Now = func() time.Time { now = now.Add(silentBound / 4); return now }
		i.fleet, i.wanted, i.made = &clients.Fleet{Now: i.Rec.Clock.Now}, 1, 1
		lost := &link{client: clients.NewClient("client-0", nil), pod: "p", forward: new(api.Forward)}
		i.links = []*link{lost}
		_ = i.reach(ctx)
		n := slices.Index(asked, tt.want[0])
		if n < 2 || !slices.Equal(asked[n:min(n+len(tt.want), len(asked))], tt.want) {
			t.Errorf("%s: %q", tt.why, asked)
		}
		if again := tt.code == http.StatusOK; (lost.pod == "") != again || (len(i.Rec.Sink.(*kubetest.Sink).Events()) == 1) != again {
			t.Errorf("%s: the link is %+v", tt.why, lost)
		}
		stop()
	}
}

// asking returns a client whose requests fail so often before they are answered rightly.
func asking(t *testing.T, name string, failures int64) *clients.Client {
	t.Helper()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		failed := ""
		if asked.Add(1) <= failures {
			failed = "timeout"
		}
		answer(t, w, http.StatusOK, map[string]any{"Failed": failed})
	}))
	t.Cleanup(server.Close)
	c := clients.NewClient(name, func(ctx context.Context) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", server.Listener.Addr().String())
	})
	t.Cleanup(c.Close)
	return c
}

// Each way is made, found and led to other back ends by the requests that its kind needs.
func TestWays(t *testing.T) {
	const networking, gateways, routes = "/apis/networking.k8s.io/v1/namespaces/plimsoll-r/ingresses", "/apis/gateway.networking.k8s.io/v1/namespaces/plimsoll-r/httproutes", "/apis/route.openshift.io/v1/namespaces/plimsoll-r/routes"
	for _, tt := range []struct {
		params       map[string]string
		made, looked string         // paths
		object       map[string]any // as it is once it was looked at
		server, host string
		leads        string // part of what leads it elsewhere
	}{
		{map[string]string{"via": "service"}, "/api/v1/namespaces/plimsoll-r/services", "", map[string]any{"spec": map[string]any{"clusterIP": "fd00::7"}}, "[fd00::7]:80", "b-way.plimsoll-r.svc", `"plimsoll.dev/part":"b-other"`},
		{map[string]string{"via": "ingress", "tls": "true"}, networking, networking + "/b-way", map[string]any{"status": map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "2001:db8::1"}}}}}, "[2001:db8::1]:443", "plimsoll.example", `"name":"b-other"`},
		{map[string]string{"via": "ingress", "address": "192.0.2.1:8080"}, networking, "", nil, "192.0.2.1:8080", "plimsoll.example", `"name":"b-other"`},
		{map[string]string{"via": "gateway", "gateway": "infra/public"}, gateways, "/apis/gateway.networking.k8s.io/v1/namespaces/infra/gateways/public", map[string]any{"spec": map[string]any{"gatewayClassName": "public-class"}, "status": map[string]any{"addresses": []any{map[string]any{"value": "192.0.2.2"}}}}, "192.0.2.2:80", "plimsoll.example", `"name":"b-other"`},
		{map[string]string{"via": "route"}, routes, routes + "/b-way", map[string]any{"spec": map[string]any{"host": "b.apps.example"}, "status": map[string]any{"ingress": []any{map[string]any{"conditions": []any{map[string]any{"type": "Admitted", "status": "True"}}}}}}, "b.apps.example:80", "b.apps.example", `"name":"b-other"`},
	} {
		tt.params["event"] = eventChange
		var asked []string
		i := onAPI(t, tt.params, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // an error shows in what is compared
			asked = append(asked, r.Method+" "+r.URL.Path+" "+string(body))
			if r.URL.Path == "/apis/gateway.networking.k8s.io/v1/gatewayclasses/public-class" {
				answer(t, w, http.StatusOK, map[string]any{"spec": map[string]any{"controllerName": "example.com/controller"}})
				return
			}
			answer(t, w, http.StatusOK, tt.object)
		})
		s := &site{settings: *i.arms[""], name: "b"}
		if err := i.makeWay(t.Context(), s, s.wayName()); err != nil {
			t.Errorf("%v: %v", tt.params, err)
			continue
		}
		if s.server != tt.server || s.host != tt.host || !strings.HasPrefix(asked[0], "POST "+tt.made+" ") || tt.looked != "" && !strings.HasPrefix(asked[1], "GET "+tt.looked+" ") {
			t.Errorf("%v: %s and %s, by %q", tt.params, s.server, s.host, asked)
		}
		asked = nil
		for _, others := range []bool{true, true, false} { // the second has nothing to do
			if err := i.turn(t.Context(), s, others); err != nil {
				t.Fatal(err)
			}
		}
		if tt.params["via"] == viaGateway && s.controller != "example.com/controller" {
			t.Errorf("the gateway's controller is %q", s.controller)
		}
		if len(asked) != 2 || !strings.HasPrefix(asked[0], "PATCH "+tt.made+"/b-way ") || !strings.Contains(asked[0], tt.leads) || strings.Contains(asked[1], "other") {
			t.Errorf("%v: %q", tt.params, asked)
		}
	}
}

// Back ends that nobody may make end the wait at once, and the reason is the cluster's.
func TestBackEndsAreRefused(t *testing.T) {
	const refused = `pods "b" is forbidden: violates PodSecurity "restricted:latest": host namespaces (hostNetwork=true)`
	i := onAPI(t, map[string]string{"via": "host"}, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/pods") {
			answer(t, w, http.StatusOK, corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}})
			return
		}
		answer(t, w, http.StatusOK, appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, Spec: appsv1.DeploymentSpec{Replicas: new(int32(1))},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: refused}}},
		})
	})
	if err := i.awaitDeployment(t.Context(), "the back ends", "b"); !errors.As(err, new(*system.UnableError)) || err.Error() != "wait for the back ends: "+refused {
		t.Errorf("%v", err)
	}
}

// Requests go to the addresses of all pods, each a host of the load.
func TestTheWayToPods(t *testing.T) {
	i := onAPI(t, map[string]string{"via": "host"}, func(w http.ResponseWriter, r *http.Request) {
		list := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
		for n, ip := range []string{"192.0.2.1", "", "2001:db8::1"} {
			list.Items = append(list.Items, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", n)}, Status: corev1.PodStatus{PodIP: ip}})
		}
		answer(t, w, http.StatusOK, list)
	})
	s := &site{settings: *i.arms[""], name: "b", port: hostPort}
	if err := i.makeWay(t.Context(), s, s.wayName()); err != nil {
		t.Fatal(err)
	}
	var hosts []string
	for _, h := range s.plan(0).Hosts {
		hosts = append(hosts, h.Name+" "+h.Address)
	}
	if want := []string{"p0 192.0.2.1:18080", "p2 [2001:db8::1]:18080"}; !slices.Equal(hosts, want) {
		t.Errorf("%q, want %q", hosts, want)
	}
}

// What a run makes for a gateway of its own in a lab is what the definitions allow, and names what belongs together.
func TestAGatewayOfTheRunsOwn(t *testing.T) {
	for _, secure := range []string{"false", "true"} {
		made, certificate := make(map[string]map[string]any), false // by kind
		i := onAPI(t, map[string]string{"via": "gateway", "tls": secure}, func(w http.ResponseWriter, r *http.Request) {
			var object map[string]any
			certificate = certificate || strings.HasSuffix(r.URL.Path, "/secrets")
			if r.Method == http.MethodPost && strings.Contains(r.URL.Path, "/apiextensions.k8s.io/") {
				answer(t, w, http.StatusConflict, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonAlreadyExists, Code: http.StatusConflict})
				return
			}
			if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&object) == nil && object["kind"] != nil {
				made[object["kind"].(string)] = object
			}
			answer(t, w, http.StatusOK, map[string]any{"status": map[string]any{"addresses": []any{map[string]any{"value": "192.0.2.1"}}}})
		})
		s := &site{settings: *i.arms[""], name: "back-end-0"}
		err := i.defineGateways(t.Context())
		if err == nil {
			err = i.makeGateway(t.Context(), s, i.meta("controller-0-way", "controller-0-way"), "class")
		}
		if err == nil {
			err = i.makeWay(t.Context(), s, s.wayName())
		}
		if want := map[string]string{"false": "192.0.2.1:80", "true": "192.0.2.1:443"}[secure]; err != nil || s.server != want || s.gateway != "plimsoll-r/controller-0-way" {
			t.Fatalf("%s of gateway %s: %v", s.server, s.gateway, err)
		}
		all, err := definitionsOfGateways()
		if err != nil {
			t.Fatal(err)
		}
		checked := 0
		for _, d := range all {
			object := made[d.Spec.Names.Kind]
			if object == nil {
				continue
			}
			checked++
			var schema apiextensions.JSONSchemaProps
			if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(d.Spec.Versions[0].Schema.OpenAPIV3Schema, &schema, nil); err != nil {
				t.Fatal(err)
			}
			validator, _, err := validation.NewSchemaValidator(&schema)
			if err != nil {
				t.Fatal(err)
			}
			if wrong := validation.ValidateCustomResource(nil, object, validator); len(wrong) > 0 {
				t.Errorf("%s: %v", d.Name, wrong)
			}
		}
		if checked != 2 || certificate != (secure == "true") {
			t.Errorf("made are %v", slices.Sorted(maps.Keys(made)))
		}
	}
}

// An event under load is over when every client has its right answer, and the next window tells of it.
func TestEvents(t *testing.T) {
	for _, tt := range []struct {
		event string
		of    map[string]int64 // how often a milestone was reached
		ends  string           // of the last request
	}{
		{eventRoute, map[string]int64{created: 1, programmed: 2}, "DELETE /apis/networking.k8s.io/v1/namespaces/plimsoll-r/ingresses/b-added-1"},
		{eventChange, map[string]int64{changed: 2}, "PATCH /apis/networking.k8s.io/v1/namespaces/plimsoll-r/ingresses/b-way"},
	} {
		var last string
		i := onAPI(t, map[string]string{"via": "ingress", "address": "192.0.2.1:80", "event": tt.event}, func(w http.ResponseWriter, r *http.Request) {
			last = r.Method + " " + r.URL.Path
			answer(t, w, http.StatusOK, nil)
		})
		i.fleet = &clients.Fleet{Clients: []*clients.Client{asking(t, "a", 0), asking(t, "b", 3)}}
		s := &step{instance: i, site: &site{settings: *i.arms[""], name: "b"}}
		values, err := s.makeEvent(t.Context())
		if err != nil || values["asked"] != 5 || values["wrong"] != 3 || values["seconds"] <= 0 || last != tt.ends {
			t.Errorf("%s: %v, %v, %s", tt.event, values, err, last)
		}
		for _, want := range []map[string]int64{tt.of, {}} { // once
			w := &record.Window{Histograms: make(map[string]record.Histogram)}
			if err := s.times.tell(w); err != nil {
				t.Fatal(err)
			}
			got := make(map[string]int64)
			for milestone, h := range w.Histograms {
				counts, err := h.Counts()
				if err != nil {
					t.Fatal(err)
				}
				got[milestone] = counts.TotalCount()
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s: %v, want %v", tt.event, got, want)
			}
		}
	}
}

// Where no client gets an answer, the error names the network policies that may be why.
func TestNetworkPoliciesAreNamed(t *testing.T) {
	i := onAPI(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		answer(t, w, http.StatusOK, networkingv1.NetworkPolicyList{TypeMeta: metav1.TypeMeta{Kind: "NetworkPolicyList", APIVersion: "networking.k8s.io/v1"}, Items: []networkingv1.NetworkPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "deny-all"}}}})
	})
	now := time.Now()
	i.Host.Now = func() time.Time { now = now.Add(awaitBound); return now }
	i.fleet = &clients.Fleet{Clients: []*clients.Client{asking(t, "client-0", 1e6)}}
	err := i.program(t.Context(), &site{settings: *i.arms[""], name: "b"})
	unable, is := errors.AsType[*system.UnableError](err)
	if !is || !strings.Contains(err.Error(), "the request failed: timeout. Network policies apply in namespace plimsoll-r: deny-all") || !strings.Contains(unable.Hint, "allow") {
		t.Errorf("%v", err)
	}
}

// What a controller uses is added up from the rates of the metrics API, and goes on at the last one.
func TestUseByTheMetricsAPI(t *testing.T) {
	at, pods := time.Unix(1e9, 0), 1
	i := onAPI(t, map[string]string{"via": "ingress", "controller": "infra/app=proxy"}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/apis/metrics.k8s.io/v1beta1/namespaces/infra/pods" || r.URL.Query().Get("labelSelector") != "app=proxy" {
			answer(t, w, http.StatusNotFound, nil)
			return
		}
		var list []any
		for n := range pods {
			list = append(list, map[string]any{
				"metadata": map[string]any{"namespace": "infra", "name": fmt.Sprint("p", n)}, "timestamp": at.UTC().Format(time.RFC3339),
				"containers": []any{map[string]any{"usage": map[string]any{"cpu": "400m", "memory": "10Mi"}}, map[string]any{"usage": map[string]any{"cpu": "100m", "memory": "1Mi"}}},
			})
		}
		answer(t, w, http.StatusOK, map[string]any{"items": list})
	})
	s := &site{settings: *i.arms[""]}
	i.findPods(s)
	for _, tt := range []struct {
		why   string
		after time.Duration // of the figures
		pods  int
		asked time.Duration // after them
		cpu   float64
	}{
		{"the first figures", 0, 1, 0, 0},
		{"a rate that goes on", 0, 1, 4 * time.Second, 2},
		{"figures of a later time", 10 * time.Second, 1, 0, 5},
		{"the same again", 0, 1, 0, 5},
		{"a second pod", 10 * time.Second, 2, 2 * time.Second, 12},
		{"figures that came back late", 0, 2, -time.Hour, 12},
		{"no news for an hour", 0, 2, time.Hour, 10 + 60},
	} {
		at, pods = at.Add(tt.after), tt.pods
		if err := s.meter.read(t.Context(), i.Client()); err != nil {
			t.Fatal(err)
		}
		r, known := s.meter.reading(at.Add(tt.asked))
		if !known || math.Abs(r.Values[record.ValueCPU]-tt.cpu) > 1e-9 || r.Values["rssBytes"] != float64(tt.pods*11<<20) {
			t.Errorf("%s: %v, want %g CPU seconds", tt.why, r.Values, tt.cpu)
		}
	}
	for controller, want := range map[string]string{"": "", traefikController: "/app.kubernetes.io/name=traefik"} {
		s := &site{settings: settings{via: viaIngress}, controller: controller}
		if i.findPods(s); (s.meter != nil) != (want != "") {
			t.Errorf("%q: %+v", controller, s.meter)
		}
	}
}
