package screen

import (
	"bytes"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/plan"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
)

// Without a terminal, a long stage gets a line.
func TestStagesThatLastAreReported(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	g := &Display{Console: &Console{Stderr: &log, Now: func() time.Time { return now }}, Kind: record.ObjectKind{There: "Ready"}, Plan: &plan.Plan{}}
	g.Chose(design.Next{StepPlan: record.StepPlan{Level: 10, Purpose: record.PurposeRamp}}, nil)
	g.Status(engine.Status{Step: 1, Stage: engine.StageEmptying, StepPlan: record.StepPlan{Level: 10, Purpose: record.PurposeRamp}}, func() fold.Live { return fold.Live{} })
	for range 25 {
		now = now.Add(time.Second)
		g.tick()
	}
	want := "ramp 10\nstep 1 ramp 10: emptying, 2s so far\nstep 1 ramp 10: emptying, 12s so far\nstep 1 ramp 10: emptying, 22s so far\n"
	if log.String() != want {
		t.Errorf("told\n%s\nwant\n%s", &log, want)
	}
}

// A fault is shown with its cause, where that is known.
func TestFaultsAreShown(t *testing.T) {
	var log bytes.Buffer
	g := &Display{Console: &Console{Stderr: &log, Now: time.Now}, Plan: &plan.Plan{}}
	g.Event(record.Event{Body: &record.Fault{What: "watch of pods late", From: 1}})
	g.Event(record.Event{Body: &record.Fault{What: "watch of pods cut", From: 1, Message: "EOF"}})
	if want := "watch of pods late\nwatch of pods cut: EOF\n"; log.String() != want {
		t.Errorf("shown\n%s\nwant\n%s", &log, want)
	}
}

// The time that is left follows from what steps have taken: their holds, and as
// long for a level as it took so far.
func TestTheRestOfARunIsEstimated(t *testing.T) {
	next := func(level float64, whole bool) design.Next {
		return design.Next{StepPlan: record.StepPlan{Level: level, FromEmpty: whole, FullHold: whole}}
	}
	f := forecast{hold: 10 * time.Second, short: 2 * time.Second}
	start := time.Unix(0, 0)
	f.chose(start, next(10, true), [][]design.Next{{next(10, true), next(20, false)}})
	if got := f.left(start); got != "" {
		t.Errorf("%q before anything is known", got)
	}
	f.stepped(start.Add(15 * time.Second)) // 5 s for 10 levels
	f.chose(start.Add(15*time.Second), next(20, false), [][]design.Next{
		{next(20, false), next(20, true)},                   // 2 + 5, 10 + 10
		{next(20, false), next(20, true), next(21, true)},   // and 10 + 10.5
		{next(20, false), next(30, false), next(30, true)}}) // 2 + 5, 2 + 5, 10 + 15
	if got, want := f.left(start.Add(18*time.Second)), "2 to 3 steps left with this one, about 24s to 45s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.chose(start, next(20, true), [][]design.Next{{next(20, true)}})
	if got, want := f.left(start.Add(time.Hour)), "1 step left with this one, about 1s"; got != want {
		t.Errorf("a step that takes longer than was thought: %q, want %q", got, want)
	}
}

func TestTheRateIsThatOfTheLastSeconds(t *testing.T) {
	var r rates
	at := time.Unix(0, 0)
	if r.now() != nil {
		t.Error("a rate of nothing")
	}
	for i := range 200 { // 10/s for 10 s, then 100/s
		at = at.Add(100 * time.Millisecond)
		r.add(at, min(i, 100)+10*max(i-100, 0))
	}
	if got := r.now(); got == nil || *got < 99 || *got > 101 {
		t.Errorf("%v", got)
	}
}

// A comparison without a fixed end states how long it may take.
func TestHowLongAComparisonMayTake(t *testing.T) {
	ab := func(least, most int, until plan.Until) *plan.Plan {
		return &plan.Plan{Kind: plan.AB, Until: until, Repeat: plan.Repeat{Least: least, Most: most}, Arms: make([]plan.Arm, 2), Axis: plan.Axis{Levels: []float64{50, 100}}}
	}
	for _, tt := range []struct {
		why  string
		plan *plan.Plan
		want string
	}{
		{"a range", ab(4, 30, plan.UntilDecided), "16 to 120 steps until each arm is better, worse or equivalent: from 2 min 40 s to 20 min 0 s, and the time to fill and empty the target"},
		{"it ends once no arm is worse", ab(2, 3, plan.UntilNotWorse), "8 to 12 steps until no arm is worse: from 1 min 20 s to 2 min 0 s, and the time to fill and empty the target"},
		{"a fixed number", ab(4, 4, ""), ""},
		{"no comparison", &plan.Plan{Kind: plan.Sweep}, ""},
	} {
		if got := lastsText(tt.plan, 10*time.Second); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.why, got, tt.want)
		}
	}
}
