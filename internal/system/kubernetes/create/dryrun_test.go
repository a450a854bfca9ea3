package create

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

func TestRefusalsNameTheirPath(t *testing.T) {
	for _, tt := range []struct{ why, says, want string }{
		{"strict fields, each by itself", `strict decoding error: unknown field "spec.selecter", duplicate field "spec.ports[0].port"`, `spec.selecter: unknown field "spec.selecter"; spec.ports[0].port: duplicate field "spec.ports[0].port"`},
		{"a value of another type", "json: cannot unmarshal string into Go struct field Service.spec.ports of type int32", "spec.ports: json: cannot unmarshal string into Go struct field Service.spec.ports of type int32"},
		{"anything else is about all of it", `services "x" already exists`, `: services "x" already exists`},
	} {
		var got []string
		for _, r := range refusals(errors.New(tt.says)) {
			got = append(got, r.path+": "+r.says)
		}
		if text := strings.Join(got, "; "); text != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.why, text, tt.want)
		}
	}
	invalid := &apierrors.StatusError{ErrStatus: metav1.Status{Message: "all", Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Field: "spec.a", Message: "one"}, {Field: "spec.b", Message: "two"}}}}}
	if got := fmt.Sprint(refusals(invalid)); got != "[{spec.a one} {spec.b two}]" {
		t.Errorf("causes: %s", got)
	}
	if mistaken(api.Reply{Code: 400}, errors.New("admission webhook x does not support dry run")) || !mistaken(api.Reply{Code: 400}, errors.New("strict")) || !mistaken(api.Reply{Code: 403}, errors.New("quota")) ||
		mistaken(api.Reply{Code: 403, Body: []byte(`User "u" cannot create resource "pods"`)}, errors.New("no right")) {
		t.Error("what is a mistake")
	}
}

// Only a template of a pod is asked for as one: that of a machine, which runs in a pod
// too, is something else.
func TestPodsOfControllers(t *testing.T) {
	of := func(apiVersion, kind string, spec map[string]any) *unstructured.Unstructured {
		return podOf(unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x"}, "spec": spec}})
	}
	template := map[string]any{"spec": map[string]any{}}
	if pod := of("apps/v1", "Deployment", map[string]any{"template": template}); pod == nil || pod.GetKind() != "Pod" || pod.GetName() != "x-pod" {
		t.Errorf("of a deployment: %v", pod)
	}
	for why, pod := range map[string]*unstructured.Unstructured{
		"a machine":          of("kubevirt.io/v1", "VirtualMachine", map[string]any{"runStrategy": "Always", "template": template}),
		"no replicas":        of("apps/v1", "Deployment", map[string]any{"replicas": int64(0), "template": template}),
		"something that has": of("v1", "Service", map[string]any{"template": template}),
	} {
		if pod != nil {
			t.Errorf("%s: %v", why, pod)
		}
	}
}

// A run as it stands counts pods, and what it measures.
func TestWhatCounts(t *testing.T) {
	t.Parallel()
	c := &kubeburner.Config{Global: kubeburner.Global{Measurements: []kubeburner.Measurement{{Name: "serviceLatency"}}}}
	for kind, want := range map[string]bool{"Pod": true, "Service": true, "Secret": false} {
		if got := counts(c, map[string]any{"apiVersion": "v1", "kind": kind}); got != want {
			t.Errorf("%s: %v", kind, got)
		}
	}
}

// A name that comes again in its namespace is a mistake, however the entries
// are repeated; the same in another namespace is none.
func TestRepeatedNames(t *testing.T) {
	const cm = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\n"
	for _, tt := range []struct {
		why   string
		job   kubeburner.Job
		names []string
		want  string
		whole bool
	}{
		{"names by iteration and replica", kubeburner.Job{Objects: []kubeburner.Object{{Replicas: 3}}}, []string{"a-{{.Iteration}}-{{.Replica}}"}, "", false},
		{"the same in each iteration", kubeburner.Job{Objects: []kubeburner.Object{{Replicas: 1}}}, []string{"a"}, "in iteration 0, replica 1 and in iteration 1, replica 1", false},
		{"the same for each replica", kubeburner.Job{Objects: []kubeburner.Object{{Replicas: 2}}}, []string{"a-{{.Iteration}}"}, "in iteration 0, replica 1 and in iteration 0, replica 2", false},
		{"each iteration has a namespace", kubeburner.Job{Namespace: "n", NamespacedIterations: true, IterationsPerNamespace: 1, Objects: []kubeburner.Object{{Replicas: 1}}}, []string{"a"}, "", false},
		{"two iterations share one", kubeburner.Job{Namespace: "n", NamespacedIterations: true, IterationsPerNamespace: 2, Objects: []kubeburner.Object{{Replicas: 1}}}, []string{"a"}, "twice", false},
		{"it is made once", kubeburner.Job{Objects: []kubeburner.Object{{Replicas: 1, RunOnce: true}}}, []string{"a"}, "", false},
		{"it is made every fifth iteration", kubeburner.Job{Objects: []kubeburner.Object{{Replicas: 1, RepeatEveryNIterations: 5}}}, []string{"a"}, "in iteration 5", false},
		{"one iteration that a run does not exceed", kubeburner.Job{JobIterations: 1, Objects: []kubeburner.Object{{Replicas: 1}}}, []string{"a"}, "", true},
		{"one iteration, which an axis raises", kubeburner.Job{JobIterations: 1, Objects: []kubeburner.Object{{Replicas: 1}}}, []string{"a"}, "in iteration 1", false},
		{"as it stands, what nothing waits for may come again", kubeburner.Job{Objects: []kubeburner.Object{{Replicas: 1}}}, []string{"a"}, "", true},
		{"two templates", kubeburner.Job{Objects: []kubeburner.Object{{Replicas: 1}, {Replicas: 1}}}, []string{"a-{{.Iteration}}", "a-{{.Iteration}}"}, "of t0.yml", false},
	} {
		tt.job.JobIterations = cmp.Or(tt.job.JobIterations, 100)
		v := prepared.Variant{Config: &kubeburner.Config{Jobs: []kubeburner.Job{tt.job}}, Templates: [][]*kubeburner.Template{nil}}
		for i, name := range tt.names {
			template, err := kubeburner.CompileTemplate(fmt.Sprintf("t%d.yml", i), fmt.Sprintf(cm, name), kubeburner.TemplateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			v.Templates[0] = append(v.Templates[0], template)
		}
		err := RepeatedNames(v, prepared.Identity{UUID: "u", Run: "r"}, tt.whole)
		if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), ".yml:3: metadata.name: ConfigMap ")) {
			t.Errorf("%s: %v, want %q", tt.why, err, tt.want)
		}
	}
}
