package experiment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/text/nearest"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

func newReportCommand(p *process.Process) *cobra.Command {
	var open bool
	var out string
	cmd := &cobra.Command{
		Annotations: map[string]string{process.HoldsNothing: "yes"},
		Use:         "report DIR...",
		Short:       "Write the page of a recorded run",
		Long: `Write report.html into each run directory: one file that needs no network. It
shows the verdict, the levels, the distributions of latencies, the course of the
run, why objects failed, and the resources used. It contains the raw data as CSV.

A run that was not judged since its record was written is judged first, as by
'plimsoll analyze'. No cluster is needed.`,
		Example: `  plimsoll report plimsoll-runs/20261121-101500-node-density --open
  plimsoll report plimsoll-runs/*
  plimsoll report /archive/first --out first.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			return process.ExactlyOne("run directory")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(_ *cobra.Command, args []string) error {
			// Every directory is checked before anything is written.
			for _, path := range args {
				if record.IsGrid(path) {
					continue
				}
				if _, err := records.OpenDir(path); err != nil {
					return err
				}
			}
			if out != "" && (len(args) > 1 || record.IsGrid(args[0])) {
				return process.Usagef("name one run", "--out is for the page of one run alone")
			}
			for _, path := range args {
				page, err := writeReport(p, path, out)
				if err != nil {
					return err
				}
				if _, err := fmt.Fprintln(p.Stdout, page); err != nil {
					return fmt.Errorf("print where the report is: %w", err)
				}
				if open {
					if err := openInBrowser(page); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&open, "open", false, "open it in the browser")
	cmd.Flags().StringVar(&out, "out", "", "a new `file` to write the page to (default report.html in the run directory)")
	return cmd
}

// writeReport writes the report of one run, to out unless it is "", and returns
// its path.
func writeReport(p *process.Process, path, out string) (string, error) {
	defer p.WaitFor("writing the page of " + path)()
	if record.IsGrid(path) {
		_, err := reportGrid(p, path)
		return filepath.Join(path, record.ReportFile), err
	}
	dir, err := records.OpenDir(path)
	if err != nil {
		return "", err
	}
	if err := records.JudgeAgain(dir); err != nil {
		return "", err
	}
	if out == "" {
		return dir.Path(record.ReportFile), report.WriteFile(dir)
	}
	page, err := report.Page(dir)
	if err != nil {
		return "", err
	}
	file, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", process.Usagef("give another --out", "%w", err)
	}
	if err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	_, err = file.Write(page)
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("write the page: %w", err), os.Remove(out))
	}
	return out, nil
}

// openInBrowser hands a page to the desktop's opener.
func openInBrowser(page string) error {
	full, err := filepath.Abs(page)
	if err == nil {
		err = exec.Command("xdg-open", full).Run()
	}
	if err != nil {
		return fmt.Errorf("open %s: %w", page, err)
	}
	return nil
}

func newAnalyzeCommand(p *process.Process) *cobra.Command {
	var output string
	var explain bool
	var signatures, into string
	cmd := &cobra.Command{
		Annotations: map[string]string{process.HoldsNothing: "yes"},
		Use:         "analyze DIR",
		Short:       "Judge a recorded run again, from its record alone",
		Long: `Read a run directory, judge the run from its history, and write result.json and
objects.parquet again. No cluster is needed. The record of a run that was killed
is judged as far as it goes. The known failures are those of the run, and those of
--signatures.

-o junit prints a JUnit file with a test for each goal. A goal that the exit code
does not follow is skipped. Of a run with a baseline each comparison is a test, too. --documents writes what kube-burner writes of a run of its
configuration.`,
		Example: `  plimsoll analyze plimsoll-runs/20261121-101500-node-density --explain
  plimsoll analyze nightly -o junit > junit.xml`,
		Args: process.ExactlyOne("run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if record.IsGrid(args[0]) {
				if signatures != "" {
					return process.Usagef("name the directory of a cell", "--signatures: %s holds several runs, a cell each", args[0])
				}
				g, err := reportGrid(p, args[0])
				if err != nil {
					return err
				}
				against := recorded.ReadAgainst(record.Dir(args[0]))
				if err := showGridResult(p, g, against, args[0], output); err != nil {
					return err
				}
				return process.ExitError(against.Code(g.ExitCode))
			}
			dir, x, err := records.OpenRecord(args[0])
			if err != nil {
				return err
			}
			more, err := loadSignatures(signatures)
			if err != nil {
				return err
			}
			x.Spec.Signatures = signature.Merge(x.Spec.Signatures, more)
			judged := p.WaitFor("judging the record")
			result, err := run.Replay(dir, x)
			judged()
			if err != nil {
				return err
			}
			against := recorded.ReadAgainst(dir)
			if err := showResult(p, result, against, args[0], output, explain); err != nil {
				return err
			}
			if against != nil && output == "text" {
				if err := text.Write(p.Text(), view.Against(against, process.CommandLine([]string{"compare", against.Baseline, args[0]}))); err != nil {
					return fmt.Errorf("print the comparison: %w", err)
				}
			}
			if into != "" {
				if err := writeDocuments(p, dir, into); err != nil {
					return err
				}
			}
			return process.ExitError(against.Code(result.ExitCode))
		},
	}
	process.OutputFlag(cmd, &output, "junit")
	cmd.Flags().StringVar(&signatures, "signatures", "", "also look for the failures in this `directory`; see 'plimsoll signatures'")
	cmd.Flags().BoolVar(&explain, "explain", false, "say why each level was chosen, and more of what was found")
	cmd.Flags().StringVar(&into, "documents", "", "also write the documents that kube-burner would of this run of a configuration into this `directory`; files of the same names are replaced")
	return cmd
}

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
