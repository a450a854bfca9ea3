package records_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	clirecords "plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// ran runs a command, which must end with a code.
func ran(t *testing.T, code int, args ...string) harness.Outcome {
	t.Helper()
	got := e2e.Command(t, nil, args...)
	if got.Code != code {
		t.Errorf("%s: exit code %d, want %d\n%s%s", process.CommandLine(args), got.Code, code, got.Stdout, got.Stderr)
	}
	return got
}

// runsDir returns a directory with the records of runs, and with what a directory has besides.
func runsDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "my runs")
	for _, night := range []struct{ name, limit string }{{"night-1", "37"}, {"night-2", "37"}, {"night-3", "33"}} {
		ran(t, process.ExitPass, "limit", "simulated", "--set", "limit="+night.limit, "--out", filepath.Join(dir, night.name))
		time.Sleep(24 * time.Hour) // of the virtual clock
	}
	ran(t, process.ExitPass, "sweep", "simulated", "--levels", "5", "--vary", "places=2,4", "--out", filepath.Join(dir, "grid"))
	time.Sleep(time.Hour)
	ran(t, process.ExitPass, "ab", "simulated", "--arm", "a:", "--arm", "b:places=3", "--level", "5", "--repeat", "4", "--margin", "90%", "--out", filepath.Join(dir, "arms"))
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := os.ReadFile(filepath.Join(dir, "night-1", record.ExperimentFile))
	if err != nil {
		t.Fatal(err)
	}
	write("begun/"+record.ExperimentFile, string(plan)) // killed before its first event
	write("cut/"+record.ExperimentFile, string(plan))
	write("cut/"+record.HistoryFile, "")
	write("damaged/"+record.ExperimentFile, "schema: [")
	write("damaged/"+record.HistoryFile, "(")
	later := strings.NewReplacer("experiment/v1", "experiment/v9", "workload:", "further: 1\nworkload:", "version: "+process.Version, "version: 0.9.1").Replace(string(plan))
	write("later/"+record.ExperimentFile, later)
	write("later/"+record.HistoryFile, "")
	write("notes/"+record.ExperimentFile, "schema: plimsoll/experiment/v1\nworkload: simulated\n") // a plan, and not a run
	write("cells/a/b", "of a biologist")
	write("readme", "")
	if err := os.Symlink("night-1", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A directory's records are listed with what they found, whatever else is in it.
func TestRunsAreListed(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := runsDir(t)
		got := ran(t, process.ExitPass, "runs", dir, "--page")
		for _, want := range []string{"night-1  simulated  simulated  2000-01-01 00:00:00 UTC  pass", "simulated holds 33 objects/place and fails at 34", "begun", "has no history.jsonl.zst", "damaged", "later", "experiment/v9", "it needs plimsoll 0.9.1"} {
			if !strings.Contains(got.Stdout, want) {
				t.Errorf("the list lacks %q:\n%s", want, got.Stdout)
			}
		}
		var list struct{ Runs []view.Listed }
		if err := json.Unmarshal([]byte(ran(t, process.ExitPass, "runs", dir, "-o", "json").Stdout), &list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, l := range list.Runs {
			names = append(names, l.Name)
			if (l.Verdict == "") != (l.Note != "") {
				t.Errorf("%s has the verdict %q and the note %q", l.Name, l.Verdict, l.Note)
			}
		}
		if got := strings.Join(names, " "); got != "damaged later begun cut night-1 night-2 night-3 grid arms" {
			t.Errorf("listed are %s", got)
		}
		html, err := os.ReadFile(filepath.Join(dir, clirecords.IndexFile))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`href="./night-1/report.html"`, "Load line of simulated by goal ready", "9 records of ", `"name":"night-3"`, "simulated:places=2", "simulated:b"} {
			if !strings.Contains(string(html), want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		// What was changed later is judged again, and the record stays as it is.
		result := record.Dir(dir).Path("night-2/" + record.ResultFile)
		text, err := os.ReadFile(result)
		if err == nil {
			err = os.WriteFile(result, []byte(strings.Replace(string(text), `"verdict": "pass"`, `"verdict": "fail"`, 1)), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := ran(t, process.ExitPass, "runs", dir); strings.Contains(got.Stdout, "  fail  ") || !strings.Contains(got.Stderr, "is not as it was written") {
			t.Errorf("an edited result is believed:\n%s%s", got.Stdout, got.Stderr)
		}
		if got := ran(t, process.ExitPass, "runs", t.TempDir()); !strings.Contains(got.Stdout, "the directory has no record of a run") {
			t.Error(got.Stdout)
		}
		ran(t, process.ExitUsage, "runs", filepath.Join(dir, "none"))
		ran(t, process.ExitUsage, "runs", filepath.Join(dir, "readme"))
	})
}

// Only records are named and removed, and only of runs that have ended.
func TestRunsAreNamedAndRemoved(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := runsDir(t)
		at := func(name string) string { return filepath.Join(dir, name) }
		lock, err := record.Dir(at("night-3")).Lock()
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			why  string
			args []string
			says string
		}{
			{"a name is taken", []string{"name", at("night-1"), "night-2"}, "exists already"},
			{"a name leads elsewhere", []string{"name", at("night-1"), "../x"}, "is not a name"},
			{"a name has another meaning", []string{"name", at("night-1"), "last"}, "is not a name"},
			{"a name would be hidden", []string{"name", at("night-1"), ".x"}, "is not a name"},
			{"a name steers the terminal", []string{"name", at("night-1"), "a\x1b[31m"}, "is not a name"},
			{"a plan is not a record", []string{"name", at("notes"), "x"}, "is not a run directory"},
			{"a run is still going", []string{"name", at("night-3"), "x"}, "in use by a running experiment"},
			{"a run is still going", []string{"remove", "--yes", at("night-1"), at("night-3")}, "in use by a running experiment"},
			{"a plan is not a record", []string{"remove", "--yes", at("night-1"), at("notes")}, "is not a run directory"},
			{"cells of something else", []string{"remove", "--yes", dir}, "is not a run directory"},
			{"a file", []string{"remove", "--yes", at("readme")}, "is not a run directory"},
			{"a link leads elsewhere", []string{"remove", "--yes", at("link")}, "is not a run directory"},
			{"a cell belongs to its grid", []string{"remove", "--yes", at("grid/cells/places=2")}, "is a cell of a grid"},
			{"nobody is asked", []string{"remove", at("night-1"), at("night-2")}, "was not confirmed"},
			{"nothing is named", []string{"remove"}, "which run directory?"},
		} {
			if got := ran(t, process.ExitUsage, append([]string{"runs"}, row.args...)...); !strings.Contains(got.Stderr, row.says) {
				t.Errorf("%s: want %q\n%s", row.why, row.says, got.Stderr)
			}
		}
		lock.Close()
		if got := ran(t, process.ExitPass, "runs", "name", at("night-1"), "v1.2"); got.Stdout != at("v1.2")+"\n" {
			t.Errorf("it says %q", got.Stdout)
		}
		ran(t, process.ExitPass, "analyze", at("v1.2"))
		ran(t, process.ExitPass, "runs", "remove", "--yes", at("night-2"), at("night-3"), at("begun"), at("cut"), at("damaged"), at("later"), at("grid"), at("arms"))
		left, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range left {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != "cells link notes readme v1.2" {
			t.Errorf("left are %s", got)
		}
	})
}
