package process

import (
	"context"
	"os"
	"sync/atomic"
	"syscall"
)

// Interrupts turns signals into contexts. The first signal ends Soft: stop the
// load, write down what is there, clean up. The second ends Hard: give up
// whatever is slow. The third ends the process.
type Interrupts struct {
	Soft, Hard context.Context
	cause      chan os.Signal
	done       chan struct{}
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
					endSoft(interruptedError{})
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

// interruptedError is why a run ended that its user interrupted. It is as good
// as context.Canceled.
type interruptedError struct{}

func (interruptedError) Error() string { return "it was interrupted" }

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
