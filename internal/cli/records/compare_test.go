package records

import (
	"os"
	"path/filepath"
	"testing"
)

// A directory is a directory, whatever is in its name.
func TestPathsBeforeArms(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "run:x")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ text, path, arm string }{
		{odd, odd, ""}, {odd + ":a", odd, "a"}, {dir + ":a", dir, "a"}, {"none", "none", ""}, {":a", ":a", ""},
	} {
		if path, arm := splitOperand(tt.text); path != tt.path || arm != tt.arm {
			t.Errorf("%s is %q and %q", tt.text, path, arm)
		}
	}
}
