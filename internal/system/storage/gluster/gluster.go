// Package gluster runs its own GlusterFS on this machine: a storage server for each replica, and a client
// that mounts volumes, each a machine within the machine (see package machine). So it does not touch the
// system's glusterd, directories, ports and mounts, and everything goes when the System is closed or this
// program ends. Open makes a System, which creates, starts, mounts, stops and deletes volumes by GlusterFS's
// own commands. The client sees this machine's files, except /run, /var/lib and /var/log.
//
// Files of a mount are reached through /proc/PID/root: a mount that was passed on to this machine would
// outlive its namespace. A mount that hangs is ended by its FUSE connection, since nothing else frees its
// callers. The link to a server is measured by two sockets of this program, whose threads enter the
// namespaces and end there.
package gluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/system"
)

// Settings describes a GlusterFS.
type Settings struct {
	Dir        string // an empty directory for all of its files
	Executable string // this program, and Tied starts processes that end with it
	Tied       *proc.Tie
	Replica    int  // number of storage servers, each with one brick of every volume, at least 1
	Multiplex  bool // one process serves many bricks
	MaxBricks  int  // number of bricks for a process, 0 for GlusterFS's default (250)
	XFS        bool // puts the bricks of each server on a new XFS, in a sparse file of Size bytes
	Size       int64
	Patience   time.Duration // bounds each command; 0 is two minutes
}

// Ports of bricks, GlusterFS's defaults, and of glusterd.
const (
	FirstPort      = 49152
	LastPort       = 60999
	managementPort = 24007
)

// DefaultMaxBricks is the default number of bricks for a process (cluster.max-bricks-per-process).
const DefaultMaxBricks = 250

// System is a running GlusterFS.
type System struct {
	*commands
	client  *Client
	servers []*Server
}

// Debian's packages for a System, and for XFS.
const (
	Package    = "glusterfs-server"
	PackageXFS = "xfsprogs"
)

// Needs lists the programs that a System runs.
func Needs() []proc.Program {
	needs := []proc.Program{
		{Name: "glusterd", Package: Package, Asks: "--version"}, {Name: "glusterfsd", Package: Package}, {Name: "gluster", Package: Package},
		{Name: "mount.glusterfs", Package: "glusterfs-client"}, machine.Enters(), {Name: "mkfs.xfs", Package: PackageXFS, Optional: "for bricks=xfs"},
	}
	for i := range needs {
		needs[i].For = "GlusterFS"
	}
	return needs
}

// Check returns a *proc.MissingError if this machine cannot run a System.
func Check(xfs bool) error {
	needs := Needs()
	if xfs {
		needs[len(needs)-1].Optional = ""
	}
	_, missing := proc.Look("a GlusterFS", "", needs)
	if _, err := os.Stat("/dev/fuse"); err != nil {
		missing.What = append(missing.What, "/dev/fuse")
	}
	return missing.Err()
}

// Version returns the version of the installed GlusterFS, "" where unknown.
func Version() string {
	found, _ := Needs()[0].Find(context.Background(), "")
	return found.Version
}

const clientName = "client"

// Open starts a GlusterFS without volumes, to be closed; after an error only the directory is left.
func Open(ctx context.Context, s Settings) (*System, error) {
	if s.Patience == 0 {
		s.Patience = leastStart
	}
	sys := &System{commands: &commands{Settings: s}}
	if err := sys.open(ctx); err != nil {
		sys.Close()
		return nil, err
	}
	return sys, nil
}

func (s *System) open(ctx context.Context) error {
	if s.Replica < 1 || s.Replica > machine.MaxConnected {
		return fmt.Errorf("start GlusterFS: %d storage servers", s.Replica)
	}
	if err := s.startMachines(); err != nil {
		return fmt.Errorf("start GlusterFS: %w", err)
	}
	if err := machine.Connect(s.client.Machine, s.machines()); err != nil {
		return fmt.Errorf("connect GlusterFS's servers: %w", err)
	}
	if err := s.each(func(x *Server) error { return x.prepare(ctx) }); err != nil {
		return err
	}
	if err := s.client.mountControl(ctx); err != nil {
		return err
	}
	if err := s.each(func(x *Server) error { return x.StartManagement(ctx) }); err != nil {
		return err
	}
	if err := s.join(ctx); err != nil {
		return err
	}
	options := map[string]string{"cluster.brick-multiplex": "off"}
	if s.Multiplex {
		options["cluster.brick-multiplex"] = "on"
	}
	if s.Multiplex && s.MaxBricks > 0 { // without multiplexing glusterd refuses it
		options["cluster.max-bricks-per-process"] = strconv.Itoa(s.MaxBricks)
	}
	return s.set(ctx, "all", options)
}

func (s *System) startMachines() error {
	if err := os.WriteFile(filepath.Join(s.Dir, volfile), fmt.Appendf(nil, managementVolume, managementPort, FirstPort, LastPort), 0o600); err != nil {
		return err
	}
	start := func(own string) (*machine.Machine, error) {
		for _, dir := range []string{"lib", "log", bricksDir} {
			if err := os.MkdirAll(filepath.Join(own, dir), 0o700); err != nil {
				return nil, err
			}
		}
		return machine.Start(s.Tied, s.Executable, machine.Spec{Keep: s.Dir, Hide: []string{"/run", "/var/lib", "/var/log"}, Binds: []machine.Bind{
			{From: filepath.Join(own, "lib"), To: "/var/lib/glusterd"}, {From: filepath.Join(own, "log"), To: "/var/log/glusterfs"},
		}})
	}
	for n := range s.Replica {
		s.servers = append(s.servers, &Server{commands: s.commands, number: n, dir: filepath.Join(s.Dir, "server-"+strconv.Itoa(n+1))})
	}
	failed := s.each(func(x *Server) (err error) {
		x.Machine, err = start(x.dir)
		return err
	})
	s.client = &Client{commands: s.commands}
	var err error
	s.client.Machine, err = start(filepath.Join(s.Dir, clientName))
	return errors.Join(failed, err)
}

const (
	bricksDir = "bricks"
	mountsDir = "mnt"
	volfile   = "glusterd.vol"
)

// managementVolume configures glusterd instead of the system's own file.
const managementVolume = `volume management
    type mgmt/glusterd
    option working-directory /var/lib/glusterd
    option transport-type socket
    option transport.socket.keepalive-time 10
    option transport.socket.keepalive-interval 2
    option transport.socket.read-fail-log off
    option transport.socket.listen-port %d
    option ping-timeout 0
    option event-threads 1
    option base-port %d
    option max-port %d
end-volume
`

// each calls do for all servers in parallel.
func (s *System) each(do func(*Server) error) error {
	errs := make([]error, len(s.servers))
	var all sync.WaitGroup
	for n, x := range s.servers {
		all.Go(func() { errs[n] = do(x) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *System) join(ctx context.Context) error {
	for n := 1; n < len(s.servers); n++ {
		if err := s.order(ctx, "join the storage servers", "peer", "probe", machine.Address(n).String()); err != nil {
			return err
		}
	}
	if len(s.servers) == 1 {
		return nil
	}
	deadline := time.After(s.Patience)
	for {
		// Each must know all others.
		known := s.each(func(x *Server) error {
			text, err := x.cli(ctx, "peer", "status")
			if connected := strings.Count(text, "Peer in Cluster (Connected)"); err == nil && connected != len(s.servers)-1 {
				err = fmt.Errorf("storage server %d sees %d of %d others", x.number+1, connected, len(s.servers)-1)
			}
			return err
		})
		if known == nil {
			return nil
		}
		select {
		case <-deadline:
			return fmt.Errorf("join the storage servers: %w", known)
		case <-ctx.Done():
			return fmt.Errorf("join the storage servers: %w", context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Client returns the machine that mounts volumes.
func (s *System) Client() *Client { return s.client }

// Server returns a storage server, from 0.
func (s *System) Server(n int) *Server { return s.servers[n] }

// Create creates a volume, with a brick on each server, and sets its options.
func (s *System) Create(ctx context.Context, volume string, options map[string]string) error {
	words := []string{"volume", "create", volume}
	if s.Replica > 1 {
		words = append(words, "replica", strconv.Itoa(s.Replica))
	}
	for _, x := range s.servers {
		words = append(words, x.address().String()+":"+x.brick(volume))
	}
	// "force" allows bricks on the root file system, and a replica of 2, which may split.
	if err := s.order(ctx, "create volume "+volume, append(words, "force")...); err != nil {
		return err
	}
	return s.set(ctx, volume, options)
}

// order gives a command to glusterd of the first server; what names its purpose in errors.
func (s *System) order(ctx context.Context, what string, words ...string) error {
	if _, err := s.servers[0].cli(ctx, words...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s *System) set(ctx context.Context, volume string, options map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		what := fmt.Sprintf("set %s of volume %s to %s", name, volume, options[name])
		if err := s.order(ctx, what, "volume", "set", volume, name, options[name]); err != nil {
			return err
		}
	}
	return nil
}

// Start starts a volume's bricks. With force it starts missing ones again.
func (s *System) Start(ctx context.Context, volume string, force bool) error {
	words := []string{"volume", "start", volume}
	if force {
		words = append(words, "force")
	}
	return s.order(ctx, "start volume "+volume, words...)
}

// Stop stops a volume's bricks.
func (s *System) Stop(ctx context.Context, volume string) error {
	return s.order(ctx, "stop volume "+volume, "volume", "stop", volume, "force")
}

// Delete deletes a stopped volume with its bricks' directories.
func (s *System) Delete(ctx context.Context, volume string) error {
	if err := s.order(ctx, "delete volume "+volume, "volume", "delete", volume); err != nil {
		return err
	}
	return s.each(func(x *Server) error {
		if err := os.RemoveAll(x.Path(x.brick(volume))); err != nil {
			return fmt.Errorf("remove a brick of volume %s: %w", volume, err)
		}
		return nil
	})
}

// Link measures the bytes per second that the link from the first server to the client carries.
func (s *System) Link(long time.Duration) (float64, error) {
	return machine.Throughput(s.servers[0].Machine, s.servers[0].address(), s.client.Machine, long)
}

// Brick is the part of a volume on a server.
type Brick struct {
	Server int
	Volume string
	PID    int // process that serves it, by its number at the server; 0 for none
	Port   int // its port, 0 where unknown
}

func (s *System) machines() (list []*machine.Machine) {
	for _, x := range s.servers {
		list = append(list, x.Machine)
	}
	return list
}

// Close ends the system, and leaves the directory.
func (s *System) Close() {
	all := s.machines()
	if s.client != nil {
		all = append(all, s.client.Machine)
	}
	var group sync.WaitGroup
	for _, m := range all {
		if m != nil {
			group.Go(m.Close)
		}
	}
	group.Wait()
}

const leastXFS = 300 << 20 // smallest size for mkfs.xfs

// Params lists the parameters that SettingsOf reads.
func Params() []string {
	return []string{"multiplex", "maxBricksPerProcess", "replica", "bricks", "brickSize"}
}

// SettingsOf reads Settings, without the places, from parameters.
func SettingsOf(p workload.Params) (Settings, error) {
	s := Settings{Replica: int(p.Int("replica")), Multiplex: p.Flag("multiplex"), MaxBricks: int(p.Int("maxBricksPerProcess")), XFS: p.Get("bricks") == "xfs", Size: p.Bytes("brickSize")}
	switch {
	case s.Replica > machine.MaxConnected:
		return s, system.ParamMistake("replica", "", "there can be %d storage servers at most", machine.MaxConnected)
	case s.XFS && s.Size < leastXFS:
		return s, system.ParamMistake("brickSize", "", "an XFS takes 300MiB at least")
	}
	return s, nil
}

// Able returns the error of Check with an install command and an alternative.
func Able(xfs bool, instead string) error { return system.Lacking(Check(xfs), instead) }
