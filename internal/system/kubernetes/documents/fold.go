package documents

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
)

const never record.Micros = -1 // a time that was not reached

// fold collects what became of each job. Names are unique until the target is emptied.
type fold struct {
	jobs  map[string]*jobFold
	there string           // the milestone that counts
	slots map[string]*slot // Since the target was last empty
	pods  map[string]*pod  // by namespace and name
	order []*pod
	open  bool // the step's requests come by a schedule
}

type jobFold struct {
	began, ended record.Micros // first request, and last answer or ready pod; or never
	cut          record.Micros // the end of its last step, or never
	units        int           // requested pods
	steps        map[int]bool
	pods         []*pod
}

type slot struct {
	job                string
	iteration, replica int
	sent               record.Micros // time zero of objects with their own names
	grouped            bool          // a controller names its pods
	before             *slot         // the deleted one of the same name
}

type pod struct {
	name, of, node string
	slot           *slot
	first          record.Micros // time of the first news
	created, zero  record.Micros
	at             map[string]record.Micros // by milestone
}

func (p *pod) reached(milestone string) record.Micros {
	if at, ok := p.at[milestone]; ok {
		return at
	}
	return never
}

func newFold(there string) *fold {
	f := &fold{jobs: make(map[string]*jobFold), there: there}
	f.clear()
	return f
}

func (f *fold) clear() { f.slots, f.pods, f.order = make(map[string]*slot), make(map[string]*pod), nil }

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
		p := f.pod(e.T, b.Object, cmp.Or(b.Slot, b.Object))
		p.node = cmp.Or(b.Place, p.node)
		switch b.Milestone {
		case "Created":
			p.created = e.T
		case "Deleted":
			delete(f.pods, b.Object) // later news of the name is of another pod
		}
		if _, reached := p.at[b.Milestone]; !reached {
			p.at[b.Milestone] = e.T
		}
	}
	return nil
}

func (f *fold) addSlot(step int, b *record.Slot) {
	j := f.jobs[b.Component]
	if j == nil {
		j = &jobFold{began: never, ended: never, cut: never, steps: make(map[int]bool)}
		f.jobs[b.Component] = j
	}
	j.steps[step] = true
	j.units += b.Units
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
		f.pod(s.sent, b.Slot, b.Slot) // even without news of it
	}
}

func (f *fold) pod(t record.Micros, name, of string) *pod {
	p := f.pods[name]
	if p == nil {
		p = &pod{name: name, of: of, first: t, created: never, zero: never, at: make(map[string]record.Micros, 8)}
		f.pods[name] = p
		f.order = append(f.order, p)
	}
	return p
}

func (f *fold) empty() {
	for _, p := range f.order {
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
		j.pods = append(j.pods, p)
		j.ended = max(j.ended, p.reached(f.there))
	}
	f.clear()
	for _, j := range f.jobs {
		slices.SortStableFunc(j.pods, func(a, b *pod) int {
			return cmp.Or(cmp.Compare(a.slot.iteration, b.slot.iteration), cmp.Compare(a.slot.replica, b.slot.replica), cmp.Compare(a.name, b.name))
		})
	}
}

// all returns the jobs at the end. A job with pods that were never ready ended with its step.
func (f *fold) all() map[string]*jobFold {
	f.empty()
	for _, j := range f.jobs {
		ready := 0
		for _, p := range j.pods {
			if p.reached(f.there) != never {
				ready++
			}
		}
		if ready < j.units {
			j.ended = max(j.ended, j.cut)
		}
	}
	return f.jobs
}
