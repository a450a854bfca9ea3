package records_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/cli/process"
	clirecords "plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// Two runs that were made apart, of which the second starts its pods so much
// later that three steps tell, whatever else the machine does.
func TestRecordedRunsAreCompared(t *testing.T) {
	suite.Long(t, "seven levels are made from empty; runs of simulated ones are always compared")
	t.Parallel()
	p := suite.Lab(t, e2e.SmallLab()...)
	sweep := func(out, latency string, target ...string) {
		t.Helper()
		args := append([]string{"sweep", "node-density", "--levels", "6,6,6", "--hold", "200ms", "--set", "startLatency=constant:" + latency}, target...)
		if got := p.RunTo(t, out, args...); got.Code != process.ExitPass {
			t.Fatalf("%s: exit code %d\n%s", out, got.Code, got.Stderr)
		}
	}
	sweep("fast", "300ms", "--lab", p.Lab)
	sweep("slow", "4s", "--lab", p.Lab)
	// What else the machine does meanwhile is not looked at.
	got := p.Run(t, "compare", "fast", "slow", "--arm-is", "others,health", "--out", "c")
	const verdict = "slow is worse than fast"
	if got.Code != process.ExitFail || !strings.Contains(got.Stdout, verdict) || !strings.Contains(got.Stdout, "param:startLatency") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	var out recorded.Outcome
	if err := record.Dir(filepath.Join(p.Dir, "c")).ReadJSON(clirecords.ComparisonFile, &out); err != nil {
		t.Fatal(err)
	}
	// No pod is ready before it was planted to be.
	l := out.Comparison.Levels[0]
	for arm, least := range map[*[]*float64]float64{&l.Primary.Baseline: 0.3, &l.Primary.Arm: 4} {
		for _, v := range *arm {
			if *v < least {
				t.Errorf("a run took %g s, planted was %g s", *v, least)
			}
		}
	}
	if l.Runs != [2]int{3, 3} || *l.Primary.Change <= 0 {
		t.Errorf("runs %v, change %g", l.Runs, *l.Primary.Change)
	}
	if page, err := os.ReadFile(filepath.Join(p.Dir, "c", record.ReportFile)); err != nil || !strings.Contains(string(page), verdict) {
		t.Errorf("the page: %v", err)
	}

	sweep("small", "300ms", "--lab-nodes", "3", "--lab-max-pods", "50")
	got = p.Run(t, "compare", "fast", "small", "-o", "json", "--arm-is", "others,health")
	var refused recorded.Outcome
	if err := json.Unmarshal([]byte(got.Stdout), &refused); err != nil || got.Code != process.ExitInconclusive {
		t.Fatalf("exit code %d, %v\n%s", got.Code, err, got.Stderr)
	}
	if !strings.Contains(refused.Comparison.Refused, "node-shape") || len(refused.Comparison.Levels[0].Primary.Baseline) < 3 {
		t.Errorf("nodes of another size: %+v", refused.Comparison)
	}
}
