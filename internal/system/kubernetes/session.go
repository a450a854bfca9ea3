package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/survey"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/virt"
)

// Target implements system.Session.
func (s *session) Target(ctx context.Context, rec system.Recorder) (system.Instance, error) {
	s.release = keepApart(s.lab)
	if !s.private && s.held == nil {
		s.held = sweep.Hold(s.Host, s.Run)
	}
	s.clean = false
	t, err := s.openTarget(ctx, s.load(), rec)
	if err != nil {
		return nil, mistakes(err)
	}
	s.instance.Store(t)
	for _, note := range s.beside {
		rec.Emit(&record.Note{Warning: record.WarningBeside, Text: note})
	}
	for _, note := range s.unknown {
		rec.Emit(&record.Note{Warning: record.WarningNotKnown, Text: note})
	}
	return t, nil
}

func (s *session) load() prepared.Workload {
	named := s.Plan.Axis.Name
	if axis, err := s.Workload.Axis(named); err == nil {
		named = axis.Means
	}
	l := prepared.Workload{
		Axis: named, Objects: described.Of(s.Workload), Beside: described.Beside(s.Workload), Progress: s.Progress, Variant: s.variant, Arms: make(map[string]prepared.Variant), RunID: s.Run, UUID: s.UUID, Namespace: s.namespace, Component: s.Workload.ComponentOf, AsItIs: s.Workload.AsItIs,
		Abandon: s.private, CanaryInterval: labCanary, NormalEvents: s.Plan.NormalEvents, Images: s.real,
		Places:  s.lab != nil && s.lab.Spec().RealNode,
		PodLife: time.Duration(s.Plan.Axis.Life), Follow: time.Duration(s.Plan.StepTimeout),
	}
	if l.AsItIs { // its parts are its jobs
		jobs := s.variant.Config.Jobs
		l.Component = func(job, _ int) string { return jobs[job].Name }
	}
	for _, a := range s.arms {
		l.Arms[a.arm] = a.Variant
	}
	if s.lab == nil {
		l.CanaryInterval, l.Deletions = clusterCanary, clusterPace
		if !s.Plan.Pace.Max {
			l.Deletions = s.Plan.Pace.PerSecond
		}
		return l
	}
	labLatency := s.lab.Spec().StartLatency
	l.Planted = func(uid, annotation string) time.Duration {
		d, _ := protocol.StartLatencyOf(uid, annotation, labLatency) // the node tells an error in an event
		return d
	}
	return l
}

// at returns the variant of an arm at a level that is the value of a parameter.
func (s *session) at(level system.Level) (v prepared.Variant, err error) {
	r, p := s.Request, *s.Plan
	p.Axis.Level, p.Axis.Levels, p.Axis.Search = &level.Value, nil, nil
	r.Plan = &p
	err = r.EachArm(func(arm string, given map[string]string) (err error) {
		if arm == level.Arm {
			v, err = variantOf(r, given, nil)
		}
		return err
	})
	return v, err
}

// keepApart keeps this program off a real node's processors, as far as others are left, until release.
func keepApart(l *lab.Lab) (release func()) {
	if l == nil {
		return nil
	}
	if _, beside := l.RealNodeProcessors(); len(beside) > 0 {
		release, _ = cpu.Keep(beside) // the record says where it is not kept apart
	}
	return release
}

// refuse says why the lab cannot take a level, nil if it can.
func (t *Target) refuse(level system.Level) error {
	if t.session.lab == nil {
		return nil
	}
	load := t.population.Rendering
	if arm, ok := t.arms[level.Arm]; ok {
		load = arm
	}
	objects := int(level.Value) * t.population.PerIteration()
	if t.Load.Axis == observe.AxisBulk || t.Load.Axis == observe.AxisSettings {
		objects = t.population.Whole()
	}
	return t.session.machines.Refuse(t.session.lab.Spec(), level, objects, load.Params)
}

// putDurations records histograms of kubelet and garbage collection, the controllers' client limits, and
// with described objects the API server's requests.
func (t *Target) putDurations(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, durationsPatience)
	defer cancel()
	if t.Load.Objects != nil {
		list, err := requests(ctx, t.session.cluster.client)
		if err != nil {
			t.Emit(&record.Note{Warning: record.WarningNotKnown, Text: fmt.Sprintf("the requests for each object are unknown: %v", err)})
		}
		for _, h := range list {
			t.Emit(h)
		}
	}
	if t.session.lab == nil {
		return
	}
	for _, source := range []string{protocol.Kubelet, protocol.APIServer, protocol.Scheduler, protocol.ControllerManager} {
		list, err := t.session.lab.Histograms(ctx, source)
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause // the request's error only says that it was cut off
		}
		if err != nil {
			t.Emit(&record.Note{Warning: record.WarningNotKnown, Text: fmt.Sprintf("the histograms of the %s could not be read: %v", source, err)})
		}
		for _, d := range list {
			t.Emit(&record.ComponentHistogram{Source: source, Name: d.Name, Count: d.Count, Sum: d.Sum, Bounds: d.Bounds, Counts: d.Counts})
		}
	}
}

const durationsPatience = 5 * time.Second // bounds the wait for these histograms

func (s *session) describeLab(env *record.Environment) {
	var placement []string
	env.Facts = append(env.Facts, labFacts(s.lab.Spec())...)
	if s.lab.Spec().RealNode {
		env.Facts = append(env.Facts, record.Versions(s.lab.RealNodeVersions())...)
		placement = append(placement, s.processors())
	}
	s.machines.Describe(s.lab.Spec(), &env.Fidelity)
	if cpus := s.lab.Spec().ControlPlaneCPUs; cpus > 0 {
		placement = append(placement, fmt.Sprintf("the control plane gets the time of %g processors", cpus))
	}
	placement = append(placement, "the control plane, the load generator and the observer share this machine's CPUs")
	env.Facts = append(env.Facts, record.Placement(strings.Join(placement, "; ")))
}

func (s *session) processors() string {
	node, beside := s.lab.RealNodeProcessors()
	note := "the real node may use all processors of this machine"
	switch {
	case len(node) > 0 && len(beside) > 0 && s.release != nil:
		note = fmt.Sprintf("the real node is kept to processors %v, the control plane, the load generator and the observer to %v", node, beside)
	case len(node) > 0 && len(beside) > 0:
		note = fmt.Sprintf("the real node is kept to processors %v, the control plane to %v; the load generator and observer may use all", node, beside)
	case len(node) > 0:
		note = fmt.Sprintf("the real node is kept to processors %v, which are all that there are: the control plane shares them", node)
	}
	if cpus := s.lab.Spec().NodeCPUs; cpus > 0 && cpus < float64(len(node)) {
		note += fmt.Sprintf("; it gets the time of %g", cpus)
	}
	return note
}

// Survey implements system.Session.
func (s *session) Survey(ctx context.Context, thorough bool) (system.Survey, error) {
	found := system.Survey{Target: s.cluster.Naming, Server: s.cluster.Server, Kind: observe.Pods()}
	if s.Workload != nil {
		found.Kind = s.Workload.KindOn(s.Plan.Axis.Name)
	}
	seen, err := s.cluster.Survey(ctx)
	if err != nil {
		return found, err
	}
	if s.Workload != nil && found.Kind.Concurrent != nil {
		if err := readLimits(ctx, s.cluster.client, described.Of(s.Workload).Concurrent.Limits, found.Kind.Concurrent); err != nil {
			s.Log("note: the limits that %s are checked against are unknown: %v", found.Kind.Object.Many, err)
		}
		if from, to := described.Of(s.Workload).Concurrent.Limits, found.Kind.Concurrent; from != nil {
			to.Limit, to.PerPlaceLimit = changed(s.toLoad(), to.Limit, from.All), changed(s.toLoad(), to.PerPlaceLimit, from.PerPlace)
		}
	}
	if by := found.Kind.GroupBy; by != nil {
		by.Places = seen.Labels(by.Labels)
	}
	found.Version = seen.Version
	looks, err := s.assessArms(ctx, seen)
	if err != nil {
		return found, err
	}
	for _, l := range looks {
		s.real = s.real || slices.ContainsFunc(l.Facts.Nodes, func(n ceiling.Node) bool { return !n.Simulated })
	}
	if !s.real {
		if s.unanswered(); s.Workload != nil {
			found.Kind.Milestones = s.Workload.KindOn(s.Plan.Axis.Name).Milestones
		}
		found.Kind.Milestones = slices.DeleteFunc(slices.Clone(found.Kind.Milestones), func(m record.Milestone) bool { return m.Name == observe.ImagesReady })
		if err := haveKubelets(s.Plan); err != nil && s.Workload != nil && !s.ToRead {
			return found, err
		}
	}
	if thorough {
		seen.Kubelets(ctx, looks[0].Assessment)
		health := seen.Health()
		health.Found, health.Clean, health.Stays = looks[0].Findings, s.Clean, s.namespace
		if err := seen.Examine(ctx, &health, looks[0].Needs, s.namespace); err != nil {
			return found, err
		}
		found.Findings = ceiling.Judge(health)
	} else {
		health := seen.Health()
		health.Stays = s.namespace
		for _, f := range ceiling.Vital(health) {
			if f.Severity != record.SeverityOK {
				found.Findings = append(found.Findings, f)
			}
		}
		for _, l := range looks {
			for _, f := range ceiling.Stopping(l.Findings) {
				if !slices.ContainsFunc(found.Findings, func(told record.HealthFinding) bool { return told.Text == f.Text }) { // of an arm
					found.Findings = append(found.Findings, f)
				}
			}
		}
	}
	for _, l := range looks {
		table := ceiling.Compute(l.Facts)
		table.Arm = l.arm
		found.Tables = append(found.Tables, table)
	}
	return found, nil
}

// armAssessment is the assessment of one arm, or of the workload itself for "".
type armAssessment struct {
	*survey.Assessment
	arm string
}

func (s *session) assessArms(ctx context.Context, from *survey.Survey) ([]armAssessment, error) {
	arms := s.toLoad()
	if s.ToRead {
		arms = []armVariant{{"", s.variant}}
	}
	var list []armAssessment
	for _, a := range arms {
		l, err := s.assess(ctx, from, a.Variant)
		if err != nil {
			return nil, err
		}
		list = append(list, armAssessment{l, a.arm})
	}
	return list, nil
}

func (s *session) assess(ctx context.Context, from *survey.Survey, v prepared.Variant) (*survey.Assessment, error) {
	d, err := demandOf(s.Request, s.machines, v)
	d.Namespace = s.namespace
	if err != nil {
		return nil, err
	}
	l, err := from.Assess(ctx, d)
	if err == nil && v.Config != nil {
		if s.lab == nil {
			l.NeedImages(func(name string) string { return imageRemedy(s.Request, name) })
		} else if lacks := s.lacksDatabase(); lacks != nil {
			l.Mistake(lacks)
		}
	}
	if err == nil && s.ToRead && v.Config != nil {
		if err := create.RepeatedNames(v, prepared.Identity{UUID: s.UUID, Run: s.Run}, asItStands(s.Request)); err != nil {
			l.Found(record.SeverityError, "workload", "", "%v", err)
		}
		err = s.try(ctx, v, l)
	}
	return l, mistakes(err)
}

// try sends dry runs of all objects to the cluster, and adds its refusals to the findings.
func (s *session) try(ctx context.Context, v prepared.Variant, l *survey.Assessment) error {
	mapper, err := s.cluster.client.Mapper()
	if err != nil {
		return err
	}
	where := ""
	if s.namespace == "" {
		where = " (asked for in namespace default, since the run's own is not there yet)"
	}
	tried, err := create.Refusals(ctx, s.cluster.client, s.namespace, v, prepared.Identity{UUID: s.UUID, Run: s.Run}, mapper)
	if dead, is := errors.AsType[*api.WebhookError](err); is {
		l.Found(record.SeverityError, "webhooks", dead.Remedy(), "%v", dead)
		err = nil
	}
	for _, p := range tried.Refused {
		hint := p.Hint
		p.Hint = ""
		l.Found(record.SeverityError, "workload", hint, "a dry run was refused: %s%s", p.String(), where)
	}
	for _, p := range tried.Ignored {
		l.Found(record.SeverityWarning, "workload", "", "%s: the API ignores it", p.String())
	}
	if len(tried.Unknown) > 0 {
		l.Found(record.SeverityWarning, "workload", "", "whether the cluster takes all that a run makes is unknown: %s", strings.Join(tried.Unknown, "; "))
	}
	return err
}

func demandOf(r system.Request, machines *virt.Machines, v prepared.Variant) (survey.Demand, error) {
	d := survey.Demand{
		Variant: v, RunID: r.Run, UUID: r.UUID, Axis: ceiling.Axis{Name: observe.AxisPodsPerNode, Unit: "pods/node"}, ToLoad: !r.ToRead, AsItIs: r.Workload != nil && r.Workload.AsItIs,
		Objects: described.Of(r.Workload), Beside: described.Beside(r.Workload), Beyond: machines.Rights(v.Params),
	}
	if r.Workload == nil {
		return d, nil
	}
	d.Workload = r.Workload.Name
	d.Beyond = append(d.Beyond, scrapeRights(r.Plan)...)
	axis, err := r.Workload.Axis(r.Plan.Axis.Name)
	if err != nil {
		return d, err
	}
	d.Means, d.Open = axis.Means, axis.Loop == workload.Open
	d.Axis = ceiling.Axis{Name: axis.Name, Unit: axis.Unit, Foreign: d.Objects != nil || axis.Means != observe.AxisPodsPerNode && axis.Loop != workload.Open}
	if d.Open {
		d.Axis.Life = time.Duration(r.Plan.Axis.Life)
		d.Axis.Span = d.Axis.Life + time.Duration(r.Plan.Hold)
	}
	return d, nil
}

// unanswered makes services count by their endpoints: on simulated nodes nothing answers.
func (s *session) unanswered() {
	if s.Workload == nil {
		return
	}
	w := *s.Workload
	w.Beside = slices.Clone(w.Beside)
	for i, o := range described.Beside(&w) {
		without, was, now := o.Unanswered()
		if without == nil {
			continue
		}
		w.Beside[i] = without
		s.unknown = append(s.unknown, fmt.Sprintf("%s of %s is unknown, because nothing answers on simulated nodes; %s is measured", was, o.Noun.Many, now))
		for _, goal := range s.Plan.Goals {
			if i := slices.Index(goal.Value, "all "+was); i >= 0 {
				goal.Value[i] = "all " + now
			}
		}
		if p := s.Plan.Primary; p != nil {
			p.Metric = strings.Replace(p.Metric, was+" ", now+" ", 1)
		}
	}
	s.Workload = &w
}

// haveKubelets refuses objectives and metrics that need a kubelet, for simulated nodes.
func haveKubelets(p *plan.Plan) error {
	const hint = "leave it out, or load nodes that have a kubelet, such as a lab's with --lab-real-node"
	for milestone, lacks := range map[string]string{observe.ImagesReady: "fetch no images", kubeburner.ServiceReady: "no service answers there", kubeburner.PolicyMinReady: "make no connections", kubeburner.PolicyReady: "make no connections"} {
		replaced := milestone != observe.ImagesReady // what a configuration asks for by itself; see unanswered
		for _, goal := range p.Goals {
			for _, text := range goal.Value {
				if o, err := slo.Parse(text); err == nil && o.Milestone == milestone && !(replaced && text == "all "+milestone) {
					return system.Mistakef(hint, "objective %q: these nodes are simulated, and %s", text, lacks)
				}
			}
		}
		if p.Primary == nil {
			continue
		}
		for _, metric := range p.Primary.Metrics() {
			if strings.HasPrefix(metric, milestone+" ") && !(replaced && metric == p.Primary.Metric) {
				return system.Mistakef(hint, "metric %q: these nodes are simulated, and %s", metric, lacks)
			}
		}
	}
	return nil
}

// Readings implements system.Session: the usage of a lab's processes and of this machine.
func (s *session) Readings() []record.Reading {
	s.usage.Lock()
	defer s.usage.Unlock()
	if s.lab == nil {
		return nil
	}
	samples := []record.Reading{telemetry.Reading()}
	component := s.component
	if t := s.instance.Load(); t != nil && len(s.Workload.Components) > 0 {
		component = t.ComponentOfPod
	}
	samples = append(samples, s.usage.realNode(s.lab, s.Workload, component)...)
	if s.cluster != nil {
		samples = append(samples, s.machines.Readings(s.lab.Spec(), s.cluster.client)...)
	}
	return append(samples, s.usage.processes(s.lab, s.Now())...)
}

// usageReader reads the usage of a lab's parts. It is locked meanwhile, and while the lab is made again.
type usageReader struct {
	sync.Mutex
	pids      map[string]int // of the lab's components
	pidsAt    time.Time
	meter     *realnode.Meter    // of the lab's real node, nil before it is first read
	endpoints []metrics.Endpoint // nil before the first call
}

// Listing processes takes longer than reading them, so it happens rarely; guests come and go with the load.
const (
	findInterval  = 15 * time.Second
	guestInterval = 2 * time.Second
)

func (r *usageReader) processes(l *lab.Lab, now time.Time) []record.Reading {
	interval := findInterval
	if l.Spec().RealGuests > 0 {
		interval = guestInterval
	}
	if len(r.pids) == 0 || now.Sub(r.pidsAt) > interval {
		r.pids, r.pidsAt = make(map[string]int), now
		components, err := l.Components()
		if err != nil {
			return nil
		}
		for _, c := range components {
			if c.PID != 0 && !slices.Contains(lab.RealNodeComponentNames(), c.Name) {
				r.pids[c.Name] = c.PID
			}
		}
		maps.Copy(r.pids, l.RealGuests())
	}
	var samples []record.Reading
	for source, pid := range r.pids {
		u, err := proc.Read(pid)
		if err != nil {
			delete(r.pids, source) // it ended or restarted; the next listing has it again
			continue
		}
		samples = append(samples, u.Sample(source))
	}
	return samples
}

// realNode reads the usage of a real node's parts; component, or nil, maps a pod's UID to a component.
func (r *usageReader) realNode(l *lab.Lab, w *workload.Workload, component func(uid string) string) []record.Reading {
	if r.meter == nil {
		meter, err := l.RealNodeMeter()
		if err != nil || meter == nil {
			return nil // unknown: the result says null
		}
		r.meter = meter
	}
	uses, err := r.meter.Read(component)
	if err != nil {
		return nil
	}
	if w == nil {
		w = new(workload.Workload)
	}
	// Components without a process yet start at zero.
	for _, c := range w.Components {
		part := realnode.ComponentPart(c.Name)
		if component != nil && !slices.ContainsFunc(uses, func(u realnode.Use) bool { return u.Part == part }) {
			uses = append(uses, realnode.Use{Part: part})
		}
	}
	samples := make([]record.Reading, 0, len(uses))
	for _, u := range uses {
		sample := u.Sample(u.Part)
		if u.Processes > 0 {
			sample.Values["processes"] = float64(u.Processes)
		}
		samples = append(samples, sample)
	}
	return samples
}
