package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/change"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/drain"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/follow"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
)

// Target loads a workload on a cluster along one axis.
type Target struct {
	*prepared.Run
	session    *session
	arms       map[string]*create.Rendering
	render     func(prepared.Variant) (*create.Rendering, error)
	population create.Population
	holdings   *create.Holdings
	sender     *create.Sender
	watch      *follow.Observer
	ageing     *follow.Ageing
	remover    *sweep.Remover
	drain      *drain.Drain // nil where no node is drained
	settings   *change.Settings
	run        context.Context // the whole run's: a signal cancels it
	room       string          // a directory for hooks, "" without any
	relay      *relay          // nil where no service is called
	profiles   *profiler
	preloaded  int // jobs

	realness record.Realness   // of the nodes, at the last Raise
	others   map[string]int    // other pods per eligible node, at the last Raise
	onNode   map[string]int    // ours, per node, when last accounted for
	declared *create.Rendering // the rendering whose places were declared last
}

// openTarget begins to observe the cluster and makes the run's namespace and canary.
func (s *session) openTarget(ctx context.Context, load prepared.Workload, rec system.Recorder) (*Target, error) {
	c := s.cluster
	if err := knownAxis(load.Axis, load.Objects); err != nil {
		return nil, err
	}
	mapper, err := c.client.Mapper()
	if err != nil {
		return nil, err
	}
	t := &Target{
		Run:     &prepared.Run{Client: c.client, Load: &load, Sink: rec.Sink, Clock: rec.Clock, Step: rec.Step},
		session: s, arms: make(map[string]*create.Rendering, len(load.Arms)),
	}
	ids := prepared.Identity{UUID: load.UUID, Run: load.RunID}
	var nodes []*corev1.Node
	if load.AsItIs && load.Axis != observe.AxisPodsPerNode {
		if nodes, err = c.nodes(ctx); err != nil {
			return nil, err
		}
	}
	t.render = func(v prepared.Variant) (*create.Rendering, error) {
		return create.Render(v, ids, mapper, load.Objects, load.Beside, nodes)
	}
	if t.population.Rendering, err = t.render(load.Variant); err != nil {
		return nil, err
	}
	for name, v := range load.Arms {
		if t.arms[name], err = t.render(v); err != nil {
			return nil, fmt.Errorf("arm %s: %w", name, err)
		}
	}
	load.Beside = slices.DeleteFunc(slices.Clone(load.Beside), func(o *described.Objects) bool { // the cluster may not know their kind
		return !o.Before && !slices.ContainsFunc(t.renderings(), func(r *create.Rendering) bool { return r.Makes(o.Resources[0].Kind) })
	})
	t.ageing = &follow.Ageing{Run: t.Run}
	var caller follow.Caller
	caller, t.drain = s.machines.Open(t.Run, func(namespace string) bool { return t.watch.Namespaces.Has(namespace) }, c.host.Log)
	if t.watch, err = follow.NewObserver(t.Run, t.ageing, c.host.Now, mapper, caller); err != nil {
		return nil, err
	}
	t.profiles = &profiler{Run: t.Run, dir: rec.Dir, files: s.Workload.Files, forward: func(namespace, pod string, port int) (dialer, error) {
		return t.Client.Forward(namespace, pod, port)
	}}
	t.holdings = create.NewHoldings(t.Run, t.watch.Actors)
	t.sender = create.NewSender(t.Run, t.watch, t.holdings, rec.Fail, c.client.PriorityLevels(ctx))
	if t.drain != nil {
		t.sender.Evict = t.drain.Evict
	}
	if err := t.openHooks(); err != nil {
		return nil, err
	}
	t.remover = sweep.NewRemover(t.Run, t.watch, t.holdings, c.host.Log)
	if t.watch.Objects != nil {
		t.watch.Objects.Ask = t.sender.Further
		var shown record.Micros
		t.watch.Objects.Says(func(kind, name, text string) {
			now := rec.Clock.Now()
			t.EmitAt(now, &record.TargetEvent{Object: name, About: kind, Type: corev1.EventTypeNormal, Reason: "Says", Message: text})
			if shown == 0 || (now-shown).Duration() >= saysInterval {
				shown = now
				c.host.Log("%s %s: %s", kind, name, text)
			}
		})
	}
	t.run = ctx
	made, err := t.watch.Start(ctx, rec.Fail)
	if err != nil && !made {
		return nil, err
	}
	if err == nil {
		err = create.TryOut(ctx, t.Run, t.watch.Own(), t.renderings())
	}
	if err == nil {
		t.settings, err = change.New(ctx, t.Run, t.watch.Own())
	}
	if err == nil {
		t.openPolicies()
		err = t.openRelay(ctx)
	}
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweep.RemovalBound)
		defer cancel()
		if removal := t.Close(ctx); removal != nil {
			err = errors.Join(err, &system.LeftError{Err: removal, Left: t.Progress().Left})
		}
		return nil, err
	}
	_, noted := kubeburner.Served(load.Config)
	for _, p := range noted {
		t.Emit(&record.Note{Warning: record.WarningConfig, Place: p.Path, Text: p.Message})
	}
	return t, nil
}

// openHooks prepares the run of a configuration's commands, if it has any.
func (t *Target) openHooks() (err error) {
	if !slices.ContainsFunc(t.renderings(), (*create.Rendering).HasHooks) {
		return nil
	}
	if t.room, err = os.MkdirTemp("", "plimsoll-hooks-"); err != nil {
		return fmt.Errorf("make a directory for hooks: %w", err)
	}
	t.Load.Hooks.Dir = filepath.Dir(t.session.Plan.Workload)
	if t.Load.Hooks.Env, err = t.session.cluster.environment(t.room); err != nil {
		return errors.Join(err, os.RemoveAll(t.room))
	}
	t.sender.Hooks = create.NewHooks(t.Run)
	return nil
}

// closeHooks runs the hooks after the removal. Their failures come too late for a verdict.
func (t *Target) closeHooks(ctx context.Context) {
	for _, err := range t.sender.Hooks.AfterCleanup(ctx, t.Load.Config) {
		t.session.Log("warning: %v", err)
	}
	t.sender.Hooks.Close()
	if err := os.RemoveAll(t.room); err != nil {
		t.session.Log("warning: %v", err)
	}
}

// renderings returns those that are loaded: the arms', or the workload's own.
func (t *Target) renderings() []*create.Rendering {
	if len(t.arms) == 0 {
		return []*create.Rendering{t.population.Rendering}
	}
	return slices.Collect(maps.Values(t.arms))
}

// ComponentOfPod returns a pod's component, "" if unknown, given Load.Places. It is safe for concurrent use.
func (t *Target) ComponentOfPod(uid string) string { return t.watch.Pods.ComponentOf(uid) }

// Describe implements system.Target.
func (t *Target) Describe(ctx context.Context) (record.Environment, error) {
	c := t.session.cluster
	env := record.Environment{
		Target: c.Naming, Elsewhere: c.Naming.Kind == "cluster",
		Fidelity: record.Fidelity{ControlPlane: record.Real, Guests: record.None, Notes: []string{}},
	}
	server, clockOffset, err := c.version(ctx)
	if err != nil {
		return env, err
	}
	nodes, skipped, realness, err := t.places()
	if err != nil {
		return env, err
	}
	env.Facts, env.Places = clusterFacts(server, len(nodes), skipped, clockOffset), placesOf(nodes, !env.Elsewhere)
	env.Fidelity.Nodes, env.Fidelity.Containers = realness, realness
	if realness == record.Simulated {
		env.Fidelity.Notes = append(env.Fidelity.Notes,
			"nodes and containers are simulated: no kubelet ran and no container started; start-up times are the planted ones, and pod address ranges are not a ceiling")
	}
	// A workload that runs the program's own images.
	if w := t.session.Workload; w != nil && slices.ContainsFunc(w.Params, func(p workload.Param) bool { return strings.HasPrefix(p.Default, image.Local) }) {
		env.Facts = append(env.Facts, imagesFrom(cmp.Or(settingsOf(t.session.Plan).Images, "the nodes have them")))
	}
	if t.session.lab != nil {
		t.session.describeLab(&env)
	}
	return env, nil
}

// places returns the nodes that a level is an average over.
func (t *Target) places() (nodes []*corev1.Node, skipped int, realness record.Realness, err error) {
	pods, plants := t.population.PodSpecs()
	if t.Load.AsItIs && t.Load.Axis != observe.AxisPodsPerNode {
		pods = nil // its pods may select different nodes, and later ones others
	}
	nodes, skipped = t.watch.Nodes.Eligible(pods)
	if len(nodes) == 0 && !t.watch.Nodes.Seen() && t.Load.Axis == observe.AxisPodsPerNode {
		return nil, 0, "", system.Mistakef("raise it along another axis, such as --axis rate, or let the user list nodes", "a level of %s is an average over nodes, which this user may not list", t.Load.Axis)
	}
	if len(nodes) == 0 && (t.Load.Objects != nil || !t.watch.Nodes.Seen()) {
		return nil, skipped, record.None, nil
	}
	if len(nodes) == 0 {
		return nil, skipped, "", follow.NoNodes(skipped)
	}
	if realness, err = follow.OneFidelity(nodes); err != nil && t.Load.Objects == nil {
		return nil, skipped, "", err
	}
	if plants && realness == record.Real {
		return nil, skipped, "", system.Mistakef("leave out startLatency", "a start latency needs simulated nodes, and the workload's pods would land on real ones")
	}
	return nodes, skipped, realness, nil
}

// declare records the places of each arm: nodes for its pods, or for any pod where controllers make them.
func (t *Target) declare() {
	if t.declared == t.population.Rendering || t.Load.Objects != nil && t.Load.Objects.Place.One == "" {
		return
	}
	pods, _ := t.population.PodSpecs()
	if t.Load.Objects != nil {
		pods = append(pods, corev1.PodSpec{})
	}
	t.watch.Nodes.Declare(t.Clock.Now(), pods)
	t.declared = t.population.Rendering
}

// Raise implements system.Target.
func (t *Target) Raise(ctx context.Context, level system.Level) (system.Batch, error) {
	if (t.Load.Axis == observe.AxisRate) != (level.Span > 0) {
		return system.Batch{}, fmt.Errorf("axis %s: a level has a span of %v, and only arrivals have one", t.Load.Axis, level.Span)
	}
	if t.Load.Axis == observe.AxisSettings {
		v, err := t.session.at(level)
		if err != nil {
			return system.Batch{}, err
		}
		if t.population.Rendering, err = t.render(v); err != nil {
			return system.Batch{}, err
		}
	}
	if err := t.refuse(level); err != nil {
		return system.Batch{}, err
	}
	defer t.putDurations(ctx) // the load does not include its preparation
	if arm, ok := t.arms[level.Arm]; ok && t.Load.Axis != observe.AxisSettings {
		if t.population.Units > 0 {
			return system.Batch{}, fmt.Errorf("arm %s begins while another's pods are in place", level.Arm)
		}
		t.population.Rendering = arm
	}
	if t.watch.Objects != nil {
		t.watch.Objects.Caller.Begin(t.population.Params)
	}
	if err := t.settings.Apply(ctx, level.Arm, false); err != nil {
		return system.Batch{}, err
	}
	t.declare()
	nodes, _, realness, err := t.places()
	if err != nil {
		return system.Batch{}, err
	}
	t.realness = realness
	t.remover.Lies(realness)
	if t.Load.Objects != nil {
		return t.raise(ctx, level, 0, 0)
	}
	notOurs := url.Values{"labelSelector": {api.LabelRun + "!=" + t.Load.RunID}, "fieldSelector": {api.NotTerminal}}
	list := func(path string) (map[string]int, int, error) {
		return follow.OtherPods(func(each func([]byte) error) error {
			_, err := t.Client.List(ctx, path, notOurs, each)
			return err
		}, nodes)
	}
	perNode, pending, err := list("/api/v1/pods")
	if api.Refused(err) && t.Load.Namespace != "" {
		t.Emit(&record.Note{Warning: record.WarningNotKnown, Text: "this user may not list pods outside of namespace " + t.Load.Namespace + ": those that are there already are not counted in the levels"})
		perNode, pending, err = list(t.Load.In("pods"))
	}
	if err != nil {
		return system.Batch{}, fmt.Errorf("list the pods that are there already: %w", t.Client.Unreachable(err))
	}
	t.others = perNode
	others := pending
	for _, n := range perNode {
		others += n
	}
	return t.raise(ctx, level, len(nodes), others)
}

// raise plans the load of a level on so many nodes with so many others' pods, and sets it up.
func (t *Target) raise(ctx context.Context, level system.Level, nodes, others int) (system.Batch, error) {
	axis, r := axes()[t.Load.Axis], &raising{Target: t, level: level, nodes: nodes, others: others}
	load, err := axis.plan(r)
	if err != nil {
		return system.Batch{}, err
	}
	r.load = load
	for ; t.Load.AsItIs && t.preloaded <= r.job(); t.preloaded++ {
		images := t.population.Images(t.preloaded)
		if len(images) == 0 || !t.Load.Config.PreLoads(t.preloaded, t.Load.Images) {
			continue
		}
		if err := t.preload(ctx, &t.Load.Config.Jobs[t.preloaded], images); err != nil {
			return system.Batch{}, err
		}
	}
	if err := t.holdings.MakeNamespaces(ctx, slices.Concat(slices.Concat(load.SetUp...), load.Slots)); err != nil {
		return system.Batch{}, err
	}
	if err := t.drain.Mark(ctx, t.population.Iterations); err != nil {
		return system.Batch{}, err
	}
	if err := t.setUp(ctx, load.SetUp); err != nil {
		return system.Batch{}, err
	}
	if err := t.drain.Cordon(ctx); err != nil {
		return system.Batch{}, err
	}
	for name, node := range t.drain.On() {
		t.watch.Objects.Live(name, node)
	}
	if err := t.settings.Apply(ctx, level.Arm, true); err != nil {
		return system.Batch{}, err
	}
	if t.watch.Objects != nil {
		t.watch.Objects.TellSpells()
	}
	t.profiles.begin(ctx, &t.Load.Config.Jobs[r.job()])
	objects := t.Load.Objects
	drains := objects != nil && objects.Begin != nil && objects.Begin.Drain != nil && objects.Begin.Drain.Nodes != "" // all at once
	batch := system.Batch{
		Requests: len(load.Slots), Units: load.Units, Spread: t.spread(), AtOnce: axis.atOnce || drains,
		Send: func(ctx context.Context, i int) record.Slot { return t.sender.Send(ctx, load.Slots[i]) },
	}
	if t.Load.AsItIs {
		batch = t.sender.Script(&t.population, &load, t.settled, func() int { return t.watch.Followed.Progress().Left }, t.watch.Namespaces.Has).Batch(load.Units+load.Beside, batch.Spread)
	}
	t.population.Units, t.population.Beside = t.population.Units+load.Units, t.population.Beside+load.Beside
	t.watch.Followed.Expect(t.population.Units)
	if level.Span > 0 {
		t.ageing.Begin(t.watch.Watching, t.remover.DeleteAged)
	}
	batch.Reached = axis.reached(r)
	if axis.due != nil {
		batch.Due = axis.due(r)
	}
	return batch, nil
}

const saysInterval = 10 * time.Second // shortest time between two shown texts; the record has all

// knownAxis refuses an axis that objects of this kind do not have.
func knownAxis(axis string, objects *described.Objects) error {
	known := slices.Sorted(maps.Keys(observe.Declare().Axes))
	if objects != nil {
		known = slices.DeleteFunc(known, func(a string) bool { return a == observe.AxisPodsPerNode })
	}
	if objects != nil && objects.Begin != nil && objects.Begin.Drain != nil {
		known = []string{observe.AxisIterations}
	}
	if !slices.Contains(known, axis) {
		return system.Mistakef("", "a cluster cannot be loaded with this workload along the axis %q, only along %s", axis, strings.Join(known, ", "))
	}
	return nil
}

// setUp makes the objects that the load needs first, stage by stage, and waits until each stage is ready.
func (t *Target) setUp(ctx context.Context, stages [][]create.PlannedSlot) error {
	if t.population.SetUp == nil {
		t.population.SetUp = make([]int, len(stages))
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

func (t *Target) setUpStage(ctx context.Context, stage int, slots []create.PlannedSlot) error {
	show := func(string) {}
	if t.Load.Progress != nil {
		var end func()
		show, end = t.Load.Progress()
		defer end()
	}
	until, _ := t.Load.Objects.Resource(t.Load.Objects.SetUp[stage].Until.Resource) // the description was checked
	kind := t.Load.Objects.Resources[until].Kind
	n := &t.population.SetUp[stage]
	// A controller may make the objects that are waited for, one for each slot.
	*n += len(slots)
	what := record.Noun{One: kind, Many: kind + "s"}.Count(*n)
	show("setting up " + what)
	if err := t.sender.SetUp(ctx, slots); err != nil {
		return fmt.Errorf("set up %s: %w", what, err)
	}
	for _, actor := range []string{observe.ControllerManager, observe.Scheduler} {
		waiting, done := t.watch.Actors.Wait(ctx, actor, record.Noun{One: kind, Many: kind + "s"}, func() int { return *n - t.watch.Objects.SetUp(stage) })
		ctx = waiting
		defer done()
	}
	err := t.watch.Objects.AwaitSetUp(ctx, stage, *n, t.Load.Follow, func(done int) {
		show(fmt.Sprintf("setting up %s: %d done", what, done))
	})
	if err != nil {
		return fmt.Errorf("set up %s: %w", what, err)
	}
	return nil
}

// settled counts the objects that are ready or failed, or all, if nothing has moved for too long.
func (t *Target) settled() int {
	p := t.Progress()
	if (t.Clock.Now() - p.Moved).Duration() > t.Load.Follow {
		return math.MaxInt
	}
	return max(p.Arrived, p.There) + p.Failed
}

// Progress implements system.Target.
func (t *Target) Progress() system.Progress {
	p := t.watch.Followed.Progress()
	p.There += t.holdings.Released()
	p.Silent, p.OutOfReach = t.watch.Actors.Silent()
	if t.Load.Abandon {
		p.Left = 0
		return p
	}
	spaces, strays := t.holdings.Count()
	p.Left += spaces + strays
	return p
}

// Settle implements system.Target: a watch delivers a change made now after all earlier ones.
func (t *Target) Settle(ctx context.Context) error { return t.watch.Settle(ctx) }

// Account implements system.Target.
func (t *Target) Account(ctx context.Context) (system.Spread, error) {
	t.profiles.end(ctx)
	t.putDurations(ctx)
	var failing []observe.Failing
	if t.watch.Objects != nil {
		t.watch.Objects.Caller.Await(ctx)
	}
	t.onNode, failing = t.watch.Followed.Account(t.realness == record.Real && t.Load.Objects == nil) // simulated pods write no logs
	follow.SampleLogs(ctx, t.Run, failing)
	if t.watch.Objects != nil {
		t.watch.Objects.TellSpells()
	}
	return t.spread(), nil
}

// spread says how evenly the pods lie on the current nodes, by the last count.
func (t *Target) spread() (s system.Spread) {
	for node, others := range t.others {
		if !t.watch.Nodes.Holds(node) {
			continue
		}
		n := float64(others + t.onNode[node])
		if s.Places == 0 {
			s.Least, s.Most = n, n
		}
		s.Places++
		s.Others += others
		s.Least, s.Most = min(s.Least, n), max(s.Most, n)
	}
	return s
}

// Health implements system.Target.
func (t *Target) Health(context.Context) (map[string]float64, error) {
	latency, err := t.watch.Latency()
	if err != nil {
		return nil, err
	}
	measures := map[string]float64{
		"pending":             float64(t.watch.Followed.Progress().Unschedulable),
		system.MeasureLatency: latency,
	}
	if t.watch.Nodes.Seen() {
		measures[observe.NodesNotReady] = float64(t.watch.Nodes.CountNotReady())
	}
	return measures, nil
}

// Reset implements system.Target. It removes pods, but keeps empty namespaces for the next step: removing
// them deletes thousands of events, a load of its own. Namespaces of controllers' pods go.
func (t *Target) Reset(ctx context.Context) error {
	t.ageing.End()
	if err := t.drain.Release(ctx, false); err != nil {
		return err
	}
	if err := t.remover.Empty(ctx, t.population.OnlyPods()); err != nil {
		return err
	}
	if err := t.watch.Settle(ctx); err != nil {
		return err
	}
	t.watch.Followed.Forget()
	t.holdings.Forget()
	t.onNode = nil
	t.population = create.Population{Rendering: t.population.Rendering}
	return nil
}

// Close removes everything that the run made. When done ends, the rest is asked to go and not awaited.
func (t *Target) Close(done context.Context) error {
	t.ageing.End()
	t.profiles.cut()
	if t.sender.Hooks != nil {
		t.sender.Hooks.End()
		defer t.closeHooks(done)
	}
	var err error
	if t.Load.Abandon {
		err = t.drain.Release(done, true)
	} else {
		ctx, cancel := context.WithTimeout(done, sweep.RemovalBound)
		defer cancel()
		// Without the watches nobody reports the end of anything.
		ctx, blind := context.WithCancelCause(ctx)
		watching := t.watch.Watching
		defer blind(nil)
		defer context.AfterFunc(watching, func() { blind(context.Cause(watching)) })()
		go t.remover.EndOutOfReach(ctx, t.run, blind)
		err = errors.Join(t.drain.Release(ctx, true), t.settings.PutBack(ctx), t.relay.close(ctx, t.Client), t.remover.RemoveAll(ctx, t.population.OnlyPods()))
	}
	t.session.clean = err == nil
	t.sender.Policies.Close()
	t.watch.Close(err == nil && !t.Load.Abandon)
	t.Client.Close()
	return err
}
