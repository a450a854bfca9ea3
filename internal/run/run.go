package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Experiment holds a decided run.
type Experiment struct {
	Spec    result.Spec
	Design  design.Design
	Options engine.Options
	Budget  time.Duration // cuts the run; 0 is no bound
	Steps   int           // of this part of the run, which then pauses; 0 is no bound
	Plan    string        // its fingerprint, equal in all parts of a run; "" is unknown
	Secrets *redact.Secrets

	Readings  func() []record.Reading                           // the use of resources by the processes of the run, may be nil
	Endpoints func(context.Context) ([]metrics.Endpoint, error) // to scrape, nil for none
	Scrape    metrics.Options
	Guards    []slo.SLO // queries that end a step once they do not hold
}

const readingInterval = time.Second // lies between two readings of resources, besides those about each load

// Observer follows the progress of a run. Its methods must not block.
type Observer interface {
	// Status is called several times a second; live sums up latencies, too slowly to be called as often.
	Status(status engine.Status, live func() fold.Live)
	// Stepped is called after each step with its judgement.
	Stepped(result.Step)
	// Event is called with every event, in order, with the record locked: it must not record anything.
	Event(record.Event)
	// Chose is called before each step with the chosen one, and all that may be left by design.Ahead.
	Chose(next design.Next, ahead [][]design.Next)
}

// ErrBudget ends a run whose budget is spent.
var ErrBudget = errors.New(record.BudgetSpent)

// Run makes the experiment on the target that open makes, with its record in dir, also of a cut run.
func Run(soft, hard context.Context, dir record.Dir, id string, x Experiment, now func() time.Time, observer Observer,
	open opener) error {
	p, err := begin(dir, id, x, now, observer)
	if err != nil {
		return err
	}
	err = p.load(soft, open)
	p.left()
	return p.close(soft, hard, err)
}

func begin(dir record.Dir, id string, x Experiment, now func() time.Time, observer Observer) (*part, error) {
	clock := record.StartClock(now)
	x.Spec.Start = clock.Start()
	p := &part{
		x: x, dir: dir, clock: clock, observer: observer,
		live: &liveJudge{builder: judge.NewBuilder(x.Spec), design: x.Design},
	}
	return p, p.write(record.NewWriter,
		record.Event{T: clock.Now(), Body: &record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion, Framed: true, ID: id, Plan: x.Plan}})
}

// part is one part of a run: all of it, unless it is cut and resumed. It is loaded, judged and closed.
type part struct {
	x           Experiment
	dir         record.Dir
	clock       *record.Clock
	live        *liveJudge
	observer    Observer
	step        atomic.Int64        // the last one begun
	environment *record.Environment // of the part before, nil for none
	changed     bool                // the file of environment was changed since
	questions   *questions          // nil for none

	writer   *record.Writer
	recorder system.Recorder
	instance system.Instance // nil before it is open
	end      record.RunEvent
	stop     context.CancelCauseFunc // stops watching the target
}

// write begins to write the part's record, with first at its head.
func (p *part) write(history func(record.Dir, *redact.Secrets, func(record.Event)) (*record.Writer, error), first ...record.Event) (err error) {
	if p.questions, err = newQuestions(&p.x, p.clock); err != nil {
		return err
	}
	p.writer, err = history(p.dir, p.x.Secrets, func(e record.Event) {
		p.live.add(e)
		p.questions.event(e)
		p.observer.Event(e)
	})
	if err != nil {
		return err
	}
	for _, e := range first {
		p.writer.Append(e)
	}
	return nil
}

func (p *part) load(soft context.Context, open opener) error {
	ctx, fail := context.WithCancelCause(soft)
	p.stop = fail
	p.recorder = system.Recorder{Sink: p.writer, Clock: p.clock, Step: func() int { return int(p.step.Load()) }, Fail: fail, Dir: p.dir}
	go func() {
		select {
		case <-p.writer.Failed():
			fail(p.writer.Err())
		case <-ctx.Done():
		}
	}()
	p.putFile(p.recorder, record.ExperimentFile)
	p.writer.Flush() // a resumed run finds leftovers by the names on record

	instance, err := open(ctx, p.recorder)
	if p.instance = instance; err == nil {
		err = p.makeSteps(ctx, instance, p.recorder)
	}
	p.end.Phase = record.PhaseEnd
	switch {
	case err != nil:
		p.end.Message, p.end.Signal = err.Error(), signalOf(soft)
	case instance != nil:
		p.end.Paused = !p.live.next().Done
	}
	told := p.end
	p.recorder.Emit(&told)
	p.live.drop()
	return err
}

// left records how many objects are in the target; with any the run is judged before their removal.
func (p *part) left() bool {
	if p.instance == nil || p.instance.Progress().Left == 0 {
		return false
	}
	p.recorder.Emit(&record.Cleanup{Left: p.instance.Progress().Left})
	p.writer.Flush()
	return p.writer.Err() == nil
}

// close empties the target and ends the record. It returns how the part ended; err is how the load did.
func (p *part) close(soft, hard context.Context, err error) error {
	defer p.stop(nil)
	p.live.removing.Store(true)
	if p.instance != nil {
		err = errors.Join(err, p.clean(hard, err))
	}
	if p.end.Signal != signalOf(soft) { // it came while the target was emptied
		p.end.Signal = signalOf(soft)
		p.recorder.Emit(&p.end)
	}
	if closing := p.writer.Close(); !errors.Is(err, closing) { // an error that ended the run is not repeated
		err = errors.Join(err, closing)
	}
	return err
}

// signalOf returns the exit code of the signal that ended ctx, 0 for none.
func signalOf(ctx context.Context) int {
	if signal := system.SignalOf(ctx); signal != nil {
		return signal.ExitCode()
	}
	return 0
}

func (p *part) amend(r *result.Result) error {
	for _, body := range p.live.removal {
		judge.Amend(r, body)
	}
	return p.dir.WriteResult(r, p.x.Secrets)
}

func (p *part) clean(hard context.Context, runErr error) error {
	if _, is := errors.AsType[*engine.OutOfReachError](runErr); is {
		var cancel context.CancelFunc
		hard, cancel = context.WithTimeoutCause(hard, unansweredClose, runErr)
		defer cancel()
	}
	err := p.instance.Close(hard)
	if err == nil {
		p.recorder.Emit(&record.Cleanup{Done: true})
		return nil
	}
	left := &system.LeftError{Err: err, Left: p.instance.Progress().Left}
	p.recorder.Emit(&record.Cleanup{Left: left.Left})
	p.recorder.Emit(&record.Note{Warning: record.WarningCleanup, Text: left.Error()})
	return left
}

const unansweredClose = 10 * time.Second // bound of the removal from a target that answers nothing: the next command removes it

// liveJudge is the analysis of a run in progress. Events come from many goroutines.
type liveJudge struct {
	mu      sync.Mutex
	builder *judge.Builder // nil once no step is left to be chosen
	design  design.Design

	removing atomic.Bool
	removal  []record.Body // events for the result that came while the target was emptied
}

func (j *liveJudge) add(e record.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.builder != nil {
		j.builder.Add(e)
		return
	}
	if j.removing.Load() {
		switch e.Body.(type) {
		case *record.Cleanup, *record.Note, *record.RunEvent:
			j.removal = append(j.removal, e.Body)
		}
	}
}

// drop frees the memory once no step is left to be chosen: judging the record needs it.
func (j *liveJudge) drop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.builder = nil
}

func (j *liveJudge) next() design.Next {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.builder.NextStep(j.design, "")
}

func (j *liveJudge) ahead() [][]design.Next {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.builder.Ahead(j.design)
}

func (j *liveJudge) sum() fold.Live {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.builder == nil {
		return fold.Live{}
	}
	return j.builder.Live()
}

func (j *liveJudge) step(id int) (result.Step, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.builder.LastStep()
	if s == nil || s.ID != id {
		return result.Step{}, false
	}
	return *s, true
}

func (p *part) makeSteps(ctx context.Context, instance system.Instance, recorder system.Recorder) error {
	x, live, observer := p.x, p.live, p.observer
	environment, err := instance.Describe(ctx)
	if err != nil {
		return fmt.Errorf("describe the target: %w", err)
	}
	if err := p.describe(environment, recorder); err != nil {
		return err
	}
	if x.Budget > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, x.Budget, ErrBudget)
		defer cancel()
	}
	x.Options.Watch = func(s engine.Status) { observer.Status(s, live.sum) }
	var wakes wakes
	x.Options.Sample = func() {
		if s := wakes.take(); s != nil {
			recorder.Emit(s)
		}
		if x.Readings == nil {
			return
		}
		for _, r := range x.Readings() {
			recorder.Emit(&r)
		}
	}
	reading, stop := context.WithCancel(ctx)
	var readings sync.WaitGroup
	readings.Go(func() { every(reading, readingInterval, x.Options.Sample) })
	readings.Go(func() { wakes.count(reading, recorder.Clock) })
	defer readings.Wait()
	defer stop()
	defer p.scrape(ctx, recorder)()
	p.questions.ask(&x.Options, recorder)
	e := engine.New(instance, recorder.Sink, recorder.Clock, x.Options, &p.step)
	for made := 0; x.Steps == 0 || made < x.Steps; made++ {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		next := live.next()
		if next.Done {
			return nil
		}
		observer.Chose(next, live.ahead())
		ending, err := e.Run(ctx, next)
		if s, ok := live.step(recorder.Step()); ok {
			observer.Stepped(s)
		}
		if err != nil {
			return err
		}
		if ending == record.EndGuard {
			err := e.Recover(ctx)
			if errors.Is(err, engine.ErrNotHealthy) {
				recorder.Emit(&record.Note{Warning: record.WarningNotNormal, Text: "no further step was made: " + err.Error()})
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// scrape reads metrics until the returned function is called.
func (p *part) scrape(ctx context.Context, recorder system.Recorder) (stop func()) {
	o := p.x.Scrape
	o.Start = p.x.Spec.Start
	if o.Endpoints = p.x.Endpoints; o.Endpoints == nil && o.Remote == nil {
		return func() {}
	}
	tell := func(text string) {
		recorder.Emit(&record.Note{Warning: record.WarningNotKnown, Text: text})
	}
	o.Now = func() time.Time { return p.x.Spec.Start.Add(recorder.Clock.Now().Duration()) }
	o.Tell, o.Secrets = tell, p.x.Secrets
	if p.questions != nil {
		o.Live = p.questions.live
	}
	scraper := metrics.Scrape(ctx, p.dir, o)
	p.questions.scrapes(scraper)
	return func() {
		if err := scraper.Stop(ctx); err != nil {
			tell(fmt.Sprintf("metrics are not on record to the end: %v", err))
		}
	}
}

// describe puts the target on record: in the first part as environment.json, in a later one its changes.
func (p *part) describe(environment record.Environment, recorder system.Recorder) error {
	if p.environment == nil {
		environment.Start, environment.Kind = p.x.Spec.Start, &p.x.Spec.Kind
		err := p.dir.WriteMasked(record.EnvironmentFile, environment, p.x.Secrets)
		if err == nil {
			p.putFile(recorder, record.EnvironmentFile)
		}
		return err
	}
	if err := sameTarget(*p.environment, environment); err != nil {
		return err
	}
	if p.changed {
		return changedError(record.EnvironmentFile)
	}
	for _, change := range changes(*p.environment, environment) {
		recorder.Emit(&record.Note{Warning: record.WarningResumed, Text: "since the run was cut, " + change})
	}
	return nil
}

// putFile puts the hash of a file of the run directory on record, which shows later changes.
func (p *part) putFile(recorder system.Recorder, name string) {
	if sum, err := p.dir.Sum(name); err == nil {
		recorder.Emit(&record.File{Name: name, SHA256: sum})
	}
}

// wakes measures how late this program gets a processor: it asks to be woken at known times.
type wakes struct {
	mu         sync.Mutex
	made, late int
	most       time.Duration
}

const wakeInterval = 10 * time.Millisecond

// count asks to be woken until ctx ends.
func (w *wakes) count(ctx context.Context, clock *record.Clock) {
	timer := time.NewTimer(wakeInterval)
	defer timer.Stop()
	for due := clock.Now() + record.MicrosOf(wakeInterval); ; {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		now := clock.Now()
		delay := (now - due).Duration()
		w.mu.Lock()
		w.made++
		if delay > result.OwnDelayBound {
			w.late++
		}
		w.most = max(w.most, delay)
		w.mu.Unlock()
		due = now + record.MicrosOf(wakeInterval)
		timer.Reset(wakeInterval)
	}
}

// take returns the measurements since the last call, nil without any.
func (w *wakes) take() *record.Reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made == 0 {
		return nil
	}
	s := &record.Reading{Source: usage.SourceWakes, Values: map[string]float64{
		"wakes": float64(w.made), "late": float64(w.late), "mostSeconds": w.most.Seconds(),
	}}
	w.made, w.late, w.most = 0, 0, 0
	return s
}
