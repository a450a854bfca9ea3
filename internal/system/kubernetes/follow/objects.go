package follow

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// ObjectSet follows the objects that a workload describes, with a watch for each of their resources.
type ObjectSet struct {
	*following
	spec      *described.Objects
	names     map[string]bool // the objects that the run asked for beside its pods; nil follows all with its label
	described *observe.Described
	collect   []string // the path of each resource
	within    []string // the same, in the run's namespace
	ours      func(namespace string) bool
	Caller    Caller
	probing   context.Context // ends with the watches
	heard     string          // why the last server could not be read
	// Ask makes a further request to an object, and returns its refusal. asking bounds the calls at once.
	Ask    func(ctx context.Context, name string, then *described.Then) error
	asking chan struct{}
	spells map[[2]string]*record.ComponentHistogram // holds the durations of what held, by owner and name
}

// Caller calls the servers whose answers are milestones.
type Caller interface {
	Begin(params workload.Params) // sets the parameters of the following calls
	// Call calls a probe's server until it answers, its object is gone, or ctx ends, and reports to the set.
	Call(ctx context.Context, to *ObjectSet, p observe.Probe)
	Times(p *described.Probe) []string // names the durations that calls of a probe report
	Await(ctx context.Context)         // waits for readings under way at the end of a step
	// Figures returns the servers' figures of so many objects, Forget drops them, while nobody Looks.
	Figures(objects int) []record.Body
	Forget()
}

// Look calls f with the objects' state, locked.
func (s *ObjectSet) Look(f func(d *observe.Described)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.described)
}

// Behind reports whether a probe's milestone comes after the one that counts.
func (s *ObjectSet) Behind(p observe.Probe) bool { return p.Milestone > s.described.Course().There }

// Heard notes why a server could not be read. Like Spell and GaveUp it is called within Look.
func (s *ObjectSet) Heard(why string) { s.heard = why }

// Spell notes for how long something held for objects.
func (s *ObjectSet) Spell(what string, d time.Duration) { s.spell(s.noun.Many, what, d) }

// GaveUp notes that a server will never answer: its object will not be ready, unless it was before.
func (s *ObjectSet) GaveUp(now record.Micros, p observe.Probe, reason, message string) {
	s.heard = reason + ": " + message
	if p.Milestone >= 0 && !s.Behind(p) {
		s.described.Refused(now, p.Object, reason, message)
	} else {
		s.EmitAt(now, &record.Note{Text: p.Server + ": " + s.heard})
	}
}

// Account implements Followed, and records the servers' figures.
func (s *ObjectSet) Account(failing bool) (map[string]int, []observe.Failing) {
	s.mu.Lock()
	s.described.Unanswered(s.Clock.Now())
	for _, body := range s.Caller.Figures(s.tracker.Followed()) {
		s.Emit(body)
	}
	s.mu.Unlock()
	return s.following.Account(failing)
}

// Says sets the function that takes the objects' texts as they change.
func (s *ObjectSet) Says(tell func(kind, name, text string)) { s.described.Says = tell }

// Path returns the path of an object by its name, "namespace/name".
func (s *ObjectSet) Path(name string) string {
	namespace, name, inOne := strings.Cut(name, "/")
	if !inOne {
		return s.collect[0] + "/" + namespace
	}
	at := strings.LastIndexByte(s.collect[0], '/')
	return s.collect[0][:at] + "/namespaces/" + namespace + s.collect[0][at:] + "/" + name
}

// newObjectSet makes the follower of described objects, for a cluster that knows their resources.
func newObjectSet(common *prepared.Run, spec *described.Objects, ageing *Ageing, namespaces *NamespaceSet, mapper meta.RESTMapper, caller Caller) (*ObjectSet, error) {
	s := &ObjectSet{
		spec:      spec,
		following: &following{Run: common, ageing: ageing, noun: spec.Noun, there: spec.There}, ours: namespaces.Has, asking: make(chan struct{}, 32),
		Caller: caller, spells: make(map[[2]string]*record.ComponentHistogram),
	}
	s.described = observe.NewDescribed(spec, observe.Created, s.follow)
	s.described.Ask = func(name string, then *described.Then) { go s.further(name, then) }
	s.described.Held = func(what *described.Held, name string, since, until record.Micros) {
		whose := spec.Noun.Many
		if what.Each {
			whose = name
		}
		s.spell(whose, what.Name, (until - since).Duration())
	}
	s.tracker = s.described.Tracker
	s.owners = []string{observe.APIServer}
	for _, m := range spec.Milestones {
		s.owners = append(s.owners, m.By)
	}
	for _, r := range spec.Resources {
		group, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil {
			return nil, system.Mistakef("", "resource %s: %w", r.Name, err)
		}
		mapping, err := mapper.RESTMapping(group.WithKind(r.Kind).GroupKind(), group.Version)
		if err != nil {
			return nil, system.Mistakef("load a cluster that has it, or give a private lab what it needs", "the cluster knows no %s in %s, which the workload needs to follow %s", r.Kind, r.APIVersion, spec.Noun.Many)
		}
		s.collect = append(s.collect, api.Collection(mapping.Resource, ""))
		within := ""
		if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
			within = common.Load.Namespace
		}
		s.within = append(s.within, api.Collection(mapping.Resource, within))
	}
	return s, nil
}

// beside makes the set follow objects that the run asks for, or that are there before it, beside its pods.
func (s *ObjectSet) beside() {
	s.of = s.spec.Named() + "/"
	if s.spec.Before {
		return
	}
	s.names = make(map[string]bool)
	s.described.Asked = func(name string) bool { return s.names[name] }
}

// ask notes an object that the run is about to ask for, by its name on record.
func (s *ObjectSet) ask(object string) {
	if name, ours := strings.CutPrefix(object, s.spec.Resources[0].Kind+"/"); ours && s.names != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.names[name] = true; s.spec.Asked() {
			s.Expect(len(s.names))
		}
	}
}

func (s *ObjectSet) watchers() (list []*api.Watcher) {
	for i, r := range s.spec.Resources {
		w := &api.Watcher{Name: s.collect[i][strings.LastIndexByte(s.collect[i], '/')+1:], Path: s.within[i], Handler: &resourceNews{s, i}, Beside: s.spec.Before, Encoding: api.JSONEncoding(), Care: api.Care{Doubt: s.doubt}}
		switch {
		case s.names != nil: // others may make them with kube-burner's labels alone
			w.Query = url.Values{"labelSelector": {kubeburner.LabelRunID + "=" + s.Load.RunID}}
		case !r.Unlabelled:
			w.Query = ours(s.Load.RunID)
		}
		list = append(list, w)
	}
	return list
}

// resourceNews handles the watch of one resource.
type resourceNews struct {
	set      *ObjectSet
	resource int
}

func (n *resourceNews) Changed(now record.Micros, kind string, object []byte) error {
	s := n.set
	s.mu.Lock()
	defer s.mu.Unlock()
	probes, err := s.described.Apply(now, changeOf(kind), n.resource, object, s.ours)
	for _, p := range probes {
		go s.Caller.Call(s.probing, s, p)
	}
	return err
}

func (n *resourceNews) Missing(now record.Micros, gone []api.Identity) {
	uids := make(map[string]bool, len(gone))
	for _, o := range gone {
		uids[o.UID] = true
	}
	n.set.mu.Lock()
	defer n.set.mu.Unlock()
	n.set.described.Missing(now, n.resource, uids)
}

// further makes a further request to an object.
func (s *ObjectSet) further(name string, then *described.Then) {
	s.asking <- struct{}{}
	err := s.Ask(s.probing, name, then)
	<-s.asking
	if err != nil && s.probing.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.described.Refused(s.Clock.Now(), name, "RefusedAfter"+then.After, err.Error())
	}
}

// spellBounds returns the bounds of the histograms of spells, in seconds.
func spellBounds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000}
}

// spell notes for how long something held; 0 only declares it. The caller holds mu.
func (s *ObjectSet) spell(whose, what string, d time.Duration) {
	h := s.spells[[2]string{whose, what}]
	if h == nil {
		h = &record.ComponentHistogram{Source: whose, Name: what, Bounds: spellBounds(), Counts: make([]uint64, len(spellBounds()))}
		s.spells[[2]string{whose, what}] = h
	}
	if d <= 0 {
		return
	}
	h.Count, h.Sum = h.Count+1, h.Sum+d.Seconds()
	for i, bound := range h.Bounds {
		if d.Seconds() <= bound {
			h.Counts[i]++
		}
	}
}

// TellSpells records the spells so far.
func (s *ObjectSet) TellSpells() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.spec.Held {
		if h := &s.spec.Held[i]; !h.Each {
			s.spell(s.noun.Many, h.Name, 0)
		}
	}
	for _, m := range s.spec.Milestones {
		if m.Probe == nil {
			continue
		}
		for _, name := range s.Caller.Times(m.Probe) {
			s.Spell(name, 0)
		}
	}
	for _, h := range s.spells {
		told := *h
		told.Counts = slices.Clone(h.Counts)
		s.Emit(&told)
	}
}

// Begin notes that the measured work of an object begins.
func (s *ObjectSet) Begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.described.Begin(s.Clock.Now(), name)
}

// Live notes the node of an object.
func (s *ObjectSet) Live(name, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.described.Live(name, node)
}

// Forget implements Followed.
func (s *ObjectSet) Forget() {
	s.following.Forget()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.described.Forget()
	clear(s.names)
	s.Caller.Forget()
}

// SetUp counts the ready objects of a stage.
func (s *ObjectSet) SetUp(stage int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.described.SetUp(stage)
}

// AwaitSetUp waits until n objects of a stage are ready, for at most patience after the last one.
func (s *ObjectSet) AwaitSetUp(ctx context.Context, stage, n int, patience time.Duration, show func(done int)) error {
	last, since := -1, s.Clock.Now()
	for {
		done := s.SetUp(stage)
		if done != last {
			last, since = done, s.Clock.Now()
			show(done)
		}
		switch {
		case done >= n:
			return nil
		case (s.Clock.Now() - since).Duration() > patience:
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.heard != "" {
				return fmt.Errorf("%d of %d were set up, and none further for %v; %s", done, n, patience, s.heard)
			}
			return fmt.Errorf("%d of %d were set up, and none further for %v", done, n, patience)
		}
		if !api.Sleep(ctx, 20*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
}

// IsObject reports whether the followed objects are of this kind.
func IsObject(o *described.Objects, gvk schema.GroupVersionKind) bool {
	return o != nil && gvk.GroupVersion().String() == o.Resources[0].APIVersion && gvk.Kind == o.Resources[0].Kind
}
