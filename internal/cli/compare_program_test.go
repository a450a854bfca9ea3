package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
	"plimsoll.dev/plimsoll/internal/versus"
)

// Two runs that were made apart, of which the second starts its pods later.
func TestRecordedRunsAreCompared(t *testing.T) {
	p := newProgram(t)
	for name, args := range map[string][]string{
		"fast": {"--set", "startLatency=constant:300ms"}, "slow": {"--set", "startLatency=constant:900ms"},
		"small": {"--set", "startLatency=constant:300ms", "--lab-max-pods", "50"},
	} {
		args = append([]string{"sweep", "node-density", "--lab-nodes", "3", "--levels", "6,6,6,6", "--hold", "200ms", "--out", name}, args...)
		// Steps of a busy machine may be invalid: they do not count.
		if got := p.run(t, args...); got.code != exitHeld && got.code != exitInvalid {
			t.Fatalf("%s: exit code %d\n%s", name, got.code, got.stderr)
		}
	}
	for _, name := range []string{"fast", "slow", "small"} {
		valid := 0
		for _, s := range p.result(t, name).Steps {
			if s.Verdict == slo.Pass {
				valid++
			}
		}
		if valid < 3 {
			t.Skipf("the machine is too busy: %d of 4 steps of %s are valid", valid, name)
		}
	}
	// What else the machine does meanwhile is not looked at.
	got := p.run(t, "compare", "fast", "slow", "--arm-is", "others,health", "--out", "c")
	// On a busy machine the few runs may not decide; what they say lies around
	// what was planted all the same.
	verdict := "slow is worse than fast"
	if got.code == exitInconclusive {
		verdict = "slow against fast is inconclusive"
	}
	if got.code != exitBreached && got.code != exitInconclusive || !strings.Contains(got.stdout, verdict) || !strings.Contains(got.stdout, "param:startLatency") {
		t.Errorf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	var out versus.Outcome
	if err := record.Dir(filepath.Join(p.dir, "c")).ReadJSON(comparisonFile, &out); err != nil {
		t.Fatal(err)
	}
	// What was planted is found: 600 ms more of whatever it was.
	l := out.Comparison.Levels[0]
	base := 0.0
	for _, v := range l.Primary.Baseline {
		base += *v / float64(len(l.Primary.Baseline))
	}
	if planted := 0.6 / base; min(l.Runs[0], l.Runs[1]) < 3 || 1.3*planted < *l.Primary.Lo || 0.7*planted > *l.Primary.Hi {
		t.Errorf("runs %v, interval %g to %g, planted %g", l.Runs, *l.Primary.Lo, *l.Primary.Hi, planted)
	}
	if page, err := os.ReadFile(filepath.Join(p.dir, "c", record.ReportFile)); err != nil || !strings.Contains(string(page), verdict) {
		t.Errorf("the page: %v", err)
	}

	got = p.run(t, "compare", "fast", "small", "-o", "json", "--arm-is", "others,health")
	var refused versus.Outcome
	if err := json.Unmarshal([]byte(got.stdout), &refused); err != nil || got.code != exitInconclusive {
		t.Fatalf("exit code %d, %v\n%s", got.code, err, got.stderr)
	}
	if !strings.Contains(refused.Comparison.Refused, "node-shape") || len(refused.Comparison.Levels[0].Primary.Baseline) < 3 {
		t.Errorf("nodes of another size: %+v", refused.Comparison)
	}
}
