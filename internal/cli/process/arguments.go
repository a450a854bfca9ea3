package process

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/text/nearest"
)

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
