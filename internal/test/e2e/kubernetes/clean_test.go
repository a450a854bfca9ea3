package kubernetes_test

import (
	"os"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// A private lab goes with the command that made it, and what is left of it by
// 'clean'.
func TestCleanOfAPrivateLab(t *testing.T) {
	t.Parallel()
	p := suite.Program(t)
	args := []string{"sweep", "node-density", "--lab-nodes", "1", "--levels", "2", "--hold", "1m", "--out", "r"}
	if os.Geteuid() == 0 {
		args = append(args, "--lab-control-plane-cpus", "1.5")
	}
	run := p.Start(t, args...)
	harness.Await(t, "the load", func() bool {
		return p.Count("r", func(e record.Event) bool { return e.Body.Kind() == record.KindSlot }) > 0
	})
	left := e2e.Ours(p.Cleaned(t))
	if len(left) != 1 || !left[0].Alive || !strings.HasPrefix(left[0].Things[0], `lab "private-`) {
		t.Errorf("beside a lab whose command runs: %+v", left)
	}
	run.Kill()
	p.LeavesNoProcess(t)
	things := []string{`lab "private-`}
	if os.Geteuid() == 0 {
		things = append(things, "/sys/fs/cgroup/.*plimsoll-")
	}
	e2e.Cleans(t, p, things...)
	p.LeavesNoLab(t)
}
