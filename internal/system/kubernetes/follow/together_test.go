package follow

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
)

// Objects beside pods are on record under the names of their kinds, and those that the run did not ask for are not.
func TestObjectsBesidePods(t *testing.T) {
	t.Parallel()
	volume := func(name, ready string) string {
		return fmt.Sprintf(`{"apiVersion":"cdi.kubevirt.io/v1beta1","kind":"DataVolume","metadata":{"name":%q,"namespace":"ns","uid":%[1]q,"resourceVersion":"1","creationTimestamp":"2026-11-28T08:00:00Z"},"status":{"conditions":[{"type":"Bound","status":"True"},{"type":"Ready","status":%q}]}}`, name, ready)
	}
	var query string
	run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if query = r.URL.Query().Get("labelSelector"); r.URL.Query().Get("watch") != "" {
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		fmt.Fprintf(w, `{"apiVersion":"cdi.kubevirt.io/v1beta1","kind":"DataVolumeList","metadata":{"resourceVersion":"9"},"items":[%s]}`, strings.Join([]string{volume("a", "True"), volume("b", "False"), volume("stranger", "True")}, ","))
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}, meta.RESTScopeNamespace)
	run.Load.Beside = []*described.Objects{described.Measured("dataVolumeLatency")[0].(*described.Objects)}
	o, err := NewObserver(run, &Ageing{Run: run}, time.Now, mapper, silent{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ns/a", "DataVolume/ns/a", "DataVolume/ns/b"} { // the first is a pod
		o.Ask(name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, w := range o.beside[0].watchers() {
		w.Client, w.Clock, w.Emit = run.Client, run.Clock, run.Emit
		if err := w.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if want := "kube-burner.io/runid=run1"; query != want {
		t.Errorf("objects are selected by %q, want %q", query, want)
	}
	if p := o.Followed.Progress(); p.There != 1 || p.Arrived != 1 || p.Left != 2 {
		t.Errorf("%+v", p)
	}
	if w := o.Followed.Waits(); w.Objects["importer"] != 1 {
		t.Errorf("%+v", w)
	}
	if names := o.Followed.Names(); len(names) != 0 || o.Followed.Noun().Many != "objects" {
		t.Errorf("%q are removed one by one", names)
	}
	o.Followed.Account(true)
	o.Namespaces.names["ns"] = true
	for _, about := range []corev1.ObjectReference{{Kind: "DataVolume", Namespace: "ns", Name: "b"}, {Kind: "Pod", Namespace: "ns", Name: "b"}, {Kind: "Pod", Namespace: "ns", Name: Helper + "relay"}} {
		o.event(1, &corev1.Event{InvolvedObject: about, Type: corev1.EventTypeWarning, Reason: "Failed" + about.Kind})
	}
	var got []string
	for _, e := range sink.Events() {
		switch b := e.Body.(type) {
		case *record.TargetEvent:
			got = append(got, b.Object+" "+b.Reason)
		case *record.Object:
			got = append(got, b.Object+" "+b.Milestone)
		case *record.State:
			got = append(got, b.Object+" "+b.Reason)
		}
	}
	slices.Sort(got)
	if want := "DataVolume/ns/a Created, DataVolume/ns/a DVBound, DataVolume/ns/a DVReady, DataVolume/ns/b Created, DataVolume/ns/b DVBound, DataVolume/ns/b FailedDataVolume, DataVolume/ns/b NotDVRunning, ns/b FailedPod"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %q", got, want)
	}
	if o.Followed.Forget(); o.Followed.Progress().Left != 0 {
		t.Error("not forgotten")
	}
}

// Nodes are on record with the server's times and their labels, and nothing waits for them or forgets them.
func TestNodesBesidePods(t *testing.T) {
	t.Parallel()
	run, sink := kubetest.RunOn(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("labelSelector") != "" {
			t.Error("not all nodes are listed")
		}
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"NodeList","metadata":{"resourceVersion":"9"},"items":[{"kind":"Node","metadata":{"name":"n1","uid":"u","labels":{"zone":"a"},"creationTimestamp":"2026-11-28T08:00:00Z"},"status":{"conditions":[{"type":"MemoryPressure","status":"False","lastTransitionTime":"2026-11-28T08:00:00Z"},{"type":"Ready","status":"True","lastTransitionTime":"2026-11-28T08:00:31Z"}]}}]}`)
	})
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Node"}, meta.RESTScopeRoot)
	run.Load.Beside = []*described.Objects{described.Measured("nodeLatency")[0].(*described.Objects)}
	o, err := NewObserver(run, &Ageing{Run: run}, time.Now, mapper, silent{})
	if err != nil {
		t.Fatal(err)
	}
	w := o.beside[0].watchers()[0]
	w.Client, w.Clock, w.Emit = run.Client, run.Clock, run.Emit
	if err := w.Start(t.Context()); err != nil || !w.Beside {
		t.Fatalf("%v, %v", err, w.Beside)
	}
	o.Ask("Node/n2")
	o.Followed.Account(false)
	o.Followed.Forget()
	if p := o.Followed.Progress(); p.There != 0 || p.Left != 0 || o.beside[0].Progress().There != 1 {
		t.Errorf("%+v, and %+v of the nodes", p, o.beside[0].Progress())
	}
	if err := o.Followed.AwaitGone(t.Context()); err != nil {
		t.Error(err)
	}
	got := make(map[string]string)
	for _, e := range sink.Events() {
		if b, is := e.Body.(*record.Object); is {
			got[b.Milestone] = fmt.Sprintf("%s %s %s", b.Object, time.Unix(b.Stamp, 0).UTC().Format(time.TimeOnly), strings.Join(b.Labels, ","))
		}
	}
	if want := map[string]string{"Created": `Node/n1 08:00:00 {"zone":"a"}`, "NodeMemoryPressure": "Node/n1 08:00:00 ", "NodeReady": "Node/n1 08:00:31 "}; !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
