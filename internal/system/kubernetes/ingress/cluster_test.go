package ingress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/local/clients"
)

// onAPI returns an instance on an API server with this handler.
func onAPI(t *testing.T, params map[string]string, handler http.HandlerFunc) *instance {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	config := clientcmdapi.NewConfig()
	config.Clusters["c"], config.Contexts["c"], config.CurrentContext = &clientcmdapi.Cluster{Server: server.URL}, &clientcmdapi.Context{Cluster: "c"}, "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	r := requestFor(t, params)
	r.Plan.Own = &kubernetes.Settings{Kubeconfig: file}
	r.Host = system.Host{
		Now: time.Now, Log: t.Logf, StateDir: func() (string, error) { return t.TempDir(), nil },
		Progress: func() (func(string), func()) { return func(string) {}, func() {} },
	}
	s, err := Provider{}.Open(t.Context(), r)
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

// A client whose pod is evicted keeps its name in another pod. One that does not come back ends the run, or the load
// goes on without it where the plan allows fewer clients.
func TestAClientIsEvicted(t *testing.T) {
	running := corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Running: new(corev1.ContainerStateRunning)}}}}
	evicted := corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted", ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: new(corev1.ContainerStateTerminated)}}}}
	waits := corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/1 nodes are available"}}}
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
		if !errors.As(err, new(*system.UnableError)) || !strings.Contains(err.Error(), "pod c: 0/1 nodes are available") {
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
