package kubernetes

import (
	"cmp"
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

	"k8s.io/apimachinery/pkg/api/meta"

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

// Provider opens labs on this machine, private labs for one session, clusters of a kubeconfig, and its pod's.
type Provider struct {
	Machines bool // says that the load is virtual machines: the target is KubeVirt
}

// Declare implements system.Provider.
func (p Provider) Declare() workload.Target {
	declared := observe.Declare()
	allOfLabs := lab.Spec{Shape: lab.Shape{TimeScale: 1, RealNode: true}}
	declared.Facts = slices.Concat(clusterFacts("", 0, 0, nil), nodeFacts(false), labFacts(allOfLabs), []record.Fact{imagesFrom("")})
	declared.Settings = func() own.Own { return new(Settings) }
	if p.Machines {
		declared.Name, declared.Objects = virt.Name, described.OfMachines
	}
	return declared
}

type session struct {
	system.Request

	renderings
	cluster  *Cluster
	lab      *lab.Lab // nil for other clusters
	private  bool
	machines *virt.Machines

	namespace string   // an existing one for all objects, "" for the run's own
	images    []string // further ones that a private lab's real node must have

	real      bool // a node that takes the load has a kubelet
	usage     usageReader
	component func(uid string) string // of a pod whose usage is read apart; nil for a workload's own
	release   func()                  // frees the CPUs that this program is kept to, or nil
	beside    []string                // notes on other runs that may load the cluster
	unknown   []string                // notes on what the nodes cannot show
	held      func(clean bool)        // ends the sign that this run is alive; nil before that
	clean     bool                    // nothing is left of the run
	instance  atomic.Pointer[Target]  // nil before Target
}

// Open implements system.Provider.
func (Provider) Open(ctx context.Context, r system.Request) (system.Session, error) {
	s, err := openSession(ctx, r)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openSession opens the target of a request. A private lab's real node has the images.
func openSession(ctx context.Context, r system.Request, images ...string) (*session, error) {
	// Mistakes in the workload are reported before a lab is brought up.
	rendered, err := renderingsOf(r, nil)
	if err != nil {
		return nil, err
	}
	s := &session{Request: r, renderings: rendered, machines: virt.Of(r), images: images}
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

func (s *session) find(ctx context.Context, t *Settings, show func(string)) (err error) {
	switch {
	case t.LabName != "":
		return s.openNamedLab(ctx, t.LabName)
	case t.Kubeconfig != "" || t.InCluster:
		if s.cluster, err = t.Connect(s.Host); err != nil {
			return err
		}
		s.lab, err = s.cluster.LabOf(ctx, s.Host)
		return err
	}
	store, err := LabStore(ctx, s.Host)
	if err != nil {
		return err
	}
	store.Progress = show
	spec := privateLab(s.Plan, t, s.machines)
	if spec.RealNode {
		if err := s.needImages(ctx, store); err != nil {
			return err
		}
	}
	if s.lab, err = store.Up(ctx, spec); err != nil {
		return fmt.Errorf("bring up a private lab: %w", LabError(err))
	}
	s.private = true
	if s.cluster, err = Connect(s.lab.Kubeconfig(), "", s.Host); err != nil {
		return err
	}
	s.cluster.Naming = record.TargetNaming{Kind: "lab", Name: s.lab.Name(), Private: true}
	return nil
}

func privateLab(p *plan.Plan, t *Settings, machines *virt.Machines) lab.Spec {
	spec := lab.Spec{Private: true, Shape: *t.Lab}
	if p.Axis.Name == observe.AxisPodsPerNode { // so many pods at once are certain
		spec.Pods = int(math.Ceil(p.Certain() * float64(t.Lab.Nodes)))
	}
	machines.Lab(&spec)
	return spec
}

// checked refuses what a run would refuse before its first request: an unusable kubeconfig, a lab that is
// missing or too large for this machine, or objectives that the target cannot measure.
func checked(r system.Request, t *Settings, machines *virt.Machines) error {
	switch {
	case t.LabName != "":
		dir, err := r.StateDir()
		if err == nil {
			_, err = lab.Store{Root: dir, Executable: r.Executable}.Open(t.LabName)
		}
		return LabError(err)
	case t.Kubeconfig != "" || t.InCluster:
		chosen, err := t.choose(r.Pod)
		if err == nil {
			_, err = chosen.rest()
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

// asItStands reports whether each job of a configuration has the iterations that it states.
func asItStands(r system.Request) bool {
	axis, err := r.Workload.Axis(r.Plan.Axis.Name)
	return err == nil && r.Workload.AsItIs && (axis.Means == workload.AxisJobs || axis.Sets != "")
}

// whole reports whether a run makes all iterations of a job: of a workload as it stands, or not the last.
func whole(w *workload.Workload, jobs []kubeburner.Job, job int) bool {
	if w.AsItIs || job == len(jobs)-1 {
		return w.AsItIs
	}
	of := described.Of(w)
	return of == nil || slices.ContainsFunc(of.SetUp, func(s described.SetUp) bool { return s.Once && s.Job == jobs[job].Name })
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
	if s.cluster, err = Connect(l.Kubeconfig(), "", s.Host); err != nil {
		return err
	}
	s.cluster.Naming = record.TargetNaming{Kind: "lab", Name: name}
	return nil
}

// Consent implements system.Session: labs of ours need none, other clusters need the user's.
func (s *session) Consent(ctx context.Context) (*system.Consent, error) {
	consent := &system.Consent{}
	for _, a := range s.toLoad() {
		for _, command := range create.Commands(a.Config) {
			if !slices.Contains(consent.Hooks, command) {
				consent.Hooks = append(consent.Hooks, command)
			}
		}
	}
	if s.lab != nil {
		return consent, nil
	}
	summary, nodes, err := s.cluster.summary(ctx)
	if err != nil {
		return nil, err
	}
	consent.System, consent.Why, consent.Load = summary, "is not a plimsoll lab", s.extent(nodes)
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

// extent says how much the plan loads in all, and how fast.
func (s *session) extent(nodes int) string {
	axis, err := s.Workload.Axis(s.Plan.Axis.Name)
	if err != nil {
		return ""
	}
	var parts []string
	most := int(math.Ceil(slices.Max(append(s.Plan.Levels(), 0)) * float64(nodes)))
	if axis.Means == observe.AxisPodsPerNode && most > 0 {
		parts = append(parts, fmt.Sprintf("at most %s on %s, with those that run there", observe.Pods().Object.Count(most), observe.Pods().Place.Count(nodes)))
	}
	switch pace := cmp.Or(s.Plan.Pace, s.Bounds().Pace); {
	case axis.Loop == workload.Open: // the level is the pace
	case pace.Max:
		parts = append(parts, "as fast as the cluster takes it")
	default:
		parts = append(parts, fmt.Sprintf("%g requests a second", pace.PerSecond))
	}
	return strings.Join(parts, "; ")
}

// Sweep implements system.Session. Leftovers of a resumed run go however recent their last sign of life.
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

// besideText describes another run that may load the cluster; clean removes its leftovers.
func besideText(l sweep.Leftover, clean string) string {
	if l.Here {
		return fmt.Sprintf("run %s of this machine is loading this cluster too, and what it has there counts in the levels; --wait waits for its end", l.Run)
	}
	return fmt.Sprintf("run %s may be loading this cluster too, and what it has there counts in the levels. Its last sign of life was at %s: without another it counts as dead from %s on. --wait waits for that; if it is dead, this removes it now: %s --run %s --force",
		l.Run, clockTime(l.LastSign), clockTime(l.DeadFrom()), clean, l.Run)
}

func clockTime(t time.Time) string { return t.Local().Format("15:04:05") }

// awaitOthers waits until no other run is alive, and returns the leftovers then.
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

const othersInterval = time.Second

// Bounds implements system.Session. Labs may be loaded as fast as it goes, other clusters with care,
// where a node that is not ready is a breach. On rates the bound on requests protects this program.
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

// Renew implements system.Session: a new lab's control plane has no memory of earlier objects.
func (s *session) Renew(ctx context.Context) error {
	// The usage of the removed components must not be read.
	s.usage.Lock()
	defer s.usage.Unlock()
	s.usage.pids, s.usage.meter, s.usage.endpoints = nil, nil, nil
	if err := s.Close(); err != nil {
		return err
	}
	s.lab = nil
	err := s.open(ctx, func(string) {}) // the run shows its own progress
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

// mistakes turns problems of a workload's templates into a *system.MistakeError.
func mistakes(err error) error {
	if _, told := errors.AsType[*system.MistakeError](err); !told && len(strictyaml.Problems(err)) > 0 {
		return system.Mistakef("", "%w", err)
	}
	return err
}

// renderings holds the variants of a workload, if any: with the plan's parameters, and each arm's.
type renderings struct {
	variant prepared.Variant
	arms    []armVariant // in the order of the plan
}

// armVariant is the variant of an arm, or of the workload itself for "".
type armVariant struct {
	arm string
	prepared.Variant
}

// renderingsOf renders the workload and each arm. filled overrides the plan, which stays as it is.
func renderingsOf(r system.Request, filled map[string]string) (all renderings, err error) {
	err = r.EachArm(func(arm string, given map[string]string) error {
		v, err := variantOf(r, given, filled)
		if arm == "" {
			all.variant = v
		} else {
			all.arms = append(all.arms, armVariant{arm, v})
		}
		return err
	})
	return all, err
}

// toLoad returns the variants of the arms, or else that of the workload itself.
func (all renderings) toLoad() []armVariant {
	if len(all.arms) > 0 {
		return all.arms
	}
	return []armVariant{{"", all.variant}}
}

// variantOf renders the workload of a request with the given and the filled parameters.
func variantOf(r system.Request, given, filled map[string]string) (v prepared.Variant, err error) {
	if r.Workload == nil {
		return v, nil
	}
	t := settingsOf(r.Plan)
	params, err := r.Workload.Resolve(r.Workload.At(r.Plan.Axis.Name, r.Plan.Certain(), t.fill(r.Workload, given, filled)))
	if err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	v.Settings, v.Params = r.Workload.Values(params), params
	if v.Config, err = r.Workload.Config(params, r.UUID); err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	if i := slices.IndexFunc(v.Config.Jobs, func(j kubeburner.Job) bool { return j.IncrementalLoad != nil }); i >= 0 && !asItStands(r) {
		return v, system.Mistakef("plimsoll run FILE runs it; along another axis it is raised by the axis: take it out", "job %s: incrementalLoad raises the job in steps of its own", v.Config.Jobs[i].Name)
	}
	if refused, _ := kubeburner.Served(v.Config); len(refused) > 0 {
		return v, system.Mistakef("take it out of the configuration", "%w", strictyaml.Join(refused))
	}
	if !r.Workload.AsItIs && len(create.Commands(v.Config)) > 0 {
		return v, system.Mistakef("run the configuration itself: plimsoll run FILE", "hooks run where a configuration is run as it stands, and not as the workload %s", r.Workload.Name)
	}
	for j := range v.Config.Jobs {
		if job := &v.Config.Jobs[j]; t.Namespace != "" {
			job.Namespace, job.NamespacedIterations = t.Namespace, false
		}
	}
	if v.Templates, err = v.Config.Templates(r.Workload.Files()); err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	v.Templates = v.Config.Stages(v.Templates)
	if r.ToRead {
		return v, nil
	}
	if err := create.RepeatedNames(v, prepared.Identity{UUID: r.UUID, Run: r.Run}, asItStands(r)); err != nil {
		return v, system.Mistakef("", "%w", err)
	}
	return v, nil
}

// Workload parameters that Prepare sets for a real node.
const (
	paramImage        = "image"
	paramGracePeriod  = "gracePeriod"
	paramNodeSelector = "nodeSelector"
	paramServices     = "serviceAddresses"
	paramDatabase     = "databaseImage"
)

// Prepare implements system.Session. On a lab's real node it sets what the plan leaves open: an image
// that the node has, services' addresses, since there is no DNS, and a short grace period, since a level
// that begins from empty waits until the old pods have stopped.
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

// lacksDatabase refuses a lab whose real node lacks the workload's database image and cannot pull it.
func (s *session) lacksDatabase() error {
	if !s.onRealNode(s.Plan.Params) || !needsDatabase(s.Request) {
		return nil
	}
	_, err := imageOf(s.lab, lab.ImagePostgreSQL, fmt.Sprintf("name an image that nodes can pull, with --set %s=", paramDatabase))
	return err
}

// imageOf returns the reference of an image of the lab's real node, or a mistake with a hint if it lacks it.
func imageOf(l *lab.Lab, name, otherwise string) (string, error) {
	reference, err := l.Image(name)
	if err == nil && reference == "" {
		err = system.Mistakef(fmt.Sprintf("plimsoll image build %s; plimsoll lab down %s; plimsoll lab up %[2]s --real-node. Or %[3]s", name, l.Name(), otherwise), "the real node of lab %q has no image %s", l.Name(), name)
	}
	return reference, err
}

func (s *session) onRealNode(params map[string]string) bool {
	if s.lab == nil || !s.lab.Spec().RealNode {
		return false
	}
	return s.lab.Spec().Nodes == 0 || strings.Contains(params[paramNodeSelector], protocol.RealSelector)
}

// needsDatabase reports whether the workload runs the database image that this program builds.
func needsDatabase(r system.Request) bool {
	named, given := r.Plan.Params[paramDatabase]
	return hasParam(r, paramDatabase) && (!given || named == image.PostgresReference)
}

// needImages builds missing images that a private lab's real node must have.
func (s *session) needImages(ctx context.Context, store lab.Store) error {
	names := s.images
	if needsDatabase(s.Request) {
		names = append(names, lab.ImagePostgreSQL)
	}
	for _, name := range names {
		if _, err := os.Stat(store.ImageFile(name)); err == nil {
			continue
		}
		s.Log("building the image %s", name)
		if !image.HasAgent() {
			s.Log("note: this program was built without the small agent (make build adds it): images hold the whole program")
		}
		if _, _, _, err := store.BuildImage(ctx, name); err != nil {
			return LabError(err)
		}
	}
	return nil
}

// imageRemedy says what to do about an image that is in no registry, where nodes lack it.
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

// knowsKinds asks the lab or cluster that was named whether it knows all kinds that a run makes.
func knowsKinds(ctx context.Context, r system.Request, t *Settings, rendered renderings) error {
	asked := make(chan error, 1)
	var mapper meta.RESTMapper
	go func() {
		s := &session{Request: r}
		defer s.Close()
		err := s.find(ctx, t, func(string) {})
		if err == nil {
			mapper, err = s.cluster.client.Mapper()
		}
		asked <- err
	}()
	ctx, cancel := context.WithTimeout(ctx, kindsPatience)
	defer cancel()
	var err error
	select {
	case err = <-asked:
	case <-ctx.Done():
		err = fmt.Errorf("no answer for %v", kindsPatience)
	}
	if err != nil {
		r.Log("note: whether the cluster knows all kinds is unknown: %v", err)
		return nil
	}
	ids := prepared.Identity{UUID: r.UUID, Run: r.Run}
	var problems []strictyaml.Problem
	for _, a := range rendered.toLoad() {
		known, err := create.MadeBy(a.Variant, ids, mapper)
		if err != nil {
			return mistakes(err)
		}
		for j, job := range a.Config.Jobs {
			for o := range job.Objects {
				if !job.Creates() || job.Objects[o].Replicas < 1 {
					continue
				}
				docs, err := create.Documents(a.Variant, j, o, ids, known)
				if err != nil {
					return mistakes(err)
				}
				for _, doc := range docs {
					problems = append(problems, strictyaml.Problems(doc.Unknown)...)
				}
			}
		}
	}
	return mistakes(strictyaml.Join(problems))
}

const kindsPatience = 5 * time.Second // bounds what a dry run waits for a cluster

// helpers returns what a run of a configuration makes beside its load.
func helpers(r system.Request, t *Settings, rendered renderings) (list []system.Change) {
	if !r.Workload.AsItIs {
		return nil
	}
	real := t.Named() != nil || t.Lab.RealNode // or may be
	add := func(format string, args ...any) {
		if change := (system.Change{Action: system.Make, What: fmt.Sprintf(format, args...)}); !slices.Contains(list, change) {
			list = append(list, change)
		}
	}
	if real && callsServices(described.Beside(r.Workload)) {
		add("pod that calls services, of image %s, unless the nodes are simulated", relayImage(t))
	}
	for _, a := range rendered.toLoad() {
		for i := range a.Config.Jobs {
			if a.Config.PreLoads(i, real) {
				add("DaemonSet that pulls the images of job %s, and goes before it", a.Config.Jobs[i].Name)
			}
		}
	}
	return list
}

// Outline implements system.Provider.
func (Provider) Outline(ctx context.Context, r system.Request) ([]system.Change, error) {
	rendered, err := renderingsOf(r, nil)
	if err != nil {
		return nil, err
	}
	list, t := []system.Change{}, settingsOf(r.Plan)
	if err := checked(r, t, virt.Of(r)); err != nil {
		return nil, err
	}
	if r.Asks && r.Workload.AsItIs && t.Named() != nil {
		if err := knowsKinds(ctx, r, t, rendered); err != nil {
			return nil, err
		}
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
	list = append(list, helpers(r, t, rendered)...)
	seen := make(map[system.Change]bool)
	for _, a := range rendered.toLoad() {
		changes, err := create.Outline(a.Variant, prepared.Identity{UUID: r.UUID, Run: r.Run}, t.Namespace, func(job int) bool { return whole(r.Workload, a.Config.Jobs, job) })
		if err != nil {
			return nil, err
		}
		for _, c := range changes {
			if name, ok := strings.CutPrefix(c.What, "image "); ok && (t.Kubeconfig != "" || t.InCluster) && strings.HasPrefix(name, image.Local) {
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
