package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/text/dist"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Provider opens Kubernetes clusters: labs of this machine, private ones that
// live as long as a session, and clusters by their kubeconfig.
type Provider struct{}

// Declare implements target.Provider.
func (Provider) Declare() workload.Target { return observe.Declare() }

// session is one opened cluster.
type session struct {
	target.Request

	renderings
	cluster *Cluster
	lab     *lab.Lab // nil for a cluster that is none
	private bool

	real    bool        // some node that takes the load has a kubelet
	usage   usageReader // of what the lab's parts use
	release func()      // of the processors that this program is kept to, or nil
	// instance is what is loaded, nil before it is open.
	instance atomic.Pointer[Target]
}

// Open implements target.Provider.
func (Provider) Open(ctx context.Context, r target.Request) (target.Session, error) {
	// What is wrong with the workload is found before a lab comes up.
	rendered, err := renderingsOf(r)
	if err != nil {
		return nil, err
	}
	s := &session{Request: r, renderings: rendered}
	show, end := s.Progress()
	err = s.open(ctx, show)
	end()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// open brings up the private lab, or finds the lab or cluster that was named.
func (s *session) open(ctx context.Context, show func(string)) error {
	t := s.Plan.Target
	switch {
	case t.LabName != "":
		return s.openNamedLab(ctx, t.LabName)
	case t.Kubeconfig != "":
		if err := s.connect(t.Kubeconfig, t.Context); err != nil {
			return err
		}
		l, err := s.cluster.LabOf(ctx, s.Host)
		s.lab = l
		return err
	}
	store, err := LabStore(ctx, s.Host)
	if err != nil {
		return err
	}
	latency, err := dist.Parse(t.Lab.StartLatency)
	if err != nil {
		return target.Mistakef("", "%w", err)
	}
	store.Progress = show
	spec := lab.Spec{Private: true, Nodes: t.Lab.Nodes, MaxPods: t.Lab.MaxPods, StartLatency: latency}
	if t.Lab.RealNode {
		if err := needImages(ctx, s.Request, store); err != nil {
			return err
		}
		spec.RealNode = &lab.RealNodeSpec{CPUs: t.Lab.NodeCPUs, MemoryBytes: int64(t.Lab.NodeMemory), PodCIDRPrefix: t.Lab.PodCIDRPrefix}
	}
	if s.lab, err = store.Up(ctx, spec); err != nil {
		return fmt.Errorf("bring up a private lab: %w", LabError(err))
	}
	s.private = true
	if err := s.connect(s.lab.Kubeconfig(), ""); err != nil {
		return err
	}
	s.cluster.Naming = record.TargetNaming{Kind: "lab", Name: s.lab.Name(), Private: true}
	return nil
}

func (s *session) openNamedLab(ctx context.Context, name string) error {
	l, err := OpenLab(ctx, s.Host, name)
	if err != nil {
		return err
	}
	status, err := l.Status(ctx)
	if err != nil {
		return err
	}
	if status.State != lab.Running {
		return fmt.Errorf("lab %q is %s; 'plimsoll lab status %s' shows more", name, status.State, name)
	}
	s.lab = l
	if err := s.connect(l.Kubeconfig(), ""); err != nil {
		return err
	}
	s.cluster.Naming = record.TargetNaming{Kind: "lab", Name: name}
	return nil
}

func (s *session) connect(kubeconfig, contextName string) error {
	c, err := Connect(kubeconfig, contextName, "plimsoll/"+s.Version, s.Now)
	s.cluster = c
	return err
}

// Consent implements target.Session: a lab of ours may be loaded, any other
// cluster when its user says so.
func (s *session) Consent(ctx context.Context) (*target.Consent, error) {
	if s.lab != nil {
		return nil, nil
	}
	summary, err := s.cluster.summary(ctx)
	if err != nil {
		return nil, err
	}
	consent := &target.Consent{System: summary, Why: "is not a plimsoll lab"}
	if exempt, err := s.cluster.Exempt(ctx); err == nil && exempt {
		consent.Warnings = append(consent.Warnings, "this user is exempt from API priority and fairness (system:masters): its load is not throttled and can starve others")
	}
	return consent, nil
}

// Sweep implements target.Session. Of a run that goes on everything goes,
// wherever it is and however lately it gave a sign of life: that it is dead is
// sure, since its record is not being written.
func (s *session) Sweep(ctx context.Context) error {
	if s.private {
		return nil
	}
	leftovers, err := s.cluster.Leftovers(ctx, len(s.Before) == 0)
	if err != nil {
		return err
	}
	for _, l := range leftovers {
		if l.Alive && !slices.Contains(s.Before, l.Run) {
			s.Log("note: run %s is loading this cluster too", l.Run)
			continue
		}
		s.Log("removing the leftovers of run %s: %s", l.Run, strings.Join(append(l.Namespaces, l.Others...), ", "))
		if err := s.cluster.Clean(ctx, l); err != nil {
			return fmt.Errorf("remove the leftovers of run %s: %w", l.Run, err)
		}
	}
	return nil
}

// Bounds implements target.Session. A lab is ours to load as fast as it goes;
// any other cluster is treated with care. On an axis of arrivals the bound of
// requests is there for the program's own sake: they must not pile up without
// end.
func (s *session) Bounds() target.Bounds {
	if s.lab != nil {
		return target.Bounds{Pace: plan.Pace{Max: true}, MaxInFlight: 64, MaxInFlightOpen: 256}
	}
	b := target.Bounds{Pace: plan.Pace{PerSecond: clusterPace}, MaxInFlight: 16, MaxInFlightOpen: 64, Guards: make(plan.Guards)}
	for _, m := range observe.Pods().Measures {
		if m.Bound > 0 {
			b.Guards[m.Name] = plan.Bound{Value: m.Bound, Percent: m.Percent}
		}
	}
	return b
}

const (
	clusterPace   = 20 // creations and deletions per second
	labCanary     = 250 * time.Millisecond
	clusterCanary = time.Second
)

// Renew implements target.Session: what a control plane keeps of earlier
// objects (its memory, its database) goes with it.
func (s *session) Renew(ctx context.Context) error {
	// Nobody reads what components use that are no more.
	defer s.usage.forget()()
	if err := s.Close(); err != nil {
		return err
	}
	s.lab = nil
	err := s.open(ctx, func(string) {}) // the run shows a progress of its own
	if err != nil && context.Cause(ctx) != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}

// Close implements target.Session.
func (s *session) Close() error {
	if s.release != nil {
		s.release()
		s.release = nil
	}
	if s.cluster != nil {
		s.cluster.Close()
		s.cluster = nil
	}
	if !s.private {
		return nil
	}
	s.private = false
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.lab.Down(ctx); err != nil {
		return fmt.Errorf("remove the private lab: %w", err)
	}
	return nil
}

// mistakes makes *target.MistakeErrors of what is wrong with a workload's
// templates.
func mistakes(err error) error {
	if len(strictyaml.Problems(err)) > 0 {
		return target.Mistakef("", "%w", err)
	}
	return err
}
