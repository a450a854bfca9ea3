package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func newSignaturesCommand(p *process.Process) *cobra.Command {
	return process.Group(&cobra.Command{
		Use:   "signatures",
		Short: "Known failures: list, show",
		Long: `Known failures are recognised by the cluster's events, by the messages of objects,
requests and logs, and by the conditions of a step. A result names those that it
found, with an explanation and a remedy.

--signatures DIR with limit, sweep, ab, run and analyze adds the failures in a
directory of files in the same format. One with a known name replaces it.
'plimsoll signatures show' prints one in that format.`,
	}, newSignaturesListCommand(p), newSignaturesShowCommand(p))
}

// signatures are known failures, with the keys of their files as JSON.
type signatures []signature.Signature

// MarshalJSON implements json.Marshaler.
func (s signatures) MarshalJSON() ([]byte, error) {
	text, err := signature.Marshal(s)
	if err != nil {
		return nil, err
	}
	var document any
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, err
	}
	return json.Marshal(document)
}

func newSignaturesListCommand(p *process.Process) *cobra.Command {
	var dir string
	cmd := process.Shows(p, &cobra.Command{
		Use:   "list",
		Short: "List the known failures",
		Args:  process.NoArguments,
	}, func(*cobra.Command, []string) (signatures, error) { return allSignatures(dir) }, func(w io.Writer, list signatures) error {
		for _, s := range list {
			fmt.Fprintf(w, "%s\t%s\n", s.Name, process.Printable(s.Title))
		}
		return nil
	})
	cmd.Flags().StringVar(&dir, "signatures", "", "also list the failures in this `directory`, after checking its files")
	return cmd
}

func newSignaturesShowCommand(p *process.Process) *cobra.Command {
	var dir string
	cmd := process.Shows(p, &cobra.Command{
		Use:     "show NAME",
		Short:   "Show how a failure is recognised and what to do about it",
		Example: `  plimsoll signatures show too-many-pods`,
		Args:    process.ExactlyOne("signature"),
	}, func(_ *cobra.Command, args []string) (signatures, error) {
		list, err := allSignatures(dir)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, s := range list {
			if s.Name == args[0] {
				return signatures{s}, nil
			}
			names = append(names, s.Name)
		}
		return nil, process.Usagef(nearest.Hint(args[0], names, "see 'plimsoll signatures list'"), "there is no signature %q", args[0])
	}, func(_ io.Writer, list signatures) error {
		text, err := signature.Marshal(list)
		p.Printf("%s", text)
		return err
	})
	cmd.Flags().StringVar(&dir, "signatures", "", "also look in this `directory`")
	return cmd
}

// allSignatures returns the built-in ones and those of a directory, "" for none.
func allSignatures(dir string) (signatures, error) {
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
		return nil, process.Usagef(nearest.File(dir), "--signatures: there is no directory %s", dir)
	case err != nil:
		return nil, process.Usagef("", "--signatures: %w", err)
	case !info.IsDir():
		return nil, process.Usagef("name the directory of the file", "--signatures: %s is not a directory", dir)
	}
	list, err := signature.Load(os.DirFS(dir), dir)
	var none *signature.NoFilesError
	switch {
	case errors.As(err, &none):
		return nil, process.Usagef("'plimsoll signatures show NAME' prints one to start with", "--signatures: %w", err)
	case len(strictyaml.Problems(err)) > 0:
		return nil, process.Usagef("", "%w", err)
	case err != nil:
		return nil, fmt.Errorf("--signatures: %w", err)
	}
	return list, nil
}
