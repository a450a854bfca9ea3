package io

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local"
)

// ground makes and holds volumes.
type ground interface {
	// volume makes volume n, if missing, for proc.Least, and returns its directory as its processes see it.
	volume(ctx context.Context, n int) (string, error)
	// command prepares a process of the ground in a directory, and start starts it.
	command(dir, name string, args ...string) *exec.Cmd
	start(cmd *exec.Cmd, how proc.How) (*proc.Process, error)
	below() string // returns a directory of this machine on the file system below the volumes
	// link measures the bytes per second of the network to the volumes, 0 if unknown, and how often a
	// written byte crosses it.
	link(long time.Duration) (bytes float64, copies int, err error)
	places() (record.Noun, []local.Place) // returns the places of the load, with their noun
	abort(n int) error                    // ends what hangs in a volume, if possible
	readings() []record.Reading           // returns its own usage
	close() error                         // removes the volumes
}

const volumesPrefix = "plimsoll-io-" // begins the names of the directories for volumes

// directories makes volumes as directories of existing file systems.
type directories struct {
	session *session
	bases   []string // for volumes
}

// newDirectories makes a directory for volumes in each path.
func newDirectories(s *session, paths []string) (*directories, error) {
	d := &directories{session: s}
	for _, path := range paths {
		base, err := os.MkdirTemp(path, volumesPrefix)
		if err == nil {
			d.bases = append(d.bases, base)
			err = s.NoteElsewhere(d.bases...)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("make a directory for volumes: %w", err), d.close())
		}
	}
	return d, nil
}

func (d *directories) volume(_ context.Context, n int) (string, error) {
	dir := filepath.Join(d.bases[n%len(d.bases)], "volume-"+strconv.Itoa(n+1))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make volume %d: %w", n+1, err)
	}
	return dir, proc.Least().Give(dir)
}

func (d *directories) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	return cmd
}

func (d *directories) start(cmd *exec.Cmd, how proc.How) (*proc.Process, error) {
	how.On = d.session.Tied.Do
	return proc.Start(cmd, how)
}

func (d *directories) below() string { return d.bases[0] }

func (d *directories) places() (noun record.Noun, list []local.Place) {
	for _, base := range d.bases {
		device, _ := deviceOf(base)
		list = append(list, local.Place{Name: filepath.Dir(base), Look: func() record.Place {
			var fs unix.Statfs_t
			now, err := deviceOf(base)
			switch {
			case err != nil || now != device:
				return record.Place{State: record.PlaceGone, What: "is gone, or is another one"}
			case unix.Statfs(base, &fs) == nil && fs.Flags&unix.ST_RDONLY != 0:
				return record.Place{State: record.PlaceNotReady, What: "can only be read"}
			}
			return record.Place{}
		}})
	}
	return record.Noun{One: "file system", Many: "file systems"}, list
}

func deviceOf(path string) (uint64, error) {
	var s unix.Stat_t
	err := unix.Stat(path, &s)
	return s.Dev, err
}

func (*directories) link(time.Duration) (float64, int, error) { return 0, 0, nil }

// abort implements ground: the file system of others is left alone.
func (*directories) abort(int) error {
	return errors.New("it is not this program's, and nothing of it is ended")
}

func (*directories) readings() []record.Reading { return nil }

func (d *directories) close() error {
	var all error
	for _, base := range d.bases {
		all = errors.Join(all, room.RemoveBounded(base))
	}
	return all
}
