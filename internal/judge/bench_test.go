package judge

import (
	"strconv"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/design"
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
				s.put(&record.Object{Object: name, Milestone: milestone, Node: "node-" + strconv.Itoa(i%1000)})
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
