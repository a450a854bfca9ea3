package cli

import (
	"errors"
	"fmt"

	"plimsoll.dev/plimsoll/internal/target"
)

// Exit codes, as the contracts fix them.
const (
	exitHeld         = 0   // the line was confirmed, or nothing failed; better, equivalent, notWorse
	exitBreached     = 1   // breached or worse; findings
	exitUsage        = 2   // usage, plan, or something named that does not exist
	exitInconclusive = 3   // what was measured does not decide
	exitInvalid      = 4   // the tool itself was the bottleneck
	exitCouldNotRun  = 5   // unreachable, input/output, the lab failed
	exitInterrupted  = 130 // SIGINT; of any signal it is 128 and its number
)

// usagef makes the error of a mistake in what the user wrote or named. Hint is
// one line that says what to do about it, or "".
func usagef(hint, format string, args ...any) error { return target.Mistakef(hint, format, args...) }

// exitError carries an exit code for a command that has already said what
// there was to say.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// exitCode maps what a command returned to the code the program ends with.
func exitCode(err error) int {
	if err == nil {
		return exitHeld
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return int(exit)
	}
	if _, ok := errors.AsType[*target.MistakeError](err); ok {
		return exitUsage
	}
	return exitCouldNotRun
}

// hintOf is the advice that belongs to an error, or "".
func hintOf(err error) string {
	if mistake, ok := errors.AsType[*target.MistakeError](err); ok {
		return mistake.Hint
	}
	if unable, ok := errors.AsType[*target.UnableError](err); ok {
		return unable.Hint
	}
	return ""
}
