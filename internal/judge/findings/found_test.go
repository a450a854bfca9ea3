package findings

import (
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/compare"
	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/judge/verdict"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// judged is a whole step from empty with a verdict on the goal ready.
func judged(id int, level float64, v slo.Verdict, change func(*verdict.Judged)) *verdict.Judged {
	s := &verdict.Judged{}
	s.ID, s.Level, s.LevelReached, s.FromEmpty, s.FullHold, s.Purpose = id, level, level, true, true, record.PurposeConfirm
	s.Verdict, s.Goals = v, map[string]slo.Verdict{"ready": v}
	if change != nil {
		change(s)
	}
	return s
}

// A line states what its confirmations mean, where half of the steps hold, what was done a
// second, and what bound the level above.
func TestLineOf(t *testing.T) {
	spec := &result.Spec{Axis: "pods-per-node", Unit: "pods/node"}
	search := design.Search{Resolution: 1, Need: 3, Of: 3}
	refused := func(s *verdict.Judged) {
		s.Exact, s.Binding, s.EffectiveLevel = true, map[string]string{"ready": "Too many pods"}, new(110.0)
	}
	bracketed := func(s *verdict.Judged) { s.Purpose, s.FromEmpty, s.FullHold = record.PurposeBracket, false, false }
	held := []*verdict.Judged{judged(1, 110, slo.Pass, bracketed), judged(2, 110, slo.Pass, nil), judged(3, 110, slo.Pass, nil), judged(4, 110, slo.Pass, nil), judged(5, 111, slo.Fail, refused)}
	found := design.Outcome{Line: new(110.0), LowestFailing: new(111.0), Confirmations: 3}

	if LineOf(spec, held, design.Sweep{}, "ready", found) != nil {
		t.Error("a sweep seeks no line")
	}
	line := LineOf(spec, held, search, "ready", found)
	if !line.Exact || *line.Estimate != 110 || *line.Interval.Lo != 110 || *line.Interval.Hi != 111 || line.Binding != "Too many pods" || *line.EffectiveLevel != 110 {
		t.Errorf("an exact line: %+v", line)
	}
	// Three of three, by the seven levels that the search may have chosen from.
	if line.ConfirmationsMade != 3 || line.PassProbability != 0.19 || line.Sustained != nil || line.LevelAsked != nil {
		t.Errorf("its confirmations: %+v", line)
	}

	for _, c := range []struct {
		why    string
		change *verdict.Judged
	}{
		{"a pass above", judged(6, 112, slo.Pass, nil)},
		{"a breach below", judged(6, 109, slo.Fail, refused)},
		{"a breach at the failing level that chance may have made", judged(6, 111, slo.Fail, nil)},
	} {
		line := LineOf(spec, append(slices.Clone(held), c.change), search, "ready", found)
		if line.Exact || line.Estimate == nil || *line.Interval.Lo > 110 || *line.Interval.Hi < 111 {
			t.Errorf("%s: %+v", c.why, line)
		}
	}

	few := found
	few.Confirmations = 2
	if line := LineOf(spec, held, search, "ready", few); line.Exact || line.Estimate != nil || line.Interval != nil {
		t.Errorf("too few confirmations: %+v", line)
	}
	open := LineOf(spec, held[:4], search, "ready", design.Outcome{Line: new(110.0), Confirmations: 3})
	if open.Estimate != nil || open.Interval == nil || open.Interval.Hi != nil || open.Binding != "" {
		t.Errorf("nothing failed: %+v", open)
	}
	if none := LineOf(spec, nil, search, "ready", design.Outcome{}); none.Estimate != nil || none.PassProbability != 0 || none.Exact {
		t.Errorf("no step: %+v", none)
	}

	// A step that is made again, or is not decided, counts for nothing.
	unsure := append(slices.Clone(held), judged(6, 110, slo.Inconclusive, nil), judged(7, 110, slo.Fail, func(s *verdict.Judged) { s.Again = true }))
	if line := LineOf(spec, unsure, search, "ready", found); !line.Exact || line.ConfirmationsMade != 3 {
		t.Errorf("steps that decide nothing: %+v", line)
	}

	rates := []*verdict.Judged{judged(1, 100, slo.Pass, func(s *verdict.Judged) { s.Open, s.AchievedRate, s.LevelReached = true, new(96.0), 96 }), judged(2, 100, slo.Pass, func(s *verdict.Judged) { s.Open, s.AchievedRate, s.LevelReached = true, new(98.0), 96 })}
	line = LineOf(spec, rates, search, "ready", design.Outcome{Line: new(96.0), LineAsked: new(100.0), Confirmations: 2})
	if line.LevelAsked == nil || *line.LevelAsked != 100 || line.Sustained == nil || *line.Sustained != 97 || line.ConfirmationsMade != 2 {
		t.Errorf("another level was made than was asked for: %+v", line)
	}
}

// What broke first is that of the step that decided, with what follows from it.
func TestBrokeFirst(t *testing.T) {
	breach := func(kind result.BreachKind, decided bool) result.Breach {
		return result.Breach{What: string(kind), Kind: kind, Decided: decided}
	}
	with := func(list ...result.Breach) func(*verdict.Judged) {
		return func(s *verdict.Judged) { s.Breaches = list }
	}
	line := []result.GoalResult{{Name: "ready", LoadLine: &result.LoadLine{LowestFailing: new(111.0), LowestFailingAsked: new(112.0)}}}
	goal := []result.GoalResult{{Name: "ready"}}
	const limit = "a limit of one or more components was reached; the functional maximum is lower than these conditions"
	const nothing = "nothing was used up: that is not a limit of the load, and the step should be made again"
	mistaken := func(s *verdict.Judged) {
		s.Breaches = []result.Breach{breach(result.BreachErrors, true)}
		s.Reasons = []result.Reason{{Reason: "HTTP 422", Certain: 3}}
	}
	missing := breach(result.BreachMissing, true)
	for _, c := range []struct {
		why, kind string
		steps     []*verdict.Judged
		goals     []result.GoalResult
		step      int // 0 for none
		what      result.BreachKind
		says      string
	}{
		{"every goal held", "limit", []*verdict.Judged{judged(1, 110, slo.Pass, with(breach(result.BreachWatch, false)))}, line, 0, "", ""},
		{"the last at the lowest failing level that was asked for", "limit", []*verdict.Judged{judged(1, 112, slo.Fail, with(missing)), judged(2, 120, slo.Fail, with(missing)), judged(3, 112, slo.Fail, with(missing))}, line, 3, result.BreachMissing, limit},
		{"the lowest level of a sweep", "sweep", []*verdict.Judged{judged(1, 120, slo.Fail, with(missing)), judged(2, 110, slo.Fail, with(missing))}, goal, 2, result.BreachMissing, ""},
		{"what is usual broke nothing", "sweep", []*verdict.Judged{judged(1, 120, slo.Fail, with(result.Breach{Kind: result.BreachThrottling, Usual: true}, missing))}, goal, 1, result.BreachMissing, ""},
		{"the workload asks for what is not allowed", "limit", []*verdict.Judged{judged(1, 112, slo.Fail, mistaken)}, line, 1, result.BreachErrors, "the server refused the content of requests: a mistake in the workload, not a limit"},
		{"an actor did nothing", "limit", []*verdict.Judged{judged(1, 112, slo.Fail, with(breach(result.BreachActor, false), missing))}, line, 1, result.BreachActor, nothing},
		{"all stood still, and latencies broke", "limit", []*verdict.Judged{judged(1, 112, slo.Fail, with(breach(result.BreachStandstill, false), breach(result.BreachLatency, true)))}, line, 1, result.BreachStandstill, "all writes stood still before anything else broke: that is not a limit of the load, and the step should be made again"},
		{"all stood still, and objects are missing", "limit", []*verdict.Judged{judged(1, 112, slo.Fail, with(breach(result.BreachStandstill, false), missing))}, line, 1, result.BreachStandstill, limit},
		{"a step that is made again decides nothing", "sweep", []*verdict.Judged{judged(1, 120, slo.Fail, func(s *verdict.Judged) { s.Again, s.Breaches = true, []result.Breach{missing} })}, goal, 0, "", ""},
		{"an actor did nothing in a step that is not decided", "sweep", []*verdict.Judged{judged(1, 120, slo.Inconclusive, with(breach(result.BreachActor, false)))}, goal, 1, result.BreachActor, nothing},
		{"a place went in a step that is not decided", "sweep", []*verdict.Judged{judged(1, 120, slo.Inconclusive, with(breach(result.BreachPlace, false)))}, goal, 1, result.BreachPlace, ""},
		{"anything else in a step that is not decided", "sweep", []*verdict.Judged{judged(1, 120, slo.Inconclusive, with(breach(result.BreachWatch, false)))}, goal, 0, "", ""},
		{"no breach is known of the step that failed", "sweep", []*verdict.Judged{judged(1, 120, slo.Fail, nil)}, goal, 0, "", ""},
	} {
		got := BrokeFirst(c.kind, c.steps, c.goals)
		switch {
		case got == nil:
			if c.step != 0 {
				t.Errorf("%s: nothing broke", c.why)
			}
		case got.Step != c.step || got.Breach.Kind != c.what || got.Says != c.says || !got.Breach.First || got.Goal != "ready":
			t.Errorf("%s: %+v", c.why, got)
		}
	}
}

// The breaches of all steps are in order of time, with guards that no step was under.
func TestBreachesInOrder(t *testing.T) {
	steps := []*verdict.Judged{judged(1, 10, slo.Pass, nil), judged(2, 20, slo.Fail, func(s *verdict.Judged) {
		s.Breaches = []result.Breach{{Step: 2, At: 5, What: "a", Kind: result.BreachErrors}, {Step: 2, At: 9, What: "b", Kind: result.BreachErrors}}
	})}
	list := BreachesInOrder(steps, []result.Breach{{At: 7, What: "guard:x", Kind: result.BreachGuard}}, &result.BrokeFirst{Step: 2, Breach: result.Breach{What: "b", Kind: result.BreachErrors}})
	var text []string
	for _, b := range list {
		mark := ""
		if b.First {
			mark = " first"
		}
		text = append(text, b.What+mark)
	}
	if got := strings.Join(text, ", "); got != "a, guard:x, b first" {
		t.Errorf("%q", got)
	}
	if list := BreachesInOrder(nil, nil, nil); list == nil || len(list) != 0 {
		t.Errorf("no breach is an empty list: %v", list)
	}
}

// The first step with a known failure names it.
func TestDiagnosisOf(t *testing.T) {
	full, slow := &signature.Signature{Name: "full", Title: "Full\nnodes", Explain: "no room", Remedy: "more nodes"}, &signature.Signature{Name: "slow", Title: "Slow disk"}
	hit := func(s *signature.Signature, first record.Micros, count int) func(*verdict.Judged) {
		return func(j *verdict.Judged) {
			j.Hits = []signature.Hit{{Signature: s, Count: count, First: first, Matches: []signature.Match{{T: first, Object: "ns/a", Text: "Too many\npods"}}}}
		}
	}
	list := DiagnosisOf(&result.Spec{Start: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}, []*verdict.Judged{
		judged(1, 10, slo.Pass, hit(slow, 1e6, 1)), judged(2, 20, slo.Pass, hit(full, 2e6, 2)), judged(3, 30, slo.Fail, hit(full, 3e6, 4)), judged(4, 30, slo.Fail, hit(full, 4e6, 8)),
		judged(5, 30, slo.Fail, func(s *verdict.Judged) { hit(slow, 5e6, 16)(s); s.Again = true }),
	})
	if len(list) != 2 || list[0].Signature != "full" || list[1].Signature != "slow" {
		t.Fatalf("%+v", list)
	}
	if d := list[0]; !d.Failing || d.Step != 3 || d.Count != 14 || !slices.Equal(d.Steps, []int{2, 3, 4}) || d.Evidence != "14 times, first ns/a: Too many pods" || d.First != "2030-01-02T03:04:08.000000Z" || d.Title != "Full nodes" || len(d.Matches) != 1 || d.Matches[0].Text != "Too many pods" {
		t.Errorf("%+v", d)
	}
	if d := list[1]; d.Failing || d.Step != 1 || d.Count != 1 {
		t.Errorf("%+v", d)
	}
	if list := DiagnosisOf(&result.Spec{}, nil); list == nil || len(list) != 0 {
		t.Errorf("nothing is an empty list: %v", list)
	}
}

// The reader is warned of whatever may have changed the figures.
func TestWarningsOf(t *testing.T) {
	busy := func(others float64) func(*verdict.Judged) {
		return func(s *verdict.Judged) {
			s.Neighbours = []result.Neighbour{{What: result.Processors, CPUs: 2, Others: others, Wanted: 95}}
		}
	}
	latency := func(sending, p50 float64) func(*verdict.Judged) {
		return func(s *verdict.Judged) {
			s.APIRequests.Sending, s.Latency = sending, result.Latencies{"Ready": {P50: &p50}}
		}
	}
	for _, c := range []struct {
		why   string
		steps []*verdict.Judged
		want  []string
	}{
		{"nothing", []*verdict.Judged{judged(1, 10, slo.Pass, nil), judged(2, 10, slo.Pass, latency(0.1, 2))}, nil},
		{"others used the machine in two steps", []*verdict.Judged{judged(1, 10, slo.Pass, func(s *verdict.Judged) { s.Others = 20 }), judged(2, 10, slo.Pass, nil), judged(3, 10, slo.Pass, func(s *verdict.Judged) { s.Others = 31.6 })},
			[]string{"steps 1, 3: other programs used up to 32% of this machine's CPUs: the results include their load"}},
		{"neighbours in a step that held", []*verdict.Judged{judged(1, 10, slo.Pass, busy(60))}, []string{"step 1: other programs used 60% of this machine's processors (2); all programs together wanted 95%: this step passed anyway"}},
		{"neighbours in two steps that held", []*verdict.Judged{judged(1, 10, slo.Pass, busy(60)), judged(2, 10, slo.Pass, busy(70))}, []string{"steps 1, 2: other programs used up to 70% of this machine's processors (2); all programs together wanted 95%: these steps passed anyway"}},
		{"neighbours in a step that did not", []*verdict.Judged{judged(1, 10, slo.Invalid, busy(60))}, []string{"step 1: other programs used 60% of this machine's processors (2); all programs together wanted 95%: slow results in this step come from the busy machine, not from the target"}},
		{"more at once than the limit", []*verdict.Judged{judged(1, 10, slo.Pass, func(s *verdict.Judged) {
			s.Concurrent = &result.Concurrent{Concurrent: record.Concurrent{From: "Created", To: "Ready", Limit: 5}, Most: 6}
		})}, []string{"step 1: 6 objects were between Created and Ready at once, more than the target's own limit of 5"}},
		{"sending took long", []*verdict.Judged{judged(1, 10, slo.Pass, latency(0.3, 2))}, []string{"step 1: sending took 300ms, more than a tenth of the median to Ready (2s): the load came over that time instead of at one moment, and all times include it (300ms)"}},
		{"writes stood still", []*verdict.Judged{judged(1, 10, slo.Pass, func(s *verdict.Judged) { s.Stood = 4 })}, []string{"step 1: all writes to the API stood still: slow results in that time come from the standstill, not from a limit of the load (4s)"}},
		{"an actor did nothing", []*verdict.Judged{judged(1, 10, slo.Pass, func(s *verdict.Judged) { s.Silent = []string{"the scheduler did nothing for 6 s"} })}, []string{"step 1: the scheduler did nothing for 6 s"}},
		{"a backlog rose once", []*verdict.Judged{judged(1, 10, slo.Pass, func(s *verdict.Judged) { s.Backlog = &result.Backlog{Stalled: true, Means: []float64{1, 40, 2}} })}, []string{"step 1: the backlog rose once, to 40, and fell to 2 by the end of the hold: a stall, and no trend"}},
		{"a stream stalled", []*verdict.Judged{judged(1, 10, slo.Pass, func(s *verdict.Judged) {
			s.Requests = &result.StreamRequests{Stalls: []result.Stall{{Seconds: 2, Windows: 2}}}
		})}, []string{"step 1: a stall: nothing was answered for 2 s (2 windows)"}},
		{"too few for a quantile", []*verdict.Judged{judged(1, 10, slo.Pass, func(s *verdict.Judged) { s.Largest = []string{"Ready p99 is judged by the maximum"} })}, []string{"step 1: Ready p99 is judged by the maximum"}},
	} {
		got := WarningsOf(c.steps, "Ready").Lines()
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q\nwant %q", c.why, got, c.want)
		}
	}
}

// A published figure has beside it what the run found of it, where it did.
func TestPublishedFigures(t *testing.T) {
	kind := record.ObjectKind{There: "Ready"}
	step := func(level float64, arm string, v slo.Verdict, p50 float64) result.Step {
		return result.Step{StepPlan: record.StepPlan{Level: level, Arm: arm}, Verdict: v, Latency: result.Latencies{"Ready": {P50: &p50}},
			Groups: []result.Group{{Label: "zone", Values: []result.LabelValue{{Value: "a", Time: result.Latency{Mean: new(p50 / 2)}}}}}}
	}
	r := result.Result{Steps: []result.Step{step(10, "", slo.Pass, 1), step(20, "", slo.Pass, 2), step(20, "", slo.Fail, 4), step(20, "", slo.Pass, 3), step(20, "", slo.Invalid, 9), step(30, "", slo.Invalid, 9)}}
	of := func(specs ...result.PublishedSpec) *result.Spec {
		return &result.Spec{Kind: kind, Unit: "pods/node", Published: specs}
	}
	median := result.PublishedSpec{Metric: "Ready p50", Value: 2.5}
	lined := r
	lined.LoadLine = &result.LoadLine{Level: new(10.0)}
	faster := r
	faster.Fidelity.TimeScale = 60
	compared := result.Result{Comparison: &compare.Comparison{Levels: []compare.LevelComparison{{Arm: "crun", Level: 60, Primary: compare.Compared{Metric: "Ready p50", Change: new(-0.1), Lo: new(-0.2), Hi: new(0.0)}}, {Arm: "kata", Level: 60}}}}
	change := result.PublishedSpec{Metric: "Ready p50", Arm: "crun", Value: -0.2, IsChange: true}
	for _, c := range []struct {
		why   string
		of    result.Result
		spec  result.PublishedSpec
		unit  string
		found *float64
		at    *float64
	}{
		{"the median at the highest level that was decided", r, median, "s", new(3.0), new(20.0)},
		{"at the load line", lined, median, "s", new(1.0), new(10.0)},
		{"time passes faster", faster, median, "s", new(180.0), new(20.0)},
		{"by a label", r, result.PublishedSpec{Metric: "zone=a mean"}, "s", new(1.5), new(20.0)},
		{"a metric that the run has not", r, result.PublishedSpec{Metric: "Bound p50"}, "", nil, nil},
		{"an arm that the run has not", r, result.PublishedSpec{Metric: "Ready p50", Arm: "crun"}, "", nil, nil},
		{"the load line", lined, result.PublishedSpec{IsLine: true}, "pods/node", new(10.0), nil},
		{"a search without a line", r, result.PublishedSpec{IsLine: true}, "pods/node", nil, nil},
		{"a change", compared, change, "%", new(-0.1), new(60.0)},
		{"a change without a comparison", r, change, "%", nil, nil},
	} {
		p := PublishedFigures(of(c.spec), []string{"Ready"}, c.of)[0]
		same := func(a, b *float64) bool { return (a == nil) == (b == nil) && (a == nil || *a == *b) }
		if p.Unit != c.unit || !same(p.Found, c.found) || !same(p.At, c.at) {
			t.Errorf("%s: %+v", c.why, p)
		}
	}
}

// A step is a run of a comparison with its figures; what a short generator measured is not.
func TestRunOf(t *testing.T) {
	s := result.Step{
		ID: 3, StepPlan: record.StepPlan{Arm: "crun", Replicate: 2, Level: 60}, Verdict: slo.Pass, Objects: result.Objects{Intended: 100, Ready: 98}, AchievedRate: new(12.0),
		Latency: result.Latencies{"Ready": {P50: new(1.0)}}, APIRequests: result.APIRequests{P50: new(0.01)}, Metrics: map[string]float64{"fsync": 0.004},
		Resources: map[string]result.Usage{"etcd": {CPUSeconds: 3, PeakRSSBytes: 300, StartRSSBytes: 100}},
	}
	kind := record.ObjectKind{Metrics: []record.Metric{{Name: "fsync", Unit: "s"}, {Name: "other"}}}
	figures := func(r compare.Run) map[string]float64 {
		list := make(map[string]float64)
		for _, f := range r.Figures {
			if f.Value != nil {
				list[f.Metric] = *f.Value
			}
		}
		return list
	}
	samples := []compare.MilestoneSample{{Milestone: "Ready"}}
	r := RunOf(s, kind, []string{"Bound", "Ready"}, samples)
	want := map[string]float64{"Ready p50": 1, "request p50": 0.01, "achieved rate": 12, "fsync": 0.004, "etcd CPU": 3, "etcd memory, most": 300, "etcd memory, growth": 200}
	got := figures(r)
	for name, x := range want {
		if got[name] != x {
			t.Errorf("%s is %g, want %g", name, got[name], x)
		}
	}
	if len(got) != len(want) || r.Name != "step 3 (crun, block 2)" || r.Asked != 100 || r.Missing != 2 || r.LeftOut != "" || len(r.Samples) != 1 {
		t.Errorf("%+v: %v", r, got)
	}
	s.Verdict, s.VerdictWhy, s.AtLeast, s.Requests = slo.Invalid, "the generator was short", true, &result.StreamRequests{}
	r = RunOf(s, kind, []string{"Ready"}, samples)
	if got := figures(r); r.LeftOut != "" || r.Samples != nil || got["fsync"] != 0.004 || got["Ready p50"] != 0 || got["achieved rate"] != 0 {
		t.Errorf("a short generator: %+v, %v", r, got)
	}
	s.Verdict = slo.Inconclusive
	if r = RunOf(s, kind, nil, nil); r.LeftOut != "is inconclusive: the generator was short" {
		t.Errorf("%q", r.LeftOut)
	}
}

// Arms are compared block by block, the first of them as the baseline.
func TestComparisonOf(t *testing.T) {
	arms := result.ArmsSpec{Names: []string{"runc", "crun"}, Metric: "Ready p50", Margin: 0.05, Alpha: 0.05}
	var steps []*verdict.Judged
	for block := range 6 {
		for arm, name := range arms.Names {
			steps = append(steps, judged(2*block+arm+1, 60, slo.Pass, func(s *verdict.Judged) {
				p50 := (2 - float64(arm)) * (1 + 0.001*float64(block))
				s.Arm, s.Replicate, s.Objects = name, block+1, result.Objects{Intended: 10, Ready: 10}
				s.Latency = result.Latencies{"Ready": {N: 10, P50: &p50}}
				s.Parts = map[string][]fold.Part{"Ready": {{Sample: stats.NewSample([]float64{p50, p50}, 0)}}}
			}))
		}
	}
	c := ComparisonOf(arms, nil, stats.Scheduled, record.ObjectKind{There: "Ready"}, []string{"Ready"}, steps)
	if c.Baseline != "runc" || !c.Paired || len(c.Levels) != 1 {
		t.Fatalf("%+v", c)
	}
	if l := c.Levels[0]; l.Arm != "crun" || l.Verdict != stats.Better || l.Runs != [2]int{6, 6} || *l.Primary.Change > -0.49 || len(l.Series) != 1 {
		t.Errorf("%s: %s, %+v", l.Verdict, l.Why, l.Primary)
	}
	until := &stats.Sequential{Least: 3, Most: 6, Alpha: 0.05, Among: 1, Margin: 0.05}
	if left := LeftOf(arms, until, record.ObjectKind{There: "Ready"}, []string{"Ready"}, steps); len(left) != 1 {
		t.Errorf("what is decided needs no further run: %v", left)
	}
}

// What one object costs is measured of each process but this program; memory comes from the
// law along the axis where there is one.
func TestOverheadOf(t *testing.T) {
	if OverheadOf(&fold.Phases{}, nil) != nil {
		t.Error("there is no real node")
	}
	growth := &fold.Growth{}
	for i := range 12 {
		x, stood := float64(10+i), float64(100*(i%4))
		growth.MemX, growth.MemY = append(growth.MemX, x), append(growth.MemY, 1000*x+float64(i%3))
		growth.CPUX, growth.CPUStood, growth.CPUY = append(growth.CPUX, x), append(growth.CPUStood, stood), append(growth.CPUY, 0.02*x+0.0005*stood+0.1+0.0001*float64(i%3))
	}
	phases := &fold.Phases{Steps: 6, Objects: 120, By: map[string]*fold.Growth{"kubelet": growth, "etcd": {}, usage.SourceRuntime: growth, usage.SourceSelf: growth}}
	o := OverheadOf(phases, nil)
	var sources []string
	for _, c := range o.Costs {
		sources = append(sources, c.Source)
	}
	if !slices.Equal(sources, []string{"etcd", "kubelet", usage.SourceRuntime}) || o.Steps != 6 || o.Objects != 120 {
		t.Fatalf("%q, %+v", sources, o)
	}
	near := func(x *float64, want float64) bool { return x != nil && *x > 0.9*want && *x < 1.1*want }
	if c := o.Costs[1]; !near(c.Memory.Value, 1000) || c.Memory.From != result.FromSteps || !near(c.Start.Value, 0.02) || !near(c.Stand.Value, 0.0005) || c.Start.From != result.FromPhases || c.Start.Points != 12 {
		t.Errorf("%+v", c)
	}
	if c := o.Costs[0]; !strings.HasPrefix(c.Memory.Unknown, "0 steps that raised the level: ") || !strings.HasPrefix(c.Start.Unknown, "0 loading and hold phases: ") {
		t.Errorf("a process without readings: %+v", c)
	}
	if c := o.Costs[2]; c.Memory.Unknown != "the runtime's processes end before their memory is read" {
		t.Errorf("%+v", c)
	}
	law := func(wrong string) *result.Laws {
		return &result.Laws{List: []result.Law{{Name: "kubelet memory", Of: result.LawMemory, Points: make([]result.LawPoint, 8), Line: &result.LineLaw{Slope: result.Interval{Value: new(2000.0)}, Wrong: wrong}}}}
	}
	if c := OverheadOf(phases, law("")).Costs[1]; *c.Memory.Value != 2000 || c.Memory.From != result.FromLevels || c.Memory.Points != 8 {
		t.Errorf("by a law: %+v", c.Memory)
	}
	if c := OverheadOf(phases, law("it bends")).Costs[1]; c.Memory.From != result.FromSteps {
		t.Errorf("by a law that is wrong: %+v", c.Memory)
	}
}
