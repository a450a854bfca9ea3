package lint

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pmezard/go-difflib/difflib"

	"plimsoll.dev/plimsoll/internal/text/writeall"
)

// Diff shows a change as a unified diff.
func (c Change) Diff() string {
	// Errors come from the writer alone, and this one returns none.
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(string(c.Before)), B: difflib.SplitLines(string(c.After)),
		FromFile: c.Name, ToFile: c.Name, Context: 3,
	})
	return text
}

// Write writes all changes to disk, or none. A file that has changed since it was read is an error.
func Write(changes []Change) error {
	var files []writeall.File
	for _, c := range changes {
		path, err := filepath.EvalSymlinks(c.Name)
		var now []byte
		if err == nil {
			now, err = os.ReadFile(path)
		}
		var info fs.FileInfo
		if err == nil {
			info, err = os.Stat(path)
		}
		if err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
		if !bytes.Equal(now, c.Before) {
			return fmt.Errorf("write %s: it was changed meanwhile", c.Name)
		}
		files = append(files, writeall.File{In: filepath.Dir(path), Name: filepath.Base(path), Data: c.After, Mode: info.Mode()})
	}
	return writeall.Files(files, true)
}
