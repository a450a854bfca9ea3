package kubernetes_test

import (
	"encoding/json"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/faults"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// Set-up outlasts what the load does: answers and failures that pass, one request in
// five.
func TestSetUpOutlastsWhatPasses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		why string
		do  faults.Fault
	}{
		{"the server's own trouble", faults.Status(500)},
		{"not ready", faults.Status(503)},
		{"a connection that is reset", faults.ResetBefore()},
		{"an answer that is lost", faults.ResetAfter()},
	} {
		t.Run(tt.why, func(t *testing.T) {
			t.Parallel()
			p := suite.Lab(t, e2e.WideLab()...)
			proxy := faults.Start(t, p.Kubeconfig, faults.Plan{Seed: 7, Rules: []faults.Rule{{On: faults.All(), Do: tt.do, Share: 0.2}}})
			got := p.Run(t, "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "2", "--hold", "100ms", "--out", "r")
			if _, err := os.Stat(p.Dir + "/r/result.json"); err != nil || got.Code == process.ExitCouldNotRun {
				t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
			}
			if r := p.Result(t, "r"); len(r.Steps) != 1 || r.Cleanup == nil || !r.Cleanup.Done {
				t.Errorf("%d steps, cleanup %+v", len(r.Steps), r.Cleanup)
			}
		})
	}
}

// SIGTERM ends every command within two seconds, also where the API server answers
// nothing, and what removes the rest is named.
func TestSIGTERMEndsWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	const bound, busy = 2 * time.Second, 2 * time.Second // what a machine takes that others keep busy
	ends := func(t *testing.T, w *harness.Started) harness.Outcome {
		t.Helper()
		w.Signal(syscall.SIGTERM)
		begin := time.Now()
		got := w.Wait()
		if took := time.Since(begin); took > bound+busy {
			t.Errorf("it took %v", took)
		} else {
			t.Logf("it took %v", took)
		}
		if got.Code != 143 {
			t.Errorf("exit code %d, want 143\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
		return got
	}
	names := func(t *testing.T, got harness.Outcome, command string) {
		t.Helper()
		if lines := strings.Split(strings.TrimSpace(got.Stderr), "\n"); !strings.Contains(strings.Join(lines[max(0, len(lines)-2):], "\n"), command) {
			t.Errorf("%q is not in its last lines:\n%s", command, got.Stderr)
		}
	}
	t.Run("a removal, which says what it waits for", func(t *testing.T) {
		t.Parallel()
		p := suite.Lab(t, e2e.WideLab()...)
		proxy := faults.Start(t, p.Kubeconfig, faults.Plan{})
		proxy.Cut()
		w := p.Start(t, "clean", "--kubeconfig", proxy.Kubeconfig)
		time.Sleep(5 * time.Second)
		got := ends(t, w)
		if !strings.Contains(got.Stderr, "looking for what runs have left ...") {
			t.Errorf("it does not say what it waits for:\n%s", got.Stderr)
		}
		names(t, got, "what is left is unknown; this looks again and goes on: plimsoll clean --kubeconfig "+proxy.Kubeconfig)
	})
	t.Run("a set-up", func(t *testing.T) {
		t.Parallel()
		p := suite.Lab(t, e2e.WideLab()...)
		proxy := faults.Start(t, p.Kubeconfig, faults.Plan{Rules: []faults.Rule{{On: faults.Creates("pods"), Do: faults.BlackHole()}}})
		w := p.Start(t, "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "2", "--out", "r")
		harness.Await(t, "the canary to be asked for", func() bool { return proxy.Counts().Faults["black hole"] > 0 })
		proxy.Cut()
		names(t, ends(t, w), "plimsoll clean --kubeconfig "+proxy.Kubeconfig)
		proxy.Restore()
		p.Run(t, "clean", "--kubeconfig", proxy.Kubeconfig)
	})
	t.Run("a load that is answered", func(t *testing.T) {
		t.Parallel()
		p := suite.Lab(t, e2e.WideLab()...)
		w := p.Start(t, "sweep", "node-density", "--kubeconfig", p.Kubeconfig, "--levels", "40", "--pace", "50", "--out", "answered")
		harness.Await(t, "the load to be under way", func() bool { return p.Requested("answered", 20) })
		names(t, ends(t, w), "plimsoll clean --kubeconfig "+p.Kubeconfig)
		if r := p.Result(t, "answered"); r.ExitCode != 143 || r.Cleanup == nil || r.Cleanup.Done {
			t.Errorf("result.json: exit code %d, cleanup %+v", r.ExitCode, r.Cleanup)
		}
		if got := p.Run(t, "clean", "--kubeconfig", p.Kubeconfig); got.Code != 0 {
			t.Errorf("the command that was named: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
	})
	t.Run("a load", func(t *testing.T) {
		t.Parallel()
		p := suite.Lab(t, e2e.WideLab()...)
		proxy := faults.Start(t, p.Kubeconfig, faults.Plan{})
		w := p.Start(t, "sweep", "node-density", "--kubeconfig", proxy.Kubeconfig, "--levels", "100", "--pace", "50", "--out", "r")
		harness.Await(t, "the load to be under way", func() bool { return p.Requested("r", 20) })
		proxy.Cut()
		names(t, ends(t, w), "plimsoll clean --kubeconfig "+proxy.Kubeconfig)
		r := p.Result(t, "r")
		if r.ExitCode != 143 || r.Cleanup == nil || r.Cleanup.Done || r.Cleanup.Left < 10 {
			t.Errorf("result.json: exit code %d, cleanup %+v", r.ExitCode, r.Cleanup)
		}
		proxy.Restore()
		if got := p.Run(t, "clean", "--kubeconfig", proxy.Kubeconfig, "-o", "json"); got.Code != 0 || !json.Valid([]byte(got.Stdout)) || strings.Contains(got.Stdout, `"removed": []`) {
			t.Errorf("the command that was named: exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
	})
}

// A removal whose server never answers ends by itself.
func TestARemovalThatIsNeverAnsweredEnds(t *testing.T) {
	suite.Long(t, "it waits for a minute")
	t.Parallel()
	p := suite.Lab(t, e2e.WideLab()...)
	proxy := faults.Start(t, p.Kubeconfig, faults.Plan{})
	proxy.Cut()
	begin := time.Now()
	got := p.Run(t, "clean", "--kubeconfig", proxy.Kubeconfig)
	if took := time.Since(begin); got.Code != process.ExitCouldNotRun || took > 70*time.Second || !strings.Contains(got.Stderr, "no answer for 1m0s") || !strings.Contains(got.Stderr, "what is left is unknown") {
		t.Errorf("exit code %d after %v\n%s%s", got.Code, took, got.Stdout, got.Stderr)
	}
}
