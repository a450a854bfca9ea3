package kubernetes_test

import (
	"slices"
	"strconv"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/stats"
)

// onFreshLabs compares arms that differ by what was planted, each run on a lab
// of its own: what the API server holds at the start of a run is not what the
// runs before have left.
func onFreshLabs(t *testing.T, repeat, exit int) compare.LevelComparison {
	t.Helper()
	p := suite.Program(t)
	got := p.RunTo(t, "r", "ab", "node-density", "--fresh", "lab", "--lab-nodes", "3", "--level", "8", "--repeat", strconv.Itoa(repeat), "--hold", "1s",
		"--arm", "soon:startLatency=constant:200ms", "--arm", "late:startLatency=constant:4s")
	if got.Code != exit {
		t.Fatalf("exit code %d, want %d\n%s%s", got.Code, exit, got.Stdout, got.Stderr)
	}
	r := p.Result(t, "r")
	l := r.Comparison.Levels[0]
	if l.Runs != [2]int{repeat, repeat} || l.Primary.Change == nil || *l.Primary.Change <= 0 {
		t.Errorf("%s: %s, %v runs, change %v", r.Verdict, l.Why, l.Runs, l.Primary.Change)
	}
	var starts []int64
	for _, s := range r.Steps {
		starts = append(starts, s.Resources["kube-apiserver"].StartRSSBytes)
	}
	if slices.Min(starts) <= 0 || float64(slices.Max(starts)) > 1.25*float64(slices.Min(starts)) {
		t.Errorf("the API server starts with %v bytes", starts)
	}
	p.LeavesNoLab(t)
	return l
}

// One run of each arm has no spread, so that nothing can be decided.
func TestArmsOnFreshLabs(t *testing.T) {
	suite.Long(t, "brings up two labs")
	t.Parallel()
	if l := onFreshLabs(t, 1, process.ExitInconclusive); l.Verdict != stats.Undecided {
		t.Errorf("%s: %s", l.Verdict, l.Why)
	}
}

func TestArmsOnFreshLabsAreDistinct(t *testing.T) {
	suite.Long(t, "brings up six labs")
	if l := onFreshLabs(t, 3, process.ExitFail); l.Verdict != stats.Worse {
		t.Errorf("%s: %s", l.Verdict, l.Why)
	}
}
