package process

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Interrupts turns signals into contexts. The first signal ends Soft: stop the
// load, write down what is there, clean up. The second ends Hard: give up
// whatever is slow. The third ends the process. SIGTERM leaves a run two seconds
// for all of that: whoever sends it kills what is slow. Only what a run has found it may
// say later, on a machine that is too busy.
type Interrupts struct {
	Soft, Hard context.Context
	cause      chan os.Signal
	done       chan struct{}
	// AtOnce says that the command holds nothing that has to be let go of: where it
	// does not end by itself within a second it is ended.
	AtOnce atomic.Bool
	// Left says what a run leaves whose process ends at once, "" for nothing; nil
	// where the command makes no run. Continues says how it goes on; nil is not at all.
	Left, Continues atomic.Pointer[string]
	// telling is closed once a run has said what it found; nil where it has found
	// nothing yet.
	telling atomic.Pointer[chan struct{}]
	log     func(format string, args ...any)
	end     func(code int)
}

// NewInterrupts waits for signals until it is closed.
func NewInterrupts(signals <-chan os.Signal, log func(format string, args ...any)) *Interrupts {
	soft, endSoft := context.WithCancelCause(context.Background())
	hard, endHard := context.WithCancelCause(context.Background())
	i := &Interrupts{Soft: soft, Hard: hard, cause: make(chan os.Signal, 1), done: make(chan struct{}), log: log, end: os.Exit}
	go func() {
		var first interruptedError
		for n := 1; ; n++ {
			select {
			case s := <-signals:
				if n > 1 && (s == syscall.SIGHUP || s == syscall.SIGPIPE) {
					n-- // a terminal that is gone tells so more than once, and no person does
					continue
				}
				switch n {
				case 1:
					i.cause <- s
					first = interruptedError{CodeOf(s), time.Now()}
					endSoft(first)
					switch {
					case i.AtOnce.Load():
						go i.endWithin(endsWithin, s)
					case s == syscall.SIGTERM:
						time.AfterFunc(removesWithin, func() { endHard(first) })
						go i.terminate(s)
					}
				case 2:
					endHard(first)
				default:
					i.exit(s)
				}
			case <-i.done:
				endSoft(nil)
				endHard(nil)
				return
			}
		}
	}()
	return i
}

// How long after a signal a command that holds nothing may take to end; and how long
// after SIGTERM a run waits for what it removes, and may take to end.
const (
	endsWithin       = time.Second
	removesWithin    = 1200 * time.Millisecond
	terminatesWithin = 1800 * time.Millisecond
)

// How long after SIGTERM a run may take on a busy machine until it has said what it
// found, and from then on to ask what it has made to go. Most of those who send the
// signal kill after ten seconds or more.
const (
	tellsWithin  = 8 * time.Second
	asksToGoThen = 700 * time.Millisecond
)

// Tells notes that a run has something to say at its end, until said is called.
func (i *Interrupts) Tells() (said func()) {
	telling := make(chan struct{})
	i.telling.Store(&telling)
	return sync.OnceFunc(func() { close(telling) })
}

// terminate ends the process by SIGTERM, unless the command ends: soon, but not before it
// has said what it found.
func (i *Interrupts) terminate(s os.Signal) {
	wait := func(patience time.Duration, until <-chan struct{}) (ended bool) {
		select {
		case <-time.After(patience):
		case <-until:
		case <-i.done:
			return true
		}
		return false
	}
	if wait(terminatesWithin, nil) {
		return
	}
	if telling := i.telling.Load(); telling != nil {
		select {
		case <-*telling:
		default:
			if wait(tellsWithin-terminatesWithin-asksToGoThen, *telling) || wait(asksToGoThen, nil) {
				return
			}
		}
	}
	i.endWithin(0, s)
}

// endWithin ends the process by a signal that came, unless the command ends.
func (i *Interrupts) endWithin(patience time.Duration, s os.Signal) {
	select {
	case <-time.After(patience):
		if i.AtOnce.Load() || i.Left.Load() != nil {
			i.exit(s)
		}
	case <-i.done:
	}
}

// exit ends the process at once.
func (i *Interrupts) exit(s os.Signal) {
	i.log("plimsoll: it was interrupted, and has ended before it was done\n")
	if left := i.Left.Load(); left != nil && *left != "" {
		i.log("%s\n", *left)
	}
	if command := i.Continues.Load(); command != nil {
		i.log("hint: '%s' continues it\n", *command)
	}
	i.end(CodeOf(s))
}

// interruptedError says that the user interrupted the run. It matches context.Canceled.
type interruptedError struct {
	code int
	came time.Time
}

func (interruptedError) Error() string { return "it was interrupted" }

// ExitCode implements system.Signal.
func (e interruptedError) ExitCode() int { return e.code }

// Ago implements system.Signal.
func (e interruptedError) Ago() time.Duration { return time.Since(e.came) }

func (interruptedError) Is(target error) bool { return target == context.Canceled }

// First returns the signal that came first, or nil. It answers once.
func (i *Interrupts) First() os.Signal {
	select {
	case s := <-i.cause:
		return s
	default:
		return nil
	}
}

func (i *Interrupts) Close() { close(i.done) }

// CodeOf returns the exit code of a program that a signal has ended.
func CodeOf(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitInterrupted
}
