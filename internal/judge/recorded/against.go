package recorded

import (
	"cmp"
	"errors"
	"io/fs"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// AgainstSchema names the format of baseline.json.
const AgainstSchema = "plimsoll/baseline/v1"

// Against is baseline.json: how a run compares with an earlier record of its plan.
type Against struct {
	Schema      string      `json:"schema,omitempty"`
	Baseline    string      `json:"baseline"` // the run directory, "" where there was none yet, and Why says so
	Verdict     slo.Verdict `json:"verdict"`  // the most serious of the comparisons, "" without any
	ExitCode    int         `json:"exitCode"`
	Why         string      `json:"why"`
	Comparisons []Outcome   `json:"comparisons,omitempty"` // of the run, or of each arm or cell
}

// Add adds a comparison. A regression outranks an undecided comparison.
func (a *Against) Add(o Outcome) {
	order := []int{1, 4, 3, 0}
	if len(a.Comparisons) == 0 || slices.Index(order, o.ExitCode) < slices.Index(order, a.ExitCode) {
		a.Verdict, a.ExitCode, a.Why = o.Verdict, o.ExitCode, o.Why
	}
	a.Comparisons = append(a.Comparisons, o)
}

// Code returns the exit code of a run with its own: a regression is one of a run that passed. A nil
// Against changes nothing.
func (a *Against) Code(own int) int {
	if a == nil {
		return own
	}
	return cmp.Or(own, a.ExitCode)
}

// ReadAgainst reads baseline.json of a run, nil for none. One that was changed is inconclusive.
func ReadAgainst(dir record.Dir) *Against {
	a := new(Against)
	err := dir.ReadJSON(record.BaselineFile, a)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && a.Schema == AgainstSchema:
		return a
	case err == nil:
		err = errors.New(record.BaselineFile + " has the schema " + a.Schema + ", this program reads " + AgainstSchema)
	}
	changed := &Against{Schema: AgainstSchema}
	changed.Add(Outcome{Verdict: slo.Inconclusive, ExitCode: compare.ExitCode(stats.Undecided), Why: err.Error()})
	return changed
}
