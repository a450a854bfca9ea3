package volumes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

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
