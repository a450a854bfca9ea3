package follow

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

func status(name string, change func(*corev1.ContainerStatus)) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name}
	change(&s)
	return s
}

func running(s *corev1.ContainerStatus) { s.State.Running = &corev1.ContainerStateRunning{} }

func ready(s *corev1.ContainerStatus) { running(s); s.Ready = true }

func restarted(s *corev1.ContainerStatus) { running(s); s.RestartCount = 2 }

func looping(s *corev1.ContainerStatus) {
	s.State.Waiting, s.RestartCount = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}, 5
}

func creating(s *corev1.ContainerStatus) {
	s.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
}

func ended(s *corev1.ContainerStatus) {
	s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 0}
}

func failed(s *corev1.ContainerStatus) {
	s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
}

func TestWhichContainerTells(t *testing.T) {
	for _, tt := range []struct {
		why        string
		inits, all []corev1.ContainerStatus
		want       string
	}{
		{"one that runs and is not ready", nil, []corev1.ContainerStatus{status("a", ready), status("b", running)}, "b"},
		{"one that ends again and again, before one that runs", nil, []corev1.ContainerStatus{status("a", running), status("b", looping)}, "b"},
		{"one that was restarted, before one that was not", nil, []corev1.ContainerStatus{status("a", running), status("b", restarted)}, "b"},
		{"the init container that holds all others up", []corev1.ContainerStatus{status("i", ended), status("j", failed)}, []corev1.ContainerStatus{status("a", creating)}, "j"},
		{"init containers that have done their work say nothing", []corev1.ContainerStatus{status("i", ended)}, []corev1.ContainerStatus{status("a", running)}, "a"},
		{"nothing has run yet", nil, []corev1.ContainerStatus{status("a", creating)}, ""},
		{"all are ready by now", nil, []corev1.ContainerStatus{status("a", ready)}, ""},
	} {
		got, ok := containerToLog(&corev1.Pod{Status: corev1.PodStatus{InitContainerStatuses: tt.inits, ContainerStatuses: tt.all}})
		if got.Name != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: %q, want %q", tt.why, got.Name, tt.want)
		}
	}
}

func logsIn(sink *kubetest.Sink) (logs []*record.Log) {
	for _, e := range sink.Events() {
		if l, ok := e.Body.(*record.Log); ok {
			logs = append(logs, l)
		}
	}
	return logs
}

// The end of a log is put on record, without its secrets.
func TestLogsAreSampled(t *testing.T) {
	var asked atomic.Value
	run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/pods/a/log"):
			asked.Store(r.URL.RawQuery)
			for i := range 30 {
				fmt.Fprintf(w, "line %d\n", i)
			}
			io.WriteString(w, "postgres://app:hunter2@db:5432/app\ndial tcp 172.30.225.6:5432: i/o timeout\n\xff\n")
		case strings.HasSuffix(r.URL.Path, "/pods/a"):
			kubetest.Answer(t, w, 200, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status("app", restarted)}}})
		case strings.HasSuffix(r.URL.Path, "/pods/b"):
			kubetest.Answer(t, w, 200, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status("app", creating)}}})
		default:
			w.WriteHeader(404)
		}
	})
	SampleLogs(t.Context(), run, []observe.Failing{{Name: "ns/a", Place: "n1", Reason: "Restarted"}, {Name: "ns/b"}, {Name: "ns/c"}})
	logs := logsIn(sink)
	if len(logs) != 3 {
		t.Fatalf("%d logs", len(logs))
	}
	a := logs[0]
	if want := []string{"postgres://app:hunter2@db:5432/app", "dial tcp 172.30.225.6:5432: i/o timeout", "\ufffd"}; len(a.Lines) != logLines || !slices.Equal(a.Lines[logLines-3:], want) || a.Lines[0] != "line 13" {
		t.Errorf("lines %q", a.Lines)
	}
	if a.Object != "ns/a" || a.Container != "app" || a.Place != "n1" || a.Reason != "Restarted" || !a.Previous || a.Masked != 0 || a.Error != "" {
		t.Errorf("%+v", a)
	}
	if query := asked.Load(); query != "container=app&limitBytes=65536&previous=true&tailLines=20" {
		t.Errorf("asked for %v", query)
	}
	if logs[1].Error != "no container of it has run" || logs[2].Error == "" || len(logs[2].Lines) > 0 {
		t.Errorf("%+v, %+v", logs[1], logs[2])
	}
}

// A server that does not answer, or says no, holds nothing up.
func TestLogsThatDoNotCome(t *testing.T) {
	pods := make([]observe.Failing, logsPerStep)
	for i := range pods {
		pods[i].Name = fmt.Sprintf("ns/%d", i)
	}
	var requests atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == logWorkers { // there is no time any more, and all wait
			cancel()
		}
		<-r.Context().Done()
	})
	SampleLogs(ctx, run, pods)
	if n := requests.Load(); n > 2*logWorkers {
		t.Errorf("%d requests to a server that does not answer", n)
	}
	requests.Store(0)
	run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		kubetest.Answer(t, w, 403, &metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: 403, Message: "pods is forbidden"})
	})
	SampleLogs(t.Context(), run, pods)
	if n := requests.Load(); n > 2*logWorkers {
		t.Errorf("%d requests by one who may not", n)
	}
	if logs := logsIn(sink); len(logs) == 0 || logs[0].Error == "" {
		t.Errorf("nothing tells why there are no logs: %+v", logs)
	}
}
