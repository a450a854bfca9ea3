package experiment

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Each part of a plan that a flag fills in is named by it.
func TestMessagesNameTheFlag(t *testing.T) {
	x := &experimentCommand{target: process.Clusters(), plan: new(plan.Plan)}
	for path, want := range map[string]string{
		"target.lab.nodes": "--lab-nodes: ", "target.labName": "--lab: ", "target": "", "axis.life": "--life: ", "axis.search.confirm": "--confirm: ", "hold": "--hold: ", "budget": "--budget: ", "axis.levels[1]": "--levels: ",
		"guards.pending": "--guard pending: ", "axis": "", "repeat": "--repeat: ", "goals.slo[0]": "--slo: ", "goals.slow[0]": "--goal slow: ", "params.image": "--set image: ",
	} {
		if got := x.planError(strictyaml.Join([]strictyaml.Problem{{Path: path, Message: "wrong"}})); got.Error() != want+"wrong" {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
