package faults

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
)

// A run through the proxy heals what a client can heal, and the proxy has seen
// the same as the run.
func TestARunGoesThroughTheProxy(t *testing.T) {
	t.Parallel()
	suite.Smoke(t)
	p := suite.Lab(t, "--nodes", "1")
	proxy := Start(t, p.Kubeconfig, Plan{Seed: 1, Rules: []Rule{
		{On: Creates("pods"), Do: Status(503), Nth: 3},
		{On: Creates("pods"), Do: ResetAfter(), Nth: 5},
		{On: Match{Verb: "watch", Resource: "pods", Event: "MODIFIED"}, Do: Duplicate(), Nth: 2},
	}})
	got := p.RunTo(t, "r", "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "12", "--hold", "100ms")
	if !decided(got.Code) {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	counts := proxy.Counts()
	for _, name := range []string{"503", "reset after", "duplicated event"} {
		if counts.Faults[name] != 1 {
			t.Errorf("faults %v", counts.Faults)
		}
	}
	made := 0
	for _, name := range counts.Created["pods"] {
		if !strings.HasSuffix(name, "/canary") {
			made++
		}
	}
	if o := p.Result(t, "r").Steps[0].Objects; made == 0 || o.Created != made || got.Code == process.ExitPass && o.Ready != made {
		t.Errorf("created %d, Ready %d; the proxy has seen %d", o.Created, o.Ready, made)
	}
}
