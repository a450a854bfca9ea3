package engine

import "sync"

// errorShare keeps the share of the latest requests that failed, counting
// every attempt: a request that succeeds at its fourth attempt failed three
// times.
type errorShare struct {
	mu     sync.Mutex
	latest [window]bool
	n, bad int
}

// window is how many attempts the share is taken over, and quorum how many
// there must be before it says anything.
const (
	window = 200
	quorum = 20
)

func (e *errorShare) add(failed bool, retries int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for range min(retries, window) {
		e.put(true)
	}
	e.put(failed)
}

func (e *errorShare) put(failed bool) {
	i := e.n % window
	if e.n >= window && e.latest[i] {
		e.bad--
	}
	e.latest[i] = failed
	if failed {
		e.bad++
	}
	e.n++
}

// percent is the share of failed attempts in percent, 0 without a quorum.
func (e *errorShare) percent() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.n < quorum {
		return 0
	}
	return 100 * float64(e.bad) / float64(min(e.n, window))
}
