package e2e

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/router/haproxy"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

var suite = harness.New(os.Getenv)

func TestMain(m *testing.M) { os.Exit(suite.Run(m, os.Stderr)) }

// lackOf returns the error of a search for programs.
func lackOf[T any](_ T, err error) error { return err }

// lackOfQEMU returns an error where nothing can run a guest.
func lackOfQEMU(ctx context.Context) error {
	needs := lab.Needs()
	i := slices.IndexFunc(needs, func(n proc.Program) bool { return n.For == "real guests" })
	return lackOf(needs[i].Find(ctx, ""))
}

// lackOfRoot returns an error where the test is not root.
func lackOfRoot() error {
	if os.Geteuid() != 0 {
		return errors.New("only root can make network namespaces")
	}
	return nil
}

// Each real part starts, takes a small load, gives a result of the right shape, and
// leaves nothing.
func TestSmoke(t *testing.T) {
	ctx := context.Background()
	for _, tt := range []struct {
		part string
		lack error // what this machine lacks of it
		args []string
		// objects and requests are how many the step must account for at least.
		objects, requests int
		real              func(f record.Fidelity) bool // what must be real
	}{
		{part: "lab", args: []string{"node-density", "--lab-nodes", "1", "--levels", "5", "--slo", "all Ready"}, objects: 5,
			real: func(f record.Fidelity) bool { return f.ControlPlane == record.Real }},
		{part: "real node", lack: lackOf(realnode.Check()), objects: 4,
			args: []string{"node-density", "--lab-real-node", "--lab-max-pods", "20", "--levels", "4", "--slo", "all Ready"},
			real: func(f record.Fidelity) bool { return f.Containers == record.Real }},
		{part: "guest", lack: lackOfQEMU(ctx), objects: 1,
			args: []string{"vm-boot-storm", "--lab-nodes", "1", "--lab-real-guests", "1", "--levels", "1"},
			real: func(f record.Fidelity) bool { return strings.Contains(strings.Join(f.Notes, " "), "have a real guest") }},
		{part: "HAProxy", lack: lackOf(haproxy.Find(ctx, "")), requests: 10,
			args: []string{"router", "--axis", "connections", "--levels", "2", "--slo", "errors <= 0%"}},
		{part: "GlusterFS", lack: gluster.Check(false), objects: 2,
			args: []string{"gluster-volumes", "--levels", "2"}},
		{part: "fio", lack: lackOf(fio.Find(ctx, "")), requests: 10,
			args: []string{"io-volumes", "--axis", "depth", "--levels", "1", "--set", "path=mount", "--set", "size=1MiB", "--set", "drive=false", "--slo", "errors <= 0%"}},
		{part: "network path", lack: lackOfRoot(), requests: 10,
			args: []string{"network-path", "--axis", "streams", "--levels", "1", "--set", "path=vxlan", "--slo", "errors <= 0%"}},
	} {
		t.Run(tt.part, func(t *testing.T) {
			t.Parallel()
			suite.Smoke(t)
			harness.Able(t, tt.lack)
			p := suite.Program(t)
			if err := os.Mkdir(p.Dir+"/mount", 0o700); err != nil {
				t.Fatal(err)
			}
			got := p.RunTo(t, "r", append(append([]string{"sweep"}, tt.args...), "--hold", "1s")...)
			// On a busy machine a run may be invalid, or not know enough to pass.
			if !slices.Contains([]int{process.ExitPass, process.ExitInvalid, process.ExitInconclusive}, got.Code) {
				t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
			}
			r := p.Result(t, "r")
			if len(r.Steps) != 1 || r.ExitCode != got.Code || r.Cleanup == nil || !r.Cleanup.Done {
				t.Fatalf("%d steps, exit code %d in result.json and %d, clean-up %+v", len(r.Steps), r.ExitCode, got.Code, r.Cleanup)
			}
			step := r.Steps[0]
			if o := step.Objects; tt.objects > 0 && (o.Intended < tt.objects ||
				o.Intended != o.Created+o.CreateFailed+o.Dropped || o.Created != o.Ready+o.NeverReady+o.Lost || o.Ready == 0) {
				t.Errorf("objects %+v", o)
			}
			if q := step.Requests; tt.requests > 0 && (q == nil || q.Done < tt.requests || q.Sent < q.Done) {
				t.Errorf("requests %+v", q)
			}
			if tt.real != nil && !tt.real(r.Fidelity) {
				t.Errorf("it was not real: %+v", r.Fidelity)
			}
			p.LeavesNothing(t)
		})
	}
}
