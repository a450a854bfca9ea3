package process

import (
	"fmt"
	"slices"
	"strings"

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

// oneOf is a choice in words.
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

// Count is a number of things in words.
func Count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Printable keeps what a file says from steering the terminal.
func Printable(text string) string { return strings.Join(strings.Fields(text), " ") }

// CommandLine is the command as a shell reads it.
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

// CleanCommand is the command that removes what runs have left in a system.
func CleanCommand(of settings.Own) string {
	return CommandLine(append([]string{"clean"}, of.Named()...))
}
