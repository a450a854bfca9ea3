package kubernetes

import (
	"net/http"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
)

// A job's images are pulled on each node and what pulled them is gone before the job begins. An image that is not
// pulled in time, and a user who may not, are notes.
func TestPreload(t *testing.T) {
	t.Parallel()
	waiting := func(reason string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Image: "registry.example/a", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "of " + reason}}}
	}
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	for _, tt := range []struct {
		why    string
		code   int // of the request that makes the DaemonSet
		states [][]corev1.ContainerStatus
		period time.Duration
		note   string // "" for none
		calls  string
	}{
		{"one node is slower", http.StatusCreated, [][]corev1.ContainerStatus{{waiting("ContainerCreating"), running}, {waiting("CrashLoopBackOff"), running}}, time.Minute, "", "POST DELETE"},
		{"an image that does not exist", http.StatusCreated, [][]corev1.ContainerStatus{{waiting("ImagePullBackOff"), running}}, 0, "images of job j were not all pulled before it: 1 of 2 within 0s: registry.example/a on n: ImagePullBackOff: of ImagePullBackOff", "POST DELETE"},
		{"a user without the right", http.StatusForbidden, nil, time.Minute, "images of job j were not all pulled before it: ", "POST"},
	} {
		t.Run(strings.ReplaceAll(tt.why, " ", "-"), func(t *testing.T) {
			t.Parallel()
			calls, deleted, asked := "", false, 0
			const sets = "/apis/apps/v1/namespaces/plimsoll-run1/daemonsets"
			run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, q *http.Request) {
				status := &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden}
				set := &appsv1.DaemonSet{TypeMeta: metav1.TypeMeta{Kind: "DaemonSet", APIVersion: "apps/v1"}, Status: appsv1.DaemonSetStatus{DesiredNumberScheduled: 2, ObservedGeneration: 1}}
				switch {
				case q.Method == http.MethodPost && q.URL.Path == sets:
					calls += "POST "
					if tt.code == http.StatusForbidden {
						kubetest.Answer(t, w, tt.code, status)
						return
					}
					kubetest.Answer(t, w, tt.code, set)
				case q.Method == http.MethodDelete && q.URL.Path == sets+"/"+follow.Helper+"preload-run1":
					calls, deleted = calls+"DELETE ", true
					kubetest.Answer(t, w, http.StatusOK, set)
				case deleted && strings.HasPrefix(q.URL.Path, sets):
					status.Reason, status.Code = metav1.StatusReasonNotFound, http.StatusNotFound
					kubetest.Answer(t, w, http.StatusNotFound, status)
				case strings.HasPrefix(q.URL.Path, sets):
					kubetest.Answer(t, w, http.StatusOK, set)
				default:
					list := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
					for _, s := range tt.states[min(asked, len(tt.states)-1)] {
						list.Items = append(list.Items, corev1.Pod{Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{s}}})
					}
					asked++
					kubetest.Answer(t, w, http.StatusOK, list)
				}
			})
			watch, err := follow.NewObserver(run, nil, time.Now, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			target := &Target{Run: run, watch: watch}
			if err := target.preload(t.Context(), &kubeburner.Job{Name: "j", PreLoadPeriod: tt.period}, []string{"registry.example/a"}); err != nil {
				t.Fatal(err)
			}
			notes := ""
			for _, e := range sink.Events() {
				notes += e.Body.(*record.Note).Text
			}
			if strings.TrimSpace(calls) != tt.calls || (notes == "") != (tt.note == "") || !strings.HasPrefix(notes, tt.note) {
				t.Errorf("%q, %q", calls, notes)
			}
		})
	}
}
