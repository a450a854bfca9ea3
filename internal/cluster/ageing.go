package cluster

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// ageing deletes the pods of an open axis as they age, so that arrivals do not
// fill the cluster. Its state is guarded by the target's mu.
type ageing struct {
	on bool
	// Both are in the order in which they are due.
	readyOnes, bornOnes []aged
	living              map[string]bool // not yet asked to go

	stop    context.CancelFunc
	working sync.WaitGroup
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
	if a.on {
		a.living[pod] = true
		a.bornOnes = append(a.bornOnes, aged{pod, at})
	}
}

func (a *ageing) ready(at record.Micros, pod string) {
	if a.on {
		a.readyOnes = append(a.readyOnes, aged{pod, at})
	}
}

func (a *ageing) gone(pod string) { delete(a.living, pod) }

// due takes out the pods that are due to go.
func (a *ageing) due(now, life, follow record.Micros) []string {
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

// begin starts the ageing of what is created from now on; it goes on until end.
func (a *ageing) begin(t *Target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.on {
		return
	}
	ctx, cancel := context.WithCancel(t.watching)
	a.on, a.living, a.stop = true, make(map[string]bool), cancel
	pods := make(chan string, ageingWorkers)
	a.working.Go(func() {
		defer close(pods)
		tick := time.NewTicker(ageingInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			t.mu.Lock()
			due := a.due(t.clock.Now(), record.MicrosOf(t.load.PodLife), record.MicrosOf(t.load.Follow))
			t.mu.Unlock()
			for _, pod := range due {
				select {
				case pods <- pod:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	for range ageingWorkers {
		a.working.Go(func() {
			for pod := range pods {
				t.deletePod(ctx, pod)
			}
		})
	}
}

// end stops the ageing and waits for the deletions under way.
func (a *ageing) end(t *Target) {
	t.mu.Lock()
	on := a.on
	a.on = false
	t.mu.Unlock()
	if !on {
		return
	}
	a.stop()
	a.working.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	a.living, a.readyOnes, a.bornOnes = nil, nil, nil
}

// deletePod asks for the end of a pod that has aged. One that cannot be
// deleted now goes with all others when the target is emptied.
func (t *Target) deletePod(ctx context.Context, pod string) {
	namespace, name, _ := strings.Cut(pod, "/")
	var buf bytes.Buffer
	// The error is of no matter, see above; the server's trouble shows in the
	// load's own requests.
	_, _ = t.client.do(ctx, http.MethodDelete, "/api/v1/namespaces/"+namespace+"/pods/"+name, t.grace(), "", nil, &buf)
}
