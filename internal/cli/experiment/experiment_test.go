package experiment

import (
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
)

// Each part of a plan that a flag fills in is named by it.
func TestMessagesNameTheFlag(t *testing.T) {
	x := &experimentCommand{target: process.Clusters()}
	for path, want := range map[string]string{
		"target.lab.nodes": "--lab-nodes: ", "target.labName": "--lab: ", "target": "", "axis.life": "--life: ", "axis.search.confirm": "--confirm: ", "hold": "--hold: ", "budget": "--budget: ", "axis.levels[1]": "--levels: ",
		"guards.pending": "--guard pending: ", "axis": "", "repeat": "--repeat: ",
	} {
		if got := x.flagOf(path); got != want {
			t.Errorf("flagOf(%q) = %q, want %q", path, got, want)
		}
	}
}
