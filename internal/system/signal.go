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
	// ExitCode is that of the signal.
	ExitCode() int
	// Ago is how long ago it came.
	Ago() time.Duration
}

// SignalOf is the signal that ended ctx, nil for none.
func SignalOf(ctx context.Context) Signal {
	var signal Signal
	errors.As(context.Cause(ctx), &signal) // nil stays nil
	return signal
}

// afterSignal is how long after a signal answers are still awaited: a program that
// is told to end ends within two seconds where nothing answers.
const afterSignal = time.Second

// Outlive is a context that does not end with ctx: what was begun is worth its
// end. Where a signal has ended ctx that is awaited for a second only, and not at
// all where the system is out of reach.
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

// Error implements error.
func (e *LeftError) Error() string { return fmt.Sprintf("clean up: %v", e.Err) }

// Unwrap gives the reason.
func (e *LeftError) Unwrap() error { return e.Err }
