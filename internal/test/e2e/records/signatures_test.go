package records_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

const ownSignature = `schema: plimsoll/signatures/v1
signatures:
- name: my-failure
  title: A failure of ours
  detect:
    any:
    - state: {reason: Unschedulable}
  explain: It is known here.
  evidence: pods waited for a node
  remedy: Ask the people next door.
`

func TestSignatures(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	own := filepath.Dir(write("own/mine.yaml", ownSignature))
	broken := filepath.Dir(write("broken/mine.yaml", strings.Replace(ownSignature, "remedy", "remdy", 1)))
	empty := filepath.Dir(write("empty/readme.txt", "nothing"))
	for _, tt := range []struct {
		why  string
		args []string
		code int
		want string // on standard output, or on standard error where it fails
	}{
		{"all of them", []string{"signatures", "list"}, process.ExitPass, "too-many-pods  "},
		{"and those of a directory", []string{"signatures", "list", "--signatures", own}, process.ExitPass, "my-failure  "},
		{"one", []string{"signatures", "show", "quota-exceeded"}, process.ExitPass, "exceeded quota"},
		{"one of a directory, as a file", []string{"signatures", "show", "my-failure", "--signatures", own}, process.ExitPass, "schema: plimsoll/signatures/v1"},
		{"a typo", []string{"signatures", "show", "quota-exceded"}, process.ExitUsage, `did you mean "quota-exceeded"?`},
		{"a command that is none", []string{"signatures", "lst"}, process.ExitUsage, `did you mean "list"?`},
		{"a broken file", []string{"signatures", "list", "--signatures", broken}, process.ExitUsage, filepath.Join(broken, "mine.yaml") + ":10:3: signatures[0]: unknown key \"remdy\" (did you mean \"remedy\"?)"},
		{"a broken file, before anything is run", []string{"limit", "node-density", "--signatures", broken}, process.ExitUsage, `unknown key "remdy"`},
		{"no such directory", []string{"sweep", "node-density", "--levels", "1", "--signatures", filepath.Join(dir, "owm")}, process.ExitUsage, `did you mean "own"?`},
		{"a file for a directory", []string{"signatures", "list", "--signatures", filepath.Join(own, "mine.yaml")}, process.ExitUsage, "is not a directory"},
		{"a directory without files", []string{"signatures", "list", "--signatures", empty}, process.ExitUsage, empty + " has no file of signatures"},
	} {
		got := e2e.Command(t, nil, tt.args...)
		shown := got.Stdout
		if got.Code != process.ExitPass {
			shown = got.Stderr
		}
		if got.Code != tt.code || !strings.Contains(shown, tt.want) {
			t.Errorf("%s: exit code %d, want %d with %q\n%s%s", tt.why, got.Code, tt.code, tt.want, got.Stdout, got.Stderr)
		}
	}
	// What show writes is a file that list reads.
	copied := filepath.Dir(write("copied/one.yaml", e2e.Command(t, nil, "signatures", "show", "node-addresses-exhausted").Stdout))
	if got := e2e.Command(t, nil, "signatures", "list", "--signatures", copied); got.Code != process.ExitPass {
		t.Errorf("a signature as it is shown cannot be read: %s", got.Stderr)
	}
}

// A run is judged again with failures that were unknown when it was made.
func TestAnalyzeTakesSignatures(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		own := t.TempDir()
		if err := os.WriteFile(filepath.Join(own, "mine.yaml"), []byte(ownSignature), 0o600); err != nil {
			t.Fatal(err)
		}
		dir, got := e2e.Measured(t, suite, "sweep", "simulated", "--levels", "12", "--set", "limit=10")
		if got.Code != process.ExitFail || strings.Contains(got.Stdout, "my-failure") {
			t.Fatalf("exit code %d:\n%s", got.Code, got.Stdout)
		}
		if got = e2e.Command(t, nil, "analyze", dir, "--signatures", own); got.Code != process.ExitFail || !strings.Contains(got.Stdout, "Ask the people next door.") {
			t.Errorf("exit code %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
	})
}
