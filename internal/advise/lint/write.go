package lint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pmezard/go-difflib/difflib"
)

// Diff shows a change as a unified diff.
func (c Change) Diff() string {
	// An error comes from the writer alone, and this one has none.
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(c.Before)), B: difflib.SplitLines(string(c.After)),
		FromFile: c.Name, ToFile: c.Name, Context: 3,
	})
	return text
}

// Write puts the changes on disk, all or none: every file is written beside
// its old one first, and only when all are there do they take the old ones'
// places. If that fails halfway, those that had moved are put back. A file that
// is not any more what was looked at is an error.
func Write(changes []Change) (err error) {
	type move struct{ path, fresh, kept string }
	var moves []move
	defer func() {
		for _, m := range moves {
			os.Remove(m.fresh)
			os.Remove(m.kept)
		}
	}()
	for _, c := range changes {
		path, err := filepath.EvalSymlinks(c.Name)
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
		now, err := os.ReadFile(path)
		var info fs.FileInfo
		if err == nil {
			info, err = os.Stat(path)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
		if !bytes.Equal(now, c.Before) {
			return fmt.Errorf("write %s: it was changed meanwhile", c.Name)
		}
		m := move{path: path}
		if m.fresh, err = beside(path, c.After, info.Mode()); err == nil {
			m.kept, err = beside(path, c.Before, info.Mode())
		}
		moves = append(moves, m)
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
	}
	for i, m := range moves {
		if err := os.Rename(m.fresh, m.path); err != nil {
			errs := []error{fmt.Errorf("write %s: %w", changes[i].Name, err)}
			for _, done := range moves[:i] {
				if err := os.Rename(done.kept, done.path); err != nil {
					errs = append(errs, fmt.Errorf("put back %s: %w", done.path, err))
				}
			}
			return errors.Join(errs...)
		}
	}
	return nil
}

// beside writes a file into the directory of another, as safe as that one.
func beside(path string, data []byte, mode fs.FileMode) (name string, err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	return f.Name(), cmp.Or(err, f.Chmod(mode.Perm()), f.Sync(), f.Close())
}
