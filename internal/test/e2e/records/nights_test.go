package records_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// replaced writes a file again with another text in it.
func replaced(t *testing.T, file, from, to string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(data), from) {
		err = fmt.Errorf("%s lacks %q", file, from)
	}
	if err == nil {
		err = os.WriteFile(file, []byte(strings.Replace(string(data), from, to, 1)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A run is compared with an earlier record of its plan, and a regression is red.
func TestBaseline(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "the nights")
		at := func(name string) string { return filepath.Join(dir, name) }
		cut := func() {
			// A night that was killed is the last one, and has no verdict.
			if err := os.CopyFS(at("cut"), os.DirFS(at("2"))); err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.Truncate(filepath.Join(at("cut"), record.HistoryFile), 500), os.Remove(filepath.Join(at("cut"), record.ResultFile))); err != nil {
				t.Fatal(err)
			}
			replaced(t, filepath.Join(at("cut"), record.ExperimentFile), "2000-01-02", "2000-02-02")
		}
		limit := func(n, name string, more ...string) []string {
			return append([]string{"limit", "simulated", "--set", "limit=" + n, "--out", at(name)}, more...)
		}
		ab := func(latency, name string, more ...string) []string {
			return append([]string{"ab", "simulated", "--arm", "a:", "--arm", "b:latency=" + latency, "--level", "5", "--repeat", "6", "--margin", "90%", "--out", at(name)}, more...)
		}
		for _, row := range []struct {
			why   string
			code  int
			args  []string
			says  string
			after func()
		}{
			{"the first night", process.ExitPass, limit("37", "1", "--baseline", "last"), "has no earlier run of simulated with a decided verdict: this one is the first", nil},
			{"an equal night", process.ExitPass, limit("37", "2", "--baseline", "last"), "2 is equivalent to 1", cut},
			{"a lower line", process.ExitFail, limit("33", "3", "--baseline", "last"), "3 is worse than 2", nil},
			{"by a name", process.ExitFail, limit("33", "4", "--baseline", "1"), "4 is worse than 1", nil},
			{"within a wider margin", process.ExitPass, limit("33", "wide", "--baseline", "1", "--margin", "20%"), "margin 20%", nil},
			{"a margin of nothing", process.ExitUsage, limit("33", "x", "--margin", "20%"), "add --baseline last", nil},
			{"a margin that is not one", process.ExitUsage, limit("33", "x", "--margin", "20", "--baseline", "1"), "is not a margin", nil},
			{"by a directory", process.ExitPass, limit("33", "elsewhere/5", "--baseline", at("4")), "5 is equivalent to 4", nil},
			{"by a directory of several", process.ExitPass, limit("33", "elsewhere/6", "--baseline", dir), "6 is equivalent to wide", nil},
			{"a higher line", process.ExitPass, limit("50", "7", "--baseline", "4"), "7 is better than 4", nil},
			{"a plan that is not comparable", process.ExitInconclusive, limit("33", "8", "--baseline", "4", "--hold", "90ms"), "hold (", nil},
			{"another question has no earlier night", process.ExitPass, []string{"sweep", "simulated", "--levels", "5", "--out", at("9"), "--baseline", "last"}, "this one is the first", nil},
			{"a name that is not there", process.ExitUsage, limit("33", "x", "--baseline", "none"), "no such record: none, neither here nor in ", nil},
			{"a file", process.ExitUsage, limit("33", "x", "--baseline", filepath.Join(at("1"), record.ResultFile)), "--baseline: ", nil},
			{"another axis", process.ExitUsage, []string{"limit", "simulated", "--axis", "rate", "--out", at("x"), "--baseline", "1"}, "along rate", nil},
			{"a resumed run", process.ExitUsage, []string{"run", "--resume", at("1"), "--baseline", "2"}, "'plimsoll compare BASELINE ", nil},
			{"two documents", process.ExitUsage, limit("33", "x", "-o", "json", "--summary"), "leave one of them out", nil},
			{"arms", process.ExitPass, ab("uniform:2ms,8ms", "arms-1", "--baseline", "last"), "this one is the first", nil},
			{"arms that are equal", process.ExitPass, ab("uniform:2ms,8ms", "arms-2", "--baseline", "last"), "arms-2:b is ", nil},
			{"an arm that is slower", process.ExitFail, ab("uniform:8ms,32ms", "arms-3", "--baseline", "last"), "arms-3:b is worse than arms-2:b", nil},
			{"arms and a search", process.ExitUsage, ab("uniform:2ms,8ms", "x", "--baseline", "1"), `has no run "a"`, nil},
			{"a grid", process.ExitPass, []string{"limit", "simulated", "--vary", "limit=20,37", "--out", at("grid-1"), "--baseline", "last"}, "this one is the first", nil},
			{"a grid again", process.ExitPass, []string{"limit", "simulated", "--vary", "limit=20,37", "--out", at("grid-2"), "--baseline", "last"}, "equivalent", nil},
		} {
			got := ran(t, row.code, row.args...)
			if !strings.Contains(strings.Join(strings.Fields(got.Stdout+got.Stderr), " "), row.says) {
				t.Errorf("%s: want %q\n%s%s", row.why, row.says, got.Stdout, got.Stderr)
			}
			if row.code == process.ExitUsage {
				if _, err := os.Stat(at("x")); err == nil {
					t.Errorf("%s: a run was made", row.why)
				}
			}
			if row.after != nil {
				row.after()
			}
			time.Sleep(24 * time.Hour)
		}

		// The record has the comparison: for CI, for the page, and by its sum.
		for _, row := range []struct {
			name string
			code int
			says string
		}{
			{"1", process.ExitPass, `<skipped message="`}, {"2", process.ExitPass, `name="load line by goal ready against `}, {"3", process.ExitFail, `<failure message="worse: the load line is 33`},
			{"8", process.ExitInconclusive, `<error message="inconclusive: hold (`}, {"arms-3", process.ExitFail, `name="b: Ready p50 at 5 against `}, {"grid-2", process.ExitPass, `against `},
		} {
			if got := ran(t, row.code, "analyze", at(row.name), "-o", "junit"); !strings.Contains(got.Stdout, row.says) {
				t.Errorf("the tests of %s lack %q:\n%s", row.name, row.says, got.Stdout)
			}
		}
		if got := ran(t, process.ExitFail, "compare", at("2"), at("3"), "-o", "junit"); !strings.Contains(got.Stdout, `name="load line by goal ready against 2"`) || !strings.Contains(got.Stdout, `failures="1"`) {
			t.Error(got.Stdout)
		}
		if page, err := os.ReadFile(filepath.Join(at("3"), record.ReportFile)); err != nil || !strings.Contains(string(page), "3 is worse than 2") {
			t.Errorf("the page lacks the comparison: %v", err)
		}
		replaced(t, filepath.Join(at("3"), record.BaselineFile), `"worse"`, `"better"`)
		if got := ran(t, process.ExitInconclusive, "analyze", at("3")); !strings.Contains(got.Stdout, "changed since it was written") {
			t.Error(got.Stdout)
		}

		// The last line is for programs.
		got := ran(t, process.ExitFail, limit("33", "last one", "--baseline", "2", "--summary")...)
		lines := strings.Split(strings.TrimSpace(got.Stdout), "\n")
		var line struct {
			Schema, Verdict, Record string
			ExitCode                int
			Level, LowestFailing    float64
			Baseline                struct{ Baseline, Verdict string }
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil || line.Schema != "plimsoll/summary/v1" || line.Verdict != "pass" || line.ExitCode != 1 || line.Level != 33 ||
			line.LowestFailing != 34 || line.Baseline.Verdict != "worse" || line.Baseline.Baseline != at("2") || line.Record != at("last one") {
			t.Errorf("%v: %+v\n%s", err, line, lines[len(lines)-1])
		}
		got = ran(t, process.ExitPass, limit("33", "in JSON", "--baseline", "4", "-o", "json")...)
		var document struct {
			Baseline struct {
				Verdict     string
				Comparisons []any
			}
		}
		if err := json.Unmarshal([]byte(got.Stdout), &document); err != nil || document.Baseline.Verdict != "equivalent" || len(document.Baseline.Comparisons) != 1 {
			t.Errorf("%v: %+v", err, document)
		}
	})
}

// A regression of 10 % is found on each night, and equal nights are never an alarm.
func TestNights(t *testing.T) {
	seeds := suite.Size(3, 20)
	for _, row := range []struct {
		why         string
		args        []string
		same, lower string // the parameter
		undecided   int    // at most so many equal nights
	}{
		{"a line whose limit is exact", []string{"limit", "simulated"}, "limit=37", "limit=33", 0},
		{"five runs of a level", []string{"sweep", "simulated", "--levels", "20", "--repeat", "5", "--set", "places=100"}, "latency=uniform:20ms,80ms", "latency=uniform:22ms,88ms", seeds / 10},
	} {
		e2e.OnVirtualClock(t, func(t *testing.T) {
			dir := t.TempDir()
			night := func(seed int, set, name string) int {
				time.Sleep(24 * time.Hour)
				args := append(slices.Clone(row.args), "--set", set, "--seed", fmt.Sprint(seed), "--out", filepath.Join(dir, name), "--baseline")
				if seed == 0 {
					args = append(args, "last")
				} else {
					args = append(args, "first")
				}
				return e2e.Command(t, nil, args...).Code
			}
			if got := night(0, row.same, "first"); got != process.ExitPass {
				t.Fatalf("%s: exit code %d", row.why, got)
			}
			count := make(map[int]int)
			found := 0
			for seed := 1; seed <= seeds; seed++ {
				count[night(seed, row.same, fmt.Sprint("same-", seed))]++
				if night(seed, row.lower, fmt.Sprint("lower-", seed)) == process.ExitFail {
					found++
				}
			}
			t.Logf("%s: of %d equal nights %d are false alarms and %d undecided; %d of %d regressions of 10%% are found", row.why, seeds, count[process.ExitFail], count[process.ExitInconclusive], found, seeds)
			if count[process.ExitPass]+count[process.ExitInconclusive] != seeds || count[process.ExitInconclusive] > row.undecided || found != seeds {
				t.Errorf("%s: the exit codes of equal nights are %v, and %d of %d regressions were found", row.why, count, found, seeds)
			}
		})
	}
}
