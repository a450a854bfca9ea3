package run

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/record"
)

// Replay judges a run from its record alone and writes its results again, which it returns in any case.
func Replay(dir record.Dir, x Experiment) (result.Result, error) {
	r, err := ReplayInto(dir, dir, x)
	if err == nil {
		_ = metrics.Rebuild(dir) // a query makes them otherwise, and reports the error
	}
	return r, err
}

// ReplayInto replays into another directory than the run's, and writes no blocks of metrics.
func ReplayInto(dir, into record.Dir, x Experiment) (result.Result, error) {
	rows, err := record.NewObjectWriter(into, x.Spec.Milestones)
	if err != nil {
		return result.Result{}, err
	}
	windows := record.NewWindowWriter(into)
	var rowErr error
	r, err := judged(dir, x, rows.Add, func(s *result.Step, w *record.Window) {
		row, err := w.Row()
		rowErr = cmp.Or(rowErr, err)
		row.Step, row.Level, row.Arm, row.Replicate = int64(s.ID), s.Level, s.Arm, int64(s.Replicate)
		windows.Add(row)
	})
	failed := errors.Join(rowErr, rows.Close(), windows.Close())
	if err == nil {
		err = into.WriteResult(&r, x.Secrets)
	}
	return r, cmp.Or(failed, err)
}

// Judge judges a recorded run from its record alone and writes nothing.
func Judge(dir record.Dir, x Experiment) (result.Result, error) { return judged(dir, x, nil, nil) }

func judged(dir record.Dir, x Experiment, rows func(record.ObjectRow), windows func(*result.Step, *record.Window)) (result.Result, error) {
	environment, err := dir.Environment()
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return result.Result{}, err
	}
	if missing { // nothing is known of the target
		environment = &record.Environment{Start: x.Spec.Start, Kind: &record.ObjectKind{Object: record.Noun{One: "object", Many: "objects"}, There: x.Spec.Kind.There}}
	}
	x.Spec.Start, x.Spec.Kind = environment.Start, *environment.Kind
	builder := judge.NewBuilder(x.Spec)
	builder.Rows, builder.Windows = rows, windows
	sums := make(map[string]string)
	history, err := record.ReadHistory(dir, func(e record.Event) error {
		if file, ok := e.Body.(*record.File); ok {
			sums[file.Name] = file.SHA256
		}
		builder.Add(e)
		return nil
	})
	if damaged, ok := errors.AsType[*record.DamagedError](err); ok && history.Events > 0 {
		builder.Forget()
		builder.Warn(record.Warning{Kind: record.WarningCut, Text: fmt.Sprintf("%v: the steps that ended well before that are judged, as of a run that was cut off; a copy of the file may be whole", damaged)})
	} else if err != nil {
		return result.Result{}, err
	}
	for _, part := range history.Damaged {
		builder.Warn(record.Warning{Kind: record.WarningCut, Places: []string{part}, Text: "a part of " + record.HistoryFile + " is damaged: the steps in it decide nothing; a copy of the file may be whole"})
	}
	for _, name := range dir.Changed(sums) {
		builder.Warn(record.Warning{Kind: record.WarningCut, Text: name + " was changed after the run: this verdict follows the changed file"})
	}
	if missing {
		builder.Warn(record.Warning{Kind: record.WarningCut, Text: "the run ended before environment.json was written: the target is unknown"})
	}
	if history.Unknown > 0 {
		builder.Warn(record.Warning{Kind: record.WarningCut, Text: "the history has events of unknown kinds: they were skipped"})
	}
	r := builder.Finish(x.Design, environment.Fidelity, "")
	findings.AddPredictions(&r, *environment)
	return r, nil
}
