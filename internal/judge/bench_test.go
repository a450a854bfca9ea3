package judge

import (
	"math"
	"math/rand/v2"
	"runtime"
	"strconv"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// A run that is raised to 150,000 objects in five steps, some of which have no
// place, judged from its events.
func BenchmarkJudge(b *testing.B) {
	const each = 30_000
	s := newScript(b, "ready=all Ready", "quick=Ready p99 <= 5s; Scheduled p90 <= 2s; errors < 1%")
	s.Rows = nil
	names := s.spec.Kind.Names()
	names = names[:len(names)-1] // but for the last, at which they go
	var levels []float64
	for level := range 5 {
		levels = append(levels, float64(level+1))
		s.now += 1e6
		s.begin(levels[level], func(b *record.StepEvent) { b.Units, b.Places = each, 1000 })
		for i := range each {
			s.now += 100
			name := "ns/pod-" + strconv.Itoa(level*each+i)
			s.put(&record.Slot{Slot: name, Component: "pod", Units: 1, Iteration: level*each + i, Intended: s.now, Sent: s.now, Replied: s.now + 5000, Code: 201, Outcome: record.SlotCreated})
			now := s.now
			for m, milestone := range names {
				if level == 4 && i%100 == 0 && m == 1 {
					s.put(&record.State{Object: name, Reason: "Unschedulable", Message: "0/1000 nodes are available: 1000 Too many pods."})
					break
				}
				s.now += record.Micros(100_000 + i%1000)
				s.put(&record.Object{Object: name, Milestone: milestone, Place: "node-" + strconv.Itoa(i%1000)})
			}
			s.now = now
		}
		s.put(&record.StepEvent{Phase: record.PhaseLoaded})
		s.now += 2e6
		s.end(record.EndHeld, func(b *record.StepEvent) { b.Places = 1000 })
	}
	s.step = 0
	s.put(&record.RunEvent{Phase: record.PhaseEnd})
	b.ReportAllocs()
	for b.Loop() {
		judge := NewBuilder(s.spec)
		judge.Rows = func(record.ObjectRow) {}
		for _, e := range s.events {
			judge.Add(e)
		}
		judge.Finish(design.Sweep{Levels: levels}, record.Fidelity{}, "")
	}
}

// An hour of a million requests a second, judged: 3600 windows of two
// histograms each.
func BenchmarkJudgeStream(b *testing.B) {
	const seconds, rate = 3600, 1_000_000
	rng := rand.New(rand.NewPCG(1, 2))
	var kinds [16]map[string]record.Histogram // windows that differ
	for i := range kinds {
		kinds[i] = make(map[string]record.Histogram)
		for _, name := range []string{"Connected", "Responded"} {
			h := record.NewCounts()
			for range 1000 {
				if err := h.RecordValues(int64(2000*math.Exp(0.7*rng.NormFloat64())), rate/1000); err != nil {
					b.Fatal(err)
				}
			}
			text, err := record.HistogramOf(h)
			if err != nil {
				b.Fatal(err)
			}
			kinds[i][name] = text
		}
	}
	goal, err := slo.ParseGoal("latency=Responded p99 <= 50ms; errors < 1%; achieved >= 95%")
	if err != nil {
		b.Fatal(err)
	}
	spec := result.Spec{Goals: []slo.Goal{goal}, Milestones: []string{"Connected", "Responded"}, Kind: record.ObjectKind{There: "Responded"}}
	for b.Loop() {
		builder := NewBuilder(spec)
		builder.Add(record.Event{Step: 1, Body: &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: rate}, Open: true, Hold: seconds * 1e6, Timeout: 10e6}})
		builder.Add(record.Event{T: 0, Step: 1, Body: &record.StepEvent{Phase: record.PhaseReached}})
		for i := range record.Micros(seconds) {
			builder.Add(record.Event{T: (i + 2) * 1e6, Step: 1, Body: &record.Window{
				From: i * 1e6, To: (i + 1) * 1e6, Intended: rate, Sent: rate, Done: rate, Answered: rate, Histograms: kinds[int(i)%len(kinds)],
			}})
		}
		builder.Add(record.Event{T: (seconds + 2) * 1e6, Step: 1, Body: &record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld}})
		if s := builder.LastStep(); s.Verdict != slo.Pass || s.Requests.Done != seconds*rate {
			b.Fatalf("%s (%s), %+v", s.Verdict, s.VerdictWhy, s.Requests)
		}
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.Sys)/1e6, "MB")
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/hour")
}
