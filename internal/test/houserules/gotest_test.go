package houserules

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A test that fails beside others is run once more by itself, and only that.
func TestFailuresRunOnceMore(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs("../../../.ci/gotest")
	if err != nil {
		t.Fatal(err)
	}
	const (
		pass   = "func TestPass(t *testing.T) {}\n"
		busy   = "func TestBusy(t *testing.T) { if err := os.Mkdir(\"seen\", 0o700); err == nil { t.Error(\"busy\") } }\n"
		broken = "func TestBroken(t *testing.T) { t.Error(os.Getpid()) }\n"
	)
	for _, tt := range []struct {
		why, tests string
		ok         bool
		has, not   string
	}{
		{"all pass", pass, true, "ok", "once more"},
		{"one fails beside others alone", pass + busy, true, "beside others: --- FAIL: TestBusy", "\n--- FAIL"},
		{"one fails by itself, too", busy + broken, false, "\n--- FAIL: TestBroken", "\n--- FAIL: TestBusy"},
		{"a panic ended the others", pass + "func TestPanics(t *testing.T) { panic(os.Args) }\n", false, "\npanic: ", "once more"},
		{"it does not build", pass + "var x int = os.Args\n", false, "[build failed]", "once more"},
		{"too many fail", strings.Repeat("+"+broken, 5), false, "\n--- FAIL: TestBroken3", "once more"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			dir := t.TempDir()
			tests := tt.tests
			for i := 0; strings.Contains(tests, "+func TestBroken("); i++ {
				tests = strings.Replace(tests, "+func TestBroken(", "func TestBroken"+string(rune('0'+i))+"(", 1)
			}
			for name, text := range map[string]string{
				"go.mod":               "module m\n\ngo 1.26\n",
				"internal/a/a_test.go": "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nvar _ = os.Args\n\n" + tests,
			} {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("bash", script, "-timeout", "1m", "-p", "2", "./internal/a")
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if text := "\n" + string(out); (err == nil) != tt.ok || !strings.Contains(text, tt.has) || strings.Contains(text, tt.not) {
				t.Errorf("%v, want %q and not %q:\n%s", err, tt.has, tt.not, out)
			}
		})
	}
}
