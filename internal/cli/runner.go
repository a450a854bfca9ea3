package cli

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/analyze"
	"plimsoll.dev/plimsoll/internal/cluster"
	"plimsoll.dev/plimsoll/internal/cpu"
	"plimsoll.dev/plimsoll/internal/diagnose"
	"plimsoll.dev/plimsoll/internal/dist"
	"plimsoll.dev/plimsoll/internal/engine"
	"plimsoll.dev/plimsoll/internal/experiment"
	"plimsoll.dev/plimsoll/internal/kubeburner"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/observe"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
	"plimsoll.dev/plimsoll/internal/strictyaml"
	"plimsoll.dev/plimsoll/internal/telemetry"
	"plimsoll.dev/plimsoll/internal/workload"
)

// Bounds of the load where the plan leaves them open.
const (
	// A laboratory is ours to load as fast as it goes; any other cluster is
	// treated with care.
	labInFlight     = 64
	clusterInFlight = 16
	// With an open loop the bound is there for the program's own sake: requests
	// must not pile up without end.
	openLabInFlight     = 256
	openClusterInFlight = 64
	clusterPace         = 20 // creations and deletions per second

	labCanary     = 250 * time.Millisecond
	clusterCanary = time.Second

	// leastOpenHold is the least hold of a step whose requests come by a
	// schedule, unless the whole one is shorter.
	leastOpenHold = 20 * time.Second

	// shortHold is the hold of steps that only propose, as a part of the
	// whole one.
	shortHold = 5
)

// randomSeed draws a seed that is not 0.
func (p *Process) randomSeed() (uint64, error) {
	var b [8]byte
	if _, err := io.ReadFull(p.Random, b[:]); err != nil {
		return 0, fmt.Errorf("draw a seed: %w", err)
	}
	// 53 bits survive every reader of JSON and YAML.
	return binary.BigEndian.Uint64(b[:])>>11 | 1, nil
}

// runner runs one valid plan.
type runner struct {
	p        *Process
	stop     *interrupts
	plan     *plan.Plan
	workload *workload.Workload
	params   workload.Params
	yes      bool
	// ignoreHealth loads a cluster that is not fit for it.
	ignoreHealth bool
	asked        []asked // levels that the user has named
	foresight    foresight
	out          string
	quiet        bool // print nothing on the way
	// resumed is the run that goes on, nil for one that begins.
	resumed *resumed

	uuid, id string
	lab      *lab.Lab // nil for a cluster that is none
	private  bool
	apart    bool // kept off the real node's processors
	// preferred says what this program was allowed of the CPUs beside a lab.
	preferred string
	cluster   *cluster.Cluster

	renewing bool           // the run is under way: its own progress is shown
	reading  sync.Mutex     // lab, while it is made anew, and
	pids     map[string]int // of the lab's components
	pidsAt   time.Time
	meter    *realnode.Meter // of the lab's real node, nil before it is first read
	// target is what is loaded, nil before it is open.
	target atomic.Pointer[cluster.Target]
}

// mild reports whether an error only says that the run was cut by its user or
// its budget: its result then says the rest.
func (r *runner) mild(err error) bool {
	return errors.Is(err, experiment.ErrBudget) || errors.Is(err, context.Canceled)
}

// run makes the plan and returns where its record lies and its result. The
// result is nil when nothing was recorded.
func (r *runner) run() (dir string, result *analyze.Result, err error) {
	ctx := r.stop.soft
	if err := r.identify(); err != nil {
		return "", nil, err
	}
	variant, arms, err := r.variants()
	if err != nil {
		return "", nil, err
	}
	if err := r.openTarget(ctx); err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, r.closeTarget()) }()
	if err := r.haveImages(); err != nil {
		return "", nil, err
	}
	if r.suitRealNode() {
		if r.params, err = r.workload.Resolve(r.plan.Params); err != nil {
			return "", nil, err
		}
		if variant, arms, err = r.variants(); err != nil {
			return "", nil, err
		}
	}
	if err := r.sweepDeadRuns(ctx); err != nil {
		return "", nil, err
	}
	if err := r.foresee(ctx, variant, arms); err != nil {
		return "", nil, err
	}
	if err := r.haveKubelets(); err != nil {
		return "", nil, err
	}
	x, err := r.experiment()
	if err != nil {
		return "", nil, err
	}
	runDir, unlock, err := r.makeDir()
	if err != nil {
		return "", nil, err
	}
	defer unlock()
	var undo func()
	r.preferred, undo = cpu.Prefer(x.Options.Open)
	defer undo()
	defer r.keepApart()()
	telemetry.ShedStartup()
	show := newProgress(r.p, r.quiet)
	open := func(ctx context.Context, rec experiment.Recorder) (experiment.Target, error) {
		t, err := r.cluster.Open(ctx, r.load(variant, arms), rec.Sink, rec.Clock, rec.Step, rec.Fail)
		if err != nil {
			return nil, err
		}
		r.target.Store(t)
		return &labelledTarget{t, r, rec}, nil
	}
	if r.plan.Fresh == plan.FreshLab {
		open = r.renewed(open)
	}
	if r.resumed != nil {
		begin := record.Run{ID: r.id, Command: commandLine(r.p.Args)}
		err = experiment.Resume(ctx, r.stop.hard, r.resumed.past, begin, x, r.p.Now, show, open)
	} else {
		err = experiment.Run(ctx, r.stop.hard, runDir, r.id, x, r.p.Now, show, open)
	}
	show.end()
	replayed, replayErr := experiment.Replay(runDir, x)
	if replayErr != nil {
		return string(runDir), nil, errors.Join(err, replayErr)
	}
	if err != nil && len(replayed.Steps) == 0 {
		// The run failed before its first step: the error says it all.
		return string(runDir), nil, r.usage(err)
	}
	return string(runDir), &replayed, r.usage(err)
}

// labelledTarget completes what a target tells of itself by what only the
// command line knows.
type labelledTarget struct {
	*cluster.Target
	r   *runner
	rec experiment.Recorder
}

// Raise implements engine.Target.
func (t *labelledTarget) Raise(ctx context.Context, level engine.Level) (engine.Load, error) {
	t.putDurations(ctx)
	return t.Target.Raise(ctx, level)
}

// Account implements engine.Target.
func (t *labelledTarget) Account(ctx context.Context) (engine.Spread, error) {
	t.putDurations(ctx)
	return t.Target.Account(ctx)
}

// putDurations puts on record what a real node's kubelet publishes of its work.
func (t *labelledTarget) putDurations(ctx context.Context) {
	if t.r.lab == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, durationsPatience)
	defer cancel()
	list, err := t.r.lab.RealNodeDurations(ctx)
	if err != nil {
		t.rec.Emit(&record.Note{Text: fmt.Sprintf("how long the kubelet's work took is not known: %v", err)})
		return
	}
	for _, d := range list {
		t.rec.Emit(&record.Durations{Source: lab.Kubelet, Name: d.Name, Count: d.Count, Sum: d.Sum, Bounds: d.Bounds, Counts: d.Counts})
	}
}

// durationsPatience is how long a kubelet may take to tell.
const durationsPatience = 5 * time.Second

func (t *labelledTarget) Describe(ctx context.Context) (record.Environment, error) {
	env, err := t.Target.Describe(ctx)
	env.Host = hostOf()
	env.Findings, env.Ceilings = t.r.foresight.findings, t.r.foresight.table
	env.Isolation = record.Isolation{Split: "priority", Notes: []string{t.r.preferred}}
	t.r.describeRealNode(&env)
	if t.r.lab != nil {
		env.Isolation.Notes = append(env.Isolation.Notes, "the control plane, the load generator and the observer share this machine's CPUs")
	}
	return env, err
}

// usage makes usage errors of those mistakes that only the cluster could tell.
func (r *runner) usage(err error) error {
	var none *cluster.NoNodesError
	var mixed *cluster.MixedError
	var foreign *cluster.ForeignNamespaceError
	var problems *strictyaml.Error
	var contradiction *experiment.ContradictionError
	switch {
	case errors.As(err, &contradiction):
		return usagef("go on where the run was begun, or begin it anew: plimsoll run FILE", "%w", err)
	case errors.Is(err, cluster.ErrPlantedOnReal):
		return usagef("leave out startLatency", "%w", err)
	case errors.As(err, &none):
		return usagef("choose nodes with --set nodeSelector=k=v", "%w", err)
	case errors.As(err, &mixed):
		return usagef("choose one kind with --set nodeSelector=plimsoll.dev/fidelity=simulated, or another label", "%w", err)
	case errors.As(err, &foreign), errors.As(err, &problems):
		return usagef("", "%w", err)
	}
	return err
}

// identify draws the run's names.
func (r *runner) identify() error {
	var b [16]byte
	if _, err := io.ReadFull(r.p.Random, b[:]); err != nil {
		return fmt.Errorf("draw the run's name: %w", err)
	}
	id, err := uuid.FromBytes(b[:])
	if err != nil {
		return fmt.Errorf("draw the run's name: %w", err)
	}
	r.uuid, r.id = id.String(), hex.EncodeToString(b[:4])
	return nil
}

// variants renders the workload, and each arm of it.
func (r *runner) variants() (plain cluster.Variant, arms map[string]cluster.Variant, err error) {
	if plain, err = r.variant(r.params); err != nil {
		return plain, nil, err
	}
	arms = make(map[string]cluster.Variant, len(r.plan.Arms))
	for _, arm := range r.plan.Arms {
		given := maps.Clone(map[string]string(r.plan.Params))
		if given == nil {
			given = make(map[string]string)
		}
		maps.Copy(given, arm.Params)
		params, err := r.workload.Resolve(given)
		if err != nil {
			return plain, nil, usagef("", "arm %s: %w", arm.Name, err)
		}
		if arms[arm.Name], err = r.variant(params); err != nil {
			return plain, nil, fmt.Errorf("arm %s: %w", arm.Name, err)
		}
	}
	return plain, arms, nil
}

func (r *runner) variant(params workload.Params) (v cluster.Variant, err error) {
	if v.Config, err = r.workload.Config(params, r.uuid); err != nil {
		return v, usagef("", "%w", err)
	}
	if problems := kubeburner.Unsupported(v.Config); len(problems) > 0 {
		return v, usagef("take it out of the workload's configuration", "%w", strictyaml.Join(problems))
	}
	if v.Templates, err = v.Config.Templates(r.workload.Files()); err != nil {
		return v, usagef("", "%w", err)
	}
	return v, nil
}

// openTarget brings up the private lab, or finds the lab or cluster that was
// named and makes sure that it may be loaded.
func (r *runner) openTarget(ctx context.Context) error {
	t := r.plan.Target
	switch {
	case t.LabName != "":
		return r.openNamedLab(ctx, t.LabName)
	case t.Kubeconfig != "":
		return r.openCluster(ctx, t.Kubeconfig, t.Context)
	}
	store, err := labStore(ctx, r.p)
	if err != nil {
		return err
	}
	latency, err := dist.Parse(t.Lab.StartLatency)
	if err != nil {
		return usagef("", "%w", err)
	}
	line := progressLine{p: r.p}
	if !r.renewing {
		store.Progress = func(what string) { line.show(what) }
	}
	spec := lab.Spec{Private: true, Nodes: t.Lab.Nodes, MaxPods: t.Lab.MaxPods, StartLatency: latency}
	if t.Lab.RealNode {
		if err := r.needImages(ctx); err != nil {
			return err
		}
		spec.RealNode = &lab.RealNodeSpec{CPUs: t.Lab.NodeCPUs, MemoryBytes: int64(t.Lab.NodeMemory), PodCIDRPrefix: t.Lab.PodCIDRPrefix}
	}
	r.lab, err = store.Up(ctx, spec)
	line.end()
	if err != nil {
		return fmt.Errorf("bring up a private laboratory: %w", labUsage(err))
	}
	r.private = true
	if err := r.connect(r.lab.Kubeconfig(), ""); err != nil {
		return err
	}
	r.cluster.Named(record.TargetNaming{Kind: "lab", Name: r.lab.Name(), Private: true})
	return nil
}

func (r *runner) openNamedLab(ctx context.Context, name string) error {
	l, err := openLab(ctx, r.p, name)
	if err != nil {
		return err
	}
	status, err := l.Status(ctx)
	if err != nil {
		return err
	}
	if status.State != lab.Running {
		return fmt.Errorf("laboratory %q is %s; 'plimsoll lab status %s' shows more", name, status.State, name)
	}
	r.lab = l
	if err := r.connect(l.Kubeconfig(), ""); err != nil {
		return err
	}
	r.cluster.Named(record.TargetNaming{Kind: "lab", Name: name})
	return nil
}

// openCluster connects to the cluster of a kubeconfig. It is a lab if the
// kubeconfig and the cluster itself say so with one voice; any other must be
// confirmed.
func (r *runner) openCluster(ctx context.Context, kubeconfig, contextName string) error {
	if err := r.connect(kubeconfig, contextName); err != nil {
		return err
	}
	if ours, err := r.isLab(ctx); err != nil || ours {
		return err
	}
	return r.confirm(ctx)
}

// isLab reports whether the cluster is a lab of this machine. One that is a lab
// elsewhere is named so, and is a cluster like any other beside that.
func (r *runner) isLab(ctx context.Context) (bool, error) {
	marker, ok := lab.MarkerOf(r.cluster.Config, r.cluster.Context)
	if !ok {
		return false, nil
	}
	id, err := r.cluster.Marker(ctx, lab.MarkerNamespace, lab.MarkerConfigMap, lab.MarkerKey)
	if err != nil || id != marker.ID {
		return false, err
	}
	r.cluster.Named(record.TargetNaming{Kind: "lab", Name: marker.Name})
	r.lab = r.findLab(marker)
	return r.lab != nil, nil
}

// findLab is the lab of this machine that a marker names, nil if it is not one
// of this user's.
func (r *runner) findLab(m lab.Marker) *lab.Lab {
	dir, err := r.p.stateDir()
	if err != nil {
		return nil
	}
	l, err := lab.Store{Root: dir, Executable: r.p.Executable}.Open(m.Name)
	if err != nil || l.ID() != m.ID {
		return nil
	}
	return l
}

func (r *runner) connect(kubeconfig, contextName string) error {
	c, err := cluster.Connect(kubeconfig, contextName, "plimsoll/"+version, r.p.Now)
	if err != nil {
		return clusterUsage(err)
	}
	r.cluster = c
	return nil
}

// clusterUsage makes usage errors of the mistakes in naming a cluster.
func clusterUsage(err error) error {
	var config *cluster.ConfigError
	if !errors.As(err, &config) {
		return err
	}
	if errors.Is(err, os.ErrNotExist) {
		return usagef(nearbyFile(config.File), "there is no kubeconfig %s", config.File)
	}
	hint := ""
	if errors.Is(err, cluster.ErrNoContext) {
		slices.Sort(config.Contexts)
		hint = "there is: " + strings.Join(config.Contexts, ", ")
	}
	return usagef(hint, "%w", err)
}

// confirm asks whether a cluster that is no lab of ours may be loaded.
func (r *runner) confirm(ctx context.Context) error {
	summary, err := r.cluster.Summary(ctx)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("%s at %s: Kubernetes %s, %d nodes, %d pods", r.cluster.Context, r.cluster.Server, summary.Version, summary.Nodes, summary.Pods)
	if exempt, err := r.cluster.Exempt(ctx); err == nil && exempt {
		r.p.logf("warning: this user is exempt from API priority and fairness (system:masters): its load is not held back as others' is, and can starve them\n")
	}
	if r.yes {
		r.p.logf("loading %s\n", what)
		return nil
	}
	if !r.p.StdinTerminal {
		return usagef("look at it, and give --yes if it is the one", "%s is no laboratory of this program, and was not confirmed", what)
	}
	r.p.logf("%s\nThis is no laboratory. Load it with %s (%s)? [y/N] ", what, r.workload.Name, r.extent())
	answer, err := readLine(ctx, r.p.Stdin)
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return usagef("", "not confirmed: nothing was done")
	}
	return nil
}

// extent says how far the plan may go.
func (r *runner) extent() string {
	a := r.plan.Axis
	unit := a.Name
	switch {
	case a.Search != nil:
		return fmt.Sprintf("up to %g %s", a.Search.Max, unit)
	case len(a.Levels) > 0:
		return fmt.Sprintf("up to %g %s", slices.Max(a.Levels), unit)
	case a.Level != nil:
		return fmt.Sprintf("%g %s", *a.Level, unit)
	}
	return unit
}

// readLine reads one line, unless ctx ends first.
func readLine(ctx context.Context, from io.Reader) (string, error) {
	type line struct {
		text string
		err  error
	}
	got := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(from).ReadString('\n')
		got <- line{text, err}
	}()
	select {
	case l := <-got:
		if l.err != nil && !errors.Is(l.err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", l.err)
		}
		return l.text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// closeTarget ends what openTarget began.
func (r *runner) closeTarget() error {
	if r.cluster != nil {
		r.cluster.Close()
		r.cluster = nil
	}
	if !r.private {
		return nil
	}
	r.private = false
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := r.lab.Down(ctx); err != nil {
		return fmt.Errorf("remove the private laboratory: %w", err)
	}
	return nil
}

// sweepDeadRuns removes what killed runs have left in the cluster. Of a run
// that goes on everything goes, wherever it is and however lately it gave a
// sign of life: that it is dead is sure, since its record is not being written.
func (r *runner) sweepDeadRuns(ctx context.Context) error {
	if r.private {
		return nil
	}
	leftovers, err := r.cluster.Leftovers(ctx, r.resumed == nil)
	if err != nil {
		return err
	}
	for _, l := range leftovers {
		own := r.resumed != nil && slices.Contains(r.resumed.past.IDs, l.Run)
		if l.Alive && !own {
			r.p.logf("note: run %s is loading this cluster too\n", l.Run)
			continue
		}
		r.p.logf("removing what run %s has left: %s\n", l.Run, strings.Join(append(l.Namespaces, l.Others...), ", "))
		if err := r.cluster.Clean(ctx, l); err != nil {
			return fmt.Errorf("remove what run %s has left: %w", l.Run, err)
		}
	}
	return nil
}

// experiment is the plan as the loop takes it.
func (r *runner) experiment() (experiment.Experiment, error) {
	p := r.plan
	pace := p.Pace
	maxInFlight := labInFlight
	if r.lab == nil {
		maxInFlight = clusterInFlight
		if pace.IsZero() {
			pace = plan.Pace{PerSecond: clusterPace}
		}
		if p.Guards == nil {
			p.Guards = map[string]plan.Bound{"nodesNotReady": 1, "apiErrors": 5}
		}
	} else if pace.IsZero() {
		pace = plan.Pace{Max: true}
	}
	p.Pace = pace
	axis, err := r.workload.Axis(p.Axis.Name)
	if err != nil {
		return experiment.Experiment{}, err
	}
	if r.resumed == nil {
		p.AsRun = &plan.AsRun{
			ID: r.id, Kind: p.Kind, Command: commandLine(r.p.Args), Version: version, Started: r.p.Now().UTC().Format(time.RFC3339),
			Unit: axis.Unit, Milestones: r.milestones(), Arrived: r.workload.Arrived,
		}
	}
	x, err := experimentOf(p)
	if err != nil {
		return x, err
	}
	if err := addWorkload(&x, r.workload, r.params); err != nil {
		return x, err
	}
	hold := time.Duration(p.Hold)
	x.Options = engine.Options{
		MaxInFlight: maxInFlight, Timeout: time.Duration(p.StepTimeout),
		Hold: hold, ShortHold: hold / shortHold, Guards: guardsOf(p),
	}
	if axis.Loop == workload.Open {
		o := &x.Options
		o.Open, o.Warmup, o.MaxInFlight = true, time.Duration(p.Axis.PodLife), openLabInFlight
		if r.lab == nil {
			o.MaxInFlight = openClusterInFlight
		}
		// Over a few seconds the rate that gets there is mostly chance.
		o.ShortHold = max(o.ShortHold, min(o.Hold, leastOpenHold))
		o.Timeout = followFor(x.Spec.Goals, o.Timeout)
	}
	if !pace.Max {
		x.Options.Pace = pace.PerSecond
	}
	x.Budget = time.Duration(p.Budget)
	x.Readings = r.readings
	return x, nil
}

// followFor is how long the objects of an open loop are followed: as long as
// any objective looks, and as long again, so that those that were too late have
// a figure.
func followFor(goals []slo.Goal, timeout time.Duration) time.Duration {
	const least = 10 * time.Second
	longest := least
	for _, g := range goals {
		for _, s := range g.SLOs {
			switch {
			case s.Form == slo.All && s.Within == 0:
				return timeout
			case s.Form == slo.All || s.Form == slo.Quantile:
				longest = max(longest, 2*s.Within)
			}
		}
	}
	return min(longest, timeout)
}

func guardsOf(p *plan.Plan) []engine.Guard {
	var guards []engine.Guard
	for _, name := range plan.GuardNames() {
		if bound, ok := p.Guards[name]; ok {
			guards = append(guards, engine.Guard{Name: name, Bound: float64(bound)})
		}
	}
	return guards
}

// readings reads what this program and the lab's components use.
func (r *runner) readings() []record.Sample {
	r.reading.Lock()
	defer r.reading.Unlock()
	if r.lab != nil && (len(r.pids) == 0 || r.p.Now().Sub(r.pidsAt) > findInterval) {
		r.findComponents()
	}
	samples := []record.Sample{}
	read := func(source string, pid int) error {
		u, err := telemetry.Of(pid)
		if err != nil {
			return err
		}
		values := map[string]float64{"cpuSeconds": u.CPUSeconds, "rssBytes": float64(u.RSSBytes)}
		if u.PeakBytes > 0 {
			values["peakBytes"] = float64(u.PeakBytes)
		}
		samples = append(samples, record.Sample{Source: source, Values: values})
		return nil
	}
	_ = read(analyze.SourceSelf, os.Getpid()) // what cannot be read is not known, and the result says null
	if r.lab != nil {
		if cpus, busy, err := telemetry.Machine(); err == nil {
			samples = append(samples, record.Sample{Source: analyze.SourceMachine, Values: map[string]float64{"cpuSeconds": busy, "cpus": float64(cpus)}})
		}
	}
	if r.lab != nil {
		samples = append(samples, r.realNodeReadings()...)
	}
	for source, pid := range r.pids {
		if read(source, pid) != nil {
			delete(r.pids, source) // gone, or started anew: found again soon
		}
	}
	return samples
}

// findInterval is how often the components' processes are looked for: that
// takes longer than reading them.
const findInterval = 15 * time.Second

func (r *runner) findComponents() {
	r.pids, r.pidsAt = make(map[string]int), r.p.Now()
	components, err := r.lab.Components()
	if err != nil {
		return
	}
	for _, c := range components {
		if c.PID != 0 && !slices.Contains(lab.RealNodeComponentNames(), c.Name) {
			r.pids[c.Name] = c.PID
		}
	}
}

// milestones are those of the workload's that its objects reach on these
// nodes: simulated ones need no images.
func (r *runner) milestones() []string {
	if r.foresight.real {
		return r.workload.Milestones
	}
	return withoutImages(r.workload.Milestones)
}

func withoutImages(milestones []string) []string {
	return slices.DeleteFunc(slices.Clone(milestones), func(m string) bool { return m == observe.ImagesReady })
}

// haveKubelets refuses to judge simulated nodes by what only a kubelet tells.
func (r *runner) haveKubelets() error {
	if r.foresight.real {
		return nil
	}
	const hint = "leave it out, or load nodes that have a kubelet, such as a laboratory's with --lab-real-node"
	for _, goal := range r.plan.Goals {
		for _, text := range goal.Value {
			if s, err := slo.Parse(text); err == nil && s.Milestone == observe.ImagesReady {
				return usagef(hint, "objective %q: these nodes are simulated, and fetch no images", text)
			}
		}
	}
	if p := r.plan.Primary; p != nil && strings.HasPrefix(p.Metric, observe.ImagesReady+" ") {
		return usagef(hint, "metric %q: these nodes are simulated, and fetch no images", p.Metric)
	}
	return nil
}

// load is the workload as the cluster takes it.
func (r *runner) load(variant cluster.Variant, arms map[string]cluster.Variant) cluster.Load {
	l := cluster.Load{
		Variant: variant, Arms: arms, RunID: r.id, UUID: r.uuid,
		Component: func(job, object int) string { return r.workload.ComponentOf(job, object, nil) },
		Abandon:   r.private, CanaryInterval: labCanary, NormalEvents: r.plan.NormalEvents, Images: r.foresight.real,
		Places:  r.lab != nil && r.lab.Spec().RealNode != nil,
		PodLife: time.Duration(r.plan.Axis.PodLife), Follow: time.Duration(r.plan.StepTimeout),
	}
	if r.lab == nil {
		l.CanaryInterval, l.Deletions = clusterCanary, clusterPace
		if !r.plan.Pace.Max {
			l.Deletions = r.plan.Pace.PerSecond
		}
		return l
	}
	labLatency := r.lab.Spec().StartLatency
	l.Planted = func(uid, annotation string) time.Duration {
		d, err := lab.StartLatencyOf(uid, annotation, labLatency)
		if err != nil {
			return 0 // the node says so in an event
		}
		return d
	}
	return l
}

// makeDir makes the run directory with the plan as it is run, and locks it. A
// run that goes on has its own, locked already.
func (r *runner) makeDir() (dir record.Dir, unlock func(), err error) {
	if r.resumed != nil {
		// A report of the run so far would pass for one of the whole.
		if err := os.Remove(r.resumed.dir.Path(record.ReportFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", nil, fmt.Errorf("remove the report of the run so far: %w", err)
		}
		return r.resumed.dir, func() {}, nil
	}
	path := r.out
	if path == "" {
		name := strings.Map(func(c rune) rune {
			if c == '/' || c == filepath.Separator || c == ' ' {
				return '-'
			}
			return c
		}, r.plan.Name)
		path = filepath.Join("plimsoll-runs", r.p.Now().UTC().Format("20060102-150405")+"-"+name)
	}
	dir, err = record.CreateDir(path)
	if errors.Is(err, os.ErrExist) {
		return "", nil, usagef("give another --out", "%w", err)
	}
	if err != nil {
		return "", nil, err
	}
	lock, err := dir.Lock()
	if err != nil {
		return "", nil, err
	}
	text, err := r.plan.Marshal()
	if err == nil {
		err = dir.WriteFile(record.ExperimentFile, text)
	}
	if err != nil {
		lock.Close()
		return "", nil, err
	}
	return dir, func() { lock.Close() }, nil
}

// commandLine is the command as a shell reads it.
func commandLine(args []string) string {
	words := []string{"plimsoll"}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]{}~#`!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// experimentOf is what analysis needs of a plan as it was run.
func experimentOf(p *plan.Plan) (experiment.Experiment, error) {
	goals, err := p.GoalsOf()
	if err != nil {
		return experiment.Experiment{}, err
	}
	fingerprint, err := p.Fingerprint()
	if err != nil {
		return experiment.Experiment{}, err
	}
	published, err := publishedOf(p)
	if err != nil {
		return experiment.Experiment{}, err
	}
	signatures, err := diagnose.Builtin()
	if err != nil {
		return experiment.Experiment{}, err
	}
	// Where nothing better is on record; else it is zero, and not known.
	started, _ := time.Parse(time.RFC3339, p.AsRun.Started)
	return experiment.Experiment{
		Plan: fingerprint,
		Spec: analyze.Spec{
			Start:      started,
			Experiment: p.Name, Workload: p.Workload, Kind: string(p.Kind), Command: p.AsRun.Command, Version: p.AsRun.Version,
			Axis: p.Axis.Name, Unit: p.AsRun.Unit, Goals: goals, Milestones: p.AsRun.Milestones, Arrived: p.AsRun.Arrived,
			Arms: armsOf(p), Published: published, Signatures: diagnose.Merge(signatures, p.Signatures), FreshLab: p.Fresh == plan.FreshLab,
		},
		Design: p.Design(),
	}, nil
}

// addWorkload makes the files of the workload part of the plan's fingerprint:
// a run that goes on must make the same objects.
func addWorkload(x *experiment.Experiment, w *workload.Workload, params workload.Params) error {
	files, err := w.Fingerprint(params)
	if err != nil {
		return fmt.Errorf("take the fingerprint of the workload %s: %w", w.Name, err)
	}
	x.Plan += "-" + files
	return nil
}

// publishedOf are the published figures as analysis takes them.
func publishedOf(p *plan.Plan) ([]analyze.PublishedSpec, error) {
	var list []analyze.PublishedSpec
	for _, f := range p.Published {
		value, err := f.Number()
		if err != nil {
			return nil, fmt.Errorf("published figure %q: %w", f.What, err)
		}
		list = append(list, analyze.PublishedSpec{What: f.What, Metric: f.Metric, Arm: f.Arm, Source: f.Source, Value: value, IsChange: f.Change != "", IsLine: f.Metric == plan.LineMetric})
	}
	return list, nil
}

// armsOf is what analysis needs of a comparison, nil for any other plan.
func armsOf(p *plan.Plan) *analyze.ArmsSpec {
	if p.Kind != plan.AB || p.Primary == nil {
		return nil
	}
	margin, _ := p.Primary.Share() // the plan is valid
	a := &analyze.ArmsSpec{Params: make(map[string]map[string]string), Metric: p.Primary.Metric, Margin: margin, Alpha: p.Primary.Alpha}
	for _, arm := range p.Arms {
		a.Names = append(a.Names, arm.Name)
		a.Params[arm.Name] = maps.Clone(map[string]string(arm.Params))
		if arm.Params == nil {
			a.Params[arm.Name] = map[string]string{}
		}
	}
	return a
}

// hostOf describes this machine.
func hostOf() record.Host {
	var h record.Host
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.OS, h.Kernel = unix.ByteSliceToString(name.Sysname[:]), unix.ByteSliceToString(name.Release[:])
	}
	h.CPUs = runtime.NumCPU() // as it was at the start, before it kept off a real node's
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	h.CgroupVersion = telemetry.CgroupVersion()
	return h
}
