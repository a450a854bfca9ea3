package sweep

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
)

// Pods go by namespace and page, only this run's, and through passing troubles.
func TestPodsAreDeletedByNamespace(t *testing.T) {
	var mu sync.Mutex
	var got []string
	troubled := false
	run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !troubled {
			troubled = true
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		query := r.URL.Query()
		got = append(got, r.Method+" "+r.URL.Path+" "+query.Get("labelSelector")+" "+query.Get("gracePeriodSeconds")+" "+query.Get("continue"))
		list := &corev1.PodList{}
		switch {
		case r.URL.Path == "/api/v1/namespaces/gone/pods":
			kubetest.Answer(t, w, http.StatusNotFound, &metav1.Status{})
			return
		case r.URL.Path == "/api/v1/namespaces/large/pods" && query.Get("continue") == "":
			list.Continue = "more"
		}
		kubetest.Answer(t, w, http.StatusOK, list)
	})
	grace := map[string][]string{"gracePeriodSeconds": {"1"}}
	if err := deletePods(context.Background(), run.Client, []string{"small", "large", "gone"}, api.LabelRun+"=run1", grace); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	want := []string{
		"DELETE /api/v1/namespaces/gone/pods plimsoll.dev/run=run1 1 ",
		"DELETE /api/v1/namespaces/large/pods plimsoll.dev/run=run1 1 ",
		"DELETE /api/v1/namespaces/large/pods plimsoll.dev/run=run1 1 more",
		"DELETE /api/v1/namespaces/small/pods plimsoll.dev/run=run1 1 ",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Whoever may not delete pods together cleans up all the same.
func TestCleanWithoutTheRightToCollections(t *testing.T) {
	run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && r.URL.Path == "/api/v1/namespaces/a/pods" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind":"NamespaceList","apiVersion":"v1"}`))
	})
	if err := Clean(context.Background(), run.Client, system.Host{Now: time.Now}, Leftover{Run: "run1", Namespaces: []string{"a"}}); err != nil {
		t.Error(err)
	}
	err := deletePods(context.Background(), run.Client, []string{"a"}, api.LabelRun+"=run1", nil)
	if !apierrors.IsForbidden(err) {
		t.Errorf("the refusal was told as %v", err)
	}
}

// Namespaces that no controller looks at are waited for half a minute, and longer where
// one does.
func TestADeadControllerOfNamespacesIsNamed(t *testing.T) {
	for _, c := range []struct {
		why    string
		left   func(look int) (n int, conditions []corev1.NamespaceCondition)
		wanted string
	}{
		{"nobody looks", func(int) (int, []corev1.NamespaceCondition) { return 2, nil }, "still there: 2 namespaces: the controller manager, which removes namespaces, has not acted on any for 40 s"},
		{"they go one by one", func(look int) (int, []corev1.NamespaceCondition) { return 12 - look, nil }, ""},
		{"one is looked at and takes its time", func(look int) (int, []corev1.NamespaceCondition) {
			return max(0, min(2, 8-look)), []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue}}
		}, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			looks, now := 0, time.Unix(0, 0)
			run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				looks++
				list := &corev1.NamespaceList{}
				n, conditions := c.left(looks)
				for range n {
					list.Items = append(list.Items, corev1.Namespace{Status: corev1.NamespaceStatus{Conditions: conditions}})
				}
				kubetest.Answer(t, w, http.StatusOK, list)
			})
			host := system.Host{Now: func() time.Time { now = now.Add(20 * time.Second); return now }}
			err := awaitNamespacesGone(t.Context(), run.Client, host, "run1")
			if got := fmt.Sprint(err); (err != nil || c.wanted != "") && got != c.wanted {
				t.Errorf("%s, want %q", got, c.wanted)
			}
		})
	}
}

// Namespaces that nobody takes away are waited for half a minute; and for longer, up to
// the longest pause of a controller that could not reach the server, where that is alive.
func TestWhoDoesNotTakeNamespacesAway(t *testing.T) {
	for _, tt := range []struct {
		why, says string
		lease     func(asked int) time.Duration // when it was renewed; below 0 is none
		gone      int                           // the list that is empty, 0 for none
	}{
		{"nobody renews the lease", "has not acted on any for 30 s", func(int) time.Duration { return time.Second }, 0},
		{"there is no lease", "has not acted on any for 30 s", func(int) time.Duration { return -1 }, 0},
		{"it is alive", "has not acted on any for 75 s, though its lease is renewed", func(asked int) time.Duration { return time.Duration(asked) * time.Second }, 0},
		{"it is alive, and tries again after a while", "", func(asked int) time.Duration { return time.Duration(asked) * time.Second }, 5},
	} {
		leases, lists := 0, 0
		run, _ := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/v1/namespaces" {
				list := &corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
				if lists++; lists == tt.gone {
					list.Items = nil
				}
				kubetest.Answer(t, w, http.StatusOK, list)
				return
			}
			leases++
			at := tt.lease(leases)
			if at < 0 {
				kubetest.Answer(t, w, http.StatusNotFound, &metav1.Status{})
				return
			}
			kubetest.Answer(t, w, http.StatusOK, &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: time.Unix(1e9, 0).Add(at)}}})
		})
		now := time.Unix(0, 0)
		host := system.Host{Now: func() time.Time { now = now.Add(15 * time.Second); return now }}
		err := awaitNamespacesGone(context.Background(), run.Client, host, "run1")
		if (err == nil) != (tt.says == "") || err != nil && !strings.HasSuffix(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.says)
		}
	}
}
