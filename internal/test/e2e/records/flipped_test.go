package records_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// A bit of a record that was changed changes no step that is decided, and nothing
// without a word.
func TestAFlippedBitDecidesNothing(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir, got := e2e.Measured(t, suite, "sweep", "simulated", "--levels", "10,20,40", "--set", "limit=30", "--seed", "1")
		if got.Code != process.ExitFail {
			t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
		want := e2e.ResultIn(t, dir)
		for _, file := range []struct {
			name  string
			every int // how many bits
		}{{record.HistoryFile, suite.Size(1009, 101)}, {record.ExperimentFile, suite.Size(999, 151)}, {record.EnvironmentFile, suite.Size(2999, 499)}, {record.ResultFile, suite.Size(19999, 2999)}} {
			data, err := os.ReadFile(filepath.Join(dir, file.name))
			if err != nil {
				t.Fatal(err)
			}
			flips, noticed, lost := 0, 0, 0
			for bit := 3; bit < 8*len(data); bit += file.every {
				flips++
				copied := filepath.Join(t.TempDir(), "flipped")
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				flipped := append([]byte(nil), data...)
				flipped[bit/8] ^= 1 << (bit % 8)
				if err := os.WriteFile(filepath.Join(copied, file.name), flipped, 0o644); err != nil {
					t.Fatal(err)
				}
				told := flippedIn(t, copied, file.name, want, fmt.Sprintf("bit %d of %s", bit, file.name))
				if told > 0 {
					noticed++
				}
				lost += told - min(told, 1)
				os.RemoveAll(copied)
			}
			t.Logf("%s: %d flips, %d told, %d steps not decided", file.name, flips, noticed, lost)
			if lost > flips*2 { // of three, each of which adds to the one before
				t.Errorf("%d flips cost %d steps", flips, lost)
			}
			if noticed < flips*9/10 {
				t.Errorf("%s: only %d of %d are told", file.name, noticed, flips)
			}
		}
	})
}

// flippedIn judges a record with one bit flipped: it is 0 where all is as it was, and
// else one more than there are steps that decide no longer.
func flippedIn(t *testing.T, dir, file string, want result.Result, what string) int {
	t.Helper()
	if file == record.ResultFile {
		// Whoever reads it has it written again.
		if got := e2e.Command(t, nil, "report", dir); got.Code != 0 {
			t.Errorf("%s: report: exit code %d\n%s", what, got.Code, got.Stderr)
		}
		if again := e2e.ResultIn(t, dir); again.Verdict != want.Verdict || again.Why != want.Why {
			t.Errorf("%s: %s (%s)", what, again.Verdict, again.Why)
		}
		return 1
	}
	got := e2e.Command(t, nil, "analyze", dir, "-o", "json")
	var r result.Result
	if err := json.Unmarshal([]byte(got.Stdout), &r); err != nil || r.Schema != result.Schema {
		if got.Code != process.ExitCouldNotRun && got.Code != process.ExitUsage {
			t.Errorf("%s: exit code %d\n%s%s", what, got.Code, got.Stdout, got.Stderr)
		}
		return 1 // it cannot be read, and that is said
	}
	told := strings.Contains(strings.Join(r.Warnings.Lines(), "\n"), "damaged") || strings.Contains(strings.Join(r.Warnings.Lines(), "\n"), "was changed after the run")
	byID := make(map[int]result.Step)
	for _, s := range r.Steps {
		byID[s.ID] = s
	}
	undecided := 0
	for _, s := range want.Steps {
		now, there := byID[s.ID]
		switch {
		case !there || !now.Verdict.Decided():
			undecided++
		case file != record.HistoryFile:
			// Another plan judges it, and the result says so.
		case now.Verdict != s.Verdict || encoded(t, now.Objects) != encoded(t, s.Objects) || encoded(t, now.Latency) != encoded(t, s.Latency):
			t.Errorf("%s: step %d: %s at %g, was %s at %g", what, s.ID, now.Verdict, now.Level, s.Verdict, s.Level)
		}
	}
	if r.Verdict != want.Verdict && r.Verdict.Decided() && !told || undecided > 0 && r.Verdict.Decided() {
		t.Errorf("%s: %s with %d steps undecided, was %s", what, r.Verdict, undecided, want.Verdict)
	}
	if (undecided > 0 || r.Verdict != want.Verdict) && !told && file == record.HistoryFile {
		t.Errorf("%s: nothing is told of it: %v", what, r.Warnings.Lines())
	}
	if !told {
		return 0
	}
	return 1 + undecided
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := record.Encode(v, "")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
