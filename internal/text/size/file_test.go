package size

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file is read whole up to a bound, which the error names, and an endless one not at all.
func TestFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for name, n := range map[string]int{"most": MaxFile, "more": MaxFile + 1} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, n), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	inside := func(name string) ([]byte, error) { return ReadFS(os.DirFS(dir), name) }
	beside := func(name string) ([]byte, error) { return ReadFile(filepath.Join(dir, name)) }
	for _, c := range []struct {
		why, name, says string
		read            func(string) ([]byte, error)
	}{
		{"as much as may be", "most", "", inside},
		{"likewise", "most", "", beside},
		{"a byte more", "more", "4194304 bytes (4 MiB), which is the most", inside},
		{"likewise", "more", "4194304 bytes (4 MiB), which is the most", beside},
		{"what is not there", "none", "no such file", inside},
		{"likewise", "none", "no such file", beside},
		{"a pipe that nobody writes to", "pipe", "is not a file that can be read whole", inside},
		{"a directory", ".", "is not a file that can be read whole", inside},
		{"a device without end", "../../../../../../../../dev/zero", "4 MiB", beside},
	} {
		data, err := c.read(c.name)
		if c.says == "" && (err != nil || len(data) != MaxFile) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %d bytes, %v, want %q", c.why, len(data), err, c.says)
		}
	}
}
