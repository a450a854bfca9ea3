package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/virt"
)

// targetOn is a target whose API server answers as handler says.
func targetOn(t *testing.T, handler http.HandlerFunc) (*Target, *kubetest.Sink) {
	t.Helper()
	common, sink := kubetest.RunOn(t, handler)
	watch, err := follow.NewObserver(common, &follow.Ageing{Run: common}, time.Now, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &Target{Run: common, watch: watch, session: sessionOn(nil), profiles: new(profiler)}, sink
}

// sessionOn is a session on a cluster, without a workload.
func sessionOn(c *Cluster) *session {
	return &session{cluster: c, machines: virt.Of(system.Request{})}
}

// An axis that nobody knows is refused before anything is asked of the cluster.
func TestUnknownAxis(t *testing.T) {
	on, sink := targetOn(t, func(w http.ResponseWriter, r *http.Request) { t.Errorf("%s %s", r.Method, r.URL) })
	for _, axis := range []string{"", "vms"} {
		_, err := sessionOn(&Cluster{client: on.Client}).openTarget(t.Context(), prepared.Workload{Axis: axis}, system.Recorder{Sink: sink, Clock: on.Clock, Step: func() int { return 1 }})
		var mistake *system.MistakeError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), fmt.Sprintf("%q, only along all-at-once, at-once, bulk, iterations, jobs, objects, pods-per-node, rate", axis)) {
			t.Errorf("axis %q: %v", axis, err)
		}
	}
	for axis, span := range map[string]time.Duration{observe.AxisPodsPerNode: time.Second, observe.AxisRate: 0} {
		on.Load.Axis = axis
		if _, err := on.Raise(t.Context(), system.Level{Value: 1, Span: span}); err == nil || !strings.Contains(err.Error(), "span") {
			t.Errorf("axis %s with a span of %v: %v", axis, span, err)
		}
	}
}

// A plan on a cluster states its pods in all, where levels count on each node, and its pace.
func TestExtentOfALoad(t *testing.T) {
	w := &workload.Workload{Axes: []workload.Axis{{Name: "pods-per-node", Means: "pods-per-node"}, {Name: "density", Means: "pods-per-node"}, {Name: "objects"}, {Name: "rate", Loop: workload.Open}}}
	for _, tt := range []struct {
		axis plan.Axis
		pace plan.Pace
		want string
	}{
		{plan.Axis{Name: "pods-per-node", Search: &plan.Search{From: 10, Max: 250}}, plan.Pace{}, "at most 1500 pods on 6 nodes, with those that run there; 20 requests a second"},
		{plan.Axis{Name: "density", Levels: []float64{1, 0.5}}, plan.Pace{PerSecond: 7.5}, "at most 6 pods on 6 nodes, with those that run there; 7.5 requests a second"},
		{plan.Axis{Name: "objects", Levels: []float64{300}}, plan.Pace{Max: true}, "as fast as the cluster takes it"},
		{plan.Axis{Name: "rate", Levels: []float64{300}}, plan.Pace{}, ""},
	} {
		s := sessionOn(nil)
		s.Request = system.Request{Workload: w, Plan: &plan.Plan{Axis: tt.axis, Pace: tt.pace}}
		if got := s.extent(6); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.axis.Name, got, tt.want)
		}
	}
}

// Simulated containers write nothing, and are not asked.
func TestSimulatedNodesAreNotAskedForLogs(t *testing.T) {
	for realness, want := range map[record.Realness]int{record.Real: 1, record.Simulated: 0} {
		target, sink := targetOn(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotFound) })
		target.realness = realness
		failing := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: "1"}, Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}}}
		raw, err := failing.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if err := target.watch.Pods.Changed(1, api.EventAdded, raw); err != nil {
			t.Fatal(err)
		}
		if _, err := target.Account(t.Context()); err != nil {
			t.Fatal(err)
		}
		if logs := slices.DeleteFunc(sink.Events(), func(e record.Event) bool { _, is := e.Body.(*record.Log); return !is }); len(logs) != want {
			t.Errorf("%s nodes: %d pods were asked, want %d", realness, len(logs), want)
		}
	}
}
