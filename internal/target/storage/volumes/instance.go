package volumes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/local"
	"plimsoll.dev/plimsoll/internal/target/storage/gluster"
)

// instance is what the engine loads: a GlusterFS from one Reset to the next.
type instance struct {
	*session
	rec  target.Recorder
	axis string

	// used is where GlusterFS lies, for those who read it, nil between two.
	used atomic.Pointer[gluster.System]

	unserved atomic.Bool // the last volume that was started is not served

	mu       sync.Mutex
	arm      string
	settings settings // of the arm
	made     int      // GlusterFS's, which tells their directories apart
	next     int      // the number of the next volume
	asked    int      // volumes, since empty
	volumes  map[string]*volume
	progress target.Progress
	ageing   sync.WaitGroup
	stopAge  context.CancelFunc
	ages     context.Context
	readers  sync.RWMutex // held by those who read GlusterFS while it may not go
	meter    meter
	resting  bool // between two steps: what volumes that stay take is no trouble
}

// volume is one that was created.
type volume struct {
	number  int
	name    string
	options map[string]string
	mounted bool
	written bool
	ready   bool
	leaving bool   // it is being deleted
	probed  bool   // its mount is being asked
	lost    string // the reason for which it is no more ready, "" for none
}

func newInstance(s *session, rec target.Recorder) *instance {
	i := &instance{session: s, rec: rec, axis: s.Plan.Axis.Name, volumes: make(map[string]*volume)}
	i.meter.forget()
	return i
}

// Describe implements target.Target.
func (i *instance) Describe(context.Context) (record.Environment, error) {
	e := record.Environment{
		Start: i.rec.Clock.Start(), Target: naming(),
		Fidelity: record.Fidelity{ControlPlane: record.None, Nodes: record.None, Containers: record.None, Guests: record.None, Notes: []string{
			"GlusterFS is real; its storage servers and the client run on this machine in namespaces of their own: they share its processors and disk, and no network card is between them",
		}},
	}
	e.Facts = []record.Fact{record.Version("glusterfs", gluster.Version()), local.FileSystem(i.Room.Dir)}
	return e, nil
}

// leastPatience is how long a command may take at least.
const leastPatience = 10 * time.Second

// system is the GlusterFS that runs, of an arm; another arm's goes before.
func (i *instance) system(ctx context.Context, arm string) (*gluster.System, error) {
	if sys := i.used.Load(); sys != nil {
		if i.arm == arm {
			return sys, nil
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
	i.mu.Lock()
	i.arm, i.settings = arm, one
	i.ages, i.stopAge = context.WithCancel(context.Background())
	i.mu.Unlock()
	i.used.Store(sys)
	ages := i.ages
	if i.axis == axisVolumes || i.axis == axisRate { // else what fails is what is measured
		i.ageing.Go(func() { i.watch(ages, sys) })
	}
	return sys, nil
}

// Raise implements target.Target.
func (i *instance) Raise(ctx context.Context, level target.Level) (target.Batch, error) {
	i.mu.Lock()
	i.resting = false
	i.mu.Unlock()
	sys, err := i.system(ctx, level.Arm)
	if err != nil {
		return target.Batch{}, err
	}
	switch i.axis {
	case axisDeletions:
		return i.raiseDeletions(ctx, sys, int(math.Floor(level.Value+1e-9)))
	case axisBricks:
		return i.raiseBricks(ctx, level)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	want, reached := int(math.Floor(level.Value+1e-9)), math.Floor(level.Value+1e-9)
	if level.Span > 0 {
		want, reached = i.asked+int(math.Ceil(level.Value*level.Span.Seconds()-1e-9)), level.Value
	}
	n := want - i.asked
	if n < 0 {
		return target.Batch{}, fmt.Errorf("level %g is below what is in place", level.Value)
	}
	i.asked = want
	names := i.newVolumes(n)
	open := level.Span > 0
	return target.Batch{Requests: n, Units: n, Reached: reached, Send: func(_ context.Context, k int) record.Slot {
		return i.provide(sys, names[k], k, open)
	}}, nil
}

// newVolumes are volumes that are not made yet. It is called with the lock held.
func (i *instance) newVolumes(n int) []*volume {
	list := make([]*volume, n)
	for k := range list {
		i.next++
		list[k] = &volume{number: i.next, name: fmt.Sprintf("volume-%d", i.next), options: i.settings.optionsOf(i.next)}
	}
	return list
}

// provide creates a volume and makes it ready. Its request is answered once it
// is, or has failed: each command is bounded, and is not cut by the user, for
// what became of it would not be known.
func (i *instance) provide(sys *gluster.System, v *volume, n int, open bool) record.Slot {
	slot := record.Slot{Slot: v.name, Component: component, Units: 1, Iteration: n, Outcome: record.SlotCreated}
	ctx := context.Background()
	if err := sys.Create(ctx, v.name, v.options); err != nil {
		slot.Outcome, slot.Error = record.SlotFailed, i.explain(sys, err)
		return slot
	}
	i.mu.Lock()
	i.volumes[v.name] = v
	i.progress.Left = 0
	i.mu.Unlock()
	i.reach(v.name, created)
	if reason, err := i.finish(ctx, sys, v, i.reach); err != nil {
		i.fail(v.name, reason, i.explain(sys, err))
		return slot
	}
	i.mu.Lock()
	v.ready = true
	i.progress.There++
	i.progress.Arrived++
	i.mu.Unlock()
	i.reach(v.name, ready)
	if open {
		i.age(sys, v)
	}
	return slot
}

// finish starts, mounts and writes to a volume that was created.
func (i *instance) finish(ctx context.Context, sys *gluster.System, v *volume, reach func(volume, milestone string)) (reason string, err error) {
	if err := sys.Start(ctx, v.name, false); err != nil {
		return startFailed, err
	}
	if !i.serves(sys, v) {
		return startFailed, fmt.Errorf("GlusterFS says that volume %s has started, and no process serves its brick", v.name)
	}
	reach(v.name, started)
	if !i.settings.mount {
		return "", nil
	}
	bounded, cancel := context.WithTimeout(ctx, i.settings.patience)
	at, err := sys.Client().Mount(bounded, v.name)
	cancel()
	if err != nil {
		return mountFailed, errors.Join(err, sys.Client().Abort(v.name))
	}
	i.mu.Lock()
	v.mounted = true
	i.mu.Unlock()
	reach(v.name, mounted)
	if i.settings.write == 0 {
		return "", nil
	}
	err = i.within(sys, v, func() error { return write(file(sys, at), v.name, i.settings.write) })
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return noSpace, err
	case errors.Is(err, errHung):
		return mountHung, err
	case err != nil:
		return writeFailed, err
	}
	i.mu.Lock()
	v.written = true
	i.mu.Unlock()
	reach(v.name, written)
	return "", nil
}

// servedWithin is how long it may take from the start of a volume until its bricks
// are served. Once one was not, the next ones get less.
const (
	servedWithin = 10 * time.Second
	servedAgain  = 200 * time.Millisecond
)

// serves reports whether the bricks of a volume that has started come to be served.
func (i *instance) serves(sys *gluster.System, v *volume) bool {
	bound := servedWithin
	if i.unserved.Load() {
		bound = servedAgain
	}
	deadline := time.After(bound)
	for !sys.Serving(v.name) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			i.unserved.Store(true)
			return false
		}
	}
	i.unserved.Store(false)
	return true
}

// file is that of a mounted volume, as this program sees it.
func file(sys *gluster.System, mountedAt string) string {
	return sys.Client().Path(filepath.Join(mountedAt, "data"))
}

// errHung says that a mount did not answer in time. It was aborted.
var errHung = errors.New("the mount did not answer, and its FUSE connection was aborted")

// within does something with a mounted volume's files. A mount that does not
// answer within the patience is aborted: whatever waits for it then fails.
func (i *instance) within(sys *gluster.System, v *volume, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	patience := time.NewTimer(i.settings.patience)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
	}
	err := sys.Client().Abort(v.name)
	i.mu.Lock()
	v.mounted = false
	i.mu.Unlock()
	return errors.Join(fmt.Errorf("%w after %v", errHung, i.settings.patience), err)
}

// age deletes a volume of the axis rate at the end of its life.
func (i *instance) age(sys *gluster.System, v *volume) {
	i.mu.Lock()
	ctx := i.ages
	i.mu.Unlock()
	i.ageing.Go(func() {
		select {
		case <-time.After(i.settings.life):
		case <-ctx.Done():
			return
		}
		if err := i.remove(ctx, sys, v, func(string) {}); err != nil && ctx.Err() == nil {
			i.rec.Emit(&record.State{Object: v.name, Reason: deleteFailed, Message: i.explain(sys, err)})
		}
	})
}

// remove deletes a volume, and tells which steps of that it has reached.
func (i *instance) remove(ctx context.Context, sys *gluster.System, v *volume, reached func(string)) error {
	i.mu.Lock()
	v.leaving = true
	wasMounted := v.mounted
	i.mu.Unlock()
	if wasMounted {
		if err := sys.Client().Unmount(ctx, v.name); err != nil {
			return err
		}
		reached(unmounted)
	}
	if err := sys.Stop(ctx, v.name); err != nil {
		return err
	}
	reached(stopped)
	if err := sys.Delete(ctx, v.name); err != nil {
		return err
	}
	i.mu.Lock()
	delete(i.volumes, v.name)
	if i.axis == axisRate {
		i.progress.There--
	}
	i.mu.Unlock()
	i.reach(v.name, deleted)
	return nil
}

// reach puts a milestone on record.
func (i *instance) reach(object, milestone string) {
	i.mu.Lock()
	i.progress.Moved = i.rec.Clock.Now()
	i.mu.Unlock()
	i.rec.Emit(&record.Object{Object: object, Milestone: milestone, Component: component})
}

// component is that of the workloads' objects.
const component = "volume"

// fail puts on record that an object will never be ready.
func (i *instance) fail(object, reason, message string) {
	i.mu.Lock()
	i.progress.Failed++
	i.progress.Moved = i.rec.Clock.Now()
	i.mu.Unlock()
	i.rec.Emit(&record.State{Object: object, Reason: reason, Message: message, Failed: true})
}

// leastFree is how much room the bricks must have left for a failure to be
// another's.
const leastFree = 1 << 20

// explain is an error with what the servers are short of.
func (i *instance) explain(sys *gluster.System, err error) string {
	return err.Error() + i.short(sys)
}

// short is what the first server is short of, to be put after what went wrong. A
// process is short of files where it has none for another brick.
func (i *instance) short(sys *gluster.System) string {
	text := ""
	if open, limit, err := sys.Server(0).OpenFiles(); err == nil && open+brickFiles > limit {
		text += fmt.Sprintf("; the process that serves bricks has %d of %d files open", open, limit)
	}
	if free, freeErr := sys.Server(0).FreeBytes(); freeErr == nil && free < leastFree {
		text += "; the bricks' file system is full"
	}
	if ports, portsErr := sys.Server(0).Ports(); portsErr == nil && ports > gluster.LastPort-gluster.FirstPort {
		text += "; every port for bricks is in use"
	}
	if sys.Server(0).ListensInVain() {
		text += "; a process that serves bricks has listened in vain for a volume that was deleted"
	}
	return text
}

// Progress implements target.Target.
func (i *instance) Progress() target.Progress {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.progress
}

// Settle implements target.Target: it looks once more whether what should be
// there is.
func (i *instance) Settle(ctx context.Context) error {
	sys := i.used.Load()
	if sys == nil || i.axis != axisVolumes {
		return nil
	}
	return i.look(ctx, sys)
}

// look asks glusterd which bricks serve, and notes the volumes that lack one.
func (i *instance) look(ctx context.Context, sys *gluster.System) error {
	serving, err := sys.Bricks(ctx)
	stalled := errors.Is(err, gluster.ErrStalled)
	if err != nil && !stalled {
		return err
	}
	lack := i.short(sys)
	whole := make(map[string]int) // bricks that serve, by volume
	down := make(map[string]string)
	for _, b := range serving {
		if b.PID > 0 {
			whole[b.Volume]++
		} else {
			down[b.Volume] = fmt.Sprintf("its brick on storage server %d is down%s", b.Server+1, lack)
		}
	}
	i.mu.Lock()
	var news []*record.State
	for name, v := range i.volumes {
		if !v.ready || v.leaving {
			continue
		}
		ok := whole[name] == i.settings.gluster.Replica
		switch {
		case stalled && v.lost == "":
			v.lost = noAnswer
			i.progress.There--
			news = append(news, &record.State{Object: name, Reason: noAnswer, Message: err.Error(), Lost: ready})
		case stalled:
		case !ok && v.lost == "":
			v.lost = brickDown
			i.progress.There--
			news = append(news, &record.State{Object: name, Reason: brickDown, Message: down[name], Lost: ready})
		case ok && (v.lost == brickDown || v.lost == noAnswer):
			v.lost = ""
			i.progress.There++
			news = append(news, &record.State{Object: name, Regained: ready})
		}
	}
	i.mu.Unlock()
	for _, s := range news {
		i.rec.Emit(s)
	}
	return nil
}

// Account implements target.Target.
func (*instance) Account(context.Context) (target.Spread, error) { return target.Spread{}, nil }

// Reset implements target.Target: GlusterFS goes as a whole, unless the volumes in
// it are what a step needs before it begins.
func (i *instance) Reset(context.Context) error {
	i.mu.Lock()
	i.progress, i.resting = target.Progress{}, true
	if i.axis == axisBricks || i.axis == axisDeletions {
		i.mu.Unlock()
		return nil
	}
	var names []string
	for name := range i.volumes {
		names = append(names, name)
	}
	i.mu.Unlock()
	err := i.empty()
	for _, name := range names {
		i.rec.Emit(&record.Object{Object: name, Milestone: deleted, Component: component})
	}
	return err
}

// empty ends GlusterFS, if there is one, and removes its directory.
func (i *instance) empty() error {
	sys := i.stop()
	i.mu.Lock()
	i.asked = 0
	clear(i.volumes)
	i.mu.Unlock()
	i.meter.forget()
	if sys == nil {
		return nil
	}
	if err := os.RemoveAll(sys.Dir); err != nil {
		return fmt.Errorf("remove GlusterFS's directory: %w", err)
	}
	return nil
}

// stop ends GlusterFS, if there is one.
func (i *instance) stop() *gluster.System {
	sys := i.used.Swap(nil)
	if sys == nil {
		return nil
	}
	i.stopAge()
	i.readers.Lock()
	sys.Close()
	i.readers.Unlock()
	i.ageing.Wait()
	return sys
}

// Health implements target.Target. Without a bound of its own GlusterFS may have
// what it uses and what is available besides, now: others take memory too, and what
// the kernel keeps for it is in no process.
func (i *instance) Health(context.Context) (map[string]float64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	measures := map[string]float64{measureMemory: 0}
	used := i.meter.allMemory()
	if i.resting || used == 0 {
		return measures, nil
	}
	may := float64(i.settings.memory)
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

// Close implements target.Instance.
func (i *instance) Close(context.Context) error { return i.empty() }
