package kubernetes_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// files returns the contents of a directory's files and when they were written.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	held := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		held[name] = info.ModTime().Format(time.RFC3339Nano) + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return held
}

// A run on a private lab is killed, and its lab with it, goes on, is interrupted,
// goes on again, and comes to the planted limit.
func TestAKilledRunIsResumed(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	w := p.Start(t, "limit", "node-density", "--lab-nodes", "3", "--lab-max-pods", "12", "--from", "6", "--step", "6", "--max", "13", "--hold", "1s", "--out", "r")
	harness.Await(t, "the second step", func() bool { return e2e.Steps(p, "r") == 2 })
	if got := p.Run(t, "run", "--resume", "r"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, "in use by a running experiment") {
		t.Errorf("a run that is going on: exit code %d, %s", got.Code, got.Stderr)
	}
	w.Kill()
	p.LeavesNoLab(t) // a private one dies with its run, and lab list removes what is left of it
	made := e2e.Steps(p, "r")

	plan := filepath.Join(p.Dir, "r", record.ExperimentFile)
	text, err := os.ReadFile(plan)
	if err != nil {
		t.Fatal(err)
	}
	before := files(t, filepath.Join(p.Dir, "r"))
	for change, want := range map[string]string{
		"from: 6\x00from: 5":        "step 1 is on record at 6",
		"maxPods: 12\x00maxPods: 9": "target",
		"hold: 1s\x00hold: 2s":      "hold",
		"  id: \x00  id: 0":         "of run 0",
	} {
		old, changed, _ := strings.Cut(change, "\x00")
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("the plan lacks %q:\n%s", old, text)
		}
		if err := os.WriteFile(plan, bytes.Replace(text, []byte(old), []byte(changed), 1), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := p.Run(t, "run", "--resume", "r"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, want) || !strings.Contains(got.Stderr, "hint: undo") {
			t.Errorf("with %s: exit code %d, %s", changed, got.Code, got.Stderr)
		}
	}
	if err := os.WriteFile(plan, text, 0o644); err != nil {
		t.Fatal(err)
	}
	delete(before, record.ExperimentFile)
	after := files(t, filepath.Join(p.Dir, "r"))
	delete(after, record.ExperimentFile)
	if len(after) != len(before) || after[record.HistoryFile] != before[record.HistoryFile] {
		t.Error("what was refused has changed the record")
	}

	w = p.Start(t, "run", "--resume", "r")
	harness.Await(t, "a step of the second part", func() bool { return e2e.Steps(p, "r") > made })
	w.Signal(os.Interrupt)
	got := w.Wait()
	if got.Code != process.ExitInterrupted || !strings.Contains(got.Stderr, "hint: 'plimsoll run --resume r' continues it") {
		t.Errorf("interrupted: exit code %d, want 130\n%s", got.Code, got.Stderr)
	}

	got = p.Run(t, "run", "--resume", "r")
	if got.Code != process.ExitPass || !strings.Contains(got.Stdout, "12 pods/node, confirmed 3 of 3") {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	r := p.Result(t, "r")
	if line := r.LoadLine; *line.Level != 12 || *line.LowestFailing != 13 || line.Confirmations != 3 {
		t.Errorf("line %+v", line)
	}
	var asked []float64
	for i, s := range r.Steps {
		if s.ID != i+1 {
			t.Errorf("step %d has the number %d", i+1, s.ID)
		}
		if s.Verdict.Decided() { // on a machine that is too busy one may be invalid, and made again
			asked = append(asked, s.Level)
		}
	}
	if want := []float64{6, 12, 13, 12, 12, 12, 13}; !slices.Equal(asked, want) {
		t.Errorf("the steps that decided were made at %v, want %v", asked, want)
	}
	warnings := strings.Join(r.Warnings.Lines(), "\n")
	if strings.Count(warnings, "the run was resumed") != 2 || !strings.Contains(warnings, "was cut off and is repeated") || !strings.Contains(warnings, "up to 100 ms may be missing") {
		t.Errorf("warnings %q", r.Warnings)
	}
	if !strings.HasPrefix(r.Command, "plimsoll limit node-density --lab-nodes 3") {
		t.Errorf("command %q", r.Command)
	}
	p.LeavesNoLab(t)

	before = files(t, filepath.Join(p.Dir, "r"))
	finished := p.Run(t, "run", "--resume", "r")
	if finished.Code != process.ExitPass || !strings.Contains(finished.Stderr, "is finished") || finished.Stdout != got.Stdout {
		t.Errorf("a finished run: exit code %d, %s\n%s", finished.Code, finished.Stderr, finished.Stdout)
	}
	after = files(t, filepath.Join(p.Dir, "r"))
	for name := range before {
		if before[name] != after[name] {
			t.Errorf("%s of a finished run was changed", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("a finished run has %d files, and had %d", len(after), len(before))
	}
}

// In a lab of its own name the killed run has left its pods: they are
// removed before it goes on, although it gave a sign of life just now.
func TestAKilledRunIsResumedInANamedLab(t *testing.T) {
	suite.Long(t, "as in a private lab, which is always tested")
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	w := p.Start(t, "sweep", "node-density", "--lab", p.Lab, "--levels", "4,8,11", "--hold", "1s", "--out", "r")
	harness.Await(t, "the second step", func() bool { return e2e.Steps(p, "r") == 2 })
	w.Kill()
	left := p.Leftovers(t)
	if len(left) != 1 || left[0].Alive {
		t.Fatalf("left %+v", left)
	}
	got := p.Run(t, "run", "--resume", "r")
	if got.Code != process.ExitPass || !strings.Contains(got.Stderr, "removing the leftovers of run "+left[0].Run) {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	r := p.Result(t, "r")
	if len(r.Steps) != 4 || r.Steps[1].Ending != record.EndInterrupted || !r.Steps[2].FromEmpty || r.Steps[2].Objects.Ready != 24 || r.Steps[3].Objects.Ready != 33 {
		t.Errorf("%d steps: %+v", len(r.Steps), r.Steps)
	}
	if left := p.Leftovers(t); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
}
