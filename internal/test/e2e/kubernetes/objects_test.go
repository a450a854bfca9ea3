package kubernetes_test

import (
	"os"
	"path/filepath"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// Objects of any kind are followed as a workload describes them: created in
// place, in bulks, by a schedule, and set up before they are begun.
func TestObjectsOfAnyKind(t *testing.T) {
	suite.Long(t, "each run takes ten seconds to remove its namespaces")
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	if err := os.CopyFS(p.Dir, os.DirFS("testdata/workloads")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		why       string
		args      []string
		intended  int
		level     float64
		milestone []string
	}{
		{"set up, and begun by a patch", []string{"./scaleup", "--levels", "8"}, 8, 8, []string{"Scheduled", "Ready"}},
		{"in place", []string{"./deployments", "--levels", "10"}, 10, 10, []string{"Created", "Observed", "Scheduled", "Available"}},
		{"in bulks, each level from empty", []string{"./deployments", "--axis", "bulk", "--levels", "4,6", "--set", "deployments=12"}, 12, 6, []string{"Created", "Scheduled", "Available"}},
		{"by a schedule, deleted as they age", []string{"./deployments", "--axis", "rate", "--levels", "4", "--life", "500ms"}, 8, 4, []string{"Created", "Available", "Deleted"}},
	}
	for _, tt := range tests {
		dir := filepath.Base(tt.args[0]) + "-" + tt.args[2]
		got := p.RunTo(t, dir, append(append([]string{"sweep"}, tt.args...), "--lab", p.Lab, "--hold", "2s")...)
		r := p.Result(t, dir)
		if got.Code != process.ExitPass || len(r.Steps) == 0 {
			t.Errorf("%s: exit code %d\n%s%s", tt.why, got.Code, got.Stdout, got.Stderr)
			continue
		}
		s := r.Steps[len(r.Steps)-1]
		if s.Objects.Intended != tt.intended || s.Objects.Ready != tt.intended || s.LevelReached != tt.level {
			t.Errorf("%s: level %g, %+v", tt.why, s.LevelReached, s.Objects)
		}
		for _, m := range tt.milestone {
			if p.Count(dir, func(e record.Event) bool {
				o, is := e.Body.(*record.Object)
				return is && e.Step == s.ID && o.Milestone == m
			}) < tt.intended {
				t.Errorf("%s: %s is not told of each object", tt.why, m)
			}
		}
	}
	// What will never be there is not waited for, and its trouble is named.
	got := p.RunTo(t, "given-up", "sweep", "./jobs", "--levels", "5", "--lab", p.Lab, "--step-timeout", "2m")
	step := p.Result(t, "given-up").Steps[0]
	const why = "all Complete: 5 of 5 did not reach it; 5 never will: jobs were given up"
	if got.Code != process.ExitFail || step.Ending != record.EndStalled || step.VerdictWhy != why || step.Breaches[0].Kind != "givenUp" {
		t.Errorf("jobs that are given up: exit code %d, %s after %g s: %s: %+v", got.Code, step.Ending, step.Seconds, step.VerdictWhy, step.Breaches)
	}
	var last, ended record.Micros
	p.Count("given-up", func(e record.Event) bool {
		switch e.Body.Kind() {
		case record.KindState:
			last = e.T
		case record.KindStep:
			ended = e.T
		}
		return false
	})
	if ended-last > 8e6 {
		t.Errorf("the last job was given up at %v, and the step ended at %v", last, ended)
	}
	if left := p.Leftovers(t); len(left) > 0 {
		t.Errorf("left behind: %+v", left)
	}
}

// The workload that docs/workload.md has as a whole holds on a lab.
func TestTheDocumentedWorkloadHolds(t *testing.T) {
	t.Parallel()
	suite.Long(t, "it makes deployments in a lab")
	p := suite.Lab(t, e2e.SmallLab()...)
	dir := e2e.DocumentedFiles(t, "../../../../docs/workload.md")
	got := p.RunTo(t, "run", "sweep", filepath.Join(dir, "deployments"), "--levels", "5", "--hold", "1s", "--lab", p.Lab)
	if r := p.Result(t, "run"); got.Code != process.ExitPass && got.Code != process.ExitInvalid || r.Steps[0].Objects.Ready != 5 {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}
