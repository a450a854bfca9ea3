package run

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/plan/design"
	"plimsoll.dev/plimsoll/internal/record"
)

// Past holds the record of a run that may go on.
type Past struct {
	judge.Resumable
	IDs  []string // in the names of the run's objects so far
	Done bool     // no step is left
	Made int      // steps that count

	dir         record.Dir
	builder     *judge.Builder
	start       time.Time // the wall clock at T = 0
	environment *record.Environment
	changed     bool // the environment was changed since the run has written it
}

// ContradictionError says that a record does not belong to the plan beside it, or to the present target.
type ContradictionError struct{ Why string }

func (e *ContradictionError) Error() string { return e.Why }

// OpenPast reads the record of a run, as far as it goes, to find where it goes on. ID is that of the run
// by its plan. Every step on record must be the one that the design would have made then, else the error
// is a *ContradictionError. It writes nothing.
func OpenPast(dir record.Dir, id string, x Experiment) (*Past, error) {
	p := &Past{dir: dir, IDs: []string{id}, start: x.Spec.Start}
	var err error
	switch p.environment, err = dir.Environment(); {
	case err == nil:
		p.start, x.Spec.Kind = p.environment.Start, *p.environment.Kind
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	x.Spec.Start = p.start
	p.builder = judge.NewBuilder(x.Spec)
	sums := make(map[string]string)
	_, err = record.ReadHistory(dir, func(e record.Event) error {
		switch b := e.Body.(type) {
		case *record.Damaged:
			return &ContradictionError{b.String() + " of its history are damaged, and what happened then is unknown"}
		case *record.File:
			sums[b.Name] = b.SHA256
		case *record.RunEvent:
			if err := p.startPart(b, id, x.Plan); err != nil {
				return err
			}
		case *record.StepEvent:
			if b.Phase != record.PhaseStart {
				break
			}
			if err := sameStep(e.Step, b, p.builder.NextStep(x.Design, "")); err != nil {
				return err
			}
		}
		p.builder.Add(e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, name := range dir.Changed(sums) {
		if name != record.EnvironmentFile {
			return nil, changedError(name)
		}
		p.changed = true // the difference from the present target says more
	}
	p.Resumable = p.builder.Resume()
	if len(x.Spec.Goals) > 0 {
		p.Made = len(p.builder.Made(x.Spec.Goals[0].Name))
	}
	p.Done = p.builder.NextStep(x.Design, "").Done
	return p, nil
}

func changedError(name string) error {
	return &ContradictionError{name + " was changed after the run"}
}

func (p *Past) startPart(r *record.RunEvent, id, plan string) error {
	switch {
	case r.Phase == record.PhaseStart && r.ID != id:
		return &ContradictionError{fmt.Sprintf("the plan is of run %s, the record is of run %s", id, r.ID)}
	case r.Phase == record.PhaseStart && r.Plan != "" && plan != "" && r.Plan != plan:
		return &ContradictionError{"the plan differs from the one on record: its workload or a file of it, its parameters, target, pace, hold, timeout, guards or seed changed"}
	case r.Phase == record.PhaseResume:
		p.IDs = append(p.IDs, r.ID)
	}
	return nil
}

// sameStep compares a step on record with the one that the design would have made in its place.
func sameStep(id int, s *record.StepEvent, n design.Next) error {
	switch {
	case n.Done:
		return &ContradictionError{fmt.Sprintf("step %d is on record at %g (%s), but by the plan the run was done: %s", id, s.Level, s.Purpose, n.Outcome.Why)}
	case n.Level != s.Level || n.Purpose != s.Purpose || n.Hold > 0 && record.MicrosOf(n.Hold) != s.Hold:
		return &ContradictionError{fmt.Sprintf("step %d is on record at %g (%s), but by the plan it is at %g (%s)", id, s.Level, s.Purpose, n.Level, n.Purpose)}
	}
	return nil
}

// resume goes on with a run from an empty target, with the next step or the one that was cut. Begin has
// the part's ID and command; the directory must have been locked since before OpenPast.
func resume(past *Past, begin record.RunEvent, x Experiment, now func() time.Time, observer Observer) (*part, error) {
	clock := record.ResumeClock(past.start, past.Last, now)
	begin.Phase, begin.Version, begin.Framed, begin.Plan = record.PhaseResume, record.HistoryVersion, true, x.Plan
	if back := past.start.Sub(clock.Start()); back > backTolerance && !past.start.IsZero() {
		begin.Message = fmt.Sprintf("the machine's clock was set back before the run was resumed: later times in the result are %s ahead of it", back.Round(time.Millisecond))
	}
	if x.Spec.Start = past.start; past.start.IsZero() {
		x.Spec.Start = clock.Start()
	}
	p := &part{
		x: x, dir: past.dir, clock: clock, observer: observer, environment: past.environment, changed: past.changed,
		live: &liveJudge{builder: past.builder, design: x.Design},
	}
	p.step.Store(int64(past.Step))
	t := clock.Now()
	return p, p.write(record.ResumeWriter,
		record.Event{T: t, Step: past.Step, Body: &begin},
		record.Event{T: t, Step: past.Step, Body: &record.StepEvent{Phase: record.PhaseReset}})
}

const backTolerance = time.Second // largest correction of the wall clock without a warning

// sameTarget refuses another target than the one that a run has loaded.
func sameTarget(was, is record.Environment) error {
	if was.Target != is.Target && !(was.Target.Private && is.Target.Private) {
		return &ContradictionError{fmt.Sprintf("the run loaded %s, this is %s", targetName(was.Target), targetName(is.Target))}
	}
	parts := is.Fidelity.Parts()
	for i, part := range was.Fidelity.Parts() {
		if part.Is != "" && part.Is != parts[i].Is {
			return &ContradictionError{fmt.Sprintf("%s of what the run loaded: %s; of this: %s", part.Part, part.Is, parts[i].Is)}
		}
	}
	return nil
}

func targetName(t record.TargetNaming) string {
	if t.Private {
		return "a private " + t.Kind
	}
	return fmt.Sprintf("%s %q", t.Kind, t.Name)
}

func changes(was, is record.Environment) []string {
	known := func(e record.Environment) []record.Known {
		return (&record.Environment{Facts: e.Facts, Places: e.Places}).Known()
	}
	var list []string
	now := known(is)
	for _, before := range known(was) {
		i := slices.IndexFunc(now, func(k record.Known) bool { return k.Name == before.Name })
		if i >= 0 && !before.Same(now[i]) {
			list = append(list, fmt.Sprintf("%s: it was %s and is %s", before.What, before.Text(), now[i].Text()))
		}
	}
	return list
}
