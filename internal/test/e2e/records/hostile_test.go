package records_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// A record of somebody else's is read; what its links lead to is left as it is.
func TestARecordIsData(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	got := p.Run(t, "sweep", "simulated", "--levels", "2", "--hold", "1ms", "--out", "run")
	if got.Code != process.ExitPass {
		t.Fatal(got.Stderr)
	}
	for i, name := range []string{record.ResultFile, record.ObjectsFile, "." + record.ObjectsFile + ".part", "." + record.WindowsFile + ".part", "." + record.HistoryFile + ".part", "report.html"} {
		precious, link := filepath.Join(p.Dir, fmt.Sprint("precious", i)), filepath.Join(p.Dir, "run", name)
		if err := os.WriteFile(precious, []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, link); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"analyze", "run"}, {"report", "run"}, {"run", "--resume", "run"}} {
			got := p.Run(t, args...)
			if text, err := os.ReadFile(precious); err != nil || string(text) != "kept" {
				t.Errorf("%v overwrote what %s leads to: %v\n%s", args, name, err, got.Stderr)
			}
		}
		if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	// What has no end is not read, and a link is not followed to another's cells.
	for name, lead := range map[string]string{record.HistoryFile: "", record.ExperimentFile: "", record.EnvironmentFile: "/dev/zero", record.ResultFile: "/dev/zero", metrics.ScrapesDir: ""} {
		at := filepath.Join(p.Dir, "run", name)
		if err := os.Rename(at, at+".kept"); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		end := func() error { return unix.Mkfifo(at, 0o600) }
		if lead != "" {
			end = func() error { return os.Symlink(lead, at) }
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"analyze", "run"}, {"report", "run"}, {"run", "--resume", "run"}, {"compare", "run", "run"}, {"query", "run", "up"}} {
			if got := p.Run(t, args...); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, name+" is not a file that can be read whole") {
				t.Errorf("%v, where %s has no end: exit code %d\n%s", args, name, got.Code, got.Stderr)
			}
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(at+".kept", at); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if got := p.Run(t, "sweep", "simulated", "--levels", "2", "--hold", "1ms", "--vary", "limit=5,6", "--out", "grid"); got.Code != process.ExitPass {
		t.Fatal(got.Stderr)
	}
	cell := filepath.Join(p.Dir, "grid", record.CellsDir, "limit=5")
	before, err := os.ReadFile(filepath.Join(p.Dir, "run", record.ResultFile))
	if err := errors.Join(err, os.RemoveAll(cell), os.Symlink(filepath.Join(p.Dir, "run"), cell)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"analyze", "grid"}, {"report", "grid"}, {"run", "--resume", "grid"}} {
		got := p.Run(t, args...)
		after, err := os.ReadFile(filepath.Join(p.Dir, "run", record.ResultFile))
		if _, page := os.Stat(filepath.Join(p.Dir, "run", record.ReportFile)); err != nil || string(after) != string(before) || page == nil {
			t.Errorf("%v wrote to another record: exit code %d, %v, %v\n%s", args, got.Code, err, page, got.Stderr)
		}
	}
	// Nor is a program run that a record names.
	ran, evil := filepath.Join(p.Dir, "ran"), filepath.Join(p.Dir, "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := os.ReadFile(filepath.Join(p.Dir, "run", record.ExperimentFile))
	if err != nil {
		t.Fatal(err)
	}
	_, asRun, _ := strings.Cut(string(made), "asRun:")
	plan := "schema: plimsoll/experiment/v1\nworkload: io-volumes\nparams: {path: ., fio: " + evil + "}\naxis: {levels: [1]}\ngoals: {g: ['errors <= 5%']}\nasRun:" + asRun
	if err := os.WriteFile(filepath.Join(p.Dir, "run", record.ExperimentFile), []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"run", "--resume", "run"}, {"run", "run/" + record.ExperimentFile}, {"analyze", "run"}, {"report", "run"}} {
		got := p.Run(t, args...)
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%v ran a program\n%s", args, got.Stderr)
		}
	}
	if got := p.Run(t, "run", "--resume", "run"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "names the program "+evil) {
		t.Errorf("exit code %d\n%s", got.Code, got.Stderr)
	}
}

// A record of a later version is refused by its first file of another format, with the version that reads it,
// by every command.
func TestLaterRecordsNameTheirVersion(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for file, change := range map[string]func(dir record.Dir) error{
			record.ExperimentFile: func(dir record.Dir) error {
				text, err := dir.ReadFile(record.ExperimentFile)
				return errors.Join(err, dir.WriteFile(record.ExperimentFile, []byte(strings.Replace(string(text), "experiment/v1", "experiment/v2", 1))))
			},
			record.HistoryFile: func(dir record.Dir) error {
				if err := os.Remove(dir.Path(record.HistoryFile)); err != nil {
					return err
				}
				w, err := record.NewWriter(dir, nil, nil)
				if err != nil {
					return err
				}
				w.Append(record.Event{Body: &record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion + 1}})
				later := time.Now().AddDate(100, 0, 0) // than the result, also on a virtual clock
				return errors.Join(w.Close(), os.Chtimes(dir.Path(record.HistoryFile), later, later))
			},
		} {
			dir := record.Dir(filepath.Join(t.TempDir(), "a run"))
			ran(t, process.ExitPass, "limit", "simulated", "--set", "limit=9", "--out", string(dir))
			text, err := dir.ReadFile(record.ExperimentFile)
			if err := errors.Join(err, dir.WriteFile(record.ExperimentFile, []byte(strings.Replace(string(text), "version: "+process.Version, "version: 0.9.1", 1))), change(dir)); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{{"analyze"}, {"report"}, {"compare", string(dir)}, {"run", "--resume"}, {"limit", "simulated", "--out", string(dir) + "-2", "--baseline"}} {
				got := e2e.Command(t, nil, append(args, string(dir))...)
				if got.Code == process.ExitPass || !strings.Contains(got.Stdout+got.Stderr, "needs plimsoll 0.9.1") {
					t.Errorf("%s of a later version, %v: exit code %d\n%s%s", file, args, got.Code, got.Stdout, got.Stderr)
				}
			}
			if got := ran(t, process.ExitPass, "runs", filepath.Dir(string(dir))); !strings.Contains(got.Stdout, "needs plimsoll 0.9.1") {
				t.Errorf("%s of a later version is listed as\n%s", file, got.Stdout)
			}
		}
	})
}

// A directory or a home that cannot be written to is named, with what helps.
func TestReadOnlyPlaces(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{"HOME": "/proc", "XDG_STATE_HOME": ""}
	e2e.OnVirtualClock(t, func(t *testing.T) {
		limit := []string{"limit", "simulated", "--set", "limit=37"}
		for _, args := range [][]string{append(limit, "--out", filepath.Join(dir, "a"), "--baseline", "last"), {"runs", dir}, {"analyze", filepath.Join(dir, "a")}, {"compare", filepath.Join(dir, "a"), filepath.Join(dir, "b")}} {
			if args[0] == "compare" {
				time.Sleep(time.Hour)
				ran(t, process.ExitPass, append(limit, "--out", filepath.Join(dir, "b"))...)
			}
			if got := e2e.Command(t, env, args...); got.Code != process.ExitPass {
				t.Errorf("%v: exit code %d\n%s", args, got.Code, got.Stderr)
			}
		}
	})
	t.Chdir("/proc") // where nobody can make a directory
	for _, args := range [][]string{{"limit", "simulated"}, {"sweep", "simulated", "--levels", "2", "--vary", "limit=5,6"}} {
		if got := e2e.Command(t, nil, args...); got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "create run directory: mkdir plimsoll-runs") || !strings.Contains(got.Stderr, "hint: --out DIR") {
			t.Errorf("%v: exit code %d\n%s", args, got.Code, got.Stderr)
		}
	}
}
