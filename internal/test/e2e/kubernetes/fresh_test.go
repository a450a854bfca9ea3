package kubernetes_test

import (
	"strconv"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// onFreshLabs compares arms that differ by what was planted, each run on a lab with an API server of its own.
func onFreshLabs(t *testing.T, repeat, exit int) compare.LevelComparison {
	t.Helper()
	p := suite.Program(t)
	s := p.Start(t, "ab", "node-density", "--fresh", "lab", "--lab-nodes", "3", "--level", "8", "--repeat", strconv.Itoa(repeat), "--hold", "1s", "--out", "r",
		"--arm", "soon:startLatency=constant:200ms", "--arm", "late:startLatency=constant:4s")
	servers := make(map[string]bool)
	harness.Await(t, "the end of the comparison", func() bool {
		for _, process := range p.Processes() {
			if strings.Contains(process, "kube-apiserver") {
				servers[process] = true
			}
		}
		return s.Ended()
	})
	got := s.Wait()
	if got.Code != exit {
		t.Fatalf("exit code %d, want %d\n%s%s", got.Code, exit, got.Stdout, got.Stderr)
	}
	r := p.Result(t, "r")
	l := r.Comparison.Levels[0]
	if l.Runs != [2]int{repeat, repeat} || l.Primary.Change == nil || *l.Primary.Change <= 0 {
		t.Errorf("%s: %s, %v runs, change %v", r.Verdict, l.Why, l.Runs, l.Primary.Change)
	}
	if len(servers) != 2*repeat {
		t.Errorf("%d runs had these API servers: %v", 2*repeat, servers)
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
