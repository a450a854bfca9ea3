package create

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// makerFor makes the only entry of a job.
func makerFor(t *testing.T, job *kubeburner.Job, template *kubeburner.Template, mapper meta.RESTMapper, objects *described.Objects) (*Maker, error) {
	t.Helper()
	v := prepared.Variant{Config: &kubeburner.Config{Jobs: []kubeburner.Job{*job}}, Templates: [][]*kubeburner.Template{{template}}}
	r, err := Render(v, prepared.Identity{UUID: "u", Run: "r"}, mapper, objects, nil, nil)
	if err != nil {
		return nil, err
	}
	return r.makers[0][0], nil
}

// What is made from a sample with marks is what rendering makes.
func TestManifestsWithoutRendering(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}, {Version: "v1", Kind: "Pod"}} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	objects := &described.Objects{Resources: []described.Resource{{Name: "machine", APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine"}}}
	const machine = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata:\n  name: vm-{{ .Iteration }}-{{ .Replica }}\n  labels: {of: \"{{ .Iteration }}\"}\n"
	for name, text := range map[string]string{
		"in the slot's namespace": machine + "spec: {runStrategy: Halted, cores: 2, \"text\": \"<{{ .Replica }}>\"}\n",
		"in one of its own":       machine + "  namespace: own-{{ .Iteration }}\n",
		"of a built-in type":      "apiVersion: v1\nkind: Pod\nmetadata: {name: \"p-{{ .Iteration }}-{{ .Replica }}\"}\nspec: {containers: [{name: c, image: i}]}\n",
		"several in one document": machine + "---\n" + machine,
	} {
		template, err := kubeburner.CompileTemplate("t", text, kubeburner.TemplateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		job := &kubeburner.Job{Name: "j", Namespace: "ns", NamespacedIterations: true, Objects: []kubeburner.Object{{Replicas: 2}}}
		m, err := makerFor(t, job, template, mapper, objects)
		if err != nil {
			t.Fatal(err)
		}
		if m.fast == nil {
			t.Errorf("%s: each is rendered", name)
			continue
		}
		for _, slot := range []kubeburner.Slot{{Iteration: 0, Replica: 1, Namespace: "ns-0"}, {Iteration: 12, Replica: 2, Namespace: "ns-12"}} {
			fast, err := m.make(slot)
			if err != nil {
				t.Fatal(err)
			}
			slow := *m
			slow.fast = nil
			want, err := slow.make(slot)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(fast, want) {
				t.Errorf("%s: made\n%s\nnot\n%s", name, fast[0].body, want[0].body)
			}
		}
	}
}

// Names become parts of paths of the API: none leads elsewhere there.
func TestNamesLeadNowhere(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	job := &kubeburner.Job{Name: "j", Namespace: "ns", Objects: []kubeburner.Object{{Replicas: 1}}}
	for name, refused := range map[string]bool{"a-{{.Replica}}": false, "../../nodes/a": true, "..": true, ".": true, "a/eviction": true, "a%2f..": true, "a?watch=1": true, "a#b": true} {
		for _, text := range []string{"name: '" + name + "'", "name: a, namespace: '" + name + "'"} {
			template, err := kubeburner.CompileTemplate("t", "apiVersion: v1\nkind: Pod\nmetadata: {"+text+"}\nspec: {containers: [{name: c, image: i}]}\n", kubeburner.TemplateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			m, err := makerFor(t, job, template, mapper, nil)
			if err == nil {
				_, err = m.make(kubeburner.Slot{Replica: 1, Namespace: "ns"})
			}
			if (err != nil) != refused || refused && !strings.Contains(err.Error(), "no object can have that name") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// disks follows DataVolumes beside pods.
var disks = []*described.Objects{{Resources: []described.Resource{{Name: "disk", APIVersion: "cdi.kubevirt.io/v1beta1", Kind: "DataVolume"}}}}

// A threshold over nothing would hold: kube-burner lets it pass.
func TestThresholdsOfNothing(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	of := []kubeburner.Measurement{{Name: "dataVolumeLatency", Thresholds: []kubeburner.Threshold{{ConditionType: "Ready", Metric: "P99", Threshold: 5e9}}}}
	bound := []kubeburner.Measurement{{Name: "podLatency", Thresholds: []kubeburner.Threshold{{ConditionType: "Ready", Metric: "P99", Threshold: 5e9}}}}
	for _, tt := range []struct {
		why, kind    string
		replicas     int
		measurements []kubeburner.Measurement
		refused      bool
	}{
		{"pods", "Pod", 1, bound, false},
		{"none of them", "Pod", 0, bound, true},
		{"what is no pod", "ConfigMap", 1, bound, true},
		{"what is no pod, and no threshold", "ConfigMap", 1, nil, false},
		{"pods, and a threshold of disks", "Pod", 1, of, true},
	} {
		template, err := kubeburner.CompileTemplate("t", "apiVersion: v1\nkind: "+tt.kind+"\nmetadata: {name: a}\n", kubeburner.TemplateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := &kubeburner.Config{Global: kubeburner.Global{Measurements: tt.measurements}, Jobs: []kubeburner.Job{{Name: "j", Namespace: "ns", Objects: []kubeburner.Object{{Replicas: tt.replicas}}}}}
		_, err = Render(prepared.Variant{Config: c, Templates: [][]*kubeburner.Template{{template}}}, prepared.Identity{UUID: "u", Run: "r"}, mapper, nil, disks, nil)
		if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "Ready p99 <= 5s") {
			t.Errorf("%s: %v", tt.why, err)
		}
	}
}

// A manifest asks for a slot of each followed object: of the pods that it makes, of itself, and of its disks.
func TestSlotsBesidePods(t *testing.T) {
	t.Parallel()
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gvk := range []schema.GroupVersionKind{{Group: "kubevirt.io", Version: "v1", Kind: "VirtualMachine"}, {Group: "cdi.kubevirt.io", Version: "v1beta1", Kind: "DataVolume"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Service"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}} {
		mapper.Add(gvk, meta.RESTScopeNamespace)
	}
	services := []*described.Objects{described.Measured("serviceLatency")[0].(*described.Objects)}
	policies := []*described.Objects{described.Measured("netpolLatency")[0].(*described.Objects)}
	const policy = "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: 'p-{{.Iteration}}'}\nspec: {podSelector: {}, ingress: [%]}\n"
	machines := &described.Objects{Resources: []described.Resource{{Name: "machine", APIVersion: "kubevirt.io/v1", Kind: "VirtualMachine"}}}
	const machine = "apiVersion: kubevirt.io/v1\nkind: VirtualMachine\nmetadata: {name: 'vm-{{.Iteration}}'}\nspec: {runStrategy: %, dataVolumeTemplates: [{metadata: {name: 'd-{{.Iteration}}'}}]}\n"
	for _, tt := range []struct {
		why, text string
		beside    []*described.Objects
		slot      string
		units     int
		further   []string
	}{
		{"a disk", "apiVersion: cdi.kubevirt.io/v1beta1\nkind: DataVolume\nmetadata: {name: 'd-{{.Iteration}}'}\n", disks, "DataVolume/ns/d-7", 1, nil},
		{"a machine that runs", strings.Replace(machine, "%", "Always", 1), append(disks, machines), "ns/j0.o0.d0.i7.r1", 1, []string{"VirtualMachine/ns/vm-7", "DataVolume/ns/d-7"}},
		{"one that does not, and its disk", strings.Replace(machine, "%", "Halted", 1), append(disks, machines), "VirtualMachine/ns/vm-7", 0, []string{"DataVolume/ns/d-7"}},
		{"one that is not followed", strings.Replace(machine, "%", "Halted", 1), nil, "VirtualMachine/ns/vm-7", 0, nil},
		{"a service", "apiVersion: v1\nkind: Service\nmetadata: {name: 's-{{.Iteration}}'}\nspec: {selector: {a: b}, ports: [{port: 80}]}\n", services, "Service/ns/s-7", 1, nil},
		{"one without an address", "apiVersion: v1\nkind: Service\nmetadata: {name: 's-{{.Iteration}}'}\nspec: {clusterIP: None, selector: {a: b}, ports: [{port: 80}]}\n", services, "Service/ns/s-7", 0, nil},
		{"a policy that pods can try", strings.Replace(policy, "%", "{from: [{podSelector: {}}]}", 1), policies, "NetworkPolicy/ns/p-7", 1, nil},
		{"one that allows nothing", strings.Replace(policy, "%", "", 1), policies, "NetworkPolicy/ns/p-7", 0, nil},
		{"what nobody follows", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'd-{{.Iteration}}'}\n", disks, "ConfigMap/ns/d-7", 0, nil},
	} {
		template, err := kubeburner.CompileTemplate("t", tt.text, kubeburner.TemplateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := &kubeburner.Config{Jobs: []kubeburner.Job{{Name: "j", Namespace: "ns", Objects: []kubeburner.Object{{Replicas: 1}}}}}
		r, err := Render(prepared.Variant{Config: c, Templates: [][]*kubeburner.Template{{template}}}, prepared.Identity{UUID: "u", Run: "r"}, mapper, nil, tt.beside, nil)
		if err != nil {
			t.Fatal(err)
		}
		made, err := r.makers[0][0].make(kubeburner.Slot{Iteration: 7, Replica: 1, Namespace: "ns"})
		if err != nil {
			t.Fatal(err)
		}
		units, further := made[0].slots()
		if made[0].slot != tt.slot || units != tt.units || !slices.Equal(further, tt.further) {
			t.Errorf("%s: %s of %d, %q", tt.why, made[0].slot, units, further)
		}
		if makes := r.Makes("DataVolume"); makes != strings.Contains(tt.slot+strings.Join(tt.further, " "), "DataVolume") {
			t.Errorf("%s: it makes disks: %v", tt.why, makes)
		}
	}
}

// Slots of one request are released together, by a label, by kind and name, and with their namespace.
func TestReleaseOfSharedSlots(t *testing.T) {
	t.Parallel()
	h := NewHoldings(nil, nil)
	fill := func() {
		h.Forget()
		h.fill("ns/j0.o0", 2, []string{"VirtualMachine/ns/a", "DataVolume/ns/a"})
		h.fill("DataVolume/ns/b", 1, nil)
		h.fill("DataVolume/other/b", 1, nil)
	}
	for _, tt := range []struct {
		why, kind string
		of        target
		deleted   bool
		want      string
		released  int
		then      string // what its deletion releases
	}{
		{"a machine that is deleted, by its label", "VirtualMachine", target{slot: "ns/j0.o0", namespace: "ns", name: "a"}, true, "DataVolume/ns/a VirtualMachine/ns/a ns/j0.o0", 4, ""},
		{"one that is stopped keeps its disk", "VirtualMachine", target{slot: "ns/j0.o0", namespace: "ns", name: "a"}, false, "VirtualMachine/ns/a ns/j0.o0", 3, "DataVolume/ns/a"},
		{"a disk, by its kind and name", "DataVolume", target{slot: "ns/b", namespace: "ns", name: "b"}, true, "DataVolume/ns/b", 1, ""},
		{"an object that is not followed", "ConfigMap", target{slot: "ns/b", namespace: "ns", name: "b"}, true, "", 0, ""},
	} {
		fill()
		for _, want := range []string{tt.want, tt.then} {
			got := h.release(h.slotsOf(tt.kind, tt.of), want == tt.then || tt.deleted)
			slices.Sort(got)
			if strings.Join(got, " ") != want || want == tt.want && h.Released() != tt.released {
				t.Errorf("%s: released %q, %d", tt.why, got, h.Released())
			}
		}
	}
	fill()
	got := h.releaseSpace("ns")
	if slices.Sort(got); strings.Join(got, " ") != "DataVolume/ns/a DataVolume/ns/b VirtualMachine/ns/a ns/j0.o0" || h.Released() != 5 || !h.filled("DataVolume/other/b") {
		t.Errorf("released %q with the namespace, %d", got, h.Released())
	}
	h.fill("ns/j0.o0", 1, nil)
	h.release([]string{"ns/j0.o0"}, false)
	if h.fill("ns/j0.o0", 1, []string{"VirtualMachine/ns/a"}); !h.filled("ns/j0.o0") {
		t.Error("a machine that was stopped and started does not count")
	}
}

func TestCountOf(t *testing.T) {
	for _, c := range []struct {
		n    int
		kind string
		want string
	}{{1, "Pod", "1 Pod"}, {7, "Pod", "7 Pods"}, {2, "NetworkPolicy", "2 NetworkPolicies"}, {0, "Ingress", "0 Ingresses"}, {2, "VirtualMachine", "2 VirtualMachines"}} {
		if got := countOf(c.n, c.kind); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}

// The label kube-burner.io/index counts documents, without entries that make nothing; the iteration of a
// template counts how often its object was made before, that of the label counts all iterations.
func TestLabelsCountAsThere(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'a-{{.Iteration}}'}\n"
	var templates []*kubeburner.Template
	for _, text := range []string{text + "---\n" + text, text, text} {
		template, err := kubeburner.CompileTemplate("t", text, kubeburner.TemplateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		templates = append(templates, template)
	}
	c := &kubeburner.Config{Jobs: []kubeburner.Job{{Name: "j", Namespace: "ns", Objects: []kubeburner.Object{{Replicas: 1}, {Replicas: 0}, {Replicas: 1, RepeatEveryNIterations: 2}}}}}
	r, err := Render(prepared.Variant{Config: c, Templates: [][]*kubeburner.Template{templates}}, prepared.Identity{UUID: "u", Run: "r"}, mapper, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for s := range c.Jobs[0].Slots(4, 5) {
		made, err := r.makers[0][s.Object].make(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range made {
			var object runtime.Unknown
			if _, _, err := protobufSerializer.Decode(m.body, nil, &object); err != nil {
				t.Fatal(err)
			}
			var config corev1.ConfigMap
			if err := config.Unmarshal(object.Raw); err != nil {
				t.Fatal(err)
			}
			got = append(got, config.Name+" "+config.Labels[kubeburner.LabelIndex]+" "+config.Labels[kubeburner.LabelIteration])
		}
	}
	if want := []string{"a-4 0 4", "a-4 1 4", "a-2 2 4"}; !slices.Equal(got, want) {
		t.Errorf("made %q, want %q", got, want)
	}
	for i, want := range []string{"0,1", "", "2"} {
		if selector := r.makers[0][i].selector(); want != "" && !strings.HasSuffix(selector, kubeburner.LabelIndex+" in ("+want+")") {
			t.Errorf("entry %d is selected by %s", i, selector)
		}
	}
}

// Namespaces are for a job that makes an object in them, as in kube-burner.
func TestJobsThatNeedNamespaces(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, meta.RESTScopeRoot)
	texts := map[string]string{
		"role": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: '{{ .JobName }}-{{ .Iteration }}-{{ .Replica }}'}\n",
		"own":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .JobName }}-{{ .Iteration }}-{{ .Replica }}', namespace: other}\n",
		"same": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .JobName }}-{{ .Iteration }}-{{ .Replica }}', namespace: ns-0}\n",
		"in":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .JobName }}-{{ .Iteration }}-{{ .Replica }}'}\n",
	}
	for objects, want := range map[string]bool{"role": false, "own": false, "same": false, "in": true, "role own": false, "role in": true} {
		job := kubeburner.Job{Name: "j", Namespace: "ns", NamespacedIterations: true}
		v := prepared.Variant{Templates: [][]*kubeburner.Template{nil}}
		for _, name := range strings.Fields(objects) {
			template, err := kubeburner.CompileTemplate(name, texts[name], kubeburner.TemplateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			job.Objects = append(job.Objects, kubeburner.Object{Replicas: 1})
			v.Templates[0] = append(v.Templates[0], template)
		}
		v.Config = &kubeburner.Config{Jobs: []kubeburner.Job{job}}
		r, err := Render(v, prepared.Identity{UUID: "u", Run: "r"}, mapper, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range r.makers[0] {
			if m.spaces != want || m.apart != slices.Contains([]string{"own", "same"}, m.template.Name()) {
				t.Errorf("%s: %s needs namespaces: %v, apart from them: %v", objects, m.template.Name(), m.spaces, m.apart)
			}
		}
	}
}
