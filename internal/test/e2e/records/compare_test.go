package records_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/cli/process"
	clirecords "plimsoll.dev/plimsoll/internal/cli/records"
	"plimsoll.dev/plimsoll/internal/judge/recorded"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/test/e2e"
)

// recordedSteps returns a run whose steps were all made at level 10 from empty, and
// its environment; it has not been judged. In step i objects took times[i] and
// up to as long again.
func recordedSteps(t *testing.T, name, kernel string, times ...time.Duration) string {
	t.Helper()
	return recordedArms(t, name, kernel, nil, times...)
}

// recordedArms is as recordedSteps, of a comparison: the steps are the arms'
// in turn.
func recordedArms(t *testing.T, name, kernel string, arms []string, times ...time.Duration) string {
	t.Helper()
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), name))
	if err != nil {
		t.Fatal(err)
	}
	kind, more := "sweep", ""
	if len(arms) > 0 {
		kind, more = "ab", "primary: {metric: Ready p50, margin: 5%, alpha: 0.05}\narms: ["+strings.Join(arms, ", ")+"]\n"
	}
	plan := "schema: plimsoll/experiment/v1\nname: " + name + "\nworkload: node-density\npace: max\nhold: 1s\nstepTimeout: 1m\naxis: {name: pods-per-node, levels: [10]}\ngoals: {ready: ['all Ready']}\n" + more +
		"asRun: {id: " + name + ", kind: " + kind + ", command: plimsoll, version: 0.1.0, started: '2030-01-02T03:04:05Z', unit: pods/node, milestones: [Created, ContainersStarted, Ready], arrived: Ready}\n"
	if err := dir.WriteFile(record.ExperimentFile, []byte(plan)); err != nil {
		t.Fatal(err)
	}
	pods := observe.Pods()
	environment := record.Environment{
		Kind:  &pods,
		Start: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC), Target: record.TargetNaming{Kind: "cluster", Name: "prod"},
		Elsewhere: true, Fidelity: record.Fidelity{Nodes: record.Real}, Facts: []record.Fact{{Name: "kernel", Value: kernel, Bearing: record.Refuses}},
	}
	if err := dir.WriteJSON(record.EnvironmentFile, environment); err != nil {
		t.Fatal(err)
	}
	w, err := record.NewWriter(dir, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := record.Micros(0)
	w.Append(record.Event{Body: &record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion, ID: name}})
	for i, took := range times {
		const objects = 50
		add := func(after record.Micros, body record.Body) {
			w.Append(record.Event{T: now + after, Step: i + 1, Body: body})
		}
		s := &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 10, Purpose: record.PurposeSweep, FromEmpty: true, FullHold: true}, Reached: 10, Units: objects, Timeout: 6e7, Hold: 1e6, Pace: "max"}
		if len(arms) > 0 {
			s.Purpose, s.Arm, s.Replicate = record.PurposeAB, strings.Fields(strings.Trim(arms[i%len(arms)], "{}"))[1], i/len(arms)+1
			s.Arm = strings.TrimSuffix(s.Arm, ",")
		}
		add(0, s)
		for k := range objects {
			object := fmt.Sprintf("ns-%d/p-%d", i, k)
			late := record.MicrosOf(took) * record.Micros(objects+k) / objects
			add(0, &record.Slot{Slot: object, Units: 1, Outcome: record.SlotCreated, Intended: now, Sent: now, Replied: now})
			for _, m := range []string{"Created", "ContainersStarted", "Ready"} {
				add(late, &record.Object{Object: object, Milestone: m})
			}
		}
		now += 2 * record.MicrosOf(took)
		for _, phase := range []record.Phase{record.PhaseLoaded, record.PhaseReached} {
			add(0, &record.StepEvent{Phase: phase})
		}
		add(1e6, &record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld})
		now += 2e6
		add(0, &record.StepEvent{Phase: record.PhaseReset})
	}
	w.Append(record.Event{T: now, Body: &record.RunEvent{Phase: record.PhaseEnd}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return string(dir)
}

const ms = time.Millisecond

func TestCompare(t *testing.T) {
	base := recordedSteps(t, "base", "6.1", 500*ms, 505*ms, 495*ms, 502*ms, 498*ms)
	same := recordedSteps(t, "same", "6.1", 503*ms, 499*ms, 497*ms, 501*ms)
	slow := recordedSteps(t, "slow", "6.1", 600*ms, 605*ms, 595*ms, 602*ms)
	once := recordedSteps(t, "once", "6.1", 600*ms)
	other := recordedSteps(t, "other", "6.2", 600*ms, 605*ms, 595*ms, 602*ms)
	arms := recordedArms(t, "arms", "6.1", []string{"{name: a, params: {image: x}}", "{name: b, params: {image: y}}"},
		500*ms, 600*ms, 800*ms, 960*ms, 300*ms, 361*ms)
	for _, tt := range []struct {
		why  string
		args []string
		code int
		want []string
	}{
		{"the same", []string{base, same}, process.ExitPass, []string{"same is equivalent to base", "5 and 4 runs"}},
		{"slower", []string{base, slow}, process.ExitFail, []string{"slow is worse than base", "+20."}},
		{"faster", []string{slow, base}, process.ExitPass, []string{"base is better than slow"}},
		{"within a margin that is wide", []string{base, slow, "--margin", "30%"}, process.ExitPass, []string{"equivalent"}},
		{"one run", []string{base, once}, process.ExitInconclusive, []string{"one run of once counts", "sweep --levels 10,10,10,10,10", "+20."}},
		{"another kernel", []string{base, other}, process.ExitInconclusive, []string{"kernel", "6.2", "--arm-is kernel"}},
		{"the kernel is the arm", []string{base, other, "--arm-is", "kernel"}, process.ExitFail, []string{"other is worse than base"}},
		{"two arms, of blocks that differ more than they do", []string{arms + ":a", arms + ":b"}, process.ExitFail, []string{"param:image", "b is worse than a", "3 runs each"}},
		{"another figure", []string{base, slow, "--metric", "Ready p99"}, process.ExitFail, []string{"Ready p99 was chosen after the runs"}},
	} {
		got := e2e.Command(t, nil, append([]string{"compare"}, tt.args...)...)
		if got.Code != tt.code || got.Stderr != "" {
			t.Errorf("%s: exit code %d, want %d\n%s%s", tt.why, got.Code, tt.code, got.Stdout, got.Stderr)
		}
		for _, part := range tt.want {
			if !strings.Contains(got.Stdout, part) {
				t.Errorf("%s: the output lacks %q:\n%s", tt.why, part, got.Stdout)
			}
		}
	}

	out := filepath.Join(t.TempDir(), "new", "c")
	got := e2e.Command(t, nil, "compare", base, slow, "-o", "json", "--out", out)
	var printed, written recorded.Outcome
	if err := json.Unmarshal([]byte(got.Stdout), &printed); err != nil || got.Code != process.ExitFail {
		t.Fatalf("exit code %d, %v:\n%s", got.Code, err, got.Stdout)
	}
	if err := record.Dir(out).ReadJSON(clirecords.ComparisonFile, &written); err != nil {
		t.Fatal(err)
	}
	if printed.Verdict != "worse" || written.Verdict != "worse" || written.ExitCode != 1 || written.Schema != recorded.Schema || !strings.HasPrefix(written.Command, "plimsoll compare ") || len(written.Comparison.Levels) != 1 {
		t.Errorf("written: %+v", written)
	}
}

// What a directory holds is replaced by the same comparison alone.
func TestCompareOverwritesNothingElse(t *testing.T) {
	a := recordedSteps(t, "a", "6.1", 500*ms, 505*ms, 495*ms)
	b := recordedSteps(t, "b", "6.1", 503*ms, 499*ms, 497*ms)
	c := recordedSteps(t, "c", "6.1", 503*ms, 499*ms, 497*ms)
	pageAlone, mine := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(pageAlone, record.ReportFile), []byte("another page"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mine, clirecords.ComparisonFile), []byte(`{"schema": "mine"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := e2e.Command(t, nil, "report", a); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	made := filepath.Join(t.TempDir(), "made")
	for _, tt := range []struct {
		why  string
		args []string
		code int
	}{
		{"the record of one of the two", []string{a, b, "--out", a}, process.ExitUsage},
		{"the record of another run", []string{a, b, "--out", c}, process.ExitUsage},
		{"a page of something else", []string{a, b, "--out", pageAlone}, process.ExitUsage},
		{"a file of that name that is not ours", []string{a, b, "--out", mine}, process.ExitUsage},
		{"a new directory", []string{a, b, "--out", made}, process.ExitPass},
		{"the same comparison again", []string{a, b + "/", "--out", made}, process.ExitPass},
		{"another comparison", []string{a, c, "--out", made}, process.ExitUsage},
		{"the same runs and one more", []string{a, b, c, "--out", made}, process.ExitPass},
	} {
		out := tt.args[len(tt.args)-1]
		before, _ := os.ReadFile(filepath.Join(out, record.ReportFile))
		got := e2e.Command(t, nil, append([]string{"compare"}, tt.args...)...)
		after, _ := os.ReadFile(filepath.Join(out, record.ReportFile))
		kept := string(before) == string(after)
		if got.Code != tt.code || kept != (tt.code == process.ExitUsage) && tt.why != "the same comparison again" {
			t.Errorf("%s: exit code %d, want %d, the page is as before: %v\n%s", tt.why, got.Code, tt.code, kept, got.Stderr)
		}
	}
}

func TestTrendOfRuns(t *testing.T) {
	args := []string{"compare", "--as-given"}
	for i := range 12 {
		took := time.Duration(500+7*(i*5%11)) * ms
		if i >= 7 {
			took *= 2
		}
		args = append(args, recordedSteps(t, fmt.Sprintf("night%02d", i), "6.1", took, took+3*ms))
	}
	got := e2e.Command(t, nil, args...)
	for _, part := range []string{"ContainersStarted p50 of node-density at pods-per-node 10 (logarithmic)", "night00", "night11", "from here on (p = ", "from night07 on"} {
		if !strings.Contains(got.Stdout, part) {
			t.Errorf("the trend lacks %q", part)
		}
	}
	if got.Code != process.ExitPass || got.Stderr != "" || strings.Count(got.Stdout, "from here on") != 1 {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
	out := filepath.Join(t.TempDir(), "trend")
	got = e2e.Command(t, nil, append(args[:5:5], "-o", "json", "--out", out)...)
	var printed, written recorded.Outcome
	if err := json.Unmarshal([]byte(got.Stdout), &printed); err != nil || got.Code != process.ExitPass || len(printed.Trends) != 1 || len(printed.Trends[0].Points) != 3 || !strings.Contains(printed.Trends[0].Why, "it needs 10 experiments") {
		t.Errorf("exit code %d, %v:\n%s%s", got.Code, err, got.Stdout, got.Stderr)
	}
	if err := record.Dir(out).ReadJSON(clirecords.ComparisonFile, &written); err != nil || len(written.Trends) != 1 {
		t.Errorf("written: %+v, %v", written, err)
	}
	if page, err := os.ReadFile(filepath.Join(out, record.ReportFile)); err != nil || !strings.Contains(string(page), "over 3 experiments") {
		t.Errorf("the page: %v", err)
	}
}

func TestCompareOfWhatCannotBe(t *testing.T) {
	run := recordedSteps(t, "run", "6.1", 500*ms, 500*ms)
	again := recordedSteps(t, "again", "6.1", 500*ms, 500*ms)
	arms := recordedArms(t, "arms", "6.1", []string{"{name: fast}", "{name: slow}"}, 500*ms, 500*ms)
	for _, tt := range []struct {
		why  string
		args []string
		want []string
	}{
		{"nothing", nil, []string{"which experiments?"}},
		{"one", []string{run}, []string{"with what?"}},
		{"no directory", []string{run, "/nonexistent"}, []string{"does not exist"}},
		{"no directory before a colon", []string{run, "/nonexistent:a"}, []string{"/nonexistent is not a run directory"}},
		{"itself", []string{run, run}, []string{"are the same run"}},
		{"an arm of a run without", []string{run + ":x", again}, []string{`no arm "x"`, "hint: name the directory alone"}},
		{"no arm", []string{run, arms}, []string{"name one of them", "hint: for example " + arms + ":fast"}},
		{"an arm that is misspelt", []string{run, arms + ":slw"}, []string{`no arm "slw"`, `did you mean "slow"?`}},
		{"a name that is misspelt", []string{run, again, "--arm-is", "kernl"}, []string{"--arm-is kernl", `did you mean "kernel"?`}},
		{"a parameter that is misspelt", []string{run, again, "--arm-is", "param:runtimeclass"}, []string{`did you mean "param:runtimeClass"?`}},
		{"axes", []string{run, again, "--arm-is", "axis"}, []string{"levels on different axes"}},
		{"a figure that is misspelt", []string{run, again, "--metric", "Redy p50"}, []string{"--metric", `did you mean "Ready p50"?`}},
		{"a margin", []string{run, again, "--margin", "5"}, []string{"--margin", "percentage"}},
		{"an error rate", []string{run, again, "--alpha", "0"}, []string{"--alpha 0"}},
		{"an arm of a trend", []string{run, again, arms + ":fast", "--arm-is", "kernel"}, []string{"--arm-is: a trend has no verdict"}},
		{"an order of two", []string{run, again, "--as-given"}, []string{"--as-given: a trend needs at least three"}},
		{"a figure of a trend", []string{run, again, arms + ":fast", "--metric", "Redy p50"}, []string{`did you mean "Ready p50"?`}},
		{"an output", []string{run, again, "-o", "jsn"}, []string{`did you mean "json"?`}},
		{"a flag", []string{run, again, "--arm-si", "x"}, []string{"did you mean --arm-is?"}},
	} {
		got := e2e.Command(t, nil, append([]string{"compare"}, tt.args...)...)
		if got.Code != process.ExitUsage || got.Stdout != "" {
			t.Errorf("%s: exit code %d\n%s%s", tt.why, got.Code, got.Stdout, got.Stderr)
		}
		for _, part := range tt.want {
			if !strings.Contains(got.Stderr, part) {
				t.Errorf("%s: standard error lacks %q:\n%s", tt.why, part, got.Stderr)
			}
		}
	}
}

// A directory that cannot be written is not a mistake of the comparison's.
func TestACompareThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := e2e.Command(t, nil, "compare", recordedSteps(t, "a", "6.1", 500*ms, 500*ms), recordedSteps(t, "b", "6.1", 500*ms, 500*ms), "--out", file)
	if got.Code != process.ExitCouldNotRun || !strings.Contains(got.Stderr, "write the comparison") {
		t.Errorf("exit code %d\n%s%s", got.Code, got.Stdout, got.Stderr)
	}
}

// Tables fit the terminal, or 80 columns without one.
func TestTablesFit(t *testing.T) {
	e2e.OnVirtualClock(t, func(t *testing.T) {
		dir, _ := e2e.Measured(t, suite, "sweep", "simulated", "--levels", "12,20", "--set", "limit=10")
		a := recordedSteps(t, "a-name-that-is-long-enough-to-make-a-table-wide-"+strings.Repeat("x", 40), "6.1", 500*ms, 505*ms, 495*ms)
		b := recordedSteps(t, "another-name-"+strings.Repeat("y", 60), strings.Repeat("6.1-of-a-kernel-with-a-long-name ", 6), 503*ms, 499*ms, 497*ms)
		for _, args := range [][]string{{"analyze", dir}, {"compare", a, b}} {
			got := e2e.Command(t, nil, args...)
			for line := range strings.Lines(got.Stdout) {
				// A row of a table has a gap in it; sentences are the terminal's to wrap.
				row := strings.Count(strings.TrimSpace(line), "  ") > 1
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); row && n > 80 {
					t.Errorf("%v: a row of %d columns:\n%s", args, n, line)
				}
			}
		}
	})
}

// What a record says was found may have been edited, with its checksum or without: compare
// judges the histories, and writes nothing into the records.
func TestAComparisonOfEditedResults(t *testing.T) {
	t.Parallel()
	a := recordedSteps(t, "a", "6.1", 500*ms, 505*ms, 495*ms, 500*ms, 503*ms)
	b := recordedSteps(t, "b", "6.1", 501*ms, 504*ms, 496*ms, 499*ms, 502*ms)
	for _, dir := range []string{a, b} {
		if got := e2e.Command(t, nil, "analyze", dir); got.Code != 0 {
			t.Fatal(got.Stderr)
		}
	}
	honest := e2e.Command(t, nil, "compare", a, b, "--metric", "Ready p50")
	if honest.Code != 0 || !strings.Contains(honest.Stdout, "equivalent") {
		t.Fatalf("exit code %d\n%s%s", honest.Code, honest.Stdout, honest.Stderr)
	}
	path := record.Dir(b).Path(record.ResultFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	slower := regexp.MustCompile(`("(?:p50|p90|p95|p99|max|mean)": )0\.`).ReplaceAll(text, []byte("${1}9."))
	at := bytes.LastIndex(slower, []byte(",\n  \"sha256\""))
	if bytes.Equal(slower, text) || at < 0 {
		t.Fatalf("the edit hit nothing:\n%s", text)
	}
	// A table of a run that was slower, too.
	other := recordedSteps(t, "c", "6.1", 900*ms, 905*ms, 895*ms, 900*ms, 903*ms)
	if got := e2e.Command(t, nil, "analyze", other); got.Code != 0 {
		t.Fatal(got.Stderr)
	}
	objects, err := os.ReadFile(record.Dir(other).Path(record.ObjectsFile))
	if err := errors.Join(err, os.WriteFile(record.Dir(b).Path(record.ObjectsFile), objects, 0o600)); err != nil {
		t.Fatal(err)
	}
	for why, edited := range map[string][]byte{
		"with its old sum": slower,
		"without a sum":    append(bytes.Clone(slower[:at]), "\n}\n"...),
		"with a new sum":   fmt.Appendf(bytes.Clone(slower[:at]), ",\n  \"sha256\": \"%x\"\n}\n", sha256.Sum256(slower[:at])),
	} {
		if err := os.WriteFile(path, edited, 0o600); err != nil {
			t.Fatal(err)
		}
		got := e2e.Command(t, nil, "compare", a, b, "--metric", "Ready p50")
		if got.Code != honest.Code || got.Stdout != honest.Stdout {
			t.Errorf("%s: exit code %d\n%s%s", why, got.Code, got.Stdout, got.Stderr)
		}
		if warned := strings.Contains(got.Stderr, path+" is not as it was written"); warned != (why != "with a new sum") {
			t.Errorf("%s: %s", why, got.Stderr)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, edited) {
			t.Errorf("%s: the record was changed: %v", why, err)
		}
	}
}
