// Package room makes directories that a run works in: those of a run that was
// killed are found and removed by the next one.
package room

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Room is the directory of one run. It is locked for as long as the run lives:
// the kernel lets go of the lock of one that was killed.
type Room struct {
	Dir  string
	lock *os.File
}

const lockFile = "lock"

// Make makes the directory of a run, among those of a kind, such as routers,
// below a state directory.
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

// lockDir locks a directory; EWOULDBLOCK says that another process has.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
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

// RemoveDead removes the directories of a kind whose runs were killed. Before,
// where it is not nil, is called for each of them first: it removes what the run
// has left elsewhere. Processes must have died with the run.
func RemoveDead(state, kind string, before func(dir string) error) error {
	entries, err := os.ReadDir(filepath.Join(state, kind))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for %s of runs that were killed: %w", kind, err)
	}
	for _, e := range entries {
		dir := filepath.Join(state, kind, e.Name())
		lock, err := lockDir(dir)
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, os.ErrNotExist) {
			continue // its run is alive, or has just ended
		}
		if err == nil {
			if before != nil {
				err = before(dir)
			}
			if err == nil {
				err = os.RemoveAll(dir)
			}
			lock.Close()
		}
		if err != nil {
			return fmt.Errorf("remove what a run that was killed has left: %w", err)
		}
	}
	return nil
}
