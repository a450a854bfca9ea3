package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// standing is a step of 20 requests a second over 20 s, in which no write was
// answered from second 6 to 14. Change may plant something else.
func standing(t *testing.T, kind string, change func(s *script, at float64)) (result.Step, result.Result) {
	t.Helper()
	return standingWith(t, kind, true, change)
}

func standingWith(t *testing.T, kind string, canaries bool, change func(s *script, at float64)) (result.Step, result.Result) {
	t.Helper()
	s := newScript(t, "ready=all Ready", "quick=Ready p99 <= 5s")
	spec := s.spec
	spec.ExperimentKind = kind
	var err error
	if spec.Signatures, err = signature.Builtin(); err != nil {
		t.Fatal(err)
	}
	s.Builder = NewBuilder(spec)
	from, to := record.Micros(6e6), record.Micros(14e6)
	held := func(t record.Micros) record.Micros { // when what was sent at t is answered
		if t >= from-5e3 && t < to {
			return to
		}
		return t + 5e3
	}
	canary := func(sent record.Micros) {
		if s.now = held(sent); !canaries {
			return
		}
		s.put(&record.Canary{Sent: sent, Replied: s.now, Seen: s.now + 1e3})
	}
	s.at(0.1).begin(1, func(b *record.StepEvent) { b.Hold = 5e6 })
	cpu := 0.0
	for tenth := range 201 {
		at := float64(tenth) / 10
		s.at(at)
		// What waits holds the next back, but for the few that may be under way.
		now := s.now
		if stuck := now >= from && now < to; !stuck || tenth < 63 {
			for i := range 2 {
				name := fmt.Sprintf("p%d-%d", tenth, i)
				s.asked(name, func(r *record.Slot) { r.Replied = held(r.Sent) })
				s.now = held(now)
				s.news(name + " Created Scheduled ContainersStarted Ready")
				s.now = now
			}
			canary(now - 4e3)
			s.now = now
			cpu += 0.02
		}
		if tenth%10 == 0 {
			s.put(&record.Reading{Source: usage.SourceMachine, Values: map[string]float64{"cpuSeconds": 2 * cpu, "cpus": 2}})
			s.put(&record.Reading{Source: "etcd", Values: map[string]float64{"cpuSeconds": cpu, "rssBytes": 1e8}})
			s.put(&record.Reading{Source: "busy", Values: map[string]float64{"cpuSeconds": at, "rssBytes": 1e8}})
		}
		if change != nil && tenth > 0 {
			change(s, at)
		}
	}
	s.at(20.1).put(&record.StepEvent{Phase: record.PhaseLoaded})
	s.put(&record.StepEvent{Phase: record.PhaseReached})
	step := *s.at(25).end(record.EndHeld)
	return step, s.finish(design.Sweep{Levels: []float64{1}})
}

// What stops the whole API for seconds is named with its evidence, at the
// moment at which it began, and no limit is concluded from it.
func TestStandstill(t *testing.T) {
	for _, kind := range []string{"sweep", "limit"} {
		step, r := standing(t, kind, nil)
		x := step.Breaches[0]
		if x.Kind != result.BreachStandstill || x.At != 5.996e6 || *x.Value != 8.004 || x.Count != 6 {
			t.Fatalf("%s: %+v", kind, x)
		}
		for _, want := range []string{
			"no write was answered from 5.90 s to 13.90 s after the step's start", "6 requests ended together",
			"etcd used 0.3% of the CPUs meanwhile, else 10.3%", "at its 20 requests/s a schedule would have sent 160 into it",
		} {
			if !strings.Contains(x.Message, want) {
				t.Errorf("%s: no %q in %q", kind, want, x.Message)
			}
		}
		if strings.Contains(x.Message, "busy") {
			t.Errorf("a program that went on is called idle: %q", x.Message)
		}
		if b := r.BrokeFirst; b == nil || b.Breach.Kind != result.BreachStandstill || !strings.HasPrefix(b.Says, "all writes stood still before anything else broke") {
			t.Errorf("%s: broke first: %+v", kind, b)
		}
		for _, f := range r.BrokeFirst.Conditions.Figures {
			if (f.Name == result.FigureAPI || f.Name == result.FigureWatchLag || f.Name == result.FigureRequest) && (f.Value == nil || *f.Value < 4) {
				t.Errorf("%s: %s was %s all through it", kind, f.Name, show(f.Value))
			}
		}
		if i := slices.IndexFunc(r.Diagnosis, func(d result.Diagnosis) bool { return d.Signature == "writes-stood-still" }); i < 0 || r.Diagnosis[i].First != step.Breaches[0].Time || !strings.Contains(r.Diagnosis[i].Evidence, "ended together") {
			t.Errorf("%s: %+v", kind, r.Diagnosis)
		}
		if !slices.ContainsFunc(r.Warnings, func(w record.Warning) bool { return w.Kind == record.WarningStandstill && w.Seconds == 8.004 }) {
			t.Errorf("%s: no warning: %v", kind, r.Warnings)
		}
	}
}

// Pods that have no place have none for another reason than that.
func TestAStandstillExcusesNothingElse(t *testing.T) {
	_, r := standing(t, "limit", func(s *script, at float64) {
		if at == 19 {
			s.asked("homeless")
			s.state("homeless", "Unschedulable", "0/2 nodes are available: 2 Too many pods.")
		}
	})
	if b := r.BrokeFirst; b == nil || b.Breach.Kind != result.BreachStandstill || !strings.HasPrefix(b.Says, "a limit of one or more components was reached") {
		t.Errorf("%+v", b)
	}
}

func TestNoStandstill(t *testing.T) {
	if step, r := standingWith(t, "sweep", false, nil); len(r.Diagnosis) > 0 || slices.ContainsFunc(step.Breaches, func(x result.Breach) bool { return x.Kind == result.BreachStandstill }) {
		t.Errorf("nothing but the load writes, as to a glusterd: %+v", r.Diagnosis)
	}
	for _, tt := range []struct {
		why  string
		what func(s *script, at float64)
	}{
		{"other writes are answered: it is one kind of request that waits, as for a webhook", func(s *script, at float64) {
			s.put(&record.Canary{Sent: s.now - 2e3, Replied: s.now - 1e3, Seen: s.now})
		}},
		{"objects move: their news comes from writes", func(s *script, at float64) {
			if at == 10 {
				s.news("p1-0 Deleted")
			}
		}},
		{"requests are answered and sent again: it is refusals that take so long", func(s *script, at float64) {
			if at == 14.5 {
				s.asked("again", func(r *record.Slot) { r.Sent, r.Retries = s.now-8e6, 7 })
				s.news("again Created Scheduled ContainersStarted Ready")
			}
		}},
		{"this program stood still itself", func(s *script, at float64) {
			if at == 14 {
				s.put(&record.Reading{Source: usage.SourceWakes, Values: map[string]float64{"wakes": 100, "late": 1, "mostSeconds": 7.9}})
			}
		}},
	} {
		if step, r := standing(t, "sweep", tt.what); slices.ContainsFunc(step.Breaches, func(x result.Breach) bool { return x.Kind == result.BreachStandstill }) || slices.ContainsFunc(r.Warnings, func(w record.Warning) bool { return w.Kind == record.WarningStandstill }) {
			t.Errorf("%s: %+v", tt.why, step.Breaches)
		}
	}
}
