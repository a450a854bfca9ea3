package virt_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// A configuration is rolled out to pools and taken away again: at the end of a
// run, and by the next command after a kill, which waits for the second roll-out.
func TestZones(t *testing.T) {
	suite.Long(t, "rolls configurations out to the nodes of a lab")
	t.Parallel()
	p := suite.Program(t)
	p.Run(t, "lab", "up", "zones", "--virt", "--nodes", "6", "--time-scale", "120")
	l := p.Run(t, "lab", "kubeconfig", "zones")
	t.Cleanup(func() { p.Run(t, "lab", "down", "zones") })
	_, client := e2e.LabClient(t, strings.TrimSpace(l.Stdout))
	list := func(resource string) (names []string) {
		found, err := client.Resource(schema.GroupVersionResource{Group: "machineconfiguration.openshift.io", Version: "v1", Resource: resource}).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range found.Items {
			names = append(names, o.GetName())
		}
		return names
	}
	sweep := func(args ...string) []string {
		return append([]string{"sweep", "vm-zones", "--lab", "zones", "--hold", "1s", "--set", "rhel=1", "--set", "fedora=1", "--set", "windows=1"}, args...)
	}
	got := p.RunTo(t, "whole", sweep("--levels", "1")...)
	r := p.Result(t, "whole")
	if got.Code != process.ExitPass || len(r.Steps) != 1 || r.Steps[0].Objects.Ready != 3 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	// A reboot takes 8 minutes, and nothing is updated before that.
	for _, m := range []string{"Draining", "Migrated", "Rebooting", "NodeReady", "Updated"} {
		if l := r.Steps[0].Latency[m]; l.N != 3 || l.Censored > 0 {
			t.Errorf("%s: %+v", m, l)
		}
	}
	// How late the begin of a reboot is seen is the machine's matter.
	if took := *r.Steps[0].Latency["NodeReady"].P50; took*120 < 480 {
		t.Errorf("nodes were ready %v s after the roll-out was asked for", took*120)
	}
	if !strings.Contains(got.Stderr, "pool zone-0: the second roll-out, which took the configuration away, took") || len(list("machineconfigs")) != 0 {
		t.Errorf("configurations left: %v\n%s", list("machineconfigs"), got.Stderr)
	}
	over := p.Run(t, sweep("--levels", "4", "--out", "over")...)
	if over.Code == process.ExitPass || !strings.Contains(over.Stderr, "4 MachineConfigPools to roll out: of those with the label topology.kubernetes.io/zone, 3 could be") {
		t.Errorf("more pools than there are: exit code %d\n%s", over.Code, over.Stderr)
	}

	s := p.Start(t, sweep("--levels", "2", "--out", "killed")...)
	harness.Await(t, "configurations", func() bool { return len(list("machineconfigs")) == 2 })
	s.Kill()
	clean := p.Run(t, "clean", "--lab", "zones")
	if clean.Code != process.ExitPass || !strings.Contains(clean.Stdout, "the configuration of pool zone-1 (its removal reboots the nodes)") || !strings.Contains(clean.Stderr, "are rebooted, since their configuration is taken away") {
		t.Errorf("clean: exit code %d\n%s%s", clean.Code, clean.Stdout, clean.Stderr)
	}
	if left := list("machineconfigs"); len(left) != 0 {
		t.Errorf("left after clean: %v", left)
	}
}

// An upgrade begins once the machines run. The result has the time of each operator, and
// of the migrations that its reboots made.
func TestUpgrade(t *testing.T) {
	suite.Long(t, "upgrades a lab")
	t.Parallel()
	p := suite.Program(t)
	got := p.RunTo(t, "upgrade", "sweep", "vm-upgrade", "--lab-nodes", "6", "--lab-time-scale", "120", "--levels", "4", "--hold", "1s", "--set", "to=4.20.0")
	r := p.Result(t, "upgrade")
	if got.Code != process.ExitPass || len(r.Steps) != 1 || r.Steps[0].Latency["Upgraded"].Censored > 0 {
		t.Fatalf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	// 35 minutes for the operators, and then the nodes reboot.
	if took := *r.Steps[0].Latency["Upgraded"].P50 * 120; took < (35+8)*60 {
		t.Errorf("it took %v s", took)
	}
	n := make(map[string]uint64)
	for _, d := range r.Steps[0].Durations {
		n[d.Source+" "+d.Name] = d.N
	}
	if n["etcd upgrade"] != 1 || n["machine-config upgrade"] != 1 || n["machines migration"] == 0 {
		t.Errorf("told of %v", n)
	}
	if !strings.Contains(got.Stderr, "ClusterVersion version: Working towards 4.20.0: ") {
		t.Errorf("no progress is shown:\n%s", got.Stderr)
	}
	// The cluster was upgraded before: what was there would undo this upgrade.
	if want := `spec.desiredUpdate {"image":"simulated/4.19.0","version":"4.19.0"} -> {"version":"4.20.0"}`; !strings.Contains(got.Stderr+got.Stdout, want) {
		t.Errorf("%q is not told:\n%s%s", want, got.Stdout, got.Stderr)
	}
}
