package cli

import (
	"context"
	"errors"
	"fmt"

	"plimsoll.dev/plimsoll/internal/experiment"
)

// opener makes the target of a run.
type opener func(context.Context, experiment.Recorder) (experiment.Target, error)

// freshTarget is emptied by making the private laboratory anew: what a control
// plane keeps of earlier objects (its memory, its database) goes with it.
type freshTarget struct {
	experiment.Target
	r    *runner
	rec  experiment.Recorder
	open opener
}

// renewed makes a target that is emptied in that way.
func (r *runner) renewed(open opener) opener {
	return func(ctx context.Context, rec experiment.Recorder) (experiment.Target, error) {
		t, err := open(ctx, rec)
		if err != nil {
			return nil, err
		}
		return &freshTarget{t, r, rec, open}, nil
	}
}

// Reset implements engine.Target.
func (t *freshTarget) Reset(ctx context.Context) error {
	err := t.Target.Close(ctx)
	t.Target = nil
	if err != nil {
		return err
	}
	t.r.renewing = true
	if err := t.r.renewLab(ctx); err != nil {
		return fmt.Errorf("make the laboratory anew: %w", err)
	}
	t.Target, err = t.open(ctx, t.rec)
	return err
}

// Close implements experiment.Target.
func (t *freshTarget) Close(done context.Context) error {
	if t.Target == nil {
		return nil // it could not be made anew
	}
	return t.Target.Close(done)
}

// renewLab puts a new laboratory in the place of the private one.
func (r *runner) renewLab(ctx context.Context) error {
	// Nobody reads what components use that are no more.
	r.reading.Lock()
	defer r.reading.Unlock()
	r.pids, r.meter = nil, nil
	if err := r.closeTarget(); err != nil {
		return err
	}
	r.lab = nil
	err := r.openTarget(ctx)
	if err != nil && context.Cause(ctx) != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return err
}
