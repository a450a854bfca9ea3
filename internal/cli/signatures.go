package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func newSignaturesCommand(p *Process) *cobra.Command {
	return group(&cobra.Command{
		Use:   "signatures",
		Short: "Which failures are recognised: list, show",
		Long: `Failures that are known by what they leave behind: in the cluster's events, in
what objects, requests and logs tell, and in the conditions of a step. What a
step shows stands in its result, with an explanation and a remedy.

A directory of files in the same form adds others, or puts its own in the place
of those of the same name: --signatures DIR with limit, sweep, ab, run and
analyze. 'plimsoll signatures show' writes one as such a file would have it.`,
	}, newSignaturesListCommand(p), newSignaturesShowCommand(p))
}

func newSignaturesListCommand(p *Process) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the failures that are recognised",
		Args:  noArguments,
		RunE: func(*cobra.Command, []string) error {
			list, err := allSignatures(dir)
			if err != nil {
				return err
			}
			t := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
			for _, s := range list {
				fmt.Fprintf(t, "%s\t%s\n", s.Name, printable(s.Title))
			}
			return t.Flush()
		},
	}
	cmd.Flags().StringVar(&dir, "signatures", "", "with those of this `directory`'s files, which are checked")
	return cmd
}

func newSignaturesShowCommand(p *Process) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show what a failure is recognised by, and what to do about it",
		Example: `  plimsoll signatures show too-many-pods`,
		Args:    exactlyOne("signature"),
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := allSignatures(dir)
			if err != nil {
				return err
			}
			names := make([]string, len(list))
			for i, s := range list {
				if s.Name == args[0] {
					text, err := signature.Marshal([]signature.Signature{s})
					if err != nil {
						return err
					}
					p.printf("%s", text)
					return nil
				}
				names[i] = s.Name
			}
			return usagef(nearest.Hint(args[0], names, "see 'plimsoll signatures list'"), "there is no signature %q", args[0])
		},
	}
	cmd.Flags().StringVar(&dir, "signatures", "", "with those of this `directory`'s files")
	return cmd
}

// allSignatures are the built-in ones and those of a directory, "" for none.
func allSignatures(dir string) ([]signature.Signature, error) {
	list, err := signature.Builtin()
	if err != nil {
		return nil, err
	}
	more, err := loadSignatures(dir)
	return signature.Merge(list, more), err
}

// loadSignatures reads the signatures of a directory, none for "", with what a
// user can get wrong as a usage error.
func loadSignatures(dir string) ([]signature.Signature, error) {
	if dir == "" {
		return nil, nil
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, usagef(nearest.File(dir), "--signatures: there is no directory %s", dir)
	case err != nil:
		return nil, usagef("", "--signatures: %w", err)
	case !info.IsDir():
		return nil, usagef("name the directory that it is in", "--signatures: %s is no directory", dir)
	}
	list, err := signature.Load(os.DirFS(dir), dir)
	var none *signature.NoFilesError
	switch {
	case errors.As(err, &none):
		return nil, usagef("'plimsoll signatures show NAME' writes one to begin with", "--signatures: %w", err)
	case len(strictyaml.Problems(err)) > 0:
		return nil, usagef("", "%w", err)
	case err != nil:
		return nil, fmt.Errorf("--signatures: %w", err)
	}
	return list, nil
}

// printable keeps what a file says from steering the terminal.
func printable(text string) string { return strings.Join(strings.Fields(text), " ") }
