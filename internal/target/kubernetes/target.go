package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
)

// PreparedWorkload is a workload made ready for a cluster.
type PreparedWorkload struct {
	Variant
	// Axis is what is raised: one of those that observe.Declare lists.
	Axis string
	// Objects says what is followed; nil is pods.
	Objects *workload.Objects
	// Progress shows what is waited for before a step begins; nil shows nothing.
	Progress func() (show func(what string), end func())
	// Arms are the loads of a comparison by name, of which each level names
	// one; they differ in parameters. Without any, every level is Variant's.
	Arms map[string]Variant
	// Component names the component of an object of a job, "" for none.
	Component func(job, object int) string
	// Key opens machines that are to be logged in to, nil where none are.
	Key ssh.Signer
	// RunID and UUID name the run; RunID is part of names and labels.
	RunID, UUID string
	// NormalEvents records the cluster's events of type Normal too.
	NormalEvents bool
	// Images follows the images of pods to their nodes, by the events that
	// real kubelets write.
	Images bool
	// CanaryInterval is how often watch lag is measured.
	CanaryInterval time.Duration
	// Deletions bounds deletions per second; 0 is no bound, and pods then go by
	// their namespaces, which takes the right to deletecollection.
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
	// DrainNodes are the nodes that may be drained, nil for any that the workload
	// names.
	DrainNodes []string
	// Abandon leaves everything where it is at the end: the cluster itself is
	// about to go.
	Abandon bool
}

// Variant is one rendering of a workload.
type Variant struct {
	Config    *kubeburner.Config
	Templates [][]*kubeburner.Template // by job and object
	Settings  []workload.Value         // of the cluster
	Forward   bool                     // machines are called through the API server
	DoesIO    bool                     // machines do IO, which is measured in them
}

func (l *PreparedWorkload) patience() time.Duration { return cmp.Or(l.Patience, time.Minute) }

// shared is what the parts of a target have in common.
type shared struct {
	client *client
	load   *PreparedWorkload
	sink   record.Sink
	clock  *record.Clock
	step   func() int
}

func (s *shared) emit(body record.Body) { s.emitAt(s.clock.Now(), body) }

func (s *shared) emitAt(at record.Micros, body record.Body) {
	s.sink.Append(record.Event{T: at, Step: s.step(), Body: body})
}

// Target is a workload on a cluster, loaded along one axis.
type Target struct {
	*shared
	cluster    *Cluster
	arms       map[string]*rendering
	population population
	holdings   *holdings
	sender     *sender
	watch      *observer
	ageing     *ageing
	remover    *remover
	drain      *drain // nil where no node is drained
	settings   *settings

	realness record.Realness // of the nodes, at the last Raise
	others   map[string]int  // pods that are not ours, per eligible node, at the last Raise
	onNode   map[string]int  // ours, per node, when last accounted for
}

// Open begins to observe the cluster and makes what a run needs besides its
// load: a namespace of its own and a canary. The error is a mistake in
// the load, or what the cluster said.
func (c *Cluster) Open(ctx context.Context, load PreparedWorkload, sink record.Sink, clock *record.Clock, step func() int, fail func(error)) (*Target, error) {
	if err := knownAxis(load.Axis, load.Objects); err != nil {
		return nil, err
	}
	mapper, err := c.client.mapper()
	if err != nil {
		return nil, err
	}
	t := &Target{
		shared:  &shared{client: c.client, load: &load, sink: sink, clock: clock, step: step},
		cluster: c, arms: make(map[string]*rendering, len(load.Arms)),
	}
	ids := identity{uuid: load.UUID, run: load.RunID}
	if t.population.rendering, err = render(load.Variant, ids, mapper, load.Objects); err != nil {
		return nil, err
	}
	for name, v := range load.Arms {
		if t.arms[name], err = render(v, ids, mapper, load.Objects); err != nil {
			return nil, fmt.Errorf("arm %s: %w", name, err)
		}
	}
	t.ageing = &ageing{shared: t.shared}
	if t.watch, err = newObserver(t.shared, t.ageing, c.host.Now, mapper); err != nil {
		return nil, err
	}
	t.holdings = newHoldings(t.shared)
	t.sender = newSender(t.shared, t.watch, t.holdings, fail, c.client.priorityLevels(ctx))
	if o := load.Objects; o != nil && o.Begin != nil && o.Begin.Drain != nil {
		t.drain = newDrain(t.shared, o.Begin.Drain, t.watch.namespaces.has, c.host.Log)
		t.sender.evict = t.drain.evict
	}
	t.remover = newRemover(t.shared, t.watch, t.holdings)
	if t.watch.objects != nil {
		t.watch.objects.ask = t.sender.further
		var shown record.Micros // 0 for nothing
		t.watch.objects.says(func(kind, name, text string) {
			now := clock.Now()
			t.emitAt(now, &record.KubeEvent{Object: name, About: kind, Type: corev1.EventTypeNormal, Reason: "Says", Message: text})
			if shown == 0 || (now-shown).Duration() >= saysInterval {
				shown = now
				c.host.Log("%s %s: %s", kind, name, text)
			}
		})
	}
	if err := t.watch.start(ctx, fail); err != nil {
		return nil, err
	}
	err = tryOut(ctx, t.shared, t.watch.own(), t.renderings())
	if err == nil {
		t.settings, err = newSettings(ctx, t.shared, t.watch.own())
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removalBound)
		defer cancel()
		return nil, errors.Join(err, t.Close(ctx))
	}
	for _, text := range t.population.unknownFields() {
		t.emit(&record.Note{Warning: record.WarningFields, Place: text, Text: "the API ignores unknown fields"})
	}
	return t, nil
}

// renderings are those that are loaded: the arms', or that of the workload itself.
func (t *Target) renderings() []*rendering {
	if len(t.arms) == 0 {
		return []*rendering{t.population.rendering}
	}
	return slices.Collect(maps.Values(t.arms))
}

// ComponentOfPod names the component of a pod in place, "" where it has none
// or is not known. It needs Load.Places, and is safe for concurrent use.
func (t *Target) ComponentOfPod(uid string) string { return t.watch.pods.componentOf(uid) }

// Describe implements target.Target.
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
			"nodes and containers are simulated: no kubelet ran and no container started; start-up times are the planted ones, and pod address ranges are no ceiling")
	}
	return env, nil
}

// places are the nodes that a level is an average over.
func (t *Target) places() (nodes []*corev1.Node, skipped int, realness record.Realness, err error) {
	pods, plants := t.population.podSpecs()
	nodes, skipped = t.watch.nodes.eligible(pods)
	if len(nodes) == 0 && t.load.Objects != nil {
		return nil, skipped, record.None, nil
	}
	if len(nodes) == 0 {
		return nil, skipped, "", noNodes(skipped)
	}
	if realness, err = oneFidelity(nodes); err != nil && t.load.Objects == nil {
		return nil, skipped, "", err
	}
	if plants && realness == record.Real {
		return nil, skipped, "", target.Mistakef("leave out startLatency", "a start latency needs simulated nodes, and the workload's pods would land on real ones")
	}
	return nodes, skipped, realness, nil
}

// Raise implements target.Target.
func (t *Target) Raise(ctx context.Context, level target.Level) (target.Batch, error) {
	if (t.load.Axis == observe.AxisRate) != (level.Span > 0) {
		return target.Batch{}, fmt.Errorf("axis %s: a level has a span of %v, and only arrivals have one", t.load.Axis, level.Span)
	}
	if arm, ok := t.arms[level.Arm]; ok {
		if t.population.units > 0 {
			return target.Batch{}, fmt.Errorf("arm %s begins while another's pods are in place", level.Arm)
		}
		t.population.rendering = arm
	}
	if t.watch.objects != nil {
		t.watch.objects.callThrough(t.population.forward)
	}
	if err := t.settings.apply(ctx, level.Arm, false); err != nil {
		return target.Batch{}, err
	}
	nodes, _, realness, err := t.places()
	if err != nil {
		return target.Batch{}, err
	}
	t.realness = realness
	t.remover.lies(realness)
	if t.load.Objects != nil {
		return t.raise(ctx, level, nil, 0)
	}
	notOurs := url.Values{"labelSelector": {LabelRun + "!=" + t.load.RunID}, "fieldSelector": {notTerminal}}
	perNode, pending, err := otherPods(func(each func([]byte) error) error {
		_, err := t.client.list(ctx, "/api/v1/pods", notOurs, each)
		return err
	}, nodes)
	if err != nil {
		return target.Batch{}, fmt.Errorf("list the pods that are there already: %w", t.client.unreachable(err))
	}
	t.others = perNode
	others := pending
	for _, n := range perNode {
		others += n
	}
	return t.raise(ctx, level, nodes, others)
}

// raise plans the load of a level, on nodes that have so many pods of others,
// and sets up what it needs.
func (t *Target) raise(ctx context.Context, level target.Level, nodes []*corev1.Node, others int) (target.Batch, error) {
	var want int
	switch t.load.Axis {
	case observe.AxisPodsPerNode:
		want = int(math.Floor(level.Value*float64(len(nodes))+1e-9)) - others
	case observe.AxisRate:
		want = t.population.units + int(math.Ceil(level.Value*level.Span.Seconds()-1e-9))
	case observe.AxisObjects, observe.AxisAtOnce:
		want = int(math.Floor(level.Value + 1e-9))
	case observe.AxisBulk:
		want = t.population.whole()
	case observe.AxisIterations:
		want = int(math.Floor(level.Value+1e-9)) * t.population.perIteration()
	}
	load, err := t.population.plan(want)
	if err != nil {
		return target.Batch{}, err
	}
	if err := t.holdings.makeNamespaces(ctx, slices.Concat(slices.Concat(load.setUp...), load.slots)); err != nil {
		return target.Batch{}, err
	}
	if err := t.drain.mark(ctx, t.population.iterations); err != nil {
		return target.Batch{}, err
	}
	if err := t.setUp(ctx, load.setUp); err != nil {
		return target.Batch{}, err
	}
	if err := t.drain.cordon(ctx); err != nil {
		return target.Batch{}, err
	}
	for name, node := range t.drain.on() {
		t.watch.objects.live(name, node)
	}
	if err := t.settings.apply(ctx, level.Arm, true); err != nil {
		return target.Batch{}, err
	}
	if t.watch.objects != nil {
		t.watch.objects.tellSpells()
	}
	t.population.units += load.units
	batch := target.Batch{
		Requests: len(load.slots), Units: load.units, Spread: t.spread(),
		Send: func(ctx context.Context, i int) record.Slot { return t.sender.send(ctx, load.slots[i]) },
	}
	switch t.load.Axis {
	case observe.AxisPodsPerNode:
		batch.Reached = float64(others+t.population.units) / float64(len(nodes))
	case observe.AxisRate:
		batch.Reached = float64(load.units) / level.Span.Seconds()
		t.ageing.begin(t.watch.watching, t.remover.deleteAged)
	case observe.AxisObjects, observe.AxisAtOnce:
		batch.Reached = float64(t.population.units)
	case observe.AxisIterations:
		batch.Reached = float64(t.population.iterations)
	case observe.AxisBulk:
		batch.Reached, batch.Due = level.Value, t.inBulks(int(level.Value))
	}
	return batch, nil
}

// saysInterval is how often a text that changes is shown at most; all are on
// record.
const saysInterval = 10 * time.Second

// knownAxis refuses what objects of a kind are not raised along.
func knownAxis(axis string, objects *workload.Objects) error {
	known := slices.Sorted(maps.Keys(observe.Declare().Axes))
	if objects != nil {
		known = slices.DeleteFunc(known, func(a string) bool { return a == observe.AxisPodsPerNode })
	}
	if objects != nil && objects.Begin != nil && objects.Begin.Drain != nil {
		known = []string{observe.AxisIterations}
	}
	if !slices.Contains(known, axis) {
		return target.Mistakef("", "a cluster cannot be loaded with this workload along the axis %q, only along %s", axis, strings.Join(known, ", "))
	}
	return nil
}

// setUp makes what the load needs before it begins, stage by stage, and waits
// until each is ready.
func (t *Target) setUp(ctx context.Context, stages [][]plannedSlot) error {
	if t.population.setUp == nil {
		t.population.setUp = make([]int, len(stages))
	}
	for i, slots := range stages {
		if len(slots) == 0 {
			continue
		}
		if err := t.setUpStage(ctx, i, slots); err != nil {
			return err
		}
	}
	return nil
}

func (t *Target) setUpStage(ctx context.Context, stage int, slots []plannedSlot) error {
	show := func(string) {}
	if t.load.Progress != nil {
		var end func()
		show, end = t.load.Progress()
		defer end()
	}
	until, _ := t.load.Objects.Resource(t.load.Objects.SetUp[stage].Until.Resource) // the description was checked
	kind := t.load.Objects.Resources[until].Kind
	n := &t.population.setUp[stage]
	// What is waited for may be made by a controller, one for each slot.
	*n += len(slots)
	what := record.Noun{One: kind, Many: kind + "s"}.Count(*n)
	show("setting up " + what)
	if err := t.sender.setUp(ctx, slots); err != nil {
		return fmt.Errorf("set up %s: %w", what, err)
	}
	err := t.watch.objects.awaitSetUp(ctx, stage, *n, t.load.Follow, func(done int) {
		show(fmt.Sprintf("setting up %s: %d done", what, done))
	})
	if err != nil {
		return fmt.Errorf("set up %s: %w", what, err)
	}
	return nil
}

// inBulks lets requests go in bulks of a size, each once all of the bulks before
// it are there. One that nothing moves in for as long as objects are followed is
// given up: its objects are judged as they are.
func (t *Target) inBulks(size int) func(i int) bool {
	return func(i int) bool {
		before := i / size * size
		p := t.Progress()
		return p.Arrived+p.Failed >= before || (t.clock.Now()-p.Moved).Duration() > t.load.Follow
	}
}

// Progress implements target.Target.
func (t *Target) Progress() target.Progress {
	p := t.watch.followed.progress()
	if t.load.Abandon {
		p.Left = 0
		return p
	}
	spaces, strays := t.holdings.count()
	p.Left += spaces + strays
	return p
}

// Settle implements target.Target: once a change made now has been seen, so
// has everything before it on the same watch.
func (t *Target) Settle(ctx context.Context) error { return t.watch.settle(ctx) }

// Account implements target.Target.
func (t *Target) Account(ctx context.Context) (target.Spread, error) {
	var failing []observe.Failing
	if t.watch.objects != nil {
		t.watch.objects.awaitFigures(ctx)
	}
	t.onNode, failing = t.watch.followed.account(t.realness == record.Real && t.load.Objects == nil) // what is simulated writes nothing
	sampleLogs(ctx, t.shared, failing)
	if t.watch.objects != nil {
		t.watch.objects.tellSpells()
	}
	return t.spread(), nil
}

// spread is how the pods in place lie on the nodes, by what was last counted.
func (t *Target) spread() target.Spread {
	s := target.Spread{Places: len(t.others)}
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

// Health implements target.Target.
func (t *Target) Health(context.Context) (map[string]float64, error) {
	latency, err := t.watch.latency()
	if err != nil {
		return nil, err
	}
	return map[string]float64{
		observe.NodesNotReady: float64(t.watch.nodes.countNotReady()),
		"pending":             float64(t.watch.followed.progress().Unschedulable),
		target.MeasureLatency: latency,
	}, nil
}

// Reset implements target.Target. Pods that the load made itself are removed,
// and its namespaces, empty again, stay for the next step: removing them too
// would take along thousands of the cluster's events, a load that has nothing
// to do with the one that is measured. Where controllers made the pods the
// namespaces go, and everything in them.
func (t *Target) Reset(ctx context.Context) error {
	t.ageing.end()
	if err := t.drain.release(ctx, false); err != nil {
		return err
	}
	if err := t.remover.empty(ctx, t.population.onlyPods()); err != nil {
		return err
	}
	if err := t.watch.settle(ctx); err != nil {
		return err
	}
	t.watch.followed.forget()
	t.onNode = nil
	t.population = population{rendering: t.population.rendering}
	return nil
}

// Close removes everything that the run made and stops observing. Done ends
// when the user wants no more waiting: what is left is then asked to go, and
// its end is not awaited.
func (t *Target) Close(done context.Context) error {
	t.ageing.end()
	err := t.drain.release(done, true)
	if !t.load.Abandon {
		ctx, cancel := context.WithTimeout(done, removalBound)
		defer cancel()
		// Without the watches nobody tells of the end of anything.
		ctx, blind := context.WithCancelCause(ctx)
		watching := t.watch.watching
		defer blind(nil)
		defer context.AfterFunc(watching, func() { blind(context.Cause(watching)) })()
		go t.remover.endOutOfReach(ctx, blind)
		err = errors.Join(err, t.settings.putBack(done), t.remover.removeAll(ctx, t.population.onlyPods()))
	}
	t.watch.close()
	t.client.close()
	return err
}
