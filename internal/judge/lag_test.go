package judge

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// A breach that the lag of the news explains is not decided; one that it does not
// explain is, and a pass stays one.
func TestLateNewsIsNoSlowTarget(t *testing.T) {
	canary := func(s *script, sent, lag float64) {
		s.at(sent + lag).put(&record.Canary{Sent: record.Micros(sent * 1e6), Replied: record.Micros(sent*1e6) + 5e3, Seen: s.now})
	}
	for _, c := range []struct {
		why  string
		goal string
		do   func(s *script)
		want slo.Verdict
		says string
	}{
		{"nothing is late: it was slow", "q=Ready p99 <= 5s", func(s *script) {
			s.at(1).made("a b c", 9)
			canary(s, 9, 0.01)
			canary(s, 11, 0.01)
		}, slo.Fail, ""},
		{"all news came 8 s late", "q=Ready p99 <= 5s", func(s *script) {
			s.at(1).made("a b c", 9)
			canary(s, 1.5, 8.2)
			canary(s, 2.5, 8.2)
		}, slo.Inconclusive, "the news of objects was late, by 8.195s at most: it was between 805ms and 9s"},
		{"it was late, and would have been slow all the same", "q=Ready p99 <= 5s", func(s *script) {
			s.at(1).made("a b c", 9)
			canary(s, 6, 3)
			canary(s, 8, 3)
		}, slo.Fail, ""},
		{"it was late before, and not when it counts", "q=Ready p99 <= 5s", func(s *script) {
			canary(s, 1, 1)
			canary(s, 3, 0.01)
			s.at(3.1).made("a b c", 9)
			canary(s, 12.2, 0.01)
		}, slo.Fail, ""},
		{"late, and well within the bound", "q=Ready p99 <= 15s", func(s *script) {
			s.at(1).made("a b c", 9)
			canary(s, 1.5, 8.2)
		}, slo.Pass, ""},
		{"a server that is slow to take a change is no late watch", "q=Ready p99 <= 5s", func(s *script) {
			s.at(1).made("a b c", 9)
			s.at(10).put(&record.Canary{Sent: 1e6, Replied: 9.9e6, Seen: 9.95e6})
		}, slo.Fail, ""},
		{"a gap in the news", "q=Ready p99 <= 5s", func(s *script) {
			s.at(2).put(&record.Fault{What: "watch of pods cut", From: 2e6})
			s.at(9.9).put(&record.Fault{What: "watch of pods cut", From: 2e6, To: 9.9e6, Healed: true})
			s.at(1).made("a b c", 9)
		}, slo.Inconclusive, "by 7.9s at most"},
		{"a watch that was late for long, and by little", "q=Ready p99 <= 5s", func(s *script) {
			s.at(2).put(&record.Fault{What: "watch of pods late", From: 2e6, Late: true})
			canary(s, 8, 0.01)
			s.at(1).made("a b c", 9)
			canary(s, 10.5, 0.01)
		}, slo.Fail, ""},
		{"a gap in other news", "q=Ready p99 <= 5s", func(s *script) {
			s.at(2).put(&record.Fault{What: "watch of nodes late", From: 2e6, Beside: true})
			s.at(9.9).put(&record.Fault{What: "watch of nodes late", From: 2e6, To: 9.9e6, Healed: true, Beside: true})
			s.at(1).made("a b c", 9)
		}, slo.Fail, ""},
		{"all in time, as far as is known", "q=all Ready within 5s", func(s *script) {
			s.at(1).made("a b c", 9)
			canary(s, 1.5, 8.2)
		}, slo.Inconclusive, "the news of objects was late"},
		{"what a list showed was so before", "q=Ready p99 <= 5s", func(s *script) {
			s.at(1).made("a b", 1)
			s.asked("c")
			s.news("c Created")
			s.at(12).put(&record.Object{Object: "ns/c", Milestone: "Ready", Late: true})
			s.put(&record.Corrected{Watch: "pods", Missed: 1})
		}, slo.Inconclusive, "it was between 1s and 11s"},
		{"what a list showed was in time all the same", "q=Ready p99 <= 15s", func(s *script) {
			s.at(1).asked("c")
			s.news("c Created")
			s.at(12).put(&record.Object{Object: "ns/c", Milestone: "Ready", Late: true})
		}, slo.Pass, ""},
		{"what a list showed after the timeout may have been in time", "q=all Ready", func(s *script) {
			s.at(1).asked("c")
			s.news("c Created")
			s.at(70).put(&record.Object{Object: "ns/c", Milestone: "Ready", Late: true})
		}, slo.Inconclusive, "1 of 1 did not reach it; the news of objects was late"},
		{"it was never there, and a list has said so", "q=all Ready", func(s *script) {
			s.at(1).asked("c")
			s.news("c Created")
			canary(s, 60, 8)
		}, slo.Fail, ""},
	} {
		s := oneOfMany(t, c.goal)
		s.at(0.5).begin(3)
		c.do(s)
		step := s.at(80).end(record.EndHeld)
		if step.Verdict != c.want || !strings.Contains(step.VerdictWhy, c.says) {
			t.Errorf("%s: %s: %s\nwant %s: %s", c.why, step.Verdict, step.VerdictWhy, c.want, c.says)
		}
		if !adds(step.Objects) {
			t.Errorf("%s: %+v", c.why, step.Objects)
		}
	}
}

// What a list showed is counted, and said, and news by which nothing is judged that
// does not come hides nothing of the objects.
func TestCorrectionsAreCounted(t *testing.T) {
	s := newScript(t)
	s.at(0.5).begin(3)
	s.made("a b c", 1)
	s.put(&record.Corrected{Watch: "pods", Missed: 2})
	s.put(&record.Corrected{Watch: "pods", Missed: 1})
	s.put(&record.Fault{What: "watch of nodes late", From: s.now, Beside: true})
	step := *s.at(9).end(record.EndHeld)
	if step.Missed["pods"] != 3 || step.Verdict != slo.Pass {
		t.Errorf("missed %v, %s: %s", step.Missed, step.Verdict, step.VerdictWhy)
	}
	r := s.finish(design.Sweep{Levels: []float64{3}})
	text := strings.Join(r.Warnings.Lines(), "\n")
	for _, want := range []string{"step 1: the watch of pods missed changes, which a list showed (3 times)", "watch of nodes late from 500ms on, to the end: its news after that is unknown"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if len(step.Breaches) > 0 {
		t.Errorf("%+v", step.Breaches)
	}
}
