package experiment

import (
	"context"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/cli/screen"
	"plimsoll.dev/plimsoll/internal/system"
)

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
		r := &runner{p: &process.Process{Stdin: strings.NewReader(tt.answer), StdinTerminal: tt.terminal, Console: screen.Console{Stderr: &log}}, consent: consent{Yes: true, Reboots: tt.given}}
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
