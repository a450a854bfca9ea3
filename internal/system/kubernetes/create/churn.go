package create

import (
	"context"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// churning deletes a share of a job's objects and makes it again, cycle by cycle.
type churning struct {
	of    part // that made the objects
	job   *kubeburner.Job
	cycle int           // the next one, from 0
	until record.Micros // end of the last cycle's start; 0 is no bound
	parts []part        // of the present cycle, still to do
	over  bool
}

const endsWithin = time.Hour // for the end of what churns, whatever maxWaitTimeout is, as in kube-burner

// churns checks that the objects of a job can churn.
func churns(job *kubeburner.Job) error {
	if job.ChurnConfig.On() && slices.ContainsFunc(job.Objects, func(o kubeburner.Object) bool { return o.Group.GC }) {
		return system.Mistakef("leave out churnConfig, or group.gc", "job %s: its groups are removed, and removed objects cannot churn", job.Name)
	}
	if c := &job.ChurnConfig; c.On() && c.Mode == "namespaces" && (job.Namespace == "" || !job.NamespacedIterations) {
		return system.Mistakef("use mode: objects, or let the run make namespaces of its own, one for each iteration", "job %s: churnConfig.mode namespaces deletes namespaces of the job's iterations, and it has none", job.Name)
	}
	return nil
}

// next returns the next part of the churn, nil at its end: a cycle deletes first, and then makes again.
func (c *churning) next(ctx context.Context, x *Script) (*part, error) {
	if len(c.parts) == 0 {
		if err := x.awaitDone(ctx); err != nil {
			return nil, err
		}
		config := &c.job.ChurnConfig
		if c.cycle > 0 && !api.Sleep(ctx, config.Delay) {
			return nil, context.Cause(ctx)
		}
		if c.over || config.Cycles > 0 && c.cycle >= config.Cycles || c.until > 0 && x.sender.Clock.Now() >= c.until {
			return nil, nil
		}
		c.parts = c.plan(x)
		c.cycle++
	}
	p := &c.parts[0]
	c.parts = c.parts[1:]
	if !p.again {
		return p, nil
	}
	if c.over {
		return nil, nil // the deleted objects still exist, so they cannot be made again
	}
	if !api.Sleep(ctx, c.job.ChurnConfig.DeleteDelay) {
		return nil, context.Cause(ctx)
	}
	return p, x.sender.holdings.MakeNamespaces(ctx, p.slots)
}

// window returns the share of n numbers that a cycle uses, after those of the last one. The share is a multiple of
// together, if n is not less.
func window(n, percent, together, cycle int) []int {
	share := min(max(n*percent/100, 1), n)
	if rest := share % together; rest > 0 {
		if share += together - rest; share > n {
			share = max(n/together*together, 1)
		}
	}
	list := make([]int, share)
	for i := range list {
		list[i] = (cycle*share + i) % n
	}
	slices.Sort(list)
	return list
}

// plan returns the parts of a cycle: the deletions, and then the creation.
func (c *churning) plan(x *Script) (parts []part) {
	makers := x.pacing.makers[c.of.job]
	choose := func(of *Maker, gvk schema.GroupVersionKind, selector string, later bool, only func(target) bool) {
		m := of.remover(gvk, selector)
		m.job.WaitForDeletion, m.job.MaxWaitTimeout = true, endsWithin // an object that still exists cannot be created again
		parts = append(parts, part{job: c.of.job, to: 1, chooses: m, only: only, later: later})
	}
	again := part{job: c.of.job, again: true}
	var returns func(PlannedSlot) bool
	all := api.LabelRun + "=" + makers[0].ids.Run
	if c.job.ChurnConfig.Mode == "namespaces" {
		spaces, together := c.job.Namespaces(0, c.of.to), 1
		for i := range c.job.Objects { // those that share an object go together
			together = max(together, c.job.Objects[i].RepeatEveryNIterations)
		}
		var chosen []string
		for _, i := range window(len(spaces), c.job.ChurnConfig.Percent, together, c.cycle) {
			chosen = append(chosen, spaces[i])
		}
		iterations := make(map[int]bool)
		for i := range c.of.to {
			iterations[i] = slices.Contains(chosen, c.job.NamespaceOf(i))
		}
		// Objects that lie elsewhere go first: a namespace may not end before they do.
		for _, m := range makers {
			if m.apart {
				continue
			}
			for _, gvk := range m.elsewhere {
				choose(m, gvk, m.selector(), true, func(t target) bool { return iterations[t.iteration] && !slices.Contains(chosen, t.namespace) })
			}
		}
		choose(makers[0], schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, all, false, func(t target) bool { return slices.Contains(chosen, t.name) })
		returns = func(s PlannedSlot) bool { return iterations[s.Iteration] && !s.maker.apart }
	} else {
		chosen := c.objects()
		for _, m := range makers {
			if !c.job.Objects[m.index].Churn {
				continue
			}
			for _, gvk := range m.kinds {
				choose(m, gvk, m.selector(), false, func(t target) bool {
					return chosen[[3]int{m.index, t.iteration, t.replica}]
				})
			}
		}
		returns = func(s PlannedSlot) bool { return chosen[[3]int{s.Object, s.Iteration, s.Replica}] }
	}
	for _, s := range c.of.slots {
		if returns(s) {
			again.slots = append(again.slots, s)
		}
	}
	return append(parts, again)
}

// objects returns the entry, iteration and replica of each object that a cycle churns: a share of each entry's, the
// oldest ones, as in kube-burner.
func (c *churning) objects() map[[3]int]bool {
	of := make(map[int][][3]int) // by entry
	for _, s := range c.of.slots {
		if c.job.Objects[s.Object].Churn {
			of[s.Object] = append(of[s.Object], [3]int{s.Object, s.Iteration, s.Replica})
		}
	}
	chosen := make(map[[3]int]bool)
	for _, slots := range of {
		for _, i := range window(len(slots), c.job.ChurnConfig.Percent, 1, c.cycle) {
			chosen[slots[i]] = true
		}
	}
	return chosen
}

// remover returns the Maker of requests that delete what an entry has made of a kind, or other selected objects.
func (m *Maker) remover(gvk schema.GroupVersionKind, selector string) *Maker {
	job := *m.job
	job.JobType = kubeburner.Delete
	mapping, err := m.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		panic("create: a kind that was made before is unknown: " + err.Error())
	}
	return &Maker{
		job: &job, jobIndex: m.jobIndex, index: m.index, ids: m.ids, mapper: m.mapper, all: m.all, onlyPods: true, stage: -1,
		chooses: &choice{gvk.Kind, mapping, selector},
	}
}
