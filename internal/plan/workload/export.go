package workload

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

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
