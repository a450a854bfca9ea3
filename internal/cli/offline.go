package cli

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
)

func newAnalyzeCommand(p *Process) *cobra.Command {
	var output string
	var explain bool
	var signatures string
	cmd := &cobra.Command{
		Use:   "analyze DIR",
		Short: "Judge a recorded run again, from its record alone",
		Long: `Read a run directory, judge the run from its history, and write result.json and
objects.parquet again. No cluster is needed. The record of a run that was killed
is judged as far as it goes. The known failures are those of the run, and those of
--signatures.`,
		Example: `  plimsoll analyze plimsoll-runs/20261121-101500-node-density --explain`,
		Args:    exactlyOne("run directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, x, err := openRecord(args[0])
			if err != nil {
				return err
			}
			more, err := loadSignatures(signatures)
			if err != nil {
				return err
			}
			x.Spec.Signatures = signature.Merge(x.Spec.Signatures, more)
			judged := p.waitFor("judging the record")
			result, err := run.Replay(dir, x)
			judged()
			if err != nil {
				return err
			}
			if err := showResult(p, result, args[0], output, explain); err != nil {
				return err
			}
			return exitError(result.ExitCode)
		},
	}
	outputFlag(cmd, &output)
	cmd.Flags().BoolVar(&explain, "explain", false, "say why each level was chosen, and what the scaling laws are based on")
	return cmd
}

// openRecord opens a run directory and reads the plan that was run.
func openRecord(path string) (record.Dir, run.Experiment, error) {
	dir, loaded, err := openRun(path)
	if err != nil {
		return "", run.Experiment{}, err
	}
	x, err := run.FromPlan(loaded)
	if err != nil {
		return "", run.Experiment{}, usagef("", "%s: %w", dir.Path(record.ExperimentFile), err)
	}
	return dir, x, nil
}

// openRun opens a run directory and reads the plan as it was run.
func openRun(path string) (record.Dir, *plan.Plan, error) {
	dir, err := openRunDir(path)
	if err != nil {
		return "", nil, err
	}
	loaded, err := plan.Load(dir.Path(record.ExperimentFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, usagef("", "%s is not a run directory: it has no %s", path, record.ExperimentFile)
	case err != nil:
		return "", nil, usagef("", "%w", err)
	case loaded.AsRun == nil:
		return "", nil, usagef("", "%s is not the plan of a run: it has no asRun", dir.Path(record.ExperimentFile))
	}
	loaded.Kind = loaded.AsRun.Kind
	return dir, loaded, nil
}
