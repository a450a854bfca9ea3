package verdict

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stream"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Each check applies to its own evidence, and to none where all objectives held.
func TestEachCheck(t *testing.T) {
	taken := &result.Neighbour{What: result.Processors, Others: 90, CPUs: 2, Wanted: 150}
	broken := func(b breach) func(*evidence) {
		b.What = "Complete p99 <= 5ms: it was 9 ms"
		return func(e *evidence) { e.broken = append(e.broken, b) }
	}
	requests := stream.New(1, nil)
	both := func(list ...func(*evidence)) func(*evidence) {
		return func(e *evidence) {
			for _, change := range list {
				change(e)
			}
		}
	}
	ofStream := func(e *evidence) { e.f.CountStream(requests) }
	for _, c := range []struct {
		check, why string
		change     func(*evidence)
		says       string
	}{
		{"other load", "a client of several began late, and an objective did not hold", both(broken(breach{}), func(e *evidence) { e.step.Message, e.step.Ending = "client 1 began late", record.EndVoid }), "client 1 began late"},
		{"generator used up", "the load's own program is the bound", both(ofStream, func(e *evidence) {
			e.step.Bottleneck = &result.Bottleneck{Bounds: []result.BoundShare{{What: "fio is busy", Held: true, Generator: true}}}
		}, broken(breach{})), "this says nothing about the target: Complete p99"},
		{"late", "the generator was late, and that explains all", both(ofStream, broken(breach{late: "plimsoll itself was late"})), "plimsoll itself was late"},
		{"neighbours", "others took the processors", broken(breach{by: taken}), "other programs used 90%"},
		{"broken", "an objective did not hold", broken(breach{}), "it was 9 ms"},
		{"broken", "one of two breaches has no excuse", both(broken(breach{by: taken}), broken(breach{})), "it was 9 ms; "},
		{"broken", "the generator was late, by less than the breach", both(ofStream, broken(breach{late: "late", delay: delayShort})), "it was 9 ms"},
		{"broken", "the generator was late, which has no bearing on one breach", both(ofStream, broken(breach{late: "late"}), broken(breach{delay: delayApart})), "it was 9 ms; "},
		{"broken", "the generator was late, and requests were refused", both(ofStream, broken(breach{late: "late"}), broken(breach{delay: delayNever})), "it was 9 ms; "},
		{"open", "an objective is unknown", func(e *evidence) { e.open = []string{"a", "b"} }, "a; b"},
		{"latencies unknown", "a histogram is damaged", both(ofStream, func(e *evidence) { requests.Err = errors.New("damaged") }), "its latencies are unknown"},
		{"lost", "the state of an object is unknown", func(e *evidence) { e.step.Objects.Lost = 1 }, "is unknown"},
		{"blind", "the watch was cut", func(e *evidence) { e.f.Blind = true }, "the watch was cut"},
		{"cut", "the user stopped the run", func(e *evidence) { e.step.Message = "stopped"; e.step.Ending = record.EndUnfinished }, "stopped"},
		{"requests unknown", "a request is not on record", func(e *evidence) { e.f.ToAsk = 2 }, "are not on record"},
		{"nothing asked", "nobody asked for anything", func(e *evidence) { e.step.Objects.Intended = 0 }, "nothing was asked for"},
		{"nothing asked", "objects of others fill the level", func(e *evidence) { e.step.Objects.Intended, e.f.Others = 0, 3 }, "3 pods that are not this run's"},
		{"held", "every objective held", func(*evidence) {}, "every objective held"},
	} {
		spec := &result.Spec{Kind: podKind()}
		e := &evidence{verdicts: &verdicts{spec: spec, f: &fold.Facts{}, step: &Judged{}}}
		e.f.CountObjects()
		requests.Err = nil
		e.step.Objects.Intended = 1
		c.change(e)
		if e.f.Account.Streams() {
			e.step.Requests = &result.StreamRequests{Intended: 1}
		}
		if d := e.decide(); d.check.name != c.check || !strings.Contains(d.why, c.says) {
			t.Errorf("%s: %q decides (%s), want %q", c.why, d.check.name, d.why, c.check)
		}
	}
	// What excuses a breach comes before it, and fail before inconclusive before pass.
	var order []slo.Verdict
	for _, c := range checks() {
		order = append(order, c.verdict)
	}
	fail := slices.Index(order, slo.Fail)
	if slices.Contains(order[fail:], slo.Invalid) || slices.Contains(order[:fail], slo.Pass) || order[len(order)-1] != slo.Pass || slices.Index(order, slo.Pass) != len(order)-1 {
		t.Errorf("the order of the checks is %q", order)
	}
}
