package documents

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
)

const never record.Micros = -1 // a time that was not reached

// fold collects what became of each job. Names are unique until the target is emptied.
type fold struct {
	jobs    map[string]*jobFold
	there   map[string]string  // the milestone that counts, by kind of objects
	slots   map[string]*slot   // Since the target was last empty
	objects map[string]*object // by name
	order   []*object
	open    bool // the step's requests come by a schedule
	start   time.Time
	nodes   map[string]*object // by name; their times are the server's
}

type jobFold struct {
	began, ended record.Micros  // first request, and last answer or ready object; or never
	cut          record.Micros  // the end of its last step, or never
	units        map[string]int // requested objects by kind
	steps        map[int]bool
	objects      []*object
}

func newJobFold() *jobFold {
	return &jobFold{began: never, ended: never, cut: never, units: make(map[string]int), steps: make(map[int]bool)}
}

const created = "Created" // the milestone of existence

type slot struct {
	job                string
	iteration, replica int
	sent               record.Micros // time zero of objects with their own names
	grouped            bool          // a controller names its objects
	before             *slot         // the deleted one of the same name
}

type object struct {
	name, of, node string
	kind           string
	told           []string // values on record with it
	resized        string   // its size after it was changed, "" for none
	slot           *slot
	first          record.Micros // time of the first news
	created, zero  record.Micros
	at             map[string]record.Micros // by milestone
}

func (p *object) reached(milestone string) record.Micros {
	if at, ok := p.at[milestone]; ok {
		return at
	}
	return never
}

// on reports whether the object is one that a milestone is for.
func (p *object) on(m kubeburner.Milestone) bool { return m.On == "" || p.reached(m.On) != never }

// latency returns the microseconds to a milestone, infinity for one that was not reached.
func (p *object) latency(m kubeburner.Milestone) float64 {
	from, at := p.zero, p.reached(m.Name)
	if at == never || from == never {
		return math.Inf(1)
	}
	for _, milestone := range m.From {
		from = max(from, p.reached(milestone))
	}
	return float64(max(at-from, 0))
}

func newFold() *fold {
	f := &fold{jobs: make(map[string]*jobFold), there: make(map[string]string), nodes: make(map[string]*object)}
	for _, t := range kubeburner.Measures() {
		f.there[t.Kind] = t.Milestones[len(t.Milestones)-1].Name
	}
	f.clear()
	return f
}

func (f *fold) clear() {
	f.slots, f.objects, f.order = make(map[string]*slot), make(map[string]*object), nil
}

// kindOf returns the kind in the name of an object; that of a pod has none.
func (f *fold) kindOf(name string) string {
	kind, _, _ := strings.Cut(name, "/")
	if _, known := f.there[kind]; known {
		return kind
	}
	return kubeburner.Pods
}

// of returns the job's objects of a kind.
func (j *jobFold) of(kind string) (list []*object) {
	for _, o := range j.objects {
		if o.kind == kind {
			list = append(list, o)
		}
	}
	return list
}

func (f *fold) add(e record.Event) error {
	switch b := e.Body.(type) {
	case *record.StepEvent:
		switch b.Phase {
		case record.PhaseStart:
			f.open = b.Open
		case record.PhaseReset:
			f.empty()
		case record.PhaseEnd:
			for _, j := range f.jobs {
				if j.steps[e.Step] {
					j.cut = e.T
				}
			}
		}
	case *record.RunEvent:
		if b.Phase == record.PhaseResume {
			f.empty()
		}
	case *record.Slot:
		f.addSlot(e.Step, b)
	case *record.Object:
		if f.kindOf(b.Object) == kubeburner.Nodes {
			f.addNode(b)
			return nil
		}
		p := f.object(e.T, b.Object, cmp.Or(b.Slot, b.Object))
		p.node = cmp.Or(b.Place, p.node)
		if b.Labels != nil {
			p.told = b.Labels
		}
		switch b.Milestone {
		case created:
			p.created = e.T
		case "Deleted":
			delete(f.objects, b.Object) // later news of the name is of another object
		}
		if _, reached := p.at[b.Milestone]; !reached {
			p.at[b.Milestone] = e.T
		}
	}
	return nil
}

// addNode notes when a node was made, or when it reached a milestone last: no latency of it is below 0.
func (f *fold) addNode(b *record.Object) {
	n := f.nodes[b.Object]
	if n == nil {
		n = &object{name: b.Object, kind: kubeburner.Nodes, zero: never, at: make(map[string]record.Micros)}
		f.nodes[b.Object] = n
	}
	if b.Labels != nil {
		n.told = b.Labels
	}
	if b.Stamp == 0 {
		return
	}
	at := record.MicrosOf(time.Unix(b.Stamp, 0).Sub(f.start))
	n.at[b.Milestone] = at
	if n.zero == never || at < n.zero {
		n.zero = at
	}
}

func (f *fold) addSlot(step int, b *record.Slot) {
	j := f.jobs[b.Component]
	if j == nil {
		j = newJobFold()
		f.jobs[b.Component] = j
	}
	j.steps[step] = true
	j.units[f.kindOf(b.Slot)] += b.Units
	if j.began == never || b.Intended < j.began {
		j.began = b.Intended
	}
	j.ended = max(j.ended, b.Replied, b.Sent)
	if b.Units == 0 {
		return
	}
	s := &slot{job: b.Component, iteration: b.Iteration, replica: max(b.Replica, 1), sent: b.Sent, grouped: b.Grouped, before: f.slots[b.Slot]}
	if f.open {
		s.sent = b.Intended
	}
	f.slots[b.Slot] = s
	if !b.Grouped && b.Outcome != record.SlotFailed && b.Outcome != record.SlotDropped {
		f.object(s.sent, b.Slot, b.Slot) // even without news of it
	}
}

func (f *fold) object(t record.Micros, name, of string) *object {
	p := f.objects[name]
	if p == nil {
		p = &object{name: name, of: of, kind: f.kindOf(name), first: t, created: never, zero: never, at: make(map[string]record.Micros, 8)}
		f.objects[name] = p
		f.order = append(f.order, p)
	}
	return p
}

func (f *fold) empty() {
	byName := make(map[string]*object)
	for _, p := range f.order {
		if name, is := strings.CutPrefix(p.name, "Resize/"); is {
			resize(byName["PersistentVolumeClaim/"+name], p)
			continue
		}
		byName[p.name] = p
		p.slot = f.slots[p.of]
		for p.slot != nil && p.slot.before != nil && p.first < p.slot.sent {
			p.slot = p.slot.before
		}
		if p.slot == nil {
			continue
		}
		p.zero = p.slot.sent
		if p.slot.grouped {
			p.zero = p.created
		}
		j := f.jobs[p.slot.job]
		j.objects = append(j.objects, p)
		j.ended = max(j.ended, p.reached(f.there[p.kind]))
	}
	f.clear()
	for _, j := range f.jobs {
		slices.SortStableFunc(j.objects, func(a, b *object) int {
			return cmp.Or(cmp.Compare(a.slot.iteration, b.slot.iteration), cmp.Compare(a.slot.replica, b.slot.replica), cmp.Compare(a.name, b.name))
		})
	}
}

// resize adds to a claim, unless that is nil or was not asked for, the time that a change of its size took.
func resize(claim, change *object) {
	if claim == nil || claim.zero == never {
		return
	}
	claim.at["PVCResizing"] = claim.zero
	if at := change.reached("PVCResized"); at != never {
		claim.at["PVCResized"] = claim.zero + at - change.first
		if len(change.told) > 0 {
			claim.resized = change.told[0]
		}
	}
}

// all returns the jobs at the end. A job with objects that were never ready ended with its step.
func (f *fold) all() map[string]*jobFold {
	f.empty()
	for _, j := range f.jobs {
		missing := 0
		for _, n := range j.units {
			missing += n
		}
		for _, p := range j.objects {
			if p.reached(f.there[p.kind]) != never {
				missing--
			}
		}
		if missing > 0 {
			j.ended = max(j.ended, j.cut)
		}
		for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
			j.objects = append(j.objects, f.nodes[name])
		}
	}
	return f.jobs
}
