package workload

import (
	"errors"
	"io/fs"
	"slices"
	"strings"
)

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
