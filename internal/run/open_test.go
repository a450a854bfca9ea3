package run

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system/simulated"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// openLoop are the options of an axis of arrivals per second.
func openLoop() engine.Options {
	return engine.Options{
		Open: true, Warmup: 10 * time.Second, MaxInFlight: 64,
		Timeout: 10 * time.Second, Hold: 60 * time.Second, ShortHold: 12 * time.Second,
	}
}

// line gives objects their place at rate a second, one after the other.
func line(rate float64) simulated.Plan {
	return simulated.Plan{
		Places: 20, Rate: rate, Life: 10 * time.Second, Servers: 16, Service: 5 * time.Millisecond,
		Latency: dist.Dist{Shape: dist.Uniform, A: 100 * time.Millisecond, B: 900 * time.Millisecond},
	}
}

var inTime = []string{"startup=Ready p99 <= 2s; achieved >= 95%"}

func TestAPlantedRateIsFound(t *testing.T) {
	if testing.Short() {
		t.Skip("under the race detector it takes half a minute, and shares no more between goroutines than others do")
	}
	t.Parallel()
	r, w, _, err := trial{
		plan: line(73), goals: inTime, options: openLoop(),
		design: design.Search{From: 20, Step: 20, Max: 500, Resolution: 5, Need: 3, Of: 3},
	}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	// At 75 a second the line grows by 2 a second, and after a minute an
	// object waits in it for longer than the bound allows.
	if r.Verdict != slo.Pass || *r.LoadLine.Level != 70 || *r.LoadLine.LowestFailing != 75 || r.LoadLine.Confirmations != 3 {
		t.Fatalf("verdict %s (%s), line %+v", r.Verdict, r.Why, r.LoadLine)
	}
	if !strings.Contains(r.LoadLine.Binding, "the wait for the placement (Created to Placed) grew") {
		t.Errorf("the limit is planted on the way to a place, and the binding reason is %q", r.LoadLine.Binding)
	}
	// Over a minute the line grew to some 120; what was ready and was removed as
	// it aged waits for nothing.
	if l := r.BrokeFirst.Breach.Load; l.Asked-l.There < 50 || l.Asked-l.There > 250 {
		t.Errorf("at what broke first %d of %d were ready", l.There, l.Asked)
	}
	for i, s := range r.Steps {
		if !s.FromEmpty || !s.Open || s.Arrivals == nil || s.Arrivals.Late != 0 || *s.Arrivals.OwnDelayP99 > 0.001 {
			t.Errorf("step %d at %g: %+v", i, s.Level, s.Arrivals)
		}
		if s.Verdict != slo.Pass {
			continue
		}
		if math.Abs(*s.AchievedRate-s.Level) > 0.05*s.Level || math.Abs(s.Arrivals.DeletionsPerSecond-s.Level) > 0.1*s.Level {
			t.Errorf("step %d at %g reached %v a second, and %v went", i, s.Level, *s.AchievedRate, s.Arrivals.DeletionsPerSecond)
		}
		if hold := map[bool]float64{true: 60, false: 12}[s.FullHold]; float64(s.Arrivals.Judged) != s.Level*hold || float64(s.Arrivals.WarmUp) != s.Level*10 || s.Objects.Intended != s.Arrivals.Judged {
			t.Errorf("step %d at %g is judged by %+v, %+v", i, s.Level, s.Arrivals, s.Objects)
		}
	}
	most := 0
	for _, s := range w.statuses {
		most = max(most, s.Progress.There)
	}
	// What is there stays level: as many as come in a life, and in the time
	// that they take to get there.
	if most > 80*11 {
		t.Errorf("%d objects were there at once", most)
	}
}

// Answers that are slow hold arrivals back once the bound on requests under
// way is reached: that is the target's doing, and the latency of those that
// waited counts from when they should have come.
func TestSlowAnswersBreachTheRate(t *testing.T) {
	plan := line(0)
	plan.Servers, plan.Service = 2, 50*time.Millisecond // 40 a second
	options := openLoop()
	options.MaxInFlight = 8
	r, _, _, err := trial{plan: plan, goals: []string{"ready=Ready p99 <= 30s"}, options: options, design: design.Sweep{Levels: []float64{30, 60}}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Steps[0]; s.Verdict != slo.Pass || s.Arrivals.Late != 0 {
		t.Errorf("30 of 40 a second: %s (%s), %+v", s.Verdict, s.VerdictWhy, s.Arrivals)
	}
	s := r.Steps[1]
	if s.Verdict != slo.Fail || !strings.Contains(s.VerdictWhy, "achievedRate: 3600 of 3600 arrivals waited") {
		t.Errorf("60 of 40 a second: %s (%s), %+v", s.Verdict, s.VerdictWhy, s.Arrivals)
	}
	if s.Arrivals.Dropped < 500 || s.Objects.Dropped != s.Arrivals.Dropped || s.Objects.Ready+s.Objects.Dropped != 3600 {
		t.Errorf("%+v, %+v", s.Arrivals, s.Objects)
	}
	if *s.Arrivals.OwnDelayP99 > 0.001 {
		t.Errorf("own delay %v, though it was the answers that were slow", *s.Arrivals.OwnDelayP99)
	}
	if p50 := s.Latency["Created"].P50; p50 == nil || *p50 < 4.5 {
		t.Errorf("the median arrival that waited for up to %v was created after %v s", engine.DropAfter, p50)
	}
}

func TestObjectsOfAnOpenLoopThatNeverGetThere(t *testing.T) {
	plan := line(0)
	plan.Flaky = 1
	plan.SoftAt, plan.SoftWidth = 1, 0.001 // one in a hundred of each step
	r, _, _, err := trial{plan: plan, goals: []string{"ready=all Ready"}, options: openLoop(), design: design.Sweep{Levels: []float64{20}}}.run(t)
	if err != nil {
		t.Fatal(err)
	}
	s := r.Steps[0]
	// One in a hundred, and one besides where the two are not the same object.
	if n := s.Objects.NeverReady; s.Verdict != slo.Fail || n != 12 && n != 13 || s.Objects.Ready != 1200-n || s.Ending != record.EndTimeout {
		t.Errorf("%s (%s), ended %s, %+v", s.Verdict, s.VerdictWhy, s.Ending, s.Objects)
	}
}

func TestAnOpenLoopThatIsCutInItsWarmUp(t *testing.T) {
	r, _, _, err := trial{
		plan: line(0), goals: inTime, options: openLoop(), design: design.Sweep{Levels: []float64{20}},
		cancel: func(cancel context.CancelFunc, w *watcher) {
			w.onStatus = func(s engine.Status) {
				if s.Stage == engine.StageWarming && s.Sent >= 90 {
					cancel()
				}
			}
		},
	}.run(t)
	if err == nil {
		t.Error("the cut is no error")
	}
	if s := r.Steps[0]; s.Verdict != slo.Inconclusive || s.Objects.Intended != 0 || s.Arrivals.Judged != 0 {
		t.Errorf("%s (%s), %+v, %+v", s.Verdict, s.VerdictWhy, s.Objects, s.Arrivals)
	}
}

// script judges one step of an open loop at 100 a second, of a second, whose
// requests are sent late by own, after having waited for a place.
func script(t *testing.T, own, waited time.Duration, more ...record.Body) result.Step {
	b := judge.NewBuilder(result.Spec{Kind: simulated.Objects(), Goals: goals(t, "ready=all Ready"), Milestones: []string{"Created", "Ready"}})
	b.Add(record.Event{T: 1, Step: 1, Body: &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 100}, Open: true, Hold: 1e6, Timeout: 1e7, Units: 100}})
	b.Add(record.Event{T: 1, Step: 1, Body: &record.StepEvent{Phase: record.PhaseReached}})
	for i := range 100 {
		intended := record.Micros(1 + i*1e4)
		sent := intended + record.MicrosOf(waited+own)
		name := "s" + string(rune('0'+i/10)) + string(rune('0'+i%10))
		b.Add(record.Event{T: sent + 10, Step: 1, Body: &record.Slot{Slot: name, Units: 1, Intended: intended, Waited: record.MicrosOf(waited), Sent: sent, Replied: sent + 10, Outcome: record.SlotCreated}})
		b.Add(record.Event{T: sent + 20, Step: 1, Body: &record.Object{Object: name, Milestone: "Ready"}})
	}
	for _, body := range more {
		b.Add(record.Event{T: 2e6, Step: 1, Body: body})
	}
	b.Add(record.Event{T: 2e6, Step: 1, Body: &record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld}})
	return *b.LastStep()
}

func TestWhoseFaultLatenessIs(t *testing.T) {
	wakes := func(late float64) record.Body {
		return &record.Reading{Source: usage.SourceWakes, Values: map[string]float64{"wakes": 200, "late": late}}
	}
	for _, tt := range []struct {
		why         string
		own, waited time.Duration
		more        []record.Body
		want        slo.Verdict
	}{
		{"all in time", 0, 0, nil, slo.Pass},
		{"as late as may be by its own doing", 10 * time.Millisecond, 0, nil, slo.Pass},
		{"later: it says nothing about the target", 11 * time.Millisecond, 0, nil, slo.Invalid},
		{"late because there was no place", 0, 11 * time.Millisecond, nil, slo.Fail},
		{"both: its own doing comes first", 11 * time.Millisecond, 11 * time.Millisecond, nil, slo.Invalid},
		{"woken late in one case of a hundred", 0, 0, []record.Body{wakes(2)}, slo.Pass},
		{"woken late in more", 0, 0, []record.Body{wakes(3)}, slo.Invalid},
		{"a breach while it was short of CPU is none", 0, 11 * time.Millisecond, []record.Body{wakes(3)}, slo.Invalid},
	} {
		if s := script(t, tt.own, tt.waited, tt.more...); s.Verdict != tt.want {
			t.Errorf("%s: %s (%s), want %s", tt.why, s.Verdict, s.VerdictWhy, tt.want)
		}
	}
}
