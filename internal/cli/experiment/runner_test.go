package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/screen"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// pods returns a workload along pods per node.
func pods() *workload.Workload {
	return &workload.Workload{Name: "node-density", Axes: []workload.Axis{{Name: "pods-per-node", Unit: "pods/node"}}}
}

// The question has the highest level, the load in all and its pace.
func TestConsentSaysHowMuch(t *testing.T) {
	level := 40.0
	for _, tt := range []struct {
		why  string
		axis plan.Axis
		load string
		want string
	}{
		{"a search", plan.Axis{Name: "pods-per-node", Search: &plan.Search{Max: 110}}, "at most 330 pods on 3 nodes", "Load it with node-density (up to 110 pods/node: at most 330 pods on 3 nodes)? [y/N] "},
		{"a sweep", plan.Axis{Name: "pods-per-node", Levels: []float64{5, 20, 10}}, "", "Load it with node-density (up to 20 pods/node)? [y/N] "},
		{"one level", plan.Axis{Name: "pods-per-node", Level: &level}, "20 requests a second", "Load it with node-density (40 pods/node: 20 requests a second)? [y/N] "},
	} {
		var log strings.Builder
		r := &runner{p: &process.Process{Stdin: strings.NewReader("y\n"), StdinTerminal: true, Console: screen.Console{Stderr: &log}}, plan: &plan.Plan{Axis: tt.axis}, workload: pods()}
		if err := r.agree(t.Context(), &system.Consent{System: "a cluster", Load: tt.load}); err != nil || !strings.HasSuffix(log.String(), tt.want) {
			t.Errorf("%s: %v, asked %q, want %q", tt.why, err, log.String(), tt.want)
		}
	}
}

// Commands of a configuration are shown, and run if the user says so: --yes does not.
func TestAgreementToHooks(t *testing.T) {
	for _, tt := range []struct {
		why      string
		commands []string
		given    bool
		terminal bool
		answer   string
		code     int
	}{
		{"there are none", nil, false, false, "", 0},
		{"they were allowed", []string{"rm -r x"}, true, false, "", 0},
		{"nobody can be asked", []string{"rm -r x"}, false, false, "", process.ExitUsage},
		{"yes", []string{"rm -r x"}, false, true, "y\n", 0},
		{"no", []string{"rm -r x"}, false, true, "\n", process.ExitUsage},
	} {
		var log strings.Builder
		r := &runner{p: &process.Process{Stdin: strings.NewReader(tt.answer), StdinTerminal: tt.terminal, Secrets: new(redact.Secrets), Console: screen.Console{Stderr: &log}}, consent: consent{Yes: true, Hooks: tt.given}, plan: new(plan.Plan), workload: pods()}
		err := r.agree(t.Context(), &system.Consent{Hooks: tt.commands})
		if (err != nil) != (tt.code != 0) || strings.Contains(log.String(), "rm -r x") != (tt.commands != nil) || r.Hooks != (tt.code == 0 && tt.commands != nil) {
			t.Errorf("%s: %v\n%s", tt.why, err, log.String())
		}
	}
}

// That nodes are rebooted is agreed to by their number, which --yes does not say.
func TestAgreementToReboots(t *testing.T) {
	for _, tt := range []struct {
		why      string
		given    int
		terminal bool
		answer   string
		code     int
	}{
		{"nothing is rebooted", 0, false, "", 0},
		{"the number was given", 6, false, "", 0},
		{"another number was given", 5, true, "6\n", process.ExitUsage},
		{"nobody can be asked", 0, false, "", process.ExitUsage},
		{"it is typed", 0, true, "6\n", 0},
		{"yes is no number", 0, true, "yes\n", process.ExitUsage},
	} {
		var log strings.Builder
		n := 6
		if tt.why == "nothing is rebooted" {
			n = 0
		}
		r := &runner{p: &process.Process{Stdin: strings.NewReader(tt.answer), StdinTerminal: tt.terminal, Console: screen.Console{Stderr: &log}}, consent: consent{Yes: true, Reboots: tt.given}, plan: new(plan.Plan), workload: pods()}
		err := r.agree(context.Background(), &system.Consent{System: "a cluster", Reboots: n})
		if (err != nil) != (tt.code != 0) {
			t.Errorf("%s: %v", tt.why, err)
		}
		if once := r.agreeToReboots(context.Background(), 7, true); tt.given != 7 && (once == nil || strings.Contains(once.Error(), "twice")) && tt.code != 0 && !tt.terminal {
			t.Errorf("%s: an upgrade reboots once: %v", tt.why, once)
		}
		if tt.answer != "" && tt.given == 0 && !slices.Contains(strings.Split(log.String(), " "), "rebooted,") {
			t.Errorf("%s: asked %q", tt.why, log.String())
		}
	}
}
