package create

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/api"
)

// Script makes the load of a level by the jobs of a configuration as it stands, one after the other.
type Script struct {
	sender     *Sender
	pacing     *Pacing
	parts      []part // still to do
	slots      []PlannedSlot
	within     func(namespace string) bool
	present    *part // nil before the first and after the last
	churn      *churning
	population *Population // counts the requested objects, inPlace the existing ones
	inPlace    func() int
	unwatch    context.CancelFunc
	going      []going            // not waited for yet
	watches    context.CancelFunc // closes the extra watches of the job watched; nil without any
	watched    int
	from       int  // the first slot of the present part
	inJob      int  // whose hooks run; -1 for none
	hooked     bool // its hooks after its objects were made have run
}

// part is a job of a level with its iterations and slots, or one entry of a job that creates nothing.
type part struct {
	job, from, to int
	first, last   int // index in the slots of a raising
	slots         []PlannedSlot
	chooses       *Maker // nil for a job that creates
	chosen        *chosen
	only          func(target) bool // filters the chosen objects; nil keeps all
	again         bool              // makes deleted objects again
	later         bool              // is waited for with a later part
	makers        []*Maker          // of its group, where groups are removed; nil for all of the job
	pause         time.Duration     // before it
}

// Script returns the script of a planned level. within says which namespaces are the run's, and inPlace
// counts existing objects.
func (s *Sender) Script(p *Population, load *Raising, settled, inPlace func() int, within func(namespace string) bool) *Script {
	x := &Script{sender: s, pacing: p.Pacing(nil, s.Clock.Now, settled), within: within, population: p, inPlace: inPlace, inJob: -1}
	for _, of := range load.parts {
		if of.slots = load.Slots[of.first:of.last]; p.config.Jobs[of.job].Creates() {
			x.parts = append(x.parts, p.byGroup(of)...)
			continue
		}
		job := &p.config.Jobs[of.job]
		steps := []part{of} // of the iterations
		if job.ExecutionMode == kubeburner.Sequential {
			steps = nil
			for i := of.from; i < of.to; i++ {
				step := of
				step.from, step.to = i, i+1
				steps = append(steps, step)
			}
		}
		for _, step := range steps {
			for i, m := range p.makers[of.job] {
				step.chooses, step.later = m, job.JobType != kubeburner.Delete && !job.ObjectWait && i < len(p.makers[of.job])-1
				x.parts = append(x.parts, step)
			}
		}
	}
	return x
}

// Batch returns the script as a batch for the engine.
func (x *Script) Batch(units int, spread system.Spread) system.Batch {
	return system.Batch{
		Units: units, Spread: spread, More: x.more, Due: x.pacing.Due,
		Send: func(ctx context.Context, i int) record.Slot { return x.sender.Send(ctx, x.slots[i]) },
	}
}

func (x *Script) more(ctx context.Context) (requests, units int, err error) {
	for {
		if err := x.end(ctx); err != nil {
			return 0, 0, err
		}
		if x.present, err = x.next(ctx); err == nil {
			err = x.enter(ctx, x.present)
		}
		if err != nil || x.present == nil {
			x.closeWatches()
			return 0, 0, err
		}
		if err := x.openWatches(ctx, x.present.job); err != nil {
			return 0, 0, err
		}
		if err := x.watch(ctx); err != nil {
			return 0, 0, err
		}
		if x.present.chooses != nil {
			if x.present.slots, err = x.present.askings(ctx, x.sender); err != nil {
				return 0, 0, err
			}
			// A deletion may find nothing, which its list shows; a read that finds nothing does not pass.
			if m := x.present.chooses; len(x.present.slots) == 0 && x.churn == nil {
				if m.job.JobType == kubeburner.Delete {
					x.noted("list", m.job, m.chooses.kind, record.Slot{Outcome: record.SlotCreated, Code: http.StatusOK})
				} else {
					x.unmet(m.job, m.chooses.kind, &unmetError{fmt.Sprintf("its labels select no %s", m.chooses.kind)})
				}
			}
		}
		for _, s := range x.present.slots {
			if x.present.again || s.asking != nil {
				x.population.Units, x.population.Beside = x.population.Units+s.units(), x.population.Beside+s.further()
				units += s.units() + s.further()
			}
		}
		if n := len(x.present.slots); n > 0 {
			x.from = len(x.slots)
			x.slots = append(x.slots, x.present.slots...)
			x.pacing.slots, x.pacing.begun = x.slots, x.beginning(ctx)
			return n, units, nil
		}
	}
}

func (x *Script) next(ctx context.Context) (*part, error) {
	if x.churn != nil {
		if p, err := x.churn.next(ctx, x); p != nil || err != nil {
			return p, err
		}
		x.churn = nil
		if err := x.hook(ctx, x.inJob, kubeburner.AfterChurn); err != nil {
			return nil, err
		}
	}
	if len(x.parts) == 0 {
		return nil, nil
	}
	p := &x.parts[0]
	x.parts = x.parts[1:]
	if p.pause > 0 {
		if err := x.awaitDone(ctx); err != nil {
			return nil, err
		}
		if !api.Sleep(ctx, p.pause) {
			return nil, context.Cause(ctx)
		}
	}
	return p, nil
}

// byGroup returns a part for each group of a job whose groups are removed, and after it its removal.
func (p *Population) byGroup(of part) (parts []part) {
	job := &p.config.Jobs[of.job]
	if !slices.ContainsFunc(job.Objects, func(o kubeburner.Object) bool { return o.Group.GC }) {
		return []part{of}
	}
	after := time.Duration(0)
	for slots := of.slots; len(slots) > 0; {
		id := slots[0].group().ID
		n := slices.IndexFunc(slots, func(s PlannedSlot) bool { return s.group().ID != id })
		if n < 0 {
			n = len(slots)
		}
		made := of
		made.slots, made.pause, slots = slots[:n], after, slots[n:]
		before := time.Duration(0)
		after = 0
		var removed []part
		for _, m := range p.makers[of.job] {
			group := job.Objects[m.index].Group
			if group.ID != id {
				continue
			}
			made.makers = append(made.makers, m)
			before = max(before, group.PauseBeforeGC)
			for _, gvk := range m.kinds {
				if group.GC {
					removed, after = append(removed, part{job: of.job, to: 1, chooses: m.remover(gvk, m.selector()), later: true}), max(after, group.PauseAfterGC)
				}
			}
		}
		if parts = append(parts, made); len(removed) > 0 {
			removed[0].pause, removed[len(removed)-1].later = before, false
		} else {
			after = before
		}
		parts = append(parts, removed...)
	}
	return parts
}

// awaitDone waits until all objects so far are ready or failed.
func (x *Script) awaitDone(ctx context.Context) error {
	for !x.pacing.done() {
		if !api.Sleep(ctx, settlePoll) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// watch begins to follow the awaited objects of a part, before they are made.
func (x *Script) watch(ctx context.Context) error {
	if x.present.chooses != nil {
		if err := x.awaitDone(ctx); err != nil {
			return err
		}
	}
	ctx, x.unwatch = context.WithCancel(context.WithoutCancel(ctx))
	if m := x.present.chooses; m != nil {
		c := &chosen{there: make(map[string]target), leaving: make(map[string]bool), patched: make(map[string]int64), before: make(map[string]string)}
		x.present.chosen = c
		for _, a := range m.waits {
			if err := a.follow(ctx, x.sender.Run, x.within, x.sender.fail); err != nil {
				return err
			}
		}
		doubt := func() bool {
			left, _ := c.left()
			rolling, _ := c.rolling()
			return left+rolling > 0
		}
		return watch(ctx, x.sender.Run, m.chooses.resource, m.chooses.selector, c, doubt, x.sender.fail)
	}
	for _, m := range x.makers() {
		for _, a := range m.waits {
			if x.present.again {
				for _, s := range x.present.slots {
					if s.maker == m {
						a.asked.Add(int64(-a.perSlot))
					}
				}
			} else {
				before := &m.job.Objects[m.index] // of earlier stages of the job
				a.asked.Store(int64(a.perSlot * before.Replicas * before.Times(m.job.From)))
			}
			if err := a.follow(ctx, x.sender.Run, x.within, x.sender.fail); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Script) makers() []*Maker {
	if x.present.makers != nil {
		return x.present.makers
	}
	return x.pacing.makers[x.present.job]
}

// end waits for the awaited objects of a part. Missing ones are recorded as a failed request.
func (x *Script) end(ctx context.Context) error {
	if x.present == nil {
		return nil
	}
	if p := x.present; p.chooses != nil {
		x.present, x.going = nil, append(x.going, going{p.chosen, p.chooses, x.unwatch})
		if p.later {
			return nil
		}
		all := x.going
		x.going = nil
		for _, g := range all {
			if err := x.await(ctx, g); err != nil {
				return err
			}
		}
		return nil
	}
	defer x.unwatch()
	job := &x.pacing.config.Jobs[x.present.job]
	for _, m := range x.makers() {
		for _, a := range m.waits {
			if err := a.await(ctx, job.MaxWaitTimeout); err != nil && !x.unmet(job, a.kind, err) {
				return err
			}
		}
	}
	if job.ChurnConfig.On() && !x.present.again && (job.ChurnConfig.Mode == "objects" || x.makers()[0].spaces) {
		x.churn = &churning{of: *x.present, job: job}
		if job.From > 0 { // the iterations of earlier stages churn, too
			x.churn.of.slots = nil
			for s := range job.Slots(0, job.JobIterations) {
				x.churn.of.slots = append(x.churn.of.slots, PlannedSlot{Slot: s, maker: x.pacing.makers[x.present.job][s.Object]})
			}
		}
		if d := job.ChurnConfig.Duration; d > 0 {
			x.churn.until = x.sender.Clock.Now() + record.MicrosOf(d)
		}
		if err := cmp.Or(x.made(ctx), x.hook(ctx, x.inJob, kubeburner.BeforeChurn)); err != nil {
			return err
		}
	}
	x.present = nil
	return nil
}

// going holds the chosen objects of a part, whose requests are waited for.
type going struct {
	*chosen
	maker   *Maker
	unwatch context.CancelFunc
}

// await waits until the chosen objects are gone, or are ready again.
func (x *Script) await(ctx context.Context, g going) error {
	defer g.unwatch()
	job := g.maker.job
	sequential := job.ExecutionMode == kubeburner.Sequential
	var err error
	switch {
	case job.JobType == kubeburner.Delete && job.WaitForDeletion:
		if err = x.awaitGone(ctx, g.chosen, job.MaxWaitTimeout); x.churn != nil && err != nil {
			x.churn.over = true
		}
	case job.JobType == kubeburner.Delete, !job.Objects[g.maker.index].Wait, sequential && !job.WaitWhenFinished && !job.ObjectWait:
		return nil
	default:
		err = awaitNone(ctx, job.MaxWaitTimeout, "not rolled out %v after they were changed", g.rolling)
		for _, a := range g.maker.waits {
			err = cmp.Or(err, a.await(ctx, job.MaxWaitTimeout))
		}
	}
	if err != nil && !x.unmet(job, g.maker.chooses.kind, err) {
		return err
	}
	return nil
}

// unmet records missing objects as a failed request; it reports false for another error.
func (x *Script) unmet(job *kubeburner.Job, kind string, err error) bool {
	what, is := errors.AsType[*unmetError](err)
	if !is {
		return false
	}
	x.noted("wait for", job, kind, record.Slot{Outcome: record.SlotFailed, Error: fmt.Sprintf("job %s: %v", job.Name, what)})
	return true
}

// noted records a request that no slot of a job makes.
func (x *Script) noted(does string, job *kubeburner.Job, kind string, slot record.Slot) {
	now := x.sender.Clock.Now()
	slot.Slot, slot.Resource, slot.Component = does+" "+kind+" of job "+job.Name, kind, job.Name
	slot.Intended, slot.Sent, slot.Replied = now, now, now
	x.sender.Emit(&slot)
}

// awaitGone waits until the deleted objects are gone, with their dependents.
func (x *Script) awaitGone(ctx context.Context, c *chosen, patience time.Duration) error {
	return awaitNone(ctx, patience, "still there %v after they were deleted", func() (int, string) {
		n, name := c.left()
		if more := x.inPlace() - (x.pacing.before + x.pacing.asked - x.sender.holdings.Released()); n == 0 && more > 0 {
			n, name = more, "pods"
		}
		return n, name
	})
}

// awaitNone waits until no object is left of those that left counts; it names one after the patience.
func awaitNone(ctx context.Context, patience time.Duration, why string, left func() (n int, name string)) error {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		n, name := left()
		switch {
		case n == 0:
			return nil
		case api.Sleep(bound, settlePoll):
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			return &unmetError{fmt.Sprintf("%s "+why+", such as %s", record.Noun{One: "object is", Many: "objects are"}.Count(n), patience, name)}
		}
	}
}

// Pacing says when requests may be made by the configuration's rates, pauses and waits.
type Pacing struct {
	*Rendering
	slots []PlannedSlot
	// settled counts the objects since the target was empty that are ready or failed.
	now     func() record.Micros
	settled func() int
	begun   func(i int) bool // reports whether the hooks before a request have run; nil without hooks
	before  int              // objects that earlier levels asked for

	asked    int           // objects that this level has asked for
	rate     record.Micros // the earliest time of a request by the rate
	pause    record.Micros // and by a pause
	followed int           // the request for which nothing is waited for any more
	started  bool
}

// Pacing returns the pacing of the slots of a level.
func (p *Population) Pacing(slots []PlannedSlot, now func() record.Micros, settled func() int) *Pacing {
	return &Pacing{Rendering: p.Rendering, slots: slots, now: now, settled: settled, before: p.Units + p.Beside}
}

// Due reports whether request i may be made now. It is called until it returns true.
func (p *Pacing) Due(i int) bool {
	now, slot := p.now(), p.slots[i]
	job := slot.maker.job
	gap := time.Duration(float64(time.Second) / job.QPS)
	// A burst is the number of requests that may follow at once after a pause.
	earliest := now - record.MicrosOf(time.Duration(job.Burst-1)*gap)
	if !p.started {
		p.started, p.rate = true, earliest
		if j := slot.maker.jobIndex; j > 0 {
			p.pause = now + record.MicrosOf(slot.maker.all.config.Jobs[j-1].JobPause)
		}
	}
	if i > 0 && i != p.followed {
		if !p.mayFollow(p.slots[i-1], slot) {
			return false
		}
		if last := p.slots[i-1]; last.maker.jobIndex == slot.maker.jobIndex && last.group().ID != slot.group().ID {
			p.pause = max(p.pause, now+record.MicrosOf(last.pauseOfGroup()))
		}
		p.followed = i
	}
	if now < max(p.rate, p.pause) || p.begun != nil && !p.begun(i) {
		return false
	}
	p.rate = max(p.rate, earliest) + record.MicrosOf(gap)
	if i+1 < len(p.slots) {
		p.pause = now + record.MicrosOf(pauseBetween(slot, p.slots[i+1]))
	}
	p.asked += slot.units() + slot.further()
	for _, a := range slot.maker.waits {
		a.asked.Add(int64(a.perSlot))
	}
	return true
}

// mayFollow reports whether a slot may follow the last: after podWait, or a job or group that is waited for, all
// must be ready. In a job with groups iterations are not waited for.
func (p *Pacing) mayFollow(last, slot PlannedSlot) bool {
	job := last.maker.job
	waits := job.PodWait || job.WaitWhenFinished
	if last.maker.jobIndex == slot.maker.jobIndex && last.group().ID == slot.group().ID {
		waits = job.PodWait && last.Iteration != slot.Iteration && !slices.ContainsFunc(job.Objects, func(o kubeburner.Object) bool { return o.Group.ID != 0 })
	}
	return !waits || p.done() && !slices.ContainsFunc(p.makers[last.maker.jobIndex], func(m *Maker) bool {
		return job.Objects[m.index].Group.ID <= last.group().ID && slices.ContainsFunc(m.waits, func(a *awaited) bool { return !a.done() })
	})
}

// pauseOfGroup returns the pause after all objects of the slot's group are ready.
func (p PlannedSlot) pauseOfGroup() (longest time.Duration) {
	for _, o := range p.maker.job.Objects {
		if o.Group.GC {
			return 0 // the parts of its groups have it
		}
		if o.Group.ID == p.group().ID {
			longest = max(longest, o.Group.PauseBeforeGC)
		}
	}
	return longest
}

// done reports whether all requested objects are ready or failed.
func (p *Pacing) done() bool { return p.settled() >= p.before+p.asked }

func pauseBetween(last, next PlannedSlot) time.Duration {
	job := last.maker.job
	switch {
	case last.maker.jobIndex != next.maker.jobIndex:
		return job.JobPause
	case last.Iteration != next.Iteration:
		return max(job.JobIterationDelay, job.ObjectDelay)
	}
	return job.ObjectDelay
}
