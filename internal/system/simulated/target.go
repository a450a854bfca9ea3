package simulated

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/dist"
)

// Plan says what is planted.
type Plan struct {
	Places int // what a level is an average over, at least 1
	Limit  int // bounds the objects per place: further ones find none. 0 is no limit
	// SoftAt and SoftWidth plant a soft limit: at level SoftAt half of all fills fail, by a logistic
	// curve of that width. A failed fill leaves one object per hundred not ready. Width 0 plants none.
	SoftAt, SoftWidth float64
	Flaky             float64   // probability that one object of a fill is never ready, whatever the level
	Latency           dist.Dist // from an object's creation until it is there
	// Rate bounds the objects that find their place each second; more wait in line. 0 is any number.
	Rate    float64
	Life    time.Duration // of an object of an open axis once it is ready; 0 is half a minute
	Servers int           // requests are served at once, each for Service; more wait
	Service time.Duration
	// FailEvery makes every n-th request fail, ThrottleEvery every n-th answer a 429 first. 0 is never.
	FailEvery, ThrottleEvery int
	LoseAfter                int // objects, which cut the watch for good; 0 is never
	UnhealthyAt              int // objects, from which on placesNotReady is one more; 0 is never
	// TakeAt objects take the last place: Take says how, and TakeFor how long. 0 is never, and for good.
	TakeAt  int
	Take    string
	TakeFor time.Duration
	Removal time.Duration // of the objects at the end of a run
	CPU     float64       // seconds that an object costs once
	Memory  float64       // bytes that it costs while it is in place
	// Stream says that a level is a stream of requests: Latency is the server's time, of which it begins
	// Rate a second. Connect is the time to reach it; for Pause it stands still in the middle of each
	// hold; Generator bounds the requests that the generator can send, 0 for any number.
	Stream         bool
	Connect        dist.Dist
	Pause          time.Duration
	RandomArrivals bool // of an open loop; else they are evenly spread
	Generator      float64
}

const failedOf = 100 // objects of a fill that fails, of which one is never ready

// Names of the milestones of objects, and of what is said of them.
const (
	created = "Created"
	placed  = "Placed"
	ready   = "Ready"
	removed = "Deleted"

	unplaced       = "Unschedulable"
	full           = "the places are full"
	plantedFailure = "PlantedFailure"

	placesNotReady = "placesNotReady"

	takeClose, takeBreak, takeRestart = "close", "break", "restart"
)

// Target is a planted target.
type Target struct {
	plan  Plan
	arms  map[string]Plan // by the arm that a level names; nil for none
	rng   *rand.Rand
	sink  record.Sink
	clock *record.Clock
	step  func() int

	servers chan struct{}

	mu       sync.Mutex
	objects  int // asked for since empty
	placed   int
	sent     int     // of all time
	cpu      float64 // seconds that the objects of all time have cost
	progress system.Progress
	declared int  // places that it told of
	taken    bool // the last of them is
	tookOne  bool // it was, once
	back     *time.Timer
	bad      bool // this fill fails
	badAt    int  // which object of each hundred is never ready then
	badOne   int  // this object of the fill is never ready, -1 for none
	timers   []*time.Timer
	blind    bool
	open     bool            // objects age
	nextFree record.Micros   // when the next object can find its place
	living   map[string]bool // not removed
	waiting  map[string]bool // not there
}

// New makes a target. Step tells the step that is being made.
func New(plan Plan, rng *rand.Rand, sink record.Sink, clock *record.Clock, step func() int) *Target {
	return &Target{
		plan: plan, rng: rng, sink: sink, clock: clock, step: step,
		servers: make(chan struct{}, max(plan.Servers, 1)), badOne: -1, waiting: make(map[string]bool), living: make(map[string]bool),
	}
}

func naming() record.TargetNaming { return record.TargetNaming{Kind: "simulated", Name: "simulated"} }

// Describe implements system.Target.
func (t *Target) Describe(context.Context) (record.Environment, error) {
	return record.Environment{
		Start:    t.clock.Start(),
		Target:   naming(),
		Fidelity: record.Fidelity{ControlPlane: record.Simulated, Nodes: record.Simulated, Containers: record.Simulated, Guests: record.None, Notes: []string{}},
	}, nil
}

func (t *Target) emit(body record.Body) {
	if !t.blind {
		t.sink.Append(record.Event{T: t.clock.Now(), Step: t.step(), Body: body})
	}
}

// Raise implements system.Target.
func (t *Target) Raise(_ context.Context, asked system.Level) (system.Batch, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if arm, ok := t.arms[asked.Arm]; ok && t.objects == 0 {
		t.plan, t.servers = arm, make(chan struct{}, max(arm.Servers, 1))
	}
	level := asked.Value
	if t.plan.Stream {
		t.progress = system.Progress{}
		return system.Batch{Reached: level, Stream: t.stream}, nil
	}
	if t.declared != t.plan.Places {
		set := make([]string, t.plan.Places)
		for i := range set {
			set[i] = placeName(i)
		}
		t.declared = len(set)
		t.emit(&record.Place{Set: set})
	}
	want := int(math.Floor(level*float64(t.places()) + 1e-9))
	reached := float64(want) / float64(t.places())
	if t.open = asked.Span > 0; t.open {
		want, reached = t.objects+int(math.Ceil(level*asked.Span.Seconds()-1e-9)), level
	}
	first, n := t.objects, want-t.objects
	if n < 0 {
		return system.Batch{}, fmt.Errorf("level %g is below what is in place", level)
	}
	t.objects = want
	// Whether this fill fails is drawn as the level is approached.
	if t.plan.SoftWidth > 0 {
		p := 1 / (1 + math.Exp(-(level-t.plan.SoftAt)/t.plan.SoftWidth))
		if bad := t.rng.Float64() < p; bad && !t.bad && n > 0 {
			t.bad, t.badAt = true, (first+t.rng.IntN(min(n, failedOf)))%failedOf
		}
	}
	if t.badOne < 0 && n > 0 && t.rng.Float64() < t.plan.Flaky {
		t.badOne = first + t.rng.IntN(n)
	}
	return system.Batch{
		Requests: n, Units: n, Reached: reached, Spread: t.spread(),
		Send: func(ctx context.Context, i int) record.Slot { return t.create(ctx, first+i) },
	}, nil
}

func (t *Target) spread() system.Spread {
	if t.plan.Stream {
		return system.Spread{} // a stream is at no place
	}
	n := float64(t.places())
	return system.Spread{Places: t.places(), Least: math.Floor(float64(t.placed) / n), Most: math.Ceil(float64(t.placed) / n)}
}

// places counts those that take objects.
func (t *Target) places() int {
	if t.taken && t.plan.Take != takeRestart && t.plan.Places > 1 {
		return t.plan.Places - 1
	}
	return t.plan.Places
}

func placeName(i int) string { return fmt.Sprintf("place-%d", i) }

// take takes the last place, and gives it back after its time; the lock is held.
func (t *Target) take() {
	if t.plan.TakeAt == 0 || t.placed < t.plan.TakeAt || t.tookOne {
		return
	}
	place := record.Place{Place: placeName(t.plan.Places - 1), State: record.PlaceGone, What: "was deleted"}
	switch t.plan.Take {
	case takeClose:
		place.State, place.What = record.PlaceClosed, "was closed"
	case takeBreak:
		place.State, place.What = record.PlaceNotReady, "is not ready"
	case takeRestart:
		place.State, place.What, place.Meant = record.PlaceNotReady, "is restarted", true
	}
	t.taken, t.tookOne = true, true
	t.emit(&place)
	if t.plan.TakeFor > 0 {
		t.back = time.AfterFunc(t.plan.TakeFor, func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.taken = false
			t.emit(&record.Place{Place: place.Place, State: record.PlaceThere, What: "is there again"})
		})
	}
}

func name(i int) string { return fmt.Sprintf("sim/object-%d", i) }

func (t *Target) create(_ context.Context, i int) record.Slot {
	t.servers <- struct{}{}
	time.Sleep(t.plan.Service)
	<-t.servers

	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent++
	slot := record.Slot{Slot: name(i), Component: "object", Units: 1, Iteration: i, Outcome: record.SlotCreated, Code: 201}
	if every := t.plan.ThrottleEvery; every > 0 && t.sent%every == 0 {
		slot.Throttled, slot.Retries = 1, 1
	}
	if every := t.plan.FailEvery; every > 0 && t.sent%every == 0 {
		slot.Outcome, slot.Code, slot.Error = record.SlotFailed, 500, "planted failure"
		return slot
	}
	t.created(i)
	return slot
}

// created makes an object and plans its way; the lock is held.
func (t *Target) created(i int) {
	if t.plan.LoseAfter > 0 && t.sent > t.plan.LoseAfter && !t.blind {
		t.emit(&record.Fault{What: "watch cut", From: t.clock.Now()})
		t.blind = true
	}
	object := name(i)
	t.waiting[object], t.living[object] = true, true
	t.cpu += t.plan.CPU
	t.progress.Moved = t.clock.Now()
	t.emit(&record.Object{Object: object, Milestone: created, Component: "object"})
	t.take()
	if t.plan.Limit > 0 && t.placed >= t.plan.Limit*t.places() {
		t.progress.Unschedulable++
		t.emit(&record.State{Object: object, Reason: unplaced, Message: full})
		return
	}
	place := placeName(t.placed % t.places())
	t.placed++
	delay := t.plan.Latency.At(t.rng.Float64())
	if t.plan.Rate <= 0 {
		t.land(i, place, delay)
		return
	}
	now := t.clock.Now()
	t.nextFree = max(t.nextFree, now) + record.Micros(1e6/t.plan.Rate)
	t.after((t.nextFree - now).Duration(), object, func() { t.land(i, place, delay) })
}

// after calls f, with the lock held, unless the object is removed before.
func (t *Target) after(d time.Duration, object string, f func()) {
	t.timers = append(t.timers, time.AfterFunc(d, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.living[object] {
			f()
		}
	}))
}

// land gives an object its place; the lock is held.
func (t *Target) land(i int, place string, delay time.Duration) {
	object := name(i)
	t.emit(&record.Object{Object: object, Milestone: placed, Place: place})
	if i == t.badOne || t.bad && i%failedOf == t.badAt {
		t.progress.Failed++
		t.emit(&record.State{Object: object, Reason: plantedFailure, Message: "planted: this object is never ready", Failed: true})
		return
	}
	t.after(delay, object, func() {
		delete(t.waiting, object)
		t.progress.Moved = t.clock.Now()
		if !t.blind {
			t.progress.There++
			t.progress.Arrived++
		}
		t.emit(&record.Object{Object: object, Milestone: ready})
		if !t.open {
			return
		}
		t.after(cmp.Or(t.plan.Life, 30*time.Second), object, func() {
			delete(t.living, object)
			t.placed--
			t.progress.There--
			t.emit(&record.Object{Object: object, Milestone: removed})
		})
	})
}

// Progress implements system.Target.
func (t *Target) Progress() system.Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.progress
	p.Left = len(t.living)
	return p
}

// Settle implements system.Target.
func (t *Target) Settle(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blind {
		return errors.New("the watch is cut")
	}
	return nil
}

// Account implements system.Target.
func (t *Target) Account(context.Context) (system.Spread, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spread(), nil
}

// Reset implements system.Target.
func (t *Target) Reset(context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, timer := range t.timers {
		timer.Stop()
	}
	for i := range t.objects {
		if t.living[name(i)] {
			t.emit(&record.Object{Object: name(i), Milestone: removed})
		}
	}
	t.timers, t.objects, t.placed, t.bad, t.badOne, t.nextFree = nil, 0, 0, false, -1, 0
	t.progress = system.Progress{}
	clear(t.waiting)
	clear(t.living)
	return nil
}

// Health implements system.Target.
func (t *Target) Health(context.Context) (map[string]float64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	measures := map[string]float64{placesNotReady: 0}
	if t.plan.UnhealthyAt > 0 && t.placed >= t.plan.UnhealthyAt {
		measures[placesNotReady] = 1
	}
	if t.taken && t.plan.Take == takeBreak {
		measures[placesNotReady]++
	}
	return measures, nil
}

// Close implements system.Instance.
func (t *Target) Close(ctx context.Context) error {
	t.mu.Lock()
	if t.back != nil {
		t.back.Stop()
	}
	t.mu.Unlock()
	select {
	case <-time.After(t.plan.Removal):
	case <-ctx.Done():
		return fmt.Errorf("%d objects are still there: %w", t.Progress().Left, context.Cause(ctx))
	}
	return t.Reset(ctx)
}
