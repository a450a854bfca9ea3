package answer

import (
	"path/filepath"

	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// Write writes all files below a directory or none. Without force an existing file is an error, fs.ErrExist.
func Write(dir string, files []File, force bool) (paths []string, err error) {
	var list []writeall.File
	for _, f := range files {
		file := writeall.File{In: dir, Name: filepath.FromSlash(f.Path), Data: []byte(f.Content), Mode: 0o644}
		list, paths = append(list, file), append(paths, file.Path())
	}
	return paths, writeall.Files(list, force)
}
