package io

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local"
	"plimsoll.dev/plimsoll/internal/system/storage/gluster"
)

// glusterOf reads the parameters of the run's own GlusterFS. given has the named ones.
func (s *settings) glusterOf(p workload.Params, given map[string]string) error {
	if len(s.paths) > 0 {
		for _, name := range gluster.Params() {
			if _, ok := given[name]; ok {
				return system.ParamMistake(name, "leave path out", "it is of a GlusterFS of the run's own, and path names something else")
			}
		}
		return nil
	}
	g, err := gluster.SettingsOf(p)
	s.gluster = &g
	return err
}

// glusterfs provides mounted volumes of the run's own GlusterFS.
type glusterfs struct {
	*gluster.System
	mounted map[int]string

	mu     sync.Mutex
	served []string // mounted volumes
}

func newGlusterfs(ctx context.Context, s *session, g gluster.Settings) (*glusterfs, error) {
	dir, err := os.MkdirTemp(s.Room.Dir, "gluster-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for GlusterFS: %w", err)
	}
	g.Dir, g.Executable, g.Tied = dir, s.Executable, s.Tied
	sys, err := gluster.Open(ctx, g)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start GlusterFS: %w", err), os.RemoveAll(dir))
	}
	return &glusterfs{System: sys, mounted: make(map[int]string)}, nil
}

func (g *glusterfs) name(n int) string { return "volume-" + strconv.Itoa(n+1) }

func (g *glusterfs) volume(ctx context.Context, n int) (string, error) {
	if at, ok := g.mounted[n]; ok {
		return at, nil
	}
	err := g.Create(ctx, g.name(n), nil)
	if err == nil {
		err = g.System.Start(ctx, g.name(n), false)
	}
	if err == nil {
		g.mounted[n], err = g.Client().Mount(ctx, g.name(n))
	}
	if err != nil {
		delete(g.mounted, n)
		return "", err
	}
	g.mu.Lock()
	g.served = append(g.served, g.name(n))
	g.mu.Unlock()
	return g.mounted[n], proc.Least().Give(g.Client().Path(g.mounted[n]))
}

func (g *glusterfs) command(dir, name string, args ...string) *exec.Cmd {
	cmd := g.Client().Command(name, args...)
	cmd.Dir = dir
	return cmd
}

func (g *glusterfs) start(cmd *exec.Cmd, how proc.How) (*proc.Process, error) {
	return g.Client().Start(cmd, how)
}

func (g *glusterfs) below() string { return g.Dir }

func (g *glusterfs) link(long time.Duration) (float64, int, error) {
	bytes, err := g.Link(long)
	return bytes, g.Replica, err
}

func (g *glusterfs) places() (record.Noun, []local.Place) {
	return g.Places(func() []string {
		g.mu.Lock()
		defer g.mu.Unlock()
		return slices.Clone(g.served)
	})
}

func (g *glusterfs) abort(n int) error { return g.Client().Abort(g.name(n)) }

func (g *glusterfs) readings() []record.Reading {
	processes, err := g.Processes(func(int, int) bool { return false })
	if err != nil {
		return nil // it is being closed
	}
	sums := make(map[gluster.Part]proc.Usage)
	for _, p := range processes {
		sums[p.Part] = sums[p.Part].Plus(p.Usage)
	}
	var list []record.Reading
	for _, part := range gluster.Parts() {
		if u, ok := sums[part]; ok {
			list = append(list, u.Sample(string(part)))
		}
	}
	return list
}

func (g *glusterfs) close() error {
	g.Close()
	return room.RemoveBounded(g.Dir)
}
