package tune

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ExistsError says that a file to be written is there already.
type ExistsError struct{ Path string }

func (e *ExistsError) Error() string { return e.Path + " exists" }

// Write writes files below a directory, which it makes if need be, and returns
// their paths. What exists is left alone, with an *ExistsError, unless force
// says otherwise. All of the files are written or none: whatever can fail without
// room or rights happens before the first is put in its place, and what
// was put in place is taken back if a later one fails.
func Write(dir string, files []File, force bool) (paths []string, err error) {
	type pending struct{ temporary, path, former string }
	var list []pending
	placed := 0
	defer func() {
		for i, p := range list {
			if err != nil && i < placed {
				if p.former != "" {
					_ = os.Rename(p.former, p.path)
				} else {
					_ = os.Remove(p.path)
				}
			}
			_ = os.Remove(p.temporary)
			if p.former != "" {
				_ = os.Remove(p.former)
			}
		}
	}()
	for _, f := range files {
		if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
			return nil, fmt.Errorf("write %s: the path leads out of %s", f.Path, dir)
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if _, err := os.Lstat(path); err == nil && !force {
			return nil, &ExistsError{path}
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
	}
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		temporary, err := temporaryFile(path, f.Content)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", path, err)
		}
		list = append(list, pending{temporary: temporary, path: path})
	}
	for i := range list {
		p := &list[i]
		if force {
			err = replace(p.temporary, p.path, &p.former)
		} else {
			// A link fails where a rename would replace what came meanwhile.
			err = os.Link(p.temporary, p.path)
		}
		if errors.Is(err, fs.ErrExist) {
			return nil, &ExistsError{p.path}
		}
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", p.path, err)
		}
		placed = i + 1
		paths = append(paths, p.path)
	}
	return paths, nil
}

// replace puts a file in the place of another, which is kept under the name of
// former until all are in place.
func replace(temporary, path string, former *string) error {
	info, err := os.Lstat(path)
	if err == nil {
		if info.IsDir() {
			return errors.New("it is a directory")
		}
		kept := temporary + ".former"
		if err := os.Rename(path, kept); err != nil {
			return err
		}
		*former = kept
	}
	if err := os.Rename(temporary, path); err != nil {
		if *former != "" {
			_ = os.Rename(*former, path)
		}
		return err
	}
	return nil
}

func temporaryFile(path, content string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(content)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}
