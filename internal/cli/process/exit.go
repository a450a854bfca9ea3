package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/nearest"
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

// Confirm asks the question about a system on the terminal. An answer that is
// not yes is an error, and so is a terminal that is missing; why says what makes
// the question necessary.
func (p *Process) Confirm(ctx context.Context, system, why, question string) error {
	if !p.StdinTerminal {
		return Usagef("check that it is the right one, and give --yes", "%s %s, and was not confirmed", system, why)
	}
	p.Logf("%s\n%s [y/N] ", system, question)
	answer, err := ReadLine(ctx, p.Stdin)
	if err != nil {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return Usagef("", "not confirmed: nothing was done")
	}
	return nil
}

// ReadLine reads one line, unless ctx ends first.
func ReadLine(ctx context.Context, from io.Reader) (string, error) {
	return Await(ctx, func() (string, error) {
		text, err := bufio.NewReader(from).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", err)
		}
		return text, nil
	})
}

// Await waits for a reader that knows no context, or for the end of ctx.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// SeeHelp returns the hint that points to a command's help.
func SeeHelp(cmd *cobra.Command) string { return fmt.Sprintf("see '%s --help'", cmd.CommandPath()) }

// ExactlyOne takes one argument; what says of what, in the error.
func ExactlyOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return Usagef(SeeHelp(cmd), "which %s?", what)
		}
		return NoArguments(cmd, args[1:])
	}
}

// ExactlyTwo takes two arguments; want says which, in the error.
func ExactlyTwo(want, example string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 2 {
			return Usagef(fmt.Sprintf("for example '%s'", example), "%s", want)
		}
		return nil
	}
}

// NoArguments takes none.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef(SeeHelp(cmd), "unexpected argument %q", args[0])
	}
	return nil
}

// Group makes a command that only holds others: it shows its help, and knows
// their names where one is mistyped.
func Group(cmd *cobra.Command, verbs ...*cobra.Command) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range verbs { // cobra's own are not among them
			names = append(names, c.Name())
		}
		slices.Sort(names) // as help lists them
		word := fmt.Sprintf("'%s %s'", cmd.Name(), args[0])
		if !cmd.HasParent() {
			word = strconv.Quote(args[0])
		}
		return Usagef(nearest.Hint(args[0], names, SeeHelp(cmd)), "there is no command %s", word)
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(verbs...)
	return cmd
}

// FirstChanged returns the first of the flags that was given.
func FirstChanged(cmd *cobra.Command, names ...string) (name string, given bool) {
	i := slices.IndexFunc(names, cmd.Flags().Changed)
	if i < 0 {
		return "", false
	}
	return names[i], true
}

// HoldsNothing annotates a command that reads and computes, and makes nothing that
// must be removed: a signal ends it at once.
const HoldsNothing = "holdsNothing"

// CodesOfKubeBurner annotates a command whose exit codes are kube-burner's: 2 is a
// timeout there, and an error of any kind is 1.
const CodesOfKubeBurner = "codesOfKubeBurner"
