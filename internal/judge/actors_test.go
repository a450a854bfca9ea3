package judge

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Whoever does nothing is what broke first, before the objective that is lost by it
// and whatever else was seen; it decides nothing by itself.
func TestWhoeverDoesNothingBrokeFirst(t *testing.T) {
	acts := func(s *script, actor, says string, since float64, waiting int, over bool) {
		s.put(&record.Actor{Actor: actor, Says: says, Since: record.Micros(since * 1e6), Waiting: waiting, Of: record.Noun{One: "pod", Many: "pods"}, Over: over, Message: "no lease was renewed"})
	}
	const scheduler = "no scheduler has acted"
	for _, tt := range []struct {
		why    string
		do     func(s *script)
		ending record.Ending
		want   slo.Verdict
		first  string // "" for nothing
		warns  string
	}{
		{
			"pods wait for a scheduler until they are waited for no more: the last that was told counts",
			func(s *script) {
				s.made("a", 1)
				s.at(2).asked("b c")
				s.news("b Created, c Created")
				s.at(3).put(&record.TargetEvent{Object: "ns/a", About: "Pod", Type: "Warning", Reason: "Unhealthy", Message: "Readiness probe failed"})
				s.at(10)
				acts(s, "scheduler", scheduler, 4, 2, false)
				s.at(29)
				acts(s, "scheduler", scheduler, 4, 2, false)
			}, record.EndStalled, slo.Fail, scheduler + " for 25 s; 2 pods wait for it", "",
		},
		{
			"one waits, for the server first",
			func(s *script) {
				s.asked("a")
				s.news("a Created")
				s.at(10)
				acts(s, "API server", "the API server has not answered", 2, 1, false)
				acts(s, "scheduler", scheduler, 4, 2, false)
			}, record.EndStalled, slo.Fail, "the API server has not answered for 8 s; 1 pod waits for it", "",
		},
		{
			"a scheduler that acts again in time is a warning",
			func(s *script) {
				s.made("a b c", 12)
				s.at(9)
				acts(s, "scheduler", scheduler, 1, 1, false)
				s.at(11)
				acts(s, "scheduler", scheduler, 1, 0, true)
			}, record.EndHeld, slo.Pass, "", scheduler + " for 10 s; 1 pod waited for it",
		},
		{
			"an unknown object is not a breach, and the step says who did nothing",
			func(s *script) {
				s.asked("a")
				s.at(9)
				acts(s, "API server", "the API server has not answered", 1, 1, false)
				s.put(&record.Fault{What: "last news missing", From: 9e6})
			}, record.EndStalled, slo.Inconclusive, "the API server has not answered for 8 s; 1 pod waits for it", "",
		},
	} {
		s := newScript(t)
		s.begin(3, func(e *record.StepEvent) { e.Units = 3 })
		tt.do(s)
		s.at(30)
		step := s.end(tt.ending)
		if step.Verdict != tt.want {
			t.Errorf("%s: %s, %s", tt.why, step.Verdict, step.VerdictWhy)
		}
		if tt.want == slo.Fail && !strings.HasPrefix(step.VerdictWhy, tt.first) {
			t.Errorf("%s: it begins not with who did nothing: %s", tt.why, step.VerdictWhy)
		}
		r := s.finish(design.Sweep{Levels: []float64{3}})
		first := ""
		if r.BrokeFirst != nil {
			first = r.BrokeFirst.Breach.What
			if x := step.Breaches[0]; x.What != first || x.Decided || x.Kind != result.BreachActor || x.Message == "" || r.BrokeFirst.Says == "" {
				t.Errorf("%s: the first breach is %+v", tt.why, x)
			}
		}
		if first != tt.first {
			t.Errorf("%s: first broke %q, want %q", tt.why, first, tt.first)
		}
		warned := ""
		for _, w := range r.Warnings {
			warned += w.Text + "\n"
		}
		if !strings.Contains(warned, tt.warns) || !strings.Contains(warned, tt.first) {
			t.Errorf("%s: warnings %s", tt.why, warned)
		}
	}
}
