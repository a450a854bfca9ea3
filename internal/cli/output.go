package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/plan/settings"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// outputFlag adds -o to a command, which does not run with a format that does
// not exist.
func outputFlag(cmd *cobra.Command, format *string, more ...string) {
	formats := append([]string{"text", "json"}, more...)
	cmd.Flags().StringVarP(format, "output", "o", "text", oneOf(formats))
	cmd.PreRunE = func(*cobra.Command, []string) error { return checkOutput(*format, more...) }
}

func checkOutput(format string, more ...string) error {
	formats := append([]string{"text", "json"}, more...)
	if !slices.Contains(formats, format) {
		return usagef(nearest.Hint(format, formats, ""), "-o %q: want %s", format, oneOf(formats))
	}
	return nil
}

// oneOf is a choice in words.
func oneOf(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func printJSON(p *Process, v any) error {
	data, err := record.Encode(v, "  ")
	if err != nil {
		return err
	}
	p.printf("%s\n", data)
	return nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// printable keeps what a file says from steering the terminal.
func printable(text string) string { return strings.Join(strings.Fields(text), " ") }

// commandLine is the command as a shell reads it.
func commandLine(args []string) string {
	words := []string{"plimsoll"}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n'\"\\$&|;<>()*?[]{}~#`!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// cleanCommand is the command that removes what runs have left in a system.
func cleanCommand(of settings.Own) string {
	return commandLine(append([]string{"clean"}, of.Named()...))
}
