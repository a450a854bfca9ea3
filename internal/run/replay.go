package run

import (
	"errors"
	"io/fs"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/record"
)

// Replay judges a recorded run from its record alone and writes objects.parquet
// and result.json anew.
func Replay(dir record.Dir, x Experiment) (judge.Result, error) {
	rows, err := record.NewObjectWriter(dir, x.Spec.Milestones)
	if err != nil {
		return judge.Result{}, err
	}
	result, err := judged(dir, x, rows.Add)
	if err := errors.Join(err, rows.Close()); err != nil {
		return judge.Result{}, err
	}
	return result, dir.WriteJSON(record.ResultFile, result)
}

// Judge judges a recorded run from its record alone and writes nothing.
func Judge(dir record.Dir, x Experiment) (judge.Result, error) { return judged(dir, x, nil) }

func judged(dir record.Dir, x Experiment, rows func(record.ObjectRow)) (judge.Result, error) {
	var environment record.Environment
	err := dir.ReadJSON(record.EnvironmentFile, &environment)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return judge.Result{}, err
	}
	if !missing {
		x.Spec.Start = environment.Start
	}
	x.Spec.Kind = kindOf(environment, x.Spec.Kind)
	builder := judge.NewBuilder(x.Spec)
	builder.Rows = rows
	history, err := record.ReadHistory(dir, func(e record.Event) error {
		builder.Add(e)
		return nil
	})
	if err != nil {
		return judge.Result{}, err
	}
	if missing {
		builder.Warn(record.Warning{Kind: record.WarningCut, Text: "the run ended before it had described its target: there is no environment.json"})
	}
	if history.Unknown > 0 {
		builder.Warn(record.Warning{Kind: record.WarningCut, Text: "the history holds events of kinds that this version does not know: they were passed over"})
	}
	result := builder.Finish(x.Design, environment.Fidelity, "")
	judge.Foreseen(&result, environment)
	return result, nil
}
