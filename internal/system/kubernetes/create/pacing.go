package create

import (
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
)

// Pacing says when the requests of a level may be made where the configuration itself
// says it: by the rate of its jobs, by its pauses, and by what it waits for.
type Pacing struct {
	*Rendering
	slots []PlannedSlot
	// now is the time, and settled how many of the objects asked for since the
	// target was empty are there, or will never be.
	now     func() record.Micros
	settled func() int
	before  int // objects that were asked for before this level

	asked   int           // objects of this level that were asked for
	rate    record.Micros // no request before that by the rate
	pause   record.Micros // nor before that by a pause
	started bool
}

// Pacing is that of the slots of a level; settled is as of Pacing.
func (p *Population) Pacing(slots []PlannedSlot, now func() record.Micros, settled func() int) *Pacing {
	return &Pacing{Rendering: p.Rendering, slots: slots, now: now, settled: settled, before: p.Units}
}

// Due reports whether request i may be made now. It is called until it is true, for
// one request after the other.
func (p *Pacing) Due(i int) bool {
	now, slot := p.now(), p.slots[i]
	job := slot.maker.job
	gap := time.Duration(float64(time.Second) / job.QPS)
	// A burst is what may be sent at once after a while without requests.
	earliest := now - record.MicrosOf(time.Duration(job.Burst-1)*gap)
	if !p.started {
		p.started, p.rate = true, earliest
		if j := slot.maker.jobIndex; j > 0 {
			p.pause = now + record.MicrosOf(slot.maker.all.config.Jobs[j-1].JobPause)
		}
	}
	if i > 0 && !p.mayFollow(job, p.slots[i-1], slot) || now < max(p.rate, p.pause) {
		return false
	}
	p.rate = max(p.rate, earliest) + record.MicrosOf(gap)
	if i+1 < len(p.slots) {
		p.pause = now + record.MicrosOf(pauseBetween(slot, p.slots[i+1]))
	}
	p.asked += slot.maker.units
	for _, a := range slot.maker.waits {
		a.ask(a.perSlot)
	}
	return true
}

// mayFollow reports whether a slot may be asked for after the one before it: at the
// end of an iteration whose pods are waited for, or of a job that waits when it is
// finished, those before must be there.
func (p *Pacing) mayFollow(job *kubeburner.Job, last, slot PlannedSlot) bool {
	other := last.maker.jobIndex != slot.maker.jobIndex
	if !other && (last.Iteration == slot.Iteration || !job.PodWait) {
		return true
	}
	if other && !last.maker.job.WaitWhenFinished && !last.maker.job.PodWait {
		return true
	}
	return p.done() && !slices.ContainsFunc(p.makers[last.maker.jobIndex], func(m *Maker) bool {
		return slices.ContainsFunc(m.waits, func(a *awaited) bool { return !a.done() })
	})
}

// done reports whether all objects that were asked for are there, or never will be.
func (p *Pacing) done() bool { return p.settled() >= p.before+p.asked }

// pauseBetween is how long the configuration pauses between two requests.
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
