package records_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// A line is above the capacity by no more than is tolerated, a hundredth: a backlog
// that grows slowly shows.
func TestALineIsNotAboveTheCapacity(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for _, tt := range []struct {
			capacity               float64
			from, step, resolution string
		}{{5000, "4000", "400", "100"}, {100, "70", "10", "1"}} {
			dir, got := e2e.Measured(t, suite, "limit", "simulated", "--axis", "requests", "--set", fmt.Sprintf("capacity=%g", tt.capacity), "--from", tt.from, "--step", tt.step, "--resolution", tt.resolution, "--seed", "1")
			line, fails := e2e.LineIn(t, dir)
			if got.Code != process.ExitPass || line > 1.01*tt.capacity || line < 0.9*tt.capacity || fails < tt.capacity {
				t.Errorf("capacity %g: exit code %d, line %g, %g fails:\n%s%s", tt.capacity, got.Code, line, fails, got.Stdout, got.Stderr)
			}
		}
	})
}

// Searches of one plan whose limit holds by chance are not better or worse than
// each other.
func TestEqualSearchesAreEqual(t *testing.T) {
	suite.Long(t, "it compares many searches")
	e2e.OnVirtualClock(t, func(t *testing.T) {
		var dirs []string
		for seed := range 30 {
			time.Sleep(time.Hour)
			dir, _ := e2e.Measured(t, suite, "limit", "simulated", "--set", "limit=110", "--set", "noise=0.1", "--seed", fmt.Sprint(seed))
			dirs = append(dirs, dir)
		}
		for i, a := range dirs {
			for _, b := range dirs[i+1:] {
				if got := e2e.Command(t, nil, "compare", a, b); got.Code == process.ExitFail || strings.Contains(got.Stdout, "is better than") {
					t.Errorf("a pair of equal searches: exit code %d:\n%s", got.Code, got.Stdout[strings.LastIndex(got.Stdout, "simulated:"):])
				}
			}
		}
	})
}

// A comparison that goes on until it is decided ends at a look, is the same when it
// was cut in between, and says less when it was stopped.
func TestUntilDecided(t *testing.T) {
	args := []string{"ab", "simulated", "--level", "20", "--seed", "1", "--arm", "a:latency=constant:200ms", "--hold", "1s"}
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for _, tt := range []struct {
			why, verdict string
			blocks, code int
			args         []string
		}{
			{"far worse", "worse", 4, process.ExitFail, []string{"--arm", "b:latency=constant:250ms"}},
			{"the same", "equivalent", 4, process.ExitPass, []string{"--arm", "b:latency=constant:200ms"}},
			{"about the margin: it ends without hope, or is not worse at last", "", 0, 0, []string{"--arm", "b:latency=uniform:195ms,225ms", "--margin", "5%", "--repeat", "4..13"}},
			{"a number of blocks is made, whatever they show", "worse", 6, process.ExitFail, []string{"--arm", "b:latency=constant:250ms", "--repeat", "6"}},
		} {
			dir, got := e2e.Measured(t, suite, append(args, tt.args...)...)
			r := e2e.ResultIn(t, dir)
			if tt.blocks == 0 {
				if s := r.Comparison.Levels[0].Sequential; s == nil || !s.Done || s.Most != 13 {
					t.Errorf("%s: %+v", tt.why, s)
				}
				continue
			}
			if got.Code != tt.code || string(r.Verdict) != tt.verdict || len(r.Steps) != 2*tt.blocks {
				t.Errorf("%s: exit code %d, verdict %s after %d runs:\n%s", tt.why, got.Code, r.Verdict, len(r.Steps), got.Stdout)
			}
		}

		if suite.Size(0, 1) == 0 {
			return
		}
		// Cut again and again, it makes the same runs and comes to the same.
		whole, _ := e2e.Measured(t, suite, append(args, "--arm", "b:latency=constant:250ms")...)
		dir := filepath.Join(t.TempDir(), "cut")
		got, parts := e2e.Command(t, nil, append(args, "--arm", "b:latency=constant:250ms", "--budget", "3s", "--out", dir)...), 1
		for ; parts < 20 && strings.Contains(got.Stderr, "run --resume"); parts++ {
			got = e2e.Command(t, nil, "run", "--resume", dir)
		}
		a, b := e2e.ResultIn(t, whole), e2e.ResultIn(t, dir)
		var made, again []string
		for _, s := range a.Steps {
			made = append(made, fmt.Sprint(s.Arm, s.Replicate))
		}
		for _, s := range b.Steps {
			if !strings.Contains(s.VerdictWhy, "cut off") {
				again = append(again, fmt.Sprint(s.Arm, s.Replicate))
			}
		}
		if parts < 3 || strings.Join(made, " ") != strings.Join(again, " ") || a.Verdict != b.Verdict || b.Comparison.Levels[0].Sequential.Blocks != 4 {
			t.Errorf("in %d parts: %s, %v, want %s, %v", parts, b.Verdict, again, a.Verdict, made)
		}
		if got.Code != process.ExitFail || !strings.Contains(got.Stdout, "after 4 of at most 30 blocks") || !strings.Contains(got.Stdout, "valid at every look") {
			t.Errorf("exit code %d:\n%s", got.Code, got.Stdout)
		}
	})
}

// Two metrics that are declared decide at half of the error rate each: with blocks
// until both are decided, or with a fixed number, cut and resumed, judged again, and
// compared as recorded arms.
func TestTwoMetricsDecide(t *testing.T) {
	args := []string{
		"ab", "simulated", "--level", "20", "--seed", "1", "--hold", "1s", "--arm", "on:cpuPerObject=1ms", "--arm", "off:cpuPerObject=2ms",
		"--metric", "simulated CPU", "--metric", "Ready p50", "--set", "latency=constant:200ms", "--margin", "20%",
	}
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for _, more := range [][]string{{"--repeat", "6"}, {"--until", "notWorse", "--repeat", "4..9"}, nil, {"--budget", "3s"}}[:suite.Size(2, 4)] {
			dir, got := e2e.Measured(t, suite, append(args, more...)...)
			for strings.Contains(got.Stderr, "run --resume") {
				got = e2e.Command(t, nil, "run", "--resume", dir)
			}
			r := e2e.ResultIn(t, dir)
			l := r.Comparison.Levels[0]
			if got.Code != process.ExitFail || r.Verdict != "worse" || r.Comparison.Alpha != 0.025 || len(l.Metrics) != 2 || l.Metrics[0].Verdict != "worse" || l.Metrics[1].Verdict != "equivalent" {
				t.Errorf("%q: exit code %d, %s: %+v", more, got.Code, r.Why, l.Metrics)
			}
			for _, part := range []string{"simulated CPU changed by +100.0%", "(worse)", "Ready p50 changed by ", "(equivalent)", "97.5% interval", "2 metrics decide, each at an error rate of 0.025"} {
				if !strings.Contains(got.Stdout, part) {
					t.Errorf("%q: without %q:\n%s", more, part, got.Stdout)
				}
			}
			if again := e2e.Command(t, nil, "analyze", dir); again.Code != got.Code || e2e.ResultIn(t, dir).Why != r.Why {
				t.Errorf("%q: judged again, exit code %d: %s", more, again.Code, e2e.ResultIn(t, dir).Why)
			}
			both := e2e.Command(t, nil, "compare", dir+":on", dir+":off")
			if both.Code != process.ExitFail || !strings.Contains(both.Stdout, "(equivalent)") || strings.Contains(both.Stdout, "chosen after") {
				t.Errorf("%q: compared as recorded arms, exit code %d:\n%s", more, both.Code, both.Stdout)
			}
			one := e2e.Command(t, nil, "compare", dir+":on", dir+":off", "--metric", "Ready p50")
			if one.Code != process.ExitPass || !strings.Contains(one.Stdout, "97.5% interval") || strings.Contains(one.Stdout, "chosen after") {
				t.Errorf("%q: by one of them, exit code %d:\n%s", more, one.Code, one.Stdout)
			}
		}
	})
}

// Of a number of blocks that was fixed before, fewer decide nothing.
func TestACutComparisonDecidesNothing(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir, got := e2e.Measured(t, suite, "ab", "simulated", "--level", "20", "--seed", "1", "--arm", "a:latency=constant:100ms", "--arm", "b:latency=constant:250ms", "--repeat", "5", "--hold", "1s", "--budget", "5s")
		if r := e2e.ResultIn(t, dir); got.Code != process.ExitInconclusive || len(r.Steps) < 4 || len(r.Steps) > 9 || r.Verdict != "inconclusive" {
			t.Errorf("exit code %d, %s after %d runs:\n%s", got.Code, r.Verdict, len(r.Steps), got.Stdout)
		}
	})
}

// Ten levels of equal arms, with no margin to speak of: what is found by chance is
// allowed for.
func TestManyLevelsAreAllowedFor(t *testing.T) {
	suite.Long(t, "it makes many comparisons")
	e2e.OnVirtualClock(t, func(t *testing.T) {
		wrong := 0
		for seed := range 4 {
			_, got := e2e.Measured(t, suite, "ab", "simulated", "--levels", "1,2,3,4,5,6,7,8,9,10", "--seed", fmt.Sprint(seed), "--arm", "a:", "--arm", "b:", "--margin", "0.01%", "--repeat", "4", "--hold", "100ms")
			if got.Code == process.ExitFail {
				wrong++
			}
		}
		if wrong > 1 {
			t.Errorf("%d of 4 comparisons of equal arms at ten levels are worse", wrong)
		}
	})
}

// A sentence names the lowest level that failed, and counts levels once.
func TestASweepSaysWhatItMade(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		_, got := e2e.Measured(t, suite, "sweep", "simulated", "--levels", "60,40,50", "--set", "limit=45", "--repeat", "2")
		if !strings.Contains(got.Stdout, "did not hold at 50") {
			t.Errorf("60 failed first, and 50 is the lowest that did:\n%s", got.Stdout)
		}
		_, got = e2e.Measured(t, suite, "sweep", "simulated", "--levels", "10,20,30", "--repeat", "6")
		if !strings.Contains(got.Stdout, "18 of 18 steps were made, at 3 levels") {
			t.Errorf("three levels, six times:\n%s", got.Stdout)
		}
	})
}
