package judge

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// life is all that was heard of one object, from its first news to its end.
type life struct {
	slot  string
	step  int
	own   bool // named as its slot
	heard []record.Event
	over  bool // it was deleted, or its name was given on
}

func (l life) milestone(name string) (record.Micros, bool) {
	for _, e := range l.heard {
		if o, ok := e.Body.(*record.Object); ok && o.Milestone == name {
			return e.T, true
		}
	}
	return 0, false
}

// there reports whether the object existed by the last news of it.
func (l life) there() bool {
	for _, e := range slices.Backward(l.heard) {
		switch b := e.Body.(type) {
		case *record.Object:
			if b.Milestone == "Ready" {
				return !l.over
			}
		case *record.State:
			if b.Lost == "Ready" {
				return false
			}
			if b.Regained == "Ready" {
				return !l.over
			}
		}
	}
	return false
}

func (l life) failed() bool {
	return slices.ContainsFunc(l.heard, func(e record.Event) bool {
		s, ok := e.Body.(*record.State)
		return ok && s.Failed
	})
}

func (l life) unschedulable() bool {
	for _, e := range slices.Backward(l.heard) {
		if s, ok := e.Body.(*record.State); ok {
			return s.Reason == "Unschedulable"
		}
	}
	return false
}

// accountSlowly is the account's slow twin: it goes through all that is on
// record up to a step's end and looks for each slot at everything that was ever
// said of it.
func accountSlowly(events []record.Event) (account result.Objects, replacedEver int) {
	// What is in place came after the last emptying, and is not about what
	// was emptied.
	from := 0
	before := map[string]bool{} // slots of the emptied target
	for i, e := range events {
		if s, ok := e.Body.(*record.StepEvent); ok && s.Phase == record.PhaseReset {
			for _, e := range events[from:i] {
				before[slotOf(e)] = true
			}
			from = i
		}
	}
	var lives []*life
	requests := map[string][]record.Event{}
	var order []string
	stepOf := map[string]int{}
	emptying := from > 0
	var step, start record.Event
	blind := 0
	for i, e := range events {
		if f, ok := e.Body.(*record.Fault); ok {
			if f.To == 0 {
				blind++
			} else if blind > 0 {
				blind--
			}
		}
		if i < from {
			continue
		}
		if s, ok := e.Body.(*record.StepEvent); ok {
			if s.Phase == record.PhaseStart {
				emptying = false
				start = e
			}
			step = e
			continue
		}
		slot := slotOf(e)
		if slot == "" || emptying && before[slot] {
			continue
		}
		var name string
		switch b := e.Body.(type) {
		case *record.Slot:
			requests[slot] = append(requests[slot], e)
			if !slices.Contains(order, slot) {
				order, stepOf[slot] = append(order, slot), e.Step
			}
			continue
		case *record.Object:
			name = b.Object
		case *record.State:
			name = b.Object
		}
		var l *life
		for _, x := range lives {
			if first := x.heard[0].Body.(*record.Object); first.Object == name && x.slot == slot {
				l = x
			}
		}
		switch b := e.Body.(type) {
		case *record.Object:
			known := false
			if l != nil {
				_, known = l.milestone("Created")
			}
			switch {
			case b.Milestone == "Created" && l != nil && (known || l.over), l == nil && b.Milestone != "Deleted":
				if l != nil {
					l.over = true
				}
				l = &life{slot: slot, step: e.Step, own: slot == name}
				lives = append(lives, l)
				if !slices.Contains(order, slot) {
					order, stepOf[slot] = append(order, slot), e.Step
				}
			case l == nil || l.over:
				continue
			}
			l.heard = append(l.heard, e)
			l.over = l.over || b.Milestone == "Deleted"
		case *record.State:
			if l != nil && !l.over {
				l.heard = append(l.heard, e)
			}
		}
	}
	ending := step.Body.(*record.StepEvent).Ending
	cut := ending == record.EndInterrupted || ending == record.EndGuard
	timeout := start.Body.(*record.StepEvent).Timeout
	for _, slot := range order {
		var living, dead []*life
		for _, l := range lives {
			switch {
			case l.slot != slot:
			case l.over:
				dead = append(dead, l)
			default:
				living = append(living, l)
			}
		}
		// Every request counts. The objects are those of the last one that has
		// made them, or else of the last that may have, or else of the first.
		var request *record.Slot
		step := stepOf[slot]
		for i, e := range requests[slot] {
			r := e.Body.(*record.Slot)
			was := request
			switch {
			case i == 0:
				request, step = r, e.Step
				continue
			case r.Outcome == record.SlotCreated, r.Outcome == record.SlotUnknown && (was.Outcome == record.SlotFailed || was.Outcome == record.SlotDropped):
				request, step = r, e.Step
			default:
				was = r
			}
			account.Intended += was.Units
			switch {
			case was.Outcome == record.SlotFailed:
				account.CreateFailed += was.Units
			case was.Outcome == record.SlotDropped:
				account.Dropped += was.Units
			case cut || blind > 0:
				account.Lost += was.Units
			default:
				account.NeverReady += was.Units
			}
		}
		units := max(len(living), 1)
		if request != nil {
			units = request.Units
			replacedEver += max(len(living)+len(dead)-units, 0)
		}
		candidates := append(living, dead...)
		for i := range units {
			account.Intended++
			if i >= len(candidates) {
				switch {
				case request != nil && request.Outcome == record.SlotFailed:
					account.CreateFailed++
				case request != nil && request.Outcome == record.SlotDropped:
					account.Dropped++
				case cut || blind > 0:
					account.Lost++
				default:
					account.NeverReady++
				}
				continue
			}
			l := candidates[i]
			late := false
			if at, ok := l.milestone("Ready"); step == start.Step {
				from := l.heard[0].T
				if l.own && request != nil {
					from = request.Sent
				}
				late = !ok || at-from > timeout // regained, and nobody knows when it was reached
			}
			switch {
			case l.there() && !late:
				account.Ready++
			case l.there(), l.failed(), l.over, l.unschedulable() && blind == 0:
				account.NeverReady++
			case cut || blind > 0:
				account.Lost++
			default:
				account.NeverReady++
			}
		}
	}
	account.Created = account.Intended - account.CreateFailed - account.Dropped
	return account, replacedEver
}

// slotOf is the slot that an event is about, "" for none.
func slotOf(e record.Event) string {
	switch b := e.Body.(type) {
	case *record.Slot:
		return b.Slot
	case *record.Object:
		if b.Slot != "" {
			return b.Slot
		}
		return b.Object
	case *record.State:
		if b.Slot != "" {
			return b.Slot
		}
		return b.Object
	}
	return ""
}

// randomEvents lets anything happen to few objects: in any order, out of
// order, twice, or to what was never asked for.
func randomEvents(rng *rand.Rand, s *script, ended func()) {
	pick := func(words ...string) string { return words[rng.IntN(len(words))] }
	running, placed := false, false
	for range 5 + rng.IntN(60) {
		s.now += record.Micros(rng.IntN(15e6))
		name := pick("a", "b", "c", "d-1/d", "d-2/d", "d-3/d", "e-1/e")
		switch n := rng.IntN(30); {
		case n < 3 && !running:
			s.begin(1, func(b *record.StepEvent) { b.FromEmpty = !placed })
			running, placed = true, true
		case n < 3:
			s.end([]record.Ending{record.EndHeld, record.EndTimeout, record.EndStalled, record.EndGuard, record.EndInterrupted}[rng.IntN(5)])
			running = false
			ended()
		case n == 3 && !running && placed:
			s.put(&record.StepEvent{Phase: record.PhaseReset})
			placed = false
		case n == 4:
			fault := &record.Fault{What: "watch cut", From: s.now}
			if rng.IntN(3) > 0 {
				fault.To = s.now
			}
			s.put(fault)
		case n < 12:
			if !running {
				continue
			}
			slot := pick("a", "b", "c", "d", "e", "svc")
			s.asked(slot, func(r *record.Slot) {
				r.Sent = s.now - record.Micros(rng.IntN(5e6))
				r.Iteration = rng.IntN(3)
				switch slot {
				case "d", "e":
					r.Units, r.Grouped = 1+rng.IntN(3), true
				case "svc":
					r.Units = 0
				}
				r.Outcome = []record.SlotOutcome{record.SlotCreated, record.SlotCreated, record.SlotCreated, record.SlotFailed, record.SlotDropped, record.SlotUnknown}[rng.IntN(6)]
				if r.Outcome != record.SlotCreated {
					r.Code, r.Error = []int{0, 409, 422, 429, 500}[rng.IntN(5)], "no"
				}
			})
		case n < 23:
			if !placed {
				continue
			}
			s.news(name + " " + pick("Created", "Created", "Scheduled", "Ready", "Ready", "Deleted"))
		default:
			if !placed {
				continue
			}
			s.state(name, pick("", "Unschedulable", "Error"), pick("", "x"), func(b *record.State) {
				switch rng.IntN(5) {
				case 0:
					b.Lost = "Ready"
				case 1:
					b.Regained = "Ready"
				case 2:
					b.Failed = true
				}
			})
		}
	}
}

// Whatever comes, the account adds up and agrees with the slow twin, at the
// end of every step.
func TestAccountAgreesWithASlowTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	steps := 0
	for range 4000 {
		s := oneOfMany(t, "errors=errors <= 0%")
		var resets, replaced int
		randomEvents(rng, s, func() {
			c := s.LastStep()
			want, ever := accountSlowly(s.events)
			if c.Objects != want || !adds(c.Objects) {
				t.Fatalf("account %+v\nwant    %+v\nafter\n%s", c.Objects, want, tell(s.events))
			}
			sent, failed, dropped := 0, 0, 0
			for _, e := range s.events {
				if b, ok := e.Body.(*record.Slot); ok && e.Step == c.ID {
					switch b.Outcome {
					case record.SlotDropped:
						dropped++
						continue
					case record.SlotFailed, record.SlotUnknown:
						failed++
					}
					sent++
				}
			}
			if q := c.APIRequests; q.N != sent || q.Failed != failed {
				t.Fatalf("%d requests, %d failed: want %d and %d, after\n%s", q.N, q.Failed, sent, failed, tell(s.events))
			}
			if want := fmt.Sprintf("it was %.4g%%", 100*float64(failed+dropped)/float64(sent+dropped)); failed+dropped > 0 && !strings.Contains(c.VerdictWhy, want) && c.Goals["errors"] == slo.Fail {
				t.Fatalf("errors: %s, want %q, after\n%s", c.VerdictWhy, want, tell(s.events))
			}
			n := 0
			for _, e := range s.events {
				if b, ok := e.Body.(*record.StepEvent); ok && b.Phase == record.PhaseReset {
					n++
				}
			}
			if n != resets {
				resets, replaced = n, 0
			}
			told := 0
			for _, b := range c.Breaches {
				fmt.Sscanf(b.What, "replaced: %d", &told)
			}
			if now := max(ever-replaced, 0); told < now {
				t.Fatalf("%d were replaced in the step, %d were told of, after\n%s", now, told, tell(s.events))
			}
			replaced = max(ever, replaced)
			steps++
		})
	}
	if steps < 4000 {
		t.Errorf("only %d steps were judged", steps)
	}
}

func tell(events []record.Event) string {
	text := ""
	for _, e := range events {
		text += fmt.Sprintf("%d step %d %s %+v\n", e.T, e.Step, e.Body.Kind(), e.Body)
	}
	return text
}

// An object's time zero is in its row: when its request was sent, or was wanted
// by a schedule; its own first news where a controller made it, or where its
// request is not on record.
func TestTheRowsTellTheTimeZero(t *testing.T) {
	for _, open := range []bool{false, true} {
		s := newScript(t)
		s.at(1).begin(1, func(b *record.StepEvent) { b.Open, b.Hold = open, 10e6 })
		s.put(&record.StepEvent{Phase: record.PhaseReached})
		s.at(2).asked("alone silent", func(r *record.Slot) { r.Intended -= 5e5 })
		s.at(3).asked("many", grouped(2), func(r *record.Slot) { r.Intended -= 5e5 })
		s.at(4).news("alone Created, x/many Created, untold Created")
		s.at(5).news("alone Ready, x/many Ready, y/many Ready, untold Ready")
		s.at(20).end(record.EndHeld)
		s.finish(design.Sweep{Levels: []float64{1}})
		var got []string
		for _, r := range s.rows {
			got = append(got, fmt.Sprintf("%s %d", r.Slot, r.Zero/1e5))
		}
		slices.Sort(got)
		want := "ns/alone 20; ns/many#0 40; ns/many#1 50; ns/silent 20; ns/untold 40"
		if open {
			want = "ns/alone 15; ns/many#0 40; ns/many#1 50; ns/silent 15; ns/untold 40"
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("open %v: %s, want %s", open, text, want)
		}
	}
}

// A request is counted whatever it asked for and however often its name comes
// again: nine of thirty that are refused are three tenths, and what they say is
// one reason.
func TestARequestIsCountedHoweverItsNameRepeats(t *testing.T) {
	s := newScript(t, "slo=errors < 5%")
	s.at(1).begin(10)
	for i := range 10 {
		name := fmt.Sprintf("pod-%d", i)
		s.made(name, 0.5)
		other := func(r *record.Slot) {
			r.Slot, r.Resource, r.Units, r.Iteration = "ConfigMap/"+r.Slot, "ConfigMap", 0, i
		}
		s.asked(fmt.Sprintf("own-%d", i), other)
		if i == 0 {
			s.asked("same", other)
			continue
		}
		s.asked("same", other, outcome(record.SlotFailed, 409, `configmaps "same" already exists`))
	}
	// Nothing was sent for a template that wrote nothing.
	s.asked("none.yml", func(r *record.Slot) { r.Units, r.Code = 0, 0 })
	s.at(9)
	c := s.end(record.EndHeld)
	if q := c.APIRequests; q.N != 30 || q.Failed != 9 {
		t.Errorf("%d requests, %d failed: want 30 and 9", q.N, q.Failed)
	}
	if c.Verdict != slo.Fail || !strings.Contains(c.VerdictWhy, "it was 30%") {
		t.Errorf("%s: %s", c.Verdict, c.VerdictWhy)
	}
	want := result.Reason{Reason: "HTTP 409", Message: `configmaps "NAME" already exists`, Count: 9, Requests: true, Certain: 9}
	if len(c.Reasons) != 1 || c.Reasons[0] != want {
		t.Errorf("reasons %+v, want %+v", c.Reasons, want)
	}
	r := s.finish(design.Search{From: 10, Step: 10, Max: 10, Resolution: 1})
	if b := r.BrokeFirst; b == nil || !strings.Contains(b.Says, "mistake in the workload") {
		t.Errorf("what broke first: %+v", b)
	}
	if l := r.LoadLine; l == nil || !strings.Contains(l.Binding, "already exists") {
		t.Errorf("load line %+v", l)
	}
}

// A second request for a name of a pod is one of its own, which asked for a pod
// that never came.
func TestARepeatedNameOfAPodIsRefused(t *testing.T) {
	s := newScript(t)
	s.at(1).begin(10)
	s.made("a", 0.5)
	s.asked("a", outcome(record.SlotFailed, 409, `pods "a" already exists`))
	s.at(3)
	c := s.end(record.EndStalled)
	if got := c.Objects; got.Intended != 2 || got.Ready != 1 || got.CreateFailed != 1 || !adds(got) {
		t.Errorf("account %+v", got)
	}
}
