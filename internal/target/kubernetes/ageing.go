package kubernetes

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"plimsoll.dev/plimsoll/internal/record"
)

// ageing deletes the pods of an open axis as they age, so that arrivals do not
// fill the cluster.
type ageing struct {
	*shared
	mu sync.Mutex
	on bool
	// Both are in the order in which they are due.
	readyOnes, bornOnes []aged
	living              map[string]bool // not yet asked to go

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

func (a *ageing) born(at record.Micros, pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.living[pod] = true
		a.bornOnes = append(a.bornOnes, aged{pod, at})
	}
}

func (a *ageing) ready(at record.Micros, pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		a.readyOnes = append(a.readyOnes, aged{pod, at})
	}
}

func (a *ageing) gone(pod string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.living, pod)
}

// due takes out the pods that are due to go.
func (a *ageing) due() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, life, follow := a.clock.Now(), record.MicrosOf(a.load.PodLife), record.MicrosOf(a.load.Follow)
	var list []string
	take := func(queue []aged, age record.Micros) []aged {
		for len(queue) > 0 && queue[0].due+age <= now {
			if pod := queue[0].pod; a.living[pod] {
				delete(a.living, pod)
				list = append(list, pod)
			}
			queue = queue[1:]
		}
		return queue
	}
	a.readyOnes = take(a.readyOnes, life)
	a.bornOnes = take(a.bornOnes, max(follow, life))
	return list
}

// begin starts the ageing of what is created from now on; it goes on until end,
// and at most as long as watching.
func (a *ageing) begin(watching context.Context, remove func(ctx context.Context, pod string)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.on {
		return
	}
	ctx, cancel := context.WithCancel(watching)
	working := new(errgroup.Group)
	working.SetLimit(1 + ageingWorkers)
	a.on, a.living, a.stop, a.working = true, make(map[string]bool), cancel, working
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

// end stops the ageing and waits for the deletions under way.
func (a *ageing) end() {
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
	a.living, a.readyOnes, a.bornOnes = nil, nil, nil
}
