package kubernetes

import (
	"context"
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
)

// Target implements target.Session.
func (s *session) Target(ctx context.Context, rec target.Recorder) (target.Instance, error) {
	s.release = keepApart(s.lab)
	t, err := s.cluster.Open(ctx, s.load(), rec.Sink, rec.Clock, rec.Step, rec.Fail)
	if err != nil {
		return nil, mistakes(err)
	}
	s.instance.Store(t)
	return &loaded{t, s, rec, s.release != nil}, nil
}

// load is the workload as the cluster takes it.
func (s *session) load() PreparedWorkload {
	l := PreparedWorkload{
		Axis: s.Plan.Axis.Name, Variant: s.variant, Arms: make(map[string]Variant), RunID: s.Run, UUID: s.UUID, Component: s.Workload.ComponentOf,
		Abandon: s.private, CanaryInterval: labCanary, NormalEvents: s.Plan.NormalEvents, Images: s.real,
		Places:  s.lab != nil && s.lab.Spec().RealNode != nil,
		PodLife: time.Duration(s.Plan.Axis.PodLife), Follow: time.Duration(s.Plan.StepTimeout),
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
		d, err := lab.StartLatencyOf(uid, annotation, labLatency)
		if err != nil {
			return 0 // the node says so in an event
		}
		return d
	}
	return l
}

// keepApart keeps this program off the processors of a real node that has some
// of its own, as far as others are left, until it is released; nil where it is
// not kept off them.
func keepApart(l *lab.Lab) (release func()) {
	if l == nil {
		return nil
	}
	_, beside := l.RealNodeProcessors()
	if len(beside) == 0 {
		return nil
	}
	release, err := cpu.Keep(beside)
	if err != nil {
		return nil // the record says that it is not kept apart
	}
	return release
}

// loaded completes what a target tells of itself by what its lab knows.
type loaded struct {
	*Target
	s     *session
	rec   target.Recorder
	apart bool // this program is kept off the real node's processors
}

// Raise implements target.Target.
func (t *loaded) Raise(ctx context.Context, level target.Level) (target.Batch, error) {
	t.putDurations(ctx)
	return t.Target.Raise(ctx, level)
}

// Account implements target.Target.
func (t *loaded) Account(ctx context.Context) (target.Spread, error) {
	t.putDurations(ctx)
	return t.Target.Account(ctx)
}

// putDurations puts on record what a real node's kubelet publishes of its work.
func (t *loaded) putDurations(ctx context.Context) {
	if t.s.lab == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, durationsPatience)
	defer cancel()
	list, err := t.s.lab.RealNodeDurations(ctx)
	if err != nil {
		t.rec.Emit(&record.Note{Warning: record.WarningNotKnown, Text: fmt.Sprintf("the kubelet's histograms could not be read: %v", err)})
		return
	}
	for _, d := range list {
		t.rec.Emit(&record.ComponentHistogram{Source: lab.Kubelet, Name: d.Name, Count: d.Count, Sum: d.Sum, Bounds: d.Bounds, Counts: d.Counts})
	}
}

// durationsPatience is how long a kubelet may take to tell.
const durationsPatience = 5 * time.Second

// Describe implements target.Target.
func (t *loaded) Describe(ctx context.Context) (record.Environment, error) {
	env, err := t.Target.Describe(ctx)
	if t.s.lab == nil {
		return env, err
	}
	if t.s.lab.Spec().RealNode != nil {
		env.Host.Runtimes = t.s.lab.RealNodeVersions()
		env.Isolation.Notes = append(env.Isolation.Notes, t.processors())
	}
	env.Isolation.Notes = append(env.Isolation.Notes, "the control plane, the load generator and the observer share this machine's CPUs")
	return env, err
}

// processors says which of this machine's processors a real node may use.
func (t *loaded) processors() string {
	node, beside := t.s.lab.RealNodeProcessors()
	note := "the real node may use all processors of this machine"
	switch {
	case len(node) > 0 && len(beside) > 0 && t.apart:
		note = fmt.Sprintf("the real node is kept to processors %v, the control plane, the load generator and the observer to %v", node, beside)
	case len(node) > 0 && len(beside) > 0:
		note = fmt.Sprintf("the real node is kept to processors %v, the control plane to %v; the load generator and observer may use all", node, beside)
	case len(node) > 0:
		note = fmt.Sprintf("the real node is kept to processors %v, which are all that there are: the control plane shares them", node)
	}
	if cpus := t.s.lab.Spec().RealNode.CPUs; cpus > 0 && cpus < float64(len(node)) {
		note += fmt.Sprintf("; it gets the time of %g", cpus)
	}
	return note
}
