package verdict

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// objectives judge the generated steps.
var objectives = [...]string{"all Ready", "all Ready within 5s", "Ready p50 <= 5s", "Ready max <= 15s", "Ready mean >= 2s", "errors <= 40%", "retried <= 0%", "query 'up' < 5", "Bound p99 <= 5s"}

// worst joins the verdicts on several objectives: a breach outranks unknown, which
// outranks a pass.
func worst(list []slo.Verdict) slo.Verdict {
	got := slo.Pass
	for _, v := range list {
		if v == slo.Fail || v == slo.Inconclusive && got == slo.Pass {
			got = v
		}
	}
	return got
}

// generated tells a step at random. It returns what of it nobody knows, whatever the
// goal is, and whether the query was answered.
func generated(rng *rand.Rand, s *story) (unknown []string, answered bool, ending record.Ending) {
	one := func(in int) bool { return rng.IntN(in) == 0 }
	ending = record.EndHeld
	s.put(&record.Place{Set: []string{"n1", "n2"}})
	asked := 1 + rng.IntN(4)
	short := 0
	if one(8) {
		short = 1
		unknown = append(unknown, "a request is not on record")
	}
	s.begin(units(asked + short))
	s.at(1)
	for i := range asked {
		name := fmt.Sprint("o", i)
		switch rng.IntN(9) {
		case 0:
			s.asked(name, refused(500, "no leader"))
		case 1:
			s.asked(name)
			s.news(name + ": Created")
			s.fails(name)
		case 2:
			s.asked(name, noAnswer)
		case 3:
			s.asked(name, func(b *record.Slot) { b.Retries = 1 })
			s.news(name + ": Created")
		case 4:
			s.made(name, 9)
		default:
			s.made(name, 1)
		}
	}
	if one(6) {
		s.canary(1.5, 8.2)
	}
	switch rng.IntN(12) {
	case 0:
		s.at(5).put(&record.Place{Place: "n2", State: record.PlaceGone, What: "was deleted"})
		unknown = append(unknown, "a node was taken")
	case 1:
		s.at(5).put(&record.Place{Place: "n2", State: record.PlaceNotReady, What: "became NotReady"})
		unknown = append(unknown, "a node was not ready")
	}
	if one(5) {
		s.at(6).put(&record.Fault{What: "watch of pods cut", From: 6e6})
		unknown = append(unknown, "the watch was cut")
	}
	switch rng.IntN(8) {
	case 0:
		ending = record.EndInterrupted
		unknown = append(unknown, "the user stopped it")
	case 1:
		ending = record.EndUnfinished
		unknown = append(unknown, "what was done had not ended")
	}
	answer := &record.Answer{Objective: "query 'up' < 5", Series: 1, Value: "3"}
	switch rng.IntN(6) {
	case 0:
		answer.Series = 0
	case 1:
		answer.NaN = 1
	case 2:
		answer.Why = "the server did not answer"
	case 3:
		answer = nil
	default:
		answered = true
	}
	if answer != nil {
		s.at(19).put(answer)
	}
	return unknown, answered, ending
}

// What nobody knows is never a pass, and several objectives are judged as the worst of
// them, in any step.
func TestUnknownIsNeverAPass(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	seen := make(map[string]int)
	for range 3000 {
		var texts, goals []string
		for i, at := range rng.Perm(len(objectives))[:1+rng.IntN(4)] {
			texts = append(texts, objectives[at])
			goals = append(goals, fmt.Sprintf("g%d=%s", i, objectives[at]))
		}
		s := newStory(t, podKind(), nil, append([]string{"together=" + strings.Join(texts, "; ")}, goals...)...)
		unknown, answered, ending := generated(rng, s)
		step := s.at(20).end(ending)
		if step.Account().Lost > 0 {
			unknown = append(unknown, "an object is lost")
		}
		for _, what := range unknown {
			seen[what]++
		}
		var each []slo.Verdict
		for i, text := range texts {
			v := step.Goals[fmt.Sprint("g", i)]
			each = append(each, v)
			seen[string(v)]++
			nothing := strings.HasPrefix(text, "Bound") || strings.HasPrefix(text, "query") && !answered
			if v == slo.Pass && (len(unknown) > 0 || nothing) || v == slo.Invalid {
				t.Fatalf("%s: %s, though %q is unknown", text, v, unknown)
			}
		}
		if want := worst(each); step.Verdict != want {
			t.Fatalf("%q are %q, and together %s: %s", texts, each, step.Verdict, step.VerdictWhy)
		}
	}
	for _, what := range []string{"a request is not on record", "a node was taken", "a node was not ready", "the watch was cut", "the user stopped it", "what was done had not ended", "an object is lost", "pass", "fail", "inconclusive"} {
		if seen[what] < 100 {
			t.Errorf("%s: only in %d steps", what, seen[what])
		}
	}
}

// A stream of which one request is lost, or one histogram cannot be read, never passes.
func TestAnUnknownRequestIsNeverAPass(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	texts := []string{"Complete p50 <= 50ms", "Complete p99 <= 5ms", "all Complete", "errors <= 50%", "retried <= 50%", "achieved >= 50%", "backends failed <= 9"}
	for range 12 {
		var goals []string
		for i, text := range texts {
			goals = append(goals, fmt.Sprintf("g%d=%s", i, text))
		}
		s := newStory(t, requestKind(), nil, goals...)
		s.begin(open)
		at, damaged := rng.IntN(20), rng.IntN(2) == 0
		s.windows(func(second int, w *plant) {
			switch {
			case second == at && damaged:
				w.Histograms = map[string]record.Histogram{"Complete": "damaged"}
			case second == at:
				w.Lost = 1 + rng.IntN(3)
			case rng.IntN(5) == 0:
				w.Failed = map[string]int{"reset": 1}
			}
		})
		step := s.at(20).end(record.EndHeld)
		for i, text := range texts {
			if v := step.Goals[fmt.Sprint("g", i)]; v == slo.Pass || v == slo.Invalid {
				t.Errorf("%s: %s, with a damaged window %v", text, v, damaged)
			}
		}
	}
}
