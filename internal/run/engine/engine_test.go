package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// fate says what happens to an object of a fake target.
type fate int

const (
	arrives     fate = iota // after the target's latency
	nowhere                 // no place for it
	breaks                  // failed for good, and another one may take its place
	ends                    // failed for good, and none does
	neverTells              // stays where it is, without a word
	refused                 // its request fails
	unanswered              // its request has no known outcome
	needsThree              // its request succeeds at the third attempt
	companion               // arrives, but the request before its own is refused
	falls                   // arrives, and is gone a second later
	movesAlways             // never there, and always on the move
)

// fake is a target whose objects' fates are given.
type fake struct {
	clock   *record.Clock
	sink    *memory
	fate    func(object int) fate
	service func(object int) time.Duration // of a request
	latency time.Duration                  // from a request's answer until the object is there
	health  func(now time.Duration) (map[string]float64, error)
	settle  func(now time.Duration) error
	account func(now time.Duration) error
	silent  func(now time.Duration) string
	// atOnce and due are those of its batches.
	atOnce bool
	due    func(f *fake, i int) bool
	// more holds how many requests each further part of a batch has.
	more []int
	// mute says since when nothing at all is answered, 0 for never.
	mute  time.Duration
	raise func(now time.Duration) error
	reset func(ctx context.Context, now time.Duration) error

	mu     sync.Mutex
	asked  int
	born   map[int]record.Micros
	sends  map[int]int // how often each object was requested
	starts []record.Micros
	now    int // requests under way
	most   int
	calls  []string // of the methods that change something
}

func (f *fake) call(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, name)
	return f.clock.Now().Duration()
}

func (f *fake) Describe(context.Context) (record.Environment, error) {
	return record.Environment{}, nil
}

func (f *fake) Raise(_ context.Context, asked system.Level) (system.Batch, error) {
	level := asked.Value
	if asked.Span > 0 {
		level = asked.Value * asked.Span.Seconds() // all arrivals
	}
	now := f.call(fmt.Sprintf("raise %g", level))
	if f.raise != nil {
		if err := f.raise(now); err != nil {
			return system.Batch{}, err
		}
	}
	first := f.asked
	n := int(level) - first
	f.asked += n
	var due func(i int) bool
	if f.due != nil {
		due = func(i int) bool { return f.due(f, i) }
	}
	var more func(context.Context) (int, int, error)
	if rest := f.more; rest != nil {
		more = func(context.Context) (int, int, error) {
			if len(rest) == 0 {
				return 0, 0, nil
			}
			part := rest[0]
			rest, f.asked = rest[1:], f.asked+part
			return part, part, nil
		}
	}
	return system.Batch{
		AtOnce: f.atOnce, Due: due, More: more, Requests: n, Units: n, Reached: level, Spread: system.Spread{Places: 2, Others: 3, Least: 4, Most: 5},
		Send: func(ctx context.Context, i int) record.Slot { return f.send(ctx, first+i) },
	}, nil
}

// unheard waits as long as an answer is awaited by whoever asks a mute target.
func (f *fake) unheard(ctx context.Context) bool {
	if f.mute == 0 || f.clock.Now().Duration() < f.mute {
		return false
	}
	<-ctx.Done()
	return true
}

func (f *fake) send(ctx context.Context, i int) record.Slot {
	f.mu.Lock()
	f.sends[i]++
	f.starts = append(f.starts, f.clock.Now())
	f.now++
	f.most = max(f.most, f.now)
	f.mu.Unlock()
	time.Sleep(f.service(i))
	rest, end := system.Outlive(ctx)
	defer end()
	unheard := f.unheard(rest)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now--
	if unheard {
		return record.Slot{Slot: fmt.Sprint(i), Units: 1, Outcome: record.SlotUnknown}
	}
	slot := record.Slot{Slot: fmt.Sprint(i), Units: 1, Outcome: record.SlotCreated, Code: 201}
	switch f.fate(i) {
	case refused:
		slot.Outcome, slot.Code = record.SlotFailed, 500
		return slot
	case unanswered:
		slot.Outcome, slot.Code = record.SlotUnknown, 0
		return slot
	case needsThree:
		slot.Retries = 2
	case companion:
		slot.Before = &record.Slot{Slot: fmt.Sprintf("before/%d", i), Outcome: record.SlotFailed, Code: 422}
	}
	f.born[i] = f.clock.Now()
	return slot
}

func (f *fake) Progress() system.Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.clock.Now()
	var p system.Progress
	if f.silent != nil {
		p.Silent, p.OutOfReach = f.silent(now.Duration()), f.mute > 0
	}
	moved := func(at record.Micros) {
		if at <= now {
			p.Moved = max(p.Moved, at)
		}
	}
	for i, born := range f.born {
		moved(born)
		there := born + record.MicrosOf(f.latency)
		switch f.fate(i) {
		case nowhere:
			p.Unschedulable++
		case breaks:
			p.Failed++
		case ends:
			p.Failed, p.Final = p.Failed+1, p.Final+1
		case movesAlways:
			p.Unschedulable++
			moved(now)
		case falls:
			moved(there + 1e6)
			if now >= there {
				p.Arrived++
			}
			if now >= there && now < there+1e6 {
				p.There++
			}
		case arrives, needsThree, companion:
			moved(there)
			if now >= there {
				p.There++
				p.Arrived++
			}
		}
	}
	return p
}

func (f *fake) Settle(ctx context.Context) error {
	now := f.call("settle")
	if f.unheard(ctx) || f.settle == nil {
		return ctx.Err()
	}
	return f.settle(now)
}

func (f *fake) Account(ctx context.Context) (system.Spread, error) {
	now := f.call("account")
	f.unheard(ctx)
	if err := ctx.Err(); err != nil {
		return system.Spread{}, err
	}
	if f.account != nil {
		if err := f.account(now); err != nil {
			return system.Spread{}, err
		}
	}
	return system.Spread{Places: 2, Others: 3, Least: 6, Most: 7}, nil
}

func (f *fake) Reset(ctx context.Context) error {
	now := f.call("reset")
	if f.reset != nil {
		if err := f.reset(ctx, now); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = 0
	clear(f.born)
	clear(f.sends)
	return nil
}

func (f *fake) Health(ctx context.Context) (map[string]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if f.health == nil {
		return map[string]float64{}, nil
	}
	return f.health(f.clock.Now().Duration())
}

// memory keeps what is put on record.
type memory struct {
	mu     sync.Mutex
	events []record.Event
}

func (m *memory) Append(e record.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
}

// story returns the recorded events, without the slots.
func (m *memory) story() string {
	var words []string
	for _, e := range m.events {
		switch b := e.Body.(type) {
		case *record.StepEvent:
			text := fmt.Sprintf("%d:%s", e.Step, b.Phase)
			if b.Ending != "" {
				text += " " + string(b.Ending)
			}
			words = append(words, text)
		case *record.Guard:
			words = append(words, fmt.Sprintf("%d:guard %s", e.Step, b.Name))
		case *record.Fault:
			text := "blind"
			if b.To != 0 {
				text = "healed"
			}
			words = append(words, fmt.Sprintf("%d:%s", e.Step, text))
		case *record.Note:
			words = append(words, fmt.Sprintf("%d:note", e.Step))
		}
	}
	return strings.Join(words, ", ")
}

func (m *memory) slots() []*record.Slot {
	var list []*record.Slot
	for _, e := range m.events {
		if s, ok := e.Body.(*record.Slot); ok {
			list = append(list, s)
		}
	}
	return list
}

// trial is an Engine on a fake target, in a synctest bubble.
type trial struct {
	*Engine
	target *fake
	sink   *memory
	step   atomic.Int64
}

func constant(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }

// bubble runs do on a virtual clock with a fake target on which all goes well.
func bubble(t *testing.T, do func(t *testing.T, tr *trial)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clock := record.StartClock(time.Now)
		tr := &trial{sink: &memory{}}
		tr.target = &fake{
			clock: clock, sink: tr.sink, fate: func(int) fate { return arrives },
			service: constant(10 * time.Millisecond), latency: time.Second,
			born: map[int]record.Micros{}, sends: map[int]int{},
		}
		tr.Engine = New(tr.target, tr.sink, clock, Options{MaxInFlight: 8, Timeout: time.Minute, Hold: 10 * time.Second, ShortHold: 2 * time.Second}, &tr.step)
		time.Sleep(time.Second) // so that no time is 0
		do(t, tr)
	})
}

func whole(level float64) design.Next {
	return design.Next{StepPlan: record.StepPlan{Level: level, Purpose: record.PurposeSweep, FromEmpty: true, FullHold: true, Why: "asked for"}}
}

func TestHowAStepEnds(t *testing.T) {
	except := func(f fate, objects ...int) func(int) fate {
		return func(i int) fate {
			if slices.Contains(objects, i) {
				return f
			}
			return arrives
		}
	}
	for _, tt := range []struct {
		why   string
		fate  func(int) fate
		guard Guard
		unit  func(now time.Duration) float64 // the guard's measure
		want  string
		// took holds how long the step takes, in whole seconds.
		took float64
	}{
		{
			"all arrive within the latency of a second: the level is held for the whole hold",
			except(arrives), Guard{}, nil, "1:start, 1:loaded, 1:reached, 1:end held", 11,
		},
		{
			"one never tells: it is followed to the timeout",
			except(neverTells, 3), Guard{}, nil, "1:start, 1:loaded, 1:end timeout", 60,
		},
		{
			"one finds no place and nothing moves: waiting on is no use",
			except(nowhere, 3, 4), Guard{}, nil, "1:start, 1:loaded, 1:end stalled", 11,
		},
		{
			"one has failed for good",
			except(breaks, 0), Guard{}, nil, "1:start, 1:loaded, 1:end stalled", 11,
		},
		{
			"one has, and nobody makes another: nothing is waited for",
			except(ends, 0), Guard{}, nil, "1:start, 1:loaded, 1:end stalled", 1,
		},
		{
			"one has, and one is still on its way",
			func(i int) fate { return map[int]fate{1: ends, 2: neverTells}[i] }, Guard{}, nil, "1:start, 1:loaded, 1:end timeout", 60,
		},
		{
			"one was refused: it will never be there",
			except(refused, 0, 1, 2), Guard{}, nil, "1:start, 1:loaded, 1:end stalled", 11,
		},
		{
			"one request's outcome is unknown: as good as refused",
			except(unanswered, 7), Guard{}, nil, "1:start, 1:loaded, 1:end stalled", 11,
		},
		{
			"one finds no place, but something moves: not stalled",
			except(movesAlways, 7), Guard{}, nil, "1:start, 1:loaded, 1:end timeout", 60,
		},
		{
			"one finds no place and another never tells: not all that remain have no place",
			func(i int) fate { return map[int]fate{1: nowhere, 2: neverTells}[i] }, Guard{}, nil, "1:start, 1:loaded, 1:end timeout", 60,
		},
		{
			"one falls while the level is held: the engine does not judge",
			except(falls, 5), Guard{}, nil, "1:start, 1:loaded, 1:reached, 1:end held", 11,
		},
		{
			"a guard trips while the objects are waited for",
			except(neverTells, 5), Guard{Name: "down", Bound: 1}, func(now time.Duration) float64 { return math.Floor(now.Seconds() / 20) },
			"1:start, 1:loaded, 1:guard down, 1:end guard", 19,
		},
		{
			"a guard trips in the hold",
			except(arrives), Guard{Name: "down", Bound: 1}, func(now time.Duration) float64 { return math.Floor(now.Seconds() / 6) },
			"1:start, 1:loaded, 1:reached, 1:guard down, 1:end guard", 5,
		},
		{
			"what was so before any load trips no guard",
			except(arrives), Guard{Name: "down", Bound: 1}, func(time.Duration) float64 { return 7 },
			"1:start, 1:loaded, 1:reached, 1:end held", 11,
		},
		{
			"half of the requests fail: the engine's own measure trips",
			func(i int) fate { return []fate{arrives, refused}[i%2] }, Guard{Name: record.MeasureRequestErrors, Bound: 25}, nil,
			"1:start, 1:loaded, 1:guard apiErrors, 1:end guard", 1,
		},
		{
			"half of them fail, and the bound is a half",
			func(i int) fate { return []fate{arrives, refused}[i%2] }, Guard{Name: record.MeasureRequestErrors, Bound: 50}, nil,
			"1:start, 1:loaded, 1:end stalled", 11,
		},
		{
			"one of 50 fails at a bound of 1%: chance",
			except(refused, 7), Guard{Name: record.MeasureRequestErrors, Bound: 1}, nil,
			"1:start, 1:loaded, 1:end stalled", 11,
		},
		{
			"requests that a retry healed did not fail, however many",
			except(needsThree, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19), Guard{Name: record.MeasureRequestErrors, Bound: 5}, nil,
			"1:start, 1:loaded, 1:reached, 1:end held", 11,
		},
	} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.target.fate = tt.fate
			if tt.guard.Name != "" {
				tr.options.Guards = []Guard{{Name: "never", Bound: 1e9}, tt.guard}
			}
			if tt.unit != nil {
				tr.target.health = func(now time.Duration) (map[string]float64, error) {
					return map[string]float64{tt.guard.Name: tt.unit(now)}, nil
				}
			}
			begin := time.Now()
			ending, err := tr.Run(context.Background(), whole(50))
			if err != nil || !strings.HasSuffix(tt.want, string(ending)) || tr.sink.story() != tt.want {
				t.Errorf("%s:\n got %s (%s, %v)\nwant %s", tt.why, tr.sink.story(), ending, err, tt.want)
			}
			if took := math.Floor(time.Since(begin).Seconds()); took != tt.took {
				t.Errorf("%s: it took %v s, want %v s", tt.why, took, tt.took)
			}
			if n := len(tr.sink.slots()); n != 50 {
				t.Errorf("%s: %d requests on record", tt.why, n)
			}
		})
	}
}

// A step is waited for no longer once whoever its objects wait for does nothing: in
// the raise, which begins no further request, and in the wait. The sentence is why it
// ended.
func TestNobodyActs(t *testing.T) {
	for _, tt := range []struct {
		why   string
		pace  float64
		from  time.Duration // since when nobody acts
		want  string
		slots int
		took  float64
	}{
		{"in the wait", 0, 30 * time.Second, "1:start, 1:loaded, 1:end stalled", 50, 29},
		{"in the raise, of which five requests a second were made", 5, 5 * time.Second, "1:start, 1:end stalled", 20, 4},
	} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.target.fate = func(i int) fate { return map[bool]fate{true: neverTells}[i == 7] }
			tr.options.Pace = tt.pace
			tr.target.silent = func(now time.Duration) string {
				if now < tt.from {
					return ""
				}
				return "no scheduler has acted"
			}
			begin := time.Now()
			ending, err := tr.Run(context.Background(), whole(50))
			end := tr.sink.events[len(tr.sink.events)-1].Body.(*record.StepEvent)
			if err != nil || ending != record.EndStalled || tr.sink.story() != tt.want || end.Message != "no scheduler has acted" {
				t.Errorf("%s:\n got %s (%s, %q, %v)\nwant %s", tt.why, tr.sink.story(), ending, end.Message, err, tt.want)
			}
			if n := len(tr.sink.slots()); n < tt.slots || n > tt.slots+2 || math.Floor(time.Since(begin).Seconds()) != tt.took {
				t.Errorf("%s: %d requests, it took %v; want %d and %v s", tt.why, n, time.Since(begin), tt.slots, tt.took)
			}
		})
	}
}

// A target that answers nothing is waited for no longer than it took to find that
// out: neither by requests under way nor for the last news.
func TestATargetThatAnswersNothing(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		tr.options.Pace = 5
		tr.target.mute = 5 * time.Second
		tr.target.silent = func(now time.Duration) string {
			return map[bool]string{true: "the API server has not answered"}[now > 25*time.Second]
		}
		begin := time.Now()
		ending, err := tr.Run(context.Background(), whole(50))
		end := tr.sink.events[len(tr.sink.events)-1].Body.(*record.StepEvent)
		out, is := errors.AsType[*OutOfReachError](err)
		if took := time.Since(begin); !is || out.What != end.Message || ending != record.EndStalled || end.Message != "the API server has not answered" || took > 29*time.Second {
			t.Errorf("%s after %v: %q, %v", ending, took, end.Message, err)
		}
		unknown := 0
		for _, s := range tr.sink.slots() {
			if s.Outcome == record.SlotUnknown {
				unknown++
			}
		}
		if n := len(tr.sink.slots()); unknown == 0 || n-unknown < 20 {
			t.Errorf("%d of %d requests have no known outcome", unknown, n)
		}
	})
}

func TestWhatAStepPutsOnRecord(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		tr.options.Pace = 100
		samples := 0
		tr.options.Sample = func() { samples++ }
		var statuses []Status
		tr.options.Watch = func(s Status) { statuses = append(statuses, s) }
		if _, err := tr.Run(context.Background(), design.Next{StepPlan: record.StepPlan{Level: 20, Purpose: record.PurposeRamp, Why: "because", Arm: "a", Replicate: 2}}); err != nil {
			t.Fatal(err)
		}
		var start, end *record.StepEvent
		var endT record.Micros
		for _, e := range tr.sink.events {
			if s, ok := e.Body.(*record.StepEvent); ok {
				switch s.Phase {
				case record.PhaseStart:
					start = s // from empty, as every first step is
				case record.PhaseEnd:
					end, endT = s, e.T
				}
			}
			if e.Step != 1 {
				t.Errorf("an event of step %d: %+v", e.Step, e.Body)
			}
		}
		if want := (record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 20, Arm: "a", Replicate: 2, Purpose: record.PurposeRamp, FromEmpty: true, Why: "because"}, Reached: 20, Timeout: 60e6, Hold: 2e6, Pace: "100/s", Units: 20, Places: 2, Others: 3}); *start != want {
			t.Errorf("start %+v\nwant  %+v", *start, want)
		}
		if want := (record.StepEvent{Phase: record.PhaseEnd, Ending: record.EndHeld, Places: 2, Others: 3, Least: 6, Most: 7}); *end != want {
			t.Errorf("end %+v\nwant %+v", *end, want)
		}
		if last := tr.sink.events[len(tr.sink.events)-1]; last.T != endT {
			t.Errorf("something follows the step's end: %+v", last.Body)
		}
		for _, s := range tr.sink.slots() {
			if s.Intended != s.Sent || s.Replied-s.Sent != 10_000 {
				t.Errorf("slot %+v", s)
			}
		}
		if samples != 2 {
			t.Errorf("resources were read %d times, want at the start and the end", samples)
		}
		for i, s := range statuses {
			if s.Step != 1 || s.Level != 20 || s.Stage == StageRaising && (s.InFlight > s.Bound || s.Replied > s.Sent || s.Requests != 20) {
				t.Errorf("status %+v", s)
			}
			if i > 0 && statuses[i-1].Stage == StageHolding && s.Stage != StageHolding {
				t.Errorf("%s after the hold", s.Stage)
			}
		}
		if len(statuses) == 0 || statuses[len(statuses)-1].Progress.There != 20 {
			t.Errorf("%d statuses", len(statuses))
		}
		if calls := strings.Join(tr.target.calls, ", "); calls != "raise 20, settle, account" {
			t.Errorf("calls: %s", calls)
		}
	})
}

// A guard that trips as the hold ends ends the step too: the load would
// otherwise go on to the next step, with the guard's word on record.
func TestAGuardTripsInTheLastMoment(t *testing.T) {
	for range 20 { // what a select chooses is chance
		bubble(t, func(t *testing.T, tr *trial) {
			tr.options.Guards = []Guard{{Name: "down", Bound: 1}}
			var late atomic.Bool
			tr.target.health = func(time.Duration) (map[string]float64, error) {
				measures := map[string]float64{"down": 0}
				if late.Load() {
					measures["down"] = 1
				}
				return measures, nil
			}
			tr.options.Watch = func(s Status) {
				if s.Stage == StageHolding && s.Left < 150*time.Millisecond && !late.Swap(true) {
					time.Sleep(3 * time.Second) // the hold ends, and the guard trips
				}
			}
			ending, err := tr.Run(context.Background(), whole(5))
			if ending != record.EndGuard || err != nil || tr.sink.story() != "1:start, 1:loaded, 1:reached, 1:guard down, 1:end guard" {
				t.Fatalf("%s, %v: %s", ending, err, tr.sink.story())
			}
		})
	}
}

// Further parts of a load count like its first one: they are made, waited for and told.
func TestEachPartOfALoadCounts(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		var waiting Status
		tr.options.Watch = func(s Status) {
			if s.Stage == StageWaiting {
				waiting = s
			}
		}
		tr.target.more = []int{20, 5}
		tr.target.fate = func(object int) fate {
			if object >= 30 {
				return neverTells
			}
			return arrives
		}
		ending, err := tr.Run(context.Background(), whole(10))
		if n := len(tr.sink.slots()); ending != record.EndTimeout || err != nil || n != 35 {
			t.Errorf("%s, %v, %d requests on record: want a timeout, because five of 35 objects never come", ending, err, n)
		}
		if waiting.Requests != 35 || waiting.Units != 35 || waiting.Unasked != 0 || waiting.Progress.There != 30 {
			t.Errorf("%d requests, %d units, %d of them not asked for, %d there: want 35, 35, 0 and 30", waiting.Requests, waiting.Units, waiting.Unasked, waiting.Progress.There)
		}
	})
}

// An arrival that found no place in flight does not count as not asked for, and nobody waits
// for its object until the timeout.
func TestDroppedArrivalsAreNotAwaited(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		var waiting Status
		tr.options.Open, tr.options.MaxInFlight = true, 1
		tr.options.Watch = func(s Status) {
			if s.Stage == StageWaiting {
				waiting = s
			}
		}
		tr.target.service = constant(8 * time.Second)
		began := time.Now()
		ending, err := tr.Run(context.Background(), whole(1))
		if ending != record.EndStalled || err != nil || time.Since(began) > 50*time.Second || waiting.Dropped == 0 || waiting.Unasked != 0 {
			t.Errorf("%s, %v after %s, %d dropped and %d not asked for: want a stalled step within 50 s, some dropped and 0", ending, err, time.Since(began), waiting.Dropped, waiting.Unasked)
		}
	})
}

// What a screen shows agrees with the record: requests that were answered, late arrivals, and dropped ones.
func TestStatusAgreesWithTheRecord(t *testing.T) {
	for _, tt := range []struct {
		why  string
		open bool
	}{{"requests that wait for each other", false}, {"arrivals, of which some find no place", true}} {
		t.Run(tt.why, func(t *testing.T) {
			bubble(t, func(t *testing.T, tr *trial) {
				var last, want Status
				tr.options.Open, tr.options.Watch = tt.open, func(s Status) { last = s }
				if tt.open {
					tr.options.MaxInFlight, tr.target.service = 1, func(i int) time.Duration {
						return []time.Duration{100 * time.Millisecond, 900 * time.Millisecond, 8 * time.Second}[i%3]
					}
				}
				if _, err := tr.Run(context.Background(), whole(10)); err != nil {
					t.Fatal(err)
				}
				for _, slot := range tr.sink.slots() {
					if slot.Waited > 0 {
						want.Late++
					}
					if slot.Outcome == record.SlotDropped {
						want.Dropped++
						continue
					}
					want.Sent, want.Replied = want.Sent+1, want.Replied+1
				}
				if last.Sent != want.Sent || last.Replied != want.Replied || last.Late != want.Late || last.Dropped != want.Dropped || tt.open && (want.Dropped == 0 || want.Late <= want.Dropped) {
					t.Errorf("shown: %d sent, %d replied, %d late, %d dropped; on record %d, %d, %d, %d", last.Sent, last.Replied, last.Late, last.Dropped, want.Sent, want.Replied, want.Late, want.Dropped)
				}
			})
		})
	}
}

// What a template asks for besides its last object counts like it: on record,
// and for the guard on failed requests.
func TestEachRequestOfATemplateCounts(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		tr.target.fate = func(int) fate { return companion }
		tr.options.Guards = []Guard{{Name: record.MeasureRequestErrors, Bound: 25}}
		ending, err := tr.Run(context.Background(), whole(30))
		if n := len(tr.sink.slots()); ending != record.EndGuard || err != nil || n != 60 {
			t.Errorf("%s, %v, %d requests on record: want a guard and 60", ending, err, n)
		}
	})
}

// A step cut at any moment: every request that was sent is on record exactly
// once, the step has its end, and the error says why.
func TestAStepCutAnywhere(t *testing.T) {
	why := errors.New("enough")
	for at := range 140 {
		bubble(t, func(t *testing.T, tr *trial) {
			rng := rand.New(rand.NewPCG(6, uint64(at)))
			tr.target.fate = func(i int) fate { return []fate{arrives, refused, needsThree}[i%3] }
			if at%2 == 0 {
				tr.target.fate = func(int) fate { return arrives }
			}
			tr.options.Pace = []float64{0, 200}[at%2]
			ctx, cancel := context.WithCancelCause(context.Background())
			defer cancel(nil)
			// The whole step takes 12 to 15 s; most cuts lie in the raising.
			delay := time.Duration(float64(13*time.Second) * math.Pow(rng.Float64(), 4))
			time.AfterFunc(delay, func() { cancel(why) })
			ending, err := tr.Run(ctx, whole(200))

			recorded := map[string]int{}
			for _, s := range tr.sink.slots() {
				recorded[s.Slot]++
			}
			sent := map[string]int{}
			for i, n := range tr.target.sends {
				sent[fmt.Sprint(i)] = n
			}
			if !maps.Equal(recorded, sent) {
				t.Fatalf("cut after %v: %d requests sent, %d on record", delay, len(sent), len(recorded))
			}
			for i, n := range sent {
				if n != 1 {
					t.Fatalf("cut after %v: request %s was sent %d times", delay, i, n)
				}
			}
			cut := ending == record.EndInterrupted
			if cut != errors.Is(err, why) || !cut && ending != record.EndHeld && ending != record.EndStalled {
				t.Fatalf("cut after %v: ended %s with %v", delay, ending, err)
			}
			last, ok := tr.sink.events[len(tr.sink.events)-1].Body.(*record.StepEvent)
			if !ok || last.Phase != record.PhaseEnd || last.Ending != ending || (last.Message == "enough") != cut {
				t.Fatalf("cut after %v: the record ends with %+v", delay, last)
			}
			if calls := strings.Join(tr.target.calls, ", "); calls != "raise 200, settle, account" || strings.Contains(tr.sink.story(), "note") || strings.Contains(tr.sink.story(), "blind") {
				t.Fatalf("cut after %v: calls %s; %s", delay, calls, tr.sink.story())
			}
		})
	}
}

// A run cut before its step began, or between two steps, has nothing to judge
// and says why.
func TestAStepCutBeforeItBegins(t *testing.T) {
	why := errors.New("enough")
	t.Run("while the target is emptied", func(t *testing.T) {
		bubble(t, func(t *testing.T, tr *trial) {
			if _, err := tr.Run(context.Background(), whole(5)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			tr.target.reset = func(ctx context.Context, _ time.Duration) error {
				cancel(why)
				<-ctx.Done()
				return context.Cause(ctx)
			}
			ending, err := tr.Run(ctx, whole(5))
			if ending != record.EndInterrupted || !errors.Is(err, why) || tr.step.Load() != 1 || !strings.HasSuffix(tr.sink.story(), "1:end held, 1:reset") {
				t.Errorf("%s, %v, at step %d: %s", ending, err, tr.step.Load(), tr.sink.story())
			}
			if err.Error() != "enough while the run emptied the target" {
				t.Errorf("the reason is %q, and nobody shall empty the target", err)
			}
		})
	})
	t.Run("while the target calms down", func(t *testing.T) {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.target.health = func(now time.Duration) (map[string]float64, error) {
				return map[string]float64{"down": math.Floor(now.Seconds() / 5)}, nil
			}
			if _, err := tr.Run(context.Background(), whole(5)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(3*time.Second, func() { cancel(why) })
			ending, err := tr.Run(ctx, whole(5))
			if ending != record.EndInterrupted || !errors.Is(err, why) || !strings.HasSuffix(tr.sink.story(), "1:reset") {
				t.Errorf("%s, %v: %s", ending, err, tr.sink.story())
			}
		})
	})
	t.Run("while the target is looked at for the first time", func(t *testing.T) {
		bubble(t, func(t *testing.T, tr *trial) {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(why)
			ending, err := tr.Run(ctx, whole(5))
			if ending != record.EndInterrupted || !errors.Is(err, context.Canceled) || tr.sink.story() != "" {
				t.Errorf("%s, %v: %s", ending, err, tr.sink.story())
			}
		})
	})
	t.Run("as the level is prepared", func(t *testing.T) {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.target.raise = func(time.Duration) error { return why }
			ending, err := tr.Run(context.Background(), whole(5))
			if ending != record.EndInterrupted || !errors.Is(err, why) || tr.sink.story() != "" || len(tr.target.sends) != 0 {
				t.Errorf("%s, %v: %s", ending, err, tr.sink.story())
			}
		})
	})
}

// In no stretch of time are more requests sent than the pace allows, but for
// what the lateness of a timer may be made up; and without a reason to lag the
// pace is reached.
func TestPace(t *testing.T) {
	for _, tt := range []struct {
		pace    float64
		service func(int) time.Duration
		why     string
		reached bool
	}{
		{20, constant(5 * time.Millisecond), "a cluster's own", true},
		{333, constant(2 * time.Millisecond), "gaps of no whole number of milliseconds", true},
		{2000, constant(100 * time.Microsecond), "gaps below the slack", true},
		{50, constant(300 * time.Millisecond), "the server is slower than the pace: what was missed is not made up", false},
		{50, func(i int) time.Duration {
			return []time.Duration{28 * time.Millisecond, time.Millisecond, time.Millisecond}[i%3]
		},
			"every third request is 8 ms late: no more than a timer may be, and made up", true},
	} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.options.Pace, tr.target.service = tt.pace, tt.service
			tr.options.MaxInFlight = 1
			if _, err := tr.Run(context.Background(), whole(400)); err != nil {
				t.Fatal(err)
			}
			starts := tr.target.starts
			for a := range starts {
				for b := a + 1; b < len(starts); b++ {
					stretch := (starts[b] - starts[a]).Seconds()
					if allowed := (stretch+paceSlack.Seconds())*tt.pace*1.001 + 1; float64(b-a) > allowed+1e-9 {
						t.Fatalf("%s: %d requests followed one within %v s, at a pace of %v/s", tt.why, b-a, stretch, tt.pace)
					}
				}
			}
			rate := float64(len(starts)-1) / (starts[len(starts)-1] - starts[0]).Seconds()
			if tt.reached && rate < 0.97*tt.pace {
				t.Errorf("%s: %.1f/s at a pace of %v/s", tt.why, rate, tt.pace)
			}
		})
	}
}

// What is meant for one moment counts from it, whatever sending took; a bulk counts
// from when it might go. Any other request counts from when it was sent.
func TestOneIntendedStart(t *testing.T) {
	bulks := func(f *fake, i int) bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.born) >= i/10*10
	}
	for _, tt := range []struct {
		why    string
		pace   float64
		atOnce bool
		due    func(f *fake, i int) bool
		starts int // that differ
	}{
		{"a storm", 0, true, nil, 1},
		{"a storm under a pace, which takes 2 s to send", 20, true, nil, 1},
		{"four bulks of 10", 0, true, bulks, 4},
		{"a density", 20, false, nil, 40},
	} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.options.Pace, tr.target.atOnce, tr.target.due = tt.pace, tt.atOnce, tt.due
			tr.target.fate = func(int) fate { return companion }
			if _, err := tr.Run(context.Background(), whole(40)); err != nil {
				t.Fatal(err)
			}
			starts := make(map[record.Micros]bool)
			var last record.Micros
			for _, s := range tr.sink.slots() {
				if !strings.HasPrefix(s.Slot, "before/") {
					starts[s.Intended] = true
				}
				if s.Intended > s.Sent && s.Sent > 0 || s.Intended < record.MicrosOf(time.Second) && s.Sent > 0 {
					t.Errorf("%s: meant for %d, sent at %d", tt.why, s.Intended, s.Sent)
				}
				last = max(last, s.Sent-s.Intended)
			}
			if len(starts) != tt.starts || tt.pace > 0 && tt.atOnce != (last > 1_900_000) {
				t.Errorf("%s: %d starts, want %d; the last was sent %d µs after its own", tt.why, len(starts), tt.starts, last)
			}
		})
	}
}

func TestInFlightIsBounded(t *testing.T) {
	for _, most := range []int{0, 1, 3, 40} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.Engine = New(tr.target, tr.sink, tr.target.clock, Options{MaxInFlight: most, Timeout: time.Minute}, &tr.step)
			if ending, err := tr.Run(context.Background(), whole(500)); ending != record.EndHeld || err != nil {
				t.Fatalf("%s, %v", ending, err)
			}
			// A server of any width serves all: the bound climbs to its end.
			if want := max(most, 1); tr.target.most > want || most < 10 && tr.target.most < want {
				t.Errorf("at most %d in flight were allowed, and %d were", most, tr.target.most)
			}
		})
	}
}

// Raising adds the difference; what was refused in an earlier step is still
// missing, and no reason to wait for the timeout.
func TestStepsUponSteps(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		tr.target.fate = func(i int) fate {
			if i == 3 {
				return refused
			}
			return arrives
		}
		raised := func(level float64) design.Next {
			return design.Next{StepPlan: record.StepPlan{Level: level, Purpose: record.PurposeSweep}}
		}
		for _, s := range []design.Next{whole(10), raised(20), raised(30)} {
			if ending, err := tr.Run(context.Background(), s); ending != record.EndStalled || err != nil {
				t.Errorf("level %g ended %s, %v", s.Level, ending, err)
			}
		}
		tr.target.fate = func(i int) fate {
			if i == 4 {
				return neverTells
			}
			return arrives
		}
		emptying := 0
		tr.options.Watch = func(s Status) {
			if s.Stage == StageEmptying && s.Step == 4 && s.Level == 5 {
				emptying++
			}
		}
		if ending, err := tr.Run(context.Background(), whole(5)); ending != record.EndTimeout || err != nil || emptying != 1 {
			t.Errorf("from empty, nothing was refused: %s, %v; emptying was told %d times", ending, err, emptying)
		}
		if err := tr.Empty(context.Background()); err != nil {
			t.Fatal(err)
		}
		tr.target.fate = func(int) fate { return arrives }
		if ending, err := tr.Run(context.Background(), whole(5)); ending != record.EndHeld || err != nil {
			t.Errorf("from empty, emptied already: %s, %v", ending, err)
		}
		if n := len(tr.sink.slots()); n != 40 {
			t.Errorf("%d requests for levels 10, 20, 30 and 5 anew, twice", n)
		}
		want := "raise 10, settle, account, raise 20, settle, account, raise 30, settle, account, reset, raise 5, settle, account, reset, raise 5, settle, account"
		if calls := strings.Join(tr.target.calls, ", "); calls != want {
			t.Errorf("calls: %s", calls)
		}
		if want := "1:start, 1:loaded, 1:end stalled, 2:start, 2:loaded, 2:end stalled, 3:start, 3:loaded, 3:end stalled, 3:reset, 4:start, 4:loaded, 4:end timeout, 4:reset, 5:start, 5:loaded, 5:reached, 5:end held"; tr.sink.story() != want {
			t.Errorf("story: %s", tr.sink.story())
		}
	})
}

// When the last news do not come, that is a fault until they have come: what
// became of the objects is unknown meanwhile.
func TestNewsThatDoNotCome(t *testing.T) {
	silent := func(after, before time.Duration) func(time.Duration) error {
		return func(now time.Duration) error {
			if now >= after && now < before {
				return errors.New("silence")
			}
			return nil
		}
	}
	for _, tt := range []struct {
		why    string
		settle func(time.Duration) error
		steps  []design.Next
		want   string
	}{
		{"they come late: the next step's wait heals", silent(0, 20*time.Second), []design.Next{whole(1), {StepPlan: record.StepPlan{Level: 2, FullHold: true}}},
			"1:start, 1:loaded, 1:reached, 1:blind, 1:end held, 2:start, 2:loaded, 2:reached, 2:healed, 2:end held"},
		{"an emptied target has no news that are missing", silent(0, 20*time.Second), []design.Next{whole(1), whole(1)},
			"1:start, 1:loaded, 1:reached, 1:blind, 1:end held, 1:reset, 1:healed, 2:start, 2:loaded, 2:reached, 2:end held"},
		{"they never come: one fault, not one for each step", silent(0, time.Hour), []design.Next{whole(1), {StepPlan: record.StepPlan{Level: 2, FullHold: true}}},
			"1:start, 1:loaded, 1:reached, 1:blind, 1:end held, 2:start, 2:loaded, 2:reached, 2:end held"},
	} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.target.settle = tt.settle
			for _, s := range tt.steps {
				if _, err := tr.Run(context.Background(), s); err != nil {
					t.Fatal(err)
				}
			}
			if got := tr.sink.story(); got != tt.want {
				t.Errorf("%s:\n got %s\nwant %s", tt.why, got, tt.want)
			}
		})
	}
}

func TestAnAccountThatFails(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		tr.target.account = func(time.Duration) error { return errors.New("no account") }
		if ending, err := tr.Run(context.Background(), whole(5)); ending != record.EndHeld || err != nil {
			t.Errorf("%s, %v", ending, err)
		}
		end := tr.sink.events[len(tr.sink.events)-1].Body.(*record.StepEvent)
		if tr.sink.story() != "1:start, 1:loaded, 1:reached, 1:note, 1:end held" || end.Least != 4 || end.Most != 5 {
			t.Errorf("%s; the end says %+v, want the spread from before the load", tr.sink.story(), end)
		}
	})
}

// The first guard in order whose measure has reached its bound trips.
func TestTripped(t *testing.T) {
	guards := []Guard{{Name: "nodesNotReady", Bound: 1}, {"memory", 5, true}, {"apiErrors", 5, true}}
	for _, tt := range []struct {
		why              string
		measures, normal map[string]float64
		seen             outcomes
		want             string
		value, bound     float64
	}{
		{why: "nothing is wrong", measures: map[string]float64{"nodesNotReady": 0, "memory": 4.9}, seen: outcomes{200, 8}},
		{why: "at the bound", measures: map[string]float64{"nodesNotReady": 1}, want: "nodesNotReady is 1, and the guard's bound is 1", value: 1, bound: 1},
		{why: "as many as before the load", measures: map[string]float64{"nodesNotReady": 3}, normal: map[string]float64{"nodesNotReady": 3}},
		{why: "one more than before", measures: map[string]float64{"nodesNotReady": 4}, normal: map[string]float64{"nodesNotReady": 3}, want: "nodesNotReady is 4, and the guard's bound is 1 more than the 3 before any load", value: 4, bound: 4},
		{why: "fewer than before", measures: map[string]float64{"nodesNotReady": 1}, normal: map[string]float64{"nodesNotReady": 3}},
		{why: "a percentage has its unit", measures: map[string]float64{"memory": 6}, want: "memory is 6%, and the guard's bound is 5%", value: 6, bound: 5},
		{why: "failed requests", seen: outcomes{200, 24}, want: "apiErrors is 12%, and the guard's bound is 5%: 24 of the latest 200 requests failed", value: 12, bound: 5},
		{why: "no one else measures failed requests", measures: map[string]float64{"apiErrors": 90}},
		{why: "the first in order is reported", measures: map[string]float64{"nodesNotReady": 9, "memory": 9}, want: "nodesNotReady is 9, and the guard's bound is 1", value: 9, bound: 1},
		{why: "an unknown measure trips nothing", measures: map[string]float64{}},
		{why: "a measure that is not a number trips nothing", measures: map[string]float64{"memory": math.NaN()}},
		{why: "a measure without a guard trips nothing", measures: map[string]float64{"pending": 1e9}},
	} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.options.Guards, tr.normal = guards, tt.normal
			tr.target.health = func(time.Duration) (map[string]float64, error) { return tt.measures, nil }
			r := &run{Engine: tr.Engine, errors: recentErrors{total: tt.seen}}
			g, ok := r.tripped(context.Background())
			if ok != (tt.want != "") || g.Message != tt.want || g.Value != tt.value || g.Bound != tt.bound {
				t.Errorf("%s: %v %+v, want %q", tt.why, ok, g, tt.want)
			}
		})
	}
}

// A health that cannot be read trips no guard but the one on failed requests.
func TestGuardsOfATargetOutOfReach(t *testing.T) {
	bubble(t, func(t *testing.T, tr *trial) {
		tr.options.Guards = []Guard{{Name: "nodesNotReady", Bound: 1}}
		tr.target.health = func(now time.Duration) (map[string]float64, error) {
			if now > 2*time.Second {
				return nil, errors.New("out of reach")
			}
			return map[string]float64{"nodesNotReady": 0}, nil
		}
		if ending, err := tr.Run(context.Background(), whole(5)); ending != record.EndHeld || err != nil {
			t.Errorf("%s, %v: %s", ending, err, tr.sink.story())
		}
	})
}

// How healthy the target is before any load is asked for again, through what passes.
func TestHealthIsAskedForAgain(t *testing.T) {
	for after, held := range map[time.Duration]bool{3 * time.Second: true, time.Hour: false} {
		bubble(t, func(t *testing.T, tr *trial) {
			tr.target.health = func(now time.Duration) (map[string]float64, error) {
				if now < after {
					return nil, errors.New("503")
				}
				return map[string]float64{"nodesNotReady": 0}, nil
			}
			if ending, err := tr.Run(context.Background(), whole(5)); (ending == record.EndHeld && err == nil) != held {
				t.Errorf("healthy after %v: %s, %v: %s", after, ending, err, tr.sink.story())
			}
		})
	}
}

func TestUnrest(t *testing.T) {
	for _, tt := range []struct {
		why           string
		value, normal float64
		name          string
		off           bool
	}{
		{"as before", 3, 3, "nodesNotReady", false},
		{"better than before", 2, 3, "nodesNotReady", false},
		{"one more", 4, 3, "nodesNotReady", true},
		{"a latency may be half as much again", 0.030, 0.020, system.MeasureLatency, false},
		{"and no more", 0.031, 0.020, system.MeasureLatency, true},
		{"or 5 ms more", 0.006, 0.001, system.MeasureLatency, false},
		{"and no more than that", 0.0061, 0.001, system.MeasureLatency, true},
	} {
		off := aboveNormal(map[string]float64{tt.name: tt.value, "other": 1}, map[string]float64{tt.name: tt.normal, "other": 1})
		if (len(off) > 0) != tt.off {
			t.Errorf("%s: %v", tt.why, off)
		}
	}
	if off := aboveNormal(map[string]float64{"b": 2, "a": 1}, nil); strings.Join(deviations(off), ", ") != "a is 1, it was 0, b is 2, it was 0" {
		t.Errorf("unrest of two measures: %v", off)
	}
}

// An emptied target is waited for until it is as before, for a minute at most.
func TestEmptyAwaitsCalm(t *testing.T) {
	for _, tt := range []struct {
		why     string
		measure string
		calmAt  time.Duration
		error   error
		waited  float64
		noted   bool
		healthy bool
	}{
		{"calm at once", "down", 0, nil, 0, false, true},
		{"calm after a while", "down", 10 * time.Second, nil, 10, false, true},
		{"never calm: that is on record, and no error", "down", time.Hour, nil, 60, true, false},
		{"slow for good: on record, but no danger", system.MeasureLatency, time.Hour, nil, 60, true, true},
		{"out of reach for good", "", time.Hour, errors.New("out of reach"), 60, true, false},
	} {
		bubble(t, func(t *testing.T, tr *trial) {
			if _, err := tr.Run(context.Background(), whole(5)); err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			tr.target.health = func(time.Duration) (map[string]float64, error) {
				if time.Since(begin) < tt.calmAt {
					return map[string]float64{tt.measure: 1}, tt.error
				}
				return map[string]float64{tt.measure: 0}, nil
			}
			if err := tr.Empty(context.Background()); err != nil {
				t.Errorf("%s: %v", tt.why, err)
			}
			if waited := math.Floor(time.Since(begin).Seconds()); waited != tt.waited {
				t.Errorf("%s: waited %v s, want %v s", tt.why, waited, tt.waited)
			}
			if noted := strings.HasSuffix(tr.sink.story(), ", 1:note"); noted != tt.noted {
				t.Errorf("%s: %s", tt.why, tr.sink.story())
			}
			begin = time.Now()
			if err := tr.Recover(context.Background()); (err == nil) != tt.healthy {
				t.Errorf("%s: recovered with %v", tt.why, err)
			}
		})
	}
}

func TestPaceOnRecord(t *testing.T) {
	for pace, want := range map[float64]string{0: "max", 20: "20/s", 0.5: "0.5/s"} {
		e := New(nil, nil, nil, Options{Pace: pace}, nil)
		if got := e.pace(); got != want {
			t.Errorf("a pace of %v is written %q, want %q", pace, got, want)
		}
	}
}
