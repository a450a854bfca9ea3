// Package gluster runs a GlusterFS of its own on this machine: a storage server
// for each replica, and a client that mounts volumes, each a machine within the
// machine (see package machine). So the system's own glusterd, its directories,
// ports and mounts are not touched, and all goes at once when the System is
// closed or this program ends, be it by SIGKILL.
//
// Open makes a System, which then creates, starts, mounts, stops and deletes
// volumes by GlusterFS's own commands:
//
//	sys, err := gluster.Open(ctx, gluster.Settings{Dir: dir, Executable: exe, Tied: tied, Replica: 1, Multiplex: true})
//	defer sys.Close()
//	err = sys.Create(ctx, "v1", nil)   // and its options
//	err = sys.Start(ctx, "v1")
//	at, err := sys.Client().Mount(ctx, "v1") // a path as processes at the client see it
//	sys.Client().Path(at)              // and as this program sees it
//	cmd := sys.Client().Command("fio", ...)  // a process at the client
//	p, err := sys.Client().Start(cmd, ...)
//	list, err := sys.Processes(...)    // what runs, and what it uses
//	bricks, err := sys.Bricks(ctx)     // and which process serves which brick
//	err = sys.Server(0).Kill(pid)      // a process of the first storage server
//
// What the client sees of this machine's files is the same, but for /run,
// /var/lib and /var/log; Dir is there too.
//
// Files of a mount are reached through /proc/PID/root: a mount that was passed
// on to this machine would stay when its namespace goes. A mount that hangs is
// ended by its FUSE connection, since nothing else lets go of what waits for
// it. The link to a server is measured by two sockets of this program, whose
// threads enter the namespaces and end there.
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
	"plimsoll.dev/plimsoll/internal/proc"
)

// Settings are what a GlusterFS is like.
type Settings struct {
	// Dir is an empty directory for everything that it writes.
	Dir string
	// Executable is this program, and Tied starts what must end with it.
	Executable string
	Tied       *proc.Tie
	// Replica is how many storage servers there are, each with one brick of
	// every volume, at least 1.
	Replica   int
	Multiplex bool // one process serves many bricks
	// MaxBricks is how many bricks a process serves, 0 for GlusterFS's default
	// (250).
	MaxBricks int
	// XFS puts the bricks of each server on an XFS of its own, in a file of
	// Size bytes, of which only what is written takes room.
	XFS  bool
	Size int64
	// Patience bounds each command; 0 is two minutes.
	Patience time.Duration
}

// The ports that bricks listen on, as GlusterFS has them, and that of glusterd.
const (
	FirstPort      = 49152
	LastPort       = 60999
	managementPort = 24007
)

// DefaultMaxBricks is how many bricks a process serves at most where nothing
// else is set (cluster.max-bricks-per-process).
const DefaultMaxBricks = 250

// System is a GlusterFS that runs.
type System struct {
	*commands
	client  *Client
	servers []*Server
}

// Packages are Debian's that a System needs; that of xfs only where it is asked
// for.
const (
	Package    = "glusterfs-server"
	PackageXFS = "xfsprogs"
)

// Needs are the programs that a System runs.
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

// Check reports whether this machine can run a System; the error is a
// *proc.MissingError.
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

// Version is that of the system's GlusterFS, "" where it does not tell.
func Version() string {
	found, _ := Needs()[0].Find(context.Background(), "")
	return found.Version
}

// hidden are the directories that GlusterFS writes to by fixed names.
func hidden() []string { return []string{"/run", "/var/lib", "/var/log"} }

const clientName = "client"

// Open starts a GlusterFS without volumes. It must be closed; where it fails
// nothing is left but the directory.
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
	if s.Multiplex && s.MaxBricks > 0 { // glusterd refuses it without multiplexing
		options["cluster.max-bricks-per-process"] = strconv.Itoa(s.MaxBricks)
	}
	return s.set(ctx, "all", options)
}

// startMachines starts the client and the servers.
func (s *System) startMachines() error {
	if err := os.WriteFile(filepath.Join(s.Dir, volfile), []byte(managementVolume()), 0o600); err != nil {
		return err
	}
	start := func(own string) (*machine.Machine, error) {
		for _, dir := range []string{"lib", "log", bricksDir} {
			if err := os.MkdirAll(filepath.Join(own, dir), 0o700); err != nil {
				return nil, err
			}
		}
		return machine.Start(s.Tied, s.Executable, machine.Spec{Keep: s.Dir, Hide: hidden(), Binds: []machine.Bind{
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

// managementVolume is what glusterd is told: the system's own file may say
// something else.
func managementVolume() string {
	return fmt.Sprintf(`volume management
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
`, managementPort, FirstPort, LastPort)
}

// each does something for all servers at the same time.
func (s *System) each(do func(*Server) error) error {
	errs := make([]error, len(s.servers))
	var all sync.WaitGroup
	for n, x := range s.servers {
		all.Go(func() { errs[n] = do(x) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// join makes the servers one pool.
func (s *System) join(ctx context.Context) error {
	for n := 1; n < len(s.servers); n++ {
		if _, err := s.servers[0].cli(ctx, "peer", "probe", machine.Address(n).String()); err != nil {
			return fmt.Errorf("join the storage servers: %w", err)
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

// Client is the machine that mounts volumes.
func (s *System) Client() *Client { return s.client }

// Server is a storage server, from 0.
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
	// By force: the bricks lie on the root file system, and a replica of 2 may
	// split.
	if _, err := s.servers[0].cli(ctx, append(words, "force")...); err != nil {
		return fmt.Errorf("create volume %s: %w", volume, err)
	}
	return s.set(ctx, volume, options)
}

// set sets options of a volume, or of all.
func (s *System) set(ctx context.Context, volume string, options map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if _, err := s.servers[0].cli(ctx, "volume", "set", volume, name, options[name]); err != nil {
			return fmt.Errorf("set %s of volume %s to %s: %w", name, volume, options[name], err)
		}
	}
	return nil
}

// Start starts a volume's bricks. With force, those that should run and do not
// are started again.
func (s *System) Start(ctx context.Context, volume string, force bool) error {
	words := []string{"volume", "start", volume}
	if force {
		words = append(words, "force")
	}
	if _, err := s.servers[0].cli(ctx, words...); err != nil {
		return fmt.Errorf("start volume %s: %w", volume, err)
	}
	return nil
}

// Stop stops a volume's bricks.
func (s *System) Stop(ctx context.Context, volume string) error {
	if _, err := s.servers[0].cli(ctx, "volume", "stop", volume, "force"); err != nil {
		return fmt.Errorf("stop volume %s: %w", volume, err)
	}
	return nil
}

// Delete deletes a volume that was stopped, and its bricks' directories.
func (s *System) Delete(ctx context.Context, volume string) error {
	if _, err := s.servers[0].cli(ctx, "volume", "delete", volume); err != nil {
		return fmt.Errorf("delete volume %s: %w", volume, err)
	}
	return s.each(func(x *Server) error {
		if err := os.RemoveAll(x.Path(x.brick(volume))); err != nil {
			return fmt.Errorf("remove a brick of volume %s: %w", volume, err)
		}
		return nil
	})
}

// Link is how many bytes a second the link carries from the first server to the
// client, as fast as it goes and for so long.
func (s *System) Link(long time.Duration) (float64, error) {
	return machine.Throughput(s.servers[0].Machine, s.servers[0].address(), s.client.Machine, long)
}

// Brick is a volume's part on a server.
type Brick struct {
	Server int
	Volume string
	// PID is the process that serves it, by its number at the server; 0 is none.
	PID int
	// Port is where it listens, 0 where that is unknown.
	Port int
}

// machines are those of the servers.
func (s *System) machines() (list []*machine.Machine) {
	for _, x := range s.servers {
		list = append(list, x.Machine)
	}
	return list
}

// Close ends everything of the system, and leaves the directory.
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
