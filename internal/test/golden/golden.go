// Package golden compares what a test got with a file of testdata. Only tests
// import it.
package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Check fails the test unless got is what the file of testdata holds. With
// update, by custom the flag -update of the test, the file is written anew.
func Check(t *testing.T, update bool, file string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run with -update and look at the difference.\ngot:\n%s", path, got)
	}
}
