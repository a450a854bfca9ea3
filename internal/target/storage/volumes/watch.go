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
	"plimsoll.dev/plimsoll/internal/target/storage/gluster"
)

// How often volumes are looked at, and how many mounts are asked at a time.
const (
	watchInterval = time.Second
	askedAtATime  = 50
	lookAgain     = 5 // seconds, while a brick is down: glusterd may not know yet that it serves
)

// watch notes volumes that fail while they are in place: bricks whose process has
// ended, and mounts that do not answer.
func (i *instance) watch(ctx context.Context, sys *gluster.System) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	var ran map[process]bool
	for turn := 0; ; turn++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		runs := i.meter.bricks()
		ended := false
		for p := range ran {
			ended = ended || !runs[p]
		}
		ran = runs
		if ended || turn%lookAgain == 0 && i.anyDown() {
			_ = i.look(ctx, sys) // what fails now is asked for again at the end of the step
		}
		i.askMounts(ctx, sys, turn)
	}
}

// anyDown reports whether a volume lacks a brick.
func (i *instance) anyDown() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, v := range i.volumes {
		if v.lost == brickDown || v.lost == noAnswer {
			return true
		}
	}
	return false
}

// askMounts asks some of the mounts, in turns, whether they answer.
func (i *instance) askMounts(ctx context.Context, sys *gluster.System, turn int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	names := slices.Sorted(maps.Keys(i.volumes))
	for k := range min(askedAtATime, len(names)) {
		v := i.volumes[names[(turn*askedAtATime+k)%len(names)]]
		if !v.mounted || !v.ready || v.leaving || v.probed || v.lost != "" {
			continue
		}
		v.probed = true
		i.ageing.Go(func() {
			var fs unix.Statfs_t
			err := i.within(sys, v, func() error { return unix.Statfs(sys.Client().Path(sys.Client().Mounted(v.name)), &fs) })
			if ctx.Err() == nil {
				i.answered(v, err)
			}
		})
	}
}

// answered notes how a mount answered.
func (i *instance) answered(v *volume, err error) {
	i.mu.Lock()
	v.probed = false
	fell := err != nil && !v.leaving && v.lost == ""
	if fell {
		if v.lost = mountFailed; errors.Is(err, errHung) {
			v.lost = mountHung
		}
		i.progress.There--
	}
	i.mu.Unlock()
	if fell {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		i.rec.Emit(&record.State{Object: v.name, Reason: v.lost, Message: fmt.Sprintf("mount of volume %s: %s", v.name, text), Lost: ready})
	}
}
