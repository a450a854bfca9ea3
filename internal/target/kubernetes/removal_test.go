package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"plimsoll.dev/plimsoll/internal/target"
)

// Pods go by namespace and page, only this run's, and through passing troubles.
func TestPodsAreDeletedByNamespace(t *testing.T) {
	var mu sync.Mutex
	var got []string
	troubled := false
	run, _ := runOn(t, func(w http.ResponseWriter, r *http.Request) {
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
			answer(t, w, http.StatusNotFound, &metav1.Status{})
			return
		case r.URL.Path == "/api/v1/namespaces/large/pods" && query.Get("continue") == "":
			list.Continue = "more"
		}
		answer(t, w, http.StatusOK, list)
	})
	grace := map[string][]string{"gracePeriodSeconds": {"1"}}
	if err := deletePods(context.Background(), run.client, []string{"small", "large", "gone"}, "run1", grace, time.Minute); err != nil {
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
	run, _ := runOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete && r.URL.Path == "/api/v1/namespaces/a/pods" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind":"NamespaceList","apiVersion":"v1"}`))
	})
	if err := clean(context.Background(), run.client, target.Host{Now: time.Now}, Leftover{Run: "run1", Namespaces: []string{"a"}}); err != nil {
		t.Error(err)
	}
	err := deletePods(context.Background(), run.client, []string{"a"}, "run1", nil, time.Minute)
	if !apierrors.IsForbidden(err) {
		t.Errorf("the refusal was told as %v", err)
	}
}

// Deletions are spread out at the rate that is allowed, and the first error
// ends them.
func TestPaceOfDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := inParallel(t.Context(), 11, 4, 100, func(context.Context, int) error { return nil })
		if took := time.Since(began); err != nil || took != 100*time.Millisecond {
			t.Errorf("11 at 100 a second took %v, %v", took, err)
		}
		refused := errors.New("refused")
		err = inParallel(t.Context(), 11, 4, 100, func(_ context.Context, i int) error {
			if i == 5 {
				return refused
			}
			return nil
		})
		if took := time.Since(began); err != refused || took != 150*time.Millisecond {
			t.Errorf("11 at 100 a second, of which the sixth failed, took %v, %v", took, err)
		}
	})
}
