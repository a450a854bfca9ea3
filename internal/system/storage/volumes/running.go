package volumes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

type running struct {
	*gluster.System
	settings
	rec   system.Recorder
	axis  string
	arm   string
	meter *meter

	unserved atomic.Bool     // the last started volume is not served
	ages     context.Context // ends before GlusterFS does
	stopAge  context.CancelFunc
	ageing   sync.WaitGroup
	unfollow func() // the storage servers; nil if they are not followed

	mu       sync.Mutex
	numbers  *int
	asked    int // volumes
	volumes  map[string]*volume
	progress system.Progress
}

type volume struct {
	number  int
	name    string
	options map[string]string
	mounted bool
	written bool
	ready   bool
	leaving bool   // being deleted
	probed  bool   // a probe of its mount is under way
	lost    string // the reason why it is no longer ready, "" for none
}

// newVolumes returns n volumes to be made. The caller holds the lock.
func (r *running) newVolumes(n int) []*volume {
	list := make([]*volume, n)
	for k := range list {
		*r.numbers++
		list[k] = &volume{number: *r.numbers, name: fmt.Sprintf("volume-%d", *r.numbers), options: r.optionsOf(*r.numbers)}
	}
	return list
}

// provide creates a volume and makes it ready. Each command has a bound, and the user cannot cut it off,
// since its outcome would be unknown.
func (r *running) provide(v *volume, n int, open bool) record.Slot {
	slot := record.Slot{Slot: v.name, Component: component, Units: 1, Iteration: n, Outcome: record.SlotCreated}
	ctx := context.Background()
	if err := r.Create(ctx, v.name, v.options); err != nil {
		slot.Outcome, slot.Error = record.SlotFailed, r.explain(err)
		return slot
	}
	r.mu.Lock()
	r.volumes[v.name] = v
	r.progress.Left = 0
	r.mu.Unlock()
	r.reach(v.name, created)
	if reason, err := r.finish(ctx, v, r.reach); err != nil {
		r.fail(v.name, reason, r.explain(err))
		return slot
	}
	r.arrived(v)
	r.reach(v.name, ready)
	if open {
		r.age(v)
	}
	return slot
}

// finish starts, mounts and writes to a created volume.
func (r *running) finish(ctx context.Context, v *volume, reach func(volume, milestone string)) (reason string, err error) {
	if err := r.Start(ctx, v.name, false); err != nil {
		return startFailed, err
	}
	if !r.serves(v) {
		return startFailed, fmt.Errorf("GlusterFS says that volume %s has started, and no process serves its brick", v.name)
	}
	reach(v.name, started)
	if !r.mount {
		return "", nil
	}
	bounded, cancel := context.WithTimeout(ctx, r.patience)
	_, err = r.Client().Mount(bounded, v.name)
	cancel()
	if err != nil {
		return mountFailed, errors.Join(err, r.Client().Abort(v.name))
	}
	r.mu.Lock()
	v.mounted = true
	r.mu.Unlock()
	reach(v.name, mounted)
	if r.write == 0 {
		return "", nil
	}
	err = r.within(v, func() error { return write(r.file(v.name), v.name, r.write) })
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return noSpace, err
	case errors.Is(err, errHung):
		return mountHung, err
	case err != nil:
		return writeFailed, err
	}
	r.mu.Lock()
	v.written = true
	r.mu.Unlock()
	reach(v.name, written)
	return "", nil
}

// Bounds of the time until a started volume's bricks are served, and after one was not.
const (
	servedWithin = 10 * time.Second
	servedAgain  = 200 * time.Millisecond
)

// serves reports whether the bricks of a started volume are served in time.
func (r *running) serves(v *volume) bool {
	bound := servedWithin
	if r.unserved.Load() {
		bound = servedAgain
	}
	deadline := time.After(bound)
	for !r.Serving(v.name) {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			r.unserved.Store(true)
			return false
		}
	}
	r.unserved.Store(false)
	return true
}

func (r *running) file(volume string) string {
	return r.Client().Path(filepath.Join(r.Client().Mounted(volume), "data"))
}

// errHung says that a mount did not answer in time, and was aborted.
var errHung = errors.New("the mount did not answer, and its FUSE connection was aborted")

// within uses a mounted volume's files, and aborts a mount that does not answer in time.
func (r *running) within(v *volume, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	patience := time.NewTimer(r.patience)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
	}
	err := r.Client().Abort(v.name)
	r.mu.Lock()
	v.mounted = false
	r.mu.Unlock()
	return errors.Join(fmt.Errorf("%w after %v", errHung, r.patience), err)
}

// age deletes a volume of the axis rate at the end of its life.
func (r *running) age(v *volume) {
	ctx := r.ages
	r.ageing.Go(func() {
		select {
		case <-time.After(r.life):
		case <-ctx.Done():
			return
		}
		if err := r.remove(ctx, v, func(string) {}); err != nil && ctx.Err() == nil {
			r.rec.Emit(&record.State{Object: v.name, Reason: deleteFailed, Message: r.explain(err)})
		}
	})
}

// remove deletes a volume, and reports the steps of that.
func (r *running) remove(ctx context.Context, v *volume, reached func(string)) error {
	r.mu.Lock()
	v.leaving = true
	wasMounted := v.mounted
	r.mu.Unlock()
	if wasMounted {
		if err := r.Client().Unmount(ctx, v.name); err != nil {
			return err
		}
		reached(unmounted)
	}
	if err := r.Stop(ctx, v.name); err != nil {
		return err
	}
	reached(stopped)
	if err := r.Delete(ctx, v.name); err != nil {
		return err
	}
	r.mu.Lock()
	delete(r.volumes, v.name)
	if r.axis == axisRate {
		r.progress.There--
	}
	r.mu.Unlock()
	r.reach(v.name, deleted)
	return nil
}

// arrived notes that a volume, or its result, is there.
func (r *running) arrived(v *volume) {
	r.mu.Lock()
	v.ready = true
	r.progress.There++
	r.progress.Arrived++
	r.mu.Unlock()
}

func (r *running) reach(object, milestone string) {
	r.mu.Lock()
	r.progress.Moved = r.rec.Clock.Now()
	r.mu.Unlock()
	r.rec.Emit(&record.Object{Object: object, Milestone: milestone, Component: component})
}

const component = "volume" // workloads' component

func (r *running) fail(object, reason, message string) {
	r.mu.Lock()
	r.progress.Failed++
	r.progress.Moved = r.rec.Clock.Now()
	r.mu.Unlock()
	r.rec.Emit(&record.State{Object: object, Reason: reason, Message: message, Failed: true})
}

const leastFree = 1 << 20 // free space of bricks below which they count as full

// explain adds to an error what the servers are short of.
func (r *running) explain(err error) string { return err.Error() + short(r.Server(0)) }

// short says what a server is short of: of files, if a process has none for another brick.
func short(first *gluster.Server) string {
	text := ""
	if open, limit, err := first.OpenFiles(); err == nil && limit > 0 && open+brickFiles > limit {
		text += fmt.Sprintf("; the process that serves bricks has %d of %d files open", open, limit)
	}
	if free, freeErr := first.FreeBytes(); freeErr == nil && free < leastFree {
		text += "; the bricks' file system is full"
	}
	if ports, portsErr := first.Ports(); portsErr == nil && ports > gluster.LastPort-gluster.FirstPort {
		text += "; every port for bricks is in use"
	}
	if first.ListensInVain() {
		text += "; a process that serves bricks has listened in vain for a volume that was deleted"
	}
	return text
}

// look asks glusterd for the bricks, and records volumes that lack or regain one.
func (r *running) look(ctx context.Context) error {
	serving, err := r.Bricks(ctx)
	stalled := errors.Is(err, gluster.ErrStalled)
	if err != nil && !stalled {
		return err
	}
	lack := short(r.Server(0))
	whole := make(map[string]int) // served bricks by volume
	down := make(map[string]string)
	for _, b := range serving {
		if b.PID > 0 {
			whole[b.Volume]++
		} else {
			down[b.Volume] = fmt.Sprintf("its brick on storage server %d is down%s", b.Server+1, lack)
		}
	}
	r.mu.Lock()
	var news []*record.State
	for name, v := range r.volumes {
		if !v.ready || v.leaving {
			continue
		}
		lost, why := "", ""
		switch {
		case stalled:
			lost, why = noAnswer, err.Error()
		case whole[name] != r.gluster.Replica:
			lost, why = brickDown, down[name]
		}
		switch {
		case lost != "" && v.lost == "":
			v.lost = lost
			r.progress.There--
			news = append(news, &record.State{Object: name, Reason: lost, Message: why, Lost: ready})
		case lost == "" && (v.lost == brickDown || v.lost == noAnswer):
			v.lost = ""
			r.progress.There++
			news = append(news, &record.State{Object: name, Regained: ready})
		}
	}
	r.mu.Unlock()
	for _, s := range news {
		r.rec.Emit(s)
	}
	return nil
}

// content returns the content of a volume's file, which follows from its name and is not stored.
func content(volume string, size int64) io.Reader {
	h := fnv.New128a()
	h.Write([]byte(volume))
	var seed [32]byte
	copy(seed[:], h.Sum(nil))
	return io.LimitReader(rand.NewChaCha8(seed), size)
}

// write writes a volume's file, and returns when it is on its bricks.
func write(path, volume string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write to volume %s: %w", volume, err)
	}
	_, err = io.Copy(f, content(volume, size))
	if err == nil {
		err = f.Sync()
	}
	if err = cmp.Or(err, f.Close()); err != nil {
		return fmt.Errorf("write to volume %s: %w", volume, err)
	}
	return nil
}

// errWrong says that a file has other content than was written.
var errWrong = errors.New("what was read is not what was written")

func verify(path, volume string, size int64) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read volume %s: %w", volume, err)
	}
	defer f.Close()
	got, want := fnv.New128a(), fnv.New128a()
	if _, err := io.Copy(got, f); err != nil {
		return fmt.Errorf("read volume %s: %w", volume, err)
	}
	if _, err := io.Copy(want, content(volume, size)); err != nil {
		return fmt.Errorf("read volume %s: %w", volume, err)
	}
	if string(got.Sum(nil)) != string(want.Sum(nil)) {
		return fmt.Errorf("read volume %s: %w", volume, errWrong)
	}
	return nil
}

// Intervals and bounds of the looks at volumes.
const (
	watchInterval = time.Second
	askedAtATime  = 50
	lookAgain     = 5 // seconds, while a brick is down: glusterd's state may be late
)

// watch records volumes that fail later: the process of a brick ends, or a mount does not answer.
func (r *running) watch() {
	ctx := r.ages
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var ran map[process]bool
	for turn := 0; ; turn++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		runs := r.meter.bricks()
		ended := false
		for p := range ran {
			ended = ended || !runs[p]
		}
		ran = runs
		if ended || turn%lookAgain == 0 && r.anyDown() {
			_ = r.look(ctx) // the end of the step looks again
		}
		r.askMounts(ctx, turn)
	}
}

// anyDown reports whether a volume lacks a brick.
func (r *running) anyDown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, v := range r.volumes {
		if v.lost == brickDown || v.lost == noAnswer {
			return true
		}
	}
	return false
}

// askMounts probes some of the mounts, in turns.
func (r *running) askMounts(ctx context.Context, turn int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := slices.Sorted(maps.Keys(r.volumes))
	for k := range min(askedAtATime, len(names)) {
		v := r.volumes[names[(turn*askedAtATime+k)%len(names)]]
		if !v.mounted || !v.ready || v.leaving || v.probed || v.lost != "" {
			continue
		}
		v.probed = true
		r.ageing.Go(func() {
			var fs unix.Statfs_t
			err := r.within(v, func() error { return unix.Statfs(r.Client().Path(r.Client().Mounted(v.name)), &fs) })
			if ctx.Err() == nil {
				r.answered(v, err)
			}
		})
	}
}

// answered notes the answer of a mount.
func (r *running) answered(v *volume, err error) {
	r.mu.Lock()
	v.probed = false
	fell := err != nil && !v.leaving && v.lost == ""
	if fell {
		if v.lost = mountFailed; errors.Is(err, errHung) {
			v.lost = mountHung
		}
		r.progress.There--
	}
	r.mu.Unlock()
	if fell {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		r.rec.Emit(&record.State{Object: v.name, Reason: v.lost, Message: fmt.Sprintf("mount of volume %s: %s", v.name, text), Lost: ready})
	}
}
