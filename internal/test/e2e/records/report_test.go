package records_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// recorded is a run directory with a plan and the history of a run that ended
// before its first step, and nothing that was made from them.
func recordedRun(t *testing.T) record.Dir {
	t.Helper()
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	plan := "schema: plimsoll/experiment/v1\nname: recorded\nworkload: node-density\naxis: {name: pods-per-node, levels: [10]}\ngoals: {ready: ['all Ready']}\n" +
		"asRun: {id: 1a2b3c4d, kind: sweep, command: plimsoll sweep, version: v0, started: '2030-01-02T03:04:05Z', unit: pods/node, milestones: [Created, Ready], arrived: Ready}\n"
	if err := dir.WriteFile(record.ExperimentFile, []byte(plan)); err != nil {
		t.Fatal(err)
	}
	w, err := record.NewWriter(dir, nil, func(record.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	w.Append(record.Event{T: 1, Body: &record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion, ID: "1a2b3c4d"}})
	w.Append(record.Event{T: 2, Body: &record.RunEvent{Phase: record.PhaseEnd, Message: "no cluster"}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReport(t *testing.T) {
	a, b := recordedRun(t), recordedRun(t)
	out := e2e.Command(t, nil, "report", string(a), string(b))
	if want := a.Path(record.ReportFile) + "\n" + b.Path(record.ReportFile) + "\n"; out.Code != process.ExitPass || out.Stdout != want || out.Stderr != "" {
		t.Fatalf("exit code %d, printed %q and %q, want %q", out.Code, out.Stdout, out.Stderr, want)
	}
	page, err := os.ReadFile(a.Path(record.ReportFile))
	if err != nil || !strings.Contains(string(page), "nothing was measured") {
		t.Errorf("the page: %v", err)
	}
	elsewhere := filepath.Join(t.TempDir(), "a.html")
	if got := e2e.Command(t, nil, "report", string(a), "--out", elsewhere); got.Code != process.ExitPass || got.Stdout != elsewhere+"\n" {
		t.Errorf("elsewhere: exit code %d, %q, %q", got.Code, got.Stdout, got.Stderr)
	}
	if copied, err := os.ReadFile(elsewhere); err != nil || string(copied) != string(page) {
		t.Errorf("elsewhere is another page: %v", err)
	}
	for _, args := range [][]string{{string(a), "--out", elsewhere}, {string(a), string(b), "--out", elsewhere + "2"}} {
		if got := e2e.Command(t, nil, append([]string{"report"}, args...)...); got.Code != process.ExitUsage {
			t.Errorf("%q: exit code %d, %q", args, got.Code, got.Stderr)
		}
	}
	// A judgement that is older than the record is made again, another is not.
	judgement := func() time.Time {
		info, err := os.Stat(a.Path(record.ResultFile))
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	first := judgement()
	if e2e.Command(t, nil, "report", string(a)); !judgement().Equal(first) {
		t.Error("the run was judged again, for nothing")
	}
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(a.Path(record.HistoryFile), later, later); err != nil {
		t.Fatal(err)
	}
	if e2e.Command(t, nil, "report", string(a)); judgement().Equal(first) {
		t.Error("the run was not judged anew, though its record is newer")
	}
}

func TestReportOfWhatIsNoRun(t *testing.T) {
	whole, bare := recordedRun(t), recordedRun(t)
	if err := os.Remove(bare.Path(record.ExperimentFile)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
		why  string
	}{
		{nil, "which run directory?", "nothing named"},
		{[]string{"/nonexistent/run"}, "it does not exist", "no such directory"},
		{[]string{file}, "it is a file", "a file"},
		{[]string{t.TempDir()}, "it has no history", "some directory"},
		{[]string{string(bare)}, "it has no experiment.yaml", "a record that cannot be judged"},
		{[]string{string(whole), "/nonexistent/run"}, "it does not exist", "one good, one bad"},
		{[]string{string(whole), "--opn"}, "did you mean --open?", "a flag"},
	} {
		out := e2e.Command(t, nil, append([]string{"report"}, tt.args...)...)
		if out.Code != process.ExitUsage || !strings.Contains(out.Stderr, tt.want) || out.Stdout != "" {
			t.Errorf("%s: exit code %d, %q, %q, want %q", tt.why, out.Code, out.Stdout, out.Stderr, tt.want)
		}
	}
	if _, err := os.Stat(whole.Path(record.ReportFile)); err == nil {
		t.Error("a report was written although another directory was none")
	}
}

func TestReportIsOpened(t *testing.T) {
	dir, bin := recordedRun(t), t.TempDir()
	opened := filepath.Join(bin, "opened")
	if err := os.WriteFile(filepath.Join(bin, "xdg-open"), []byte("#!/bin/sh\necho \"$1\" >"+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if out := e2e.Command(t, nil, "report", string(dir), "--open"); out.Code != process.ExitPass {
		t.Fatalf("exit code %d: %s", out.Code, out.Stderr)
	}
	if got, err := os.ReadFile(opened); err != nil || string(got) != dir.Path(record.ReportFile)+"\n" {
		t.Errorf("opened %q, %v", got, err)
	}
	t.Setenv("PATH", t.TempDir())
	if out := e2e.Command(t, nil, "report", string(dir), "--open"); out.Code != process.ExitCouldNotRun || !strings.Contains(out.Stderr, "open "+dir.Path(record.ReportFile)) || out.Stdout == "" {
		t.Errorf("without an opener: exit code %d, %q, %q", out.Code, out.Stdout, out.Stderr)
	}
}
