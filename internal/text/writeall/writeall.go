// Package writeall answers one question: are these files all written? Either
// every one is, or each is as it was before.
package writeall

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file to write.
type File struct {
	Path string
	Data []byte
	Mode fs.FileMode
}

// Files writes files, and makes the directories that they lack. One that exists
// is an error that is fs.ErrExist, unless it may be replaced. What can fail for
// lack of room or rights happens beside the files, before the first takes its
// place; what has taken its place is taken back when a later one fails, and so
// are directories that were made.
func Files(files []File, replace bool) (err error) {
	type move struct{ path, fresh, kept string }
	var moves []move
	var made []string // a directory before those in it
	defer func() {
		for _, m := range moves {
			_ = os.Remove(m.fresh)
			_ = os.Remove(m.kept)
		}
		for i := len(made) - 1; i >= 0 && err != nil; i-- {
			_ = os.Remove(made[i])
		}
	}()
	for _, f := range files {
		m := move{path: f.Path}
		info, err := os.Lstat(f.Path)
		switch {
		case err == nil && !replace:
			err = fs.ErrExist
		case err == nil:
			var former []byte
			if former, err = os.ReadFile(f.Path); err == nil {
				m.kept, err = beside(f.Path, former, info.Mode())
			}
		case errors.Is(err, fs.ErrNotExist):
			dir := filepath.Dir(f.Path)
			var missing []string
			for d := dir; d != filepath.Dir(d); d = filepath.Dir(d) {
				if _, err := os.Lstat(d); !errors.Is(err, fs.ErrNotExist) {
					break
				}
				missing = append([]string{d}, missing...)
			}
			made = append(made, missing...)
			err = os.MkdirAll(dir, 0o755)
		}
		if err == nil {
			m.fresh, err = beside(f.Path, f.Data, f.Mode)
		}
		moves = append(moves, m)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	place := os.Link // which fails where a rename would replace what came meanwhile
	if replace {
		place = os.Rename
	}
	for i, m := range moves {
		err := place(m.fresh, m.path)
		if err == nil {
			continue
		}
		errs := []error{fmt.Errorf("write %s: %w", m.path, err)}
		for _, done := range moves[:i] {
			if done.kept == "" {
				err = os.Remove(done.path)
			} else {
				err = os.Rename(done.kept, done.path)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("put back %s: %w", done.path, err))
			}
		}
		return errors.Join(errs...)
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
