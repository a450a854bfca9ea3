package cli

import (
	"errors"
	"fmt"
)

// Exit codes, as the contracts fix them.
const (
	exitHeld         = 0   // the line was confirmed, or nothing failed; better, equivalent, notWorse
	exitBreached     = 1   // breached or worse; findings
	exitUsage        = 2   // usage, plan, or something named that does not exist
	exitInconclusive = 3   // what was measured does not decide
	exitInvalid      = 4   // the tool itself was the bottleneck
	exitCouldNotRun  = 5   // unreachable, input/output, the laboratory failed
	exitInterrupted  = 130 // SIGINT
	exitTerminated   = 143 // SIGTERM
)

// usageError is a mistake in what the user wrote or named. Hint is one line
// that says what to do about it, or "".
type usageError struct {
	err  error
	hint string
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes a usageError.
func usagef(hint, format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...), hint}
}

// couldNotRun is an error with advice that is no mistake of the user's.
type couldNotRun struct {
	err  error
	hint string
}

func (e *couldNotRun) Error() string { return e.err.Error() }
func (e *couldNotRun) Unwrap() error { return e.err }

// exitError carries an exit code for a command that has already said what
// there was to say.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode maps what a command returned to the code the program ends with.
func exitCode(err error) int {
	var exit exitError
	var usage *usageError
	switch {
	case err == nil:
		return exitHeld
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		return exitUsage
	default:
		return exitCouldNotRun
	}
}

// hintOf is the advice that belongs to an error, or "".
func hintOf(err error) string {
	var usage *usageError
	if errors.As(err, &usage) {
		return usage.hint
	}
	var could *couldNotRun
	if errors.As(err, &could) {
		return could.hint
	}
	return ""
}
