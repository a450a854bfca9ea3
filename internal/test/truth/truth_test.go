package truth

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gonum.org/v1/gonum/stat"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/test/harness"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// row is one line of the table.
type row struct{ what, planted, found, bound string }

var table []row

// suite is the tests of this package that run the built program.
var suite = harness.New(os.Getenv)

// TestMain prints the table after the tests, and writes it where
// PLIMSOLL_TRUTH_OUT says.
func TestMain(m *testing.M) {
	code := suite.Run(m, os.Stderr)
	if len(table) == 0 {
		os.Exit(code)
	}
	text := markdown()
	if testing.Verbose() {
		fmt.Print(text)
	}
	if file := os.Getenv("PLIMSOLL_TRUTH_OUT"); file != "" {
		if err := os.WriteFile(file, []byte(preface+text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

const preface = `# Accuracy: what was planted, and what was found

` + "`make truth`" + ` writes this table. It marks the bounds that are missed, and then fails. Rows marked
"sim" use a simulated target on a virtual clock. Rows marked "lab" use a real
control plane with simulated nodes, on the machine that wrote the table.

`

func markdown() string {
	var b strings.Builder
	b.WriteString("| what | planted | found | bound |\n|---|---|---|---|\n")
	for _, r := range table {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", r.what, r.planted, r.found, r.bound)
	}
	return b.String()
}

func add(what, planted, bound, found string, args ...any) {
	table = append(table, row{what, planted, fmt.Sprintf(found, args...), bound})
}

// quiet is an observer that looks away.
type quiet struct{}

func (quiet) Status(engine.Status, func() fold.Live) {}
func (quiet) Stepped(result.Step)                    {}
func (quiet) Event(record.Event)                     {}
func (quiet) Chose(design.Next, [][]design.Next)     {}

// search runs the whole loop on a planted target on a virtual clock.
func search(t *testing.T, plan simulated.Plan, d design.Design, goal string, o engine.Options, seed uint64) result.Result {
	t.Helper()
	return planted(t, plan, d, result.Spec{Kind: simulated.Objects(), ExperimentKind: "limit"}, goal, o, seed)
}

// planted runs any experiment on a planted target on a virtual clock.
func planted(t *testing.T, plan simulated.Plan, d design.Design, spec result.Spec, goal string, o engine.Options, seed uint64) result.Result {
	t.Helper()
	g, err := slo.ParseGoal(goal)
	if err != nil {
		t.Fatal(err)
	}
	spec.Experiment, spec.Workload, spec.Goals, spec.Milestones = "truth", "sim", []slo.Goal{g}, simulated.Objects().Names()
	x := run.Experiment{Spec: spec, Design: d, Options: o}
	dir, err := record.CreateDir(filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		err = run.Run(context.Background(), context.Background(), dir, "truth", x, time.Now, quiet{}, func(_ context.Context, r system.Recorder) (system.Instance, error) {
			return simulated.New(plan, rand.New(rand.NewPCG(seed, 7)), r.Sink, r.Clock, r.Step), nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := run.Replay(dir, x)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func closed() engine.Options {
	return engine.Options{MaxInFlight: 32, Timeout: time.Minute, Hold: 10 * time.Second, ShortHold: 2 * time.Second}
}

func objects() simulated.Plan {
	return simulated.Plan{Places: 20, Servers: 4, Service: 5 * time.Millisecond,
		Latency: dist.Dist{Shape: dist.Uniform, A: 100 * time.Millisecond, B: 900 * time.Millisecond}}
}

var ladder = design.Search{From: 10, Step: 20, Max: 150, Resolution: 1, Need: 3, Of: 3}

func TestHardLimits(t *testing.T) {
	exact, planted := 0, []int{37, 60, 61, 110}
	for i, limit := range planted {
		plan := objects()
		plan.Limit = limit
		r := search(t, plan, ladder, "ready=all Ready", closed(), uint64(i))
		if r.Verdict == slo.Pass && *r.LoadLine.Level == float64(limit) && *r.LoadLine.LowestFailing == float64(limit+1) {
			exact++
		} else {
			t.Errorf("planted %d, found %+v: %s", limit, r.LoadLine, r.Why)
		}
	}
	add("hard limit (sim)", "37, 60, 61, 110 objects a place", "all exact, 3 of 3 confirmed", "%d of %d exact", exact, len(planted))
}

// A soft limit has no one level: a fill at 60 fails in half of all cases, by a
// logistic curve. What is confirmed three times out of three must hold with a
// probability of at least 37% in 95% of cases.
func TestSoftLimits(t *testing.T) {
	const at, width, runs = 60.0, 2.0, 12
	passes := func(level float64) float64 { return 1 - 1/(1+math.Exp(-(level-at)/width)) }
	confirmed, wrong, open := 0, 0, 0
	var lines []float64
	for seed := range uint64(runs) {
		plan := objects()
		plan.SoftAt, plan.SoftWidth = at, width
		r := search(t, plan, ladder, "ready=all Ready", closed(), seed)
		if r.Verdict != slo.Pass {
			open++
			continue
		}
		confirmed++
		lines = append(lines, *r.LoadLine.Level)
		if passes(*r.LoadLine.Level) < r.LoadLine.PassProbability {
			wrong++
		}
	}
	if wrong > 2 { // of 12, 2 or fewer have 98% of the probability at 5% each
		t.Errorf("%d of %d confirmed lines hold with less than is stated", wrong, confirmed)
	}
	if confirmed < runs/2 {
		t.Errorf("%d of %d searches of a soft limit decided nothing", open, runs)
	}
	slices.Sort(lines)
	add("soft limit with noise (sim)", fmt.Sprintf("half fail at %g, logistic of width %g", at, width), "at most 2 of 12 confirmed lines hold less often than stated",
		"%d of %d confirmed, between %g and %g; %d hold less often than stated; %d inconclusive", confirmed, runs, lines[0], lines[len(lines)-1], wrong, open)
}

// Where any fill fails in two of three cases, whatever the level, there is no
// line to be confirmed.
func TestFlakyTargets(t *testing.T) {
	const runs = 20
	confirmed := 0
	for seed := range uint64(runs) {
		plan := objects()
		plan.Limit, plan.Flaky = 60, 0.67
		if r := search(t, plan, ladder, "ready=all Ready", closed(), seed); r.Verdict == slo.Pass {
			confirmed++
		}
	}
	if confirmed > 3 {
		t.Errorf("%d of %d searches confirmed a line on a target that fails in two of three cases", confirmed, runs)
	}
	add("flaky target (sim)", "each fill fails with probability 0.67", "at most 3 of 20 confirm a line", "%d of %d confirm a line, the others fail or are inconclusive", confirmed, runs)
}

func TestRates(t *testing.T) {
	d := design.Search{From: 20, Step: 20, Max: 500, Resolution: 5, Need: 3, Of: 3}
	o := engine.Options{Open: true, Warmup: 10 * time.Second, MaxInFlight: 64, Timeout: 10 * time.Second, Hold: time.Minute, ShortHold: 12 * time.Second}
	var found []string
	for i, rate := range []float64{53, 101} {
		plan := objects()
		plan.Rate, plan.Servers, plan.Life = rate, 16, 10*time.Second
		r := search(t, plan, d, "startup=Ready p99 <= 2s; achieved >= 95%", o, uint64(i))
		want := math.Floor(rate/5) * 5
		if r.Verdict != slo.Pass || *r.LoadLine.Level != want || *r.LoadLine.LowestFailing != want+5 {
			t.Errorf("planted %g a second, found %+v: %s", rate, r.LoadLine, r.Why)
			continue
		}
		found = append(found, fmt.Sprintf("%g", *r.LoadLine.Level))
	}
	add("rate limit (sim)", "places at 53 and 101 a second", "the multiple of 5 below", "%s a second", strings.Join(found, " and "))
}

// Arms that are the same, through the whole loop: what is called better or
// worse is a false alarm. The margin is so small that only the interval keeps
// the verdict honest.
func TestArmsThatAreTheSame(t *testing.T) {
	const margin = 0.0001
	pairs := trials(400)
	if pairs < 400 {
		pairs = 12 // each makes hundreds of runs
	}
	plan := objects()
	plan.Latency = dist.Dist{Shape: dist.Lognormal, A: 300 * time.Millisecond, B: 2 * time.Second}
	arms := &result.ArmsSpec{Names: []string{"a", "b"}, Params: map[string]map[string]string{"a": {}, "b": {}}, Metric: "Ready p50", Margin: margin, Alpha: 0.05, Until: true, Least: 4, Most: 30, Among: 1}
	wrong, found := 0, make(map[string]int)
	for seed := range uint64(pairs) {
		d := design.AB{Arms: arms.Names, Levels: []float64{3}, Repeat: 30, Seed: seed}
		o := closed()
		o.Hold = time.Second
		r := planted(t, plan, d, result.Spec{Kind: simulated.Objects(), ExperimentKind: "ab", Arms: arms}, "ready=all Ready", o, seed)
		found[string(r.Verdict)]++
		if r.Verdict == "better" || r.Verdict == "worse" {
			wrong++
		}
	}
	if wrong > few(pairs, 0.05) {
		t.Errorf("of %d pairs of arms that are the same %d are called better or worse", pairs, wrong)
	}
	add("arms that are the same (sim)", "until decided, 4 to 30 blocks of 60 objects each, log-normal, margin 0.01%", "at most 33 of 400 better or worse", "%d of %d: %d better, %d worse", wrong, pairs, found["better"], found["worse"])
}

func TestIntervalsCover(t *testing.T) {
	const runs, batches, n = 2000, 20, 150
	rng := rand.New(rand.NewPCG(1, 2))
	covered := map[float64]int{}
	for range runs {
		parts := make([]stats.Sample, batches)
		for i := range parts {
			// What a batch has in common is a fifth of its variance.
			shift := math.Sqrt(0.2) * rng.NormFloat64()
			values := make([]float64, n)
			for j := range values {
				values[j] = math.Exp(shift + math.Sqrt(0.8)*rng.NormFloat64())
			}
			parts[i] = stats.NewSample(values, 0)
		}
		s := stats.Batched(parts...)
		for _, q := range []float64{0.5, 0.9} {
			truth := math.Exp(map[float64]float64{0.5: 0, 0.9: 1.2815515655446004}[q])
			if lo, hi := s.Interval(q, 0.95); lo <= truth && truth <= hi {
				covered[q]++
			}
		}
	}
	for q, k := range covered {
		if float64(k) < 0.94*runs {
			t.Errorf("intervals of p%g cover the truth in %d of %d cases", 100*q, k, runs)
		}
	}
	add("coverage of 95% intervals", "p50 and p90 of streams: 20 log-normal parts of 150, a fifth of the variance between parts", "at least 94%", "p50 %.1f%%, p90 %.1f%%", 100*float64(covered[0.5])/runs, 100*float64(covered[0.9])/runs)
}

// Delays planted on pods are found again, each for itself. How soon is a matter
// of the machine, so the bounds hold at a quarter of the rate that its own load
// line has, found in the same run, and 100 pods a second are shown without any:
// they may be all that its control plane can do. 'make truth' alone holds to
// them. What any quiet machine must show is tested always, with a load that any
// carries: that every pod is measured, at its own time, and that what is found
// goes with what was planted.
func TestMeasuredDelays(t *testing.T) {
	quiet := suite.Measures(t)
	p := suite.Program(t)
	strict := os.Getenv("PLIMSOLL_TRUTH_OUT") != ""
	type load struct {
		pods, pace, distinct int
		bound                bool
	}
	loads := []load{{100, 25, 75, false}}
	if strict {
		line := rateLine(t, p, quiet)
		add("load line of the rate axis (lab)", "", "found, for the delays' bound", "%g pods/s", line)
		pace := max(int(line/4), 1)
		pods := 100 * min(max(pace/6, 1), 4) // about as many as come in 16 s
		loads = []load{{pods, pace, pods * 2 / 3, true}, {2000, 100, 800, false}}
	}
	for _, load := range loads {
		t.Run(fmt.Sprintf("%d pods per second", load.pace), func(t *testing.T) {
			result, rows := plantedDelays(t, p, load.pods, load.pace, fmt.Sprintf("delays-%d", load.pace))
			step := result.Steps[0]
			var found, planted, off []float64
			distinct := make(map[int64]bool)
			for _, r := range rows {
				ready, okReady := r.Milestones["Ready"]
				scheduled, okScheduled := r.Milestones["Scheduled"]
				if !okReady || !okScheduled || r.PlantedDelay == 0 {
					t.Fatalf("%s: %+v", r.Slot, r)
				}
				took := ready - scheduled
				found, planted, off = append(found, float64(took)), append(planted, float64(r.PlantedDelay)), append(off, float64(took-r.PlantedDelay)/1e6)
				distinct[took/1000] = true
			}
			s := stats.NewSample(off, 0)
			p50, p99, least, follows := s.Quantile(0.5), s.Quantile(0.99), slices.Min(off), stat.Correlation(found, planted, nil)
			text := fmt.Sprintf("%d measured, median %.1f ms, p99 %.1f ms, least %.1f ms, %d distinct values at 1 ms, at %.0f pods/s", len(rows), 1e3*p50, 1e3*p99, 1e3*least, len(distinct), *step.OfferedRate)
			t.Logf("%s, correlation %.3f; %q", text, follows, result.Warnings)
			if len(rows) != load.pods {
				t.Fatalf("%d pods were asked for: %s", load.pods, text)
			}
			// Times of whole seconds would have three values, and a
			// correlation of 0.58.
			if len(distinct) < load.distinct || follows < 0.8 && (load.bound || !strict) {
				quiet.Needed(t)
				t.Errorf("%s, correlation %.3f", text, follows)
			}
			if !strict {
				return
			}
			bound := "every pod; shown without a bound"
			if load.bound {
				bound = "every pod; (Ready - Scheduled) - planted: median <= 10 ms, p99 <= 25 ms, at a quarter of the load line"
			}
			if load.bound && (p50 > 0.010 || p99 > 0.025) {
				quiet.Needed(t)
				t.Errorf("%s; %q", text, result.Warnings)
				text += "; MISSED on this machine"
			}
			add("start latency (lab)", fmt.Sprintf("uniform over 0.5-1.5 s on each of %d pods, at %d pods/s", load.pods, load.pace), fmt.Sprintf("%s; >= %d distinct values", bound, load.distinct), "%s", text)
			lag, lagBound := step.WatchLag, "p99 <= 250 ms"
			if !load.bound {
				lagBound = "shown without a bound"
			}
			add(fmt.Sprintf("watch lag at %d pods/s (lab)", load.pace), "canaries on the same watch", lagBound, "p50 %.1f ms, p99 %.1f ms over %d canaries, the change's own request included", 1e3**lag.P50, 1e3**lag.P99, lag.N)
			if *lag.P99 > 0.25 && load.bound {
				quiet.Needed(t)
				t.Errorf("watch lag p99 %v s", *lag.P99)
			}
			cost := 1e3 * result.Cost.LoadCPUSeconds / float64(result.Cost.Objects)
			add(fmt.Sprintf("own cost at %d pods/s (lab)", load.pace), "", "100 MB; at full speed 0.65 ms, see make bench", "%.2f ms CPU per pod, %.0f MB at most; kube-burner%s", cost, float64(result.Cost.LoadPeakMemoryBytes)/1e6, peer(t))
		})
	}
}

// rateLine returns this machine's own load line of the rate axis, in pods a second: of
// the coarse search that it takes to choose a load by.
func rateLine(t *testing.T, p *harness.Program, quiet *harness.Quiet) float64 {
	t.Helper()
	got := p.RunTo(t, "line", "limit", "node-density", "--axis", "rate", "--lab-nodes", "100", "--from", "20", "--step", "40", "--max", "300", "--resolution", "20", "--confirm", "1",
		"--life", "3s", "--hold", "6s", "-o", "json")
	r := p.Result(t, "line")
	t.Logf("exit code %d: %s; %q", got.Code, r.Why, r.Warnings)
	if r.LoadLine == nil || r.LoadLine.Level == nil {
		quiet.Needed(t)
		t.Fatalf("this machine's rate has no load line, not even of 20 pods/s: exit code %d: %s; %q", got.Code, r.Why, r.Warnings)
	}
	return *r.LoadLine.Level
}

// plantedDelays starts pods on 100 simulated nodes that delay each by a time of
// its own, and says what is on record of them.
func plantedDelays(t *testing.T, p *harness.Program, pods, pace int, out string) (result.Result, []record.ObjectRow) {
	t.Helper()
	got := p.Run(t, "sweep", "node-density", "--lab-nodes", "100", "--levels", strconv.Itoa(pods/100), "--pace", strconv.Itoa(pace), "--hold", "1s",
		"--lab-start-latency", "uniform:500ms,1.5s", "--slo", "all Ready", "--out", out, "-o", "json")
	if got.Code != 0 {
		t.Fatalf("exit code %d\n%s", got.Code, got.Stderr)
	}
	dir, err := record.OpenDir(filepath.Join(p.Dir, out))
	if err != nil {
		t.Fatal(err)
	}
	return p.Result(t, out), objectsOf(t, dir)
}

// objectsOf returns the objects of a recorded run.
func objectsOf(t *testing.T, dir record.Dir) []record.ObjectRow {
	t.Helper()
	var rows []record.ObjectRow
	b := judge.NewBuilder(result.Spec{Kind: simulated.Objects()})
	b.Rows = func(r record.ObjectRow) { rows = append(rows, r) }
	if _, err := record.ReadHistory(dir, func(e record.Event) error { b.Add(e); return nil }); err != nil {
		t.Fatal(err)
	}
	b.Finish(design.Sweep{}, record.Fidelity{}, "")
	return rows
}

// peer says what a kube-burner on the PATH costs, if there is one.
func peer(t *testing.T) string {
	path, err := exec.LookPath("kube-burner")
	if err != nil {
		return ": none on the PATH"
	}
	out, err := exec.Command(path, "version").CombinedOutput()
	t.Logf("%s: %s, %v", path, out, err)
	return " on the PATH: see make bench"
}

// A program that is stopped for a twentieth of a second now and then is late
// by its own doing: its run must say that it is worth nothing.
func TestARunLimitedByTheToolIsInvalid(t *testing.T) {
	p := suite.Program(t)
	w := p.Start(t, "sweep", "node-density", "--axis", "rate", "--levels", "20", "--lab-nodes", "10", "--life", "3s", "--hold", "5s", "--out", "stopped", "-o", "json")
	done := make(chan harness.Outcome, 1)
	go func() { done <- w.Wait() }()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	var got harness.Outcome
	for running := true; running; {
		select {
		case got = <-done:
			running = false
		case <-tick.C:
			if _, err := os.Stat(filepath.Join(p.Dir, "stopped", record.HistoryFile)); err != nil {
				continue // it has not begun
			}
			w.Signal(syscall.SIGSTOP)
			time.Sleep(60 * time.Millisecond)
			w.Signal(syscall.SIGCONT)
		}
	}
	r := p.Result(t, "stopped")
	if got.Code != 4 || r.Verdict != slo.Invalid {
		t.Errorf("exit code %d, verdict %s (%s)\n%s", got.Code, r.Verdict, r.Steps[0].VerdictWhy, got.Stderr)
	}
	add("a run limited by the tool (lab)", "stopped for 60 ms three times a second", "invalid, exit code 4", "%s, exit code %d: %s", r.Verdict, got.Code, r.Steps[0].VerdictWhy)
}
