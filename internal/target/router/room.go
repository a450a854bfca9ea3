package router

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// room is the directory of one run's routers. It is locked for as long as the
// run lives: the kernel lets go of the lock of one that was killed.
type room struct {
	dir  string
	lock *os.File
}

const (
	roomsDir = "routers"
	lockFile = "lock"
)

// makeRoom makes the directory of a run.
func makeRoom(state, run string) (*room, error) {
	rooms := filepath.Join(state, roomsDir)
	if err := os.MkdirAll(rooms, 0o700); err != nil {
		return nil, fmt.Errorf("make a directory for routers: %w", err)
	}
	dir, err := os.MkdirTemp(rooms, strings.Map(inName, run)+"-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for routers: %w", err)
	}
	lock, err := lockRoom(dir)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return &room{dir, lock}, nil
}

func inName(c rune) rune {
	if c == '/' || c == '*' || c < ' ' {
		return '-'
	}
	return c
}

// lockRoom locks a directory; errBusy says that another process has.
func lockRoom(dir string) (*os.File, error) {
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

// remove removes the directory.
func (r *room) remove() error {
	err := os.RemoveAll(r.dir)
	r.lock.Close()
	if err != nil {
		return fmt.Errorf("remove the routers' directory: %w", err)
	}
	return nil
}

// removeDead removes directories of runs that were killed. Their processes died
// with them.
func removeDead(state string) error {
	entries, err := os.ReadDir(filepath.Join(state, roomsDir))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for routers of runs that were killed: %w", err)
	}
	for _, e := range entries {
		dir := filepath.Join(state, roomsDir, e.Name())
		lock, err := lockRoom(dir)
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, os.ErrNotExist) {
			continue // its run is alive, or has just ended
		}
		if err == nil {
			err = os.RemoveAll(dir)
			lock.Close()
		}
		if err != nil {
			return fmt.Errorf("remove what a run that was killed has left: %w", err)
		}
	}
	return nil
}
