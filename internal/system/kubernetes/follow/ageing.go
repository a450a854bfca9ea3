package follow

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Ageing deletes the pods of an open axis by their age, so that arrivals do not fill the cluster.
type Ageing struct {
	*prepared.Run
	mu                  sync.Mutex
	on                  bool
	readyOnes, bornOnes []aged          // Both are ordered by their due time
	living              map[string]bool // not deleted yet
	asked               map[string]bool // creation not answered yet

	stop    context.CancelFunc
	working *errgroup.Group
}

type aged struct {
	pod string
	due record.Micros
}

const ageingInterval = 20 * time.Millisecond

func (a *Ageing) born(at record.Micros, pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.living[pod] = true
		a.bornOnes = append(a.bornOnes, aged{pod, at})
	}
}

func (a *Ageing) ready(at record.Micros, pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.readyOnes = append(a.readyOnes, aged{pod, at})
	}
}

func (a *Ageing) gone(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.living, pod)
}

// creating notes that a pod is requested, created its outcome. In between it is not deleted: a retry
// would make it again.
func (a *Ageing) creating(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.asked[pod] = true
	}
}

func (a *Ageing) created(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.asked, pod)
}

// due takes the pods that are due from the queues.
func (a *Ageing) due() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, life, follow := a.Clock.Now(), record.MicrosOf(a.Load.PodLife), record.MicrosOf(a.Load.Follow)
	var list []string
	take := func(queue []aged, age record.Micros) []aged {
		var later []aged
		for len(queue) > 0 && queue[0].due+age <= now {
			switch pod := queue[0].pod; {
			case a.asked[pod]:
				later = append(later, queue[0])
			case a.living[pod]:
				delete(a.living, pod)
				list = append(list, pod)
			}
			queue = queue[1:]
		}
		if len(later) > 0 {
			queue = append(later, queue...)
		}
		return queue
	}
	a.readyOnes = take(a.readyOnes, life)
	a.bornOnes = take(a.bornOnes, max(follow, life))
	return list
}

// Begin starts the ageing of pods that are created from now on, until End, or the end of watching.
func (a *Ageing) Begin(watching context.Context, remove func(ctx context.Context, pod string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		return
	}
	ctx, cancel := context.WithCancel(watching)
	working := new(errgroup.Group)
	working.SetLimit(1 + 32)
	a.on, a.living, a.asked, a.stop, a.working = true, make(map[string]bool), make(map[string]bool), cancel, working
	working.Go(func() error {
		tick := time.NewTicker(ageingInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
			for _, pod := range a.due() {
				working.Go(func() error { remove(ctx, pod); return nil })
			}
		}
	})
}

// End stops the ageing and waits for the deletions under way.
func (a *Ageing) End() {
	a.mu.Lock()
	on := a.on
	a.on = false
	a.mu.Unlock()
	if !on {
		return
	}
	a.stop()
	_ = a.working.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.living, a.asked, a.readyOnes, a.bornOnes = nil, nil, nil, nil
}
