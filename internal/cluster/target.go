package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/engine"
	"plimsoll.dev/plimsoll/internal/kubeburner"
	"plimsoll.dev/plimsoll/internal/observe"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/redact"
)

// Load is a workload made ready for a cluster.
type Load struct {
	Variant
	// Arms are the loads of a comparison by name, of which each level names
	// one; they differ in parameters. Without any, every level is Variant's.
	Arms map[string]Variant
	// Component names the component of an object of a job, "" for none.
	Component func(job, object int) string
	// RunID and UUID name the run; RunID is part of names and labels.
	RunID, UUID string
	// NormalEvents records the cluster's events of type Normal too.
	NormalEvents bool
	// Images follows the images of pods to their nodes, by the events that
	// real kubelets write.
	Images bool
	// CanaryInterval is how often watch lag is measured.
	CanaryInterval time.Duration
	// Deletions bounds deletions per second; 0 is as fast as the bound of
	// requests in flight allows.
	Deletions float64
	// PodLife is how long after it was Ready a pod of an open axis is deleted,
	// and Follow how long after its creation one that never was.
	PodLife, Follow time.Duration
	// Places keeps the component of each pod in place for ComponentOfPod, for
	// whoever reads what pods use where they run.
	Places bool
	// Planted is the start latency planted on a pod by its UID and the value
	// of its annotation; nil where pods are real.
	Planted func(uid, annotation string) time.Duration
	// Patience is how long a request is tried again while the server is out of
	// reach or asks for patience; 0 is a minute.
	Patience time.Duration
	// Abandon leaves everything where it is at the end: the cluster itself is
	// about to go.
	Abandon bool
}

// Variant is one rendering of a workload.
type Variant struct {
	Config    *kubeburner.Config
	Templates [][]*kubeburner.Template // by job and object
}

// rendered is a Variant made ready.
type rendered struct {
	config *kubeburner.Config
	makers [][]*objectMaker
}

// Target is a workload on a cluster, loaded along the pods-per-node axis.
type Target struct {
	client  *client
	cluster *Cluster
	load    Load
	sink    record.Sink
	clock   *record.Clock
	step    func() int
	fail    func(error)

	rendered // of the present arm
	arms     map[string]rendered
	nodes    *nodeSet
	others   map[string]int // pods that are not ours, per eligible node, at the last Raise
	canary   *canary

	// watching ends with the watches: when the target is closed, or with the
	// reason for which one of them cannot go on.
	watching context.Context
	stop     context.CancelCauseFunc
	working  sync.WaitGroup
	watchers []*watcher
	allowed  atomic.Bool // an object was created: the user has the right to

	mu      sync.Mutex // of the tracker
	tracker *observe.Tracker
	onNode  map[string]int    // ours, by node
	arrived int               // that ever were Ready since the target was last empty
	parts   map[string]string // components of pods in place by UID
	ageing  ageing

	realness   record.Realness // of the nodes
	iterations int             // of the last job, in place
	units      int             // pods in place
	prepared   bool
	namespaces *namespaceSet
	spaces     map[string]bool // namespaces that were made since the target was last empty
	// strays are the paths of objects that no namespace of ours takes along.
	straysMu sync.Mutex
	strays   map[string]bool
	levels   map[string]string // names of priority levels by UID
}

// Open begins to observe the cluster and makes what a run needs besides its
// load: a namespace of its own and a canary.
func (c *Cluster) Open(ctx context.Context, load Load, sink record.Sink, clock *record.Clock, step func() int, fail func(error)) (*Target, error) {
	t := &Target{
		client: c.client, cluster: c, load: load, sink: sink, clock: clock, step: step, fail: fail,
		nodes: newNodeSet(), onNode: make(map[string]int), spaces: make(map[string]bool), strays: make(map[string]bool),
		namespaces: newNamespaceSet(), parts: make(map[string]string),
	}
	t.tracker = observe.NewTracker(t.follow)
	t.nodes.tell = func(now record.Micros, e *record.KubeEvent) { t.emitAt(now, e) }
	ids := identity{uuid: load.UUID, run: load.RunID}
	mapper, err := c.mapper()
	if err != nil {
		return nil, err
	}
	render := func(v Variant) (rendered, error) {
		r := rendered{config: v.Config}
		for j := range v.Config.Jobs {
			job := &v.Config.Jobs[j]
			var makers []*objectMaker
			for o := range job.Objects {
				m, err := newObjectMaker(job, j, o, v.Templates[j][o], ids, mapper)
				if err != nil {
					return r, err
				}
				makers = append(makers, m)
			}
			r.makers = append(r.makers, makers)
		}
		return r, nil
	}
	if t.rendered, err = render(load.Variant); err != nil {
		return nil, err
	}
	t.arms = make(map[string]rendered, len(load.Arms))
	for name, v := range load.Arms {
		if t.arms[name], err = render(v); err != nil {
			return nil, fmt.Errorf("arm %s: %w", name, err)
		}
	}
	t.levels = c.client.priorityLevels(ctx)
	t.watching, t.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	if err := t.observe(ctx); err != nil {
		t.stop(nil)
		t.working.Wait()
		return nil, err
	}
	for _, text := range unknownFields(slices.Concat(t.makers...)) {
		t.emit(&record.Note{Text: "the API knows no such field, and ignores it: " + text})
	}
	return t, nil
}

// observe starts the watches, each before anything is created that it must
// see, and then the canary.
func (t *Target) observe(ctx context.Context) error {
	ours := url.Values{"labelSelector": {LabelRun + "=" + t.load.RunID}}
	events := url.Values{}
	if !t.load.NormalEvents {
		events.Set("fieldSelector", "type=Warning")
	}
	pods := &watcher{name: "pods", path: "/api/v1/pods", query: ours, handler: (*podHandler)(t)}
	t.watchers = []*watcher{
		pods,
		{name: "nodes", path: "/api/v1/nodes", handler: t.nodes},
		{name: "namespaces", path: "/api/v1/namespaces", query: ours, handler: t.namespaces},
		{name: "events", path: "/api/v1/events", query: events, handler: (*eventHandler)(t), fromNow: true},
	}
	if t.load.Images && !t.load.NormalEvents {
		pulled := url.Values{"fieldSelector": {"type=Normal,reason=" + reasonPulled}}
		t.watchers = append(t.watchers, &watcher{name: "events of images", path: "/api/v1/events", query: pulled, handler: (*pulledHandler)(t), fromNow: true})
	}
	for _, w := range t.watchers {
		w.client, w.clock = t.client, t.clock
		w.fault = func(*record.Fault) {}
		if w == pods {
			// A gap in the news of pods can lose objects; the other resources
			// only explain and guard.
			w.fault = func(f *record.Fault) { t.emit(f) }
		}
		if err := w.start(ctx); err != nil {
			return err
		}
		t.working.Go(func() {
			if err := w.run(t.watching); err != nil {
				t.stop(err)
				t.fail(err)
			}
		})
	}
	t.canary = newCanary(t)
	if err := t.canary.start(ctx); err != nil {
		return err
	}
	t.working.Go(func() { t.canary.run(t.watching) })
	return nil
}

func (t *Target) emit(body record.Body) { t.emitAt(t.clock.Now(), body) }

func (t *Target) emitAt(at record.Micros, body record.Body) {
	t.sink.Append(record.Event{T: at, Step: t.step(), Body: body})
}

// follow puts news of pods on record. It is called with mu held.
func (t *Target) follow(at record.Micros, body record.Body) {
	switch o := body.(type) {
	case *record.State:
		o.Message = redact.Message(o.Message)
	case *record.Object:
		switch o.Milestone {
		case "Created":
			t.ageing.born(at, o.Object)
		case "Ready":
			t.arrived++
			t.ageing.ready(at, o.Object)
		case "Deleted":
			t.ageing.gone(o.Object)
		}
	}
	t.emitAt(at, body)
}

// podHandler takes in the watch of pods.
type podHandler Target

func (h *podHandler) changed(now record.Micros, kind string, object []byte) error {
	change := observe.Changed
	if kind == eventDeleted {
		change = observe.Gone
	}
	return (*Target)(h).news(now, change, object)
}

func (h *podHandler) listed(now record.Micros, items func(func([]byte) error) error) error {
	t := (*Target)(h)
	t.mu.Lock()
	t.tracker.BeginList()
	t.mu.Unlock()
	err := items(func(object []byte) error { return t.news(now, observe.Listed, object) })
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tracker.EndList(t.clock.Now())
	return nil
}

// news takes in one message about a pod.
func (t *Target) news(now record.Micros, change observe.Change, object []byte) error {
	var p podNews
	if err := decodePod(object, &p); err != nil {
		return err
	}
	if p.isCanary {
		t.canary.seen(now, p.canary)
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if change == observe.Gone {
		delete(t.parts, p.UID)
	} else if t.load.Places {
		t.place(p.UID, p.Slot)
	}
	t.tracker.Apply(now, change, &p.Pod)
	return nil
}

// place notes the component of a pod that a controller has made: its slot
// tells which object asked for it. It is called with mu held.
func (t *Target) place(uid, slot string) {
	if _, known := t.parts[uid]; known || t.load.Component == nil {
		return
	}
	if job, object, ok := objectOfSlot(slot); ok {
		if component := t.load.Component(job, object); component != "" {
			t.parts[uid] = component
		}
	}
}

// ComponentOfPod names the component of a pod in place, "" where it has none
// or is not known. It needs Load.Places, and is safe for concurrent use.
func (t *Target) ComponentOfPod(uid string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.parts[uid]
}

// eventHandler takes in the watch of the cluster's events.
type eventHandler Target

func (h *eventHandler) changed(now record.Micros, kind string, object []byte) error {
	if kind == eventDeleted {
		return nil
	}
	t := (*Target)(h)
	var e corev1.Event
	if err := e.Unmarshal(object); err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	about := e.InvolvedObject
	if about.Namespace != "" && !t.namespaces.has(about.Namespace) {
		return nil
	}
	if about.Namespace == "" && about.Kind != "Node" {
		return nil
	}
	if t.load.Images {
		t.pulled(now, &e)
	}
	count := int(e.Count)
	if e.Series != nil {
		count = int(e.Series.Count)
	}
	source := e.Source.Component
	if source == "" {
		source = e.ReportingController
	}
	name := about.Name
	if about.Namespace != "" {
		name = about.Namespace + "/" + about.Name
	}
	t.emitAt(now, &record.KubeEvent{Object: name, About: about.Kind, Type: e.Type, Reason: e.Reason, Message: redact.Message(e.Message), Source: source, Count: count})
	return nil
}

// reasonPulled is the reason of the event that a kubelet writes when a
// container's image is on its node, fetched or there before.
const reasonPulled = "Pulled"

// pulled takes in an event of a pod of ours, if it is one of an image.
func (t *Target) pulled(now record.Micros, e *corev1.Event) {
	if about := e.InvolvedObject; about.Kind == "Pod" && e.Reason == reasonPulled {
		stamp := int64(0)
		if !e.LastTimestamp.IsZero() {
			stamp = e.LastTimestamp.Unix()
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.tracker.Pulled(now, about.Namespace+"/"+about.Name, string(about.UID), about.FieldPath, stamp)
	}
}

// pulledHandler takes in the watch of events of images alone.
type pulledHandler Target

func (h *pulledHandler) changed(now record.Micros, kind string, object []byte) error {
	if kind == eventDeleted {
		return nil
	}
	var e corev1.Event
	if err := e.Unmarshal(object); err != nil {
		return fmt.Errorf("decode event: %w", err)
	}
	(*Target)(h).pulled(now, &e)
	return nil
}

func (h *pulledHandler) listed(record.Micros, func(func([]byte) error) error) error { return nil }

func (h *eventHandler) listed(record.Micros, func(func([]byte) error) error) error { return nil }

// Describe implements engine.Target.
func (t *Target) Describe(ctx context.Context) (record.Environment, error) {
	env, err := t.cluster.describe(ctx)
	if err != nil {
		return env, err
	}
	nodes, skipped, realness, err := t.places()
	if err != nil {
		return env, err
	}
	for _, n := range nodes {
		env.Cluster.Nodes = append(env.Cluster.Nodes, describeNode(n))
	}
	env.Cluster.Skipped = skipped
	env.Fidelity.Nodes, env.Fidelity.Containers = realness, realness
	if realness == record.Simulated {
		env.Fidelity.Notes = append(env.Fidelity.Notes,
			"nodes and containers are simulated: no kubelet ran and no container started, so start-up times are those that were planted, and the ranges of pod addresses are no ceiling")
	}
	return env, nil
}

// places are the nodes that a level is an average over.
func (t *Target) places() (nodes []*corev1.Node, skipped int, realness record.Realness, err error) {
	var pods []corev1.PodSpec
	plants := false
	for _, makers := range t.makers {
		for _, m := range makers {
			pods = append(pods, m.pods...)
			plants = plants || m.latency
		}
	}
	nodes, skipped = t.nodes.eligible(pods)
	if len(nodes) == 0 {
		return nil, skipped, "", &NoNodesError{skipped}
	}
	if realness, err = oneFidelity(nodes); err != nil {
		return nil, skipped, "", err
	}
	if plants && realness == record.Real {
		return nil, skipped, "", ErrPlantedOnReal
	}
	return nodes, skipped, realness, nil
}

// ErrPlantedOnReal says that a start latency was planted where nothing heeds
// it.
var ErrPlantedOnReal = errors.New("a start latency can be planted on simulated nodes only, and the workload's pods would land on real ones")

// Raise implements engine.Target.
func (t *Target) Raise(ctx context.Context, level engine.Level) (engine.Load, error) {
	if arm, ok := t.arms[level.Arm]; ok {
		if t.units > 0 {
			return engine.Load{}, fmt.Errorf("arm %s begins while another's pods are in place", level.Arm)
		}
		t.rendered = arm
	}
	nodes, _, realness, err := t.places()
	if err != nil {
		return engine.Load{}, err
	}
	t.realness = realness
	notOurs := url.Values{"labelSelector": {LabelRun + "!=" + t.load.RunID}, "fieldSelector": {notTerminal}}
	perNode, pending, err := otherPods(func(each func([]byte) error) error {
		_, err := t.client.list(ctx, "/api/v1/pods", notOurs, each)
		return err
	}, nodes)
	if err != nil {
		return engine.Load{}, fmt.Errorf("list the pods that are there already: %w", t.client.unreachable(err))
	}
	t.others = perNode
	others := pending
	for _, n := range perNode {
		others += n
	}
	want := int(math.Floor(level.Value*float64(len(nodes))+1e-9)) - others
	if level.Span > 0 {
		want = t.units + int(math.Ceil(level.Value*level.Span.Seconds()-1e-9))
	}
	slots, units, err := t.plan(want)
	if err != nil {
		return engine.Load{}, err
	}
	if err := t.makeNamespaces(ctx, slots); err != nil {
		return engine.Load{}, err
	}
	t.units += units
	reached := float64(others+t.units) / float64(len(nodes))
	if level.Span > 0 {
		reached = float64(units) / level.Span.Seconds()
		t.ageing.begin(t)
	}
	return engine.Load{
		Requests: len(slots), Units: units,
		Reached: reached,
		Spread:  t.spread(),
		Send:    func(ctx context.Context, i int) record.Slot { return t.send(ctx, slots[i]) },
	}, nil
}

// plannedSlot is one slot of one job.
type plannedSlot struct {
	kubeburner.Slot
	job int
}

// plan lists the slots that raise the pods in place to at most want, by whole
// iterations of the last job. The jobs before it are made once, whole, when
// the target is empty.
func (t *Target) plan(want int) (slots []plannedSlot, units int, err error) {
	last := len(t.config.Jobs) - 1
	take := func(j, from, to int) {
		for s := range t.config.Jobs[j].Slots(from, to) {
			slots = append(slots, plannedSlot{s, j})
			units += t.makers[j][s.Object].units
		}
	}
	if !t.prepared {
		for j := range last {
			take(j, 0, t.config.Jobs[j].JobIterations)
		}
		t.prepared = true
	}
	empty := 0
	for {
		n := 0
		for s := range t.config.Jobs[last].Slots(t.iterations, t.iterations+1) {
			n += t.makers[last][s.Object].units
		}
		if n == 0 {
			// Iterations without pods are made along with the next that has
			// some; a workload that never has any is no use here.
			if empty++; empty > 10_000 {
				return nil, 0, errNoPods
			}
		}
		if t.units+units+n > want {
			return slots, units, nil
		}
		take(last, t.iterations, t.iterations+1)
		t.iterations++
	}
}

// Progress implements engine.Target.
func (t *Target) Progress() engine.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.tracker.Counts()
	return engine.Progress{There: c.Ready, Arrived: t.arrived, Failed: c.Failed, Unschedulable: c.Unschedulable, Moved: c.Moved}
}

// Settle implements engine.Target: once a change made now has been seen, so
// has everything before it on the same watch.
func (t *Target) Settle(ctx context.Context) error { return t.canary.barrier(ctx) }

// Account implements engine.Target.
func (t *Target) Account(ctx context.Context) (engine.Spread, error) {
	spread, failing := t.account()
	t.sampleLogs(ctx, failing)
	return spread, nil
}

func (t *Target) account() (engine.Spread, []observe.Failing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tracker.Unfinished(t.clock.Now())
	clear(t.onNode)
	t.tracker.PerNode(t.onNode)
	var failing []observe.Failing
	if t.realness == record.Real { // what is simulated writes nothing
		failing = t.tracker.Failing(logsPerReason, logsPerStep)
	}
	return t.spread(), failing
}

// spread is how the pods in place lie on the nodes, by what was last counted.
func (t *Target) spread() engine.Spread {
	s := engine.Spread{Places: len(t.others)}
	first := true
	for node, others := range t.others {
		s.Others += others
		n := float64(others + t.onNode[node])
		if first {
			s.Least, s.Most = n, n
			first = false
		}
		s.Least, s.Most = min(s.Least, n), max(s.Most, n)
	}
	return s
}

// Health implements engine.Target.
func (t *Target) Health(context.Context) (map[string]float64, error) {
	latency, err := t.canary.latency()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return map[string]float64{
		"nodesNotReady":       float64(t.nodes.countNotReady()),
		"pending":             float64(t.tracker.Counts().Unschedulable),
		engine.MeasureLatency: latency,
	}, nil
}

// Reset implements engine.Target. Pods that the load made itself are removed
// one by one, and its namespaces, empty again, stay for the next step: removing
// them too would take along thousands of the cluster's events, a load that has
// nothing to do with the one that is measured. Where controllers made the pods
// the namespaces go, and everything in them.
func (t *Target) Reset(ctx context.Context) error {
	t.ageing.end(t)
	if err := t.deletePods(ctx); err != nil {
		return err
	}
	if err := t.deleteStrays(ctx); err != nil {
		return err
	}
	if !t.onlyPods() {
		if err := t.deleteNamespaces(ctx); err != nil {
			return err
		}
	}
	if err := t.canary.barrier(ctx); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tracker.Forget()
	clear(t.onNode)
	t.iterations, t.units, t.prepared, t.arrived = 0, 0, false, 0
	return nil
}

// deleteNamespaces deletes the load's namespaces and waits until they are gone.
func (t *Target) deleteNamespaces(ctx context.Context) error {
	names := slices.Sorted(maps.Keys(t.spaces))
	err := t.inParallel(ctx, len(names), namespaceWorkers, 0, func(ctx context.Context, i int) error {
		return t.deleteNamespace(ctx, names[i])
	})
	if err != nil {
		return err
	}
	if err := t.namespaces.awaitGone(ctx, t.spaces); err != nil {
		return err
	}
	clear(t.spaces)
	return nil
}

// removeAll removes everything that the run made.
func (t *Target) removeAll(ctx context.Context) error {
	t.ageing.end(t)
	if err := t.deletePods(ctx); err != nil {
		return err
	}
	if err := t.deleteStrays(ctx); err != nil {
		return err
	}
	if err := t.deleteNamespaces(ctx); err != nil {
		return err
	}
	return t.canary.remove(ctx)
}

// onlyPods reports whether the load makes pods and nothing else.
func (t *Target) onlyPods() bool {
	for _, makers := range t.makers {
		if slices.ContainsFunc(makers, func(m *objectMaker) bool { return !m.onlyPods }) {
			return false
		}
	}
	return true
}

// removalWorkers is how many deletions are under way at once.
const removalWorkers = 8

// deletePods deletes the pods of the load one by one, at the rate that is
// allowed, and waits until the watch has told of all their ends. Where the load
// makes other objects too, controllers would make pods again: all of it is then
// left to the end of the namespaces.
func (t *Target) deletePods(ctx context.Context) error {
	if !t.onlyPods() {
		return nil
	}
	t.mu.Lock()
	names := t.tracker.Names()
	t.mu.Unlock()
	grace := t.grace()
	err := t.inParallel(ctx, len(names), removalWorkers, t.load.Deletions, func(ctx context.Context, i int) error {
		namespace, name, _ := strings.Cut(names[i], "/")
		path := "/api/v1/namespaces/" + namespace + "/pods/" + name
		if err := t.delete(ctx, path, grace); err != nil {
			return fmt.Errorf("delete pod %s: %w", names[i], err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for {
		t.mu.Lock()
		left := t.tracker.Followed()
		t.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d pods are still there: %w", left, context.Cause(ctx))
		}
	}
}

// grace is what deletions of pods say of the time that they have.
func (t *Target) grace() url.Values {
	if t.realness != record.Real {
		return nil
	}
	// Without a grace period the API forgets a pod at once, and its node is
	// still stopping it when the next step begins.
	return url.Values{"gracePeriodSeconds": {"1"}}
}

func (t *Target) deleteStrays(ctx context.Context) error {
	t.straysMu.Lock()
	paths := slices.Sorted(maps.Keys(t.strays))
	t.straysMu.Unlock()
	for _, path := range paths {
		if err := t.delete(ctx, path, nil); err != nil {
			return fmt.Errorf("delete %s: %w", path, err)
		}
		t.straysMu.Lock()
		delete(t.strays, path)
		t.straysMu.Unlock()
	}
	return nil
}

// delete deletes one object, through the server's passing troubles. An object
// that is not there is deleted.
func (t *Target) delete(ctx context.Context, path string, query url.Values) error {
	var buf bytes.Buffer
	return t.persist(ctx, func(ctx context.Context) (reply, error) {
		return t.client.do(ctx, http.MethodDelete, path, query, "", nil, &buf)
	}, http.StatusNotFound)
}

// persist makes a request until it succeeds, fails for good or the patience
// is over. Codes of acceptable are as good as success.
func (t *Target) persist(ctx context.Context, request func(context.Context) (reply, error), acceptable ...int) error {
	ctx, cancel := context.WithTimeout(ctx, t.patience())
	defer cancel()
	pause := firstPause
	for {
		r, err := request(ctx)
		switch {
		case err == nil && (r.code < 400 || slices.Contains(acceptable, r.code)):
			return nil
		case err == nil && !r.transient():
			return r.error()
		case err == nil:
			err = r.error()
			pause = max(pause, r.retryAfter)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

func (t *Target) patience() time.Duration {
	return cmp.Or(t.load.Patience, time.Minute)
}

// inParallel calls work for 0 <= i < n from several goroutines, at most rate
// times a second (0 is no bound), and returns the first error.
func (t *Target) inParallel(ctx context.Context, n, workers int, rate float64, work func(context.Context, int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	begin := t.clock.Now()
	var wg sync.WaitGroup
	for range min(workers, n) {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n || ctx.Err() != nil {
					return
				}
				if rate > 0 {
					due := begin + record.Micros(float64(i)/rate*1e6)
					select {
					case <-time.After((due - t.clock.Now()).Duration()):
					case <-ctx.Done():
						return
					}
				}
				if err := work(ctx, i); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// Close removes everything that the run made and stops observing. Done ends
// when the user wants no more waiting: what is left is then asked to go, and
// its end is not awaited.
func (t *Target) Close(done context.Context) error {
	var err error
	if !t.load.Abandon {
		ctx, cancel := context.WithTimeout(done, removalBound)
		defer cancel()
		// Without the watches nobody tells of the end of anything.
		ctx, blind := context.WithCancelCause(ctx)
		defer context.AfterFunc(t.watching, func() { blind(context.Cause(t.watching)) })()
		if err = t.removeAll(ctx); err != nil {
			err = errors.Join(err, t.dismiss())
		}
	}
	t.stop(nil)
	t.working.Wait()
	t.client.close()
	return err
}

// dismiss asks for the removal of everything, and awaits none of it.
func (t *Target) dismiss() error {
	ctx, cancel := context.WithTimeout(context.Background(), dismissBound)
	defer cancel()
	err := t.deleteStrays(ctx)
	for name := range t.spaces {
		err = errors.Join(err, t.deleteNamespace(ctx, name))
	}
	return errors.Join(err, t.delete(ctx, "/api/v1/namespaces/"+t.canary.namespace, nil))
}

// dismissBound is how long the asking may take.
const dismissBound = 10 * time.Second

// removalBound is how long a run's end waits for its objects to be gone.
const removalBound = 15 * time.Minute
