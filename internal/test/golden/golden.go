// Package golden compares what a test got with a file of testdata. Only tests
// import it.
package golden

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pmezard/go-difflib/difflib"
)

// Check fails the test unless got is what the file of testdata holds, and shows
// the lines that differ. With update, by custom the flag -update of the test, the
// file is written again.
func Check(t *testing.T, update bool, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the difference.\n%s", path, difference(string(want), string(got)))
	}
}

// How much of a difference is shown: lines, and bytes of each.
const (
	mostLines  = 40
	longestRow = 300
)

// difference shows the lines in which two texts differ, with their numbers: - is
// the file's, + is what the test got.
func difference(want, got string) string {
	// An error comes from the writer alone, and this one has none.
	text, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: strings.SplitAfter(want, "\n"), B: strings.SplitAfter(got, "\n"),
		FromFile: "the file", ToFile: "got", Context: 1,
	})
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	more := len(lines) - mostLines
	lines = lines[:min(len(lines), mostLines)]
	for i, line := range lines {
		if len(line) > longestRow {
			lines[i] = fmt.Sprintf("%s... (%d bytes)", line[:longestRow], len(line))
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more lines", more))
	}
	return strings.Join(lines, "\n")
}
