package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/size"
)

// Fingerprint identifies the objects that a workload makes: it hashes the files that Config reads for them.
func (w *Workload) Fingerprint(p Params) (string, error) {
	if !w.Target.Configured {
		return "", nil // it reads no files
	}
	read, files := w.traced()
	// An empty UUID would shorten names that end with it.
	c, err := read.Config(p, "00000000-0000-4000-8000-000000000000")
	if err != nil {
		return "", err
	}
	if _, err := c.Templates(files); err != nil {
		return "", err
	}
	return hex.EncodeToString(files.sum.Sum(nil)[:8]), nil
}

// Traced returns a copy of the workload, and a function that lists which files its user has read.
func (w *Workload) Traced() (*Workload, func() []string) {
	read, files := w.traced()
	return read, func() []string { return slices.Sorted(maps.Keys(files.names)) }
}

func (w *Workload) traced() (*Workload, *readFiles) {
	files := &readFiles{FS: w.files, sum: sha256.New(), names: make(map[string]bool)}
	read := *w
	read.files = files
	return &read, files
}

// bounded refuses to read files above the size limit.
type bounded struct{ fs.FS }

// ReadDir implements fs.ReadDirFS.
func (b bounded) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(b.FS, name) }

// Stat implements fs.StatFS.
func (b bounded) Stat(name string) (fs.FileInfo, error) { return fs.Stat(b.FS, name) }

// ReadFile implements fs.ReadFileFS.
func (b bounded) ReadFile(name string) ([]byte, error) { return size.ReadFS(b.FS, name) }

type readFiles struct {
	fs.FS
	sum   hash.Hash
	names map[string]bool
}

// ReadDir implements fs.ReadDirFS.
func (r *readFiles) ReadDir(name string) ([]fs.DirEntry, error) { return fs.ReadDir(r.FS, name) }

// ReadFile implements fs.ReadFileFS.
func (r *readFiles) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(r.FS, name)
	if err == nil {
		r.names[name] = true
		fmt.Fprintf(r.sum, "%q %d\n%s", name, len(text), text)
	}
	return text, err
}

// Export writes the workload's files into a new directory, all or none. An existing one yields fs.ErrExist.
func (w *Workload) Export(dir string) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("export %s: %w: %s", w.Name, fs.ErrExist, dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("export %s: %w", w.Name, err)
	}
	// A sibling lies on the same file system, so that it can be renamed into place.
	temporary, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return fmt.Errorf("export %s: %w", w.Name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(temporary))
		}
	}()
	if err := errors.Join(os.CopyFS(temporary, w.files), os.Chmod(temporary, 0o755)); err != nil {
		return fmt.Errorf("export %s: %w", w.Name, err)
	}
	if err := os.Rename(temporary, dir); err != nil {
		return fmt.Errorf("export %s: %w", w.Name, err)
	}
	return nil
}

// SharedDir is the directory of a tree with files for several workloads.
const SharedDir = "shared"

// withShared adds shared files to a workload's directory.
type withShared struct {
	fs.FS
	shared fs.FS
	names  []string
}

// Open implements fs.FS: the workload's own file hides a shared one.
func (w withShared) Open(name string) (fs.File, error) {
	f, err := w.FS.Open(name)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains(w.names, name) {
		return w.shared.Open(name)
	}
	return f, err
}

// ReadDir implements fs.ReadDirFS.
func (w withShared) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(w.FS, name)
	if err != nil || name != "." {
		return list, err
	}
	for _, shared := range w.names {
		if slices.ContainsFunc(list, func(e fs.DirEntry) bool { return e.Name() == shared }) {
			continue
		}
		info, err := fs.Stat(w.shared, shared)
		if err != nil {
			return nil, err
		}
		list = append(list, fs.FileInfoToDirEntry(info))
	}
	slices.SortFunc(list, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return list, nil
}
