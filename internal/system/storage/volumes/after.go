package volumes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

// populate makes volumes before a step, until there are so many: they are not measured.
func (r *running) populate(ctx context.Context, want int) error {
	r.mu.Lock()
	list := r.newVolumes(max(want-len(r.volumes), 0))
	r.mu.Unlock()
	next := make(chan *volume)
	errs := make([]error, r.creators)
	var all sync.WaitGroup
	for k := range errs {
		all.Go(func() {
			for v := range next {
				if errs[k] == nil {
					errs[k] = r.make(ctx, v)
				}
			}
		})
	}
	for _, v := range list {
		if ctx.Err() == nil {
			next <- v
		}
	}
	close(next)
	all.Wait()
	return errors.Join(append(errs, context.Cause(ctx))...)
}

// make makes a volume without measuring it.
func (r *running) make(ctx context.Context, v *volume) error {
	if err := r.Create(ctx, v.name, v.options); err != nil {
		return errors.New(r.explain(err))
	}
	r.mu.Lock()
	r.volumes[v.name] = v
	r.mu.Unlock()
	if _, err := r.finish(ctx, v, func(string, string) {}); err != nil {
		return errors.New(r.explain(err))
	}
	r.mu.Lock()
	v.ready = true
	r.mu.Unlock()
	return nil
}

// raiseDeletions prepares the deletion of volumes, which it makes first.
func (r *running) raiseDeletions(ctx context.Context, n int) (system.Batch, error) {
	if err := r.populate(ctx, n); err != nil {
		return system.Batch{}, err
	}
	select {
	case <-time.After(r.wait):
	case <-ctx.Done():
		return system.Batch{}, context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := slices.SortedFunc(maps.Values(r.volumes), func(a, b *volume) int { return a.number - b.number })[:n]
	return system.Batch{Requests: n, Units: n, Reached: float64(n), Send: func(_ context.Context, k int) record.Slot {
		v := list[k]
		slot := record.Slot{Slot: v.name, Component: component, Units: 1, Iteration: k, Outcome: record.SlotCreated}
		if err := r.remove(context.Background(), v, func(milestone string) { r.reach(v.name, milestone) }); err != nil {
			slot.Outcome, slot.Error = record.SlotFailed, err.Error()
			return slot
		}
		r.arrived(v)
		return slot
	}}, nil
}

// hurt is a brick that a fault hits.
type hurt struct {
	gluster.Brick
	volume *volume
	name   string // of the object
	pid    int    // its process before
	back   bool
}

// raiseBricks prepares a fault with so many bricks on the first storage server.
func (i *instance) raiseBricks(ctx context.Context, level system.Level) (system.Batch, error) {
	n := int(math.Floor(level.Value + 1e-9))
	if r := i.used.Load(); r != nil {
		r.mu.Lock()
		lower := n < len(r.volumes)
		r.mu.Unlock()
		if lower {
			if err := i.empty(); err != nil {
				return system.Batch{}, err
			}
		}
	}
	r, err := i.system(ctx, level.Arm)
	if err == nil {
		err = r.populate(ctx, n)
	}
	if err != nil {
		return system.Batch{}, err
	}
	serving, err := r.Bricks(ctx)
	if err != nil {
		return system.Batch{}, err
	}
	r.mu.Lock()
	var list []*hurt
	for _, b := range serving {
		v := r.volumes[b.Volume]
		if b.Server != 0 || v == nil {
			continue
		}
		if b.PID == 0 {
			r.mu.Unlock()
			return system.Batch{}, fmt.Errorf("a brick of %s is down before any fault", b.Volume)
		}
		list = append(list, &hurt{Brick: b, volume: v, name: b.Volume + "/server-1", pid: b.PID})
	}
	r.mu.Unlock()
	f := &fault{running: r, bricks: list}
	if r.fault == faultKill {
		f.victim = busiest(list)
		f.bricks = slices.DeleteFunc(list, func(b *hurt) bool { return b.pid != f.victim })
	}
	return system.Batch{Requests: 1, Units: len(f.bricks), Reached: float64(n), Send: func(context.Context, int) record.Slot {
		slot := record.Slot{Slot: sourceFault, Component: component, Units: len(f.bricks), Grouped: true, Outcome: record.SlotCreated}
		if err := f.strike(); err != nil {
			slot.Outcome, slot.Error = record.SlotFailed, err.Error()
		}
		return slot
	}}, nil
}

// busiest returns the process that serves most of the bricks, the lowest of several.
func busiest(list []*hurt) int {
	count := make(map[int]int)
	for _, b := range list {
		count[b.pid]++
	}
	pids := append(slices.Sorted(maps.Keys(count)), 0) // without bricks
	return slices.MaxFunc(pids, func(a, b int) int { return count[a] - count[b] })
}

// fault is a fault that hits existing volumes.
type fault struct {
	*running
	victim int // the process to kill, 0 for other faults
	bricks []*hurt
}

// strike makes the fault, begins to follow the bricks, and starts their return.
func (f *fault) strike() error {
	ctx := context.Background()
	server := f.Server(0)
	running, err := f.Processes(func(int, int) bool { return false })
	if err != nil {
		return err
	}
	var pids []int
	for _, p := range running {
		ends := p.Server == 0
		switch f.fault {
		case faultKill:
			ends = ends && p.PID == f.victim
		case faultRestart:
			ends = ends && p.Part == gluster.Management
		}
		if ends {
			pids = append(pids, p.PID)
		}
	}
	for _, b := range f.bricks {
		f.rec.Emit(&record.Object{Object: b.name, Slot: sourceFault, Milestone: hit, Component: component})
	}
	if err := server.Kill(pids...); err != nil {
		return err
	}
	if f.fault == faultKill {
		f.ageing.Go(f.follow)
		for _, b := range f.bricks {
			if err := f.Start(ctx, b.Volume, true); err != nil {
				return err
			}
		}
		return nil
	}
	if err := server.StartManagement(ctx); err != nil {
		return err
	}
	f.ageing.Go(f.follow)
	return nil
}

const followInterval = 100 * time.Millisecond // time between looks at missing bricks

// follow notes the return of each brick.
func (f *fault) follow() {
	ctx := f.ages
	var reading sync.WaitGroup
	defer reading.Wait()
	for left := len(f.bricks); left > 0; {
		select {
		case <-time.After(followInterval):
		case <-ctx.Done():
			return
		}
		serving, err := f.Server(0).Bricks(ctx)
		if err != nil {
			continue // glusterd is busy
		}
		pids := make(map[string]int, len(serving))
		for _, b := range serving {
			pids[b.Volume] = b.PID
		}
		for _, b := range f.bricks {
			pid := pids[b.Volume]
			if b.back || pid == 0 || pid == b.pid && f.fault != faultRestart {
				continue
			}
			b.back = true
			left--
			f.reach(b, back)
			reading.Go(func() { f.recover(ctx, b) })
		}
		f.rec.Emit(&record.Reading{Source: sourceFault, Values: map[string]float64{"down": float64(left)}})
	}
}

func (f *fault) reach(b *hurt, milestone string) {
	f.mu.Lock()
	f.progress.Moved = f.rec.Clock.Now()
	f.mu.Unlock()
	f.rec.Emit(&record.Object{Object: b.name, Slot: sourceFault, Milestone: milestone, Component: component})
}

// recover reads the file of a brick's volume, if it has one, until it has the right content.
func (f *fault) recover(ctx context.Context, b *hurt) {
	for b.volume.written {
		path := f.file(b.Volume)
		err := f.within(b.volume, func() error { return verify(path, b.Volume, f.write) })
		if err == nil {
			f.reach(b, verified)
			break
		}
		if reason := wrongData; errors.Is(err, errWrong) || errors.Is(err, errHung) {
			if errors.Is(err, errHung) {
				reason = mountHung
			}
			f.mu.Lock()
			f.progress.Failed++
			f.mu.Unlock()
			f.rec.Emit(&record.State{Object: b.name, Slot: sourceFault, Reason: reason, Message: err.Error(), Failed: true})
			return
		}
		select {
		case <-time.After(followInterval): // the client reconnects after a while
		case <-ctx.Done():
			return
		}
	}
	f.arrived(b.volume)
	f.reach(b, recovered)
}
