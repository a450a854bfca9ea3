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
	"plimsoll.dev/plimsoll/internal/metrics"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/run/engine"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Experiment is what is to be run, all of it decided.
type Experiment struct {
	Spec    result.Spec
	Design  design.Design
	Options engine.Options
	// Budget bounds the run; once it is spent no further step begins, and the
	// one under way is cut. 0 is no bound.
	Budget time.Duration
	// Steps bounds the steps of this part of the run, which then pauses; 0 is no
	// bound.
	Steps int
	// Plan is the fingerprint of the plan, which a part of a run is compared by
	// with the parts before; "" is not known.
	Plan string
	// Secrets are the values that never reach the record.
	Secrets *redact.Secrets
	// Readings reads what the processes use that take part in the run. It may
	// be nil.
	Readings func() []record.Reading
	// Endpoints are where metrics are published that are read while the run is made,
	// as Scrape says; nil for none.
	Endpoints func(context.Context) ([]metrics.Endpoint, error)
	Scrape    metrics.Options
	// Guards are queries that end a step once they do not hold.
	Guards []slo.SLO
	// Ended, if not nil, is called once the load is over and all of it is on
	// record, with what Run will return as far as it is known: before the target
	// is emptied, unless nothing in it needs to be removed, and, final, after
	// it.
	Ended func(err error, final bool)
}

// readingInterval is how often the use of resources is put on record, besides
// at the start and end of each step's load.
const readingInterval = time.Second

// Observer is told how a run proceeds. Its methods must not block.
type Observer interface {
	// Status is called several times a second; live sums up the latencies of
	// the step under way, and is dear enough not to be called each time.
	Status(status engine.Status, live func() fold.Live)
	// Stepped is called after each step with its judgement.
	Stepped(result.Step)
	// Event is called with every event, in order, as it is recorded, and with
	// the record locked: it must not put anything on record itself.
	Event(record.Event)
	// Chose is called before each step with what was chosen, and with the steps
	// that may be left, the chosen one included, as design.Ahead predicts them.
	Chose(next design.Next, ahead [][]design.Next)
}

// ErrBudget is why a run ends early whose budget is spent.
var ErrBudget = errors.New(record.BudgetSpent)

// Run makes the experiment on the target that open makes and leaves its record
// in dir. Soft ends the load, hard everything that is slow. The result is that
// of Analyze on what was recorded, so that nothing is judged that was not
// written down. A run that was cut has a result too; the error then says why
// it was cut.
func Run(soft, hard context.Context, dir record.Dir, id string, x Experiment, now func() time.Time, observer Observer,
	open opener) error {
	clock := record.StartClock(now)
	x.Spec.Start = clock.Start()
	p := &part{
		x: x, dir: dir, clock: clock, observer: observer,
		live: &liveJudge{builder: judge.NewBuilder(x.Spec), design: x.Design},
	}
	return p.run(soft, hard, record.NewWriter, open,
		record.Event{T: clock.Now(), Body: &record.RunEvent{Phase: record.PhaseStart, Version: record.HistoryVersion, Framed: true, ID: id, Plan: x.Plan}})
}

// part is one part of a run: all of it, unless it is cut and resumed.
type part struct {
	x        Experiment
	dir      record.Dir
	clock    *record.Clock
	live     *liveJudge
	observer Observer
	step     atomic.Int64 // the last one begun
	// environment is what the part before found where it ran, nil if there is
	// none, and changed whether its file was changed since.
	environment *record.Environment
	changed     bool
	questions   *questions // nil where nothing is asked
}

// run writes the part's record, with first at its head, and makes its steps.
func (p *part) run(soft, hard context.Context, history func(record.Dir, *redact.Secrets, func(record.Event)) (*record.Writer, error),
	open opener, first ...record.Event) error {
	var err error
	if p.questions, err = newQuestions(&p.x, p.clock); err != nil {
		return err
	}
	writer, err := history(p.dir, p.x.Secrets, func(e record.Event) {
		p.live.add(e)
		p.questions.event(e)
		p.observer.Event(e)
	})
	if err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(soft)
	defer fail(nil)
	recorder := system.Recorder{Sink: writer, Clock: p.clock, Step: func() int { return int(p.step.Load()) }, Fail: fail}
	go func() {
		select {
		case <-writer.Failed():
			fail(writer.Err())
		case <-ctx.Done():
		}
	}()
	for _, e := range first {
		writer.Append(e)
	}
	p.putFile(recorder, record.ExperimentFile)
	// The names under which the target is changed are on file before it is: a
	// run that goes on finds by them what this one has left.
	writer.Flush()

	instance, err := open(ctx, recorder)
	if err == nil {
		err = p.makeSteps(ctx, instance, recorder)
	}
	end := record.RunEvent{Phase: record.PhaseEnd}
	switch {
	case err != nil:
		end.Message, end.Signal = err.Error(), signalOf(soft)
	case instance != nil:
		end.Paused = !p.live.next().Done
	}
	told := end
	recorder.Emit(&told)
	p.live.drop()
	if instance != nil {
		err = p.clean(hard, instance, recorder, writer, err)
	}
	if end.Signal != signalOf(soft) { // it came while the target was emptied
		end.Signal = signalOf(soft)
		recorder.Emit(&end)
	}
	if closing := writer.Close(); !errors.Is(err, closing) { // what ended the run is told once
		err = errors.Join(err, closing)
	}
	p.ended(err, true)
	return err
}

// signalOf is the exit code of the signal that ended ctx, 0 for none: the result
// of a run that it cut has that code.
func signalOf(ctx context.Context) int {
	if signal := system.SignalOf(ctx); signal != nil {
		return signal.ExitCode()
	}
	return 0
}

// clean empties the target. Where that takes a while, what was found is told
// before: it must not be lost with a removal that fails.
func (p *part) clean(hard context.Context, instance system.Instance, recorder system.Recorder, writer *record.Writer, runErr error) error {
	if left := instance.Progress().Left; left > 0 {
		recorder.Emit(&record.Cleanup{Left: left})
		if writer.Flush(); writer.Err() == nil {
			p.ended(runErr, false)
		}
	}
	if _, is := errors.AsType[*engine.OutOfReachError](runErr); is {
		var cancel context.CancelFunc
		hard, cancel = context.WithTimeoutCause(hard, unansweredClose, runErr)
		defer cancel()
	}
	err := instance.Close(hard)
	if err == nil {
		recorder.Emit(&record.Cleanup{Done: true})
		return runErr
	}
	left := &system.LeftError{Err: err, Left: instance.Progress().Left}
	err = left
	recorder.Emit(&record.Cleanup{Left: left.Left})
	recorder.Emit(&record.Note{Warning: record.WarningCleanup, Text: err.Error()})
	return errors.Join(runErr, err)
}

// unansweredClose bounds the removal from a target that answers nothing: it may be back,
// and the next command removes what is left.
const unansweredClose = 10 * time.Second

func (p *part) ended(err error, final bool) {
	if p.x.Ended != nil {
		p.x.Ended(err, final)
	}
}

// liveJudge is the analysis of a run under way. Events come from many goroutines.
type liveJudge struct {
	mu      sync.Mutex
	builder *judge.Builder
	design  design.Design
}

func (j *liveJudge) add(e record.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.builder != nil {
		j.builder.Add(e)
	}
}

// drop lets go of what is known, once no step is left to be chosen: the record
// is judged anew, and that needs the memory.
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

// step is the judgement of a step that has ended.
func (j *liveJudge) step(id int) (result.Step, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.builder.LastStep()
	if s == nil || s.ID != id {
		return result.Step{}, false
	}
	return *s, true
}

// makeSteps makes steps on the target until the design is done.
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
	readings.Go(func() {
		tick := time.NewTicker(readingInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				x.Options.Sample()
			case <-reading.Done():
				return
			}
		}
	})
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

// describe puts on record what the target is: in the first part as
// environment.json, in a later one where it is no longer what it was.
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

// putFile puts the hash of a file of the run directory on record, where there is one:
// what is changed in it later is then known.
func (p *part) putFile(recorder system.Recorder, name string) {
	if sum, err := p.dir.Sum(name); err == nil {
		recorder.Emit(&record.File{Name: name, SHA256: sum})
	}
}
