package judge

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func goalsOf(t testing.TB, texts ...string) []slo.Goal {
	t.Helper()
	var goals []slo.Goal
	for _, text := range texts {
		g, err := slo.ParseGoal(text)
		if err != nil {
			t.Fatal(err)
		}
		goals = append(goals, g)
	}
	return goals
}

func specOf(goals []slo.Goal) result.Spec {
	return result.Spec{
		Experiment: "test", Workload: "pods", Kind: observe.Pods(), ExperimentKind: "limit", Command: "plimsoll limit pods", Version: "v0",
		Axis: "pods-per-node", Unit: "pods/node", Goals: goals,
		Milestones: []string{"Created", "Scheduled", "ContainersStarted", "Ready", "Deleted"},
		Start:      time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// script makes a run's events, one after the other, and hands them to a
// Builder. The test moves its clock.
type script struct {
	*Builder
	now    record.Micros
	step   int
	events []record.Event
	rows   []record.ObjectRow
}

// newScript makes a script. At the end of the test its events are judged with
// other times, too.
func newScript(t testing.TB, goals ...string) *script {
	s := oneOfMany(t, goals...)
	if t, ok := t.(*testing.T); ok {
		t.Cleanup(func() { distorted(t, s) })
	}
	return s
}

// oneOfMany makes a script of a test that makes thousands at random.
func oneOfMany(t testing.TB, goals ...string) *script {
	if len(goals) == 0 {
		goals = []string{"ready=all Ready"}
	}
	s := &script{Builder: NewBuilder(specOf(goalsOf(t, goals...)))}
	s.Rows = func(row record.ObjectRow) { s.rows = append(s.rows, row) }
	return s
}

// at sets the clock, in seconds since the start of the run.
func (s *script) at(seconds float64) *script {
	s.now = record.Micros(seconds * 1e6)
	return s
}

func (s *script) put(body record.Body) {
	e := record.Event{T: s.now, Step: s.step, Body: body}
	s.events = append(s.events, e)
	s.Add(e)
}

// begin begins a step with a timeout of a minute.
func (s *script) begin(level float64, changes ...func(*record.StepEvent)) {
	s.step++
	body := &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: level, Purpose: record.PurposeRamp, FullHold: true, FromEmpty: s.step == 1}, Reached: level, Timeout: 60e6}
	for _, change := range changes {
		change(body)
	}
	s.put(body)
}

// asked puts requests on record that were sent and answered just now.
func (s *script) asked(names string, changes ...func(*record.Slot)) {
	for name := range strings.FieldsSeq(names) {
		body := &record.Slot{Slot: "ns/" + name, Component: "pod", Units: 1, Intended: s.now, Sent: s.now, Replied: s.now, Code: 201, Outcome: record.SlotCreated}
		for _, change := range changes {
			change(body)
		}
		s.put(body)
	}
}

func grouped(units int) func(*record.Slot) {
	return func(s *record.Slot) { s.Units, s.Grouped = units, true }
}

func outcome(o record.SlotOutcome, code int, err string) func(*record.Slot) {
	return func(s *record.Slot) { s.Outcome, s.Code, s.Error = o, code, err }
}

// news tells of milestones of objects: "name Milestone Milestone, name ...", or
// "name/slot" for an object that has another name than its slot.
func (s *script) news(text string) {
	for part := range strings.SplitSeq(text, ",") {
		words := strings.Fields(part)
		for _, milestone := range words[1:] {
			name, slot, grouped := strings.Cut(words[0], "/")
			body := &record.Object{Object: "ns/" + name, Milestone: milestone}
			if grouped {
				body.Slot = "ns/" + slot
			}
			if milestone == "Created" {
				body.Component = "pod"
			}
			s.put(body)
		}
	}
}

func (s *script) state(name, reason, message string, changes ...func(*record.State)) {
	name, slot, grouped := strings.Cut(name, "/")
	body := &record.State{Object: "ns/" + name, Reason: reason, Message: message}
	if grouped {
		body.Slot = "ns/" + slot
	}
	for _, change := range changes {
		change(body)
	}
	s.put(body)
}

func lost(s *record.State) { s.Lost = "Ready" }

func regained(s *record.State) { s.Regained = "Ready" }

func failed(s *record.State) { s.Failed = true }

// made asks for objects and lets them be Ready after so many seconds; the
// clock stands still.
func (s *script) made(names string, seconds float64) {
	for name := range strings.FieldsSeq(names) {
		s.asked(name)
		s.news(name + " Created Scheduled ContainersStarted")
		now := s.now
		s.now += record.Micros(seconds * 1e6)
		s.news(name + " Ready")
		s.now = now
	}
}

// end ends the step and is what was made of it.
func (s *script) end(ending record.Ending, changes ...func(*record.StepEvent)) *result.Step {
	body := &record.StepEvent{Phase: record.PhaseEnd, Ending: ending}
	if ending == record.EndInterrupted {
		body.Message = "interrupted"
	}
	for _, change := range changes {
		change(body)
	}
	s.put(body)
	return s.LastStep()
}

// finish ends the run.
func (s *script) finish(d design.Design) result.Result {
	s.step = 0
	s.put(&record.RunEvent{Phase: record.PhaseEnd})
	return s.Finish(d, record.Fidelity{}, "")
}

// account is a step's account in one line.
func account(o result.Objects) string {
	var words []string
	for _, part := range []struct {
		name string
		n    int
	}{{"ready", o.Ready}, {"never", o.NeverReady}, {"lost", o.Lost}, {"failed", o.CreateFailed}, {"dropped", o.Dropped}} {
		if part.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", part.n, part.name))
		}
	}
	return strings.Join(words, ", ")
}

// adds reports whether an account adds up.
func adds(o result.Objects) bool {
	return o.Intended == o.Created+o.CreateFailed+o.Dropped && o.Created == o.Ready+o.NeverReady+o.Lost
}

// whyNot is a step's reasons in one line.
func whyNot(s *result.Step) string {
	var words []string
	for _, r := range s.Reasons {
		text := fmt.Sprintf("%d %s", r.Count, r.Reason)
		if r.Places > 0 {
			text += fmt.Sprintf(" on %d of %d", r.Places, r.PlacesOf)
		}
		words = append(words, text)
	}
	return strings.Join(words, ", ")
}

func show(x *float64) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprintf("%g", *x)
}

func encode(t testing.TB, r result.Result) []byte {
	t.Helper()
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatalf("the result cannot be written: %v", err)
	}
	return append(data, '\n')
}
