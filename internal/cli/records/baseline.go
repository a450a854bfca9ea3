package records

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// lastBaseline stands for the last record of the same plan.
const lastBaseline = "last"

// Baseline is an earlier record that a run is compared with.
type Baseline struct {
	dir    string   // "" for a first night
	why    string   // it is a first night
	names  []string // of the runs in both records; see operandNames
	margin float64  // relative change that still counts as the same; 0 is that of the plans, or 5%
}

// FindBaseline finds the record that --baseline names, before the run of a plan leaves its own in
// out ("" for one below the default directory): the last one of the plan, or a directory, or one
// beside the run's. It returns nil for "". Margin is a text such as 5%, "" for that of the plans.
func FindBaseline(p *process.Process, given, margin, out string, of *plan.Plan) (b *Baseline, err error) {
	runs := record.RunsDir
	if out != "" {
		runs = filepath.Dir(filepath.Clean(out))
	}
	b = &Baseline{names: operandNames(of)}
	if margin != "" {
		b.margin, err = plan.Primary{Margin: margin}.Share()
	}
	switch {
	case err != nil:
		return nil, process.Usagef("", "--margin: %w", err)
	case given == "" && margin != "":
		return nil, process.Usagef("add --baseline last", "--margin is of the comparison with a baseline")
	case given == "":
		return nil, nil
	}
	beside := filepath.Join(runs, given)
	switch info, err := os.Stat(given); {
	case given == lastBaseline:
		return b, b.findLast(p, runs, of)
	case err == nil && info.IsDir() && !isRecord(given+string(filepath.Separator)+"."):
		return b, b.findLast(p, given, of)
	case err == nil:
		b.dir = given
	case isRecord(beside):
		b.dir = beside
	default:
		return nil, process.Usagef(nearest.Directory(beside, isRecord), "--baseline: no such record: %s, neither here nor in %s", given, runs)
	}
	loaded, err := planOf(b.dir)
	if err == nil && loaded.AsRun == nil {
		err = fmt.Errorf("%s is not a run directory: its %s has no asRun", b.dir, record.ExperimentFile)
	}
	if err != nil {
		return nil, process.Usagef("'plimsoll runs DIR' lists the records of a directory", "--baseline: %w", err)
	}
	if loaded.Workload != of.Workload || loaded.Axis.Name != of.Axis.Name {
		return nil, process.Usagef("name a record of the same plan", "--baseline: %s has a run of %s along %s, and this one is of %s along %s", b.dir, loaded.Workload, loaded.Axis.Name, of.Workload, of.Axis.Name)
	}
	has := operandNames(loaded)
	for _, name := range b.names {
		if !slices.Contains(has, name) {
			return nil, process.Usagef("it has: "+strings.Join(has, ", "), "--baseline: %s has no run %q", b.dir, strings.TrimPrefix(name, ":"))
		}
	}
	return b, nil
}

// findLast finds the last record of a plan in a directory whose verdict is decided: one with the same
// parameters, if there is any.
func (b *Baseline) findLast(p *process.Process, dir string, of *plan.Plan) error {
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return process.Usagef("name the directory that has run directories", "--baseline: %w", err)
	}
	type candidate struct {
		path string
		plan *plan.Plan
	}
	var list []candidate
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		if loaded, err := planOf(path); err == nil && loaded.AsRun != nil && isRecord(path) && samePlan(of, loaded) {
			list = append(list, candidate{path, loaded})
		}
	}
	slices.SortStableFunc(list, func(x, y candidate) int {
		if same := maps.Equal(x.plan.Params, of.Params); same != maps.Equal(y.plan.Params, of.Params) {
			return map[bool]int{true: -1, false: 1}[same]
		}
		return strings.Compare(y.plan.AsRun.Started, x.plan.AsRun.Started)
	})
	for _, c := range list {
		if e := entryOf(p, c.path); e.ExitCode != nil && *e.ExitCode <= process.ExitFail {
			b.dir = c.path
			return nil
		}
	}
	b.why = fmt.Sprintf("%s has no earlier run of %s with a decided verdict: this one is the first", dir, of.Name)
	return nil
}

// Compare compares the run in a directory with the baseline, and writes baseline.json there. What
// cannot be compared is inconclusive.
func (b *Baseline) Compare(ctx context.Context, p *process.Process, dir record.Dir) *recorded.Against {
	a := &recorded.Against{Schema: recorded.AgainstSchema, Baseline: b.dir, Why: b.why}
	if b.dir != "" {
		for _, name := range b.names {
			outcome, err := b.compare(ctx, p, b.dir+name, string(dir)+name)
			if err != nil {
				outcome = recorded.Outcome{Verdict: slo.Inconclusive, ExitCode: process.ExitInconclusive, Why: err.Error()}
			}
			outcome.Command, outcome.Version = p.CommandLine(), process.Version
			a.Add(outcome)
		}
	}
	if err := dir.WriteSealed(record.BaselineFile, a, p.Secrets); err != nil {
		p.Logf("warning: %v\n", err)
	}
	return a
}

func (b *Baseline) compare(ctx context.Context, p *process.Process, baseline, run string) (out recorded.Outcome, err error) {
	judged, remove, err := judgedDir()
	if err != nil {
		return out, err
	}
	defer remove()
	operands, err := loadOperands(ctx, p, []string{baseline, run}, judged, false)
	if err == nil {
		err = recorded.NameOperands(operands)
	}
	if err != nil {
		return out, err
	}
	return recorded.Compare(operands[0], operands[1], recorded.Options{Margin: b.margin, Workload: process.LoadWorkload, Facts: process.DeclaredFacts()})
}
