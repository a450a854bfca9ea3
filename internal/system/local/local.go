// Package local holds the common parts of sessions on systems of this machine: no consent, a directory
// for each run, which the next run removes after a killed one.
package local

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/lab/room"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// FileSystem returns the file systems of directories.
func FileSystem(dirs ...string) record.Fact {
	var on []string
	var mounts []*procfs.MountInfo
	if len(dirs) > 0 { // else it is only declared
		mounts, _ = procfs.GetMounts() // without them the value is empty
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

// Answers returns an error where nobody takes connections at an address.
func Answers(network, address string) error {
	conn, err := net.DialTimeout(network, address, 2*time.Second)
	if err == nil {
		conn.Close()
	}
	return err
}

// Fidelity returns the fidelity of a system that is not part of a cluster, with notes.
func Fidelity(notes ...string) record.Fidelity {
	return record.Fidelity{ControlPlane: record.None, Nodes: record.None, Containers: record.None, Guests: record.None, Notes: notes}
}

// Rooms names the directories of the runs on one kind of system.
type Rooms struct {
	Target, Kind string // Target is the target's name, Kind the kind of rooms below the state directory.
	Elsewhere    string // begins the names of directories that runs make outside of their own; "" for none
}

const elsewhereFile = "made" // lists the directories elsewhere, in a run's own

// elsewhere returns the directories outside of its own that a killed run has made.
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

// Running is a loaded system.
type Running interface {
	Readings() []record.Reading  // returns the present usage of its parts
	Close(context.Context) error // ends it, and may be called again
}

// Session implements the common parts of system.Session.
type Session struct {
	system.Request
	Rooms Rooms
	Tied  *proc.Tie  // starts processes that die with this one; nil without a load
	Room  *room.Room // run's directory, nil before MakeRoom

	workplace string // see MakeWorkplace

	mu      sync.Mutex
	running Running
}

// Consent implements system.Session: the run changes only its own system.
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

// NoteElsewhere notes further directories of the run before they are made, for the next run's removal.
func (s *Session) NoteElsewhere(dirs ...string) error {
	if err := os.WriteFile(filepath.Join(s.Room.Dir, elsewhereFile), []byte(strings.Join(dirs, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("note which directories there are: %w", err)
	}
	return nil
}

const runtimeDir = "/run" // can be entered by every user, and only root can make something there

// MakeWorkplace makes a directory, once, that programs of a user may read and others may not: within the
// run's own where this program runs as that user. Close removes it.
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

// Loads sets the loaded system.
func (s *Session) Loads(r Running) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = r
}

// Loaded returns the loaded system, nil before there is one.
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

// Place is a place that a load goes to.
type Place struct {
	Name string
	Look func() record.Place // returns its state: the zero value, or PlaceThere, while it takes load
}

const lookInterval = 500 * time.Millisecond // time between looks at a place

// FollowPlaces declares a load's places, and records their changes until stop, before any is ended.
func FollowPlaces(rec system.Recorder, noun record.Noun, list []Place) (stop func()) {
	set := &record.Place{Noun: &noun}
	for _, p := range list {
		set.Set = append(set.Set, p.Name)
	}
	rec.Emit(set)
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex // stops reports at stop
	told := make(map[string]record.PlaceState)
	go func() {
		tick := time.NewTicker(lookInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			for _, p := range list {
				now := p.Look()
				if now.Place = p.Name; now.State == record.PlaceThere {
					now.State = ""
				}
				mu.Lock()
				if now.State != told[p.Name] && ctx.Err() == nil {
					told[p.Name] = now.State
					if now.State == "" {
						now.State, now.What = record.PlaceThere, "takes load again"
					}
					rec.Emit(&now)
				}
				mu.Unlock()
			}
		}
	}()
	return func() {
		mu.Lock()
		defer mu.Unlock()
		cancel()
	}
}

// Ended returns the state of the place of a process.
func Ended(p *proc.Process) record.Place {
	if !p.Ended() {
		return record.Place{}
	}
	return record.Place{State: record.PlaceNotReady, What: "ended (" + p.State().String() + ")"}
}

// Load is the load of one step, with its system.
type Load interface {
	Stream(ctx context.Context, s streams.Schedule) error // makes the load; see system.Batch
	Progress() system.Progress                            // sums up the stream
	// Readings returns the present usage of the parts. It is not called during or after End.
	Readings() []record.Reading
	End() error // removes the system
}

// Rig implements system.Instance for streams: each step has a new Load. S holds an arm's settings.
type Rig[S any] struct {
	Rec  system.Recorder
	Seed uint64
	Arms map[string]S
	// Start makes the load of a level, which it may lower to the reached one.
	Start func(ctx context.Context, one S, level *system.Level) (Load, error)

	made uint64 // generators so far
	mu   sync.Mutex
	load Load // nil between steps
}

// Current returns the load of the step, nil between steps.
func (r *Rig[S]) Current() Load {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.load
}

// Raise implements system.Target.
func (r *Rig[S]) Raise(ctx context.Context, level system.Level) (system.Batch, error) {
	if err := r.Reset(ctx); err != nil {
		return system.Batch{}, err
	}
	one, ok := r.Arms[level.Arm]
	if !ok {
		return system.Batch{}, fmt.Errorf("there is no arm %q", level.Arm)
	}
	if level.Span == 0 {
		level.Value = math.Floor(level.Value + 1e-9)
	}
	if level.Value <= 0 {
		return system.Batch{}, fmt.Errorf("a level of %g is not a load", level.Value)
	}
	l, err := r.Start(ctx, one, &level)
	if err != nil {
		return system.Batch{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load = l
	return system.Batch{Reached: level.Value, Stream: l.Stream}, nil
}

// Progress implements system.Target.
func (r *Rig[S]) Progress() system.Progress {
	if l := r.Current(); l != nil {
		return l.Progress()
	}
	return system.Progress{}
}

// Readings implements Running.
func (r *Rig[S]) Readings() []record.Reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.load == nil {
		return nil
	}
	return r.load.Readings()
}

// Settle implements system.Target: everything known of a stream is on record.
func (*Rig[S]) Settle(context.Context) error { return nil }

// Account implements system.Target.
func (*Rig[S]) Account(context.Context) (system.Spread, error) { return system.Spread{}, nil }

// Health implements system.Target.
func (*Rig[S]) Health(context.Context) (map[string]float64, error) { return map[string]float64{}, nil }

// Reset implements system.Target: it ends the load of the last step.
func (r *Rig[S]) Reset(context.Context) error {
	r.mu.Lock()
	l := r.load
	r.load = nil
	r.mu.Unlock()
	if l == nil {
		return nil
	}
	return l.End()
}

// Close implements system.Instance.
func (r *Rig[S]) Close(ctx context.Context) error { return r.Reset(ctx) }

// Midway makes an event, unless it is "none", in the middle of a stream's hold, and records what it took in seconds and
// further values. An event that ends after the load, which showed only a part of it, is a *streams.UnfinishedError.
func Midway(ctx context.Context, rec system.Recorder, s streams.Schedule, event, source string, make func() (map[string]float64, error)) error {
	if event == "none" {
		return nil
	}
	middle := s.Begin + record.MicrosOf(s.Warm+s.Hold/2)
	select {
	case <-time.After((middle - rec.Clock.Now()).Duration()):
	case <-ctx.Done():
		return nil
	}
	values, err := make()
	if ctx.Err() != nil {
		return nil // the step was cut
	}
	if err != nil {
		return fmt.Errorf("make the event %s: %w", event, err)
	}
	rec.Emit(&record.Reading{Source: source, Values: values})
	if late := rec.Clock.Now() - s.End(); late > 0 {
		return &streams.UnfinishedError{What: fmt.Sprintf("the event %s ended %v after the hold: raise --hold", event, late.Duration().Round(time.Millisecond))}
	}
	return nil
}

const ownHandles = 200 // number of open files besides connections

// Connections returns the bound on a schedule's connections: as asked, or with 0 load.MostConnections, or
// fewer by the limit of open files. More than that is an error.
func Connections(asked int) (int, error) {
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	most := int(max(min(files.Max, 1<<30), ownHandles+1)) - ownHandles
	switch {
	case asked == 0:
		return min(load.MostConnections, most), nil
	case asked > most:
		return 0, system.ParamMistake("connections", fmt.Sprintf("at most %d, or a higher limit (ulimit -Hn)", most), "%d connections want more open files than a process may have here", asked)
	}
	return asked, nil
}

// Requests implements Load with the generator of requests.
type Requests struct {
	*load.Generator // made by Begin
	Rec             system.Recorder
	Plan            load.Plan
	Client          string      // names the owner of the connections' ports
	Clients         int         // of a closed loop on another axis; 0 is the level
	CPUs            []int       // for this program; none leaves it where it is
	Noun            record.Noun // Places are the places of the load, none where they are not seen
	Places          []Place
	Sees            func(*record.Window) error // called with each window before it is recorded, unless it is nil
	Read            func() []record.Reading    // returns the present usage of the parts, which takes milliseconds
	Stop            func() error               // ends the system of the step

	undo, unfollow func()
}

// Begin makes the generator of a step whose system runs. On an error it ends the system.
func (r *Rig[S]) Begin(l *Requests) (err error) {
	r.made++
	l.Rec, l.Generator = r.Rec, load.New(l.Plan, r.Rec.Clock.Now, r.Seed+r.made)
	l.undo, l.unfollow = func() {}, func() {}
	if len(l.CPUs) > 0 {
		if l.undo, err = cpu.Keep(l.CPUs); err != nil {
			return errors.Join(err, l.Stop())
		}
	}
	if len(l.Places) > 0 {
		l.unfollow = FollowPlaces(r.Rec, l.Noun, l.Places)
	}
	return nil
}

// Progress implements Load.
func (l *Requests) Progress() system.Progress { return system.OfStream(l.Generator.Progress()) }

// Stream implements Load.
func (l *Requests) Stream(ctx context.Context, s streams.Schedule) error {
	if l.Clients > 0 {
		s.Value = float64(l.Clients)
	}
	var failed error
	err := l.Load(ctx, s, func(w *record.Window) {
		if l.Sees != nil {
			if err := l.Sees(w); err != nil {
				failed = err
			}
		}
		l.Rec.Emit(w)
	}, l.Rec.Emit)
	if n := l.Counts().NoPort; n > 0 {
		l.Note("%s had no free port or file handle for %d connections: what became of their requests is unknown", l.Client, n)
	}
	return errors.Join(err, failed)
}

// Note records a note about the step.
func (l *Requests) Note(format string, args ...any) {
	l.Rec.Emit(&record.Note{About: l.Rec.Step(), Text: fmt.Sprintf(format, args...)})
}

// Readings implements Load.
func (l *Requests) Readings() (list []record.Reading) {
	l.Beside(func() { list = l.Read() })
	return list
}

// End implements Load.
func (l *Requests) End() error {
	l.undo()
	l.unfollow()
	return l.Stop()
}
