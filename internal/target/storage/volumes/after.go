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
	"plimsoll.dev/plimsoll/internal/target"
	"plimsoll.dev/plimsoll/internal/target/storage/gluster"
)

// populate makes volumes that a step needs before it begins, until there are so
// many: what is measured is what comes after.
func (i *instance) populate(ctx context.Context, sys *gluster.System, want int) error {
	i.mu.Lock()
	list := i.newVolumes(max(want-len(i.volumes), 0))
	i.mu.Unlock()
	next := make(chan *volume)
	errs := make([]error, i.settings.creators)
	var all sync.WaitGroup
	for k := range errs {
		all.Go(func() {
			for v := range next {
				if errs[k] == nil {
					errs[k] = i.make(ctx, sys, v)
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

// make makes a volume that is not measured.
func (i *instance) make(ctx context.Context, sys *gluster.System, v *volume) error {
	if err := sys.Create(ctx, v.name, v.options); err != nil {
		return errors.New(i.explain(sys, err))
	}
	i.mu.Lock()
	i.volumes[v.name] = v
	i.mu.Unlock()
	if _, err := i.finish(ctx, sys, v, func(string, string) {}); err != nil {
		return errors.New(i.explain(sys, err))
	}
	i.mu.Lock()
	v.ready = true
	i.mu.Unlock()
	return nil
}

// raiseDeletions prepares the deletion of volumes, which are made first.
func (i *instance) raiseDeletions(ctx context.Context, sys *gluster.System, n int) (target.Batch, error) {
	if err := i.populate(ctx, sys, n); err != nil {
		return target.Batch{}, err
	}
	select {
	case <-time.After(i.settings.wait):
	case <-ctx.Done():
		return target.Batch{}, context.Cause(ctx)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	list := slices.SortedFunc(maps.Values(i.volumes), func(a, b *volume) int { return a.number - b.number })[:n]
	return target.Batch{Requests: n, Units: n, Reached: float64(n), Send: func(_ context.Context, k int) record.Slot {
		v := list[k]
		slot := record.Slot{Slot: v.name, Component: component, Units: 1, Iteration: k, Outcome: record.SlotCreated}
		if err := i.remove(context.Background(), sys, v, func(milestone string) { i.reach(v.name, milestone) }); err != nil {
			slot.Outcome, slot.Error = record.SlotFailed, err.Error()
			return slot
		}
		i.mu.Lock()
		i.progress.There++
		i.progress.Arrived++
		i.mu.Unlock()
		return slot
	}}, nil
}

// hurt is a brick that a fault hits.
type hurt struct {
	gluster.Brick
	volume *volume
	name   string // of the object
	pid    int    // that served it before
	back   bool
}

// raiseBricks prepares a fault with so many bricks on the first storage server.
func (i *instance) raiseBricks(ctx context.Context, level target.Level) (target.Batch, error) {
	n := int(math.Floor(level.Value + 1e-9))
	i.mu.Lock()
	lower := n < len(i.volumes)
	i.mu.Unlock()
	if lower {
		if err := i.empty(); err != nil {
			return target.Batch{}, err
		}
	}
	sys, err := i.system(ctx, level.Arm)
	if err != nil {
		return target.Batch{}, err
	}
	if err := i.populate(ctx, sys, n); err != nil {
		return target.Batch{}, err
	}
	serving, err := sys.Bricks(ctx)
	if err != nil {
		return target.Batch{}, err
	}
	i.mu.Lock()
	var list []*hurt
	for _, b := range serving {
		v := i.volumes[b.Volume]
		if b.Server != 0 || v == nil {
			continue
		}
		if b.PID == 0 {
			i.mu.Unlock()
			return target.Batch{}, fmt.Errorf("a brick of %s is down before any fault", b.Volume)
		}
		list = append(list, &hurt{Brick: b, volume: v, name: b.Volume + "/server-1", pid: b.PID})
	}
	i.mu.Unlock()
	victim := 0
	if i.settings.fault == faultKill {
		victim = busiest(list)
		list = slices.DeleteFunc(list, func(b *hurt) bool { return b.pid != victim })
	}
	return target.Batch{Requests: 1, Units: len(list), Reached: float64(n), Send: func(context.Context, int) record.Slot {
		slot := record.Slot{Slot: sourceFault, Component: component, Units: len(list), Grouped: true, Outcome: record.SlotCreated}
		if err := i.strike(sys, victim, list); err != nil {
			slot.Outcome, slot.Error = record.SlotFailed, err.Error()
		}
		return slot
	}}, nil
}

// busiest is the process that serves most of the bricks, the lowest of several.
func busiest(list []*hurt) int {
	count := make(map[int]int)
	for _, b := range list {
		count[b.pid]++
	}
	best := 0
	for _, pid := range slices.Sorted(maps.Keys(count)) {
		if best == 0 || count[pid] > count[best] {
			best = pid
		}
	}
	return best
}

// strike makes the fault, begins to look for the bricks' return and does what
// brings them back.
func (i *instance) strike(sys *gluster.System, victim int, list []*hurt) error {
	ctx := context.Background()
	server := sys.Server(0)
	running, err := sys.Processes(func(int, int) bool { return false })
	if err != nil {
		return err
	}
	var pids []int
	for _, p := range running {
		if p.Server != 0 {
			continue
		}
		switch i.settings.fault {
		case faultKill:
			if p.PID == victim {
				pids = append(pids, p.PID)
			}
		case faultRestart:
			if p.Part == gluster.Management {
				pids = append(pids, p.PID)
			}
		default:
			pids = append(pids, p.PID)
		}
	}
	for _, b := range list {
		i.rec.Emit(&record.Object{Object: b.name, Slot: sourceFault, Milestone: hit, Component: component})
	}
	if err := server.Kill(pids...); err != nil {
		return err
	}
	i.mu.Lock()
	ages := i.ages
	i.mu.Unlock()
	if i.settings.fault == faultKill {
		i.ageing.Go(func() { i.followBricks(ages, sys, list) })
		for _, b := range list {
			if err := sys.Start(ctx, b.Volume, true); err != nil {
				return err
			}
		}
		return nil
	}
	if err := sys.Server(0).StartManagement(ctx); err != nil {
		return err
	}
	i.ageing.Go(func() { i.followBricks(ages, sys, list) })
	return nil
}

// followInterval is how often bricks are asked for that are not back.
const followInterval = 100 * time.Millisecond

// followBricks notes when each brick is back.
func (i *instance) followBricks(ctx context.Context, sys *gluster.System, list []*hurt) {
	var reading sync.WaitGroup
	defer reading.Wait()
	for left := len(list); left > 0; {
		select {
		case <-time.After(followInterval):
		case <-ctx.Done():
			return
		}
		serving, err := sys.Server(0).Bricks(ctx)
		if err != nil {
			continue // glusterd is busy: it is asked again
		}
		pids := make(map[string]int, len(serving))
		for _, b := range serving {
			pids[b.Volume] = b.PID
		}
		for _, b := range list {
			pid := pids[b.Volume]
			if b.back || pid == 0 || pid == b.pid && i.settings.fault != faultRestart {
				continue
			}
			b.back = true
			left--
			i.reachBrick(b, back)
			reading.Go(func() { i.recover(ctx, sys, b) })
		}
		i.rec.Emit(&record.Reading{Source: sourceFault, Values: map[string]float64{"down": float64(left)}})
	}
}

func (i *instance) reachBrick(b *hurt, milestone string) {
	i.mu.Lock()
	i.progress.Moved = i.rec.Clock.Now()
	i.mu.Unlock()
	i.rec.Emit(&record.Object{Object: b.name, Slot: sourceFault, Milestone: milestone, Component: component})
}

// recover reads the file of a brick's volume until it is what was written, if one
// was.
func (i *instance) recover(ctx context.Context, sys *gluster.System, b *hurt) {
	for b.volume.written {
		path := file(sys, sys.Client().Mounted(b.Volume))
		err := i.within(sys, b.volume, func() error { return verify(path, b.Volume, i.settings.write) })
		if err == nil {
			i.reachBrick(b, verified)
			break
		}
		if reason := wrongData; errors.Is(err, errWrong) || errors.Is(err, errHung) {
			if errors.Is(err, errHung) {
				reason = mountHung
			}
			i.mu.Lock()
			i.progress.Failed++
			i.mu.Unlock()
			i.rec.Emit(&record.State{Object: b.name, Slot: sourceFault, Reason: reason, Message: err.Error(), Failed: true})
			return
		}
		select {
		case <-time.After(followInterval): // the client connects anew after a while
		case <-ctx.Done():
			return
		}
	}
	i.mu.Lock()
	i.progress.There++
	i.progress.Arrived++
	i.mu.Unlock()
	i.reachBrick(b, recovered)
}
