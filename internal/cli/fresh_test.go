package cli

import (
	"slices"
	"testing"

	"plimsoll.dev/plimsoll/internal/stats"
)

// Arms that differ by what was planted, each run on a laboratory of its own:
// what the API server holds at the start of a run is not what the runs before
// have left.
func TestArmsOnFreshLaboratories(t *testing.T) {
	p := newProgram(t)
	got := p.run(t, "ab", "node-density", "--fresh", "lab", "--lab-nodes", "3", "--level", "8", "--repeat", "3", "--hold", "1s",
		"--arm", "soon:startLatency=constant:200ms", "--arm", "late:startLatency=constant:2s", "--out", "r")
	// On a busy machine the few runs may not decide.
	if got.code != exitBreached && got.code != exitInconclusive {
		t.Fatalf("exit code %d\n%s", got.code, got.stderr)
	}
	r := p.result(t, "r")
	l := r.Comparison.Levels[0]
	if l.Verdict != stats.Worse && l.Verdict != stats.Undecided || l.Runs != [2]int{3, 3} || l.Primary.Change == nil || *l.Primary.Change < 1 {
		t.Errorf("%s: %s, %v runs", r.Verdict, l.Why, l.Runs)
	}
	var starts []int64
	for _, s := range r.Steps {
		starts = append(starts, s.Resources["kube-apiserver"].StartRSSBytes)
	}
	if slices.Min(starts) <= 0 || float64(slices.Max(starts)) > 1.25*float64(slices.Min(starts)) {
		t.Errorf("the API server starts with %v bytes", starts)
	}
	p.leavesNoLab(t)
}
