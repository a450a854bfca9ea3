package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// resumeRun goes on with the run that has left a directory.
func resumeRun(cmd *cobra.Command, p *process.Process, stop *process.Interrupts, f *experimentFlags, path string) error {
	if err := process.CheckOutput(f.output); err != nil {
		return err
	}
	for _, own := range f.own {
		if cmd.Flags().Changed(own.Flag) {
			return process.Usagef("leave it out", "--%s: a resumed run keeps its target", own.Flag)
		}
	}
	for _, kept := range []struct{ flag, what, hint string }{
		{"signatures", "keeps its signatures", "leave it out; 'plimsoll analyze --signatures' takes others"},
		{"dry-run", "creates what it created before", "leave it out"},
		{"out", "keeps its directory", "leave it out"},
		{"baseline", "is compared once it has ended", "leave it out; 'plimsoll compare BASELINE " + path + "' compares it then"},
	} {
		if cmd.Flags().Changed(kept.flag) {
			return process.Usagef(kept.hint, "--%s: a resumed run %s", kept.flag, kept.what)
		}
	}
	if record.IsGrid(path) {
		return resumeGrid(p, stop, f, path)
	}
	dir, err := records.OpenDir(path)
	if err != nil {
		return err
	}
	lock, err := lockRun(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	r, x, err := runnerOf(p, f, path)
	if err != nil {
		return err
	}
	recalled := p.WaitFor("reading the record")
	past, err := run.OpenPast(dir, r.plan.AsRun.ID, x)
	recalled()
	if _, ok := errors.AsType[*run.ContradictionError](err); ok {
		hint := "undo what was changed in " + dir.Path(record.ExperimentFile) + ", or start again: plimsoll run " + dir.Path(record.ExperimentFile)
		if made := r.plan.AsRun.Version; made != process.Version {
			hint += fmt.Sprintf("; it was made by version %s, and this is %s", made, process.Version)
		}
		return process.Usagef(hint, "the run cannot be resumed: %w", err)
	}
	if err != nil {
		return err
	}
	if past.Done {
		return r.showFinished(p, f, dir, x)
	}
	p.Logf("%s\n", whereItGoesOn(path, past))
	r.under(p, stop, f)
	r.past = past
	defer r.continues(dir)()
	return r.show(f)
}

// lockRun keeps other programs from a run directory until the lock is closed.
func lockRun(dir record.Dir) (io.Closer, error) {
	lock, err := dir.Lock()
	if _, ok := errors.AsType[*record.BusyError](err); ok {
		return nil, process.Usagef("wait for it, or stop it", "%w", err)
	}
	return lock, err
}

// resumeGrid goes on with the cells of a grid that are left.
func resumeGrid(p *process.Process, stop *process.Interrupts, f *experimentFlags, path string) error {
	loaded, err := process.LoadPlan(filepath.Join(path, record.ExperimentFile))
	if err != nil {
		return err
	}
	r, err := runnerOfPlan(p, f, loaded, path)
	if err != nil {
		return err
	}
	r.out = path
	r.under(p, stop, f)
	return r.showGrid(f)
}

// runnerOf returns the runner that resumes the run in a directory, and its experiment.
func runnerOf(p *process.Process, f *experimentFlags, path string) (*runner, run.Experiment, error) {
	var none run.Experiment
	dir, loaded, err := records.OpenRun(path)
	if err != nil {
		return nil, none, err
	}
	r, err := runnerOfPlan(p, f, loaded, string(dir))
	if err != nil {
		return nil, none, err
	}
	if err := sameWorkload(loaded, r.workload); err != nil {
		return nil, none, err
	}
	x, err := run.FromPlan(loaded)
	if err != nil {
		return nil, none, process.Usagef("", "%s: %w", dir.Path(record.ExperimentFile), err)
	}
	if err := x.AddWorkload(r.workload, loaded.Params); err != nil {
		return nil, none, process.Usagef("", "%w", err)
	}
	return r, x, nil
}

// runnerOfPlan returns the runner of a recorded plan, if the plan names only what it may.
func runnerOfPlan(p *process.Process, f *experimentFlags, loaded *plan.Plan, dir string) (*runner, error) {
	said := f.word()
	said.resumed = true
	w, err := trustedWorkload(loaded, filepath.Join(dir, record.ExperimentFile), said)
	if err != nil {
		return nil, err
	}
	if err := f.giveSecrets(p, w, loaded); err != nil {
		return nil, err
	}
	if err := loaded.Hide(w, p.Secrets); err != nil {
		return nil, err
	}
	access, err := f.prometheus.access(p, loaded)
	if err != nil {
		return nil, err
	}
	if params, err := w.Resolve(loaded.Params); err == nil && w.AsItIs { // Validate reports the error
		if c, err := w.Config(params, anyUUID); err == nil {
			w.Measure(c)
		}
	}
	if err := f.addBudget(loaded); err != nil {
		return nil, err
	}
	loaded.Default(w)
	if err := loaded.Validate(w); err != nil {
		return nil, process.Usagef("", "%w", err)
	}
	return &runner{plan: loaded, workload: w, access: access}, nil
}

// giveSecrets takes the values of secret parameters that a plan does not have, or
// has hashes of. A plan that was run keeps its values: they must be the same.
func (f *experimentFlags) giveSecrets(p *process.Process, w *workload.Workload, to *plan.Plan) error {
	var wrong error
	pairs(f.set, "--set ", "k=v", "for example --set password=VALUE", func(err error) { wrong = cmp.Or(wrong, err) }, func(name, value string) bool {
		stands, err := w.Hide(p.Secrets, name, value)
		known := to.Params[name] == stands || slices.ContainsFunc(to.Arms, func(a plan.Arm) bool { return a.Params[name] == stands })
		switch {
		case err != nil:
		case !redact.IsHidden(stands):
			err = process.Usagef("change it in the file", "--set %s: with a file, only the value of a secret parameter can be given", name)
		case !known && to.AsRun != nil:
			err = process.Usagef("give the value that the run was started with", "--set: the value of %s is not the one that is on record as a hash", name)
		case !known:
			if to.Params == nil {
				to.Params = make(plan.Params)
			}
			to.Params[name] = stands
		}
		wrong = cmp.Or(wrong, err)
		return false // arms have values of their own
	})
	return wrong
}

// sameWorkload refuses a workload that is judged otherwise than the one that
// was run.
func sameWorkload(p *plan.Plan, w *workload.Workload) error {
	axis, err := w.Axis(p.Axis.Name)
	if err != nil {
		return process.Usagef("", "%w", err)
	}
	kind := w.KindOn(axis.Name)
	other := slices.ContainsFunc(p.AsRun.Milestones, func(m string) bool { return !slices.Contains(kind.Names(), m) })
	if other || p.AsRun.Arrived != kind.There || p.AsRun.Unit != axis.Unit {
		return process.Usagef("start again", "the run cannot be resumed: the workload %s has changed", p.Workload)
	}
	return nil
}

// whereItGoesOn says where a run goes on.
func whereItGoesOn(path string, past *run.Past) string {
	text := "resuming " + path
	if past.Whole > 0 {
		text += fmt.Sprintf(" after step %d", past.Whole)
	}
	if past.Cut > 0 {
		text += fmt.Sprintf("; step %d was cut and is repeated", past.Cut)
	}
	return text
}

// leftToDo says what a run that is finished leaves to its user, who removes it by
// the command; it is "" where nothing can be left.
func leftToDo(cleanup *record.Cleanup, command string) string {
	if command == "" || cleanup != nil && cleanup.Done {
		return "nothing is left to do"
	}
	return "it ended before all that it had made was removed; this removes what is left: " + command
}

// showFinished shows the result of a run that has nothing left to be made.
// What was judged already stays as it is.
func (r *runner) showFinished(p *process.Process, f *experimentFlags, dir record.Dir, x run.Experiment) error {
	judge := run.Judge
	if !records.Judged(dir) {
		judge = run.Replay
	}
	ended := p.WaitFor("judging the record")
	result, err := judge(dir, x)
	ended()
	if err != nil {
		return err
	}
	p.Logf("%s is finished: %s\n", dir, leftToDo(result.Cleanup, r.cleanCommand()))
	if err := showResult(p, result, nil, string(dir), f.output, f.explain); err != nil {
		return err
	}
	if _, err := os.Stat(dir.Path(record.ReportFile)); err == nil && f.output != "json" {
		p.Printf("Report: %s\n", dir.Path(record.ReportFile))
	}
	return process.ExitError(result.ExitCode)
}
