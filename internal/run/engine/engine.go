package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Engine makes steps on one target.
type Engine struct {
	target  system.Target
	sink    record.Sink
	clock   *record.Clock
	options Options

	step        *atomic.Int64 // the last one begun
	loaded      bool
	units       int                // requested since the target was last empty
	refused     int                // of units: with a failed request, they will never be there
	normal      map[string]float64 // measures of health before any load
	unsettled   bool               // the news may lack its end since unsettledAt
	unsettledAt record.Micros
}

// New makes an Engine, which keeps the number of the step in progress in step.
func New(target system.Target, sink record.Sink, clock *record.Clock, options Options, step *atomic.Int64) *Engine {
	options.MaxInFlight = max(options.MaxInFlight, 1)
	return &Engine{target: target, sink: sink, clock: clock, options: options, step: step}
}

func (e *Engine) current() int { return int(e.step.Load()) }

var errGuard = errors.New("a guard tripped") // ends a step's context when a guard has tripped

// silentError ends a step's context when the actor that its objects wait for does nothing.
type silentError struct {
	what       string
	outOfReach bool
}

func (e *silentError) Error() string { return e.what }

// OutOfReach says that requests in flight will not be answered; see system.Outlive.
func (e *silentError) OutOfReach() bool { return e.outOfReach }

// Run makes one step and returns how it ended. An error means that the target or the record failed in a
// way that leaves no step to judge; the step is then on record as interrupted, if it had begun.
func (e *Engine) Run(ctx context.Context, s design.Next) (record.Ending, error) {
	if (s.FromEmpty || e.options.Open || e.options.Whole) && e.loaded {
		e.reportStatus(Status{Step: e.current() + 1, Stage: StageEmptying, StepPlan: s.StepPlan})
		if err := e.Empty(ctx); err != nil {
			return record.EndInterrupted, err
		}
	}
	s.FromEmpty = !e.loaded // a guard's abort empties the target, whatever the design says
	if e.normal == nil {
		normal, err := e.health(ctx)
		if err != nil {
			return record.EndInterrupted, fmt.Errorf("read the target's health before any load: %w", err)
		}
		e.normal = normal
	}
	e.step.Add(1)
	r := &run{Engine: e, Next: s}
	load, err := e.target.Raise(ctx, r.level())
	if err != nil {
		return record.EndInterrupted, fmt.Errorf("raise to %g: %w", s.Level, err)
	}
	e.loaded = !load.Streams() // of a stream nothing stays in place
	e.units += load.Units
	r.load = load
	e.emit(&record.StepEvent{
		Phase: record.PhaseStart, StepPlan: s.StepPlan, Reached: load.Reached, Timeout: record.MicrosOf(e.options.Timeout),
		Hold: record.MicrosOf(r.hold()), Pace: e.pace(), Units: load.Units, Open: e.options.Open,
		Places: load.Spread.Places, Others: load.Spread.Others,
	})
	ending, message := r.execute(ctx)
	err = r.finish(ctx, ending, message)
	if err == nil && r.unanswered {
		err = &OutOfReachError{message}
	}
	return ending, err
}

// OutOfReachError ends a run whose target answers nothing, after its last step is on record and judged.
type OutOfReachError struct{ What string }

func (e *OutOfReachError) Error() string { return e.What }

type run struct {
	*Engine
	design.Next
	load   system.Batch
	errors recentErrors
	status Status
	failed error         // why the load could not be made
	held   chan struct{} // closed once the work after the hold is done, nil before

	unanswered bool // the target answers nothing: the step hardly waits for its last news
}

func (e *Engine) emit(body record.Body) {
	e.sink.Append(record.Event{T: e.clock.Now(), Step: e.current(), Body: body})
}

func (e *Engine) reportStatus(s Status) {
	if e.options.Watch != nil {
		e.options.Watch(s)
	}
}

func (e *Engine) pace() string {
	switch {
	case e.options.Open:
		return ""
	case e.options.Pace <= 0:
		return "max"
	}
	return fmt.Sprintf("%g/s", e.options.Pace)
}

func (r *run) hold() time.Duration {
	if r.FullHold {
		return cmp.Or(max(r.Hold, 0), r.options.Hold)
	}
	return cmp.Or(max(r.Hold, 0), r.options.ShortHold)
}

func (r *run) level() system.Level {
	l := system.Level{Value: r.Level, Arm: r.Arm}
	if r.options.Open {
		l.Span = r.options.Warmup + r.hold()
	}
	return l
}

func (r *run) execute(ctx context.Context) (record.Ending, string) {
	guarded, trip := context.WithCancelCause(ctx)
	defer trip(nil)
	stop := r.guard(guarded, trip)
	r.sample()
	ending := r.runStages(guarded)
	if guarded.Err() == nil {
		r.over(ctx)
	}
	if r.held != nil {
		<-r.held
	}
	stop()
	// A guard that trips in the step's last moment ends it as well.
	cause := context.Cause(guarded)
	if errors.Is(cause, errGuard) {
		return record.EndGuard, cause.Error()
	}
	if silent, ok := errors.AsType[*silentError](cause); ok && ending == record.EndInterrupted {
		r.unanswered = silent.outOfReach
		return record.EndStalled, silent.Error()
	}
	if ending == record.EndInterrupted || ending == record.EndUnfinished || ending == record.EndVoid {
		return ending, cmp.Or(r.failed, context.Cause(guarded)).Error()
	}
	return ending, ""
}

func (r *run) runStages(ctx context.Context) record.Ending {
	if r.load.Streams() {
		return r.stagesStream(ctx)
	}
	if r.options.Open {
		return r.stagesOpen(ctx)
	}
	if r.raise(ctx) != nil {
		return record.EndInterrupted
	}
	r.emit(&record.StepEvent{Phase: record.PhaseLoaded})
	if ending := r.await(ctx); ending != record.EndHeld {
		return ending
	}
	r.emit(&record.StepEvent{Phase: record.PhaseReached})
	if r.holdOn(ctx) != nil {
		return record.EndInterrupted
	}
	r.over(ctx)
	return record.EndHeld
}

// over reports the end of the hold, while the step waits for the rest.
func (r *run) over(ctx context.Context) {
	if r.options.Held == nil || r.held != nil {
		return
	}
	r.held = make(chan struct{})
	go func() {
		defer close(r.held)
		r.options.Held(ctx)
	}()
}

// finish waits for the last news within a bound, even of a cut step, and closes its record.
func (r *run) finish(ctx context.Context, ending record.Ending, message string) error {
	r.sample()
	rest, end := system.Outlive(ctx)
	defer end()
	r.settle(rest)
	spread, err := r.account(rest)
	if err != nil {
		r.emit(&record.Note{Warning: record.WarningNotKnown, About: r.current(), Text: fmt.Sprintf("why objects were not ready is unknown: %v", err)})
		spread = r.load.Spread
	}
	r.emit(&record.StepEvent{
		Phase: record.PhaseEnd, Ending: ending, Message: message,
		Places: spread.Places, Others: spread.Others, Least: spread.Least, Most: spread.Most,
	})
	if ending == record.EndInterrupted {
		return cmp.Or(r.failed, context.Cause(ctx))
	}
	return nil
}

// settle waits for what the target has published until now. A failure is a fault until one succeeds.
func (r *run) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, r.settleBound())
	defer cancel()
	err := r.target.Settle(ctx)
	if err == nil {
		r.settled()
	} else if !r.unsettled {
		r.unsettled, r.unsettledAt = true, r.clock.Now()
		r.emit(&record.Fault{What: lastNews, From: r.unsettledAt, Message: err.Error()})
	}
}

func (e *Engine) settled() {
	if !e.unsettled {
		return
	}
	e.unsettled = false
	e.emit(&record.Fault{What: lastNews, From: e.unsettledAt, To: e.clock.Now(), Healed: true})
}

const lastNews = "last news missing"

func (r *run) account(ctx context.Context) (system.Spread, error) {
	ctx, cancel := context.WithTimeout(ctx, r.settleBound())
	defer cancel()
	return r.target.Account(ctx)
}

func (r *run) settleBound() time.Duration {
	if r.unanswered {
		return unansweredBound
	}
	return settleBound
}

const (
	settleBound     = 15 * time.Second
	unansweredBound = time.Second
)

func (r *run) countOutcome(slot *record.Slot) {
	r.status.Replied++
	for s := slot; s != nil; s = s.Before {
		r.count(s)
	}
}

func (r *run) count(slot *record.Slot) {
	r.status.Unasked -= slot.Units
	failed := slot.Outcome == record.SlotFailed || slot.Outcome == record.SlotUnknown
	if !slot.Shared {
		r.errors.add(failed)
	}
	if failed {
		r.refused += slot.Units
	}
	r.sink.Append(record.Event{T: slot.Replied, Step: r.current(), Body: slot})
}

const statusInterval = 100 * time.Millisecond // between two reports of a step's status

// await returns once every object is there (EndHeld), or once some certainly never will be.
func (r *run) await(ctx context.Context) record.Ending {
	r.status.Stage = StageWaiting
	deadline := r.clock.Now() + record.MicrosOf(r.options.Timeout)
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for n := 0; ; n++ {
		p := r.target.Progress()
		now := r.clock.Now()
		missing := r.units - p.There
		if r.options.Open {
			missing = r.units - p.Arrived
		}
		switch {
		case missing <= 0:
			return record.EndHeld
		case now >= deadline:
			return record.EndTimeout
		case p.Final > 0 && p.Final+r.refused >= missing:
			return record.EndStalled // nothing can come
		case p.Unschedulable+p.Failed+r.refused >= missing && now-p.Moved >= record.MicrosOf(cmp.Or(r.options.Stall, stallAfter)):
			return record.EndStalled
		}
		if n%4 == 0 {
			r.report(0, 0, (deadline - now).Duration())
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return record.EndInterrupted
		}
	}
}

const pollInterval = 25 * time.Millisecond // lies between two looks at the progress; milestones have times of their own

func (r *run) holdOn(ctx context.Context) error {
	r.status.Stage = StageHolding
	end := r.clock.Now() + record.MicrosOf(r.hold())
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	for {
		left := (end - r.clock.Now()).Duration()
		if left <= 0 {
			return nil
		}
		r.report(0, 0, left)
		select {
		case <-tick.C:
		case <-time.After(left):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (r *run) sample() {
	if r.options.Sample != nil {
		r.options.Sample()
	}
}

func (r *run) report(inFlight, bound int, left time.Duration) {
	r.status.InFlight, r.status.Bound, r.status.Left = inFlight, bound, left
	r.status.Units, r.status.Progress = r.units, r.target.Progress()
	r.reportStatus(r.status)
}

// guard ends the step when a guard trips, or an actor does nothing, until the returned func is called.
func (r *run) guard(ctx context.Context, trip context.CancelCauseFunc) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	r.lookAtErrors() // the sums of an earlier stream do not count here
	go func() {
		defer close(done)
		interval := longestWindow
		if r.load.Streams() {
			interval = r.window()
		}
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if p := r.target.Progress(); p.Silent != "" {
				trip(&silentError{p.Silent, p.OutOfReach})
				return
			}
			g, ok := r.tripped(ctx)
			if ctx.Err() != nil {
				return
			}
			if ok {
				r.emit(&g)
				trip(fmt.Errorf("%w: %s", errGuard, g.Message))
				return
			}
		}
	}()
	return func() { cancel(); <-done }
}

// lookAtErrors returns the outcomes of the requests since the last look, and of the latest ones.
func (r *run) lookAtErrors() (latest, recent outcomes) {
	if !r.load.Streams() {
		return r.errors.look(nil)
	}
	p := r.target.Progress()
	return r.errors.look(&outcomes{ended: p.Arrived + p.Failed, failed: p.Failed})
}

func (r *run) tripped(ctx context.Context) (record.Guard, bool) {
	if r.options.Trips != nil {
		if g, ok := r.options.Trips(ctx); ok {
			return g, true
		}
	}
	if len(r.options.Guards) == 0 {
		return record.Guard{}, false
	}
	measures, err := r.target.Health(ctx)
	if err != nil {
		measures = nil
	}
	latest, recent := r.lookAtErrors()
	for _, g := range r.options.Guards {
		if g.Name == record.MeasureRequestErrors {
			for _, seen := range []outcomes{latest, recent} {
				if seen.exceed(g.Bound) {
					return g.at(seen.percent(), 0, ": "+seen.String()), true
				}
			}
			continue
		}
		value, ok := measures[g.Name]
		was := r.normal[g.Name]
		if !ok || !(value-was >= g.Bound) { // nor does NaN
			continue
		}
		return g.at(value, was, ""), true
	}
	return record.Guard{}, false
}

// at returns the record of a tripped guard. A measure counts from its value before any load.
func (g Guard) at(value, was float64, because string) record.Guard {
	unit := ""
	if g.Percent {
		unit = "%"
	}
	message := fmt.Sprintf("%s is %s%s, and the guard's bound is %s%s", g.Name, number.Text(value, 4), unit, number.Text(g.Bound, 4), unit)
	if was != 0 {
		message += fmt.Sprintf(" more than the %s%s before any load", number.Text(was, 4), unit)
	}
	return record.Guard{Name: g.Name, Value: value, Bound: was + g.Bound, Message: message + because}
}

// Empty removes all objects and waits until the target is as before any load, or records that it is not.
func (e *Engine) Empty(ctx context.Context) error {
	off, err := e.empty(ctx)
	if len(off) > 0 {
		e.emit(&record.Note{Warning: record.WarningNotNormal, About: e.current() + 1, Text: "the step began although the target was not back to normal: " + strings.Join(deviations(off), ", ")})
	}
	return err
}

// ErrNotHealthy ends a run whose target did not recover after a guard stopped the load.
var ErrNotHealthy = errors.New("a guard stopped the load, and the target is not back to normal")

// Recover empties a target that a guard protected. It returns ErrNotHealthy unless the target is then as
// it was before any load, by the measures that are counts. Slower answers alone are not a danger.
func (e *Engine) Recover(ctx context.Context) error {
	off, err := e.empty(ctx)
	if err != nil {
		return err
	}
	off = slices.DeleteFunc(off, func(d deviation) bool { return d.measure == system.MeasureLatency })
	if len(off) > 0 {
		return fmt.Errorf("%w %v later: %s", ErrNotHealthy, healthyBound, strings.Join(deviations(off), ", "))
	}
	return nil
}

// empty removes all objects and waits for healthyBound at most. It returns the measures above normal.
func (e *Engine) empty(ctx context.Context) ([]deviation, error) {
	e.emit(&record.StepEvent{Phase: record.PhaseReset})
	if err := e.target.Reset(ctx); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, fmt.Errorf("%w while the run emptied the target", cause)
		}
		return nil, fmt.Errorf("the target could not be emptied: %w", err)
	}
	e.loaded, e.units, e.refused = false, 0, 0
	e.settled()
	deadline := e.clock.Now() + record.MicrosOf(healthyBound)
	for {
		measures, err := e.target.Health(ctx)
		off := aboveNormal(measures, e.normal)
		if err != nil {
			off = []deviation{{text: err.Error()}}
		}
		if len(off) == 0 || e.clock.Now() >= deadline {
			return off, nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

const (
	healthyBound   = time.Minute      // until a target is as it was before any load
	healthPatience = 10 * time.Second // until the measures of health must be there
)

// health returns the measures of health. It asks again after errors, which may pass.
func (e *Engine) health(ctx context.Context) (map[string]float64, error) {
	patient, cancel := context.WithTimeout(ctx, healthPatience)
	defer cancel()
	for {
		measures, err := e.target.Health(ctx)
		if err == nil || patient.Err() != nil {
			return measures, err
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-patient.Done():
		}
	}
}

// deviation is a measure that is not back to normal, or "" where they are unknown, in words.
type deviation struct{ measure, text string }

func deviations(list []deviation) []string {
	texts := make([]string, len(list))
	for i, d := range list {
		texts[i] = d.text
	}
	return texts
}

// aboveNormal lists the measures above normal: latencies by more than half, and by more than 5 ms.
func aboveNormal(measures, normal map[string]float64) []deviation {
	var off []deviation
	for _, name := range slices.Sorted(maps.Keys(measures)) {
		value, was := measures[name], normal[name]
		slack := 0.0
		if name == system.MeasureLatency {
			slack = math.Max(was/2, 0.005)
		}
		if value > was+slack {
			off = append(off, deviation{name, fmt.Sprintf("%s is %s, it was %s", name, number.Text(value, 4), number.Text(was, 4))})
		}
	}
	return off
}
