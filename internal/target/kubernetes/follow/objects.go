package follow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/target/local/fio"
)

// ObjectSet follows the objects that a workload describes. Each of their
// resources has a watch.
type ObjectSet struct {
	*following
	described *observe.Described
	collect   []string // the path of each resource
	ours      func(namespace string) bool
	*calls
	done    map[string]map[string]fio.Report // IO that objects have told of, by its phase and their names
	heard   string                           // why the last server did not let itself be read
	reading atomic.Int32                     // figures that are read behind what counts
	// Ask asks something further of an object, and is what was refused; at most
	// as many at once as asking has room for.
	Ask    func(ctx context.Context, name string, then *described.Then) error
	asking chan struct{}
	// spells are the times for which something held, by whose they are and what.
	spells map[[2]string]*record.ComponentHistogram
}

// Says hands the texts that objects tell to a function as they change.
func (s *ObjectSet) Says(tell func(kind, name, text string)) { s.described.Says = tell }

// CallThrough makes calls go through the API server from now on, or straight.
func (s *ObjectSet) CallThrough(api bool) { s.forward.Store(api) }

// Path is that of an object by its name, "namespace/name".
func (s *ObjectSet) Path(name string) string {
	namespace, name, inOne := strings.Cut(name, "/")
	if !inOne {
		return s.collect[0] + "/" + namespace
	}
	at := strings.LastIndexByte(s.collect[0], '/')
	return s.collect[0][:at] + "/namespaces/" + namespace + s.collect[0][at:] + "/" + name
}

// newObjectSet makes what follows a workload's objects, for a cluster that knows
// their resources.
func newObjectSet(common *prepared.Run, ageing *Ageing, namespaces *NamespaceSet, mapper meta.RESTMapper) (*ObjectSet, error) {
	spec := common.Load.Objects
	s := &ObjectSet{
		following: &following{Run: common, ageing: ageing, noun: spec.Noun, there: spec.There}, ours: namespaces.Has, asking: make(chan struct{}, askingAtOnce),
		calls: newCalls(common), spells: make(map[[2]string]*record.ComponentHistogram),
	}
	s.described = observe.NewDescribed(spec, observe.Created, s.follow)
	s.done = make(map[string]map[string]fio.Report)
	s.described.Ask = func(name string, then *described.Then) { go s.further(name, then) }
	s.described.Held = func(what *described.Held, name string, since, until record.Micros) {
		whose := spec.Noun.Many
		if what.Each {
			whose = name
		}
		s.spell(whose, what.Name, (until - since).Duration())
	}
	s.tracker = s.described.Tracker
	for _, r := range spec.Resources {
		group, err := schema.ParseGroupVersion(r.APIVersion)
		if err != nil {
			return nil, target.Mistakef("", "resource %s: %w", r.Name, err)
		}
		mapping, err := mapper.RESTMapping(group.WithKind(r.Kind).GroupKind(), group.Version)
		if err != nil {
			return nil, target.Mistakef("load a cluster that has it, or give a private lab what it needs", "the cluster knows no %s in %s, which tells of %s", r.Kind, r.APIVersion, spec.Noun.Many)
		}
		s.collect = append(s.collect, api.Collection(mapping.Resource, ""))
	}
	return s, nil
}

// watchers are the watches of the resources.
func (s *ObjectSet) watchers() (list []*api.Watcher) {
	for i, r := range s.Load.Objects.Resources {
		w := &api.Watcher{Name: s.collect[i][strings.LastIndexByte(s.collect[i], '/')+1:], Path: s.collect[i], Handler: &resourceNews{s, i}, Encoding: api.JSONEncoding()}
		if !r.Unlabelled {
			w.Query = ours(s.Load.RunID)
		}
		list = append(list, w)
	}
	return list
}

// resourceNews takes in the watch of one resource.
type resourceNews struct {
	set      *ObjectSet
	resource int
}

func (n *resourceNews) Changed(now record.Micros, kind string, object []byte) error {
	change := observe.Changed
	if kind == api.EventDeleted {
		change = observe.Gone
	}
	return n.apply(now, change, object)
}

func (n *resourceNews) Listed(now record.Micros, items func(func([]byte) error) error) error {
	s := n.set
	s.mu.Lock()
	s.described.BeginResource(n.resource)
	s.mu.Unlock()
	if err := items(func(object []byte) error { return n.apply(now, observe.Listed, object) }); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.described.EndResource(s.clock.Now(), n.resource)
	return nil
}

func (n *resourceNews) apply(now record.Micros, change observe.Change, object []byte) error {
	s := n.set
	s.mu.Lock()
	defer s.mu.Unlock()
	probes, err := s.described.Apply(now, change, n.resource, object, s.ours)
	for _, p := range probes {
		go s.probe(p)
	}
	return err
}

// askingAtOnce is of how many objects something further is asked at once.
const askingAtOnce = 32

// further asks something further of an object.
func (s *ObjectSet) further(name string, then *described.Then) {
	s.asking <- struct{}{}
	err := s.Ask(s.probing, name, then)
	<-s.asking
	if err != nil && s.probing.Err() == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.described.Refused(s.clock.Now(), name, "RefusedAfter"+then.After, err.Error())
	}
}

// spellBounds are those of the histograms of times for which something held, in
// seconds.
func spellBounds() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000}
}

// spell notes how long something held: 0 that it may. It is called with mu held.
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

// TellSpells puts on record how long what was described held so far.
func (s *ObjectSet) TellSpells() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.Load.Objects.Held {
		if h := &s.Load.Objects.Held[i]; !h.Each {
			s.spell(s.noun.Many, h.Name, 0)
		}
	}
	for _, m := range s.Load.Objects.Milestones {
		for _, name := range told(m.Probe) {
			s.spell(s.noun.Many, name, 0)
		}
	}
	for _, h := range s.spells {
		told := *h
		told.Counts = slices.Clone(h.Counts)
		s.Emit(&told)
	}
}

// Begin says that an object that was set up is asked for what is measured.
func (s *ObjectSet) Begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.described.Begin(s.clock.Now(), name)
}

// Live says on which node an object is.
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
	clear(s.done)
}

// AwaitSetUp waits until n things of a stage are set up, as long as patience
// lasts since the last one was.
func (s *ObjectSet) AwaitSetUp(ctx context.Context, stage, n int, patience time.Duration, show func(done int)) error {
	last, since := -1, s.clock.Now()
	for {
		s.mu.Lock()
		done := s.described.SetUp(stage)
		s.mu.Unlock()
		if done != last {
			last, since = done, s.clock.Now()
			show(done)
		}
		switch {
		case done >= n:
			return nil
		case (s.clock.Now() - since).Duration() > patience:
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

// settle returns once all that the resources' news had told of at the call was
// seen: whatever has changed has a version, and versions grow.
func (s *ObjectSet) settle(ctx context.Context, watchers []*api.Watcher) error {
	for _, w := range watchers {
		var newest uint64
		_, err := w.Client.ListIn(ctx, w.Encoding, w.Path, w.Query, func(object []byte) error {
			newest = max(newest, api.VersionNumber(w.Encoding.Version(object)))
			return nil
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", w.Name, w.Client.Unreachable(err))
		}
		for w.Seen.Load() < newest {
			if !api.Sleep(ctx, 10*time.Millisecond) {
				return fmt.Errorf("the watch of %s is silent: %w", w.Name, context.Cause(ctx))
			}
		}
	}
	return nil
}

// IsObject reports whether a kind is that of the objects that are followed.
func IsObject(o *described.Objects, gvk schema.GroupVersionKind) bool {
	return o != nil && gvk.GroupVersion().String() == o.Resources[0].APIVersion && gvk.Kind == o.Resources[0].Kind
}
