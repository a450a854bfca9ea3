package volumes

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

// instance is the load: a GlusterFS from one Reset to the next.
type instance struct {
	*session
	rec  system.Recorder
	axis string

	used    atomic.Pointer[running] // nil without one
	readers sync.RWMutex            // read-locked while GlusterFS must not go
	resting atomic.Bool             // between two steps, where the memory of volumes does not matter
	made    int                     // number of GlusterFS's so far, for their directories
	numbers int                     // number of volumes so far, for their names
	meter   meter
}

// Describe implements system.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	e := record.Environment{
		Start: i.rec.Clock.Start(), Target: naming(),
		Fidelity: local.Fidelity("GlusterFS is real; its storage servers and the client run on this machine in namespaces of their own: they share its processors and disk, and no network card is between them"),
	}
	e.Facts = []record.Fact{record.Version("glusterfs", gluster.Version()), local.FileSystem(i.Room.Dir)}
	return e, nil
}

const leastPatience = 10 * time.Second // least bound of a command

// system returns the running GlusterFS of an arm; another arm's ends first.
func (i *instance) system(ctx context.Context, arm string) (*running, error) {
	if r := i.used.Load(); r != nil {
		if r.arm == arm {
			return r, nil
		}
		if err := i.empty(); err != nil {
			return nil, err
		}
	}
	one, ok := i.arms[arm]
	if !ok {
		return nil, fmt.Errorf("there is no arm %q", arm)
	}
	i.made++
	own := one.gluster
	own.Patience = max(one.patience, leastPatience)
	own.Dir, own.Executable, own.Tied = filepath.Join(i.Room.Dir, fmt.Sprintf("glusterfs-%d", i.made)), i.Executable, i.Tied
	if err := os.Mkdir(own.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for GlusterFS: %w", err)
	}
	sys, err := gluster.Open(ctx, own)
	if err != nil {
		return nil, err
	}
	r := &running{System: sys, settings: one, rec: i.rec, axis: i.axis, arm: arm, meter: &i.meter, numbers: &i.numbers, volumes: make(map[string]*volume)}
	r.ages, r.stopAge = context.WithCancel(context.Background())
	i.used.Store(r)
	if i.axis == axisVolumes || i.axis == axisRate { // on other axes failures are measured
		r.ageing.Go(r.watch)
		noun, servers := sys.Places(nil) // volumes report their bricks
		r.unfollow = local.FollowPlaces(i.rec, noun, servers)
	}
	return r, nil
}

// Raise implements system.Target.
func (i *instance) Raise(ctx context.Context, level system.Level) (system.Batch, error) {
	i.resting.Store(false)
	r, err := i.system(ctx, level.Arm)
	if err != nil {
		return system.Batch{}, err
	}
	switch i.axis {
	case axisDeletions:
		return r.raiseDeletions(ctx, int(math.Floor(level.Value+1e-9)))
	case axisBricks:
		return i.raiseBricks(ctx, level)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	want, reached := int(math.Floor(level.Value+1e-9)), math.Floor(level.Value+1e-9)
	if level.Span > 0 {
		want, reached = r.asked+int(math.Ceil(level.Value*level.Span.Seconds()-1e-9)), level.Value
	}
	n := want - r.asked
	if n < 0 {
		return system.Batch{}, fmt.Errorf("level %g is below what is in place", level.Value)
	}
	r.asked = want
	names := r.newVolumes(n)
	open := level.Span > 0
	return system.Batch{Requests: n, Units: n, Reached: reached, Send: func(_ context.Context, k int) record.Slot {
		return r.provide(names[k], k, open)
	}}, nil
}

// Progress implements system.Target.
func (i *instance) Progress() system.Progress {
	r := i.used.Load()
	if r == nil {
		return system.Progress{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.progress
}

// Settle implements system.Target: it looks once more for missing bricks.
func (i *instance) Settle(ctx context.Context) error {
	r := i.used.Load()
	if r == nil || i.axis != axisVolumes {
		return nil
	}
	return r.look(ctx)
}

// Account implements system.Target.
func (*instance) Account(context.Context) (system.Spread, error) { return system.Spread{}, nil }

// Reset implements system.Target: GlusterFS ends, unless the next step needs its volumes.
func (i *instance) Reset(context.Context) error {
	i.resting.Store(true)
	r := i.used.Load()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	r.progress = system.Progress{}
	names := slices.Collect(maps.Keys(r.volumes))
	r.mu.Unlock()
	if i.axis == axisBricks || i.axis == axisDeletions {
		return nil
	}
	err := i.empty()
	for _, name := range names {
		i.rec.Emit(&record.Object{Object: name, Milestone: deleted, Component: component})
	}
	return err
}

// empty ends GlusterFS, if any, and removes its directory.
func (i *instance) empty() error {
	r := i.used.Swap(nil)
	if r == nil {
		return nil
	}
	r.stopAge()
	if r.unfollow != nil {
		r.unfollow()
	}
	i.readers.Lock()
	r.Close()
	i.readers.Unlock()
	r.ageing.Wait()
	i.meter.forget()
	if err := os.RemoveAll(r.Dir); err != nil {
		return fmt.Errorf("remove GlusterFS's directory: %w", err)
	}
	return nil
}

// Health implements system.Target. GlusterFS may use what is available: others take memory too, and some
// of the kernel's is in no process.
func (i *instance) Health(context.Context) (map[string]float64, error) {
	measures := map[string]float64{measureMemory: 0}
	r, used := i.used.Load(), i.meter.allMemory()
	if r == nil || i.resting.Load() || used == 0 {
		return measures, nil
	}
	may := float64(r.memory)
	if may == 0 {
		available, err := telemetry.AvailableMemory()
		if err != nil {
			return nil, err
		}
		may = used + float64(available)
	}
	measures[measureMemory] = 100 * used / may
	return measures, nil
}

// Close implements system.Instance.
func (i *instance) Close(context.Context) error { return i.empty() }
