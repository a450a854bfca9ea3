package experiment

import (
	"os"
	"path/filepath"
	"testing"
)

// A name without a slash is a program of PATH. That its user has allowed a file of the
// same name allows another program.
func TestTheProgramOfANameIsThatOfPath(t *testing.T) {
	path, here := t.TempDir(), t.TempDir()
	for _, dir := range []string{path, here} {
		if err := os.WriteFile(filepath.Join(dir, "login"), []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", path)
	t.Chdir(here)
	for name, want := range map[string]string{"login": path + "/login", "./login": here + "/login", here + "/login": here + "/login", "absent": here + "/absent"} {
		if got := resolved(programAt(name)); got != resolved(want) {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
