// Package local is what sessions on systems of this machine's own have in
// common: nobody needs to agree, each run has a directory, and what a killed run
// left is removed by the next one.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// FileSystem says which file systems directories are on.
func FileSystem(dirs ...string) record.Fact {
	var on []string
	var mounts []*procfs.MountInfo
	if len(dirs) > 0 { // else it is declared alone
		mounts, _ = procfs.GetMounts() // without them it is not on record
	}
	for _, dir := range dirs {
		var s unix.Stat_t
		if unix.Stat(dir, &s) != nil {
			continue
		}
		device := fmt.Sprintf("%d:%d", unix.Major(s.Dev), unix.Minor(s.Dev))
		for _, m := range slices.Backward(mounts) {
			if m.MajorMinorVer == device {
				on = append(on, m.FSType+" on "+m.Source)
				break
			}
		}
	}
	return record.Fact{Name: "filesystem", What: "file system below the volumes, and its drive", Value: strings.Join(slices.Compact(on), ", "), Bearing: record.Refuses}
}

// Fidelity says that no part of a cluster was loaded; the notes say what was.
func Fidelity(notes ...string) record.Fidelity {
	return record.Fidelity{ControlPlane: record.None, Nodes: record.None, Containers: record.None, Guests: record.None, Notes: notes}
}

// Rooms are the directories of the runs on one kind of system.
type Rooms struct {
	// Target is the target's name, Kind that of the rooms below the state directory.
	Target, Kind string
	// Elsewhere begins the names of the directories that runs make outside of their
	// own; "" where they make none.
	Elsewhere string
}

// elsewhereFile lists these in a run's own directory.
const elsewhereFile = "made"

// elsewhere are the directories that a run which was killed has made besides its
// own, by the list there.
func (r Rooms) elsewhere(dir string) (dirs []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, elsewhereFile))
	if errors.Is(err, os.ErrNotExist) || r.Elsewhere == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which directories there were: %w", err)
	}
	for one := range strings.Lines(string(text)) {
		if one = strings.TrimSpace(one); filepath.IsAbs(one) && strings.HasPrefix(filepath.Base(one), r.Elsewhere) {
			dirs = append(dirs, one)
		}
	}
	return dirs, nil
}

// SweepHost implements system.Sweeper.
func (r Rooms) SweepHost(_ context.Context, h system.Host, removes func(run string) bool) ([]system.Leftover, error) {
	state, err := h.StateDir()
	if err != nil {
		return nil, err
	}
	rooms, err := room.Sweep(state, r.Kind, removes, r.elsewhere)
	var list []system.Leftover
	for _, l := range rooms {
		list = append(list, system.Leftover{Target: r.Target, Left: l})
	}
	return list, err
}

// Running is a system that is loaded.
type Running interface {
	// Readings are what its parts use now.
	Readings() []record.Reading
	// Close ends it. It may be called again.
	Close(context.Context) error
}

// Session implements what system.Sessions of such systems have in common.
type Session struct {
	system.Request
	Rooms Rooms
	// Tied starts processes that die with this one; nil where nothing is loaded.
	Tied *proc.Tie
	// Room is the run's directory, nil before MakeRoom.
	Room *room.Room

	workplace string // see MakeWorkplace

	mu      sync.Mutex
	running Running
}

// Consent implements system.Session: what is changed is ours.
func (*Session) Consent(context.Context) (*system.Consent, error) { return nil, nil }

// Sweep implements system.Session.
func (s *Session) Sweep(ctx context.Context) error {
	_, err := s.Rooms.SweepHost(ctx, s.Host, func(string) bool { return true })
	return err
}

// MakeRoom makes the run's directory, once.
func (s *Session) MakeRoom() error {
	if s.Room != nil {
		return nil
	}
	state, err := s.StateDir()
	if err != nil {
		return err
	}
	s.Room, err = room.Make(state, s.Rooms.Kind, s.Run)
	return err
}

// NoteElsewhere notes which directories there are outside of the run's own, or are
// about to be: they are removed after a run that was killed.
func (s *Session) NoteElsewhere(dirs ...string) error {
	if err := os.WriteFile(filepath.Join(s.Room.Dir, elsewhereFile), []byte(strings.Join(dirs, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("note which directories there are: %w", err)
	}
	return nil
}

// runtimeDir is where every user may go, and root alone may make something.
const runtimeDir = "/run"

// MakeWorkplace makes a directory for programs of a user that must find it by its
// path, once: within the run's own where this program runs as that user. The user
// may read what is there, and others may not. It is removed by Close.
func (s *Session) MakeWorkplace(as proc.User) (string, error) {
	if s.workplace != "" {
		return s.workplace, nil
	}
	dir := filepath.Join(s.Room.Dir, "work")
	if as.ID != proc.Self().ID {
		dir = filepath.Join(runtimeDir, s.Rooms.Elsewhere+filepath.Base(s.Room.Dir))
		if err := s.NoteElsewhere(dir); err != nil {
			return "", err
		}
	}
	err := os.Mkdir(dir, 0o700)
	if err == nil {
		s.workplace = dir
		err = errors.Join(os.Chown(dir, -1, as.Group), os.Chmod(dir, 0o750))
	}
	if err != nil {
		return "", fmt.Errorf("make a directory for programs of %s: %w", as, err)
	}
	return dir, nil
}

// Loads notes the system that is loaded from now on.
func (s *Session) Loads(r Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = r
}

// Loaded returns the system that is loaded, nil before there is one.
func (s *Session) Loaded() Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running
}

// Readings implements system.Session.
func (s *Session) Readings() []record.Reading {
	if r := s.Loaded(); r != nil {
		return r.Readings()
	}
	return nil
}

// Renew implements system.Session.
func (*Session) Renew(context.Context) error {
	return errors.New("a system of this machine's own is made for each step or arm: there is nothing to renew")
}

// Close implements system.Session.
func (s *Session) Close() error {
	var err error
	if r := s.Loaded(); r != nil {
		err = r.Close(context.Background())
	}
	if s.Tied != nil {
		s.Tied.Close()
	}
	if s.workplace != "" {
		err = errors.Join(err, os.RemoveAll(s.workplace))
	}
	if s.Room != nil {
		err = errors.Join(err, s.Room.Remove())
	}
	return err
}
