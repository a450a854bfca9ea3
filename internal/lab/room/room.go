// Package room makes directories for runs to work in. The next run removes those of a killed run.
package room

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/text/flock"
)

// Room holds the directory of one run. The kernel releases its lock when the run dies.
type Room struct {
	Dir  string
	lock *os.File
}

const lockFile = "lock"

// Make makes a run's directory below state, among those of a kind such as routers.
func Make(state, kind, run string) (*Room, error) {
	rooms := filepath.Join(state, kind)
	if err := os.MkdirAll(rooms, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", kind, err)
	}
	dir, err := os.MkdirTemp(rooms, strings.Map(inName, run)+"-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for %s: %w", kind, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &Room{dir, lock}, nil
}

func inName(c rune) rune {
	if c == '/' || c == '*' || c < ' ' {
		return '-'
	}
	return c
}

// lockDir locks a directory; flock.ErrHeld means that another process holds the lock.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := flock.Exclusive(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// Remove removes the directory.
func (r *Room) Remove() error {
	err := os.RemoveAll(r.Dir)
	r.lock.Close()
	if err != nil {
		return fmt.Errorf("remove the run's directory: %w", err)
	}
	return nil
}

// Left lists what a run has left on this machine, or works with.
type Left struct {
	Run    string   `json:"run"`    // "" if unknown
	Things []string `json:"things"` // directories by their paths, other things by description
	Alive  bool     `json:"alive"`  // means that it may be in use and stays; Why says more
	Why    string   `json:"why,omitempty"`
}

// Sweep removes the directories of killed runs, which have no processes, and what elsewhere (or nil) names
// for each. It returns all runs, also live and rejected ones.
func Sweep(state, kind string, removes func(run string) bool, elsewhere func(dir string) ([]string, error)) ([]Left, error) {
	entries, err := os.ReadDir(filepath.Join(state, kind))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look for %s of runs that were killed: %w", kind, err)
	}
	var list []Left
	for _, e := range entries {
		left, err := sweepOne(filepath.Join(state, kind, e.Name()), removes, elsewhere)
		if errors.Is(err, os.ErrNotExist) {
			continue // its run has just ended
		}
		if err != nil {
			return list, fmt.Errorf("remove what a run that was killed has left: %w", err)
		}
		list = append(list, left)
	}
	return list, nil
}

func sweepOne(dir string, removes func(run string) bool, elsewhere func(dir string) ([]string, error)) (Left, error) {
	run := filepath.Base(dir)
	left := Left{Run: run[:max(0, strings.LastIndexByte(run, '-'))], Things: []string{dir}}
	lock, err := lockDir(dir)
	if left.Alive = errors.Is(err, flock.ErrHeld); left.Alive {
		return left, nil
	}
	if err != nil {
		return left, err
	}
	defer lock.Close()
	if elsewhere != nil {
		paths, err := elsewhere(dir)
		if err != nil {
			return left, err
		}
		left.Things = append(paths, dir) // dir names the others, and goes last
	}
	for _, path := range left.Things {
		if !removes(left.Run) {
			break
		}
		if err := RemoveBounded(path); err != nil {
			return left, err
		}
	}
	return left, nil
}

const removeBound = time.Minute

// RemoveBounded removes a directory whose file system may hang, by another process that it leaves after a
// minute: a thread that waits in the kernel would keep this one from ending.
func RemoveBounded(dir string) error { return removeWithin(dir, removeBound) }

func removeWithin(dir string, bound time.Duration) error {
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var said strings.Builder
	cmd := exec.Command("rm", "-rf", "--", dir)
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("remove %s: %w: %s", dir, err, strings.TrimSpace(said.String()))
		}
		return nil
	case <-time.After(bound):
		return fmt.Errorf("%s is not removed after %v: its file system does not answer; process %d removes it once it does", dir, bound, cmd.Process.Pid)
	}
}
