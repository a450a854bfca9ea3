package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/load"
)

// Load is the load of one step, with its system.
type Load interface {
	// Stream makes the load; see system.Batch.
	Stream(ctx context.Context, s system.Schedule) error
	// Progress sums up the stream.
	Progress() system.Progress
	// Readings returns the present usage of the parts. It is not called during or after End.
	Readings() []record.Reading
	// End removes the system.
	End() error
}

// Rig implements system.Instance for streams: each step has a new Load. S holds an arm's settings.
type Rig[S any] struct {
	Rec  system.Recorder
	Seed uint64
	Arms map[string]S
	// Start makes the load of a level, which it may lower to the reached one.
	Start func(ctx context.Context, one S, level *system.Level) (Load, error)

	made uint64 // generators so far
	mu   sync.Mutex
	load Load // nil between steps
}

// Current returns the load of the step, nil between steps.
func (r *Rig[S]) Current() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load
}

// Raise implements system.Target.
func (r *Rig[S]) Raise(ctx context.Context, level system.Level) (system.Batch, error) {
	if err := r.Reset(ctx); err != nil {
		return system.Batch{}, err
	}
	one, ok := r.Arms[level.Arm]
	if !ok {
		return system.Batch{}, fmt.Errorf("there is no arm %q", level.Arm)
	}
	if level.Span == 0 {
		level.Value = math.Floor(level.Value + 1e-9)
	}
	if level.Value <= 0 {
		return system.Batch{}, fmt.Errorf("a level of %g is not a load", level.Value)
	}
	l, err := r.Start(ctx, one, &level)
	if err != nil {
		return system.Batch{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load = l
	return system.Batch{Reached: level.Value, Stream: l.Stream}, nil
}

// Progress implements system.Target.
func (r *Rig[S]) Progress() system.Progress {
	if l := r.Current(); l != nil {
		return l.Progress()
	}
	return system.Progress{}
}

// Readings implements Running.
func (r *Rig[S]) Readings() []record.Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load == nil {
		return nil
	}
	return r.load.Readings()
}

// Settle implements system.Target: everything known of a stream is on record.
func (*Rig[S]) Settle(context.Context) error { return nil }

// Account implements system.Target.
func (*Rig[S]) Account(context.Context) (system.Spread, error) { return system.Spread{}, nil }

// Health implements system.Target.
func (*Rig[S]) Health(context.Context) (map[string]float64, error) {
	return map[string]float64{}, nil
}

// Reset implements system.Target: it ends the load of the last step.
func (r *Rig[S]) Reset(context.Context) error {
	r.mu.Lock()
	l := r.load
	r.load = nil
	r.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.End()
}

// Close implements system.Instance.
func (r *Rig[S]) Close(ctx context.Context) error { return r.Reset(ctx) }

// Requests implements Load with the generator of requests.
type Requests struct {
	*load.Generator // made by Begin
	Rec             system.Recorder
	Plan            load.Plan
	Client          string      // names the owner of the connections' ports
	Clients         int         // of a closed loop on another axis; 0 is the level
	CPUs            []int       // for this program; none leaves it where it is
	Noun            record.Noun // Places are the places of the load, none where they are not seen
	Places          []Place
	// Sees is called with each window before it is recorded, unless it is nil.
	Sees func(*record.Window) error
	Read func() []record.Reading // Read returns the present usage of the parts, which takes milliseconds
	Stop func() error            // Stop ends the system of the step

	undo, unfollow func()
}

// Begin makes the generator of a step whose system runs. On an error it ends the system.
func (r *Rig[S]) Begin(l *Requests) (err error) {
	r.made++
	l.Rec, l.Generator = r.Rec, load.New(l.Plan, r.Rec.Clock.Now, r.Seed+r.made)
	l.undo, l.unfollow = func() {}, func() {}
	if len(l.CPUs) > 0 {
		if l.undo, err = cpu.Keep(l.CPUs); err != nil {
			return errors.Join(err, l.Stop())
		}
	}
	if len(l.Places) > 0 {
		l.unfollow = FollowPlaces(r.Rec, l.Noun, l.Places)
	}
	return nil
}

// Stream implements Load.
func (l *Requests) Stream(ctx context.Context, s system.Schedule) error {
	if l.Clients > 0 {
		s.Value = float64(l.Clients)
	}
	var failed error
	err := l.Load(ctx, s, func(w *record.Window) {
		if l.Sees != nil {
			if err := l.Sees(w); err != nil {
				failed = err
			}
		}
		l.Rec.Emit(w)
	}, l.Rec.Emit)
	if n := l.Counts().NoPort; n > 0 {
		l.Note("%s had no free port or file handle for %d connections: what became of their requests is unknown", l.Client, n)
	}
	return errors.Join(err, failed)
}

// Note records a note about the step.
func (l *Requests) Note(format string, args ...any) {
	l.Rec.Emit(&record.Note{About: l.Rec.Step(), Text: fmt.Sprintf(format, args...)})
}

// Readings implements Load.
func (l *Requests) Readings() (list []record.Reading) {
	l.Beside(func() { list = l.Read() })
	return list
}

// End implements Load.
func (l *Requests) End() error {
	l.undo()
	l.unfollow()
	return l.Stop()
}
