package records_test

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// A place that somebody takes leaves nothing that holds: what is measured on fewer
// is another level. What the run itself does to one is no matter.
func TestPlacesThatAreTaken(t *testing.T) {
	at := func(objects string, how ...string) []string {
		return append([]string{"sweep", "simulated", "--levels", "5,15", "--set", "takeAt=" + objects}, how...)
	}
	limit := []string{"limit", "simulated", "--set", "limit=23", "--seed", "1", "--set", "takeAt=50"}
	for _, c := range []struct {
		why   string
		args  []string
		code  int
		says  string // in the reason for the verdict, or nowhere if it begins with "!"
		steps int    // that are made
	}{
		{"deleted in the first level", at("12", "--set", "take=delete"), process.ExitInconclusive, "places 4, then 3: place-3 was deleted in step 1", 1},
		{"closed", at("12", "--set", "take=close"), process.ExitInconclusive, "places 4, then 3: place-3 was closed in step 1", 1},
		{"closed, and open again", at("12", "--set", "take=close", "--set", "takeFor=20ms"), process.ExitInconclusive, "place-3 was closed in step 1", 2},
		{"deleted in the second", at("33", "--set", "take=delete"), process.ExitInconclusive, "place-3 was deleted in step 2", 2},
		{"broken, and the guard ends the step", at("12", "--set", "take=break", "--hold", "3s", "--guard", "placesNotReady=1"), process.ExitFail, "a guard stopped the load, and the target is not back to normal", 1},
		{"broken for a moment, and the guard sees it", at("12", "--set", "take=break", "--set", "takeFor=2s", "--hold", "3s", "--guard", "placesNotReady=1"), process.ExitFail, "guard:placesNotReady", 2},
		{"broken, and no guard would have it end", at("12", "--set", "take=break", "--guard", "placesNotReady=2"), process.ExitInconclusive, "places 4, then 3: place-3 is not ready in step 1", 2},
		{"broken for a moment, and nothing was lost by it", at("12", "--set", "take=break", "--set", "takeFor=20ms", "--guard", "placesNotReady=2"), process.ExitPass, "!place-3", 2},
		{"restarted by the run", at("12", "--set", "take=restart"), process.ExitPass, "!place-3", 2},
		{"never", at("0"), process.ExitPass, "!place-3", 2},
		{"a search ends with its bracket", append(limit, "--set", "take=delete"), process.ExitInconclusive, "places 4, then 3: place-3 was deleted in step 3", 3},
		{"a search goes on where the place is there again", append(limit, "--set", "take=close", "--set", "takeFor=20ms"), process.ExitPass, "!place-3", 0},
		{"a comparison", []string{"ab", "simulated", "--arm", "a:latency=constant:2ms", "--arm", "b:latency=constant:2ms", "--levels", "5", "--repeat", "4", "--set", "takeAt=19", "--set", "take=delete"}, process.ExitInconclusive, "places 4, then 3: place-3 was deleted in step 1", 1},
	} {
		t.Run(c.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir, got := e2e.Measured(t, suite, c.args...)
				r := e2e.ResultIn(t, dir)
				text, not := strings.CutPrefix(c.says, "!")
				if got.Code != c.code || strings.Contains(r.Why, text) == not || c.steps > 0 && len(r.Steps) != c.steps {
					t.Errorf("exit code %d, want %d, %d steps, want %d: %q, want %q\n%s%s", got.Code, c.code, len(r.Steps), c.steps, r.Why, c.says, got.Stdout, got.Stderr)
				}
				for _, s := range r.Steps {
					if o := s.Objects; o.Created != o.Ready+o.NeverReady+o.Lost {
						t.Errorf("step %d: %+v", s.ID, o)
					}
					if strings.Contains(s.VerdictWhy, "deleted") && (s.Verdict != slo.Inconclusive || s.Objects.Lost == 0) {
						t.Errorf("step %d is %s: %+v", s.ID, s.Verdict, s.Objects)
					}
				}
			})
		})
	}
}
