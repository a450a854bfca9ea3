package answer

import (
	"fmt"
	"path/filepath"

	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// Write writes files below a directory, all or none, and returns their paths.
// What exists is left alone, with an error that is fs.ErrExist, unless force
// says otherwise.
func Write(dir string, files []File, force bool) (paths []string, err error) {
	var list []writeall.File
	for _, f := range files {
		path := filepath.FromSlash(f.Path)
		if !filepath.IsLocal(path) {
			return nil, fmt.Errorf("write %s: the path leads out of %s", f.Path, dir)
		}
		paths = append(paths, filepath.Join(dir, path))
		list = append(list, writeall.File{Path: filepath.Join(dir, path), Data: []byte(f.Content), Mode: 0o644})
	}
	return paths, writeall.Files(list, force)
}
