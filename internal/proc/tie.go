package proc

import (
	"runtime"
	"syscall"
)

// Tie starts processes that die with this one, whatever ends it: from one
// operating system thread that lives as long as the Tie does. The kernel sends a
// parent-death signal when the thread that forked ends, not the process; Go's
// threads come and go.
type Tie struct{ calls chan func() }

// NewTie makes a Tie, which must be closed.
func NewTie() *Tie {
	t := &Tie{make(chan func())}
	go t.run()
	return t
}

func (t *Tie) run() {
	runtime.LockOSThread() // the thread ends with the goroutine, as it is not unlocked
	if syscall.Gettid() == syscall.Getpid() {
		// Go never ends the process's first thread. While it is held here, a
		// goroutine that begins runs on another one.
		held := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(held)
			t.serve()
		}()
		<-held
		runtime.UnlockOSThread()
		return
	}
	t.serve()
}

func (t *Tie) serve() {
	for call := range t.calls {
		call()
	}
}

// Do calls a function on the thread, such as one that enters a namespace and
// starts a process there.
func (t *Tie) Do(call func() error) error {
	result := make(chan error)
	t.calls <- func() { result <- call() }
	return <-result
}

// Close ends the thread and with it whatever it started and still runs.
func (t *Tie) Close() { close(t.calls) }
