package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
	"maps"
	"slices"

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
