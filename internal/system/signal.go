package system

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Signal is the cause with which a signal ends what is under way.
type Signal interface {
	error
	ExitCode() int      // that of the signal
	Ago() time.Duration // since it came
}

// SignalOf returns the signal that ended ctx, nil for none.
func SignalOf(ctx context.Context) Signal {
	var signal Signal
	errors.As(context.Cause(ctx), &signal) // nil stays nil
	return signal
}

// afterSignal bounds the wait for answers after a signal, so that the program ends within two seconds.
const afterSignal = time.Second

// Outlive returns a context that ends a second after a signal that ended ctx, or with ctx where the
// system is out of reach, and else not: what was begun is worth its end.
func Outlive(ctx context.Context) (context.Context, context.CancelFunc) {
	rest, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		var silent interface{ OutOfReach() bool }
		if errors.As(context.Cause(ctx), &silent) && silent.OutOfReach() {
			cancel(context.Cause(ctx))
		}
		signal := SignalOf(ctx)
		if signal == nil {
			return
		}
		timer := time.NewTimer(afterSignal - signal.Ago())
		defer timer.Stop()
		select {
		case <-timer.C:
			cancel(signal)
		case <-rest.Done():
		}
	})
	return rest, func() { stop(); cancel(nil) }
}

// LeftError says that what the run has made could not all be removed.
type LeftError struct {
	Err  error
	Left int // how many things, as far as that is known
}

func (e *LeftError) Error() string { return fmt.Sprintf("clean up: %v", e.Err) }

func (e *LeftError) Unwrap() error { return e.Err }
