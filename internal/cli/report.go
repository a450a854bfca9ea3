package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

func newReportCommand(p *Process) *cobra.Command {
	var open bool
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the page of a recorded run",
		Long: `Write report.html into each run directory: one file that needs no network. It
shows the verdict, the levels, the distributions of latencies, the course of the
run, why objects failed, and the resources used. It contains the raw data as CSV.

A run that was not judged since its record was written is judged first, as by
'plimsoll analyze'. No cluster is needed.`,
		Example: `  plimsoll report plimsoll-runs/20261121-101500-node-density --open
  plimsoll report plimsoll-runs/*`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactlyOne("run directory")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(_ *cobra.Command, args []string) error {
			// A directory that is none is told before anything is written.
			for _, path := range args {
				if _, err := openRunDir(path); err != nil {
					return err
				}
			}
			for _, path := range args {
				page, err := writeReport(p, path)
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
	return cmd
}

// openRunDir opens a run directory, with what a user can get wrong as a usage
// error.
func openRunDir(path string) (record.Dir, error) {
	dir, err := record.OpenDir(path)
	if _, ok := errors.AsType[*record.NotRunDirError](err); ok {
		return "", usagef(nearest.File(path), "%w", err)
	}
	return dir, err
}

// writeReport writes the report of one run and returns its path.
func writeReport(p *Process, path string) (string, error) {
	defer p.waitFor("writing the page of " + path)()
	dir, err := openRunDir(path)
	if err != nil {
		return "", err
	}
	if err := judgeAnew(dir); err != nil {
		return "", err
	}
	if err := report.WriteFile(dir, run.KindBefore()); err != nil {
		return "", err
	}
	return dir.Path(record.ReportFile), nil
}

// judgeAnew judges a run unless that was done since its record was written.
func judgeAnew(dir record.Dir) error {
	if judged(dir) {
		return nil
	}
	_, x, err := openRecord(string(dir))
	if err != nil {
		return err
	}
	_, err = run.Replay(dir, x)
	return err
}

// judged reports whether a run's record was judged since it was written.
func judged(dir record.Dir) bool {
	history, err := os.Stat(dir.Path(record.HistoryFile))
	if err != nil {
		return false
	}
	for _, name := range []string{record.ResultFile, record.ObjectsFile} {
		made, err := os.Stat(dir.Path(name))
		if err != nil || made.ModTime().Before(history.ModTime()) {
			return false
		}
	}
	return true
}

// openInBrowser hands a page to the desktop's opener.
func openInBrowser(page string) error {
	full, err := filepath.Abs(page)
	if err != nil {
		return fmt.Errorf("open %s: %w", page, err)
	}
	if err := exec.Command("xdg-open", full).Run(); err != nil {
		return fmt.Errorf("open %s: %w", page, err)
	}
	return nil
}
