package answer

import (
	"path/filepath"

	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// Write writes files below a directory, all or none, and returns their paths. Without force, existing files
// stay, with an error that is fs.ErrExist.
func Write(dir string, files []File, force bool) (paths []string, err error) {
	var list []writeall.File
	for _, f := range files {
		file := writeall.File{In: dir, Name: filepath.FromSlash(f.Path), Data: []byte(f.Content), Mode: 0o644}
		list, paths = append(list, file), append(paths, file.Path())
	}
	return paths, writeall.Files(list, force)
}
