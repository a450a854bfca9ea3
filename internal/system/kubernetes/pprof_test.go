package kubernetes

import (
	"context"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
)

// toServer connects to a server of the test in place of a pod.
type toServer string

func (s toServer) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", string(s))
}

func (toServer) Close() {}

// Profiles of pods and kubelets are files beside the record, at the start of a job, by the interval and at its end.
// A refusal, a profile that is too large and a target without pods are notes.
func TestProfilesOfPrograms(t *testing.T) {
	t.Parallel()
	served := make(chan struct{}, 100)
	program := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch {
		case q.URL.Path == "/huge":
			for block := make([]byte, 1<<20); q.Context().Err() == nil; {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		case q.Header.Get("Authorization") != "Bearer sw0rdf1sh":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.Write([]byte("profile of " + q.URL.RequestURI()))
			served <- struct{}{}
		}
	}))
	t.Cleanup(program.Close)
	run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/api/v1/namespaces/ns/pods":
			list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
			if q.FormValue("labelSelector") == "app=a" && q.FormValue("fieldSelector") == "status.phase=Running" {
				list.Items = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a-0", Namespace: "ns"}}}
			}
			kubetest.Answer(t, w, http.StatusOK, list)
		case "/api/v1/nodes":
			if q.FormValue("labelSelector") != "role=worker" {
				t.Errorf("nodes by %q", q.URL.RawQuery)
			}
			kubetest.Answer(t, w, http.StatusOK, &corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, Items: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}}})
		case "/api/v1/nodes/n1/proxy/debug/pprof/heap":
			w.Write([]byte("of a kubelet, " + q.FormValue("seconds")))
		default:
			t.Errorf("asked for %s", q.URL)
		}
	})
	of := func(name, url, token, app string) kubeburner.PProfTarget {
		return kubeburner.PProfTarget{Name: name, Namespace: "ns", LabelSelector: map[string]string{"app": app}, URL: url, BearerToken: token}
	}
	run.Load.Config = &kubeburner.Config{Global: kubeburner.Global{Measurements: []kubeburner.Measurement{{
		Name: "pprof", PProfDirectory: "pprof/here", PProfInterval: 20 * time.Millisecond, NodeAffinity: map[string]string{"role": "worker"},
		PProfTargets: []kubeburner.PProfTarget{
			of("heap", "https://localhost:6060/heap?debug=1", "sw0rdf1sh", "a"), of("none", "https://localhost:6060/heap", "other", "a"),
			of("huge", "https://localhost:6060/huge", "sw0rdf1sh", "a"), of("nobody", "https://localhost:6060/heap", "", "b"),
			{Name: "kubelet", URL: "https://localhost:10250/debug/pprof/heap?seconds=3"},
		},
	}}}}
	dir := record.Dir(t.TempDir())
	p := &profiler{Run: run, files: func() fs.FS { return nil }, dir: dir, forward: func(namespace, pod string, port int) (dialer, error) {
		if namespace != "ns" || pod != "a-0" || port != 6060 {
			t.Errorf("%s/%s:%d is forwarded", namespace, pod, port)
		}
		return toServer(program.Listener.Addr().String()), nil
	}}
	p.begin(t.Context(), &kubeburner.Job{Name: "j"})
	<-served
	<-served // by the interval
	p.end(t.Context())
	p.end(t.Context())
	names := files(t, dir)
	for name, want := range map[string]string{"heap-a-0-j-start.pprof": "profile of /heap?debug=1", "kubelet-n1-j-end.pprof": "of a kubelet, 3"} {
		if text, err := os.ReadFile(filepath.Join(string(dir), "pprof/here", name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	if slices.ContainsFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, "heap-") && !strings.HasPrefix(name, "kubelet-")
	}) {
		t.Errorf("%q", names)
	}
	var notes []string
	for _, e := range sink.Events() {
		notes = append(notes, e.Body.(*record.Note).Text)
	}
	for _, want := range []string{"profile none-a-0-j-start.pprof: get /heap of pod ns/a-0: 403 Forbidden", "profile huge-a-0-j-end.pprof: it has more than 32 MiB", "profile nobody: no pod that runs has its labels, or no node"} {
		if !slices.Contains(notes, want) {
			t.Errorf("no note %q: %q", want, notes)
		}
	}
	if text := strings.Join(notes, " "); strings.Contains(text, "sw0rdf1sh") {
		t.Error("a note has the token")
	}
}

// files lists the profiles.
func files(t *testing.T, dir record.Dir) (names []string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(string(dir), "pprof/here"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		names = append(names, f.Name())
	}
	return names
}
