package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/system"
)

// grid makes an experiment that varies something: each cell is a run of its own
// in a directory below the grid's.
type grid struct {
	*runner
	dir   record.Dir
	cells []plan.Cell
	// failed says of a cell why it has no result, and codes its exit code.
	failed map[string]error
}

// showGrid makes the grid and shows its result.
func (r *runner) showGrid(f *experimentFlags) error {
	dir := record.Dir(r.out)
	if r.plan.AsRun == nil { // it is not resumed
		var err error
		if dir, err = run.NewDir(r.out, r.plan.Name, r.p.Now()); errors.Is(err, fs.ErrExist) {
			return process.Usagef("give another --out", "%w", err)
		} else if err != nil {
			return err
		}
		id, _, err := r.p.Names()
		if err != nil {
			return err
		}
		axis, err := r.workload.Axis(r.plan.Axis.Name)
		if err != nil {
			return err
		}
		kind := r.workload.KindOn(axis.Name)
		r.plan.AsRun = &plan.AsRun{
			ID: id, Kind: r.plan.Kind, Command: r.p.CommandLine(), Version: process.Version, Started: r.p.Now().UTC().Format(time.RFC3339),
			Unit: axis.Unit, Milestones: kind.Names(), Arrived: kind.There,
		}
		text, err := r.plan.Marshal()
		if err == nil {
			err = errors.Join(os.Mkdir(dir.Path(record.CellsDir), record.DirMode), dir.WriteFile(record.ExperimentFile, text))
		}
		if err != nil {
			return err
		}
	}
	lock, err := lockRun(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	defer r.continues(dir)()
	g := &grid{runner: r, dir: dir, cells: r.plan.Cells(), failed: make(map[string]error)}
	runErr := g.visitAll()
	if !g.begun() {
		// Nothing is on record: as with any run that never began, no directory
		// stays.
		if cause := cmp.Or(runErr, g.failed[g.cells[0].Name]); cause != nil {
			err := os.RemoveAll(string(dir))
			if r.out == "" {
				os.Remove(filepath.Dir(string(dir))) // if no other run is in it
			}
			return errors.Join(cause, err)
		}
	}
	found, err := judgeGrid(r.p, dir, r.plan, g.failed)
	if err != nil {
		return errors.Join(runErr, err)
	}
	if signal := system.SignalOf(r.stop.Soft); signal != nil {
		found.ExitCode = signal.ExitCode() // it may have come between two cells
	}
	against := r.against(dir)
	if err := writeGrid(dir, &found); err != nil {
		return err
	}
	if err := showGridResult(r.p, found, against, string(dir), f.output); err != nil {
		return err
	}
	code := against.Code(found.ExitCode)
	if against != nil && f.output == "text" {
		if err := r.showAgainst(against, dir); err != nil {
			return err
		}
	}
	if f.summary {
		if err := r.summarise(dir, result.Result{Verdict: found.Verdict, Why: found.Why}, against, code); err != nil {
			return err
		}
	}
	if runErr != nil {
		if process.ExitCode(runErr) != process.ExitUsage {
			r.p.Logf("hint: '%s' continues it\n", r.resumeCommand(dir))
		}
		if !r.told(runErr) {
			return runErr
		}
	}
	return process.ExitError(code)
}

// begun reports whether any cell has a record.
func (g *grid) begun() bool {
	entries, err := os.ReadDir(g.dir.Path(record.CellsDir))
	return err != nil || len(entries) > 0
}

// visitAll makes what is left of each cell, round by round. A cell that cannot
// be run does not keep the others from it; the error is of what ends all of
// them.
func (g *grid) visitAll() error {
	end := time.Time{}
	if g.plan.Budget > 0 {
		end = g.p.Now().Add(time.Duration(g.plan.Budget))
	}
	for round, order := range g.plan.Rounds() {
		for i, k := range order {
			c := g.cells[k]
			if err := context.Cause(g.stop.Soft); err != nil {
				return err
			}
			if !end.IsZero() && !g.p.Now().Before(end) {
				return run.ErrBudget
			}
			if g.failed[c.Name] != nil {
				continue
			}
			if !g.quiet {
				text := fmt.Sprintf("cell %d of %d", i+1, len(order))
				if n := len(g.plan.Rounds()); n > 1 {
					text += fmt.Sprintf(", round %d of %d", round+1, n)
				}
				g.p.Logf("%s: %s\n", text, c.Name)
			}
			err := g.visit(c, round, end)
			switch {
			case err == nil || errors.Is(err, run.ErrBudget):
			case g.mild(err) || process.ExitCode(err) == process.ExitUsage:
				return err
			default:
				g.p.Logf("plimsoll: cell %s: %v\n", c.Name, err)
				g.failed[c.Name] = err
			}
		}
	}
	return nil
}

// visit makes one round of a cell, unless it is made.
func (g *grid) visit(c plan.Cell, round int, end time.Time) error {
	path := g.dir.Path(filepath.Join(record.CellsDir, records.CellDir(c.Name)))
	r := *g.runner
	r.asked, r.ofGrid = nil, true
	levels := len(g.plan.Axis.Levels)
	r.steps = levels * (round + 1)
	if dir, err := g.dir.OpenCell(records.CellDir(c.Name)); err == nil {
		kept, x, err := runnerOf(g.p, &experimentFlags{allow: allBrought(g.plan, g.workload)}, path)
		if err != nil {
			return err
		}
		lock, err := lockRun(dir)
		if err != nil {
			return err
		}
		defer lock.Close()
		past, err := run.OpenPast(dir, kept.plan.AsRun.ID, x)
		if err != nil {
			return fmt.Errorf("go on with %s: %w", path, err)
		}
		if past.Done || levels > 0 && past.Made >= r.steps {
			return nil
		}
		r.plan, r.workload, r.past = kept.plan, kept.workload, past
		r.steps -= past.Made
	} else {
		of, err := g.plan.OfCell(c, g.workload.Target)
		if err != nil {
			return err
		}
		of.AsRun = nil
		r.plan, r.out, r.past = of, path, nil
	}
	if g.plan.Kind != plan.Sweep || g.plan.Repeat.Most < 2 {
		r.steps = 0
	}
	if !end.IsZero() {
		r.plan.Budget = plan.Duration(max(end.Sub(g.p.Now()), time.Millisecond))
	}
	dir, result, err := r.run(func(record.Dir, *result.Result, error) {})
	g.consent, g.guards = r.consent, r.guards // an answer is for all cells, and guards are said once
	if result == nil {
		return err
	}
	r.page(dir, false)
	if !g.quiet && (r.steps == 0 || round+1 == g.plan.Repeat.Most) {
		g.p.Logf("  %s\n", view.Sentence(*result))
	}
	return err
}

// judgeGrid puts the results of a grid's cells together, as far as they are
// there; failed says why one is not.
func judgeGrid(p *process.Process, dir record.Dir, of *plan.Plan, failed map[string]error) (judge.Grid, error) {
	var vary []judge.Varied
	for _, item := range of.Vary {
		vary = append(vary, judge.Varied{Key: item.Key, Values: item.Value})
	}
	var cells []judge.Cell
	for _, c := range of.Cells() {
		name := filepath.Join(record.CellsDir, records.CellDir(c.Name))
		cell := judge.Cell{Name: c.Name, Dir: name, Params: c.Values}
		path := record.Dir(dir.Path(name))
		if _, err := os.Lstat(string(path)); err != nil {
			cell.Failed, cell.ExitCode = "it was not run", process.ExitInconclusive
		} else if _, err := dir.OpenCell(records.CellDir(c.Name)); err != nil {
			cell.Failed, cell.ExitCode = err.Error(), process.ExitInconclusive
		} else if err := records.JudgeAgain(path); err != nil {
			return judge.Grid{}, err
		} else if err := path.ReadJSON(record.ResultFile, &cell.Result); err != nil {
			return judge.Grid{}, err
		}
		if err := failed[c.Name]; err != nil && cell.Failed != "" {
			cell.Failed, cell.ExitCode = err.Error(), process.ExitCode(err)
		}
		cells = append(cells, cell)
	}
	metric, margin, alpha := "", 0.05, 0.05
	if of.Primary != nil {
		metric, alpha = of.Primary.Metric, of.Primary.Alpha
		margin, _ = of.Primary.Share() // the plan is valid
	}
	g := judge.NewGrid(vary, cells, metric, margin, alpha)
	g.Experiment, g.Workload, g.Kind = of.Name, of.Workload, string(of.Kind)
	g.Command, g.Version = of.AsRun.Command, of.AsRun.Version
	return g, nil
}

// showGridResult prints the result of a grid.
func showGridResult(p *process.Process, g judge.Grid, a *recorded.Against, dir, format string) error {
	document := struct {
		judge.Grid
		Record   string            `json:"record"` // where it lies
		Baseline *recorded.Against `json:"baseline,omitempty"`
	}{g, dir, a}
	err := showAs(p, format, document, func() error { return report.GridJUnit(p.Stdout, g, a) }, view.Grid(g, dir))
	if err == nil && format == "text" {
		p.Printf("Report: %s\n", record.Dir(dir).Path(record.ReportFile))
	}
	return err
}

// writeGrid writes what a grid leaves beside its cells.
func writeGrid(dir record.Dir, g *judge.Grid) error {
	if err := dir.WriteResult(g, nil); err != nil {
		return err
	}
	return report.WriteGridFile(dir, *g)
}

// reportGrid judges the cells of a recorded grid and writes its pages.
func reportGrid(p *process.Process, path string) (judge.Grid, error) {
	of, err := process.LoadPlan(filepath.Join(path, record.ExperimentFile))
	if err != nil {
		return judge.Grid{}, err
	}
	if of.AsRun == nil {
		return judge.Grid{}, process.Usagef("", "%s is not one that a run has left: it has no asRun", filepath.Join(path, record.ExperimentFile))
	}
	of.Kind = of.AsRun.Kind
	dir := record.Dir(path)
	g, err := judgeGrid(p, dir, of, nil)
	if err != nil {
		return g, err
	}
	for _, c := range g.Cells {
		if c.Failed == "" {
			if err := report.WriteFile(record.Dir(dir.Path(c.Dir))); err != nil {
				return g, err
			}
		}
	}
	err = writeGrid(dir, &g)
	return g, err
}
