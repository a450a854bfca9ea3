package workload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io/fs"
)

// Fingerprint tells workloads apart that make other objects with these
// parameters: it is of every file that is read to make them, and of none that
// is not.
func (w *Workload) Fingerprint(p Params) (string, error) {
	if !w.Target.Configured {
		return "", nil // nothing is read
	}
	files := &readFiles{FS: w.files, sum: sha256.New()}
	read := *w
	read.files = files
	// Any run's UUID will do, but none would leave names that end with it
	// without their end.
	c, err := read.Config(p, "00000000-0000-4000-8000-000000000000")
	if err != nil {
		return "", err
	}
	if _, err := c.Templates(files); err != nil {
		return "", err
	}
	return hex.EncodeToString(files.sum.Sum(nil)[:8]), nil
}

// readFiles sums up the files that are read.
type readFiles struct {
	fs.FS
	sum hash.Hash
}

// ReadFile implements fs.ReadFileFS.
func (r *readFiles) ReadFile(name string) ([]byte, error) {
	text, err := fs.ReadFile(r.FS, name)
	if err == nil {
		fmt.Fprintf(r.sum, "%q %d\n%s", name, len(text), text)
	}
	return text, err
}
