package process

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// OutputFlag adds -o to a command, which does not run with a format that does
// not exist.
func OutputFlag(cmd *cobra.Command, format *string, more ...string) {
	formats := append([]string{"text", "json"}, more...)
	cmd.Flags().StringVarP(format, "output", "o", "text", oneOf(formats))
	cmd.PreRunE = func(*cobra.Command, []string) error { return CheckOutput(*format, more...) }
}

// CheckOutput refuses a format that does not exist.
func CheckOutput(format string, more ...string) error {
	formats := append([]string{"text", "json"}, more...)
	if !slices.Contains(formats, format) {
		return Usagef(nearest.Hint(format, formats, ""), "-o %q: want %s", format, oneOf(formats))
	}
	return nil
}

// Shows completes a command that looks at something: what find finds is printed as
// JSON, or as text with the tabs of its tables. An ExitError of find is returned once
// that is done.
func Shows[T any](p *Process, cmd *cobra.Command, find func(cmd *cobra.Command, args []string) (T, error), text func(w io.Writer, found T) error) *cobra.Command {
	var format string
	OutputFlag(cmd, &format)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		found, err := find(cmd, args)
		if _, shown := errors.AsType[ExitError](err); err != nil && !shown {
			return err
		}
		if format == "json" {
			return cmp.Or(PrintJSON(p, found), err)
		}
		w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
		if err := errors.Join(text(w, found), w.Flush()); err != nil {
			return fmt.Errorf("print what was found: %w", err)
		}
		return err
	}
	return cmd
}

// oneOf returns a choice in words.
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// PrintJSON prints a result as JSON.
func PrintJSON(p *Process, v any) error {
	data, err := record.Encode(v, "  ")
	if err != nil {
		return err
	}
	p.Printf("%s\n", data)
	return nil
}

// Count returns a number of things in words.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Printable keeps what a file says from steering the terminal.
func Printable(text string) string { return strings.Join(strings.Fields(text), " ") }

// CommandLine returns the command that this process was called with, but for what is
// secret in it.
func (p *Process) CommandLine() string {
	args := make([]string, len(p.Args))
	for i, a := range p.Args {
		args[i] = p.Secrets.Message(a)
	}
	return CommandLine(args)
}

// CommandLine returns a command as a shell reads it.
func CommandLine(args []string) string {
	words := []string{"plimsoll"}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]{}~#`!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// CleanCommand returns the command that removes what runs have left in a system.
func CleanCommand(of settings.Own) string {
	return CommandLine(append([]string{"clean"}, of.Named()...))
}
