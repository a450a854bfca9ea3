package process

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// Interrupts turns signals into contexts. The first signal ends Soft: stop the
// load, write down what is there, clean up. The second ends Hard: give up
// whatever is slow. The third ends the process.
type Interrupts struct {
	Soft, Hard context.Context
	cause      chan os.Signal
	done       chan struct{}
	// AtOnce says that the command holds nothing that has to be let go of: where it
	// does not end by itself within a second it is ended.
	AtOnce atomic.Bool
	// Left says what a process that ends at once leaves, nil for nothing.
	Left atomic.Pointer[string]
}

// NewInterrupts waits for signals until it is closed.
func NewInterrupts(signals <-chan os.Signal, log func(format string, args ...any)) *Interrupts {
	soft, endSoft := context.WithCancelCause(context.Background())
	hard, endHard := context.WithCancel(context.Background())
	i := &Interrupts{Soft: soft, Hard: hard, cause: make(chan os.Signal, 1), done: make(chan struct{})}
	go func() {
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
					endSoft(interruptedError{CodeOf(s), time.Now()})
					if i.AtOnce.Load() {
						go i.endWithin(endsWithin, s, log)
					}
				case 2:
					endHard()
				default:
					if left := i.Left.Load(); left != nil {
						log("%s\n", *left)
					}
					os.Exit(CodeOf(s))
				}
			case <-i.done:
				endSoft(nil)
				endHard()
				return
			}
		}
	}()
	return i
}

// endsWithin is how long a command that holds nothing may take to end.
const endsWithin = time.Second

// endWithin ends the process by a signal that came, unless the command ends.
func (i *Interrupts) endWithin(patience time.Duration, s os.Signal, log func(format string, args ...any)) {
	select {
	case <-time.After(patience):
		log("plimsoll: it was interrupted: what it writes is not written\n")
		os.Exit(CodeOf(s))
	case <-i.done:
	}
}

// interruptedError is why a run ended that its user interrupted. It is as good
// as context.Canceled.
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

// First is the signal that came first, or nil. It answers once.
func (i *Interrupts) First() os.Signal {
	select {
	case s := <-i.cause:
		return s
	default:
		return nil
	}
}

func (i *Interrupts) Close() { close(i.done) }

// CodeOf is the exit code of a program that a signal has ended.
func CodeOf(s os.Signal) int {
	if number, ok := s.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return ExitInterrupted
}
