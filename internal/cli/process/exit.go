package process

import (
	"errors"
	"fmt"

	"plimsoll.dev/plimsoll/internal/system"
)

// Exit codes, as the contracts fix them.
const (
	ExitPass         = 0   // the line was confirmed, or nothing failed; better, equivalent, notWorse
	ExitFail         = 1   // breached or worse; findings
	ExitUsage        = 2   // usage, plan, or something named that does not exist
	ExitInconclusive = 3   // what was measured does not decide
	ExitInvalid      = 4   // the tool, or others on its machine, was the bottleneck
	ExitCouldNotRun  = 5   // unreachable, input/output, the lab failed
	ExitInterrupted  = 130 // SIGINT; of any signal it is 128 and its number
)

// Usagef makes the error of a mistake in what the user wrote or named. Hint is
// one line that says what to do about it, or "".
func Usagef(hint, format string, args ...any) error { return system.Mistakef(hint, format, args...) }

// ExitError carries an exit code for a command that has already said what
// there was to say.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ExitCode maps what a command returned to the code the program ends with.
func ExitCode(err error) int {
	if err == nil {
		return ExitPass
	}
	if exit, ok := errors.AsType[ExitError](err); ok {
		return int(exit)
	}
	if _, ok := errors.AsType[*system.MistakeError](err); ok {
		return ExitUsage
	}
	return ExitCouldNotRun
}

// HintOf returns the advice that belongs to an error, or "".
func HintOf(err error) string {
	if mistake, ok := errors.AsType[*system.MistakeError](err); ok {
		return mistake.Hint
	}
	if unable, ok := errors.AsType[*system.UnableError](err); ok {
		return unable.Hint
	}
	return ""
}
