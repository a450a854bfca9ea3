package records_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/cli"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// What a signal cuts ends with the signal's code: on screen, in the record, where
// it is judged again, and for the shell.
func TestOneExitCodeOfWhatASignalCuts(t *testing.T) {
	plan := filepath.Join(t.TempDir(), "plan.yaml")
	if err := os.WriteFile(plan, []byte("schema: plimsoll/experiment/v1\nname: x\nworkload: simulated\naxis: {levels: [10, 20, 30]}\ngoals: {a: [all Ready], b: [Ready p50 <= 1s]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	goals := []string{"--goal", "fast=Ready p50 <= 1s"}
	for _, tt := range []struct {
		why    string
		args   []string
		on     string // when the signal comes
		signal syscall.Signal
		says   string // what the output says of the code, "" for nothing
	}{
		{"a search", append([]string{"limit", "simulated", "--from", "10"}, goals...), "step 3", syscall.SIGINT, "The exit code, 130, is that of the signal"},
		{"a sweep", append([]string{"sweep", "simulated", "--levels", "10,20,30"}, goals...), "step 2", syscall.SIGTERM, "The exit code, 143, is that of the signal"},
		{"a comparison of a fixed number of runs decides nothing", append([]string{"ab", "simulated", "--level", "10", "--repeat", "5", "--arm", "a:", "--arm", "b:latency=constant:3s", "--metric", "Ready p50"}, goals...), "step 7", syscall.SIGTERM, ""},
		{"a plan", []string{"run", plan}, "step 2", syscall.SIGTERM, "The exit code, 143, is that of the signal"},
		{"a grid", []string{"sweep", "simulated", "--levels", "10,20", "--vary", "limit=15,30"}, "cell 2 of 2", syscall.SIGTERM, ""},
		{"while the target is emptied", []string{"sweep", "simulated", "--levels", "10", "--set", "removal=10s"}, "removing what the run has made", syscall.SIGTERM, "the exit code, 143, is that of the signal"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				signals := make(chan os.Signal, 1)
				var stdout bytes.Buffer
				stderr := &e2e.Trigger{On: tt.on, Then: func() { signals <- tt.signal }}
				p := e2e.InMemory(t, nil, append(tt.args, "--out", dir)...)
				p.Stdout, p.Stderr, p.Signals = &stdout, stderr, signals
				code, want := cli.Main(p), 128+int(tt.signal)
				said := stdout.String() + stderr.String()
				if code != want || !strings.Contains(said, tt.says) || tt.says != "" && strings.Count(strings.ToLower(said), "the exit code, ") != 1 {
					t.Errorf("exit code %d, want %d:\n%s", code, want, said)
				}
				verdict, onRecord := codeIn(t, dir)
				if onRecord != want {
					t.Errorf("result.json has %d, want %d", onRecord, want)
				}
				if tt.args[0] == "ab" && verdict != "inconclusive" {
					t.Errorf("7 of 10 runs that were planned: %s", verdict)
				}
				if again := e2e.Command(t, nil, "analyze", dir); again.Code != want {
					t.Errorf("judged again: exit code %d, want %d", again.Code, want)
				}
			})
		})
	}
}

// SIGTERM leaves a removal the rest of two seconds, Ctrl-C all the time it takes.
func TestSIGTERMDoesNotWaitForARemoval(t *testing.T) {
	for _, tt := range []struct {
		signal      syscall.Signal
		least, most time.Duration // until it has ended
		left        bool
	}{
		{syscall.SIGTERM, time.Second, 2 * time.Second, true},
		{syscall.SIGINT, 10 * time.Second, 12 * time.Second, false},
	} {
		t.Run(tt.signal.String(), func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				signals := make(chan os.Signal, 1)
				var came time.Time
				stderr := &e2e.Trigger{On: "step 2", Then: func() { came = time.Now(); signals <- tt.signal }}
				p := e2e.InMemory(t, nil, "sweep", "simulated", "--levels", "10,20,30", "--set", "removal=10s", "--out", dir)
				p.Stdout, p.Stderr, p.Signals = new(bytes.Buffer), stderr, signals
				code, took := cli.Main(p), time.Since(came)
				if code != 128+int(tt.signal) || took < tt.least || took > tt.most {
					t.Errorf("exit code %d after %v\n%s", code, took, stderr.String())
				}
				if c := e2e.ResultIn(t, dir).Cleanup; c == nil || c.Done == tt.left || strings.Contains(stderr.String(), "are left") != tt.left {
					t.Errorf("cleanup %+v\n%s", c, stderr.String())
				}
			})
		})
	}
}

// A comparison that goes on until it is decided, and is cut before, decides by the
// repeated interval of the blocks that are whole: one block has none, half of one
// counts for nothing, and the interval is wider than that of as many blocks that were
// fixed before. The exit code is the signal's, whatever is decided.
func TestWhatACutComparisonDecides(t *testing.T) {
	for _, tt := range []struct {
		why, arm string
		step     int // in which the signal comes
		signal   syscall.Signal
		verdict  string
		blocks   int     // that were judged
		fixed    float64 // Student's bound at 95% for as many
	}{
		{"one block, however different", "latency=constant:500ms", 3, syscall.SIGTERM, "inconclusive", 0, 0},
		{"three and a half blocks, far apart", "latency=constant:250ms", 7, syscall.SIGTERM, "worse", 3, 4.303},
		{"four and a half blocks, about the margin", "latency=uniform:195ms,225ms", 9, syscall.SIGINT, "inconclusive", 4, 3.182},
	} {
		t.Run(tt.why, func(t *testing.T) {
			e2e.OnVirtualClock(t, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "run")
				signals := make(chan os.Signal, 1)
				p := e2e.InMemory(t, nil, "ab", "simulated", "--level", "20", "--seed", "1", "--hold", "1s", "--margin", "5%", "--until", "decided", "--repeat", "4..13",
					"--arm", "a:latency=constant:200ms", "--arm", "b:"+tt.arm, "--out", dir)
				p.Stdout, p.Stderr, p.Signals = new(bytes.Buffer), &e2e.Trigger{On: fmt.Sprint("step ", tt.step, " "), Then: func() { signals <- tt.signal }}, signals
				code, want := cli.Main(p), 128+int(tt.signal)
				again := e2e.Command(t, nil, "analyze", dir)
				r := e2e.ResultIn(t, dir)
				if code != want || r.ExitCode != want || again.Code != want {
					t.Errorf("exit code %d, in result.json %d, judged again %d; want %d", code, r.ExitCode, again.Code, want)
				}
				if string(r.Verdict) != tt.verdict {
					t.Errorf("%s: %s", r.Verdict, r.Why)
				}
				s := r.Comparison.Levels[0].Sequential
				if (s == nil) != (tt.blocks == 0) || s != nil && (s.Blocks != tt.blocks || s.Bound == nil || *s.Bound <= tt.fixed || s.Futile) {
					t.Errorf("judged %+v, want %d blocks, with a bound above %g", s, tt.blocks, tt.fixed)
				}
			})
		})
	}
}

// codeIn returns the verdict and the exit code in a result.json of any kind.
func codeIn(t *testing.T, dir string) (verdict string, code int) {
	t.Helper()
	var r struct {
		Verdict  string
		ExitCode int
	}
	data, err := os.ReadFile(record.Dir(dir).Path(record.ResultFile))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		t.Fatal(fmt.Errorf("the result: %w", err))
	}
	return r.Verdict, r.ExitCode
}
