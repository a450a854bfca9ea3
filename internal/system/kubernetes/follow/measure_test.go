package follow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
)

// What others make is followed by their labels, nodes without, and nothing is made.
func TestMeasure(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		asked = append(asked, q.Method+" "+q.URL.Path+" "+q.FormValue("labelSelector"))
		mu.Unlock()
		switch {
		case q.FormValue("watch") != "":
			w.(http.Flusher).Flush()
			<-q.Context().Done()
		case strings.HasSuffix(q.URL.Path, "/pods"):
			kubetest.Answer(t, w, http.StatusOK, &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{{
				ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", UID: "u1", CreationTimestamp: metav1.Unix(100, 0)},
				Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(102, 0)}}},
			}}})
		default:
			w.Header().Set("Content-Type", "application/json")
			item := `{"metadata":{"name":"j","namespace":"ns","uid":"u2","creationTimestamp":"1970-01-01T00:01:40Z"},"status":{"startTime":"1970-01-01T00:01:41Z"}}`
			if strings.HasSuffix(q.URL.Path, "/nodes") {
				item = `{"metadata":{"name":"n1","uid":"u3","creationTimestamp":"1970-01-01T00:01:40Z"},"status":{"conditions":[]}}`
			}
			fmt.Fprintf(w, `{"metadata":{"resourceVersion":"9"},"items":[%s]}`, item)
		}
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	run.Load.Namespace = "ns"
	for _, name := range []string{"jobLatency", "nodeLatency"} {
		run.Load.Beside = append(run.Load.Beside, described.Measured(name)[0].(*described.Objects))
	}
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	if err := Measure(ctx, run, time.Now, mapper, "app=a", func() { cancel(over) }); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range sink.Events() {
		if o, is := e.Body.(*record.Object); is {
			got = append(got, fmt.Sprint(o.Object, " ", o.Milestone, " ", o.Stamp))
		}
	}
	slices.Sort(got)
	if want := "Job/ns/j Created 100, Job/ns/j JobStartTime 101, Node/n1 Created 100, ns/p Created 100, ns/p Scheduled 102"; strings.Join(got, ", ") != want {
		t.Errorf("%q", got)
	}
	slices.Sort(asked)
	want := []string{"GET /api/v1/namespaces/ns/pods app=a", "GET /api/v1/nodes ", "GET /apis/batch/v1/namespaces/ns/jobs app=a"}
	if asked = slices.Compact(asked); !slices.Equal(asked, want) {
		t.Errorf("%q", asked)
	}
}
