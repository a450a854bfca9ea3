// Package records has the commands that read records of runs, compare, query and runs, and opens
// records for other commands, with users' mistakes as usage errors.
package records

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/text/nearest"
)

// Commands returns the commands that compare, query and list records.
func Commands(p *process.Process, stop *process.Interrupts) []*cobra.Command {
	return []*cobra.Command{newCompareCommand(p), newQueryCommand(p, stop), newRunsCommand(p)}
}

// OpenDir opens a run directory. A directory that is none is a usage error.
func OpenDir(path string) (record.Dir, error) {
	dir, err := record.OpenDir(path)
	if _, ok := errors.AsType[*record.NotRunDirError](err); ok {
		return "", process.Usagef(nearest.Directory(path, func(name string) bool {
			_, err := record.OpenDir(name)
			return err == nil || record.IsGrid(name)
		}), "%w", err)
	}
	return dir, err
}

// OpenRun opens a run directory and reads the plan as it was run.
func OpenRun(path string) (record.Dir, *plan.Plan, error) {
	dir, err := OpenDir(path)
	if err != nil {
		return "", nil, err
	}
	loaded, err := plan.Load(dir.Path(record.ExperimentFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil, process.Usagef("", "%s is not a run directory: it has no %s", path, record.ExperimentFile)
	case err != nil:
		return "", nil, process.Usagef("", "%w", err)
	case loaded.AsRun == nil:
		return "", nil, process.Usagef("", "%s is not the plan of a run: it has no asRun", dir.Path(record.ExperimentFile))
	}
	loaded.Kind = loaded.AsRun.Kind
	return dir, loaded, nil
}

// OpenRecord opens a run directory and reads the plan that was run.
func OpenRecord(path string) (record.Dir, run.Experiment, error) {
	dir, loaded, err := OpenRun(path)
	if err != nil {
		return "", run.Experiment{}, err
	}
	x, err := run.FromPlan(loaded)
	if err != nil {
		return "", run.Experiment{}, process.Usagef("", "%s: %w", dir.Path(record.ExperimentFile), err)
	}
	return dir, x, nil
}

// JudgeAgain judges a run, unless it was judged since its record was written.
func JudgeAgain(dir record.Dir) error {
	_, x, err := OpenRecord(string(dir))
	if err != nil || Judged(dir) {
		return err
	}
	_, err = run.Replay(dir, x)
	return err
}

// Judged reports whether a run's record was judged since it was written.
func Judged(dir record.Dir) bool {
	history, err := os.Stat(dir.Path(record.HistoryFile))
	if err != nil {
		return false
	}
	// The removal at the end of a run is added to its history and its result alone.
	made, err := os.Stat(dir.Path(record.ResultFile))
	if err != nil || made.ModTime().Before(history.ModTime()) {
		return false
	}
	_, err = os.Stat(dir.Path(record.ObjectsFile))
	return err == nil && dir.Intact()
}

// longestCellDir leaves room for a digest within any file system's longest name.
const longestCellDir = 200

// CellDir returns the name of a cell's directory: the cell's own if files and links may have
// it, else a similar one with a digest, which no other cell has.
func CellDir(name string) string {
	dir := strings.Map(func(c rune) rune {
		if c < 0x80 && (c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.ContainsRune("._=,+-", c)) {
			return c
		}
		return '-'
	}, name)
	if dir == name && len(dir) <= longestCellDir {
		return dir
	}
	return fmt.Sprintf("%s-%.8x", dir[:min(len(dir), longestCellDir)], sha256.Sum256([]byte(name)))
}

// CellPath returns the directory of DIR:CELL in a grid, and any other text unchanged.
func CellPath(text string) (string, error) {
	if _, err := os.Stat(text); err == nil {
		return text, nil
	}
	for at, c := range text {
		if c != ':' || at == 0 || !record.IsGrid(text[:at]) {
			continue
		}
		path, name := text[:at], text[at+1:]
		of, err := process.LoadPlan(filepath.Join(path, record.ExperimentFile))
		if err != nil {
			return "", err
		}
		var names []string
		for _, c := range of.Cells() {
			if c.Name == name || CellDir(c.Name) == name {
				return filepath.Join(path, record.CellsDir, CellDir(c.Name)), nil
			}
			names = append(names, c.Name)
		}
		return "", process.Usagef(nearest.Hint(name, names, "there is: "+strings.Join(names, "; ")), "%s has no cell %q", path, name)
	}
	return text, nil
}
