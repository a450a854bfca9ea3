package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// small is a trial whose every step is determined by its level, so that a run
// that was cut must come to what an unbroken one comes to.
func small() trial {
	return trial{
		plan: simulated.Plan{Places: 3, Limit: 12, Servers: 2, Service: 5 * time.Millisecond,
			Latency: dist.Dist{Shape: dist.Constant, A: 300 * time.Millisecond}},
		design: design.Search{From: 6, Step: 6, Max: 60, Resolution: 1, Need: 3, Of: 3},
		goals:  []string{"ready=all Ready", "fast=Ready p99 <= 5s"},
		options: engine.Options{MaxInFlight: 8, Timeout: 20 * time.Second, Hold: 5 * time.Second, ShortHold: time.Second,
			Guards: []engine.Guard{{Name: "placesNotReady", Bound: 1}}},
	}
}

func (tr trial) experiment(t *testing.T) Experiment {
	return Experiment{
		Spec:   result.Spec{Experiment: "trial", Workload: "sim", Kind: tr.kind(), ExperimentKind: "limit", Axis: "objects", Unit: "objects/place", Goals: goals(t, tr.goals...), Milestones: tr.kind().Names()},
		Design: tr.design, Options: tr.options, Budget: tr.budget,
	}
}

// resume goes on with a run, so many microseconds after the epoch of synctest.
func (tr trial) resume(t *testing.T, dir record.Dir, id string, wait time.Duration) (past *Past, err error) {
	t.Helper()
	x := tr.experiment(t)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(wait)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := &watcher{}
		if tr.cancel != nil {
			tr.cancel(cancel, w)
		}
		if past, err = OpenPast(dir, "trial-1", x); err != nil || past.Done {
			return
		}
		var p *part
		if p, err = resume(past, record.RunEvent{ID: id, Command: "resume"}, x, time.Now, w); err != nil {
			return
		}
		err = p.close(ctx, context.Background(), p.load(ctx, func(_ context.Context, r system.Recorder) (system.Instance, error) {
			return simulated.New(tr.plan, rand.New(rand.NewPCG(tr.seed, 1)), r.Sink, r.Clock, r.Step), nil
		}))
	})
	return past, err
}

// judged is the result of a record, by a replay that must be repeatable.
func (tr trial) judged(t *testing.T, dir record.Dir) result.Result {
	t.Helper()
	r, err := Replay(dir, tr.experiment(t))
	if err != nil {
		t.Fatal(err)
	}
	again, err := Judge(dir, tr.experiment(t))
	if err != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("a second replay differs: %v", err)
	}
	return r
}

// outcomes returns the outcomes of the steps that were not cut, one a line.
func outcomes(r result.Result) []string {
	var list []string
	for _, s := range r.Steps {
		if s.Ending == record.EndInterrupted {
			continue
		}
		effective := -1.0
		if s.EffectiveLevel != nil {
			effective = *s.EffectiveLevel
		}
		list = append(list, fmt.Sprintf("%s %g full=%v %s %v %+v %g %s", s.Purpose, s.Level, s.FullHold, s.Verdict, s.Goals, s.Account(), effective, s.Ending))
	}
	return list
}

// unnumbered leaves out the numbers of steps: one that was cut and made again
// has another.
func unnumbered(why string) string {
	return regexp.MustCompile(`step \d+`).ReplaceAllString(why, "step N")
}

// same compares a resumed run with an unbroken one.
func same(t *testing.T, what string, got, want result.Result) {
	t.Helper()
	if g, w := outcomes(got), outcomes(want); !reflect.DeepEqual(g, w) {
		t.Errorf("%s: the steps are\n%s\nwant\n%s", what, strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
	if got.Verdict != want.Verdict || got.ExitCode != want.ExitCode || unnumbered(got.Why) != unnumbered(want.Why) || !reflect.DeepEqual(got.LoadLine, want.LoadLine) {
		t.Errorf("%s: verdict %s (%s), line %+v\nwant %s (%s), %+v", what, got.Verdict, got.Why, got.LoadLine, want.Verdict, want.Why, want.LoadLine)
	}
	for i, g := range got.Goals {
		if w := want.Goals[i]; g.Verdict != w.Verdict || !reflect.DeepEqual(g.LoadLine, w.LoadLine) {
			t.Errorf("%s: goal %s is %s, %+v; want %s, %+v", what, g.Name, g.Verdict, g.LoadLine, w.Verdict, w.LoadLine)
		}
	}
	for i, s := range got.Steps {
		if s.ID != i+1 {
			t.Errorf("%s: step %d has the number %d", what, i+1, s.ID)
		}
		if s.Ending == record.EndInterrupted && s.Verdict != slo.Inconclusive {
			t.Errorf("%s: step %d was cut, and is %s", what, s.ID, s.Verdict)
		}
		if o := s.Account(); o.Intended != o.Created+o.CreateFailed+o.Dropped || o.Created != o.Ready+o.NeverReady+o.Lost {
			t.Errorf("%s: step %d does not add up: %+v", what, s.ID, o)
		}
	}
}

// text is a run's history as it is before it is compressed.
func text(t *testing.T, dir record.Dir) []byte {
	t.Helper()
	data, err := os.ReadFile(dir.Path(record.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	unzip, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer unzip.Close()
	plain, err := unzip.DecodeAll(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// cutTo is a run directory as a killed run leaves it: the history ends after
// so many bytes of its text. The last frame lacks its end, those of whole steps do not.
func cutTo(t *testing.T, from record.Dir, plain []byte) record.Dir {
	t.Helper()
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	if len(plain) > 0 { // else it was killed before it had described its target
		environment, err := os.ReadFile(from.Path(record.EnvironmentFile))
		if err != nil {
			t.Fatal(err)
		}
		if err := dir.WriteFile(record.EnvironmentFile, environment); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.Create(dir.Path(record.HistoryFile))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	zip, err := zstd.NewWriter(file, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(plain) {
		if _, err := zip.Write(line); err != nil {
			t.Fatal(err)
		}
		if bytes.HasSuffix(line, []byte("\n")) && bytes.Contains(line, []byte(`"kind":"step"`)) &&
			(bytes.Contains(line, []byte(`"phase":"start"`)) || bytes.Contains(line, []byte(`"phase":"end"`))) {
			if err := zip.Close(); err != nil {
				t.Fatal(err)
			}
			zip.Reset(file)
		}
	}
	if err := zip.Flush(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Wherever a run is killed, in the middle of a line too, it goes on to the same
// verdict by the same steps; and so it does when it is killed again.
func TestAKilledRunGoesOnToTheSameVerdict(t *testing.T) {
	t.Parallel()
	tr := small()
	whole, _, dir, err := tr.run(t)
	if err != nil || whole.Verdict != slo.Pass || *whole.LoadLine.Level != 12 {
		t.Fatalf("the unbroken run: %v, %+v", err, whole.LoadLine)
	}
	plain := text(t, dir)
	cuts, places := 0, suite.Size(6, 29)
	if testing.Short() {
		places = 5 // under the race detector each takes seconds
	}
	for size := 0; size < len(plain); size += len(plain)/places + 1 {
		cuts++
		what := fmt.Sprintf("cut at %d of %d", size, len(plain))
		cut := cutTo(t, dir, plain[:size])
		// The wall clock of synctest begins again: without a wait it was set
		// back, with one the run stood still for an hour.
		wait := time.Duration(cuts%2) * time.Hour
		past, err := tr.resume(t, cut, "trial-2", wait)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if past.Done {
			continue // nothing was missing but the end
		}
		got := tr.judged(t, cut)
		same(t, what, got, whole)
		warnings := strings.Join(got.Warnings.Lines(), "\n")
		if !strings.Contains(warnings, "the run was resumed ") || wait == 0 && size > 0 && strings.Contains(warnings, "was set back") != strings.Contains(warnings, "an unknown time") {
			t.Errorf("%s: warnings %q", what, got.Warnings)
		}
		orderly(t, what, cut)

		// Killed again in its second part, at its middle.
		second := text(t, cut)
		from := strings.Index(string(second), `"phase":"resume"`)
		again := cutTo(t, cut, second[:(from+len(second))/2])
		if past, err = tr.resume(t, again, "trial-3", 3*time.Hour); err != nil {
			t.Fatalf("%s, and again: %v", what, err)
		}
		if want := []string{"trial-1", "trial-2"}; !reflect.DeepEqual(past.IDs, want) {
			t.Errorf("%s, and again: what the run has made is named %q, want %q", what, past.IDs, want)
		}
		same(t, what+", and again", tr.judged(t, again), whole)
	}
	if cuts < places {
		t.Errorf("%d cuts only", cuts)
	}
}

// orderly checks that time never goes back across a resumption.
func orderly(t *testing.T, what string, dir record.Dir) {
	t.Helper()
	var latest, bound record.Micros
	_, err := record.ReadHistory(dir, func(e record.Event) error {
		if run, ok := e.Body.(*record.RunEvent); ok && run.Phase == record.PhaseResume {
			if e.T <= latest {
				t.Errorf("%s: resumed at %d, after an event at %d", what, e.T, latest)
			}
			bound = e.T
		}
		if e.T < bound {
			t.Errorf("%s: an event at %d after it was resumed at %d", what, e.T, bound)
		}
		latest = max(latest, e.T)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A run that its user cut, or its budget, goes on as well: with a budget of its
// own for each part, until it is done.
func TestARunGoesOnPartByPart(t *testing.T) {
	tr := small()
	whole, _, _, err := tr.run(t)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		why    string
		budget time.Duration
		cancel func(context.CancelFunc, *watcher)
		errs   error
	}{
		{"by its budget", 25 * time.Second, nil, ErrBudget},
		{"by its user, in the third step of each part", 0, func(cancel context.CancelFunc, w *watcher) {
			first := 0
			w.onStatus = func(s engine.Status) {
				if first == 0 {
					first = s.Step
				}
				if s.Step == first+2 && s.Stage == engine.StageWaiting {
					cancel()
				}
			}
		}, context.Canceled},
	} {
		cut := tr
		cut.budget, cut.cancel = c.budget, c.cancel
		_, _, dir, err := cut.run(t)
		parts := 1
		for ; errors.Is(err, c.errs); parts++ {
			if parts > 20 {
				t.Fatalf("%s: no end in sight", c.why)
			}
			_, err = cut.resume(t, dir, fmt.Sprintf("trial-%d", parts+1), time.Duration(parts)*time.Hour)
		}
		if err != nil || parts < 3 {
			t.Errorf("%s: %d parts, %v", c.why, parts, err)
		}
		got := tr.judged(t, dir)
		same(t, c.why, got, whole)
		resumed := 0
		for _, text := range got.Warnings.Lines() {
			if strings.HasPrefix(text, "the run was resumed after step ") && strings.Contains(text, "after it had ended ("+c.errs.Error()+")") && strings.Contains(text, "was cut off and is repeated") {
				resumed++
			}
		}
		if resumed != parts-1 {
			t.Errorf("%s: %d parts, and %d warnings of it: %q", c.why, parts, resumed, got.Warnings)
		}
		// What is finished stays as it is.
		before := text(t, dir)
		if past, err := tr.resume(t, dir, "late", 100*time.Hour); err != nil || !past.Done || !reflect.DeepEqual(text(t, dir), before) {
			t.Errorf("%s: a finished run was gone on with: %v", c.why, err)
		}
	}
}

// A sweep goes on with the level that was cut, also when it was the last.
func TestASweepGoesOn(t *testing.T) {
	t.Parallel()
	density := small()
	density.design = design.Sweep{Levels: []float64{4, 14, 8}}
	rate := trial{plan: line(12), goals: inTime, options: openLoop(), design: design.Sweep{Levels: []float64{6, 16, 8}}}
	rate.plan.Latency = dist.Dist{Shape: dist.Constant, A: 300 * time.Millisecond}
	for _, tr := range []trial{density, rate} {
		goesOn(t, tr)
	}
}

// goesOn cuts a sweep of three levels, the second of which fails, in each of
// its steps.
func goesOn(t *testing.T, tr trial) {
	t.Helper()
	whole, _, _, err := tr.run(t)
	if err != nil || whole.Verdict != slo.Fail {
		t.Fatal(whole.Verdict, err)
	}
	for step := 1; step <= 3; step++ {
		cut := tr
		cut.cancel = func(cancel context.CancelFunc, w *watcher) {
			w.onStatus = func(s engine.Status) {
				if s.Step == step && s.Stage != engine.StageEmptying {
					cancel()
				}
			}
		}
		_, _, dir, err := cut.run(t)
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := tr.resume(t, dir, "trial-2", time.Hour); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("cut in step %d", step), tr.judged(t, dir), whole)
	}
}

// What a guard has ended is not made again, even if the run was killed before
// the end of its step was on record.
func TestAGuardsStepIsNotMadeAgain(t *testing.T) {
	tr := small()
	tr.plan.Limit, tr.plan.UnhealthyAt = 0, 31
	tr.plan.Latency = dist.Dist{Shape: dist.Constant, A: 3 * time.Second}
	whole, _, dir, err := tr.run(t)
	if err != nil || *whole.LoadLine.Level != 10 {
		t.Fatalf("%v, %+v", err, whole.LoadLine)
	}
	plain := string(text(t, dir))
	tripped := strings.Index(plain, `"kind":"guard"`)
	cut := cutTo(t, dir, []byte(plain[:tripped+strings.Index(plain[tripped:], "\n")+1]))
	if _, err := tr.resume(t, cut, "trial-2", time.Hour); err != nil {
		t.Fatal(err)
	}
	got := tr.judged(t, cut)
	if got.Verdict != slo.Pass || *got.LoadLine.Level != 10 || len(got.Steps) != len(whole.Steps) {
		t.Errorf("verdict %s (%s), %d steps, want %d", got.Verdict, got.Why, len(got.Steps), len(whole.Steps))
	}
	if s := got.Steps[1]; s.Verdict != slo.Fail || s.Ending != record.EndInterrupted || !strings.Contains(s.VerdictWhy, "guard:placesNotReady") {
		t.Errorf("the guarded step: %s (%s), ended %s", s.Verdict, s.VerdictWhy, s.Ending)
	}
}

// A record that is not the plan's, or a target that is not the record's, is
// refused.
func TestContradictions(t *testing.T) {
	tr := small()
	_, _, dir, err := tr.run(t)
	if err != nil {
		t.Fatal(err)
	}
	plain := text(t, dir)
	for _, c := range []struct {
		why    string
		id     string
		change func(*Experiment)
		want   string
	}{
		{"the plan of another run", "trial-9", func(*Experiment) {}, "of run trial-9"},
		{"another first level", "trial-1", func(x *Experiment) {
			x.Design = design.Search{From: 5, Step: 6, Max: 60, Resolution: 1, Need: 3, Of: 3}
		}, "step 1 is on record at 6 (ramp), but by the plan it is at 5 (ramp)"},
		{"fewer levels", "trial-1", func(x *Experiment) { x.Design = design.Search{From: 6, Step: 6, Max: 6, Resolution: 1, Need: 3, Of: 3} }, "step 2 is on record at 12 (ramp), but by the plan it is at 6 (confirm)"},
		{"fewer confirmations", "trial-1", func(x *Experiment) {
			x.Design = design.Search{From: 6, Step: 6, Max: 60, Resolution: 1, Need: 1, Of: 1}
		}, "by the plan it is at 13 (upper)"},
		{"another kind", "trial-1", func(x *Experiment) { x.Design = design.Sweep{Levels: []float64{6}} }, "step 1 is on record at 6 (ramp)"},
		{"other objectives", "trial-1", func(x *Experiment) { x.Spec.Goals = goals(t, "ready=Ready p50 <= 1ms") }, "the run was done"},
	} {
		x := tr.experiment(t)
		c.change(&x)
		_, err := OpenPast(cutTo(t, dir, plain), c.id, x)
		var contradiction *ContradictionError
		if !errors.As(err, &contradiction) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.why, err, c.want)
		}
	}
	// A change that no step contradicts is none: here the search may go on.
	x := tr.experiment(t)
	x.Design = design.Search{From: 6, Step: 6, Max: 60, Resolution: 1, Need: 4, Of: 4}
	if past, err := OpenPast(dir, "trial-1", x); err == nil || past != nil {
		t.Errorf("the upper bound was made after three confirmations of four: %v", err)
	}

	cut := cutTo(t, dir, plain[:len(plain)/2])
	x = tr.experiment(t)
	x.Plan = "b"
	marked := strings.Replace(string(plain[:len(plain)/2]), `"id":"trial-1"`, `"id":"trial-1","plan":"a"`, 1)
	if _, err := OpenPast(cutTo(t, dir, []byte(marked)), "trial-1", x); err == nil || !strings.Contains(err.Error(), "the plan differs") {
		t.Errorf("a plan of another fingerprint: %v", err)
	}

	var environment record.Environment
	if err := cut.ReadJSON(record.EnvironmentFile, &environment); err != nil {
		t.Fatal(err)
	}
	environment.Target = record.TargetNaming{Kind: "cluster", Name: "prod"}
	if err := cut.WriteJSON(record.EnvironmentFile, environment); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.resume(t, cut, "trial-2", 0); err == nil || !strings.Contains(err.Error(), `loaded cluster "prod", this is simulated "simulated"`) {
		t.Errorf("another target: %v", err)
	}
	// That is on record, and the right target can still be given.
	environment.Target = record.TargetNaming{Kind: "simulated", Name: "simulated"}
	if err := cut.WriteJSON(record.EnvironmentFile, environment); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.resume(t, cut, "trial-3", 0); err != nil {
		t.Error(err)
	}
}

func TestWhatHasChangedIsSaid(t *testing.T) {
	environment := func(cpus int, server string, pods ...string) record.Environment {
		e := record.Environment{
			Facts:  append(record.Host{CPUs: cpus, Kernel: "6.1"}.Facts(false), record.Fact{Name: "server", What: "the server's version", Value: server}),
			Places: &record.Places{Facts: []record.Fact{{Name: "pods", What: "allocatable pods"}}},
		}
		for i, n := range pods {
			e.Places.Add(fmt.Sprint(i), record.Real, n)
		}
		return e
	}
	was, is := environment(4, "1.3", "110", "110"), environment(2, "1.4", "250")
	is.Facts = append(is.Facts, record.Version("other", "1")) // which is on record now alone
	want := []string{
		"processors of plimsoll's machine: it was 4 and is 2", "the server's version: it was 1.3 and is 1.4", "allocatable pods: it was 110 and is 250",
	}
	if got := changes(was, is); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := changes(was, was); got != nil {
		t.Errorf("nothing has changed, and it says %q", got)
	}
}
