package run

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// suite says how much of a test is made.
var suite = harness.New(os.Getenv)

// watcher keeps what an observer gets.
type watcher struct {
	mu       sync.Mutex
	statuses []engine.Status
	steps    []result.Step
	chosen   []design.Next
	onStatus func(engine.Status)
}

func (w *watcher) Status(s engine.Status, live func() fold.Live) {
	live()
	w.mu.Lock()
	w.statuses = append(w.statuses, s)
	w.mu.Unlock()
	if w.onStatus != nil {
		w.onStatus(s)
	}
}
func (w *watcher) Stepped(s result.Step)                  { w.steps = append(w.steps, s) }
func (w *watcher) Event(record.Event)                     {}
func (w *watcher) Chose(n design.Next, _ [][]design.Next) { w.chosen = append(w.chosen, n) }

func goals(t *testing.T, texts ...string) []slo.Goal {
	t.Helper()
	var list []slo.Goal
	for _, text := range texts {
		g, err := slo.ParseGoal(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, g)
	}
	return list
}

// trial is an experiment on a planted target.
type trial struct {
	plan    simulated.Plan
	design  design.Design
	goals   []string
	options engine.Options
	budget  time.Duration
	seed    uint64
	// kindOfRun is limit, unless it is said.
	kindOfRun string
	cancel    func(context.CancelFunc, *watcher) // installs a cut
}

func (tr trial) kind() record.ObjectKind {
	if tr.plan.Stream {
		return simulated.Requests()
	}
	return simulated.Objects()
}

// run makes the trial on a virtual clock and judges it from its record.
func (tr trial) run(t *testing.T) (r result.Result, w *watcher, dir record.Dir, err error) {
	t.Helper()
	if tr.goals == nil {
		tr.goals = []string{"ready=all Ready"}
	}
	if tr.options.MaxInFlight == 0 {
		tr.options.MaxInFlight = 32
	}
	if tr.options.Timeout == 0 {
		tr.options.Timeout, tr.options.Hold, tr.options.ShortHold = time.Minute, 10*time.Second, 2*time.Second
	}
	x := Experiment{
		Spec:    result.Spec{Experiment: "trial", Workload: "sim", Kind: tr.kind(), ExperimentKind: cmp.Or(tr.kindOfRun, "limit"), Axis: "objects", Unit: "objects/place", Goals: goals(t, tr.goals...), Milestones: tr.kind().Names()},
		Design:  tr.design,
		Options: tr.options,
		Budget:  tr.budget,
	}
	if dir, err = record.CreateDir(filepath.Join(t.TempDir(), "run")); err != nil {
		t.Fatal(err)
	}
	w = &watcher{}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		if tr.cancel != nil {
			tr.cancel(cancel, w)
		}
		err = Run(ctx, context.Background(), dir, "trial-1", x, time.Now, w, func(_ context.Context, r system.Recorder) (system.Instance, error) {
			return simulated.New(tr.plan, rand.New(rand.NewPCG(tr.seed, 1)), r.Sink, r.Clock, r.Step), nil
		})
	})
	r, replayErr := Replay(dir, x)
	if replayErr != nil {
		t.Fatal(replayErr)
	}
	again, replayErr := Replay(dir, x)
	if replayErr != nil || !reflect.DeepEqual(again, r) {
		t.Errorf("a second replay differs: %v", replayErr)
	}
	for _, s := range r.Steps {
		o := s.Account()
		if o.Intended != o.Created+o.CreateFailed+o.Dropped || o.Created != o.Ready+o.NeverReady+o.Lost {
			t.Errorf("step %d does not add up: %+v", s.ID, o)
		}
	}
	return r, w, dir, err
}

var limit = design.Search{From: 20, Step: 20, Max: 250, Resolution: 1, Need: 3, Of: 3}

func plain() simulated.Plan {
	return simulated.Plan{Places: 20, Limit: 110, Servers: 4, Service: 5 * time.Millisecond,
		Latency: dist.Dist{Shape: dist.Uniform, A: 100 * time.Millisecond, B: 900 * time.Millisecond}}
}

func TestAPlantedLimitIsFound(t *testing.T) {
	t.Parallel()
	r, w, _, err := trial{plan: plain(), design: limit}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	line := r.LoadLine
	if r.Verdict != slo.Pass || r.ExitCode != 0 || *line.Level != 110 || *line.LowestFailing != 111 || line.Confirmations != 3 || *line.EffectiveLevel != 110 {
		t.Errorf("verdict %s (%s), line %+v", r.Verdict, r.Why, line)
	}
	if line.Binding != "Unschedulable: the places are full" || line.PassProbability != 0.19 || !line.Exact {
		t.Errorf("binding %q, pass probability %v", line.Binding, line.PassProbability)
	}
	if len(w.steps) != len(r.Steps) || len(w.chosen) != len(r.Steps) || len(w.statuses) == 0 {
		t.Errorf("the observer saw %d steps and %d choices of %d", len(w.steps), len(w.chosen), len(r.Steps))
	}
	for i, s := range w.steps {
		if !reflect.DeepEqual(s, r.Steps[i]) {
			t.Errorf("step %d as judged live differs from the replay", s.ID)
		}
	}
	failing := r.Steps[5]
	if failing.Level != 120 || failing.Ending != record.EndStalled || failing.Objects.NeverReady != 200 || failing.Objects.Ready != 2200 || failing.Latency["Ready"].Censored != 200 || failing.Latency["Ready"].N != 400 {
		t.Errorf("the failing step: %+v", failing)
	}
	if p99 := r.Steps[0].Latency["Ready"].P99; p99 == nil || *p99 < 0.8 || *p99 > 1 {
		t.Errorf("p99 of a latency planted between 0.1 s and 0.9 s is %v", p99)
	}
}

// The bound keeps the server busy without a queue: with 4 servers of 5 ms the
// throughput is 800/s, and service times stay near 5 ms.
func TestTheBoundFindsTheServersWidth(t *testing.T) {
	for _, servers := range []int{1, 4, 16} {
		p := plain()
		p.Limit, p.Servers = 0, servers
		r, _, _, err := trial{plan: p, design: design.Sweep{Levels: []float64{100}}, options: engine.Options{MaxInFlight: 64, Timeout: time.Minute}}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		s := r.Steps[0]
		best := float64(servers) / 0.005
		if *s.OfferedRate < 0.85*best {
			t.Errorf("%d servers: %.0f/s of the %.0f/s that they can serve", servers, *s.OfferedRate, best)
		}
		if *s.APIRequests.P50 > 0.005*(1+6/float64(servers)) {
			t.Errorf("%d servers: the median request took %.1f ms, %d in flight", servers, 1000**s.APIRequests.P50, s.InFlightMax)
		}
	}
}

func TestAPaceIsKept(t *testing.T) {
	p := plain()
	r, _, _, err := trial{plan: p, design: design.Sweep{Levels: []float64{50}}, options: engine.Options{Pace: 100, MaxInFlight: 32, Timeout: time.Minute}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if rate := *r.Steps[0].OfferedRate; math.Abs(rate-100) > 2 {
		t.Errorf("offered %.1f/s at a pace of 100/s", rate)
	}
}

func TestFaultsOfTheTarget(t *testing.T) {
	t.Parallel()
	sweep := design.Sweep{Levels: []float64{20}}
	t.Run("failed requests count as objects that were never ready", func(t *testing.T) {
		p := plain()
		p.FailEvery = 100
		r, _, _, err := trial{plan: p, design: sweep, goals: []string{"ready=all Ready", "few=errors < 2%", "fast=Ready p50 <= 5s", "tail=Ready p99.5 <= 5s"}}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		s := r.Steps[0]
		if s.Objects.CreateFailed != 4 || s.Objects.Ready != 396 || s.Ending != record.EndStalled {
			t.Errorf("objects %+v, ended %s", s.Objects, s.Ending)
		}
		want := map[string]slo.Verdict{"ready": slo.Fail, "few": slo.Pass, "fast": slo.Pass, "tail": slo.Fail}
		for goal, verdict := range want {
			// The step stalled, so what never came is certain and judged.
			if s.Goals[goal] != verdict {
				t.Errorf("goal %s: %s, want %s", goal, s.Goals[goal], verdict)
			}
		}
		if s.Reasons[0].Reason != "HTTP 500" || s.Reasons[0].Count != 4 {
			t.Errorf("reasons %+v", s.Reasons)
		}
	})
	t.Run("429 is counted", func(t *testing.T) {
		p := plain()
		p.ThrottleEvery = 50
		r, _, _, _ := trial{plan: p, design: sweep}.run(t)
		if s := r.Steps[0]; s.Retries429 != 8 || s.Verdict != slo.Pass {
			t.Errorf("%d answers of 429, verdict %s", s.Retries429, s.Verdict)
		}
	})
	t.Run("what a cut watch hides is lost, and nothing passes", func(t *testing.T) {
		p := plain()
		p.LoseAfter = 300
		r, _, _, _ := trial{plan: p, design: sweep, goals: []string{"ready=all Ready", "fast=Ready p50 <= 5s"}}.run(t)
		s := r.Steps[0]
		if s.Objects.Lost == 0 || s.Objects.NeverReady != 0 || s.Goals["ready"] != slo.Inconclusive || s.Goals["fast"] != slo.Inconclusive || r.ExitCode != 3 {
			t.Errorf("objects %+v, goals %v, exit code %d", s.Objects, s.Goals, r.ExitCode)
		}
	})
	t.Run("a flaky target fails to confirm, or the line says how sure it is", func(t *testing.T) {
		p := plain()
		p.Flaky = 1
		r, _, _, _ := trial{plan: p, design: limit}.run(t)
		if r.Verdict != slo.Fail || r.LoadLine.Level != nil || !strings.Contains(r.LoadLine.Binding, "PlantedFailure") {
			t.Errorf("verdict %s, line %+v", r.Verdict, r.LoadLine)
		}
	})
	t.Run("a guard ends the step as a breach, and the search goes on once the target is well", func(t *testing.T) {
		p := plain()
		p.Limit, p.UnhealthyAt = 0, 1001
		p.Latency = dist.Dist{Shape: dist.Constant, A: 3 * time.Second}
		r, _, _, err := trial{plan: p, design: limit, options: engine.Options{
			MaxInFlight: 32, Timeout: time.Minute, Hold: 10 * time.Second, ShortHold: 2 * time.Second,
			Guards: []engine.Guard{{Name: "placesNotReady", Bound: 1}}}}.run(t)
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != slo.Pass || *r.LoadLine.Level != 50 {
			t.Errorf("verdict %s (%s), line %v", r.Verdict, r.Why, *r.LoadLine.Level)
		}
		var guarded *result.Step
		for i := range r.Steps {
			if r.Steps[i].Ending == record.EndGuard {
				guarded = &r.Steps[i]
				break
			}
		}
		if guarded == nil || guarded.Verdict != slo.Fail || !strings.Contains(guarded.VerdictWhy, "guard:placesNotReady") {
			t.Errorf("guarded step: %+v", guarded)
		}
	})
}

func TestARunThatIsCut(t *testing.T) {
	t.Parallel()
	t.Run("by its user", func(t *testing.T) {
		r, _, _, err := trial{plan: plain(), design: limit, cancel: func(cancel context.CancelFunc, w *watcher) {
			w.onStatus = func(s engine.Status) {
				if s.Step == 3 && s.Stage == engine.StageRaising {
					cancel()
				}
			}
		}}.run(t)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		last := r.Steps[len(r.Steps)-1]
		if r.Verdict != slo.Inconclusive || r.ExitCode != 3 || *r.LoadLine.Level != 40 || last.Verdict != slo.Inconclusive || last.Ending != record.EndInterrupted {
			t.Errorf("verdict %s, line %v, last step %s by %s", r.Verdict, *r.LoadLine.Level, last.Verdict, last.Ending)
		}
		if last.Objects.Lost == 0 {
			t.Errorf("objects whose follow-up was cut must be lost: %+v", last.Objects)
		}
	})
	t.Run("by its budget", func(t *testing.T) {
		r, _, _, err := trial{plan: plain(), design: limit, budget: 30 * time.Second}.run(t)
		if !errors.Is(err, ErrBudget) || r.Verdict != slo.Inconclusive || r.LoadLine.Level == nil || !strings.Contains(r.Why, "budget") {
			t.Errorf("error %v, verdict %s (%s), line %+v", err, r.Verdict, r.Why, r.LoadLine)
		}
	})
}

// Several goals have a line each, and the second search repeats no step that
// the first has made.
func TestTwoGoalsShareTheirSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector it takes half a minute, and shares no more between goroutines than others do")
	}
	t.Parallel()
	p := plain()
	one, _, _, _ := trial{plan: p, design: limit}.run(t)
	two, _, _, err := trial{plan: p, design: limit, goals: []string{"ready=all Ready", "same=all Ready; errors < 1%"}}.run(t)
	if err != nil || len(two.Steps) != len(one.Steps) || *two.Goals[1].LoadLine.Level != 110 {
		t.Errorf("%d steps for two goals, %d for one (%v)", len(two.Steps), len(one.Steps), err)
	}
}
