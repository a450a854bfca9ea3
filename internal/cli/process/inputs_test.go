package process

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A configuration may name files of its directory as they are called from the working directory, as kube-burner reads
// them, and no others.
func TestFilesNamedFromTheWorkingDirectory(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"cmd/config/a.yml": "jobs: [{name: a}]\n", "cmd/config/t.yml": "beside", "cmd/config/cmd/config/both.yml": "below", "cmd/config/both.yml": "beside", "t.yml": "elsewhere", "cmd/t.yml": "elsewhere",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w, err := LoadWorkload("cmd/config/a.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"t.yml": "beside", "cmd/config/t.yml": "beside", "cmd/config/both.yml": "below", "cmd/t.yml": "", "cmd/config/none.yml": "", "cmd/config/../t.yml": "",
	} {
		if text, err := fs.ReadFile(w.Files(), name); string(text) != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, text, err, want)
		}
	}
}
