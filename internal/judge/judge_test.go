package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/findings"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// What becomes of the objects of one step, and what "all Ready" makes of it.
func TestAStepsAccount(t *testing.T) {
	const noPlace = "0/3 nodes are available: 3 Too many pods."
	unschedulable := func(s *script, name string) {
		s.asked(name)
		s.news(name + " Created")
		s.state(name, "Unschedulable", noPlace)
	}
	cutWatch := &record.Fault{What: "watch cut", From: 1}
	for _, tt := range []struct {
		why     string
		do      func(s *script)
		ending  record.Ending
		account string
		verdict slo.Verdict
		because string // the verdict, in part
		reasons string
	}{
		{
			"all are there",
			func(s *script) { s.made("a b c", 2) },
			record.EndHeld, "3 ready", slo.Pass, "every objective held", "",
		},
		{
			"one is never there and tells nothing: what is followed to the timeout is certain",
			func(s *script) { s.made("a b", 2); s.asked("c"); s.news("c Created Scheduled") },
			record.EndTimeout, "2 ready, 1 never", slo.Fail, "all Ready: 1 of 3 did not reach it", "1 NotReady",
		},
		{
			"no news of one at all",
			func(s *script) { s.made("a", 2); s.asked("b") },
			record.EndTimeout, "1 ready, 1 never", slo.Fail, "1 of 2", "1 NoNews",
		},
		{
			"one is there a microsecond after the timeout: it counts as one that never was",
			func(s *script) { s.made("a", 60.000001) },
			record.EndHeld, "1 never", slo.Fail, "1 of 1", "1 TooLate",
		},
		{
			"one is there right at the timeout",
			func(s *script) { s.made("a", 60) },
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"one was refused, one never sent",
			func(s *script) {
				s.made("a", 2)
				s.asked("b", outcome(record.SlotFailed, 403, "exceeded quota"))
				s.asked("c", outcome(record.SlotDropped, 0, ""))
			},
			record.EndStalled, "1 ready, 1 failed, 1 dropped", slo.Fail, "2 of 3", "1 HTTP 403",
		},
		{
			"a request of three objects was refused: three did not reach it, and not nine",
			func(s *script) { s.asked("d", grouped(3), outcome(record.SlotFailed, 500, "no")) },
			record.EndStalled, "3 failed", slo.Fail, "3 of 3", "3 HTTP 500",
		},
		{
			"a request without an answer, and no news by the timeout: it is certain that nothing is there",
			func(s *script) { s.asked("a", outcome(record.SlotUnknown, 0, "connection refused")) },
			record.EndStalled, "1 never", slo.Fail, "1 of 1", "1 NoAnswer",
		},
		{
			"a request without an answer whose object came all the same",
			func(s *script) { s.asked("a", outcome(record.SlotUnknown, 0, "timeout")); s.news("a Created Ready") },
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"a request that was refused, by its answer, and whose object came: news is stronger than an answer",
			func(s *script) { s.asked("a", outcome(record.SlotFailed, 500, "no")); s.news("a Created Ready") },
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"no place for two",
			func(s *script) { s.made("a", 2); unschedulable(s, "b"); unschedulable(s, "c") },
			record.EndStalled, "1 ready, 2 never", slo.Fail, "2 of 3", "2 Too many pods on 3 of 3",
		},
		{
			"no place at first",
			func(s *script) {
				unschedulable(s, "a")
				s.at(20).news("a Scheduled")
				s.state("a", "", "")
				s.news("a ContainersStarted Ready")
			},
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"one was there and fell from it",
			func(s *script) {
				s.made("a b", 2)
				s.at(20).state("b", "CrashLoopBackOff", "back-off 10s restarting failed container", lost)
			},
			record.EndHeld, "1 ready, 1 never", slo.Fail, "1 of 2", "1 CrashLoopBackOff",
		},
		{
			"one fell and is there again",
			func(s *script) {
				s.made("a", 2)
				s.at(20).state("a", "ContainersNotReady", "", lost)
				s.state("a", "", "", regained)
			},
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"somebody deleted one",
			func(s *script) { s.made("a b", 2); s.at(20).news("b Deleted") },
			record.EndHeld, "1 ready, 1 never", slo.Fail, "1 of 2", "1 Deleted",
		},
		{
			"one was drained: that it was told to go is no reason, that it is gone is",
			func(s *script) { s.made("a", 2); s.at(20).state("a", "Deleting", "", lost); s.news("a Deleted") },
			record.EndHeld, "1 never", slo.Fail, "1 of 1", "1 Deleted",
		},
		{
			"one was evicted and then removed: the reason is the eviction",
			func(s *script) {
				s.made("a", 2)
				s.at(20).state("a", "Evicted", "the node was low on memory", lost, failed)
				s.news("a Deleted")
			},
			record.EndHeld, "1 never", slo.Fail, "1 of 1", "1 Evicted",
		},
		{
			"the user cut the step: what was not there yet is lost, never a breach",
			func(s *script) { s.made("a", 2); s.asked("b"); s.news("b Created"); s.asked("c") },
			record.EndInterrupted, "1 ready, 2 lost", slo.Inconclusive, "the state of 2 of 3 is unknown", "1 NoNews, 1 NotReady",
		},
		{
			"the user cut the step when all were there: it was not held, and is no pass",
			func(s *script) { s.made("a", 2) },
			record.EndInterrupted, "1 ready", slo.Inconclusive, "the step was cut short: interrupted", "",
		},
		{
			"all are there, and what was done to the target had not ended",
			func(s *script) { s.made("a", 1) },
			record.EndUnfinished, "1 ready", slo.Inconclusive, "had not ended", "",
		},
		{
			"the user cut the step after one had failed for good: that is certain",
			func(s *script) {
				s.asked("a")
				s.news("a Created Scheduled")
				s.state("a", "OutOfpods", "", failed)
				s.asked("b")
			},
			record.EndInterrupted, "1 never, 1 lost", slo.Fail, "1 of 2", "1 NoNews, 1 OutOfpods",
		},
		{
			"the user cut the step when there was no place for one",
			func(s *script) { s.made("a", 2); unschedulable(s, "b") },
			record.EndInterrupted, "1 ready, 1 never", slo.Fail, "1 of 2", "1 Too many pods on 3 of 3",
		},
		{
			"a guard cut the step: what was not there yet is lost, and the breach is the guard's",
			func(s *script) {
				s.made("a", 2)
				s.asked("b")
				s.put(&record.Guard{Name: "nodesNotReady", Value: 1, Bound: 1})
			},
			record.EndGuard, "1 ready, 1 lost", slo.Fail, "guard:nodesNotReady", "1 NoNews",
		},
		{
			"the watch is cut at the end: what was not there by then is lost",
			func(s *script) { s.made("a", 2); s.asked("b"); s.put(cutWatch) },
			record.EndTimeout, "1 ready, 1 lost", slo.Inconclusive, "the state of 1 of 2 is unknown", "1 NoNews",
		},
		{
			"the watch is cut at the end, and all were there by then: no pass",
			func(s *script) { s.made("a", 2); s.put(cutWatch) },
			record.EndHeld, "1 ready", slo.Inconclusive, "the watch was cut", "",
		},
		{
			"the watch is cut at the end: what had no place by then may have one",
			func(s *script) { unschedulable(s, "a"); s.put(cutWatch) },
			record.EndStalled, "1 lost", slo.Inconclusive, "1 of 1", "1 Too many pods on 3 of 3",
		},
		{
			"the watch was cut and taken up again: nothing was lost",
			func(s *script) {
				s.made("a", 2)
				s.asked("b")
				s.put(cutWatch)
				s.put(&record.Fault{What: "watch cut", From: 1, To: 2, Healed: true})
			},
			record.EndTimeout, "1 ready, 1 never", slo.Fail, "1 of 2", "1 NoNews",
		},
		{
			"another fault's end does not heal the watch",
			func(s *script) {
				s.made("a", 2)
				s.put(cutWatch)
				s.put(&record.Fault{What: "last news missing", From: 1, To: 2, Healed: true})
			},
			record.EndHeld, "1 ready", slo.Inconclusive, "the watch was cut", "",
		},
		{
			"news come before the request's own answer: one object all the same, timed from the request",
			func(s *script) {
				s.at(1).news("a Created Scheduled")
				s.at(3).news("a Ready")
				s.asked("a", func(r *record.Slot) { r.Sent, r.Replied = 0.5e6, 3e6 })
			},
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"a controller makes three: one of them never",
			func(s *script) {
				s.asked("d", grouped(3))
				s.news("d-1/d Created Scheduled Ready, d-2/d Created Scheduled Ready")
			},
			record.EndTimeout, "2 ready, 1 never", slo.Fail, "1 of 3", "1 NoNews",
		},
		{
			"a controller is faster than the answer to the request",
			func(s *script) {
				s.news("d-1/d Created Scheduled")
				s.asked("d", grouped(2))
				s.news("d-1/d Ready, d-2/d Created Scheduled Ready")
			},
			record.EndHeld, "2 ready", slo.Pass, "", "",
		},
		{
			"a controller replaced one: the slots are filled, but not as they were",
			func(s *script) {
				s.asked("d", grouped(2))
				s.news("d-1/d Created Ready, d-2/d Created Ready")
				s.at(20).state("d-1/d", "Deleting", "", lost)
				s.news("d-1/d Deleted, d-3/d Created Ready")
			},
			record.EndHeld, "2 ready", slo.Fail, "replaced: 1 object replaced others", "",
		},
		{
			"a controller replaced one, and the new one is not there: each slot counts once",
			func(s *script) {
				s.asked("d", grouped(2))
				s.news("d-1/d Created Ready, d-2/d Created Ready")
				s.at(20).news("d-1/d Deleted, d-3/d Created")
				s.state("d-3/d", "ImagePullBackOff", "not found")
			},
			record.EndTimeout, "1 ready, 1 never", slo.Fail, "1 of 2", "1 ImagePullBackOff",
		},
		{
			"somebody replaced one under its own name",
			func(s *script) {
				s.made("a", 2)
				s.at(20).news("a Deleted, a Created Scheduled Ready")
			},
			record.EndHeld, "1 ready", slo.Fail, "replaced: 1 object", "",
		},
		{
			"somebody replaced one under its own name, and its end went unseen",
			func(s *script) { s.made("a", 2); s.at(20).news("a Created") },
			record.EndTimeout, "1 never", slo.Fail, "replaced: 1 object", "1 NotReady",
		},
		{
			"news of what was never asked for, and of its end",
			func(s *script) {
				s.made("a", 2)
				s.news("x Deleted, y/d Deleted")
				s.state("x", "Failed", "", failed)
			},
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"a service is no object with milestones: asked for, made, and not counted",
			func(s *script) { s.made("a", 2); s.asked("svc", func(r *record.Slot) { r.Units = 0 }) },
			record.EndHeld, "1 ready", slo.Pass, "", "",
		},
		{
			"a service that could not be made is told of",
			func(s *script) {
				s.made("a", 2)
				s.asked("svc", func(r *record.Slot) { r.Units = 0 }, outcome(record.SlotFailed, 422, "no port"))
			},
			record.EndHeld, "1 ready", slo.Pass, "", "1 HTTP 422",
		},
		{
			"nothing was asked for: that is no pass",
			func(*script) {},
			record.EndHeld, "", slo.Inconclusive, "nothing was asked for", "",
		},
	} {
		s := newScript(t)
		s.begin(3)
		tt.do(s)
		c := s.at(130).end(tt.ending, func(b *record.StepEvent) { b.Places = 3 })
		if !adds(c.Objects) {
			t.Errorf("%s: the account does not add up: %+v", tt.why, c.Objects)
		}
		if got := account(c.Objects); got != tt.account {
			t.Errorf("%s: account %q, want %q", tt.why, got, tt.account)
		}
		if c.Verdict != tt.verdict || !strings.Contains(c.VerdictWhy, tt.because) || c.Goals["ready"] != tt.verdict {
			t.Errorf("%s: %s, %s, want %s, %s", tt.why, c.Verdict, c.VerdictWhy, tt.verdict, tt.because)
		}
		if got := whyNot(c); got != tt.reasons {
			t.Errorf("%s: reasons %q, want %q", tt.why, got, tt.reasons)
		}
	}
}

// A run that is killed leaves a step without an end: what its requests came to
// is judged as far as it goes, and never a pass or a breach for want of news.
func TestAStepWithoutAnEnd(t *testing.T) {
	for _, tt := range []struct {
		why     string
		do      func(s *script)
		account string
		verdict slo.Verdict
	}{
		{"right after its start", func(*script) {}, "", slo.Inconclusive},
		{"with all of them there", func(s *script) { s.made("a b", 2) }, "2 ready", slo.Inconclusive},
		{"with one on its way", func(s *script) { s.made("a", 2); s.asked("b") }, "1 ready, 1 lost", slo.Inconclusive},
		{"with news of one whose answer was not on record yet", func(s *script) { s.made("a", 2); s.news("b Created Scheduled") }, "1 ready, 1 lost", slo.Inconclusive},
		{"with news of a controller's pods, whose owner's answer was not on record yet: nobody knows how many they should be",
			func(s *script) { s.news("d-1/d Created Ready, d-2/d Created, d-3/d Created Deleted") }, "1 ready, 1 lost", slo.Inconclusive},
		{"with one that had failed for good", func(s *script) {
			s.asked("a")
			s.news("a Created")
			s.state("a", "Evicted", "", failed)
		}, "1 never", slo.Fail},
	} {
		s := newScript(t)
		s.begin(3, func(b *record.StepEvent) { b.Units = 9 })
		tt.do(s)
		r := s.Finish(design.Sweep{Levels: []float64{3}}, record.Fidelity{}, "")
		c := r.Steps[0]
		if account(c.Objects) != tt.account || c.Verdict != tt.verdict || c.Ending != record.EndInterrupted || !adds(c.Objects) {
			t.Errorf("%s: %q, %s (%s), ended %s, want %q, %s", tt.why, account(c.Objects), c.Verdict, c.VerdictWhy, c.Ending, tt.account, tt.verdict)
		}
		if len(r.Warnings) == 0 || !strings.Contains(r.Warnings[0].Text, "the run was cut") {
			t.Errorf("%s: warnings %q", tt.why, r.Warnings)
		}
	}
}

// A step whose start says more than its requests do is no pass: a request is
// missing from the record.
func TestRequestsThatAreNotOnRecord(t *testing.T) {
	s := newScript(t)
	s.begin(3, func(b *record.StepEvent) { b.Units = 3 })
	s.made("a b", 1)
	if c := s.end(record.EndHeld); c.Verdict != slo.Inconclusive || !strings.Contains(c.VerdictWhy, "the requests for 1 object are not on record") {
		t.Errorf("%s: %s", c.Verdict, c.VerdictWhy)
	}
}

// Objects stay from step to step: whether they are there is judged in each,
// how long they took just in the step that asked for them.
func TestObjectsOfEarlierSteps(t *testing.T) {
	type step struct {
		account string
		verdict slo.Verdict
		because string
		n       int // objects whose latency was judged
	}
	for _, tt := range []struct {
		why         string
		first, next func(s *script)
		ending      record.Ending // of the first
		want        [2]step
	}{
		{
			"all stay: the second step judges its own latencies",
			func(s *script) { s.made("a b", 1) }, func(s *script) { s.made("c", 30) }, record.EndHeld,
			[2]step{{"2 ready", slo.Pass, "", 2}, {"3 ready", slo.Fail, "Ready p50 <= 5s: it was 30s", 1}},
		},
		{
			"one that took too long in its own step is there in the next",
			func(s *script) { s.made("a", 61) }, func(s *script) { s.made("b", 1) }, record.EndHeld,
			[2]step{{"1 never", slo.Fail, "never reached", 1}, {"2 ready", slo.Pass, "", 1}},
		},
		{
			"one falls in the second step: that step fails, though its own are there",
			func(s *script) { s.made("a", 1) },
			func(s *script) { s.made("b", 1); s.state("a", "CrashLoopBackOff", "", lost) }, record.EndHeld,
			[2]step{{"1 ready", slo.Pass, "", 1}, {"1 ready, 1 never", slo.Fail, "all Ready: 1 of 2", 1}},
		},
		{
			"one gets there in the second step",
			func(s *script) { s.asked("a"); s.news("a Created") }, func(s *script) { s.made("b", 1); s.news("a Ready") }, record.EndTimeout,
			[2]step{{"1 never", slo.Fail, "1 of 1", 1}, {"2 ready", slo.Pass, "", 1}},
		},
		{
			"one is replaced in the second step",
			func(s *script) { s.asked("d", grouped(1)); s.news("d-1/d Created Ready") },
			func(s *script) { s.made("b", 1); s.news("d-1/d Deleted, d-2/d Created Ready") }, record.EndHeld,
			[2]step{{"1 ready", slo.Pass, "", 1}, {"2 ready", slo.Fail, "replaced: 1 object", 1}},
		},
		{
			"one was replaced in the first step: the second finds it in its place",
			func(s *script) { s.made("a", 1); s.news("a Deleted, a Created Ready") }, func(s *script) { s.made("b", 1) }, record.EndHeld,
			[2]step{{"1 ready", slo.Fail, "replaced: 1 object", 1}, {"2 ready", slo.Pass, "", 1}},
		},
		{
			"one was refused in the first step: it is missing in the second as well",
			func(s *script) { s.asked("a", outcome(record.SlotFailed, 500, "")) }, func(s *script) { s.made("b", 1) }, record.EndStalled,
			[2]step{{"1 failed", slo.Fail, "1 of 1", 1}, {"1 ready, 1 failed", slo.Fail, "all Ready: 1 of 2 did not reach it", 1}},
		},
		{
			"the second step asks for nothing new: latencies cannot be judged",
			func(s *script) { s.made("a", 1) }, func(*script) {}, record.EndHeld,
			[2]step{{"1 ready", slo.Pass, "", 1}, {"1 ready", slo.Inconclusive, "nothing of the step could be judged", 0}},
		},
	} {
		s := newScript(t, "both=all Ready; Ready p50 <= 5s")
		for i, do := range []func(*script){tt.first, tt.next} {
			s.at(float64(100 * i)).begin(float64(i + 1))
			do(s)
			ending := tt.ending
			if i == 1 {
				ending = record.EndHeld
			}
			c := s.at(float64(100*i + 70)).end(ending)
			want := tt.want[i]
			if account(c.Objects) != want.account || c.Verdict != want.verdict || !strings.Contains(c.VerdictWhy, want.because) || c.Latency["Ready"].N != want.n || !adds(c.Objects) {
				t.Errorf("%s: step %d: %q, %s: %s, %d latencies, want %+v", tt.why, i+1, account(c.Objects), c.Verdict, c.VerdictWhy, c.Latency["Ready"].N, want)
			}
		}
	}
}

// A step that the program itself was too slow for decides nothing, and is
// invalid only if it had decided something.
func TestOwnDelayOfAStepThatWasCut(t *testing.T) {
	slow := &record.Reading{Source: usage.SourceWakes, Values: map[string]float64{"wakes": 100, "late": 50}}
	for _, tt := range []struct {
		why     string
		ending  record.Ending
		refused bool // one of the requests
		want    slo.Verdict
		because string
	}{
		{"it was made whole", record.EndHeld, false, slo.Invalid, "short of CPU"},
		{"it was made whole and broke", record.EndHeld, true, slo.Invalid, "short of CPU"},
		{"it was cut: it is unknown what became of its objects", record.EndInterrupted, false, slo.Inconclusive, "is unknown"},
		{"it was cut after it broke for certain", record.EndInterrupted, true, slo.Invalid, "short of CPU"},
	} {
		s := newScript(t)
		s.begin(3)
		s.made("a b", 1)
		if s.asked("c"); tt.refused {
			s.asked("d", outcome(record.SlotFailed, 403, "no"))
		}
		s.put(slow)
		if c := s.at(10).end(tt.ending); c.Verdict != tt.want || !strings.Contains(c.VerdictWhy, tt.because) {
			t.Errorf("%s: %s: %s, want %s", tt.why, c.Verdict, c.VerdictWhy, tt.want)
		}
	}
}

// An emptied target begins again, with the same names.
func TestNamesUsedAgain(t *testing.T) {
	s := newScript(t)
	s.begin(2)
	s.made("a b", 1)
	s.at(10).end(record.EndHeld)
	s.put(&record.StepEvent{Phase: record.PhaseReset})
	s.at(11).news("a Deleted")
	s.state("b", "Deleting", "", lost)
	s.at(12).news("b Deleted")
	// A target that a guard had emptied is raised without being asked for it.
	s.at(20).begin(3)
	s.news("b Deleted") // late, and of nothing
	s.news("a Created Scheduled ContainersStarted Ready")
	s.at(21).asked("a", func(r *record.Slot) { r.Sent = 19.5e6 })
	s.made("b", 3)
	c := s.at(30).end(record.EndHeld)
	if account(c.Objects) != "2 ready" || c.Verdict != slo.Pass || show(c.Latency["Ready"].Max) != "3" || show(c.Latency["Ready"].P50) != "0.5" {
		t.Errorf("%q, %s: %s, latencies %+v", account(c.Objects), c.Verdict, c.VerdictWhy, c.Latency["Ready"])
	}
	s.finish(design.Sweep{Levels: []float64{2, 3}})
	var rows []string
	for _, r := range s.rows {
		text := fmt.Sprintf("%s step %d at level %g, ready at %.1f", r.Slot, r.Step, r.Level, float64(r.Milestones["Ready"])/1e6)
		if gone, ok := r.Milestones["Deleted"]; ok {
			text += fmt.Sprintf(", gone at %.1f", float64(gone)/1e6)
		}
		rows = append(rows, text)
	}
	want := []string{"ns/a step 1 at level 2, ready at 1.0, gone at 11.0", "ns/b step 1 at level 2, ready at 1.0, gone at 12.0", "ns/a step 2 at level 3, ready at 20.0", "ns/b step 2 at level 3, ready at 24.0"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

func TestRows(t *testing.T) {
	s := newScript(t)
	s.begin(2)
	s.asked("d", grouped(3), func(r *record.Slot) { r.Iteration = 7 })
	s.news("d-1/d Created, d-1/d Scheduled Ready")
	s.put(&record.Object{Object: "ns/d-2", Slot: "ns/d", Milestone: "Created", Late: true})
	s.put(&record.State{Object: "ns/d-2", Slot: "ns/d", Reason: "ErrImagePull", Message: "no", Place: "n1"})
	s.asked("e", grouped(1))
	s.news("e-1/e Created Deleted, e-2/e Created")
	s.news("f Created")
	s.end(record.EndTimeout)
	s.finish(design.Sweep{})
	var rows []string
	for _, r := range s.rows {
		rows = append(rows, fmt.Sprintf("%s %d %d %v %v %s %s %d", r.Slot, r.Iteration, r.Sent, r.There, r.Late, r.Place, r.Reason, len(r.Milestones)))
	}
	if got, want := strings.Join(rows, "; "), "ns/d#0 7 0 true false   3; ns/d#1 7 0 false true n1 ErrImagePull 1; ns/d#2 7 0 false false   0; ns/e#0 0 0 false false   2; ns/e#1 0 0 false false   1; ns/f 0 -1 false false   1"; got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
}

// Objectives, at their edges. A step of four objects, timed from a request at
// second 0 with a timeout of 60 s.
func TestObjectives(t *testing.T) {
	four := func(s *script) { // 1 s, 2 s, 3 s, 4 s
		for i, name := range []string{"a", "b", "c", "d"} {
			s.made(name, float64(i+1))
		}
	}
	three := func(s *script) { // 1 s, 2 s, 3 s, never
		for i, name := range []string{"a", "b", "c"} {
			s.made(name, float64(i+1))
		}
		s.asked("d")
		s.news("d Created Scheduled ContainersStarted")
	}
	for _, tt := range []struct {
		why       string
		do        func(s *script)
		ending    record.Ending
		objective string
		verdict   slo.Verdict
		because   string
	}{
		{"the 2nd of 4 is the median", four, record.EndHeld, "Ready p50 <= 2s", slo.Pass, ""},
		{"and is not below itself", four, record.EndHeld, "Ready p50 < 2s", slo.Fail, "Ready p50 < 2s: it was 2s"},
		{"the 3rd of 4 is p75", four, record.EndHeld, "Ready p75 <= 3s", slo.Pass, ""},
		{"the 4th is p76", four, record.EndHeld, "Ready p76 <= 3s", slo.Fail, "it was 4s"},
		{"right at the timeout is in time", func(s *script) { s.made("a", 60) }, record.EndHeld, "Ready p50 <= 60s", slo.Pass, ""},
		{"one that never came leaves the median alone", three, record.EndTimeout, "Ready p50 <= 2s", slo.Pass, ""},
		{"and is infinitely late", three, record.EndTimeout, "Ready p99 <= 1h", slo.Fail, "never reached"},
		{"it reached an earlier milestone in time", three, record.EndTimeout, "ContainersStarted p99 <= 1s", slo.Pass, ""},
		{"lost, it may have been in time or not", three, record.EndInterrupted, "Ready p99 <= 5s", slo.Inconclusive, "it depends on 1 object whose state is unknown"},
		{"lost, it cannot save a median that is over", three, record.EndInterrupted, "Ready p75 <= 1s", slo.Fail, "it was 3s"},
		{"lost, it does not decide, but nothing passes", three, record.EndInterrupted, "Ready p50 <= 2s", slo.Inconclusive, "the state of 1 object is unknown"},
		{"lost, but it had reached this milestone: nothing is open about it", three, record.EndInterrupted, "ContainersStarted p99 > 1h", slo.Fail, "it was 0s"},
		{"refused is not lost: an interrupted step with one of each",
			func(s *script) { three(s); s.asked("e", outcome(record.SlotFailed, 500, "")) },
			record.EndInterrupted, "Ready p99 <= 5s", slo.Fail, "never reached"},
		{"beyond the timeout and lost later: too late in any case",
			func(s *script) { s.made("a", 61); s.at(65).state("a", "NodeLost", "", lost) },
			record.EndInterrupted, "Ready p50 <= 5s", slo.Fail, "never reached"},
		{"lost, it may be as late as is asked for, or not", three, record.EndInterrupted, "Ready p99 > 1h", slo.Inconclusive, "it depends on 1 object"},
		{"a milestone that was never heard of", four, record.EndHeld, "Ready p50 <= 2s; all Bound", slo.Fail, "all Bound: 4 of 4"},
		{"all, without a bound of its own", four, record.EndHeld, "all Ready", slo.Pass, ""},
		{"all within a bound", four, record.EndHeld, "all Ready within 4s", slo.Pass, ""},
		{"all but one within a bound", four, record.EndHeld, "all Ready within 3999ms", slo.Fail, "1 of 4"},
		{"all within a bound, but one fell later: it is not there",
			func(s *script) { four(s); s.at(20).state("a", "CrashLoopBackOff", "", lost) },
			record.EndHeld, "all Ready within 4s", slo.Fail, "1 of 4"},
		{"a bound beyond the step timeout changes nothing: nobody waited",
			func(s *script) { s.made("a", 61) }, record.EndHeld, "all Ready within 2m", slo.Fail, "1 of 1"},
		{"nor for an earlier milestone",
			func(s *script) { s.asked("a"); s.news("a Created"); s.at(61).news("a ContainersStarted") },
			record.EndTimeout, "all ContainersStarted within 2m", slo.Fail, "1 of 1"},
		{"all have an earlier milestone", three, record.EndTimeout, "all ContainersStarted", slo.Pass, ""},
		{"all have an earlier milestone, but one is gone",
			func(s *script) { three(s); s.at(20).news("d Deleted") }, record.EndTimeout, "all ContainersStarted", slo.Fail, "1 of 4"},
		{"late and then lost: the lateness is certain",
			func(s *script) { s.made("a", 9); s.at(20).state("a", "Deleting", "", lost) },
			record.EndInterrupted, "all Ready within 5s", slo.Fail, "1 of 1"},
		{"in time and then lost: open",
			func(s *script) { s.made("a", 1); s.at(20).state("a", "NodeLost", "", lost) },
			record.EndInterrupted, "all Ready within 5s", slo.Inconclusive, "1 of 1"},
		{"no request failed", four, record.EndHeld, "errors < 1%", slo.Pass, ""},
		{"one of five failed", func(s *script) { four(s); s.asked("e", outcome(record.SlotFailed, 500, "")) }, record.EndStalled, "errors < 20%", slo.Fail, "it was 20%"},
		{"one of five, at the bound", func(s *script) { four(s); s.asked("e", outcome(record.SlotFailed, 500, "")) }, record.EndStalled, "errors <= 20%", slo.Pass, ""},
		{"one of five got no answer", func(s *script) { four(s); s.asked("e", outcome(record.SlotUnknown, 0, "")) }, record.EndStalled, "errors < 20%", slo.Fail, "it was 20%"},
		{"one of five was dropped", func(s *script) { four(s); s.asked("e", outcome(record.SlotDropped, 0, "")) }, record.EndStalled, "errors < 20%", slo.Fail, "it was 20%"},
		{"one request of two failed, whatever each asked for", func(s *script) {
			s.asked("d", grouped(9))
			s.asked("e", grouped(1), outcome(record.SlotFailed, 500, ""))
		}, record.EndStalled, "errors <= 50%", slo.Pass, ""},
		{"no request was made", func(*script) {}, record.EndHeld, "errors < 1%", slo.Inconclusive, "no request was made"},
		{"4 objects by 2 requests in 4 s, and all there after 4 s", func(s *script) {
			s.asked("d e", grouped(2))
			s.at(4).put(&record.StepEvent{Phase: record.PhaseLoaded})
			s.news("d-1/d Created Ready, d-2/d Created Ready, e-1/e Created Ready, e-2/e Created Ready")
		}, record.EndHeld, "achieved >= 100%", slo.Pass, ""},
		{"4 objects in 4 s, all there after 5 s", func(s *script) {
			s.asked("d", grouped(4))
			s.at(4).put(&record.StepEvent{Phase: record.PhaseLoaded})
			s.at(5).news("d-1/d Created Ready, d-2/d Created Ready, d-3/d Created Ready, d-4/d Created Ready")
		}, record.EndHeld, "achieved >= 81%", slo.Fail, "it was 80%"},
		{"no object was ready at all", func(s *script) { s.asked("a"); s.at(4).put(&record.StepEvent{Phase: record.PhaseLoaded}) },
			record.EndTimeout, "achieved > 0%", slo.Fail, "it was 0%"},
		{"no object was ready when it was cut", func(s *script) { s.asked("a"); s.at(4).put(&record.StepEvent{Phase: record.PhaseLoaded}) },
			record.EndInterrupted, "achieved > 0%", slo.Inconclusive, "the rate is unknown"},
		{"how fast it was asked for is unknown", four, record.EndHeld, "achieved > 0%", slo.Inconclusive, "the rate is unknown"},
		{"one breach outweighs what is unknown", three, record.EndTimeout, "achieved > 0%; all Ready", slo.Fail, "1 of 4"},
	} {
		s := newScript(t, "g="+tt.objective)
		s.begin(4)
		tt.do(s)
		c := s.at(70).end(tt.ending)
		if c.Verdict != tt.verdict || !strings.Contains(c.VerdictWhy, tt.because) {
			t.Errorf("%s (%s): %s: %s, want %s, %s", tt.why, tt.objective, c.Verdict, c.VerdictWhy, tt.verdict, tt.because)
		}
		if (c.Verdict == slo.Fail) != slices.ContainsFunc(c.Breaches, func(b result.Breach) bool { return b.Decided }) {
			t.Errorf("%s: a %s with the breaches %+v", tt.why, c.Verdict, c.Breaches)
		}
	}
}

// With few objects a quantile is the largest of them, which the reader must
// know.
func TestAQuantileOfTooFewIsWarnedOf(t *testing.T) {
	for n, warned := range map[int]bool{99: true, 100: false} {
		s := newScript(t, "g=Ready p99 <= 5s")
		s.begin(1)
		for i := range n {
			s.made(fmt.Sprint(i), 1)
		}
		s.end(record.EndHeld)
		text := fmt.Sprint(findings.WarningsOf(s.steps, s.spec.Kind.There))
		if warned != strings.Contains(text, "step 1: Ready p99 <= 5s is judged by the maximum: p99 needs 100 objects, and there were fewer") {
			t.Errorf("p99 of %d objects: warnings %q", n, text)
		}
	}
}

// A breach is noted once, however many goals share its objective, in the step
// and in the run.
func TestBreachesAreNotedOnce(t *testing.T) {
	s := newScript(t, "a=all Ready; Ready p50 <= 1s", "b=Ready p50 <= 1s", "c=errors < 1%")
	s.begin(1)
	s.made("x z", 2)
	s.asked("y")
	s.at(5).put(&record.Guard{Name: "pending", Value: 5, Bound: 4})
	s.at(9).end(record.EndGuard)
	r := s.finish(design.Sweep{Levels: []float64{1}})
	// The second object was late a second after it was asked for, and the guard
	// came later.
	want := "Ready p50 <= 1s: it was 2s; guard:pending"
	for _, list := range [][]result.Breach{r.Breaches, r.Steps[0].Breaches} {
		var words []string
		for _, b := range list {
			words = append(words, b.What)
		}
		if got := strings.Join(words, "; "); got != want {
			t.Errorf("breaches %s, want %s", got, want)
		}
	}
	if b := r.Breaches[0]; b.Time != "2030-01-02T03:04:06.000000Z" || !slices.Equal(b.Goals, []string{"a", "b"}) || !b.First {
		t.Errorf("the objective's breach: %+v", b)
	}
	if b := r.Breaches[1]; b.Time != "2030-01-02T03:04:10.000000Z" || !slices.Equal(b.Goals, []string{"a", "b", "c"}) || show(b.Value) != "5" || show(b.Bound) != "4" || b.Step != 1 {
		t.Errorf("the guard's breach: %+v", b)
	}
	for _, g := range r.Goals {
		if g.Verdict != slo.Fail {
			t.Errorf("goal %s: %s, though a guard tripped", g.Name, g.Verdict)
		}
	}
}

// Events of several goroutines can be on record a little out of order.
func TestBreachesAreInOrder(t *testing.T) {
	s := newScript(t)
	for _, at := range []float64{3, 1, 2} {
		s.at(at).put(&record.Guard{Name: fmt.Sprint(at)})
	}
	r := s.finish(design.Sweep{})
	if len(r.Breaches) != 3 || r.Breaches[0].What != "guard:1" || r.Breaches[1].What != "guard:2" {
		t.Errorf("breaches %+v", r.Breaches)
	}
}

// Without a timeout on record objects are followed for as long as it takes.
func TestAStepWithoutATimeout(t *testing.T) {
	s := newScript(t)
	s.begin(1, func(b *record.StepEvent) { b.Timeout = 0 })
	s.made("a", 1000)
	s.asked("b")
	if c := s.at(2000).end(record.EndTimeout); account(c.Objects) != "1 ready, 1 never" || c.Latency["Ready"].Censored != 1 {
		t.Errorf("%s, latencies %+v", account(c.Objects), c.Latency["Ready"])
	}
}

func TestEffectiveLevel(t *testing.T) {
	iteration := func(i int) func(*record.Slot) { return func(s *record.Slot) { s.Iteration = i } }
	pair := func(s *script, i int, ready ...string) {
		for _, part := range []string{"x", "y"} {
			name := fmt.Sprintf("%s%d", part, i)
			s.asked(name, iteration(i))
			s.news(name + " Created")
			if slices.Contains(ready, part) {
				s.news(name + " Ready")
			}
		}
	}
	for _, tt := range []struct {
		why    string
		units  int
		places int
		do     func(s *script)
		ending record.Ending
		want   string
	}{
		{"all there: the level that was reached", 4, 2, func(s *script) { pair(s, 0, "x", "y"); pair(s, 1, "x", "y") }, record.EndHeld, "10"},
		{"half of an iteration does no work: 2 of 4, and 6 that were there, on 2 nodes", 4, 2, func(s *script) { pair(s, 0, "x", "y"); pair(s, 1, "x") }, record.EndTimeout, "4"},
		{"nothing whole: those that were there", 4, 2, func(s *script) { pair(s, 0, "x"); pair(s, 1, "y") }, record.EndTimeout, "3"},
		{"an axis without places: the share of the level", 4, 0, func(s *script) { pair(s, 0, "x", "y"); pair(s, 1, "x") }, record.EndTimeout, "5"},
		{"cut after half of the requests, all there so far: not the whole level", 4, 2, func(s *script) { pair(s, 0, "x", "y") }, record.EndInterrupted, "4"},
		{"cut after half of the requests, without places", 4, 0, func(s *script) { pair(s, 0, "x", "y") }, record.EndInterrupted, "5"},
		{"cut, with news of a request that is not on record: it belongs to no iteration", 4, 2, func(s *script) { pair(s, 0, "x", "y"); s.news("x1 Created") }, record.EndInterrupted, "4"},
		{"nothing was asked for", 0, 2, func(*script) {}, record.EndHeld, "null"},
	} {
		s := newScript(t)
		s.begin(10, func(b *record.StepEvent) { b.Units, b.Places, b.Others = tt.units, tt.places, 6 })
		tt.do(s)
		c := s.end(tt.ending, func(b *record.StepEvent) { b.Places, b.Others = tt.places, 6 })
		if got := show(c.EffectiveLevel); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.why, got, tt.want)
		}
	}
}

// A result names a level that others' objects already make.
func TestALevelThatOthersMake(t *testing.T) {
	s := newScript(t)
	s.begin(3, func(b *record.StepEvent) { b.Units, b.Places, b.Others, b.Reached = 0, 2, 8, 4 })
	c := s.end(record.EndHeld, func(b *record.StepEvent) { b.Places, b.Others = 2, 8 })
	if c.Verdict != slo.Inconclusive || !strings.Contains(c.VerdictWhy, "8 pods that are not this run's already make 4 ") {
		t.Errorf("%s: %s", c.Verdict, c.VerdictWhy)
	}
}

func TestRatesAndTimes(t *testing.T) {
	s := newScript(t)
	s.at(10).begin(1, func(b *record.StepEvent) { b.Pace = "max" })
	s.asked("a b c d", func(r *record.Slot) { r.Sent, r.Replied = 10e6, 10.5e6 })
	s.at(12).put(&record.StepEvent{Phase: record.PhaseLoaded})
	s.news("a Created Ready, b Created Ready")
	s.at(14).news("c Created Ready, d Created Ready")
	s.put(&record.StepEvent{Phase: record.PhaseReached})
	c := s.at(24).end(record.EndHeld, func(b *record.StepEvent) { b.Places, b.Others, b.Least, b.Most = 2, 1, 2, 3 })
	if show(c.OfferedRate) != "2" || show(c.AchievedRate) != "1" || show(c.ReachSeconds) != "4" || c.Seconds != 14 || c.InFlightMax != 4 || c.Pace != "max" {
		t.Errorf("offered %s, achieved %s, reached after %s of %g, %d in flight, pace %s", show(c.OfferedRate), show(c.AchievedRate), show(c.ReachSeconds), c.Seconds, c.InFlightMax, c.Pace)
	}
	if c.Start != "2030-01-02T03:04:15.000000Z" || c.End != "2030-01-02T03:04:29.000000Z" || *c.PerPlace != (result.PerPlace{Places: 2, Min: 2, Max: 3, Others: 1}) {
		t.Errorf("from %s to %s, per node %+v", c.Start, c.End, *c.PerPlace)
	}
	if q := c.APIRequests; q.N != 4 || show(q.P50) != "0.5" || show(q.Max) != "0.5" {
		t.Errorf("requests %+v", q)
	}
	if l := c.Latency["Ready"]; l.N != 4 || show(l.P50) != "2" || show(l.P99) != "4" || show(l.Mean) != "3" || l.Resolution != 2 || show(l.Intervals["p50"][0]) != "null" {
		t.Errorf("latencies %+v", l)
	}
	if _, ok := c.Latency["Deleted"]; ok || len(c.Latency) != 4 {
		t.Errorf("%d milestones", len(c.Latency))
	}
}

// An object that a controller made counts from the first news of it, for its
// owner's request says nothing of it.
func TestTimeZero(t *testing.T) {
	s := newScript(t)
	s.begin(1)
	s.asked("d", grouped(1))
	s.asked("a", func(r *record.Slot) { r.Intended, r.Sent = 1e6, 2e6 })
	s.at(10).news("d-1/d Created, a Created")
	s.at(12).news("d-1/d Ready, a Ready")
	c := s.end(record.EndHeld)
	if l := c.Latency["Ready"]; show(l.P50) != "2" || show(l.Max) != "10" {
		t.Errorf("latencies %s and %s, want 2 s for the controller's and 10 s for ours", show(l.P50), show(l.Max))
	}
	// The first news of an object whose request is not on record yet.
	s.at(20).begin(2)
	s.news("b Created")
	s.at(23).news("b Ready")
	if l := s.Live(); l.There != 1 || show(l.P50) != "3" || show(l.P99) != "3" {
		t.Errorf("live: %+v", l)
	}
}

func TestLive(t *testing.T) {
	s := newScript(t)
	if l := s.Live(); l.There != 0 || l.P50 != nil {
		t.Errorf("before any step: %+v", l)
	}
	s.begin(1)
	if l := s.Live(); l.There != 0 || l.P50 != nil || l.P99 != nil {
		t.Errorf("before any news: %+v", l)
	}
	s.made("a b c", 1)
	s.made("d", 4)
	s.made("late", 61)
	s.asked("e")
	if l := s.Live(); l.There != 4 || show(l.P50) != "1" || show(l.P99) != "4" {
		t.Errorf("live: %d there, p50 %s, p99 %s", l.There, show(l.P50), show(l.P99))
	}
	s.end(record.EndHeld)
	s.begin(2)
	if l := s.Live(); l.There != 0 {
		t.Errorf("the next step begins with %d there", l.There)
	}
}

func TestCanariesAndResources(t *testing.T) {
	s := newScript(t)
	sample := func(source string, values map[string]float64) {
		s.put(&record.Reading{Source: source, Values: values})
	}
	s.put(&record.Canary{Sent: 1, Replied: 2, Seen: 3}) // outside of any step
	sample(usage.SourceSelf, map[string]float64{"cpuSeconds": 1, "rssBytes": 50})
	s.begin(1)
	s.put(&record.Canary{Sent: 1e6, Replied: 1.1e6, Seen: 1.2e6})
	s.put(&record.Canary{Sent: 2e6, Replied: 2.1e6})
	sample(usage.SourceSelf, map[string]float64{"cpuSeconds": 2, "rssBytes": 60})
	sample("etcd", map[string]float64{"cpuSeconds": 10, "rssBytes": 100, "peakBytes": 150})
	sample(usage.SourceSelf, map[string]float64{"cpuSeconds": 2.5, "rssBytes": 90})
	sample("etcd", map[string]float64{"rssBytes": 300})
	sample("etcd", map[string]float64{"cpuSeconds": 12, "rssBytes": 200})
	sample("etcd", map[string]float64{"cpuSeconds": 1, "rssBytes": 20}) // started again
	sample("gpu", map[string]float64{"watts": 1})
	s.made("a", 1)
	c := s.end(record.EndHeld)
	sample(usage.SourceSelf, map[string]float64{"cpuSeconds": 7, "rssBytes": 70, "peakBytes": 95})
	if w := c.WatchLag; w.N != 2 || w.Unseen != 1 || show(w.P50) != "0.2" || w.P99 != nil {
		t.Errorf("watch lag %+v: one of two was never seen, and is infinitely late", w)
	}
	want := map[string]result.Usage{usage.SourceSelf: {CPUSeconds: 0.5, PeakRSSBytes: 90, StartRSSBytes: 60}, "etcd": {CPUSeconds: 3, PeakRSSBytes: 300, StartRSSBytes: 100}}
	if len(c.Resources) != 2 || c.Resources[usage.SourceSelf] != want[usage.SourceSelf] || c.Resources["etcd"] != want["etcd"] {
		t.Errorf("resources %+v, want %+v", c.Resources, want)
	}
	if r := s.finish(design.Sweep{}); r.Cost != (result.Cost{CPUSeconds: 7, PeakMemoryBytes: 95, LoadCPUSeconds: 0.5, LoadPeakMemoryBytes: 90, Objects: 1}) {
		t.Errorf("cost %+v", r.Cost)
	}
}

func TestFaultsAreWarnedOf(t *testing.T) {
	s := newScript(t)
	s.begin(1)
	s.put(&record.Fault{What: "watch of pods cut", From: 1e6})
	s.put(&record.Fault{What: "watch of pods cut", From: 1e6, To: 3.5e6, Healed: true})
	s.put(&record.Fault{What: "news skipped", From: 1e6, To: 2e6})
	s.made("a", 1)
	s.end(record.EndHeld)
	s.put(&record.Fault{What: "watch of pods cut", From: 9e6})
	s.put(&record.Note{Text: "a note"})
	s.put(&record.Note{Text: "a note"})
	r := s.finish(design.Sweep{})
	want := []string{
		"step 1: watch of pods cut: nothing was lost; changes during the gap are dated to its end (2.5s)",
		"step 1: news skipped: changes during the gap are unknown (1s)",
		"a note (2 times)",
		"watch of pods cut from 9s on, to the end: the state of the objects after that is unknown",
	}
	if !slices.Equal(r.Warnings.Lines(), want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(r.Warnings.Lines(), "\n"), strings.Join(want, "\n"))
	}
	if r.Steps[0].Verdict != slo.Pass {
		t.Errorf("the step whose gaps were over: %s", r.Steps[0].VerdictWhy)
	}
}
