package create

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/described"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Rendering is a variant ready to be loaded.
type Rendering struct {
	config  *kubeburner.Config
	makers  [][]*Maker         // by job and object
	objects *described.Objects // nil for pods
	beside  []*described.Objects
	Params  workload.Params // of the Variant
	made    *Made
	nodes   []*corev1.Node
	watches [][]extraWatch // by job
}

// Render prepares a variant for a run. objects are followed instead of pods, those of beside together with them; both
// may be nil. DaemonSets run on nodes; without nodes Render refuses them.
func Render(v prepared.Variant, ids prepared.Identity, cluster meta.RESTMapper, objects *described.Objects, beside []*described.Objects, nodes []*corev1.Node) (*Rendering, error) {
	mapper, err := MadeBy(v, ids, cluster)
	if err != nil {
		return nil, err
	}
	r := &Rendering{config: v.Config, objects: objects, beside: beside, Params: v.Params, made: mapper, nodes: nodes}
	if err := r.knowsStages(); err != nil {
		return nil, err
	}
	for j := range v.Config.Jobs {
		job := &v.Config.Jobs[j]
		if err := churns(job); err != nil {
			return nil, err
		}
		watches, err := r.extraWatches(job)
		if err != nil {
			return nil, err
		}
		r.watches = append(r.watches, watches)
		var makers []*Maker
		first := 0
		for o := range job.Objects {
			var m *Maker
			if job.Creates() {
				m, err = r.newMaker(job, j, o, first, v.Templates[j][o], ids)
			} else {
				m, err = newChooser(job, j, o, v.Templates[j][o], ids, mapper)
			}
			if err != nil {
				return nil, err
			}
			makers = append(makers, m)
			if job.Objects[o].Replicas > 0 {
				first += m.docs
			}
		}
		spaces := slices.ContainsFunc(makers, func(m *Maker) bool { return m.spaces })
		for _, m := range makers {
			m.spaces = spaces
		}
		r.makers = append(r.makers, makers)
	}
	for _, m := range slices.Concat(r.makers...) {
		m.all = r
	}
	if bounds := v.Config.Thresholds(func(kind string) bool { return !r.Makes(kind) }); len(bounds) > 0 {
		return nil, system.Mistakef("take the thresholds out, or add a job that makes such objects", "no job of the configuration makes the objects that it has thresholds for (%s): a bound on nothing would hold", strings.Join(bounds, ", "))
	}
	return r, nil
}

// Makes reports whether the load makes objects of a kind that is followed.
func (r *Rendering) Makes(kind string) bool {
	return slices.ContainsFunc(slices.Concat(r.makers...), func(m *Maker) bool {
		o := &m.job.Objects[m.index]
		if m.job.JobType == kubeburner.KubeVirt {
			return kind == migration && o.KubeVirtOp == kubeburner.Migrate || (kind == machine || kind == "Pod") && o.KubeVirtOp == "start"
		}
		return o.Replicas > 0 && (kind == "Pod" && m.units > 0 || slices.ContainsFunc(m.beside, func(b beside) bool { return b.kind == kind }))
	})
}

// knowsStages checks that each stage of the set-up names a job of the configuration.
func (r *Rendering) knowsStages() error {
	if r.objects == nil {
		return nil
	}
	var names []string
	for _, job := range r.config.Jobs {
		names = append(names, job.Name)
	}
	last := names[len(names)-1]
	for _, t := range r.objects.Then {
		if t.Job != "" && (t.Job == last || !slices.Contains(names, t.Job)) {
			return system.Mistakef(nearest.OneOf(t.Job, names), "after %s the job %q is asked for: the configuration must have it, before its last job, which makes the objects", t.After, t.Job)
		}
	}
	for _, s := range r.objects.SetUp {
		if !slices.Contains(names, s.Job) {
			return system.Mistakef(nearest.OneOf(s.Job, names), "the set-up of the workload has the job %q, and its configuration has none of that name", s.Job)
		}
		if s.Job == last && r.objects.Begin == nil {
			return system.Mistakef("what is measured is made by the last job", "the set-up of the workload has the job %q, which is the last one of its configuration", s.Job)
		}
	}
	return nil
}

// HasHooks reports whether a job has commands to run.
func (r *Rendering) HasHooks() bool {
	return slices.ContainsFunc(r.config.Jobs, func(j kubeburner.Job) bool { return len(j.Hooks) > 0 })
}

// OnlyPods reports whether the load makes only pods.
func (r *Rendering) OnlyPods() bool {
	return !slices.ContainsFunc(slices.Concat(r.makers...), func(m *Maker) bool { return !m.onlyPods })
}

// Images returns the images of a job's pods and machines, in the order of their names.
func (r *Rendering) Images(job int) (list []string) {
	for _, m := range r.makers[job] {
		list = append(list, m.images...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// PodSpecs returns the specs of the load's pods; plants says that some have planted start latencies.
func (r *Rendering) PodSpecs() (pods []corev1.PodSpec, plants bool) {
	for _, m := range slices.Concat(r.makers...) {
		pods = append(pods, m.pods...)
		plants = plants || m.latency
	}
	return pods, plants
}

// Population counts what was requested since the target was last empty.
type Population struct {
	*Rendering       // of the present arm
	Iterations int   // of the last job
	Units      int   // pods
	Beside     int   // further objects that are followed
	SetUp      []int // objects of each stage
	Jobs       int   // complete ones
}

// Whole returns the number of objects in the configuration itself.
func (p *Population) Whole() int {
	return p.PerIteration() * p.config.Jobs[len(p.config.Jobs)-1].JobIterations
}

// PerIteration returns the number of objects in an iteration of the last job.
func (p *Population) PerIteration() int { return p.unitsOf(0) }

func (p *Population) unitsOf(iteration int) (units int) {
	last := len(p.config.Jobs) - 1
	for s := range p.config.Jobs[last].Slots(iteration, iteration+1) {
		units += p.makers[last][s.Object].units
	}
	return units
}

// PlannedSlot holds one slot and the maker of its objects.
type PlannedSlot struct {
	kubeburner.Slot
	maker  *Maker
	begin  bool    // says that it begins objects that were set up, instead of making them
	asking *asking // its request to a chosen object, or nil
}

func (p PlannedSlot) group() kubeburner.Group { return p.maker.job.Objects[p.maker.index].Group }

// units returns how many pods the slot asks for.
func (p PlannedSlot) units() int {
	if p.asking != nil {
		return p.asking.units
	}
	return p.maker.units
}

// further returns how many objects the slot asks for that are followed beside pods.
func (p PlannedSlot) further() int {
	if p.asking != nil {
		return len(p.asking.beside)
	}
	return len(p.maker.beside)
}

// ofJob returns a job's manifests for the iteration and replica of a slot.
func (p PlannedSlot) ofJob(name string) (list []manifest, err error) {
	all := p.maker.all
	j := slices.IndexFunc(all.config.Jobs, func(job kubeburner.Job) bool { return job.Name == name })
	for s := range all.config.Jobs[j].Slots(p.Iteration, p.Iteration+1) {
		if s.Replica == p.Replica {
			made, err := all.makers[j][s.Object].make(s)
			if err != nil {
				return nil, err
			}
			list = append(list, made...)
		}
	}
	return list, nil
}

// Raising holds the slots that raise a load, to be set up and to be measured, and counts the latter.
type Raising struct {
	SetUp  [][]PlannedSlot // by stage
	Slots  []PlannedSlot
	Units  int
	Beside int    // further objects that are followed
	parts  []part // in order, for a configuration as it stands
}

// grouped orders the slots of each job by the groups of their objects, as each group is made whole.
func (r Raising) grouped() Raising {
	for _, p := range r.parts {
		slices.SortStableFunc(r.Slots[p.first:p.last], func(a, b PlannedSlot) int { return a.group().ID - b.group().ID })
	}
	return r
}

// follows reports whether a job has as many iterations as the last one.
func (p *Population) follows(job int) bool {
	return slices.ContainsFunc(p.makers[job], func(m *Maker) bool { return m.stage >= 0 && !m.objects.SetUp[m.stage].Once })
}

// Plan lists the slots that raise the objects to at most want, by whole iterations of the last job.
// Earlier jobs are made once when the target is empty, or with it where they set it up.
func (p *Population) Plan(want int) (Raising, error) {
	r := p.before()
	empty := 0
	for {
		n := p.unitsOf(p.Iterations)
		if n == 0 {
			// Iterations without pods are made with the next one that has some.
			if empty++; empty > 10_000 {
				return r, errNoPods
			}
		}
		if p.Units+r.Units+n > want {
			return r.grouped(), nil
		}
		p.iterate(&r)
	}
}

// PlanIterations plans up to so many iterations of the last job.
func (p *Population) PlanIterations(want int) Raising {
	r := p.before()
	for p.Iterations < want {
		p.iterate(&r)
	}
	return r.grouped()
}

// All returns the number of jobs, for PlanJobs.
func (p *Population) All() int { return len(p.config.Jobs) }

// PlanJobs lists the slots of the jobs up to number want, from 1, that were not made yet, each whole.
func (p *Population) PlanJobs(want int) (r Raising, err error) {
	if n := len(p.config.Jobs); want > n {
		return r, system.Mistakef("", "job %d is asked for, and the configuration has %d", want, n)
	}
	for ; p.Jobs < want; p.Jobs++ {
		p.take(&r, p.Jobs, p.config.Jobs[p.Jobs].From, p.config.Jobs[p.Jobs].JobIterations)
	}
	return r.grouped(), nil
}

// before begins with the earlier jobs that were not made yet and do not follow the last one.
func (p *Population) before() (r Raising) {
	if p.objects != nil {
		r.SetUp = make([][]PlannedSlot, len(p.objects.SetUp))
	}
	last := len(p.config.Jobs) - 1
	for j := p.Jobs; j < last; j++ {
		if !p.follows(j) {
			p.take(&r, j, 0, p.config.Jobs[j].JobIterations)
		}
	}
	p.Jobs = last
	return r
}

// iterate adds an iteration of the last job, and of those that follow it.
func (p *Population) iterate(r *Raising) {
	last := len(p.config.Jobs) - 1
	for j := range last {
		if p.follows(j) {
			p.take(r, j, p.Iterations, p.Iterations+1)
		}
	}
	p.take(r, last, p.Iterations, p.Iterations+1)
	p.Iterations++
}

func (p *Population) take(r *Raising, j, from, to int) {
	if n := len(r.parts); n == 0 || r.parts[n-1].job != j {
		r.parts = append(r.parts, part{job: j, from: from, first: len(r.Slots)})
	}
	r.parts[len(r.parts)-1].to = to
	defer func() { r.parts[len(r.parts)-1].last = len(r.Slots) }()
	if !p.config.Jobs[j].Creates() {
		return
	}
	for s := range p.config.Jobs[j].Slots(from, to) {
		m := p.makers[j][s.Object]
		if m.later {
			continue
		}
		if m.stage < 0 {
			r.Slots = append(r.Slots, PlannedSlot{Slot: s, maker: m})
			r.Units, r.Beside = r.Units+m.units, r.Beside+len(m.beside)
			continue
		}
		r.SetUp[m.stage] = append(r.SetUp[m.stage], PlannedSlot{Slot: s, maker: m})
		if m.objects.Begin != nil && m.units > 0 {
			r.Slots = append(r.Slots, PlannedSlot{Slot: s, maker: m, begin: true})
			r.Units += m.units
		}
	}
}
