package records_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/record"
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
