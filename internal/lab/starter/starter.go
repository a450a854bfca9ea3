// Package starter starts processes that die with this one, whatever ends it.
package starter

import "runtime"

// Starter starts processes from one operating system thread that lives as
// long as it does. The kernel sends a parent-death signal when the thread that
// forked ends, not the process; Go's threads come and go.
type Starter struct{ calls chan func() }

// New makes a Starter, which must be closed.
func New() *Starter {
	s := &Starter{make(chan func())}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		for call := range s.calls {
			call()
		}
	}()
	return s
}

// Do calls a function on the thread, such as one that starts a process whose
// parent-death signal is set.
func (s *Starter) Do(call func() error) error {
	result := make(chan error)
	s.calls <- func() { result <- call() }
	return <-result
}

// Close ends the thread and with it whatever it started and still runs.
func (s *Starter) Close() { close(s.calls) }
