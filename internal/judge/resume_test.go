package judge

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// resumedHistory is a run of two levels that was cut in its second step, with
// a breach in sight and the watch cut, and goes on.
func resumedHistory(message string) []record.Event {
	const second = 1_000_000
	step := func(t record.Micros, id int, s record.StepEvent) record.Event {
		return record.Event{T: t, Step: id, Body: &s}
	}
	object := func(t record.Micros, id int, name, milestone string) record.Event {
		return record.Event{T: t, Step: id, Body: &record.Object{Object: name, Milestone: milestone}}
	}
	slot := func(t record.Micros, id int, name string) record.Event {
		return record.Event{T: t, Step: id, Body: &record.Slot{Slot: name, Units: 1, Sent: t - 10, Replied: t, Outcome: record.SlotCreated}}
	}
	cpu := func(t record.Micros, id int, seconds float64) record.Event {
		return record.Event{T: t, Step: id, Body: &record.Reading{Source: usage.SourceSelf, Values: map[string]float64{"cpuSeconds": seconds, "rssBytes": 1}}}
	}
	return []record.Event{
		{T: 0, Body: &record.RunEvent{Phase: record.PhaseStart, ID: "a"}},
		step(second, 1, record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 1, Purpose: record.PurposeSweep}, Timeout: 60 * second, Units: 1, Places: 1}),
		slot(second+10, 1, "x/1"), object(second+20, 1, "x/1", "Ready"), cpu(second+30, 1, 3),
		step(2*second, 1, record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld, Places: 1}),
		step(3*second, 2, record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 2, Purpose: record.PurposeSweep}, Timeout: 60 * second, Units: 1, Places: 1}),
		slot(3*second+10, 2, "x/2"),
		{T: 4 * second, Step: 2, Body: &record.State{Object: "x/1", Reason: "Evicted", Lost: "Ready", Failed: true}},
		{T: 5 * second, Step: 2, Body: &record.Fault{What: "watch cut", From: 5 * second}},
		{T: 100 * second, Step: 2, Body: &record.RunEvent{Phase: record.PhaseResume, ID: "b", Message: message}},
		step(100*second, 2, record.StepEvent{Phase: record.PhaseReset}),
		object(100*second+10, 2, "x/1", "Deleted"), // of what is no longer in place
		step(101*second, 3, record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 2, Purpose: record.PurposeSweep, FromEmpty: true}, Timeout: 60 * second, Units: 2, Places: 1}),
		slot(101*second+10, 3, "x/1"), object(101*second+20, 3, "x/1", "Ready"),
		slot(101*second+30, 3, "x/2"), object(101*second+40, 3, "x/2", "Ready"), cpu(101*second+50, 3, 2),
		step(102*second, 3, record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld, Places: 1}),
		{T: 103 * second, Step: 3, Body: &record.RunEvent{Phase: record.PhaseEnd}},
	}
}

func TestAResumedRunIsJudgedAsIfUnbroken(t *testing.T) {
	goal, err := slo.ParseGoal("ready=all Ready")
	if err != nil {
		t.Fatal(err)
	}
	spec := result.Spec{Kind: observe.Pods(), Goals: []slo.Goal{goal}, Milestones: []string{"Created", "Ready"}, Start: time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)}
	levels := design.Sweep{Levels: []float64{1, 2}}
	build := func(events []record.Event) (*Builder, *[]record.ObjectRow) {
		b, rows := NewBuilder(spec), new([]record.ObjectRow)
		b.Rows = func(row record.ObjectRow) { *rows = append(*rows, row) }
		for _, e := range events {
			b.Add(e)
		}
		return b, rows
	}
	b, rows := build(resumedHistory(""))
	r := b.Finish(levels, record.Fidelity{}, "")
	if r.Verdict != slo.Pass || len(r.Breaches) != 0 {
		t.Errorf("verdict %s (%s), breaches %+v", r.Verdict, r.Why, r.Breaches)
	}
	if s := r.Steps[1]; s.Verdict != slo.Inconclusive || s.Goals["ready"] != slo.Inconclusive || s.Ending != record.EndInterrupted || s.Seconds != 2 || !strings.Contains(s.VerdictWhy, "is repeated") {
		t.Errorf("the step that was cut: %s (%s), %s after %v s", s.Verdict, s.VerdictWhy, s.Ending, s.Seconds)
	}
	if s := r.Steps[2]; s.Objects != (result.Objects{Intended: 2, Created: 2, Ready: 2}) || s.ID != 3 {
		t.Errorf("the step made again: %d, %+v", s.ID, s.Objects)
	}
	if r.Cost.CPUSeconds != 5 {
		t.Errorf("two processes used %v s of CPU, want 3 + 2", r.Cost.CPUSeconds)
	}
	if len(*rows) != 4 || r.Cost.Objects != 4 {
		t.Errorf("%d rows of %d objects, want 4: both parts' own", len(*rows), r.Cost.Objects)
	}
	want := []string{
		"watch cut from 5s on, until the run was cut off: the state of the objects after that is unknown",
		"the run was resumed after step 1, at 2026-11-21T10:01:40.000000Z, 1m35s after the end of its record, of which up to 100 ms may be missing: step 2 was cut off and is repeated",
	}
	if !reflect.DeepEqual(r.Warnings.Lines(), want) {
		t.Errorf("warnings %q\nwant %q", r.Warnings, want)
	}

	b, _ = build(resumedHistory("the clock was set back"))
	if r := b.Finish(levels, record.Fidelity{}, ""); !strings.Contains(r.Warnings[1].Text, "an unknown time after") || r.Warnings[2].Text != "the clock was set back" {
		t.Errorf("warnings %q", r.Warnings)
	}

	// To look where a run goes on changes nothing of what it is then told.
	events := resumedHistory("")
	looked, _ := build(events[:10])
	if at := looked.Resume(); at != (Resumable{Step: 2, Whole: 1, Cut: 2, Last: 5_000_000}) {
		t.Errorf("it goes on at %+v", at)
	}
	if n := looked.NextStep(levels, ""); n.Done || n.Level != 2 {
		t.Errorf("the next step is %+v", n)
	}
	for _, e := range events[10:] {
		looked.Add(e)
	}
	b, _ = build(events)
	if got, want := looked.Finish(levels, record.Fidelity{}, ""), b.Finish(levels, record.Fidelity{}, ""); !reflect.DeepEqual(got, want) {
		t.Errorf("looked at before it went on: %+v\nwant %+v", got, want)
	}
}
