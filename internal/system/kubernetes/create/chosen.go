package create

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// choice selects the run's own objects by kind and labels, for an entry that creates nothing.
type choice struct {
	kind     string
	resource *meta.RESTMapping
	selector string
}

// newChooser makes the Maker of an entry that asks something of chosen objects.
func newChooser(job *kubeburner.Job, jobIndex, index int, template *kubeburner.Template, ids prepared.Identity, mapper meta.RESTMapper) (*Maker, error) {
	m := &Maker{job: job, jobIndex: jobIndex, index: index, template: template, ids: ids, mapper: mapper, onlyPods: true, stage: -1}
	o := &job.Objects[index]
	gv, err := schema.ParseGroupVersion(o.APIVersion)
	if err != nil {
		return nil, system.Mistakef("", "job %s: %w", job.Name, err)
	}
	mapping, err := mapper.RESTMapping(gv.WithKind(o.Kind).GroupKind(), gv.Version)
	if err != nil {
		return nil, system.Mistakef("", "job %s: the cluster knows no kind %s in %s", job.Name, o.Kind, o.APIVersion)
	}
	m.chooses = &choice{o.Kind, mapping, labels.Set(o.LabelSelector).String()}
	if job.JobType != kubeburner.Read {
		// Disks of the run's machines have this label of it alone.
		m.chooses.selector += "," + kubeburner.LabelRunID + "=" + ids.Run
	}
	if job.JobType != kubeburner.Delete {
		if m.waits, err = m.awaitedOf([]schema.GroupVersionKind{mapping.GroupVersionKind}); err != nil {
			return nil, system.Mistakef("", "%w", err)
		}
	}
	return m, nil
}

func (c *choice) path(run *prepared.Run) string {
	namespace := ""
	if c.resource.Scope.Name() == meta.RESTScopeNameNamespace {
		namespace = run.Load.Namespace
	}
	return api.Collection(c.resource.Resource, namespace)
}

// ofOthers refuses entries that would change objects that existed before the run.
func ofOthers(ctx context.Context, run *prepared.Run, m *Maker) error {
	if m.chooses == nil || m.job.JobType == kubeburner.Read {
		return nil
	}
	first, n := "", 0
	query := url.Values{"labelSelector": {labels.Set(m.job.Objects[m.index].LabelSelector).String()}}
	_, err := run.Client.ListIn(ctx, api.JSONEncoding(), m.chooses.path(run), query, func(object []byte) error {
		if n++; first == "" {
			first = api.ObjectName(gjson.GetBytes(object, "metadata.namespace").Str, gjson.GetBytes(object, "metadata.name").Str)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for what job %s works on: %w", m.job.Name, run.Client.Unreachable(err))
	}
	if n == 0 {
		return nil
	}
	path := strictyaml.Index(strictyaml.Index("jobs", m.jobIndex)+".objects", m.index) + ".labelSelector"
	return m.all.config.Refuse(path, "a job changes what the run itself has made: select by labels that only that has, such as kube-burner.io/job",
		"%s of others matched before anything was made, such as %s %s", record.Noun{One: "object", Many: "objects"}.Count(n), m.chooses.kind, first)
}

// chosen holds the objects of a choice; a watch removes those that are gone.
type chosen struct {
	mu      sync.Mutex
	there   map[string]target // by UID
	leaving map[string]bool   // by UID, the deleted ones
	patched map[string]int64  // by UID, the version of the changed object
	before  map[string]string // by UID, since when a restarted machine was ready; "" once it was seen not ready
}

type target struct {
	uid, namespace, name string
	slot                 string // "" where it fills none, or another object makes it
	iteration, replica   int    // of its job, -1 for none
	version              int64
	rolled               bool   // all its pods come from its present template, or it has no pods
	ready                string // since when it has the condition Ready; "" without it
}

// Changed implements api.Handler.
func (c *chosen) Changed(_ record.Micros, kind string, object []byte) error {
	parts := gjson.GetManyBytes(object, "metadata.uid", "metadata.namespace", "metadata.name", "metadata.ownerReferences.0.uid", "kind")
	t := target{uid: parts[0].Str, namespace: parts[1].Str, name: parts[2].Str}
	if label := gjson.GetBytes(object, "metadata.labels."+strings.ReplaceAll(api.LabelSlot, ".", `\.`)); !parts[3].Exists() && label.Exists() {
		t.slot = t.namespace + "/" + label.Str
	} else if !parts[3].Exists() {
		t.slot = api.ObjectName(t.namespace, t.name)
	}
	number := func(label string) int {
		if value := gjson.GetBytes(object, "metadata.labels."+strings.ReplaceAll(label, ".", `\.`)); value.Exists() {
			return int(value.Int())
		}
		return -1
	}
	t.iteration, t.replica = number(kubeburner.LabelIteration), number(kubeburner.LabelReplica)
	t.version, t.rolled = gjson.GetBytes(object, "metadata.resourceVersion").Int(), rolledOut(object)
	if ready := gjson.GetBytes(object, `status.conditions.#(type=="Ready")`); ready.Get("status").Str == "True" {
		t.ready = cmp.Or(ready.Get("lastTransitionTime").Str, "ready")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, restarts := c.before[t.uid]; restarts && t.ready == "" {
		c.before[t.uid] = ""
	}
	if kind == api.EventDeleted {
		delete(c.there, t.uid)
		return nil
	}
	c.there[t.uid] = t
	return nil
}

// rolledOut reports whether a controller has replaced and readied the pods of an object by its present template;
// true for an object without such pods.
func rolledOut(object []byte) bool {
	get := func(path string) int64 { return gjson.GetBytes(object, path).Int() }
	if !gjson.GetBytes(object, "spec.template").Exists() || !gjson.GetBytes(object, "status.observedGeneration").Exists() || gjson.GetBytes(object, "spec.updateStrategy.type").Str == "OnDelete" {
		return true
	}
	if get("status.observedGeneration") < get("metadata.generation") {
		return false
	}
	if gjson.GetBytes(object, "status.desiredNumberScheduled").Exists() { // a DaemonSet
		return get("status.updatedNumberScheduled") == get("status.desiredNumberScheduled") && get("status.numberReady") == get("status.desiredNumberScheduled")
	}
	wanted := int64(1)
	if replicas := gjson.GetBytes(object, "spec.replicas"); replicas.Exists() {
		wanted = replicas.Int()
	}
	updates := gjson.GetBytes(object, "spec.strategy").Exists() || gjson.GetBytes(object, "spec.updateStrategy").Exists()
	return (!updates || get("status.updatedReplicas") == wanted) && get("status.replicas") == wanted && get("status.readyReplicas") == wanted
}

// rolling counts the changed objects that still have pods of an older template, and the restarted machines that
// are not ready again. It returns the name of one.
func (c *chosen) rolling() (n int, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid, version := range c.patched {
		if t, there := c.there[uid]; there && (t.version < version || !t.rolled) {
			n, name = n+1, api.ObjectName(t.namespace, t.name)
		}
	}
	for uid, before := range c.before {
		if t, there := c.there[uid]; there && (t.ready == "" || t.ready == before) {
			n, name = n+1, api.ObjectName(t.namespace, t.name)
		}
	}
	return n, name
}

// Missing implements api.Handler.
func (c *chosen) Missing(_ record.Micros, gone []api.Identity) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range gone {
		delete(c.there, o.UID)
	}
}

func (c *chosen) list() []target {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.there), func(a, b target) int {
		return strings.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name)
	})
}

// left counts the deleted objects that still exist, with the name of one.
func (c *chosen) left() (n int, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for uid := range c.leaving {
		if t, there := c.there[uid]; there {
			n, name = n+1, api.ObjectName(t.namespace, t.name)
		}
	}
	return n, name
}

// asked notes that an object was deleted.
func (c *chosen) asked(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving[uid] = true
}

// unasked notes that an object will not be restarted.
func (c *chosen) unasked(uid string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.before, uid)
}

// changed notes the version that an object has after a request.
func (c *chosen) changed(uid string, body []byte) {
	object, err := api.MetadataOf(body)
	if err != nil {
		return
	}
	version, _ := strconv.ParseInt(object.ResourceVersion, 10, 64) // unknown: whatever is there
	c.mu.Lock()
	defer c.mu.Unlock()
	c.patched[uid] = max(c.patched[uid], version)
}

// asking is a request to a chosen object.
type asking struct {
	manifest
	of    *chosen
	about target
}

// askings returns the requests of a part to the objects that it has chosen.
func (p *part) askings(ctx context.Context, s *Sender) (slots []PlannedSlot, err error) {
	m, from := p.chooses, p.chosen
	for i := p.from; i < p.to; i++ {
		for k, t := range from.list() {
			if p.only != nil && !p.only(t) {
				continue
			}
			a := &asking{of: from, about: t}
			verb := cmp.Or(m.job.Objects[m.index].KubeVirtOp, string(m.job.JobType))
			a.begins, a.kind, a.namespace, a.name = true, verb+" "+m.chooses.kind, t.namespace, t.name
			a.slot = fmt.Sprintf("%s/%s of %s.%d", a.kind, api.ObjectName(t.namespace, t.name), m.job.Name, i)
			a.path = api.Collection(m.chooses.resource.Resource, t.namespace) + "/" + t.name
			switch m.job.JobType {
			case kubeburner.Delete:
				a.method, a.contentType, a.body = http.MethodDelete, "application/json", []byte(`{"propagationPolicy":"Background","preconditions":{"uid":"`+t.uid+`"}}`)
			case kubeburner.Read:
				a.method = http.MethodGet
			case kubeburner.Patch:
				a.method = http.MethodPatch
				if a.contentType, a.body, err = m.patch(i); err != nil {
					return nil, err
				}
				a.answered = func(body []byte) { from.changed(t.uid, body) }
			case kubeburner.KubeVirt:
				if err := m.call(ctx, s, a, i); err != nil {
					return nil, err
				}
			}
			slots = append(slots, PlannedSlot{Slot: kubeburner.Slot{Object: m.index, Iteration: i, Replica: k + 1, Namespace: t.namespace}, maker: m, asking: a})
		}
	}
	return slots, nil
}

// patch renders the patch of an iteration, in which the replica is 0 for all objects.
func (m *Maker) patch(iteration int) (contentType string, body []byte, err error) {
	doc, err := m.template.RenderOne(m.vars(kubeburner.Slot{Iteration: iteration}))
	if err != nil {
		return "", nil, err
	}
	if body, err = json.Marshal(doc); err != nil {
		return "", nil, fmt.Errorf("%s: %w", m.template.Name(), err)
	}
	kinds := map[string]types.PatchType{"json": types.JSONPatchType, "merge": types.MergePatchType, "strategic-merge": types.StrategicMergePatchType, "apply": types.ApplyYAMLPatchType}
	kind := m.job.Objects[m.index].PatchType // or a media type, as validated
	return cmp.Or(string(kinds[kind]), kind), body, nil
}

func (s *Sender) ask(ctx context.Context, p PlannedSlot) record.Slot {
	about, o := p.asking.about, &p.maker.job.Objects[p.maker.index]
	deletes := p.maker.job.JobType == kubeburner.Delete
	filled := s.holdings.slotsOf(p.maker.chooses.kind, about)
	if kind := p.maker.chooses.kind; deletes && len(filled) == 0 && p.maker.all.follows(kind) { // its machine makes a disk again
		s.Emit(&record.Release{Slots: []string{kind + "/" + api.ObjectName(about.namespace, about.name)}, Renewed: true})
	}
	if replaces := deletes || p.maker.job.JobType == kubeburner.Patch || o.Replaces(); replaces && len(filled) > 0 {
		s.Emit(&record.Release{Slots: filled, Renewed: true}) // before the first pod is replaced or removed
	}
	if p.asking.units > 0 && s.objects != nil {
		s.objects.Begin(about.slot)
	}
	_, further := p.asking.slots()
	s.watch.Begin(further)
	begin := s.Clock.Now()
	slot := s.create(ctx, &p.asking.manifest, s.componentOf(p))
	slot.Iteration = p.Iteration
	slot.Before = p.asking.shared(slot, begin, s.Clock.Now(), nil)
	switch {
	case slot.Outcome != record.SlotCreated:
		p.asking.of.unasked(about.uid)
		return slot
	case deletes:
		p.asking.of.asked(about.uid)
		if p.maker.chooses.kind == "Namespace" {
			s.holdings.DropSpaces(about.name)
			s.release(s.holdings.releaseSpace(about.name))
			return slot
		}
		s.holdings.DropStray(p.asking.path)
	case o.KubeVirtOp != "stop":
		return slot
	}
	s.release(s.holdings.release(filled, deletes))
	return slot
}

// release records slots that the run has emptied on purpose.
func (s *Sender) release(slots []string) {
	if len(slots) > 0 {
		s.Emit(&record.Release{Slots: slots})
	}
}
