// Package writeall answers one question: are these files all written? Either
// every one is, or each is as it was before. No file is written outside of the
// directory that it was meant for.
package writeall

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// File is a file to write.
type File struct {
	// In is a directory that the user named: Files follows links to it. Name is the
	// file's path below In, and may come from somebody else: a name that leads out of
	// In, by itself or through a link, is an error.
	In, Name string
	Data     []byte
	Mode     fs.FileMode
}

// Path returns the path of the file.
func (f File) Path() string { return filepath.Join(f.In, f.Name) }

// Files writes files, and makes the directories that they lack. One that exists
// is an error that is fs.ErrExist, unless it may be replaced. What can fail for
// lack of room or rights happens beside the files, before the first takes its
// place; what has taken its place is taken back when a later one fails, and so
// are directories that were made.
func Files(files []File, replace bool) (err error) {
	type move struct {
		File
		root        *os.Root
		fresh, kept string // in root
	}
	var moves []move
	var undo []func() error // removes directories that were made, one before those in it
	roots := make(map[string]*os.Root)
	defer func() {
		for _, m := range moves {
			_ = m.root.Remove(m.fresh)
			_ = m.root.Remove(m.kept)
		}
		for i := len(undo) - 1; i >= 0 && err != nil; i-- {
			_ = undo[i]()
		}
		for _, r := range roots {
			_ = r.Close()
		}
	}()
	for _, f := range files {
		root := roots[f.In]
		if root == nil {
			for _, dir := range missing(f.In, os.Lstat) {
				undo = append(undo, func() error { return os.Remove(dir) })
			}
			err := os.MkdirAll(f.In, 0o755)
			if err == nil {
				root, err = os.OpenRoot(f.In)
			}
			if err != nil {
				return fmt.Errorf("write %s: %w", f.Path(), err)
			}
			roots[f.In] = root
		}
		m := move{File: f, root: root}
		info, err := root.Lstat(f.Name)
		switch {
		case err == nil && !replace:
			err = fs.ErrExist
		case err == nil:
			var former []byte
			if former, err = root.ReadFile(f.Name); err == nil {
				m.kept, err = beside(root, f.Name, former, info.Mode())
			}
		case errors.Is(err, fs.ErrNotExist):
			dir := filepath.Dir(f.Name)
			for _, dir := range missing(dir, root.Lstat) {
				undo = append(undo, func() error { return root.Remove(dir) })
			}
			err = root.MkdirAll(dir, 0o755)
		}
		if err == nil {
			m.fresh, err = beside(root, f.Name, f.Data, f.Mode)
		}
		moves = append(moves, m)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path(), err)
		}
	}
	place := (*os.Root).Link // which fails where a rename would replace what came meanwhile
	if replace {
		place = (*os.Root).Rename
	}
	for i, m := range moves {
		err := place(m.root, m.fresh, m.Name)
		if err == nil {
			continue
		}
		errs := []error{fmt.Errorf("write %s: %w", m.Path(), err)}
		for _, done := range moves[:i] {
			if done.kept == "" {
				err = done.root.Remove(done.Name)
			} else {
				err = done.root.Rename(done.kept, done.Name)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("put back %s: %w", done.Path(), err))
			}
		}
		return errors.Join(errs...)
	}
	return nil
}

// missing lists a directory and those that it lies in, as far as they do not exist,
// each before those in it.
func missing(dir string, lstat func(string) (fs.FileInfo, error)) (list []string) {
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		list = append([]string{dir}, list...)
	}
	return list
}

// beside writes a file into the directory of another, as safe as that one.
func beside(root *os.Root, path string, data []byte, mode fs.FileMode) (name string, err error) {
	var f *os.File
	for i := 0; f == nil; i++ { // of a process that was killed, files may be left
		name = filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+strconv.Itoa(i))
		f, err = root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	_, err = f.Write(data)
	return name, cmp.Or(err, f.Chmod(mode.Perm()), f.Sync(), f.Close())
}
