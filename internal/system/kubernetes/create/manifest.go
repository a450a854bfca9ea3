// Package create makes the objects of a load: templates become manifests, and requests create these.
package create

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/netpol"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

var protobufSerializer = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)

type manifest struct {
	path        string // of its collection
	namespace   string // "" for a cluster-scoped object
	name        string
	kind        string
	body        []byte
	contentType string
	units       int // pods that it asks for
	slot        string
	beside      []beside
	grouped     bool   // the pods have names of their own
	latency     string // the annotation of a planted start latency, "" for none
	begins      bool   // says that it is a request, by method, to an object that was set up
	method      string
	answered    func(body []byte) // takes the object after the request, or nil
	contended   bool              // says that a refusal as unprocessable may be one of an overtaken request
}

// beside is an object that a manifest asks for and that is followed beside pods.
type beside struct{ kind, name string }

// slots returns the number of objects in the manifest's own slot, and the further slots that it asks for.
func (m *manifest) slots() (units int, further []string) {
	units = m.units
	for _, b := range m.beside {
		if slot := b.kind + "/" + api.ObjectName(m.namespace, b.name); slot == m.slot {
			units = 1
		} else {
			further = append(further, slot)
		}
	}
	return units, further
}

// shared returns the record of the further slots that a request asks for, after those before it.
func (m *manifest) shared(of record.Slot, begin, now record.Micros, before *record.Slot) *record.Slot {
	_, further := m.slots()
	for _, name := range further {
		before = &record.Slot{
			Slot: name, Component: of.Component, Units: 1, Shared: true, Iteration: of.Iteration, Replica: of.Replica,
			Intended: begin, Sent: begin, Replied: now, Code: of.Code, Outcome: of.Outcome, Error: of.Error, Before: before,
		}
	}
	return before
}

// Kinds of objects that requests for machines concern.
const (
	disk      = "DataVolume"
	machine   = "VirtualMachine"
	migration = "VirtualMachineInstanceMigration"
)

// follows reports whether objects of a kind that the run asks for are followed beside pods.
func (r *Rendering) follows(kind string) bool {
	return r != nil && slices.ContainsFunc(r.beside, func(o *described.Objects) bool { return o.Asked() && o.Resources[0].Kind == kind })
}

// Maker makes the manifests of one entry of a job's objects.
type Maker struct {
	job      *kubeburner.Job
	jobIndex int
	index    int // of the entry
	first    int // index of its first document in the job, for kube-burner's label
	docs     int
	template *kubeburner.Template
	ids      prepared.Identity
	mapper   meta.RESTMapper
	objects  *described.Objects // nil for pods
	stage    int                // of the set-up, -1 for the measured load
	later    bool               // made when an object reaches a milestone
	all      *Rendering
	kinds    []schema.GroupVersionKind // distinct, that it makes
	// elsewhere lists the kinds of objects that lie outside of the job's namespaces.
	elsewhere []schema.GroupVersionKind
	apart     bool       // makes objects in other namespaces alone, which do not churn with the job's
	spaces    bool       // an entry of its job makes objects in the job's namespaces, so that there are some
	waits     []*awaited // awaited besides pods
	chooses   *choice    // the objects that it changes instead of making any, or nil

	units    int
	beside   []beside // in its first iteration
	pods     []corev1.PodSpec
	images   []string // of its pods and machines
	latency  bool     // plants start latencies
	onlyPods bool     // makes nothing else

	fast []fastManifest // nil where each slot must be rendered
}

// fastManifest is a manifest that needs no rendering: a sample with marks in place of the numbers.
type fastManifest struct {
	iteration, replica string   // the marks
	stencil            *stencil // nil for a custom resource, which is JSON
	sample             manifest
	namespace          string // in the document, "" for the slot's
}

func (r *Rendering) newMaker(job *kubeburner.Job, jobIndex, index, first int, template *kubeburner.Template, ids prepared.Identity) (*Maker, error) {
	objects := r.objects
	m := &Maker{
		job: job, jobIndex: jobIndex, index: index, first: first, template: template, ids: ids, mapper: r.made, onlyPods: true,
		objects: objects, stage: -1, all: r,
	}
	if objects != nil {
		m.stage = slices.IndexFunc(objects.SetUp, func(s described.SetUp) bool { return s.Job == job.Name })
		m.later = slices.ContainsFunc(objects.Then, func(t described.Then) bool { return t.Job == job.Name })
	}
	sample := kubeburner.Slot{Object: index, Iteration: 0, Replica: 1, Namespace: job.NamespaceOf(0)}
	docs, err := template.Render(m.vars(sample))
	if err != nil {
		return nil, err
	}
	m.docs = len(docs)
	m.apart = m.docs > 0
	var kinds []schema.GroupVersionKind
	for i, doc := range docs {
		typed, err := m.prepare(doc, i, "0", "1")
		if err != nil {
			return nil, system.Mistakef("", "%w", err)
		}
		u := unstructured.Unstructured{Object: doc}
		gvk, stated := u.GroupVersionKind(), u.GetNamespace() != ""
		if kinds = append(kinds, gvk); !slices.Contains(m.kinds, gvk) {
			m.kinds = append(m.kinds, gvk)
		}
		made, err := m.manifest(doc, typed, i, sample)
		if err != nil {
			return nil, system.Mistakef("", "%w", err)
		}
		// As in kube-burner, a namespace that an object states is not the run's, even if its job has the same.
		own := !stated && made.namespace == sample.Namespace
		if m.spaces = m.spaces || own; !own && !slices.Contains(m.elsewhere, gvk) {
			m.elsewhere = append(m.elsewhere, gvk)
		}
		m.apart = m.apart && made.namespace != "" && !own
		m.units, m.beside = m.units+made.units, append(m.beside, made.beside...)
		m.onlyPods = m.onlyPods && made.kind == "Pod"
		m.latency = m.latency || made.latency != ""
		if spec := PodSpecOf(typed); spec != nil {
			m.pods = append(m.pods, *spec)
		}
		if PodSpecOf(typed) != nil || strings.HasPrefix(gvk.Kind, machine) {
			m.images = append(m.images, kubeburner.ImagesOf(doc)...)
		}
	}
	if m.waits, err = m.awaitedOf(kinds); err != nil {
		return nil, system.Mistakef("", "%w", err)
	}
	m.specialise(len(docs))
	return m, nil
}

// selector returns the labels of all objects that the entry makes.
func (m *Maker) selector() string {
	var indexes []string
	for i := range m.docs {
		indexes = append(indexes, strconv.Itoa(m.first+i))
	}
	return labels.Set{api.LabelRun: m.ids.Run, kubeburner.LabelJob: m.job.Name}.String() + "," + kubeburner.LabelIndex + " in (" + strings.Join(indexes, ",") + ")"
}

func (m *Maker) vars(s kubeburner.Slot) kubeburner.Vars {
	return kubeburner.Vars{
		Iteration: s.Iteration / max(1, m.job.Objects[m.index].RepeatEveryNIterations), Replica: s.Replica, JobName: m.job.Name, UUID: m.ids.UUID, RunID: m.ids.Run,
		Input: m.job.Objects[m.index].InputVars,
	}
}

// specialise prepares fast manifests, if the template allows them.
func (m *Maker) specialise(docs int) {
	if m.job.Objects[m.index].RepeatEveryNIterations > 1 {
		return // its template and its labels have different iterations
	}
	pattern, ok := m.template.Specialise(m.vars(kubeburner.Slot{Replica: 1}))
	if !ok || len(pattern.Docs) != docs {
		return
	}
	var fast []fastManifest
	for i, doc := range pattern.Docs {
		doc = runtime.DeepCopyJSON(doc)
		typed, err := m.prepare(doc, i, pattern.Iteration, pattern.Replica)
		if err != nil {
			return
		}
		f := fastManifest{iteration: pattern.Iteration, replica: pattern.Replica, namespace: (&unstructured.Unstructured{Object: doc}).GetNamespace()}
		if typed != nil {
			if f.stencil, ok = newStencil(typed, pattern.Iteration, pattern.Replica); !ok {
				return
			}
		}
		if f.sample, err = m.manifest(doc, typed, i, kubeburner.Slot{Replica: 1, Namespace: m.job.NamespaceOf(0)}); err != nil {
			return
		}
		fast = append(fast, f)
	}
	m.fast = fast
}

// slotLabel returns the value of LabelSlot on pods that a controller makes.
func (m *Maker) slotLabel(doc int, iteration, replica string) string {
	return fmt.Sprintf("j%d.o%d.d%d.i%s.r%s", m.jobIndex, m.index, doc, iteration, replica)
}

// labels returns the labels of an object of the run by its index in the job.
func (m *Maker) labels(index int, iteration, replica string) map[string]string {
	own := kubeburner.Identity{
		UUID: m.ids.UUID, RunID: m.ids.Run, Job: m.job.Name, Object: index, Group: m.job.Objects[m.index].Group.ID,
		Iteration: iteration, Replica: replica,
	}.Labels()
	own[api.LabelManagedBy], own[api.LabelRun] = api.ManagedBy, m.ids.Run
	return own
}

// prepare labels a document and converts it to its built-in type, if any; numbers may be marks.
func (m *Maker) prepare(doc map[string]any, index int, iteration, replica string) (runtime.Object, error) {
	own := m.labels(m.first+index, iteration, replica)
	pods, perNode := kubeburner.PodsOf(doc)
	u := unstructured.Unstructured{Object: doc}
	if m.objects == nil && (pods > 0 || perNode || u.GetKind() == "VirtualMachine") && u.GetKind() != "Pod" { // a machine may be started later
		own[api.LabelSlot] = m.slotLabel(index, iteration, replica)
	}
	if err := kubeburner.InjectLabels(doc, own); err != nil {
		return nil, m.mistake(index, "metadata", err.Error())
	}
	gvk := u.GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		return nil, m.mistake(index, "", "it has no apiVersion or no kind")
	}
	typed, err := scheme.Scheme.New(gvk)
	if err != nil {
		return nil, nil
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(doc, typed) // the server's dry run reports unknown fields
	if err != nil {
		return nil, m.otherType(doc, index, gvk, err)
	}
	return typed, nil
}

func (m *Maker) manifest(doc map[string]any, typed runtime.Object, index int, s kubeburner.Slot) (manifest, error) {
	u := unstructured.Unstructured{Object: doc}
	gvk := u.GroupVersionKind()
	mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return manifest{}, m.unknownKind(index, &u)
	}
	made := manifest{kind: gvk.Kind, name: u.GetName()}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		made.namespace = cmp.Or(u.GetNamespace(), s.Namespace)
		if made.namespace == "" {
			return manifest{}, fmt.Errorf("%s: %s %q has no namespace, and neither has its job", m.template.Name(), gvk.Kind, made.name)
		}
	}
	if made.name == "" {
		return manifest{}, fmt.Errorf("%s: %s has no metadata.name: generated names cannot be accounted for", m.template.Name(), gvk.Kind)
	}
	for _, part := range []string{made.name, made.namespace} {
		if why := content.IsPathSegmentName(part); len(why) > 0 || strings.ContainsAny(part, "?#") {
			return manifest{}, fmt.Errorf("%s: %s %q: no object can have that name", m.template.Name(), gvk.Kind, part)
		}
	}
	made.path = api.Collection(mapping.Resource, made.namespace)
	if m.objects != nil {
		if follow.IsObject(m.objects, gvk) {
			made.units = 1
		}
	} else {
		pods, perNode := kubeburner.PodsOf(doc)
		if perNode && len(m.all.nodes) == 0 {
			return manifest{}, fmt.Errorf("%s: a DaemonSet's number of pods depends on the nodes, which this axis does not support", m.template.Name())
		} else if perNode {
			pods = m.all.landing(typed)
		}
		made.units, made.grouped = pods, pods > 0 && gvk.Kind != "Pod"
		if gvk.Kind == "Pod" {
			made.latency = u.GetAnnotations()[api.AnnotationStartLatency]
		} else if template, ok, _ := unstructured.NestedStringMap(doc, "spec", "template", "metadata", "annotations"); ok {
			made.latency = template[api.AnnotationStartLatency]
		}
	}
	made.beside = m.besideOf(doc)
	made.slot = m.slotOf(&made, index, s)
	if typed != nil {
		made.contentType = api.ProtobufType
		made.body, err = encode(typed)
	} else {
		made.contentType = "application/json"
		made.body, err = json.Marshal(doc)
	}
	return made, err
}

// besideOf returns the objects that a document asks for, itself or as disks of a machine, and that are followed:
// a machine that does not run at once is asked for by whoever starts it.
func (m *Maker) besideOf(doc map[string]any) (list []beside) {
	u := unstructured.Unstructured{Object: doc}
	kind := u.GetKind()
	if m.all.follows(kind) && m.expects(kind, doc) {
		list = append(list, beside{kind, u.GetName()})
	}
	if kind == machine && m.all.follows(disk) {
		disks, _, _ := unstructured.NestedSlice(doc, "spec", "dataVolumeTemplates")
		for _, d := range disks {
			if template, ok := d.(map[string]any); ok {
				list = append(list, beside{disk, (&unstructured.Unstructured{Object: template}).GetName()})
			}
		}
	}
	return list
}

// expects reports whether an object of a followed kind is one to wait for.
func (m *Maker) expects(kind string, doc map[string]any) bool {
	switch kind {
	case machine:
		pods, _ := kubeburner.PodsOf(doc)
		return pods > 0
	case kubeburner.Services:
		return kubeburner.Answers(doc)
	case kubeburner.Policies:
		_, tried := netpol.SpecOf(doc)
		return tried && m.job.MeasuresPolicies()
	}
	return true
}

// slotOf names a manifest's slot: the object's name, after its kind where it is not counted.
func (m *Maker) slotOf(made *manifest, doc int, s kubeburner.Slot) string {
	switch {
	case made.grouped:
		return made.namespace + "/" + m.slotLabel(doc, strconv.Itoa(s.Iteration), strconv.Itoa(s.Replica))
	case made.kind == "Pod" || m.objects != nil && made.units > 0:
		return api.ObjectName(made.namespace, made.name)
	}
	return made.kind + "/" + api.ObjectName(made.namespace, made.name)
}

func (m *Maker) make(s kubeburner.Slot) ([]manifest, error) {
	if m.fast != nil {
		return m.makeFast(s)
	}
	docs, err := m.template.Render(m.vars(s))
	if err != nil {
		return nil, err
	}
	made := make([]manifest, len(docs))
	for i, doc := range docs {
		typed, err := m.prepare(doc, i, strconv.Itoa(s.Iteration), strconv.Itoa(s.Replica))
		if err != nil {
			return nil, err
		}
		if made[i], err = m.manifest(doc, typed, i, s); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func (m *Maker) makeFast(s kubeburner.Slot) ([]manifest, error) {
	made := make([]manifest, len(m.fast))
	for i := range m.fast {
		f := &m.fast[i]
		out := f.sample
		numbers := strings.NewReplacer(f.iteration, strconv.Itoa(s.Iteration), f.replica, strconv.Itoa(s.Replica))
		out.name = numbers.Replace(out.name)
		out.beside = slices.Clone(out.beside)
		for i := range out.beside {
			out.beside[i].name = numbers.Replace(out.beside[i].name)
		}
		if out.namespace != "" {
			out.namespace = cmp.Or(numbers.Replace(f.namespace), s.Namespace)
		}
		if f.stencil == nil {
			out.body = []byte(numbers.Replace(string(f.sample.body)))
		} else if err := f.stencil.fill(numbers, func(object runtime.Object) (err error) {
			out.body, err = encode(object)
			return err
		}); err != nil {
			return nil, err
		}
		if f.sample.namespace != out.namespace {
			out.path = strings.Replace(f.sample.path, "/namespaces/"+f.sample.namespace+"/", "/namespaces/"+out.namespace+"/", 1)
		}
		out.slot = m.slotOf(&out, i, s)
		made[i] = out
	}
	return made, nil
}

// landing counts the nodes on which a DaemonSet runs a pod.
func (r *Rendering) landing(daemon runtime.Object) (n int) {
	spec := PodSpecOf(daemon)
	if spec == nil {
		return 0
	}
	// Its controller tolerates these taints for it.
	for _, taint := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable} {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists})
	}
	for _, node := range r.nodes {
		if follow.PodFits(node, spec) {
			n++
		}
	}
	return n
}

// PodSpecOf returns the spec of the pods that an object is or makes, or nil.
func PodSpecOf(object runtime.Object) *corev1.PodSpec {
	switch o := object.(type) {
	case nil:
		return nil
	case *corev1.Pod:
		return &o.Spec
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	spec, ok, _ := unstructured.NestedMap(content, "spec", "template", "spec")
	var pod corev1.PodSpec
	if err != nil || !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &pod) != nil {
		return nil
	}
	return &pod
}

var errNoPods = errors.New("the workload makes none of the objects that its axis counts: no level can be reached with it")

// stencil makes an object of a built-in type for any iteration without reading YAML again: it decodes the
// object once, with marks, and fills the numbers into copies.
type stencil struct {
	iteration, replica string // the marks
	copies             sync.Pool
}

// markedCopy is a copy of an object, with its strings that have a mark.
type markedCopy struct {
	object runtime.Object
	holes  []hole
}

type hole struct {
	text string // with its marks
	set  func(text string)
}

// newStencil finds the marks in object; false if one cannot be filled in, so that objects must be rendered.
func newStencil(object runtime.Object, iteration, replica string) (*stencil, bool) {
	s := &stencil{iteration: iteration, replica: replica}
	first := &markedCopy{object: object}
	if !s.find(reflect.ValueOf(object), first) {
		return nil, false
	}
	s.copies.New = func() any {
		c := &markedCopy{object: object.DeepCopyObject()}
		s.find(reflect.ValueOf(c.object), c)
		return c
	}
	// The encoded object shows marks that the search has missed.
	raw, err := encode(object)
	if err != nil {
		return nil, false
	}
	for _, mark := range []string{iteration, replica} {
		n := 0
		for _, h := range first.holes {
			n += strings.Count(h.text, mark)
		}
		if n != bytes.Count(raw, []byte(mark)) {
			return nil, false
		}
	}
	return s, true
}

func (s *stencil) marked(text string) bool {
	return strings.Contains(text, s.iteration) || strings.Contains(text, s.replica)
}

// find collects the holes below v. It reports false where the key of a map has a mark.
func (s *stencil) find(v reflect.Value, c *markedCopy) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || s.find(v.Elem(), c)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !s.find(v.Field(i), c) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !s.find(v.Index(i), c) {
				return false
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			key, value := entry.Key(), entry.Value()
			if key.Kind() != reflect.String {
				continue
			}
			if s.marked(key.String()) {
				return false
			}
			if value.Kind() == reflect.String && s.marked(value.String()) {
				set := func(text string) { v.SetMapIndex(key, reflect.ValueOf(text).Convert(v.Type().Elem())) }
				c.holes = append(c.holes, hole{value.String(), set})
			}
		}
	case reflect.String:
		if s.marked(v.String()) {
			c.holes = append(c.holes, hole{v.String(), v.SetString})
		}
	}
	return true
}

// fill lends the object, with numbers in place of its marks, to use.
func (s *stencil) fill(numbers *strings.Replacer, use func(runtime.Object) error) error {
	c := s.copies.Get().(*markedCopy)
	defer s.copies.Put(c)
	for _, h := range c.holes {
		h.set(numbers.Replace(h.text))
	}
	return use(c.object)
}

func encode(object runtime.Object) ([]byte, error) {
	var b bytes.Buffer
	if err := protobufSerializer.Encode(object, &b); err != nil {
		return nil, fmt.Errorf("encode %T: %w", object, err)
	}
	return b.Bytes(), nil
}

// countOf returns a number with a kind, in the plural where needed.
func countOf(n int, kind string) string {
	if n != 1 {
		many, one := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
		same := 0
		for same < min(len(many.Resource), len(one.Resource)) && many.Resource[same] == one.Resource[same] {
			same++
		}
		kind = kind[:same] + many.Resource[same:]
	}
	return fmt.Sprintf("%d %s", n, kind)
}
