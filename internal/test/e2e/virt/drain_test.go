package virt_test

import (
	"os/exec"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Nodes with machines are drained within the limits of the cluster. What a run
// has cordoned is uncordoned at its end, and by the next command after a kill;
// what somebody else has cordoned stays so.
func TestDrain(t *testing.T) {
	suite.Long(t, "drains nodes of a lab with virtual machines")
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Skip("there is no kubectl")
	}
	t.Parallel()
	p := suite.Lab(t, "--virt", "--nodes", "6", "--time-scale", "20")
	nodes := func(args ...string) string {
		out, err := exec.Command(kubectl, append([]string{"--kubeconfig", p.Kubeconfig}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	cordoned := func() string {
		return strings.TrimSpace(nodes("get", "nodes", "-o", `jsonpath={range .items[?(@.spec.unschedulable)]}{.metadata.name}={.metadata.labels.plimsoll\.dev/cordoned-by} {end}`))
	}
	ours := func() int { return strings.Count(cordoned(), "=") - strings.Count(cordoned()+" ", "= ") }
	nodes("cordon", "node-0000")
	t.Cleanup(func() { nodes("uncordon", "node-0000") })

	got := p.RunTo(t, "whole", "sweep", "vm-drain", "--lab", p.Lab, "--levels", "1,3", "--hold", "1s")
	r := p.Result(t, "whole")
	if got.Code != process.ExitPass || len(r.Steps) != 2 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	for i, want := range []struct{ nodes, atOnce int }{{1, 2}, {3, 5}} {
		s := r.Steps[i]
		if s.LevelReached != float64(want.nodes) || s.Objects.Intended != 4*want.nodes || s.Objects.Ready != s.Objects.Intended || s.Latency["Moving"].Censored > 0 {
			t.Errorf("step %d: level %g, %+v, moving %+v", s.ID, s.LevelReached, s.Objects, s.Latency["Moving"])
		}
		if a := s.Concurrent; a == nil || a.Limit != 5 || a.PerPlaceLimit != 2 || a.Most != want.atOnce || a.PerPlace != 2 || a.LeftOut != 0 {
			t.Errorf("step %d: at once %+v", s.ID, a)
		}
	}
	if got := cordoned(); got != "node-0000=" {
		t.Errorf("cordoned after the run: %s", got)
	}
	over := p.Run(t, "sweep", "vm-drain", "--lab", p.Lab, "--levels", "5", "--out", "over")
	if over.Code == process.ExitPass || !strings.Contains(over.Stderr, "could be drained") {
		t.Errorf("no node is left to take machines: exit code %d\n%s", over.Code, over.Stderr)
	}

	s := p.Start(t, "sweep", "vm-drain", "--lab", p.Lab, "--levels", "3", "--hold", "1m", "--out", "killed")
	harness.Await(t, "the nodes are cordoned", func() bool { return ours() == 3 })
	s.Kill()
	if ours() != 3 {
		t.Errorf("cordoned after the kill: %s", cordoned())
	}
	clean := p.Run(t, "clean", "--lab", p.Lab)
	if clean.Code != process.ExitPass || !strings.Contains(clean.Stdout, "the cordon of node node-0001") {
		t.Errorf("clean: exit code %d\n%s%s", clean.Code, clean.Stdout, clean.Stderr)
	}
	if got := cordoned(); got != "node-0000=" {
		t.Errorf("cordoned after clean: %s", got)
	}
}
