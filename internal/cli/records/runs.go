package records

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/page"
	"plimsoll.dev/plimsoll/internal/report/text"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// IndexFile is the page of a runs directory.
const IndexFile = "index.html"

// entry is a record of a runs directory, with its plan as it was run, nil where it cannot be read.
type entry struct {
	view.Listed
	plan *plan.Plan
}

// runsSchema names the format of the list.
const runsSchema = "plimsoll/runs/v1"

// runs are the records of a directory.
type runs struct {
	Schema string        `json:"schema"`
	Runs   []view.Listed `json:"runs"`
	Page   string        `json:"page,omitempty"` // that was written
}

func newRunsCommand(p *process.Process) *cobra.Command {
	var index bool
	cmd := process.Shows(p, &cobra.Command{
		Annotations: map[string]string{process.HoldsNothing: "yes"},
		Use:         "runs [DIR]",
		Short:       "List the records of a directory; name and remove them",
		Long: `List the runs whose records are in a directory (default ` + record.RunsDir + `), in the order of
their starts. Other files and directories are left out. --page also writes ` + IndexFile + ` there:
the records with their pages, and a trend for each plan, as by 'plimsoll compare'.

A name is the name of the run's directory: 'runs name' renames it, and --baseline NAME with limit, sweep, ab and run compares with it.`,
		Example: `  plimsoll runs --page
  plimsoll runs name plimsoll-runs/20261121-101500-node-density v1.2
  plimsoll runs remove plimsoll-runs/202611*`,
		Args: func(cmd *cobra.Command, args []string) error {
			return process.NoArguments(cmd, args[min(len(args), 1):])
		},
	}, func(cmd *cobra.Command, args []string) (runs, error) {
		dir := record.RunsDir
		if len(args) > 0 {
			dir = args[0]
		}
		defer p.WaitFor("reading the records of " + dir)()
		found := runs{Schema: runsSchema, Runs: []view.Listed{}}
		list, err := listRuns(p, dir)
		if err == nil && index {
			found.Page = filepath.Join(dir, IndexFile)
			err = writeIndex(cmd.Context(), p, dir, list)
		}
		for _, e := range list {
			found.Runs = append(found.Runs, e.Listed)
		}
		return found, err
	}, func(w io.Writer, found runs) error {
		for _, l := range found.Runs {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", text.Printable(l.Name), cmp.Or(process.Printable(l.Plan), "-"), cmp.Or(process.Printable(l.Workload), "-"),
				cmp.Or(process.Printable(words.Moment(l.Started)), "-"), cmp.Or(string(l.Verdict), "-"), process.Printable(cmp.Or(l.Note, l.Result)))
		}
		if len(found.Runs) == 0 {
			fmt.Fprintln(w, "the directory has no record of a run")
		}
		if found.Page != "" {
			fmt.Fprintf(w, "Page: %s\n", found.Page)
		}
		return nil
	})
	cmd.Flags().BoolVar(&index, "page", false, "also write "+IndexFile+" into the directory: the records, and the trend of each plan")
	cmd.AddCommand(newRunsNameCommand(p), newRunsRemoveCommand(p))
	return cmd
}

// listRuns returns the records of a directory by their starts.
func listRuns(p *process.Process, dir string) ([]entry, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, process.Usagef("name the directory that has run directories", "list the runs of %s: %w", dir, err)
	}
	var list []entry
	for _, f := range files {
		if path := filepath.Join(dir, f.Name()); f.IsDir() && isRecord(path) {
			list = append(list, entryOf(p, path))
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int { return cmp.Compare(a.Started, b.Started) })
	return list, nil
}

// isRecord reports whether a directory, not a link, holds the record of a run, also one that was cut.
func isRecord(path string) bool {
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return false
	}
	if info, err := os.Lstat(filepath.Join(path, record.HistoryFile)); err == nil && info.Mode().IsRegular() {
		return true
	}
	loaded, err := planOf(path)
	return err == nil && loaded.AsRun != nil
}

// planOf reads the plan of a record.
func planOf(path string) (*plan.Plan, error) {
	data, err := record.Dir(path).ReadFile(record.ExperimentFile) // no link to a device
	if err != nil {
		return nil, err
	}
	return plan.Parse(filepath.Join(path, record.ExperimentFile), data)
}

// entryOf sums up a record, with its faults as a note.
func entryOf(p *process.Process, path string) entry {
	loaded, err := planOf(path)
	e := entry{view.ListedOf(path, loaded, nil), loaded}
	if err == nil && loaded.AsRun == nil {
		err = fmt.Errorf("%s has no asRun", record.ExperimentFile)
	}
	var r result.Result
	if err == nil {
		err = foundIn(p, record.Dir(path), loaded, &r)
	}
	if err == nil && r.Schema != result.Schema {
		err = fmt.Errorf("its result has the schema %q, this program reads %q: it needs plimsoll %s", r.Schema, result.Schema, cmp.Or(r.Version, "of another version"))
	}
	if err != nil {
		e.Note = process.Printable(err.Error())
		return e
	}
	e.Listed = view.ListedOf(path, loaded, &r)
	if file := filepath.Join(path, record.ReportFile); hasFile(file) {
		e.Report = file
	}
	return e
}

func hasFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// foundIn reads the result of a record, or judges a copy where it has none of its history.
func foundIn(p *process.Process, dir record.Dir, loaded *plan.Plan, r *result.Result) error {
	grid := len(loaded.Vary) > 0
	if Judged(dir) || grid && dir.Intact() {
		return dir.ReadJSON(record.ResultFile, r)
	}
	lock, err := dir.Lock()
	if err != nil {
		return err
	}
	lock.Close()
	if grid {
		return fmt.Errorf("it was not judged: %s", process.CommandLine([]string{"analyze", string(dir)}))
	}
	if _, err := record.OpenDir(string(dir)); err != nil {
		return err
	}
	judged, remove, err := judgedDir()
	if err != nil {
		return err
	}
	defer remove()
	into, err := judgeIn(p, dir, filepath.Join(judged, "run"))
	if err != nil {
		return err
	}
	return into.ReadJSON(record.ResultFile, r)
}

// operandNames returns the names of the runs in a record that can be compared, as they follow
// its path: its arms, its cells, or itself.
func operandNames(p *plan.Plan) (names []string) {
	for _, a := range p.Arms {
		names = append(names, ":"+a.Name)
	}
	for _, c := range p.Cells() {
		names = append(names, ":"+c.Name)
	}
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// samePlan reports whether two runs are of one plan: by its name, its question, its workload, its axis,
// and its arms or cells. Other differences are for the comparison to find.
func samePlan(a, b *plan.Plan) bool {
	return a.Name == b.Name && a.Workload == b.Workload && kindOf(a) == kindOf(b) && a.Axis.Name == b.Axis.Name && slices.Equal(operandNames(a), operandNames(b))
}

func kindOf(p *plan.Plan) plan.ExperimentKind {
	if p.AsRun != nil {
		return p.AsRun.Kind
	}
	return p.Kind
}

// writeIndex writes the page of a directory.
func writeIndex(ctx context.Context, p *process.Process, dir string, list []entry) error {
	judged, remove, err := judgedDir()
	if err != nil {
		return err
	}
	defer remove()
	in := view.ComparisonInput{Outcome: recorded.Outcome{Command: p.CommandLine(), Version: process.Version}}
	type group struct {
		of       *plan.Plan
		name     string // of the arm or cell
		operands []*recorded.Operand
	}
	var groups []*group
	var listed []view.Listed
	rooms := 0
	for _, e := range list {
		if e.Verdict != "" {
			for _, name := range operandNames(e.plan) {
				rooms++
				operands, err := loadOperands(ctx, p, []string{e.Record + name}, filepath.Join(judged, strconv.Itoa(rooms)), true)
				if err != nil {
					e.Note = process.Printable(err.Error())
					continue
				}
				operands[0].Name = e.Name
				i := slices.IndexFunc(groups, func(g *group) bool { return g.name == name && samePlan(g.of, e.plan) })
				if i < 0 {
					i, groups = len(groups), append(groups, &group{of: e.plan, name: name})
				}
				groups[i].operands = append(groups[i].operands, operands[0])
			}
		}
		listed = append(listed, e.Listed)
	}
	o := recorded.TrendOptions{Options: recorded.Options{Workload: process.LoadWorkload, Facts: process.DeclaredFacts()}, Seed: 1}
	for _, g := range groups {
		outcome, err := recorded.TrendOf(g.operands, o)
		if err != nil {
			return err
		}
		for _, t := range outcome.Trends {
			t.Plan = g.of.Name + g.name
			in.Trends = append(in.Trends, t)
		}
		in.Warnings = append(in.Warnings, outcome.Warnings...)
		in.Operands = append(in.Operands, g.operands...)
	}
	of, err := view.RunsPage(in, dir, listed)
	var html bytes.Buffer
	if err == nil {
		err = page.Write(&html, of)
	}
	if err == nil {
		err = record.Dir(dir).WriteFile(IndexFile, html.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write the page of %s: %w", dir, err)
	}
	return nil
}

// lockRecord takes a record of a directory from its runs, until it is closed. It returns the
// record's path, whatever leads there. A cell of a grid is not a record by itself.
func lockRecord(text string) (path string, unlock func(), err error) {
	if path, err = filepath.Abs(text); err != nil {
		return "", nil, err
	}
	switch at, _ := os.Getwd(); {
	case !isRecord(path):
		return "", nil, process.Usagef("'plimsoll runs' lists the records of a directory", "%s is not a run directory", text)
	case filepath.Base(filepath.Dir(path)) == record.CellsDir && isRecord(filepath.Dir(filepath.Dir(path))):
		return "", nil, process.Usagef("name the directory of the grid", "%s is a cell of a grid", text)
	case strings.HasPrefix(at+string(filepath.Separator), path+string(filepath.Separator)):
		return "", nil, process.Usagef("change to another directory", "%s is the working directory, or holds it", text)
	}
	lock, err := record.Dir(path).Lock()
	if _, busy := errors.AsType[*record.BusyError](err); busy {
		return "", nil, process.Usagef("wait for it, or stop it", "%w", err)
	}
	if err != nil {
		return "", nil, err
	}
	return path, func() { lock.Close() }, nil
}

func newRunsNameCommand(p *process.Process) *cobra.Command {
	return &cobra.Command{
		Use:     "name RECORD NAME",
		Short:   "Rename the directory of a run",
		Example: `  plimsoll runs name plimsoll-runs/20261121-101500-node-density v1.2`,
		Args:    process.ExactlyTwo("which run directory, and what is its name?", "plimsoll runs name plimsoll-runs/20261121-101500-node-density v1.2"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[1]
			if name != filepath.Base(name) || strings.HasPrefix(name, ".") || strings.ContainsAny(name, `:\`) || name == lastBaseline || name != text.Printable(name) {
				return process.Usagef("for example v1.2", "%q is not a name for a record: it has a separator, begins with a dot, or is %q", name, lastBaseline)
			}
			path, unlock, err := lockRecord(args[0])
			if err != nil {
				return err
			}
			defer unlock()
			to := filepath.Join(filepath.Dir(path), name)
			if _, err := os.Lstat(to); err == nil {
				return process.Usagef("name another", "%s exists already", to)
			}
			if err := os.Rename(path, to); err != nil {
				return fmt.Errorf("name %s: %w", args[0], err)
			}
			p.Printf("%s\n", filepath.Join(filepath.Dir(args[0]), name))
			return nil
		},
	}
}

func newRunsRemoveCommand(p *process.Process) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "remove RECORD...",
		Short: "Remove run directories, with all files in them",
		Long: `Remove run directories, with all files in them. Every argument is checked before anything
is removed: a directory that is not a record, or of a run that is still going, is refused.`,
		Example: `  plimsoll runs remove plimsoll-runs/202611*`,
		Args: func(cmd *cobra.Command, args []string) error {
			return process.ExactlyOne("run directory")(cmd, args[:min(len(args), 1)])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var paths []string
			for _, text := range args {
				path, unlock, err := lockRecord(text)
				if err != nil {
					return err
				}
				defer unlock()
				paths = append(paths, path)
			}
			if !yes {
				if err := p.Confirm(cmd.Context(), strings.Join(args, ", "), "would be removed with all files in it", "Remove "+process.Count(len(paths), "record")+" with all files?"); err != nil {
					return err
				}
			}
			for i, path := range paths {
				if err := os.RemoveAll(path); err != nil { // it follows no link
					return fmt.Errorf("remove %s: %w", args[i], err)
				}
				p.Printf("removed %s\n", args[i])
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "remove without a question")
	return cmd
}
