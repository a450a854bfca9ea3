package create

import (
	"context"
	"errors"
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// Script makes the load of a level by the jobs of a configuration as it stands, one
// after the other.
type Script struct {
	sender  *Sender
	pacing  *Pacing
	parts   []part // still to be made
	slots   []PlannedSlot
	within  func(namespace string) bool
	present *part // that is being made, nil for none
	churn   *churning
	// population has made so many objects, of which inPlace are there.
	population *Population
	inPlace    func() int
	unwatch    context.CancelFunc
}

// part is a job of a level, or an entry of one: its iterations, and of one that creates
// the slots.
type part struct {
	job, from, to int
	first, last   int // index in the slots of a raising
	slots         []PlannedSlot
	chooses       *Maker // nil for one that creates
	chosen        *chosen
	only          func(target) bool // of what is chosen; nil is all
	again         bool              // it makes again what was deleted
}

// Script is that of a level that was planned. Settled is as of Pacing, and within says
// which namespaces are the run's; inPlace is how many objects are there now.
func (s *Sender) Script(p *Population, load *Raising, settled, inPlace func() int, within func(namespace string) bool) *Script {
	x := &Script{sender: s, pacing: p.Pacing(nil, s.Clock.Now, settled), within: within, population: p, inPlace: inPlace}
	for _, of := range load.parts {
		if of.slots = load.Slots[of.first:of.last]; p.config.Jobs[of.job].Creates() {
			x.parts = append(x.parts, of)
			continue
		}
		for _, m := range p.makers[of.job] {
			of.chooses = m
			x.parts = append(x.parts, of)
		}
	}
	return x
}

// Batch is the script as the engine carries it out.
func (x *Script) Batch(units int, spread system.Spread) system.Batch {
	return system.Batch{
		Units: units, Spread: spread, More: x.more, Due: x.pacing.Due,
		Send: func(ctx context.Context, i int) record.Slot { return x.sender.Send(ctx, x.slots[i]) },
	}
}

// more ends the part that was made, and begins the next.
func (x *Script) more(ctx context.Context) (requests, units int, err error) {
	for {
		if err := x.end(ctx); err != nil {
			return 0, 0, err
		}
		if x.present, err = x.next(ctx); err != nil || x.present == nil {
			return 0, 0, err
		}
		if err := x.watch(ctx); err != nil {
			return 0, 0, err
		}
		if x.present.chooses != nil {
			if x.present.slots, err = x.present.askings(); err != nil {
				return 0, 0, err
			}
			// Nothing to delete is what the plan meant; a read that found nothing is not a pass.
			if m := x.present.chooses; len(x.present.slots) == 0 && m.job.JobType != kubeburner.Delete {
				x.unmet(m.job, m.chooses.kind, &unmetError{fmt.Sprintf("its labels select no %s", m.chooses.kind)})
			}
		}
		if x.present.again {
			for _, s := range x.present.slots {
				units += s.maker.units
			}
			x.population.Units += units
		}
		if n := len(x.present.slots); n > 0 {
			x.slots = append(x.slots, x.present.slots...)
			x.pacing.slots = x.slots
			return n, units, nil
		}
	}
}

// next is the part to be made next, nil for none.
func (x *Script) next(ctx context.Context) (*part, error) {
	if x.churn != nil {
		if p, err := x.churn.next(ctx, x); p != nil || err != nil {
			return p, err
		}
		x.churn = nil
	}
	if len(x.parts) == 0 {
		return nil, nil
	}
	p := &x.parts[0]
	x.parts = x.parts[1:]
	return p, nil
}

// awaitDone waits until all objects so far are there, or never will be.
func (x *Script) awaitDone(ctx context.Context) error {
	for !x.pacing.done() {
		if !api.Sleep(ctx, settlePoll) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// watch begins to follow what the present part waits for, before it is made.
func (x *Script) watch(ctx context.Context) error {
	if x.present.chooses != nil { // what is chosen is there once the jobs before it are done
		if err := x.awaitDone(ctx); err != nil {
			return err
		}
	}
	ctx, x.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	if m := x.present.chooses; m != nil {
		c := &chosen{there: make(map[string]target), leaving: make(map[string]bool)}
		x.present.chosen = c
		doubt := func() bool { n, _ := c.left(); return n > 0 }
		return watch(ctx, x.sender.Run, m.chooses.resource, m.chooses.selector, c, doubt, x.sender.fail)
	}
	for _, m := range x.makers() {
		for _, a := range m.waits {
			if x.present.again {
				for _, s := range x.present.slots {
					if s.maker == m {
						a.ask(-a.perSlot) // it was deleted
					}
				}
			} else {
				a.none()
			}
			if err := a.follow(ctx, x.sender.Run, x.within, x.sender.fail); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Script) makers() []*Maker { return x.pacing.makers[x.present.job] }

// end waits for what the present part waits for. What does not come is put on record
// as a request that failed.
func (x *Script) end(ctx context.Context) error {
	if x.present == nil {
		return nil
	}
	defer x.unwatch()
	job := &x.pacing.config.Jobs[x.present.job]
	if m := x.present.chooses; m != nil {
		chosen := x.present.chosen
		x.present = nil
		if !m.job.WaitForDeletion || m.job.JobType != kubeburner.Delete {
			return nil
		}
		err := x.awaitGone(ctx, chosen, job.MaxWaitTimeout)
		if err != nil && !x.unmet(job, m.chooses.kind, err) {
			return err
		}
		if x.churn != nil && err != nil {
			x.churn.over = true
		}
		return nil
	}
	for _, m := range x.makers() {
		for _, a := range m.waits {
			if err := a.await(ctx, job.MaxWaitTimeout); err != nil && !x.unmet(job, a.kind, err) {
				return err
			}
		}
	}
	if job.ChurnConfig.On() && !x.present.again {
		x.churn = &churning{of: *x.present, job: job}
		if d := job.ChurnConfig.Duration; d > 0 {
			x.churn.until = x.sender.Clock.Now() + record.MicrosOf(d)
		}
	}
	x.present = nil
	return nil
}

// unmet puts on record that something did not come that a job waits for, as a request
// that failed; it reports false for another error.
func (x *Script) unmet(job *kubeburner.Job, kind string, err error) bool {
	what, is := errors.AsType[*unmetError](err)
	if !is {
		return false
	}
	now := x.sender.Clock.Now()
	x.sender.Emit(&record.Slot{
		Slot: "wait for " + kind + " of job " + job.Name, Resource: kind, Component: job.Name, Intended: now, Sent: now, Replied: now,
		Outcome: record.SlotFailed, Error: fmt.Sprintf("job %s: %v", job.Name, what),
	})
	return true
}

// awaitGone waits until what was asked to go is gone, with what others made of it.
func (x *Script) awaitGone(ctx context.Context, c *chosen, patience time.Duration) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		n, name := c.left()
		if more := x.inPlace() - (x.pacing.before + x.pacing.asked - x.sender.holdings.Released()); n == 0 && more > 0 {
			n, name = more, "pods"
		}
		switch {
		case n == 0:
			return nil
		case api.Sleep(bound, settlePoll):
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return &unmetError{fmt.Sprintf("%s still there %v after they were deleted, such as %s", record.Noun{One: "object is", Many: "objects are"}.Count(n), patience, name)}
		}
	}
}
