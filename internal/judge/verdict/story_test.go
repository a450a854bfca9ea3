package verdict

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// story makes the facts of steps from events, in the way in which a run puts them on
// record. Its clock moves when a test moves it.
type story struct {
	t         testing.TB
	spec      result.Spec
	collector *fold.Collector
	now       record.Micros
	id        int
	steps     []*Judged
	// histograms keeps the encoded ones: encoding takes long.
	histograms map[heap]record.Histogram
}

// heap is a number of equal times.
type heap struct {
	took record.Micros
	n    int
}

// podKind is a small kind of object, and requestKind one of a stream's requests.
func podKind() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "pod", Many: "pods"}, Place: record.Noun{One: "node", Many: "nodes"},
		Milestones: []record.Milestone{{Name: "Created", Owner: "API server"}, {Name: "Scheduled", Owner: "scheduler"}, {Name: "Ready", Owner: "nodes"}, {Name: "Deleted", Owner: "nodes"}},
		Created:    "Created", Placed: "Scheduled", There: "Ready", Gone: "Deleted", Unplaced: "Unschedulable", Removing: "Deleting",
		Troubles: []record.Trouble{
			{Class: "scheduling", What: "no node had room for objects", Reasons: []string{"Unschedulable"}},
			{Class: "restarts", What: "containers ended", Reasons: []string{"Error"}},
		},
	}
}

func requestKind() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "request", Many: "requests"}, Place: record.Noun{One: "backend", Many: "backends"},
		Milestones: []record.Milestone{{Name: "Complete", Owner: "router"}}, There: "Complete",
	}
}

// goalsOf reads goals as a user writes them.
func goalsOf(t testing.TB, texts ...string) (goals []slo.Goal) {
	t.Helper()
	for _, text := range texts {
		g, err := slo.ParseGoal(text)
		if err != nil {
			t.Fatal(err)
		}
		goals = append(goals, g)
	}
	return goals
}

// newStory begins a run with these goals. The change may be nil.
func newStory(t testing.TB, kind record.ObjectKind, change func(*result.Spec), goals ...string) *story {
	t.Helper()
	s := &story{t: t, histograms: make(map[heap]record.Histogram), spec: result.Spec{
		Kind: kind, Milestones: kind.Names(), Axis: "pods-per-node", Unit: "pods/node",
		Goals: goalsOf(t, goals...), Start: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	}}
	if change != nil {
		change(&s.spec)
	}
	var err error
	if s.collector, err = fold.NewCollector(&s.spec, &fold.Tables{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// at sets the clock, in seconds since the start of the run.
func (s *story) at(seconds float64) *story {
	s.now = micros(seconds)
	return s
}

func micros(seconds float64) record.Micros { return record.Micros(seconds * 1e6) }

// put puts an event on record at the present.
func (s *story) put(body record.Body) {
	e := record.Event{T: s.now, Step: s.id, Body: body}
	switch body := body.(type) {
	case *record.StepEvent:
		s.collector.AddStep(e, body)
	case *record.Fault:
		s.collector.AddFault(body)
	case *record.Corrected:
		s.collector.AddCorrected(body)
	default:
		s.collector.Add(e)
	}
}

// begin begins a step of level 2 with a timeout of a minute. The change may be nil.
func (s *story) begin(change func(*record.StepEvent)) {
	s.id++
	b := &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 2, FullHold: true, FromEmpty: true}, Reached: 2, Timeout: 60e6, Hold: 20e6}
	if change != nil {
		change(b)
	}
	s.put(b)
}

// asked puts requests on record that were sent and answered at the present.
func (s *story) asked(names string, changes ...func(*record.Slot)) {
	for name := range strings.FieldsSeq(names) {
		b := &record.Slot{Slot: "ns/" + name, Units: 1, Intended: s.now, Sent: s.now, Replied: s.now, Code: 201, Outcome: record.SlotCreated}
		for _, change := range changes {
			change(b)
		}
		s.put(b)
	}
}

// refused is a request that the server answers with an error.
func refused(code int, message string) func(*record.Slot) {
	return func(b *record.Slot) { b.Outcome, b.Code, b.Error = record.SlotFailed, code, message }
}

// noAnswer is a request of which nobody knows what became.
func noAnswer(b *record.Slot) { b.Outcome, b.Code, b.Error = record.SlotUnknown, 0, "no answer" }

// news says that objects reached milestones: "a b: Created Ready".
func (s *story) news(text string) {
	names, milestones, _ := strings.Cut(text, ":")
	for name := range strings.FieldsSeq(names) {
		for m := range strings.FieldsSeq(milestones) {
			s.put(&record.Object{Object: "ns/" + name, Milestone: m})
		}
	}
}

// made asks for objects that are Ready after so many seconds. The clock stands still.
func (s *story) made(names string, seconds float64) {
	s.asked(names)
	s.news(names + ": Created Scheduled")
	now := s.now
	s.now += micros(seconds)
	s.news(names + ": Ready")
	s.now = now
}

// fails says that an object will never be Ready.
func (s *story) fails(name string) {
	s.put(&record.State{Object: "ns/" + name, Reason: "Error", Message: "exit code 1", Failed: true})
}

// canary says when a change was sent, and how much later its news came.
func (s *story) canary(sent, lag float64) {
	now := s.now
	s.at(sent + lag).put(&record.Canary{Sent: micros(sent), Replied: micros(sent) + 5e3, Seen: micros(sent + lag)})
	s.now = now
}

// reading is one sample of a source.
func (s *story) reading(at float64, source string, values map[string]float64) {
	now := s.now
	s.at(at).put(&record.Reading{Source: source, Values: values})
	s.now = now
}

// wakes says how often the program was woken, and how often too late.
func (s *story) wakes(made, late float64) {
	s.reading(1, usage.SourceWakes, map[string]float64{"wakes": made, "late": late, "mostSeconds": 0.2})
}

// busyNeighbours says that other programs use 90% of the machine for 20 s.
func (s *story) busyNeighbours() {
	for second := range 21 {
		x := float64(second)
		s.reading(x, usage.SourceMachine, map[string]float64{"cpuSeconds": 1.9 * x, "cpus": 2})
		s.reading(x, "etcd", map[string]float64{"cpuSeconds": 0.1 * x, "rssBytes": 1e8})
	}
}

// bound says how far a limit of the kind was used up, all along.
func (s *story) bound(source string, share float64) {
	for second := range 21 {
		s.reading(float64(second), source, map[string]float64{"used": share})
	}
}

// arrivals are 100 arrivals of a schedule in 10 s, which were sent so much late and
// were Ready after so many seconds.
func (s *story) arrivals(late float64, took func(i int) float64, changes ...func(i int, b *record.Slot)) {
	s.at(0).put(&record.StepEvent{Phase: record.PhaseReached})
	for i := range 100 {
		due := 0.05 + float64(i)/10
		name := "arrival" + strings.Repeat("x", i)
		s.at(due+late).asked(name, func(b *record.Slot) {
			b.Intended = micros(due)
			for _, change := range changes {
				change(i, b)
			}
		})
		s.at(due + took(i)).news(name + ": Created Scheduled Ready")
	}
}

// lostNews are 100 arrivals of a schedule that were Ready after 0.2 s by the server's own
// clock, of which the news of one in 25 was lost: a later message at 17 s told of it. The
// clock's zero is the base, 0 for a server that gives no times.
func (s *story) lostNews(base int64) {
	s.at(0).put(&record.StepEvent{Phase: record.PhaseReached})
	for i := range 100 {
		due := 0.05 + float64(i)*0.095
		name := "arrival" + strings.Repeat("x", i)
		s.at(due).asked(name)
		s.news(name + ": Created Scheduled")
		ready := due + 0.2
		stamp := base + int64(ready)
		if base == 0 {
			stamp = 0
		}
		if i%25 == 7 {
			ready = 17
		}
		s.at(ready).put(&record.Object{Object: "ns/" + name, Milestone: "Ready", Stamp: stamp})
	}
}

// stillNodes are 100 arrivals of a schedule, whose nodes make nothing Ready from one
// moment to another, and else take so many seconds.
func (s *story) stillNodes(from, to, took float64) {
	s.at(0).put(&record.StepEvent{Phase: record.PhaseReached})
	for i := range 100 {
		due := 0.05 + float64(i)/10
		name := "arrival" + strings.Repeat("x", i)
		s.at(due).asked(name)
		s.news(name + ": Created Scheduled")
		ready := due + took
		if ready > from && ready < to {
			ready = to
		}
		s.at(ready).news(name + ": Ready")
	}
}

// plant is a window of a stream and what its histograms hold.
type plant struct {
	record.Window
	took record.Micros // by each request that was done
	own  record.Micros // by which the generator was late with each
	// tardy counts the requests that it sent late, 0 for all.
	tardy int
}

// windows are 20 windows of a second, in each of which 100 requests were done after
// 10 ms. The change may be nil.
func (s *story) windows(change func(second int, w *plant)) {
	s.at(0).put(&record.StepEvent{Phase: record.PhaseReached})
	for i := range 20 {
		w := &plant{Window: record.Window{From: micros(float64(i)), To: micros(float64(i + 1)), Done: 100, InFlight: 1}, took: 10e3}
		if change != nil {
			change(i, w)
		}
		w.Sent = w.Done + w.FailedAll() + w.Lost
		w.Intended = w.Sent + w.Dropped
		w.Answered = w.Done
		if w.Histograms == nil {
			w.Histograms = map[string]record.Histogram{"Complete": s.histogram(w.took, w.Done)}
		}
		if w.OwnDelay == "" {
			w.OwnDelay = s.delays(w.own, cmp.Or(w.tardy, w.Sent), w.Sent)
		}
		s.at(float64(i + 1)).put(&w.Window)
	}
}

// delays holds as many requests of all as were late, by so much.
func (s *story) delays(by record.Micros, late, all int) record.Histogram {
	s.t.Helper()
	if late == all {
		return s.histogram(by, all)
	}
	counts := record.NewCounts()
	record.CountMany(counts, by, int64(late))
	record.CountMany(counts, 0, int64(all-late))
	h, err := record.HistogramOf(counts)
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

// histogram holds n requests that each took as long.
func (s *story) histogram(took record.Micros, n int) record.Histogram {
	s.t.Helper()
	key := heap{took, n}
	if h, ok := s.histograms[key]; ok {
		return h
	}
	counts := record.NewCounts()
	record.CountMany(counts, took, int64(n))
	h, err := record.HistogramOf(counts)
	if err != nil {
		s.t.Fatal(err)
	}
	s.histograms[key] = h
	return h
}

// end ends the step and judges it.
func (s *story) end(ending record.Ending, changes ...func(*record.StepEvent)) *Judged {
	b := &record.StepEvent{Phase: record.PhaseEnd, Ending: ending}
	switch ending {
	case record.EndInterrupted:
		b.Message = "the user stopped it"
	case record.EndUnfinished:
		b.Message = "two nodes still drained"
	}
	for _, change := range changes {
		change(b)
	}
	s.put(b)
	m, f := s.collector.End(s.now)
	step := Judge(&s.spec, m, f, FirstStep(s.steps))
	s.steps = append(s.steps, step)
	return step
}

// has reports whether a step has a breach with this text, and whether it decided.
func has(step *Judged, text string) (there, decided bool) {
	for _, b := range step.Breaches {
		if strings.Contains(b.What, text) {
			return true, b.Decided
		}
	}
	return false, false
}
