package create

import (
	"context"
	"io"
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
)

// The watchers of a job are open watches, each of its replicas, until the next job begins.
func TestExtraWatches(t *testing.T) {
	opened, closed := make(chan string, 8), make(chan string, 8)
	sender := senderOn(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("labelSelector") != "a=b" {
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if !r.URL.Query().Has("watch") {
			io.WriteString(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
			return
		}
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		opened <- r.URL.Path
		<-r.Context().Done()
		closed <- r.URL.Path
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	r := &Rendering{made: &Made{RESTMapper: mapper}}
	job := &kubeburner.Job{Name: "j", Watchers: []kubeburner.Watcher{{Kind: "Pod", APIVersion: "v1", LabelSelector: map[string]string{"a": "b"}, Replicas: 3}}}
	list, err := r.extraWatches(job)
	if err != nil {
		t.Fatal(err)
	}
	r.watches = [][]extraWatch{list, nil}
	x := &Script{sender: sender, pacing: &Pacing{Rendering: r}}
	for range 2 { // the parts of one job
		if err := x.openWatches(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if path := <-opened; path != "/api/v1/pods" {
			t.Errorf("watched %s", path)
		}
	}
	if err := x.openWatches(context.Background(), 1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		<-closed
	}
	if len(opened) > 0 {
		t.Errorf("%d watches more were opened", len(opened))
	}
	job.Watchers[0].Kind = "Widget"
	if _, err := r.extraWatches(job); err == nil {
		t.Error("an unknown kind is watched")
	}
}
