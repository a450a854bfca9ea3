package faults

import (
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
)

// A run through the proxy heals what a client can heal, and the proxy has seen
// the same as the run.
func TestARunGoesThroughTheProxy(t *testing.T) {
	t.Parallel()
	p := suite.Lab(t, "--nodes", "1")
	proxy := Start(t, p.Kubeconfig, Plan{Seed: 1, Rules: []Rule{
		{On: Creates("pods"), Do: Status(503), Share: 0.1, From: time.Millisecond},
		{On: Creates("pods"), Do: ResetAfter(), Share: 0.2, From: time.Millisecond},
		{On: Match{Verb: "watch", Resource: "pods", Event: "MODIFIED"}, Do: Duplicate(), Share: 0.1},
	}})
	got := p.RunTo(t, "r", "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "40", "--hold", "100ms")
	if got.Code != process.ExitHeld && got.Code != process.ExitInvalid { // counts do not depend on a machine that is busy
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	counts := proxy.Counts()
	if counts.Faults["503"] == 0 || counts.Faults["reset after"] == 0 || counts.Faults["duplicated event"] == 0 {
		t.Errorf("faults %v", counts.Faults)
	}
	made := 0
	for _, name := range counts.Created["pods"] {
		if !strings.HasSuffix(name, "/canary") {
			made++
		}
	}
	if o := p.Result(t, "r").Steps[0].Objects; o.Created != made || o.Ready != made {
		t.Errorf("created %d, Ready %d; the proxy has seen %d", o.Created, o.Ready, made)
	}
}
