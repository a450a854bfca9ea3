package records_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/cli/process"
	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// A pause is found in both loops: what a closed loop keeps from being sent is
// counted as a schedule would have sent it.
func TestAPauseIsFoundInBothLoops(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for _, tt := range []struct {
			why, pause string
			code       int
			says       string
		}{
			{"two whole windows", "600ms", process.ExitFail, "nothing was answered for 0.60"},
			{"less than two windows", "300ms", process.ExitFail, "nothing was answered for 0.30"},
			{"none", "0s", process.ExitPass, ""},
		} {
			goal := []string{"--hold", "2s", "--set", "pause=" + tt.pause, "--slo", "Responded p99 <= 100ms"}
			closed, got := e2e.Measured(t, suite, append([]string{"sweep", "simulated", "--axis", "clients", "--levels", "10"}, goal...)...)
			if got.Code != tt.code || strings.Contains(got.Stdout+got.Stderr, "a stall") != (tt.says != "") || !strings.Contains(got.Stdout+got.Stderr, tt.says) {
				t.Errorf("%s: %+v", tt.why, got)
			}
			open, got := e2e.Measured(t, suite, append([]string{"sweep", "simulated", "--axis", "requests", "--levels", "1900"}, goal...)...)
			if got.Code != tt.code {
				t.Errorf("%s, by a schedule: %+v", tt.why, got)
			}
			if tt.says == "" {
				continue
			}
			with, scheduled := *e2e.ResultIn(t, closed).Steps[0].Requests.Corrected["Responded"].P99, *e2e.ResultIn(t, open).Steps[0].Latency["Responded"].P99
			if with < 0.9*scheduled || with > 1.1*scheduled {
				t.Errorf("%s: p99 is %.3f s corrected, and %.3f s by a schedule", tt.why, with, scheduled)
			}
		}
	})
}

// The simulated target is whole: what is planted in it is found by the commands
// that a user has, without a lab.
func TestPlantedLimitsAreFound(t *testing.T) {
	tests := []struct {
		why  string
		args []string
		code int
		// line is the level that is found, fails the lowest that does not hold; 0
		// is none.
		line, fails float64
	}{
		{"a limit between the ramp's levels", []string{"--set", "limit=37"}, 0, 37, 38},
		{"a limit that is one of the ramp's levels", []string{"--set", "limit=40"}, 0, 40, 41},
		{"a single place", []string{"--set", "limit=13", "--set", "places=1", "--from", "3", "--step", "5"}, 0, 13, 14},
		{"no limit below the highest level", []string{"--set", "limit=0", "--max", "50"}, 0, 50, 0},
		{"requests that are answered 429", []string{"--set", "limit=23", "--set", "throttleEvery=9"}, 0, 23, 24},
		{"not even the first level holds", []string{"--from", "10", "--set", "limit=5"}, 1, 0, 10},
		{"clients that share a server", []string{"--axis", "clients", "--set", "capacity=1000", "--set", "latency=constant:2ms", "--slo", "Responded p99 <= 25500us", "--from", "20", "--step", "4"}, 0, 25, 26},
		{"a capacity of requests per second", []string{"--axis", "requests", "--set", "capacity=2300"}, 0, 2300, 2400},
		{"a capacity of objects per second", []string{"--axis", "rate", "--set", "capacity=130"}, 0, 130, 140},
	}
	for _, c := range tests {
		t.Run(c.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir, got := e2e.Measured(t, suite, append([]string{"limit", "simulated", "--seed", "1"}, c.args...)...)
				if line, fails := e2e.LineIn(t, dir); got.Code != c.code || line != c.line || fails != c.fails {
					t.Errorf("exit code %d, line %g, %g fails, want %d, %g, %g:\n%s%s", got.Code, line, fails, c.code, c.line, c.fails, got.Stdout, got.Stderr)
				}
			})
		})
	}
}

// Of a limit that holds by chance a level is found that held each time, below one
// that did not.
func TestAPlantedNoiseIsMet(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir, got := e2e.Measured(t, suite, "limit", "simulated", "--set", "limit=110", "--set", "noise=0.1", "--seed", "3")
		if line, fails := e2e.LineIn(t, dir); got.Code != 0 || line != 104 || fails != 105 {
			t.Errorf("exit code %d, line %g, %g fails:\n%s", got.Code, line, fails, got.Stdout)
		}
		if !strings.Contains(got.Stdout, "105 held 1 of 3 times, bound by: PlantedFailure") {
			t.Errorf("no fill failed by chance:\n%s", got.Stdout)
		}
	})
}

func TestPlantedChangesAreFound(t *testing.T) {
	tests := []struct {
		why, verdict string
		code         int
		args         []string
	}{
		{"twice the delay", "worse", 1, []string{"--arm", "a:latency=constant:100ms", "--arm", "b:latency=constant:250ms"}},
		{"the same delay", "equivalent", 0, []string{"--arm", "a:latency=constant:200ms", "--arm", "b:latency=constant:200ms", "--margin", "20%"}},
		{"twice the CPU time, by a metric that the target declares", "worse", 1, []string{"--arm", "a:cpuPerObject=1ms", "--arm", "b:cpuPerObject=2ms", "--metric", "simulated CPU"}},
		{"a tenth more of a stream's delay", "worse", 1, []string{"--axis", "requests", "--level", "500", "--arm", "a:latency=constant:20ms", "--arm", "b:latency=constant:22ms"}},
		{"the same memory", "equivalent", 0, []string{"--arm", "a:", "--arm", "b:latency=constant:3ms", "--metric", "simulated memory, most"}},
		{"half the delay", "better", 0, []string{"--arm", "a:latency=constant:250ms", "--arm", "b:latency=constant:100ms"}},
	}
	for _, c := range tests[:suite.Size(4, len(tests))] {
		t.Run(c.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir, got := e2e.Measured(t, suite, append([]string{"ab", "simulated", "--level", "20", "--seed", "1"}, c.args...)...)
				if r := e2e.ResultIn(t, dir); got.Code != c.code || string(r.Verdict) != c.verdict {
					t.Errorf("exit code %d, verdict %s, want %d, %s:\n%s%s", got.Code, r.Verdict, c.code, c.verdict, got.Stdout, got.Stderr)
				}
			})
		})
	}
}

func TestASimulatedRunIsResumed(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		got, parts := e2e.Command(t, nil, "limit", "simulated", "--set", "limit=57", "--budget", "2s", "--hold", "1s", "--seed", "1", "--out", dir), 1
		for ; parts < 10 && strings.Contains(got.Stderr, "run --resume"); parts++ {
			got = e2e.Command(t, nil, "run", "--resume", dir)
		}
		if line, fails := e2e.LineIn(t, dir); got.Code != 0 || parts != 4 || line != 57 || fails != 58 {
			t.Errorf("in %d parts exit code %d, line %g, %g fails:\n%s%s", parts, got.Code, line, fails, got.Stdout, got.Stderr)
		}
		// Each part but the last was cut in a step, which the next one made again.
		if r := e2e.ResultIn(t, dir); len(r.Steps) != 15 || strings.Count(strings.Join(r.Warnings.Lines(), "\n"), "was cut off and is repeated") != 3 {
			t.Errorf("%d steps, warnings %q", len(r.Steps), r.Warnings)
		}
		if got := e2e.Command(t, nil, "report", dir); got.Code != 0 {
			t.Errorf("report: exit code %d: %s", got.Code, got.Stderr)
		}
	})
}

// --budget replaces the budget of the plan, of a run that goes on too.
func TestAResumedRunTakesABudget(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		e2e.Command(t, nil, "limit", "simulated", "--set", "limit=57", "--budget", "2s", "--hold", "1s", "--seed", "1", "--out", dir)
		got := e2e.Command(t, nil, "run", "--resume", dir, "--budget", "1h")
		if line, fails := e2e.LineIn(t, dir); got.Code != 0 || line != 57 || fails != 58 {
			t.Errorf("exit code %d, line %g, %g fails:\n%s%s", got.Code, line, fails, got.Stdout, got.Stderr)
		}
	})
}

// A stream is recorded, resumed, judged again, reported and compared as objects
// are.
func TestASimulatedStreamIsWhole(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		args := []string{"sweep", "simulated", "--axis", "requests", "--levels", "500,1500,800", "--set", "capacity=1000", "--out"}
		got, parts := e2e.Command(t, nil, append(args, dir, "--budget", "4s")...), 1
		for ; parts < 10 && strings.Contains(got.Stderr, "run --resume"); parts++ {
			got = e2e.Command(t, nil, "run", "--resume", dir)
		}
		if got.Code != process.ExitFail || parts != 3 || !strings.Contains(got.Stdout, " intended ") {
			t.Fatalf("in %d parts exit code %d:\n%s%s", parts, got.Code, got.Stdout, got.Stderr)
		}
		before := e2e.ResultIn(t, dir)
		held := make(map[float64]int)
		for _, s := range before.Steps {
			if r := s.Requests; r == nil || r.Intended != r.Sent+r.Dropped {
				t.Errorf("step %d: %+v", s.ID, r)
			} else if s.Ending == record.EndHeld {
				held[s.Level] = r.Done
			}
		}
		if want := map[float64]int{500: 1000, 1500: 3000, 800: 1600}; !reflect.DeepEqual(held, want) {
			t.Errorf("in the holds %v requests were done, want %v", held, want)
		}
		windows, err := record.ReadWindows(record.Dir(dir))
		if err != nil || len(windows) != 46 {
			t.Errorf("%d windows, %v", len(windows), err)
		}
		if got := e2e.Command(t, nil, "analyze", dir); got.Code != process.ExitFail {
			t.Errorf("analyze: exit code %d: %s", got.Code, got.Stderr)
		}
		if after := e2e.ResultIn(t, dir); !reflect.DeepEqual(after, before) {
			t.Error("judged anew it says something else")
		}
		page, err := os.ReadFile(filepath.Join(dir, record.ReportFile))
		if err != nil || !bytes.Contains(page, []byte("streams-chart")) || !bytes.Contains(page, []byte(`"backlog":[`)) {
			t.Errorf("the page does not draw the stream: %v", err)
		}
		second := filepath.Join(t.TempDir(), "run")
		if got := e2e.Command(t, nil, append(args, second)...); got.Code != process.ExitFail {
			t.Errorf("exit code %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
		if got := e2e.Command(t, nil, "compare", dir, second); got.Code != process.ExitInconclusive || !strings.Contains(got.Stdout, "needs two of each") {
			t.Errorf("compare: exit code %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
	})
}

// A sweep tells of every milestone and of the system's resources, and its
// record says what it was of.
func TestASimulatedRecordStandsAlone(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir, got := e2e.Measured(t, suite, "sweep", "simulated", "--levels", "10,20")
		if got.Code != 0 {
			t.Fatalf("exit code %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
		var e record.Environment
		if err := record.Dir(dir).ReadJSON(record.EnvironmentFile, &e); err != nil || e.Kind == nil || e.Kind.Object.Many != "objects" || e.Target.Kind != "simulated" {
			t.Errorf("environment %+v, %v", e, err)
		}
		r := e2e.ResultIn(t, dir)
		for _, s := range r.Steps {
			if s.Latency["Ready"].P50 == nil || s.Latency["Placed"].P50 == nil {
				t.Errorf("latencies %+v", s.Latency)
			}
		}
		if cpu := r.Steps[1].Resources["simulated"].CPUSeconds; cpu != 0.04 {
			t.Errorf("40 objects cost %g s of CPU, 0.04 s were planted", cpu)
		}
		before, err := os.ReadFile(filepath.Join(dir, record.ResultFile))
		if err != nil {
			t.Fatal(err)
		}
		if got := e2e.Command(t, nil, "analyze", dir, "-o", "json"); got.Code != 0 || !json.Valid([]byte(got.Stdout)) {
			t.Errorf("analyze: exit code %d: %s", got.Code, got.Stderr)
		}
		if after, err := os.ReadFile(filepath.Join(dir, record.ResultFile)); err != nil || string(after) != string(before) {
			t.Errorf("judged anew it says something else: %v", err)
		}
	})
}

// A guard's bound is said, with its unit, before anything is loaded.
func TestGuardsAreSaidBeforeTheLoad(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		got := e2e.Command(t, nil, "sweep", "simulated", "--levels", "3", "--guard", "apiErrors=5%", "--guard", "placesNotReady=1", "--out", filepath.Join(t.TempDir(), "run"))
		before, _, started := strings.Cut(got.Stderr, "sweep 3\n")
		if want := "the load stops when apiErrors is 5% (requests that failed for good, with 99.9% confidence), or placesNotReady is 1 (places that are not ready)"; !started || !strings.Contains(before, want) {
			t.Errorf("exit code %d, want %q before the first step:\n%s", got.Code, want, got.Stderr)
		}
	})
}

// What leaves a search undecided is said on the screen, not in the record alone.
func TestASearchSaysWhyItDoesNotDecide(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		_, got := e2e.Measured(t, suite, "limit", "simulated", "--slo", "Deleted p99 <= 1s", "--seed", "1")
		if want := "the steps at 25 do not decide; step 2 is inconclusive: Deleted p99 <= 1s: nothing of the step could be judged"; got.Code != process.ExitInconclusive || !strings.Contains(got.Stdout, want) {
			t.Errorf("exit code %d, want %q:\n%s", got.Code, want, got.Stdout)
		}
	})
}

// The exit code follows the headline goal unless another is required, and what
// a run requires is kept in its record.
func TestTheExitCodeFollowsTheRequiredGoals(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for _, c := range []struct {
			require string
			code    int
			said    string
		}{
			{"", process.ExitPass, "The exit code, 0, follows the headline goal alone; --require all follows every goal."},
			{"all", process.ExitFail, "The exit code, 1, follows every goal."},
			{"fast", process.ExitFail, "The exit code, 1, follows the goal fast."},
			{"ready", process.ExitPass, "The exit code, 0, follows the goal ready."},
		} {
			args := []string{"sweep", "simulated", "--levels", "3", "--goal", "fast=Ready p99 <= 1us"}
			if c.require != "" {
				args = append(args, "--require", c.require)
			}
			dir, got := e2e.Measured(t, suite, args...)
			if got.Code != c.code || !strings.Contains(got.Stdout, c.said) || !strings.Contains(got.Stdout, "goal ready (all Ready): pass; it is the headline") {
				t.Errorf("--require %q: exit code %d, want %d\n%s%s", c.require, got.Code, c.code, got.Stdout, got.Stderr)
			}
			if again := e2e.Command(t, nil, "analyze", dir); again.Code != c.code {
				t.Errorf("--require %q: judged again, exit code %d, want %d", c.require, again.Code, c.code)
			}
		}
	})
}

func TestASimulatedSystemIsChecked(t *testing.T) {
	got := e2e.Command(t, nil, "check", "simulated", "--set", "limit=37")
	if got.Code != 0 || !strings.Contains(got.Stdout, "Binds first: 37 objects/place, by the planted limit of the places.") {
		t.Errorf("exit code %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// Ctrl-C in the middle of a run leaves its result, says how to go on, and the
// run then goes on.
func TestAnInterruptedSimulatedRunGoesOn(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		signals := make(chan os.Signal, 1)
		var stdout bytes.Buffer
		stderr := &e2e.Trigger{On: "step 3", Then: func() { signals <- os.Interrupt }}
		p := e2e.InMemory(t, nil, "limit", "simulated", "--set", "limit=57", "--from", "10", "--seed", "1", "--out", dir)
		p.Stdout, p.Stderr, p.Signals = &stdout, stderr, signals
		code := cli.Main(p)
		if code != process.ExitInterrupted || !strings.Contains(stdout.String(), "inconclusive, at least 30 objects/place held") || !strings.Contains(stderr.String(), "run --resume "+dir) {
			t.Fatalf("exit code %d:\n%s%s", code, stdout.String(), stderr.String())
		}
		if got := e2e.Command(t, nil, "run", "--resume", dir); got.Code != 0 || *e2e.ResultIn(t, dir).LoadLine.Level != 57 {
			t.Errorf("exit code %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
	})
}

// What became of the removal is said right though the result cannot be written again,
// as on a disk that is full.
func TestARemovalIsKnownWithoutAFile(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		stderr := &e2e.Trigger{On: "removing what the run has made", Then: func() {
			file := record.Dir(dir).Path(record.ResultFile) // a directory cannot be written over
			if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "x"), 0o700)); err != nil {
				t.Error(err)
			}
		}}
		p := e2e.InMemory(t, nil, "sweep", "simulated", "--levels", "10", "--set", "removal=10s", "--out", dir)
		p.Stdout, p.Stderr = new(bytes.Buffer), stderr
		code := cli.Main(p)
		if said := stderr.String(); code != process.ExitCouldNotRun || !strings.Contains(said, "write result.json: ") || strings.Contains(said, "are left") {
			t.Errorf("exit code %d:\n%s", code, said)
		}
	})
}

// The result is there before the target is emptied, and says what became of
// that: it must not be lost with a removal that hangs.
func TestAResultComesBeforeTheRemoval(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		signals := make(chan os.Signal, 2)
		var stdout bytes.Buffer
		var early result.Result
		var shown string
		stderr := &e2e.Trigger{On: "removing what the run has made", Then: func() {
			early, shown = e2e.ResultIn(t, dir), stdout.String()
			signals <- os.Interrupt
			signals <- os.Interrupt
		}}
		p := e2e.InMemory(t, nil, "sweep", "simulated", "--levels", "10", "--set", "removal=1h", "--out", dir)
		p.Stdout, p.Stderr, p.Signals = &stdout, stderr, signals
		code := cli.Main(p)
		if !strings.Contains(shown, "simulated held at every level") || !strings.Contains(shown, "Report: "+dir) {
			t.Errorf("shown before the removal:\n%s", shown)
		}
		if c := early.Cleanup; early.Verdict != slo.Pass || c == nil || c.Done || c.Left != 40 {
			t.Errorf("the result before the removal: %s, %+v", early.Verdict, c)
		}
		if c := e2e.ResultIn(t, dir).Cleanup; c == nil || c.Done || c.Left != 40 {
			t.Errorf("the result after it: %+v", c)
		}
		if code != process.ExitInterrupted || !strings.Contains(stderr.String(), "40 things that the run made are left\n") {
			t.Errorf("exit code %d:\n%s", code, stderr.String())
		}
	})
}

// The record has a removal that ends.
func TestARemovalIsOnRecord(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "run")
		got := e2e.Command(t, nil, "sweep", "simulated", "--levels", "10", "--set", "removal=100ms", "--out", dir)
		r := e2e.ResultIn(t, dir)
		if c := r.Cleanup; got.Code != 0 || c == nil || !c.Done || c.Left != 0 {
			t.Errorf("exit code %d, %+v:\n%s%s", got.Code, c, got.Stdout, got.Stderr)
		}
	})
}

// A rate beyond the capacity is not steady, however long its objective lets
// requests wait.
func TestARateThatIsNotSteady(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		for _, axis := range []string{"rate", "requests"} {
			there := map[string]string{"rate": "Ready", "requests": "Responded"}[axis]
			dir, got := e2e.Measured(t, suite, "sweep", "simulated", "--axis", axis, "--levels", "150,250", "--set", "capacity=200", "--slo", there+" p99 <= 30s", "--seed", "1")
			steps := e2e.ResultIn(t, dir).Steps
			if got.Code != process.ExitFail || steps[0].Verdict != slo.Pass || !strings.HasPrefix(steps[1].VerdictWhy, "notSteady: the backlog grew throughout the hold") {
				t.Errorf("%s: exit code %d:\n%s%s", axis, got.Code, got.Stdout, got.Stderr)
			}
			if b := steps[1].Backlog; b == nil || *b.Slope.Value < 49 || *b.Slope.Value > 51 {
				t.Errorf("%s: 250 arrivals a second where 200 are served: %+v", axis, b)
			}
		}
	})
}

// A search begins at a quarter of the prediction, or at the level of its flag; it goes by
// the step that was asked for, and the resolution ends its bracket.
func TestWhereASearchBeginsAndHowItGoes(t *testing.T) {
	for _, c := range []struct {
		why    string
		args   []string
		levels []float64 // of the ramp
		line   float64
		says   string
	}{
		{"nothing is said", []string{"--set", "limit=30"}, []float64{7, 14, 21, 28, 35}, 30, "the search starts at 7 objects/place, a quarter of the predicted 30 (planted limit of the places); --from starts elsewhere\n"},
		{"a step is said", []string{"--set", "limit=30", "--step", "16"}, []float64{7, 23, 39}, 30, "a quarter of the predicted 30"},
		{"what is predicted lies above what is allowed", []string{"--set", "limit=4000", "--max", "40"}, []float64{10, 20, 30, 40}, 40, "the search starts at 10 objects/place, a quarter of the highest level allowed; 4000 are predicted"},
		{"a first level is said, and lies above", []string{"--set", "limit=30", "--from", "50"}, []float64{50}, 0, "warning: --from 50 lies above 30"},
		{"the step is no multiple of the resolution", []string{"--set", "limit=20", "--from", "5", "--step", "10", "--resolution", "7"}, []float64{5, 15, 25}, 20, ""},
	} {
		t.Run(c.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir, got := e2e.Measured(t, suite, append([]string{"limit", "simulated", "--seed", "1"}, c.args...)...)
				r := e2e.ResultIn(t, dir)
				var ramp []float64
				for _, s := range r.Steps {
					if s.Purpose == record.PurposeRamp {
						ramp = append(ramp, s.Level)
					}
				}
				if level, _ := e2e.LineIn(t, dir); !slices.Equal(ramp, c.levels) || level != c.line || !strings.Contains(got.Stderr, c.says) {
					t.Errorf("ramp %v, line %g, want %v, %g and %q:\n%s%s", ramp, level, c.levels, c.line, c.says, got.Stdout, got.Stderr)
				}
			})
		})
	}
	got := e2e.Command(t, nil, "limit", "simulated", "--dry-run")
	if !strings.Contains(got.Stdout, "from a quarter of the predicted line, where one is known, or else ") {
		t.Errorf("a dry run: %s%s", got.Stdout, got.Stderr)
	}
}

// What varies is a grid: each cell is found by itself, in an order that does not
// matter, and the cells are compared with each other.
func TestAGridOfPlantedLimits(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "grid")
		got := e2e.Command(t, nil, "limit", "simulated", "--vary", "limit=20,40", "--vary", "places=2,4", "--seed", "1", "--out", dir)
		g := gridIn(t, dir)
		var lines []float64
		for _, c := range g.Cells {
			lines = append(lines, *c.LoadLine.Level)
		}
		if got.Code != 0 || !reflect.DeepEqual(lines, []float64{20, 20, 40, 40}) {
			t.Fatalf("exit code %d, lines %v:\n%s%s", got.Code, lines, got.Stdout, got.Stderr)
		}
		page, err := os.ReadFile(filepath.Join(dir, record.ReportFile))
		if err != nil || !strings.Contains(got.Stdout, "Report: "+filepath.Join(dir, record.ReportFile)) {
			t.Errorf("the page: %v:\n%s", err, got.Stdout)
		}
		for _, c := range g.Cells {
			link := c.Dir + "/" + record.ReportFile
			if _, err := os.Stat(filepath.Join(dir, link)); err != nil || !strings.Contains(string(page), `href="`+link+`"`) {
				t.Errorf("no link to %s: %v", link, err)
			}
		}
		if p := g.Pairs[0]; p.Baseline != "limit=20,places=2" || p.Arm != "limit=40,places=2" || p.Verdict != "better" {
			t.Errorf("the first pair: %+v", p)
		}
		for _, c := range g.Curves {
			switch {
			case c.Key == "limit" && (c.Knee != nil || *c.Curve[0].Gain.Value < 0.99 || *c.Curve[0].Gain.Value > 1.01):
				t.Errorf("the line is the limit, and the curve says %+v", c.Curve)
			case c.Key == "places" && (c.Knee == nil || *c.Knee != 2):
				t.Errorf("the line does not depend on the places, and the curve says %+v", c.Curve)
			}
		}
		compared := e2e.Command(t, nil, "compare", dir+":limit=20,places=2", dir+":limit=40,places=2")
		if compared.Code != 0 || !strings.Contains(compared.Stdout, "better") {
			t.Errorf("exit code %d:\n%s%s", compared.Code, compared.Stdout, compared.Stderr)
		}
		plan, err := os.ReadFile(filepath.Join(dir, record.ExperimentFile))
		if err != nil {
			t.Fatal(err)
		}
		other := e2e.Command(t, nil, "limit", "simulated", "--vary", "limit=20,60", "--out", dir)
		kept, err := os.ReadFile(filepath.Join(dir, record.ExperimentFile))
		cells, _ := os.ReadDir(filepath.Join(dir, record.CellsDir))
		if other.Code != process.ExitUsage || !strings.Contains(other.Stderr, "give another --out") || err != nil || !bytes.Equal(kept, plan) || len(cells) != len(g.Cells) {
			t.Errorf("another grid in its place: exit code %d, %d cells, %v:\n%s", other.Code, len(cells), err, other.Stderr)
		}
		again := e2e.Command(t, nil, "analyze", dir, "-o", "json")
		var judged judge.Grid
		if err := json.Unmarshal([]byte(again.Stdout), &judged); err != nil || !reflect.DeepEqual(judged, g) {
			t.Errorf("judged again it is another: %v", err)
		}
		for _, wrong := range []struct{ why, arg, want string }{
			{"a cell that is none", dir + ":limit=30,places=2", `has no cell "limit=30,places=2"`},
			{"the grid itself", dir, "each has its own below cells"},
		} {
			if got := e2e.Command(t, nil, "compare", wrong.arg, dir+":limit=40,places=2"); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, wrong.want) {
				t.Errorf("%s: exit code %d, %s", wrong.why, got.Code, got.Stderr)
			}
		}
	})
}

// gridIn returns the result that a grid has left.
func gridIn(t *testing.T, dir string) judge.Grid {
	t.Helper()
	var g judge.Grid
	if err := record.Dir(dir).ReadJSON(record.ResultFile, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// The rounds of a sweep are mixed, and a run that is cut goes on with what is
// left of each cell.
func TestAGridIsMadeInRoundsAndResumed(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "grid")
		signals := make(chan os.Signal, 1)
		var stdout bytes.Buffer
		stderr := &e2e.Trigger{On: "cell 2 of 2, round 2 of 3", Then: func() { signals <- os.Interrupt }}
		p := e2e.InMemory(t, nil, "sweep", "simulated", "--levels", "10,20", "--repeat", "3", "--vary", "limit=15,30", "--seed", "1", "--out", dir)
		p.Stdout, p.Stderr, p.Signals = &stdout, stderr, signals
		code := cli.Main(p)
		if code != process.ExitInterrupted || !strings.Contains(stderr.String(), "run --resume "+dir) {
			t.Fatalf("exit code %d:\n%s%s", code, &stdout, stderr)
		}
		got := e2e.Command(t, nil, "run", "--resume", dir)
		g := gridIn(t, dir)
		if got.Code != process.ExitFail || len(g.Cells) != 2 {
			t.Fatalf("exit code %d:\n%s%s", got.Code, got.Stdout, got.Stderr)
		}
		for i, c := range g.Cells {
			var made []float64
			for _, s := range c.Steps {
				if s.Verdict.Decided() {
					made = append(made, s.Level)
				}
			}
			if want := []float64{10, 20, 10, 20, 10, 20}; !reflect.DeepEqual(made, want) || c.Levels[1].Runs != 3 {
				t.Errorf("cell %d made %v: %+v", i, made, c.Levels)
			}
		}
		if again := e2e.Command(t, nil, "run", "--resume", dir); again.Code != process.ExitFail || strings.Contains(again.Stderr, "step") {
			t.Errorf("finished, it is made again: exit code %d:\n%s", again.Code, again.Stderr)
		}
	})
}

// A grid of which no cell could be begun leaves nothing, and says why.
func TestAGridThatCannotBegin(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "grid")
	got := e2e.Command(t, nil, "limit", "node-density", "--vary", "lab.nodes=1,2", "--out", dir)
	if _, err := os.Stat(dir); got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "private lab") || err == nil {
		t.Errorf("exit code %d, %v:\n%s", got.Code, err, got.Stderr)
	}
}

// What cannot be varied is refused before anything is made.
func TestWhatCannotBeVaried(t *testing.T) {
	for _, c := range []struct{ why, vary, want string }{
		{"a parameter that there is not", "limits=1,2", `"limits"`},
		{"a value that it cannot have", "places=1,zero", "zero"},
		{"the same value twice", "places=2,2", "twice"},
		{"a key of a lab where there is none", "lab.nodes=1,2", "has no lab of its own"},
		{"no value", "places", "want k=v1,v2"},
	} {
		dir := filepath.Join(t.TempDir(), "grid")
		if got := e2e.Command(t, nil, "limit", "simulated", "--vary", c.vary, "--out", dir); got.Code != process.ExitUsage || !strings.Contains(got.Stderr, c.want) {
			t.Errorf("%s: exit code %d, %s", c.why, got.Code, got.Stderr)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a directory was made", c.why)
		}
	}
}

// The clock that a run is given steps in the middle of a hold. The run ends, what
// it counts is whole, and it says the same as without the step or that it does not
// know: a step of the clock is no delay of the system.
func TestTheClockThatIsPassedInSteps(t *testing.T) {
	for _, axis := range [][]string{{"--axis", "requests", "--levels", "300", "--hold", "2s"}, {"--axis", "clients", "--levels", "10", "--hold", "2s"}, {"--axis", "rate", "--levels", "50"}, {"--levels", "10", "--hold", "1s"}} {
		for _, by := range []time.Duration{time.Hour, 5 * time.Second, -5 * time.Second, -time.Hour} {
			t.Run(strings.Join(axis, " ")+" "+by.String(), func(t *testing.T) {
				e2e.OnVirtualClock(t, func(t *testing.T) {
					dir := filepath.Join(t.TempDir(), "run")
					p := e2e.InMemory(t, nil, append(append([]string{"sweep", "simulated", "--seed", "1"}, axis...), "--out", dir)...)
					var stdout, stderr bytes.Buffer
					began := time.Now()
					p.Stdout, p.Stderr = &stdout, &stderr
					p.Now = func() time.Time {
						now := time.Now()
						if now.Sub(began) > 800*time.Millisecond {
							now = now.Add(by)
						}
						return now
					}
					code := cli.Main(p)
					if took := time.Since(began); took > time.Minute {
						t.Errorf("it took %v", took)
					}
					if code != process.ExitPass && code != process.ExitInconclusive && code != process.ExitInvalid {
						t.Errorf("exit code %d:\n%s%s", code, stdout.String(), stderr.String())
					}
					before := e2e.ResultIn(t, dir)
					if got := e2e.Command(t, nil, "analyze", dir); got.Code != code || !reflect.DeepEqual(e2e.ResultIn(t, dir), before) {
						t.Errorf("analyze comes to another result, exit code %d instead of %d", got.Code, code)
					}
				})
			})
		}
	}
}
