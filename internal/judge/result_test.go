package judge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
	"plimsoll.dev/plimsoll/internal/test/golden"
)

// search makes the steps that a search asks for, on two nodes that hold so many
// pods, each a second after its request.
func (s *script) search(d design.Design, holds int) {
	placed := 0
	for range 50 {
		n := s.NextStep(d, "")
		if n.Done {
			return
		}
		s.now += 1e6
		if n.FromEmpty {
			s.put(&record.StepEvent{Phase: record.PhaseReset})
			placed = 0
		}
		want := int(n.Level) * 2
		s.begin(n.Level, func(b *record.StepEvent) {
			b.Purpose, b.FromEmpty, b.FullHold, b.Why, b.Units, b.Places, b.Pace = n.Purpose, n.FromEmpty, n.FullHold, n.Why, want-placed, 2, "max"
		})
		begin := s.now
		s.put(&record.Reading{Source: usage.SourceSelf, Values: map[string]float64{"cpuSeconds": s.now.Seconds() / 100, "rssBytes": 1e6}})
		for ; placed < want; placed++ {
			name := fmt.Sprintf("pod-%d", placed)
			s.now += 1e4
			s.asked(name, func(r *record.Slot) { r.Sent, r.Intended, r.Iteration = s.now-5000, s.now-5000, placed })
			s.put(&record.Object{Object: "ns/" + name, Milestone: "Created", Component: "pod"})
			if placed >= holds*2 {
				s.state(name, "Unschedulable", "0/2 nodes are available: 2 Too many pods. preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod.")
				continue
			}
			node := fmt.Sprintf("node-%d", placed%2)
			s.put(&record.Object{Object: "ns/" + name, Milestone: "Scheduled", Place: node})
			now := s.now
			s.now += 1e6
			s.news(name + " ContainersStarted Ready")
			s.now = now
		}
		s.put(&record.StepEvent{Phase: record.PhaseLoaded})
		s.put(&record.Canary{Sent: s.now, Replied: s.now + 1000, Seen: s.now + 2500})
		s.now += 1e6
		ending := record.EndStalled
		if want <= holds*2 {
			ending = record.EndHeld
			s.put(&record.StepEvent{Phase: record.PhaseReached})
		}
		s.now = begin + 15e6
		s.put(&record.Reading{Source: usage.SourceSelf, Values: map[string]float64{"cpuSeconds": s.now.Seconds() / 100, "rssBytes": 2e6}})
		s.end(ending, func(b *record.StepEvent) {
			b.Places, b.Least, b.Most = 2, float64(min(want/2, holds)), float64(min(want/2, holds))
		})
	}
}

var small = design.Search{From: 2, Step: 2, Max: 6, Resolution: 1, Need: 2, Of: 2}

// A whole small search, as it is written.
func TestGoldenResult(t *testing.T) {
	s := newScript(t, "ready=all Ready", "quick=Ready p50 < 1s")
	s.put(&record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion, ID: "test-1"})
	s.search(small, 3)
	s.put(&record.RunEvent{Phase: record.PhaseEnd})
	r := s.Finish(small, record.Fidelity{ControlPlane: record.Real, Nodes: record.Simulated, Containers: record.Simulated, Guests: record.None}, "")
	golden.Check(t, *update, "result.json", encode(t, r))

	// What is on record says it all: another Builder comes to the same, and
	// does so each time, whatever the order in which maps are gone through.
	for range 5 {
		again := NewBuilder(s.spec)
		for _, e := range s.events {
			again.Add(e)
		}
		if got := again.Finish(small, r.Fidelity, ""); !bytes.Equal(encode(t, got), encode(t, r)) {
			t.Fatalf("judged again, the same record comes to\n%s", encode(t, got))
		}
	}
}

func TestLoadLines(t *testing.T) {
	s := newScript(t, "ready=all Ready", "quick=Ready p50 < 1s", "same=all Ready; errors < 1%")
	s.search(small, 4)
	r := s.finish(small)
	line := r.LoadLine
	if r.Verdict != slo.Pass || r.ExitCode != 0 || show(line.Level) != "4" || show(line.LowestFailing) != "5" || line.Confirmations != 2 || line.ConfirmationsMade != 2 || line.ConfirmationsAsked != 2 ||
		line.PassProbability != 0.08 || !line.Exact || show(line.Interval.Hi) != "5" || line.Binding != "Too many pods on 2 of 2 nodes" || show(line.EffectiveLevel) != "4" || line.Unit != "pods/node" {
		t.Errorf("%s (%s): %+v", r.Verdict, r.Why, line)
	}
	quick := r.Goals[1]
	if quick.Verdict != slo.Fail || quick.LoadLine.Level != nil || show(quick.LoadLine.LowestFailing) != "2" || !strings.HasPrefix(quick.LoadLine.Binding, "Ready p50 < 1s: it was 1") {
		t.Errorf("a goal that nothing holds: %s, %+v: its binding is its own, not another goal's", quick.Verdict, quick.LoadLine)
	}
	if same := r.Goals[2].LoadLine; show(same.Level) != "4" {
		t.Errorf("a goal like the first: %+v", same)
	}
	if !slices.Equal(r.Goals[2].SLO, []string{"all Ready", "errors < 1%"}) || !reflect.DeepEqual(r.Goals[0].LoadLine, r.LoadLine) {
		t.Errorf("goals %+v", r.Goals)
	}
}

func TestALineThatNothingFailed(t *testing.T) {
	s := newScript(t)
	s.search(small, 6)
	r := s.finish(small)
	if r.Verdict != slo.Pass || show(r.LoadLine.Level) != "6" || r.LoadLine.LowestFailing != nil || r.LoadLine.Binding != "" || r.LoadLine.EffectiveLevel != nil {
		t.Errorf("%s: %+v", r.Verdict, r.LoadLine)
	}
}

// One confirmation of five may fail; what the others mean counts all that were
// made.
func TestConfirmationsThatWereTolerated(t *testing.T) {
	s := newScript(t)
	d := design.Search{From: 1, Step: 1, Max: 1, Resolution: 1, Need: 4, Of: 5}
	for i := range 6 {
		n := s.NextStep(d, "")
		if n.Done {
			t.Fatalf("done after %d steps: %s", i, n.Outcome.Why)
		}
		s.put(&record.StepEvent{Phase: record.PhaseReset})
		s.begin(1, func(b *record.StepEvent) { b.Purpose, b.FromEmpty = n.Purpose, true })
		ending := record.EndHeld
		if i == 3 {
			s.asked("a")
			ending = record.EndTimeout
		} else {
			s.made("a", 1)
		}
		s.end(ending)
	}
	r := s.finish(d)
	if l := r.LoadLine; r.Verdict != slo.Pass || l.Confirmations != 4 || l.ConfirmationsMade != 5 || l.ConfirmationsAsked != 4 || l.PassProbability != 0.27 {
		t.Errorf("%s: %+v", r.Verdict, r.LoadLine)
	}
}

// At a level that a guard brought down the guard binds, and not what it
// happened to interrupt.
func TestAGuardBinds(t *testing.T) {
	s := newScript(t)
	s.begin(2)
	s.made("a b", 1)
	s.asked("c d")
	s.news("d Created")
	s.state("d", "Evicted", "", failed)
	s.put(&record.Guard{Name: "nodesNotReady", Value: 1, Bound: 1})
	if c := s.end(record.EndGuard); account(c.Objects) != "2 ready, 1 never, 1 lost" {
		t.Errorf("%s", account(c.Objects))
	}
	if r := s.finish(small); r.Verdict != slo.Fail || r.LoadLine.Binding != "guard:nodesNotReady" {
		t.Errorf("%s: %+v", r.Verdict, r.LoadLine)
	}
}

// A goal on latencies broke on them, and not on the one object that happened
// to crash.
func TestALatencyBinds(t *testing.T) {
	s := newScript(t, "quick=Ready p50 < 1s")
	s.begin(2)
	s.made("a b c", 2)
	s.asked("d")
	s.news("d Created")
	s.state("d", "CrashLoopBackOff", "")
	s.end(record.EndTimeout)
	if r := s.finish(small); r.LoadLine.Binding != "Ready p50 < 1s: it was 2s; the longest wait was for the nodes (ContainersStarted to Ready: 2s on average, 100% of all waiting)" {
		t.Errorf("bound by %q", r.LoadLine.Binding)
	}
}

// The step that failed at a level names what bound it, not an inconclusive one.
func TestAnInconclusiveStepDoesNotBind(t *testing.T) {
	s := newScript(t)
	s.begin(2)
	s.asked("a")
	s.news("a Created")
	s.state("a", "CrashLoopBackOff", "")
	s.end(record.EndTimeout)
	s.put(&record.StepEvent{Phase: record.PhaseReset})
	s.begin(2)
	s.asked("a")
	s.end(record.EndInterrupted)
	if r := s.finish(small); r.Verdict != slo.Fail || r.LoadLine.Binding != "CrashLoopBackOff" {
		t.Errorf("%s, bound by %q", r.Verdict, r.LoadLine.Binding)
	}
}

func TestNextStep(t *testing.T) {
	t.Run("further goals have their steps once the first is done", func(t *testing.T) {
		s := newScript(t, "ready=all Ready", "quick=Ready p99 <= 2s")
		d := design.Sweep{Levels: []float64{1, 2}}
		if n := s.NextStep(d, ""); n.Done || n.Level != 1 {
			t.Errorf("%+v", n)
		}
		search := design.Search{From: 1, Step: 1, Max: 2, Resolution: 1, Need: 1, Of: 1}
		// The first goal fails at once and is done; the other holds.
		s.begin(1)
		s.made("a b c", 1)
		s.asked("d")
		s.Builder.spec.Goals[1] = goalsOf(t, "quick=Ready p50 <= 2s")[0]
		s.end(record.EndTimeout)
		if n := s.NextStep(search, ""); n.Done || n.Level != 2 {
			t.Errorf("%+v", n)
		}
	})
	t.Run("a stop ends it, with the headline's outcome", func(t *testing.T) {
		s := newScript(t, "ready=all Ready", "quick=Ready p99 <= 2s")
		if n := s.NextStep(small, "the budget is spent"); !n.Done || n.Outcome.Why != "the budget is spent" {
			t.Errorf("%+v", n)
		}
	})
	t.Run("without a goal there is nothing to be found out", func(t *testing.T) {
		s := &script{Builder: NewBuilder(specOf(nil))}
		if n := s.NextStep(small, ""); !n.Done {
			t.Errorf("%+v", n)
		}
		s.begin(1)
		s.made("a", 1)
		s.end(record.EndHeld)
		if r := s.finish(small); r.Verdict != slo.Inconclusive || r.Steps[0].Verdict != slo.Inconclusive || r.Why != "no goal was given" {
			t.Errorf("%s: %s", r.Verdict, r.Why)
		}
	})
}

func TestExitCodes(t *testing.T) {
	for verdict, want := range map[slo.Verdict]int{slo.Pass: 0, slo.Fail: 1, slo.Inconclusive: 3, slo.Invalid: 4, "": 3} {
		if got := exitCodeOf(verdict); got != want {
			t.Errorf("%q exits with %d, want %d", verdict, got, want)
		}
	}
}

// How a run ended bears on its verdict.
func TestHowARunEnds(t *testing.T) {
	sweep := design.Sweep{Levels: []float64{1, 2}}
	for _, tt := range []struct {
		why     string
		steps   int
		end     *record.RunEvent
		stop    string
		verdict slo.Verdict
		because string
		warned  bool
	}{
		{"whole", 2, &record.RunEvent{Phase: record.PhaseEnd}, "", slo.Pass, "2 of 2 levels were made", false},
		{"killed after its last step: what was made decides", 2, nil, "", slo.Pass, "2 of 2", true},
		{"killed halfway", 1, nil, "", slo.Inconclusive, "1 of 2 levels were made: the record ends before the run did", true},
		{"ended early, for a reason on record", 1, &record.RunEvent{Phase: record.PhaseEnd, Message: "the budget is spent"}, "", slo.Inconclusive, "the budget is spent", false},
		{"ended early without a reason", 1, &record.RunEvent{Phase: record.PhaseEnd}, "", slo.Inconclusive, "the run ended before the search was done", false},
		{"stopped, as the caller knows", 1, nil, "interrupted", slo.Inconclusive, "interrupted", false},
		{"nothing at all", 0, nil, "", slo.Inconclusive, "0 of 2", true},
	} {
		s := newScript(t)
		s.put(&record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion})
		for i := range tt.steps {
			s.begin(float64(i + 1))
			s.made(fmt.Sprint(i), 1)
			s.end(record.EndHeld)
		}
		if tt.end != nil {
			s.put(tt.end)
		}
		r := s.Finish(sweep, record.Fidelity{}, tt.stop)
		if r.Verdict != tt.verdict || !strings.Contains(r.Why, tt.because) || (len(r.Warnings) > 0) != tt.warned || r.LoadLine != nil {
			t.Errorf("%s: %s: %s, warnings %q", tt.why, r.Verdict, r.Why, r.Warnings)
		}
		checkWritten(t, r)
	}
}

// checkWritten asks that a result can be written and read, that its lists are
// lists, and that its accounts add up.
func checkWritten(t testing.TB, r result.Result) {
	t.Helper()
	data := encode(t, r)
	var back result.Result
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	var whole map[string]any
	if err := json.Unmarshal(data, &whole); err != nil {
		t.Fatal(err)
	}
	lists := func(in any, names ...string) {
		for _, name := range names {
			if _, ok := in.(map[string]any)[name].([]any); !ok {
				t.Fatalf("%s is %v, want a list", name, in.(map[string]any)[name])
			}
		}
	}
	lists(whole, "goals", "steps", "breaches", "diagnosis", "ceilings", "warnings")
	lists(whole["fidelity"], "notes")
	for _, g := range whole["goals"].([]any) {
		lists(g, "slo")
	}
	for _, s := range whole["steps"].([]any) {
		lists(s, "reasons", "breaches")
		account := "objects"
		if s.(map[string]any)["requests"] != nil {
			account = "requests" // of a stream
		}
		for _, name := range []string{"goals", "latency", "resources", account, "apiRequests"} {
			if _, ok := s.(map[string]any)[name].(map[string]any); !ok {
				t.Fatalf("%s of a step is %v, want an object", name, s.(map[string]any)[name])
			}
		}
	}
	for _, s := range r.Steps {
		if !adds(s.Objects) {
			t.Fatalf("step %d does not add up: %+v", s.ID, s.Objects)
		}
		for name, l := range s.Latency {
			if l.Censored > 0 && (l.Max != nil || l.Mean != nil) || l.Censored > l.N || l.N == 0 && l.P50 != nil {
				t.Fatalf("step %d: %s %+v", s.ID, name, l)
			}
		}
		if s.Verdict == slo.Pass && (s.Objects.Lost > 0 || s.Ending == record.EndInterrupted || s.Ending == record.EndGuard) {
			t.Fatalf("step %d passed: %+v, ended %s", s.ID, s.Objects, s.Ending)
		}
	}
}

// Whatever is on record, the result can be written.
func TestAnyRecordCanBeJudged(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 1500 {
		s := oneOfMany(t, "ready=all Ready", "quick=Ready p99 <= 5s; errors < 5%", "rate=achieved >= 90%", "within=all ContainersStarted within 3s")
		randomEvents(rng, s, func() {
			c := s.LastStep()
			if o := c.Objects; o.Lost > 0 && o.NeverReady+o.CreateFailed+o.Dropped == 0 && len(c.Breaches) == 0 && c.Goals["ready"] != slo.Inconclusive {
				t.Fatalf("%d lost and nothing else: %s", o.Lost, c.Goals["ready"])
			}
		})
		checkWritten(t, s.Finish([]design.Design{small, design.Sweep{Levels: []float64{1, 2}}}[rng.IntN(2)], record.Fidelity{}, ""))
		for _, row := range s.rows {
			if row.Slot == "" || row.Step == 0 {
				t.Fatalf("row %+v", row)
			}
		}
	}
}

// FuzzBuilder makes events of bytes: whatever a history says, it is judged
// without a panic, and the result can be written.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte("\x01\x00\x02\x03\x04\x05\x06\x07"))
	rng := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		seed := make([]byte, 200)
		for i := range seed {
			seed[i] = byte(rng.UintN(256))
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return int(b)
		}
		pick := func(words ...string) string { return words[next()%len(words)] }
		// Numbers as a history can hold them: finite, and as large as may be.
		number := func() float64 {
			return []float64{0, 1, -1, 0.5, 1e-300, 1e300, -math.MaxFloat64, math.MaxFloat64}[next()%8]
		}
		micros := func() record.Micros { return record.Micros(next()-20) * 1e5 }
		name := func() string { return pick("ns/a", "ns/b", "ns/c", "a", "", "ns/d-1", "ns/d-2") }
		slotName := func() string { return pick("", "", "ns/a", "ns/d") }
		text := func() string {
			return pick("", "Unschedulable", "NotReady", "0/2 nodes are available: 2 Too many pods.", "x ns a")
		}
		s := &script{Builder: NewBuilder(result.Spec{Kind: observe.Pods(), Goals: goalsOf(t, "ready=all Ready", "quick=Ready p99 <= 5s; errors < 5%; achieved > 1%; Ready max < 9s; all Bound within 1s")})}
		s.Rows = func(record.ObjectRow) {}
		for len(data) > 0 {
			s.now += max(micros(), 0)
			s.step = next() % 4
			switch next() % 12 {
			case 0:
				s.put(&record.RunEvent{Phase: record.Phase(pick("start", "end")), Message: text()})
			case 1, 2:
				s.put(&record.StepEvent{
					Phase: record.Phase(pick("start", "start", "loaded", "reached", "end", "end", "reset")), StepPlan: record.StepPlan{Level: number(), FromEmpty: next()%2 == 0, Purpose: record.Purpose(pick("ramp", "bracket", "confirm", "upper", "sweep")), FullHold: next()%2 == 0}, Reached: number(), Timeout: micros(), Units: next() - 10, Places: next() - 10, Others: next() - 10, Least: number(), Most: number(),
					Ending: record.Ending(pick("held", "timeout", "stalled", "guard", "interrupted", "")),
				})
			case 3, 4:
				s.put(&record.Slot{
					Slot: name(), Units: next()%6 - 1, Grouped: next()%2 == 0, Iteration: next(), Intended: micros(), Sent: micros(), Replied: micros(), Code: next(), Retries: next(), Throttled: next(),
					Outcome: record.SlotOutcome(pick("created", "failed", "dropped", "unknown", "")), Error: text(),
				})
			case 5, 6:
				s.put(&record.Object{Object: name(), Slot: slotName(), Milestone: pick("Created", "Ready", "Deleted", "Bound", "New", "Scheduled", ""), Place: pick("", "n1"), Late: next()%2 == 0})
			case 7:
				s.put(&record.State{Object: name(), Slot: slotName(), Reason: text(), Message: text(), Lost: pick("", "Ready"), Regained: pick("", "Ready"), Failed: next()%2 == 0})
			case 8:
				s.put(&record.TargetEvent{Object: name(), Type: pick("Warning", "Normal"), Reason: text(), Message: text()})
			case 9:
				s.put(&record.Reading{Source: pick(usage.SourceSelf, "etcd"), Values: map[string]float64{pick("cpuSeconds", "x"): number(), pick("rssBytes", "peakBytes"): number()}})
			case 11:
				s.put(&record.Window{
					Component: pick("", "a"), From: micros(), To: micros(), WarmUp: next()%2 == 0, Intended: next(), Sent: next(), Done: next(), Answered: next(), Failed: map[string]int{text(): next()},
					Late: next(), Dropped: next(), Lost: next() % 3, InFlight: next(), Backlog: next(), Histograms: map[string]record.Histogram{pick("Ready", "x"): record.Histogram(pick("", "no histogram"))},
				})
			case 10:
				s.put(&record.Canary{Sent: micros(), Replied: micros(), Seen: micros()})
			default:
				s.put(&record.Fault{What: text(), From: micros(), To: micros(), Healed: next()%2 == 0})
				s.put(&record.Guard{Name: text(), Value: number(), Bound: number()})
			}
			if next()%16 == 0 {
				s.Live()
			}
		}
		checkWritten(t, s.Finish(small, record.Fidelity{}, ""))
	})
}

// Where whole iterations come to less than was asked for, the line is what was
// made, and says what was asked for.
func TestTheLineIsWhatWasMade(t *testing.T) {
	s := newScript(t)
	n := 0
	step := func(level, made float64, purpose record.Purpose, holds bool) {
		if n > 0 {
			s.put(&record.StepEvent{Phase: record.PhaseReset})
		}
		n++
		s.at(float64(100*n)).begin(level, func(b *record.StepEvent) { b.Reached, b.Purpose, b.FromEmpty = made, purpose, true })
		name := fmt.Sprintf("a%d", n)
		if s.made(name, 1); !holds {
			s.asked(name + "x")
			s.news(name + "x Created")
			s.state(name+"x", "Unschedulable", "0/3 nodes are available: 3 Too many pods.")
		}
		ending := record.EndHeld
		if !holds {
			ending = record.EndStalled
		}
		s.at(float64(100*n) + 50).end(ending)
	}
	step(31, 30.6, record.PurposeRamp, true)
	step(32, 31.8, record.PurposeRamp, false)
	step(31, 30.6, record.PurposeConfirm, true)
	step(32, 31.8, record.PurposeUpper, false)
	r := s.finish(design.Search{From: 31, Step: 1, Max: 40, Resolution: 1, Need: 1, Of: 1})
	l := r.LoadLine
	if r.Verdict != slo.Pass || l == nil || *l.Level != 30.6 || *l.LevelAsked != 31 || *l.LowestFailing != 31.8 || *l.LowestFailingAsked != 32 || l.ConfirmationsMade != 1 || l.Binding == "" {
		t.Fatalf("%s (%s): %+v", r.Verdict, r.Why, l)
	}
	if !strings.HasPrefix(r.Why, "30.6 held in 1 of 1 confirmations, 31.8 failed") || r.BrokeFirst == nil || r.BrokeFirst.Step != 4 {
		t.Errorf("%s; %+v", r.Why, r.BrokeFirst)
	}
}

// The exit code follows the goals that are asked for; the verdict is the
// headline's either way.
func TestRequiredGoals(t *testing.T) {
	for _, c := range []struct {
		require string
		goals   []slo.Verdict // of a, the headline, and of b, c
		want    int
		why     string
	}{
		{"", []slo.Verdict{slo.Pass, slo.Fail}, 0, "the headline alone"},
		{"", []slo.Verdict{slo.Fail, slo.Pass}, 1, "the headline alone, which failed"},
		{"b", []slo.Verdict{slo.Pass, slo.Fail}, 1, "another goal"},
		{"b", []slo.Verdict{slo.Fail, slo.Pass}, 0, "another goal, which held where the headline did not"},
		{"a", []slo.Verdict{slo.Pass, slo.Fail}, 0, "the headline by its name"},
		{plan.RequireAll, []slo.Verdict{slo.Pass, slo.Pass, slo.Pass}, 0, "all held"},
		{plan.RequireAll, []slo.Verdict{slo.Pass, slo.Pass, slo.Fail}, 1, "one of all failed"},
		{plan.RequireAll, []slo.Verdict{slo.Fail, slo.Inconclusive, slo.Pass}, 3, "what is unknown is worse than what failed"},
		{plan.RequireAll, []slo.Verdict{slo.Inconclusive, slo.Invalid, slo.Fail}, 4, "an invalid one is the worst"},
	} {
		r := result.Result{Require: c.require, Verdict: c.goals[0]}
		for i, v := range c.goals {
			r.Goals = append(r.Goals, result.GoalResult{Name: string(rune('a' + i)), Verdict: v})
		}
		if got := exitCodeOf(required(&r)); got != c.want {
			t.Errorf("%s: require %q of %v: exit code %d, want %d", c.why, c.require, c.goals, got, c.want)
		}
	}
}
