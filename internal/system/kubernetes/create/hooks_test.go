package create

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/kubeburner"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/kubetest"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/prepared"
)

// hooksOn returns what runs hooks in a directory of the test's, with their record.
func hooksOn(t *testing.T) (*Hooks, *kubetest.Sink) {
	t.Helper()
	common, sink := kubetest.RunOn(t, func(http.ResponseWriter, *http.Request) {})
	common.Load.Hooks = prepared.Commands{Dir: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH"), "KUBECONFIG=here"}}
	h := NewHooks(common)
	t.Cleanup(func() { h.End(); h.Close() })
	return h, sink
}

func shell(script, when string) kubeburner.Hook {
	return kubeburner.Hook{Cmd: []string{"sh", "-c", script}, When: when}
}

func logsIn(sink *kubetest.Sink) (all []*record.Log) {
	for _, e := range sink.Events() {
		if l, is := e.Body.(*record.Log); is {
			all = append(all, l)
		}
	}
	return all
}

// A hook ends, fails, or is ended, and what it says is on record within bounds.
func TestHooks(t *testing.T) {
	for _, tt := range []struct {
		why, script string
		err         string // "" for none
		lines       string // of the record, all or the last
		patience    time.Duration
	}{
		{"one that says something", `echo "$KUBECONFIG"; pwd >/dev/null`, "", "here", time.Minute},
		{"one that fails", `echo one; echo why >&2; exit 3`, "hook beforeJobExecution of job j: sh -c 'echo one; echo why >&2; exit 3': exit status 3: why", "one\nwhy", time.Minute},
		{"one that never ends, with a child", `sleep 1000 & echo $!; wait`, "killed after 200ms (maxWaitTimeout)", "", 200 * time.Millisecond},
		{"one that leaves a child behind, which holds its output", `sleep 1000 & echo $!`, "", "", time.Minute},
		{"one that says many lines", `yes | head -c 10000000; echo end`, "", strings.Repeat("y\n", 19) + "end", time.Minute},
		{"one that says 1 GB without a line", `head -c 1000000000 /dev/zero`, "", "", time.Minute},
	} {
		h, sink := hooksOn(t)
		job := &kubeburner.Job{Name: "j", MaxWaitTimeout: tt.patience, Hooks: []kubeburner.Hook{shell(tt.script, kubeburner.BeforeJob), shell("echo > second", kubeburner.BeforeJob), shell("exit 9", kubeburner.AfterJob)}}
		err := h.Stage(t.Context(), job, kubeburner.BeforeJob)
		if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: %v", tt.why, err)
		}
		if _, second := os.Stat(filepath.Join(h.Load.Hooks.Dir, "second")); (second == nil) != (tt.err == "") {
			t.Errorf("%s: the second one: %v", tt.why, second)
		}
		said := ""
		if logs := logsIn(sink); len(logs) > 0 {
			said = strings.Join(logs[0].Lines, "\n")
		}
		if tt.lines != "" && said != tt.lines || len(said) > 16<<10 {
			t.Errorf("%s: %d bytes on record: %.200q", tt.why, len(said), said)
		}
		if strings.Contains(tt.script, "$!") && lives(said) {
			t.Errorf("%s: process %s lives on", tt.why, said)
		}
	}
}

// lives reports whether a process goes on although it is looked at many times.
func lives(pid string) bool {
	for range 100_000 {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return false
		}
	}
	return true
}

// A hook ends with the run that is stopped.
func TestHookOfAStoppedRun(t *testing.T) {
	h, sink := hooksOn(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	stopped := errors.New("stopped")
	cancel(stopped)
	job := &kubeburner.Job{Name: "j", MaxWaitTimeout: time.Hour, Hooks: []kubeburner.Hook{shell("sleep 1000", kubeburner.BeforeJob)}}
	if err := h.Stage(ctx, job, kubeburner.BeforeJob); !errors.Is(err, stopped) {
		t.Errorf("%v", err)
	}
	if logs := logsIn(sink); len(logs) != 1 || logs[0].Error != "the run ended" {
		t.Errorf("%+v", logs)
	}
}

// Hooks in the background go on until the end of the run, and one that fails before is heard of.
func TestHooksInTheBackground(t *testing.T) {
	h, sink := hooksOn(t)
	job := &kubeburner.Job{Name: "j", MaxWaitTimeout: time.Minute, Hooks: []kubeburner.Hook{
		shell("until test -e begun; do sleep 0.01; done", kubeburner.BeforeJob), // would wait for ever before the next one
		{Cmd: []string{"sh", "-c", "echo > begun; sleep 1000"}, When: kubeburner.BeforeJob, Background: true},
		{Cmd: []string{"sh", "-c", "echo over; exit 4"}, When: kubeburner.BeforeJob, Background: true},
		{Cmd: []string{"no-such-program"}, When: kubeburner.AfterJob, Background: true},
	}}
	if err := h.Stage(t.Context(), job, kubeburner.BeforeJob); err != nil {
		t.Fatal(err)
	}
	var failed []error
	for len(failed) == 0 && t.Context().Err() == nil {
		failed = h.heard("j")
	}
	if len(failed) != 1 || !strings.HasSuffix(failed[0].Error(), "exit status 4: over") || len(h.heard("j")) > 0 {
		t.Errorf("%v", failed)
	}
	if err := h.Stage(t.Context(), job, kubeburner.AfterJob); err == nil || !strings.Contains(err.Error(), `start hook afterJobExecution of job j: no-such-program`) {
		t.Errorf("%v", err)
	}
	sleeps := h.beside[0]
	h.End()
	if !sleeps.Ended() || len(logsIn(sink)) != 1 {
		t.Errorf("%+v", logsIn(sink))
	}
}

// Hooks run in kube-burner's order, and a failed one is a failed request.
func TestOrderOfHooks(t *testing.T) {
	h, sink := hooksOn(t)
	say := func(name string) (list []kubeburner.Hook) {
		for _, when := range []string{kubeburner.AfterGC, kubeburner.BeforeGC, kubeburner.AfterCleanup, kubeburner.BeforeCleanup, kubeburner.AfterJob, kubeburner.BeforeJob, kubeburner.BeforeChurn} {
			list = append(list, shell(fmt.Sprintf("echo %s.%s >> said", name, when), when))
		}
		return append(list, shell("exit 1", kubeburner.AfterJob))
	}
	c := &kubeburner.Config{Jobs: []kubeburner.Job{
		{Name: "a", JobType: kubeburner.Create, Cleanup: true, MaxWaitTimeout: time.Minute, Hooks: say("a")},
		{Name: "b", JobType: kubeburner.Create, GC: true, MaxWaitTimeout: time.Minute, Hooks: say("b")},
	}}
	sender := senderOf(t, h.Run)
	sender.Hooks = h
	p := &Population{Rendering: &Rendering{config: c, makers: make([][]*Maker, 2), watches: make([][]extraWatch, 2)}}
	for range 2 { // steps
		x := sender.Script(p, &Raising{parts: []part{{job: 0}, {job: 1}}}, func() int { return 0 }, nil, nil)
		if n, _, err := x.more(t.Context()); n != 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	if failed := h.AfterCleanup(t.Context(), c); len(failed) > 0 {
		t.Errorf("%v", failed)
	}
	said, _ := os.ReadFile(filepath.Join(h.Load.Hooks.Dir, "said"))
	const step = "a.beforeJobExecution a.afterJobExecution a.beforeCleanup b.beforeJobExecution b.afterJobExecution b.beforeCleanup "
	if got := strings.Join(strings.Fields(string(said)), " "); got != "a.beforeGC a.afterGC "+step+step+"b.afterCleanup" {
		t.Errorf("%s", got)
	}
	failures := 0
	for _, e := range sink.Events() {
		if s, is := e.Body.(*record.Slot); is && s.Outcome == record.SlotFailed && s.Slot == "run afterJobExecution of job "+s.Component {
			failures++
		}
	}
	if failures != 4 {
		t.Errorf("%d failures", failures)
	}
}

// Each iteration's hooks run before its first request, once.
func TestHooksOfIterations(t *testing.T) {
	h, _ := hooksOn(t)
	sender := senderOf(t, h.Run)
	sender.Hooks = h
	job := &kubeburner.Job{Name: "a", MaxWaitTimeout: time.Minute, Hooks: []kubeburner.Hook{shell("echo x >> said", kubeburner.OnEachIteration)}}
	x := &Script{sender: sender, pacing: &Pacing{Rendering: &Rendering{config: &kubeburner.Config{Jobs: []kubeburner.Job{*job}}}}}
	for _, iteration := range []int{0, 0, 1, 2, 2} {
		x.slots = append(x.slots, PlannedSlot{Slot: kubeburner.Slot{Iteration: iteration}, maker: &Maker{job: job}})
	}
	begun := x.beginning(t.Context())
	for i, want := range []int{1, 1, 2, 3, 3} {
		for !begun(i) && t.Context().Err() == nil {
		}
		said, _ := os.ReadFile(filepath.Join(h.Load.Hooks.Dir, "said"))
		if !begun(i) || len(strings.Fields(string(said))) != want {
			t.Errorf("request %d: %q", i, said)
		}
	}
}

// What is confirmed is what runs: a shell reads a command as it stands in the question.
func TestCommandLine(t *testing.T) {
	words := []string{"printf", "%s|", "echo 'a' > b", "", "--x=1", "$HOME `id` \"", "new\nline"}
	got, err := exec.Command("bash", "-c", commandLine(words)).Output()
	if want := strings.Join(words[2:], "|") + "|"; err != nil || string(got) != want {
		t.Errorf("%s: %q, want %q (%v)", commandLine(words), got, want, err)
	}
}
