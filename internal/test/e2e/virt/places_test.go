package virt_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
	"plimsoll.dev/plimsoll/internal/test/harness"
)

// A host of machines that somebody cordons is taken as well.
func TestHostsThatAreTaken(t *testing.T) {
	suite.Long(t, "boots machines")
	t.Parallel()
	p := suite.Program(t) // its nodes are changed: this lab is not shared
	if got := p.Run(t, "lab", "up", "l", "--virt", "--nodes", "3", "--time-scale", "20"); got.Code != 0 {
		t.Fatalf("lab up: %d %s", got.Code, got.Stderr)
	}
	typed, _ := e2e.LabClient(t, strings.TrimSpace(p.Run(t, "lab", "kubeconfig", "l").Stdout))
	run := p.Start(t, "sweep", "vm-boot-storm", "--lab", "l", "--levels", "6", "--hold", "4s", "--out", "r")
	harness.Await(t, "the hold", func() bool {
		return p.Count("r", func(e record.Event) bool {
			s, is := e.Body.(*record.StepEvent)
			return is && s.Phase == record.PhaseReached
		}) > 0
	})
	_, err := typed.CoreV1().Nodes().Patch(t.Context(), "node-0001", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := run.Wait()
	if r := p.Result(t, "r"); got.Code != process.ExitInconclusive || !strings.Contains(r.Why, "node-0001 was cordoned in step 1") {
		t.Errorf("exit code %d: %q\n%s%s", got.Code, r.Why, got.Stdout, got.Stderr)
	}
}
