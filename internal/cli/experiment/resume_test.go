package experiment

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/record"
)

// A run that was killed while it removed what it had made is finished, and names
// what removes the rest.
func TestLeftToDo(t *testing.T) {
	const command = "plimsoll clean --lab l"
	for _, tt := range []struct {
		why     string
		cleanup *record.Cleanup
		command string
		names   bool
	}{
		{"all was removed", &record.Cleanup{Done: true}, command, false},
		{"it was killed while it removed", &record.Cleanup{Left: 6}, command, true},
		{"it was killed before it told of the removal", nil, command, true},
		{"a target in which nothing can be left", nil, "", false},
	} {
		if got := leftToDo(tt.cleanup, tt.command); strings.HasSuffix(got, command) != tt.names || strings.Contains(got, "nothing is left") == tt.names {
			t.Errorf("%s: %q", tt.why, got)
		}
	}
}

// What loads on this machine leave is removed by 'plimsoll clean', too.
func TestWhatRemovesTheRest(t *testing.T) {
	for name, want := range map[string]string{"gluster-volumes": "plimsoll clean", "io-volumes": "plimsoll clean", "router": "plimsoll clean", "simulated": ""} {
		w, err := process.LoadWorkload(name)
		if err != nil {
			t.Fatal(err)
		}
		r := &runner{workload: w, plan: &plan.Plan{}}
		if got := r.cleanCommand(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
