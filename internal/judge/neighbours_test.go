package judge

import (
	"fmt"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// A breach that missing processors explain is invalid where other programs took them,
// and any other one stays one; what held holds, with a warning.
func TestNeighboursDecide(t *testing.T) {
	goals := []string{"ready=all Ready; errors <= 0%", "startup=Ready p99 <= 5s"}
	slow := func(s *script) { s.made("a b", 9) }
	never := func(s *script) { s.asked("a"); s.news("a Created"); s.made("b", 1) }
	always := func(int) bool { return true }
	for _, c := range []struct {
		why    string
		do     func(s *script) // at 1 s, of a step that lasts until 20 s
		busy   func(second int) bool
		ending record.Ending
		want   string // the goals' verdicts
	}{
		{"it held", func(s *script) { s.made("a b", 1) }, always, record.EndHeld, "pass pass"},
		{"slow, on a machine of its own", slow, func(int) bool { return false }, record.EndHeld, "pass fail"},
		{"slow, beside others", slow, always, record.EndHeld, "pass invalid"},
		{"others worked shortly before it could no longer hold", slow, func(second int) bool { return second < 7 }, record.EndHeld, "pass invalid"},
		{"they worked later", slow, func(second int) bool { return second > 14 }, record.EndHeld, "pass fail"},
		{"time ran out", never, always, record.EndTimeout, "invalid invalid"},
		{"time ran out, on a machine of its own", never, func(int) bool { return false }, record.EndTimeout, "fail fail"},
		{"no node had room", func(s *script) {
			never(s)
			s.state("a", "Unschedulable", "0/4 nodes are available: 4 Too many pods.")
		}, always, record.EndStalled, "fail fail"},
		{"it failed for good", func(s *script) { never(s); s.state("a", "Error", "exit code 1", failed) }, always, record.EndStalled, "fail fail"},
		{"one was refused, and one was slow", func(s *script) {
			s.asked("a", outcome(record.SlotFailed, 403, "forbidden"))
			s.made("b", 9)
		}, always, record.EndStalled, "fail fail"},
		{"a request had no answer in time", func(s *script) {
			s.asked("a", outcome(record.SlotFailed, 0, "context deadline exceeded"))
			s.made("b", 1)
		}, always, record.EndStalled, "invalid invalid"},
		{"the server said that time was over", func(s *script) {
			s.asked("a", outcome(record.SlotFailed, 504, "Timeout: request did not complete"))
			s.made("b", 1)
		}, always, record.EndStalled, "invalid invalid"},
		{"the connection was refused", func(s *script) {
			s.asked("a", outcome(record.SlotFailed, 0, "connection refused"))
			s.made("b", 1)
		}, always, record.EndStalled, "fail fail"},
		{"a guard ended it", func(s *script) {
			never(s)
			s.put(&record.Guard{Name: "diskPressure", Value: 1, Bound: 1})
		}, always, record.EndGuard, "fail fail"},
	} {
		s := newScript(t, goals...)
		s.begin(2)
		s.at(1)
		cpu, others := 0.0, 0.0
		for second := range 21 {
			s.at(float64(second) + 0.001)
			if second > 0 {
				cpu += 0.1
				if others += 0.1; c.busy(second) {
					others += 1.7
				}
			}
			s.put(&record.Reading{Source: usage.SourceMachine, Values: map[string]float64{"cpuSeconds": cpu + others, "cpus": 2}})
			s.put(&record.Reading{Source: "etcd", Values: map[string]float64{"cpuSeconds": cpu, "rssBytes": 1e8}})
			if second == 1 {
				c.do(s)
			}
		}
		step := s.at(20.1).end(c.ending)
		if got := fmt.Sprint(step.Goals["ready"], " ", step.Goals["startup"]); got != c.want {
			t.Errorf("%s: %s, want %s: %s", c.why, got, c.want, step.VerdictWhy)
		}
		r := s.finish(design.Sweep{Levels: []float64{2}})
		said := strings.Join(r.Warnings.Lines(), "; ")
		if held := strings.Contains(said, "this step passed anyway"); held != (c.why == "it held") {
			t.Errorf("%s: %s", c.why, said)
		}
		if step.Goals["ready"] == slo.Invalid && !strings.Contains(step.VerdictWhy, "other programs used 90% of this machine's processors (2)") {
			t.Errorf("%s: %s", c.why, step.VerdictWhy)
		}
	}
}

// A trouble that is final stands in the verdict and among what was seen, by its class,
// whatever reason the object gives.
func TestAFinalTroubleIsNamed(t *testing.T) {
	s := newScript(t)
	s.spec.Kind.Troubles = append(s.spec.Kind.Troubles, record.Trouble{Class: "givenUp", What: "jobs were given up", Reasons: []string{"True"}})
	s.Builder = NewBuilder(s.spec)
	s.begin(2)
	s.at(1).made("b", 1)
	s.asked("a")
	s.news("a Created")
	s.at(2).state("a", "DeadlineExceeded", "it was active for too long", failed, func(x *record.State) { x.Class = "givenUp" })
	step := s.at(3).end(record.EndStalled)
	if want := "all Ready: 1 of 2 did not reach it; 1 never will: jobs were given up"; step.Verdict != slo.Fail || step.VerdictWhy != want {
		t.Errorf("%s: %s, want %s", step.Verdict, step.VerdictWhy, want)
	}
	if x := step.Breaches[0]; x.Kind != "givenUp" || x.What != "jobs were given up" || x.Message != "DeadlineExceeded: it was active for too long" {
		t.Errorf("%+v", x)
	}
}
