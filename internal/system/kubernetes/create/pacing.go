package create

import (
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
)

// Pacing says when requests may be made where the configuration itself decides: by its rates, pauses and
// waits.
type Pacing struct {
	*Rendering
	slots []PlannedSlot
	// settled counts the objects since the target was empty that are ready or failed.
	now     func() record.Micros
	settled func() int
	before  int // objects that earlier levels asked for

	asked   int           // objects that this level has asked for
	rate    record.Micros // the earliest time of a request by the rate
	pause   record.Micros // and by a pause
	started bool
}

// Pacing returns the pacing of the slots of a level.
func (p *Population) Pacing(slots []PlannedSlot, now func() record.Micros, settled func() int) *Pacing {
	return &Pacing{Rendering: p.Rendering, slots: slots, now: now, settled: settled, before: p.Units}
}

// Due reports whether request i may be made now. It is called until it returns true, for one request
// after the other.
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

// mayFollow reports whether a slot may follow the one before: after an iteration with podWait, or
// a job that waits when finished, the earlier objects must be ready.
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

// done reports whether all requested objects are ready or failed.
func (p *Pacing) done() bool { return p.settled() >= p.before+p.asked }

// pauseBetween returns the configured pause between two requests.
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
