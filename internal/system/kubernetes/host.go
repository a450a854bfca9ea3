package kubernetes

import (
	"context"
	"errors"

	"plimsoll.dev/plimsoll/internal/lab"
	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
)

// Needs implements system.Provider: only labs run programs of this machine.
func (Provider) Needs() []proc.Program { return lab.Needs() }

// SweepHost implements system.Sweeper: it removes labs whose command has ended, and control groups of
// removed labs.
func (p Provider) SweepHost(ctx context.Context, h system.Host, removes func(run string) bool) ([]system.Leftover, error) {
	dir, err := h.StateDir()
	if err != nil {
		return nil, err
	}
	store := lab.Store{Root: dir, Executable: h.Executable}
	labs, err := store.Sweep(ctx, !removes(""))
	name := p.Declare().Name
	var list []system.Leftover
	for _, l := range labs {
		list = append(list, system.Leftover{Target: name, Left: l})
	}
	groups, groupsErr := store.SweepGroups(ctx, !removes(""))
	if len(groups) > 0 {
		list = append(list, system.Leftover{Target: name, Left: room.Left{Things: groups}})
	}
	return list, errors.Join(err, groupsErr)
}
