package follow

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// Ageing deletes the pods of an open axis as they age, so that arrivals do not
// fill the cluster.
type Ageing struct {
	*prepared.Run
	mu sync.Mutex
	on bool
	// Both are in the order in which they are due.
	readyOnes, bornOnes []aged
	living              map[string]bool // not yet asked to go
	asked               map[string]bool // whose creation was not answered yet

	stop    context.CancelFunc
	working *errgroup.Group
}

// aged is a pod and when it is due to go.
type aged struct {
	pod string
	due record.Micros
}

const (
	ageingInterval = 20 * time.Millisecond
	// ageingWorkers is how many deletions are under way at once.
	ageingWorkers = 32
)

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

// creating notes that a pod is asked for, and created that this is settled. In between
// it is not deleted: a request that is tried again would make it a second time, and a
// look at its name would not find what was made.
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

// due takes out the pods that are due to go.
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

// Begin starts the ageing of what is created from now on; it goes on until end,
// and at most as long as watching.
func (a *Ageing) Begin(watching context.Context, remove func(ctx context.Context, pod string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		return
	}
	ctx, cancel := context.WithCancel(watching)
	working := new(errgroup.Group)
	working.SetLimit(1 + ageingWorkers)
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
	_ = a.working.Wait() // none of it fails
	a.mu.Lock()
	defer a.mu.Unlock()
	a.living, a.asked, a.readyOnes, a.bornOnes = nil, nil, nil, nil
}
