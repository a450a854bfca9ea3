package records_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// A plan that was edited since the run began is refused, with the file and what to do;
// undone, the run goes on.
func TestAnEditedPlanIsNotResumed(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		if got := e2e.Command(t, nil, "sweep", "simulated", "--levels", "10,20", "--hold", "2s", "--budget", "3s", "--out", dir); got.Code != process.ExitInconclusive {
			t.Fatalf("exit code %d: %s", got.Code, got.Stderr)
		}
		file := record.Dir(dir).Path(record.ExperimentFile)
		plan, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		edit := func(from, to string) {
			if err := os.WriteFile(file, []byte(strings.Replace(string(plan), from, to, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, tt := range []struct{ from, to, says string }{
			{"- 20.0", "- 30.0", "step 2 is on record at 20 (sweep), but by the plan it is at 30"},
			{"schema:", "# faster\nschema:", "experiment.yaml was changed after the run"},
			{"hold: 2s", "hold: 1s", "its parameters, target, pace, hold, timeout, guards or seed changed"},
			{"hold: 2s", "hold: 2 weeks", `is not a duration`},
		} {
			edit(tt.from, tt.to)
			got := e2e.Command(t, nil, "run", "--resume", dir)
			hint := "undo what was changed in " + file + ", or start again: plimsoll run " + file
			if got.Code != process.ExitUsage || !strings.Contains(got.Stderr, tt.says) || !strings.Contains(got.Stderr, file) || !strings.Contains(tt.to, "weeks") && !strings.Contains(got.Stderr, hint) {
				t.Errorf("%q: exit code %d, want %q and %q:\n%s", tt.to, got.Code, tt.says, hint, got.Stderr)
			}
		}
		edit("", "")
		if got := e2e.Command(t, nil, "run", "--resume", dir); got.Code == process.ExitUsage {
			t.Errorf("undone: exit code %d: %s", got.Code, got.Stderr)
		}
	})
}
