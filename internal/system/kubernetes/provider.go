package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/image"
	"plimsoll.dev/plimsoll/internal/lab/protocol"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	own "plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/sweep"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/virt"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Provider opens Kubernetes clusters: labs of this machine, private ones that
// live as long as a session, and clusters by their kubeconfig.
type Provider struct {
	// Machines says that virtual machines are loaded: the target is KubeVirt.
	Machines bool
}

// Declare implements system.Provider.
func (p Provider) Declare() workload.Target {
	declared := observe.Declare()
	declared.Facts = declaredFacts()
	declared.Settings = func() own.Own { return new(Settings) }
	if p.Machines {
		declared.Name, declared.Objects = virt.Name, described.OfMachines
	}
	return declared
}

// session is one opened cluster.
type session struct {
	system.Request

	renderings
	opened
	machines *virt.Machines

	// namespace is one that exists and that all is made in, "" for the run's own.
	namespace string

	real    bool        // some node that takes the load has a kubelet
	usage   usageReader // of what the lab's parts use
	release func()      // of the processors that this program is kept to, or nil
	beside  []string    // what is told of other runs that may load the cluster
	// held ends what says that this run is alive, nil before it is said.
	held  func(clean bool)
	clean bool // nothing is left of it
	// instance is what is loaded, nil before it is open.
	instance atomic.Pointer[Target]
}

// opened is a cluster, and the lab that it is.
type opened struct {
	cluster *Cluster
	lab     *lab.Lab // nil for a cluster that is none
	private bool
}

// Open implements system.Provider.
func (Provider) Open(ctx context.Context, r system.Request) (system.Session, error) {
	// What is wrong with the workload is found before a lab comes up.
	rendered, err := renderingsOf(r, nil)
	if err != nil {
		return nil, err
	}
	s := &session{Request: r, renderings: rendered, machines: virt.Of(r)}
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
	t := settingsOf(s.Plan)
	s.namespace = t.Namespace
	if err := s.find(ctx, t, show); err != nil {
		return err
	}
	return s.cluster.haveNamespace(ctx, t.Namespace)
}

// find connects to what is loaded.
func (s *session) find(ctx context.Context, t *Settings, show func(string)) error {
	switch {
	case t.LabName != "":
		return s.openNamedLab(ctx, s.Host, t.LabName)
	case t.Kubeconfig != "":
		if err := s.connect(t.Kubeconfig, t.Context, s.Host); err != nil {
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
	store.Progress = show
	spec := privateLab(s.Plan, t, s.machines)
	if spec.RealNode {
		if err := needImages(ctx, s.Request, store); err != nil {
			return err
		}
	}
	if s.lab, err = store.Up(ctx, spec); err != nil {
		return fmt.Errorf("bring up a private lab: %w", LabError(err))
	}
	s.private = true
	if err := s.connect(s.lab.Kubeconfig(), "", s.Host); err != nil {
		return err
	}
	s.cluster.Naming = record.TargetNaming{Kind: "lab", Name: s.lab.Name(), Private: true}
	return nil
}

// privateLab is the lab that a plan brings up.
func privateLab(p *plan.Plan, t *Settings, machines *virt.Machines) lab.Spec {
	spec := lab.Spec{Private: true, Shape: *t.Lab, Pods: podsAsked(p, t.Lab.Nodes)}
	machines.Lab(&spec)
	return spec
}

// checked refuses a target that a run would refuse before it asks a cluster anything: a
// kubeconfig that cannot be used, a lab that does not exist, one that this machine has no
// room for, or objectives that it cannot be judged by.
func checked(r system.Request, t *Settings, machines *virt.Machines) error {
	switch {
	case t.LabName != "":
		dir, err := r.StateDir()
		if err == nil {
			_, err = lab.Store{Root: dir, Executable: r.Executable}.Open(t.LabName)
		}
		return LabError(err)
	case t.Kubeconfig != "":
		chosen, err := readKubeconfig(t.Kubeconfig, t.Context)
		if err == nil {
			_, err = chosen.rest(t.Kubeconfig)
		}
		return err
	case t.Lab != nil:
		if err := privateLab(r.Plan, t, machines).Check(); err != nil {
			return LabError(err)
		}
		if r.Workload != nil && !t.Lab.RealNode {
			return haveKubelets(r.Plan)
		}
	}
	return nil
}

// whole reports whether a run makes as many iterations of a job as the configuration asks
// for: all jobs of one that runs as it stands, and else those before the last one that
// are not made along with it.
func whole(w *workload.Workload, jobs []kubeburner.Job, job int) bool {
	if w.AsItIs || job == len(jobs)-1 {
		return w.AsItIs
	}
	of := described.Of(w)
	return of == nil || slices.ContainsFunc(of.SetUp, func(s described.SetUp) bool { return s.Once && s.Job == jobs[job].Name })
}

// podsAsked is how many pods the plan will have in its lab of so many nodes at
// once by what it says itself, 0 where it does not say it.
func podsAsked(p *plan.Plan, nodes int) int {
	if p.Axis.Name != observe.AxisPodsPerNode {
		return 0
	}
	return int(math.Ceil(p.Certain() * float64(nodes)))
}

func (o *opened) openNamedLab(ctx context.Context, host system.Host, name string) error {
	l, err := OpenLab(ctx, host, name)
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
	o.lab = l
	if err := o.connect(l.Kubeconfig(), "", host); err != nil {
		return err
	}
	o.cluster.Naming = record.TargetNaming{Kind: "lab", Name: name}
	return nil
}

func (o *opened) connect(kubeconfig, contextName string, host system.Host) error {
	c, err := Connect(kubeconfig, contextName, host)
	o.cluster = c
	return err
}

// Consent implements system.Session: a lab of ours may be loaded, any other
// cluster when its user says so.
func (s *session) Consent(ctx context.Context) (*system.Consent, error) {
	if s.lab != nil {
		return nil, nil
	}
	summary, err := s.cluster.summary(ctx)
	if err != nil {
		return nil, err
	}
	consent := &system.Consent{System: summary, Why: "is not a plimsoll lab"}
	if exempt, err := s.cluster.client.Exemption(ctx); err == nil && exempt != nil && *exempt {
		consent.Warnings = append(consent.Warnings, "this user is exempt from API priority and fairness (system:masters): its load is not throttled and can starve others")
	}
	changes, err := s.settingTexts(ctx)
	consent.Warnings = append(consent.Warnings, changes...)
	if err != nil {
		return nil, err
	}
	return consent, s.machines.Agree(ctx, s.cluster.client, consent)
}

// Sweep implements system.Session. Of a run that goes on everything goes,
// wherever it is and however lately it gave a sign of life: that it is dead is
// sure, since its record is not being written.
func (s *session) Sweep(ctx context.Context) error {
	if s.private {
		return nil
	}
	leftovers, err := s.cluster.Leftovers(ctx, len(s.Before) == 0, s.namespace)
	if api.Refused(err) && len(s.Before) == 0 {
		s.Log("note: whether an earlier run has left anything is unknown: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if s.Wait {
		if leftovers, err = s.awaitOthers(ctx, leftovers); err != nil {
			return err
		}
	}
	s.beside = nil
	for _, l := range leftovers {
		if l.Alive && !slices.Contains(s.Before, l.Run) {
			note := besideText(l, s.Request.Clean)
			s.beside = append(s.beside, note)
			s.Log("note: %s", note)
			continue
		}
		s.Log("removing the leftovers of run %s: %s", l.Run, l.What())
		if err := s.cluster.Clean(ctx, l); err != nil {
			return fmt.Errorf("remove the leftovers of run %s: %w", l.Run, err)
		}
	}
	return nil
}

// besideText tells of a run that is, or may be, loading the cluster too; clean is
// the command that removes what it left.
func besideText(l sweep.Leftover, clean string) string {
	if l.Here {
		return fmt.Sprintf("run %s of this machine is loading this cluster too, and what it has there counts in the levels; --wait waits for its end", l.Run)
	}
	return fmt.Sprintf("run %s may be loading this cluster too, and what it has there counts in the levels. Its last sign of life was at %s: without another it counts as dead from %s on. --wait waits for that; if it is dead, this removes it now: %s --run %s --force",
		l.Run, clockTime(l.LastSign), clockTime(l.DeadFrom()), clean, l.Run)
}

// clockTime is a time of day as a user reads it.
func clockTime(t time.Time) string { return t.Local().Format("15:04:05") }

// awaitOthers waits until no other run is going on, and is what is left then.
func (s *session) awaitOthers(ctx context.Context, leftovers []sweep.Leftover) ([]sweep.Leftover, error) {
	show, end := s.Progress()
	defer end()
	for {
		var runs []string
		for _, l := range leftovers {
			if l.Alive && !slices.Contains(s.Before, l.Run) {
				runs = append(runs, fmt.Sprintf("%s (last sign of life at %s)", l.Run, clockTime(l.LastSign)))
			}
		}
		if len(runs) == 0 {
			return leftovers, nil
		}
		show("waiting for the end of run " + strings.Join(runs, ", "))
		if !api.Sleep(ctx, othersInterval) {
			return nil, fmt.Errorf("wait for the end of run %s: %w", strings.Join(runs, ", "), context.Cause(ctx))
		}
		var err error
		if leftovers, err = s.cluster.Leftovers(ctx, len(s.Before) == 0, s.namespace); err != nil {
			return nil, err
		}
	}
}

// othersInterval is how often it is looked whether other runs go on.
const othersInterval = time.Second

// Bounds implements system.Session. A lab is ours to load as fast as it goes;
// any other cluster is treated with care. A node that is not ready is a breach of
// both: the load may be why. On an axis of arrivals the bound of
// requests is there for the program's own sake: they must not pile up without
// end.
func (s *session) Bounds() system.Bounds {
	b := system.Bounds{Pace: plan.Pace{PerSecond: clusterPace}, MaxInFlight: 16, MaxInFlightOpen: 64, Guards: make(plan.Guards)}
	if s.lab != nil {
		b.Pace, b.MaxInFlight, b.MaxInFlightOpen = plan.Pace{Max: true}, 64, 256
	}
	for _, m := range observe.Pods().Measures {
		if m.Bound > 0 && (s.lab == nil || m.Name == observe.NodesNotReady) {
			b.Guards[m.Name] = plan.Bound{Value: m.Bound, Percent: m.Percent}
		}
	}
	s.machines.Bounds(&b)
	return b
}

const (
	clusterPace   = 20 // creations and deletions per second
	labCanary     = 250 * time.Millisecond
	clusterCanary = time.Second
)

// Renew implements system.Session: what a control plane keeps of earlier
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

// Close implements system.Session.
func (s *session) Close() error {
	if s.release != nil {
		s.release()
		s.release = nil
	}
	if s.cluster != nil {
		s.cluster.Close()
		s.cluster = nil
	}
	if s.held != nil {
		s.held(s.clean)
		s.held = nil
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

// mistakes turns what is wrong with a workload's templates into a
// *system.MistakeError.
func mistakes(err error) error {
	if _, told := errors.AsType[*system.MistakeError](err); !told && len(strictyaml.Problems(err)) > 0 {
		return system.Mistakef("", "%w", err)
	}
	return err
}

// renderings are a workload's: by the plan's parameters, and with those of each
// arm. Without a workload all are empty.
type renderings struct {
	variant prepared.Variant
	arms    []armVariant // in the order of the plan
}

// armVariant is the rendering of an arm, of the workload itself for "".
type armVariant struct {
	arm string
	prepared.Variant
}

// renderingsOf renders the workload of a request, and each arm of it, with what was
// filled in besides, whatever the plan says, which stays out of the plan.
func renderingsOf(r system.Request, filled map[string]string) (all renderings, err error) {
	if all.variant, err = variantOf(r, r.Plan.Params, filled); err != nil {
		return all, err
	}
	for _, arm := range r.Plan.Arms {
		given := make(map[string]string)
		maps.Copy(given, r.Plan.Params)
		maps.Copy(given, arm.Params)
		v, err := variantOf(r, given, filled)
		if err != nil {
			return all, fmt.Errorf("arm %s: %w", arm.Name, err)
		}
		all.arms = append(all.arms, armVariant{arm.Name, v})
	}
	return all, nil
}

// toLoad are the renderings that are to be loaded: those of the arms, or else
// that of the workload itself.
func (all renderings) toLoad() []armVariant {
	if len(all.arms) > 0 {
		return all.arms
	}
	return []armVariant{{"", all.variant}}
}

// variantOf renders the workload of a request with these parameters, and those that
// were filled in.
func variantOf(r system.Request, given, filled map[string]string) (v prepared.Variant, err error) {
	if r.Workload == nil {
		return v, nil
	}
	t := settingsOf(r.Plan)
	if len(filled) > 0 {
		given = maps.Clone(given)
		if given == nil {
			given = make(map[string]string)
		}
		maps.Copy(given, filled)
	}
	params, err := r.Workload.Resolve(t.fill(r.Workload, given))
	if err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	v.Settings, v.Params = r.Workload.Values(params), params
	if v.Config, err = r.Workload.Config(params, r.UUID); err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	if refused, _ := kubeburner.Served(v.Config); len(refused) > 0 {
		return v, system.Mistakef("take it out of the configuration", "%w", strictyaml.Join(refused))
	}
	for j := range v.Config.Jobs {
		if job := &v.Config.Jobs[j]; t.Namespace != "" {
			job.Namespace, job.NamespacedIterations = t.Namespace, false
		}
	}
	if v.Templates, err = v.Config.Templates(r.Workload.Files()); err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	if r.ToRead {
		return v, nil
	}
	if err := create.RepeatedNames(v, prepared.Identity{UUID: r.UUID, Run: r.Run}); err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	return v, nil
}

// What a workload's parameters are called that a real node needs other values
// of.
const (
	paramImage        = "image"
	paramGracePeriod  = "gracePeriod"
	paramNodeSelector = "nodeSelector"
	paramServices     = "serviceAddresses"
	paramDatabase     = "databaseImage"
)

// Prepare implements system.Session. On a lab's real node those parameters that
// were left open are set to what suits it: an image that it has, since it can
// get none; addresses of services, since nobody there knows their names; and
// time for pods to stop in, since a level that begins from empty begins when
// the node has stopped them, not only the API has forgotten them.
func (s *session) Prepare(context.Context) error {
	filled, err := s.machines.Fill()
	if err != nil {
		return err
	}
	fill := make(map[string]string)
	if s.onRealNode(s.Plan.Params) {
		maps.Copy(fill, map[string]string{paramImage: image.AgentReference, paramGracePeriod: "1", paramServices: lab.ServiceAddresses})
		if settingsOf(s.Plan).Images != "" {
			fill[paramDatabase] = image.PostgresReference
		}
	}
	if len(fill)+len(filled) == 0 {
		return nil
	}
	if err := s.lacksDatabase(); err != nil {
		return err
	}
	for name, value := range fill {
		if _, planned := s.Plan.Params[name]; planned || !hasParam(s.Request, name) {
			continue
		}
		if s.Plan.Params == nil {
			s.Plan.Params = make(map[string]string)
		}
		s.Plan.Params[name] = value
	}
	s.renderings, err = renderingsOf(s.Request, filled)
	return err
}

// lacksDatabase refuses a lab whose real node has no image of the database that the
// workload runs: it has no registry to get one from.
func (s *session) lacksDatabase() error {
	if !s.onRealNode(s.Plan.Params) || !needsDatabase(s.Request) || s.lab.HasImage(lab.ImagePostgreSQL) {
		return nil
	}
	return system.Mistakef(fmt.Sprintf("rebuild it and the lab: plimsoll image build %s; plimsoll lab down %s; plimsoll lab up %[2]s --real-node. Or name an image that nodes can pull, with --set %s=", lab.ImagePostgreSQL, s.lab.Name(), paramDatabase),
		"the real node of lab %q has no image of PostgreSQL, which %s runs", s.lab.Name(), s.Workload.Name)
}

// onRealNode reports whether the load goes to a lab's real node.
func (o *opened) onRealNode(params map[string]string) bool {
	if o.lab == nil || !o.lab.Spec().RealNode {
		return false
	}
	return o.lab.Spec().Nodes == 0 || strings.Contains(params[paramNodeSelector], protocol.RealSelector)
}

// needsDatabase reports whether the workload runs the database's image as this
// program makes it.
func needsDatabase(r system.Request) bool {
	named, given := r.Plan.Params[paramDatabase]
	return hasParam(r, paramDatabase) && (!given || named == image.PostgresReference)
}

// needImages makes the images that a private lab's real node needs for the
// workload and that have not been made before.
func needImages(ctx context.Context, r system.Request, store lab.Store) error {
	if !needsDatabase(r) {
		return nil
	}
	if _, err := os.Stat(store.ImageFile(lab.ImagePostgreSQL)); err == nil {
		return nil
	}
	r.Log("building the PostgreSQL image from the distribution's packages")
	if !image.HasAgent() {
		r.Log("note: this program was built without the small agent (make build adds it): the image holds the whole program")
	}
	_, _, _, err := store.BuildImage(ctx, lab.ImagePostgreSQL)
	return err
}

// imageRemedy is what to do about an image that no registry has, where nodes lack it.
func imageRemedy(r system.Request, name string) string {
	for _, p := range r.Workload.Params {
		if _, given := r.Plan.Params[p.Name]; !given && p.Default == name && len(r.Before) == 0 {
			return "plimsoll image push REGISTRY/PATH, then " + r.Command + " --images REGISTRY/PATH"
		}
	}
	return "name an image that the nodes can pull"
}

func hasParam(r system.Request, name string) bool {
	if r.Workload == nil {
		return false
	}
	_, err := r.Workload.Param(name)
	return err == nil
}

// Outline implements system.Provider.
func (Provider) Outline(_ context.Context, r system.Request) ([]system.Change, error) {
	rendered, err := renderingsOf(r, nil)
	if err != nil {
		return nil, err
	}
	list, t := []system.Change{}, settingsOf(r.Plan)
	if err := checked(r, t, virt.Of(r)); err != nil {
		return nil, err
	}
	if t.Named() == nil {
		what := "a private lab: etcd, API server, controller manager and scheduler"
		if t.Lab.Nodes > 0 {
			what += fmt.Sprintf(", %s of %s", record.Noun{One: "simulated node", Many: "simulated nodes"}.Count(t.Lab.Nodes), observe.Pods().Object.Count(t.Lab.MaxPods))
		}
		if t.Lab.RealNode {
			what += fmt.Sprintf(", a real node of %s (containerd, kubelet and kube-proxy in namespaces of their own)", observe.Pods().Object.Count(t.Lab.MaxPods))
		}
		if told := own.Differing(t.Lab, "nodes", "maxPods", "realNode"); len(told) > 0 {
			what += ", with " + strings.Join(told, ", ")
		}
		list = append(list, system.Change{Action: system.Make, What: what})
	} else {
		list = append(list, system.Change{Action: system.RemoveLeft, What: "leftovers of earlier runs"})
	}
	list = append(list, virt.Of(r).Outline()...)
	canary := "namespace plimsoll-RUN with a pod that is never scheduled, to measure the watch"
	if t.Namespace != "" {
		canary = "in namespace " + t.Namespace + ", which stays, a pod that is never scheduled, to measure the watch"
	}
	list = append(list, system.Change{Action: system.Make, What: canary})
	seen := make(map[system.Change]bool)
	for _, a := range rendered.toLoad() {
		changes, err := create.Outline(a.Variant, prepared.Identity{UUID: r.UUID, Run: r.Run}, t.Namespace, func(job int) bool { return whole(r.Workload, a.Config.Jobs, job) })
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			if name, ok := strings.CutPrefix(c.What, "image "); ok && t.Kubeconfig != "" && strings.HasPrefix(name, image.Local) {
				c.What += ", which is in no registry and must be on each node (or " + imageRemedy(r, name) + ")"
			}
			if !seen[c] {
				seen[c] = true
				list = append(list, c)
			}
		}
	}
	return append(list, settingChanges(rendered.toLoad())...), nil
}
