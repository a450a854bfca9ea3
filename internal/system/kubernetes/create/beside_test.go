package create

import (
	"net/http"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// A request for a machine is one request, and its outcome is that of each object that it asks for.
func TestSharedRequests(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, meta.RESTScopeNamespace)
	template, err := kubeburner.CompileTemplate("t", "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {completions: 3, template: {spec: {containers: [{name: c, image: i}]}}}\n", kubeburner.TemplateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	jobs := []*described.Objects{{Resources: []described.Resource{{Name: "job", APIVersion: "batch/v1", Kind: "Job"}}}}
	c := &kubeburner.Config{Jobs: []kubeburner.Job{{Name: "j", Namespace: "ns", Objects: []kubeburner.Object{{Replicas: 1}}}}}
	r, err := Render(prepared.Variant{Config: c, Templates: [][]*kubeburner.Template{{template}}}, prepared.Identity{UUID: "u", Run: "r"}, mapper, nil, jobs, nil)
	if err != nil {
		t.Fatal(err)
	}
	for code, want := range map[int]record.SlotOutcome{201: record.SlotCreated, 422: record.SlotFailed} {
		sender := senderOn(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		sender.Load.AsItIs = true
		slot := sender.Send(t.Context(), PlannedSlot{Slot: kubeburner.Slot{Iteration: 4, Replica: 2, Namespace: "ns"}, maker: r.makers[0][0]})
		if slot.Slot != "ns/j0.o0.d0.i4.r2" || slot.Units != 3 || slot.Shared || slot.Outcome != want {
			t.Errorf("%d: %+v", code, slot)
		}
		if shared := slot.Before; shared == nil || shared.Slot != "Job/ns/a" || shared.Units != 1 || !shared.Shared || shared.Grouped || shared.Outcome != want || shared.Iteration != 4 || shared.Replica != 2 || shared.Before != nil {
			t.Errorf("%d: %+v", code, shared)
		}
		if released := len(sender.holdings.release([]string{slot.Slot}, true)); (want == record.SlotCreated) != (released == 2) {
			t.Errorf("%d: %d slots were filled", code, released)
		}
	}
}
