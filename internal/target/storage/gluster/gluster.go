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
//	at, err := sys.Mount(ctx, "v1")    // a path as processes at the client see it
//	sys.Client().Path(at)              // and as this program sees it
//	cmd := sys.Client().Command("fio", ...)  // a process at the client
//	p, err := sys.Client().Start(cmd, ...)
//	list, err := sys.Processes(...)    // what runs, and what it uses
//	bricks, err := sys.Bricks()        // and which process serves which brick
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
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

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
	Settings
	client  *machine.Machine
	servers []*machine.Machine
	used    atomic.Int64 // nanoseconds of CPU time of commands
	stalled atomic.Bool  // glusterd did not answer the last command within the patience
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

func serverName(n int) string { return "server-" + strconv.Itoa(n+1) }

// Open starts a GlusterFS without volumes. It must be closed; where it fails
// nothing is left but the directory.
func Open(ctx context.Context, s Settings) (*System, error) {
	if s.Patience == 0 {
		s.Patience = leastStart
	}
	sys := &System{Settings: s}
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
	if err := machine.Connect(s.client, s.servers); err != nil {
		return fmt.Errorf("connect GlusterFS's servers: %w", err)
	}
	if err := s.each(func(n int) error { return s.prepare(ctx, n) }); err != nil {
		return err
	}
	if err := s.mountControl(ctx); err != nil {
		return err
	}
	if err := s.each(func(n int) error { return s.StartManagement(ctx, n) }); err != nil {
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
	start := func(name string) (*machine.Machine, error) {
		own := filepath.Join(s.Dir, name)
		for _, dir := range []string{"lib", "log", bricksDir} {
			if err := os.MkdirAll(filepath.Join(own, dir), 0o700); err != nil {
				return nil, err
			}
		}
		return machine.Start(s.Tied, s.Executable, machine.Spec{Keep: s.Dir, Hide: hidden(), Binds: []machine.Bind{
			{From: filepath.Join(own, "lib"), To: "/var/lib/glusterd"}, {From: filepath.Join(own, "log"), To: "/var/log/glusterfs"},
		}})
	}
	s.servers = make([]*machine.Machine, s.Replica)
	errs := make([]error, s.Replica+1)
	var all sync.WaitGroup
	for n := range s.servers {
		all.Go(func() { s.servers[n], errs[n] = start(serverName(n)) })
	}
	s.client, errs[s.Replica] = start(clientName)
	all.Wait()
	return errors.Join(errs...)
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
func (s *System) each(do func(n int) error) error {
	errs := make([]error, len(s.servers))
	var all sync.WaitGroup
	for n := range s.servers {
		all.Go(func() { errs[n] = do(n) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// prepare makes a server's file system of bricks.
func (s *System) prepare(ctx context.Context, n int) error {
	if !s.XFS {
		return nil
	}
	file := filepath.Join(s.Dir, serverName(n), "xfs")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(f.Truncate(s.Size), f.Close())
	}
	if err != nil {
		return fmt.Errorf("make a file system for bricks: %w", err)
	}
	// Inodes as large as GlusterFS's documentation asks for.
	if _, err := s.run(ctx, s.servers[n], "mkfs.xfs", "-q", "-i", "size=512", file); err != nil {
		return fmt.Errorf("make a file system for bricks: %w", err)
	}
	if _, err := s.run(ctx, s.servers[n], "mount", "-o", "loop", file, s.bricks(n)); err != nil {
		return fmt.Errorf("mount a file system for bricks: %w", err)
	}
	return nil
}

func (s *System) bricks(n int) string { return filepath.Join(s.Dir, serverName(n), bricksDir) }

// leastStart is how long glusterd may take at least until it answers: it starts
// the bricks of all volumes before.
const leastStart = 2 * time.Minute

// StartManagement starts glusterd on a server, and returns once it answers.
func (s *System) StartManagement(ctx context.Context, n int) error {
	m := s.servers[n]
	cmd := m.Command("glusterd", "--volfile="+filepath.Join(s.Dir, volfile), "--pid-file=/run/glusterd.pid", "--no-daemon")
	p, err := m.Start(cmd, proc.How{Name: "glusterd", Log: filepath.Join(s.Dir, serverName(n), "log", "glusterd.log")})
	if err != nil {
		return err
	}
	return p.Await(ctx, max(s.Patience, leastStart), func() error { return s.ask(ctx, n) })
}

// ask asks glusterd for nothing in particular, once it listens.
func (s *System) ask(ctx context.Context, n int) error {
	if listening, err := s.listening(n, func(port uint64) bool { return port == managementPort }); err != nil || listening == 0 {
		return errors.Join(err, errors.New("it does not listen"))
	}
	_, err := s.cli(ctx, n, "volume", "list")
	return err
}

// listening is how many ports of a server are listened on.
func (s *System) listening(n int, which func(port uint64) bool) (int, error) {
	fs, err := s.network(n)
	if err != nil {
		return 0, err
	}
	sockets, err := fs.NetTCP()
	if err != nil {
		return 0, err
	}
	const listen = 0x0a
	ports := make(map[uint64]bool)
	for _, socket := range sockets {
		if socket.St == listen && which(socket.LocalPort) {
			ports[socket.LocalPort] = true
		}
	}
	return len(ports), nil
}

// Ports is how many ports of a server its bricks listen on.
func (s *System) Ports(n int) (int, error) {
	return s.listening(n, func(port uint64) bool { return port >= FirstPort && port <= LastPort })
}

// join makes the servers one pool.
func (s *System) join(ctx context.Context) error {
	for n := 1; n < len(s.servers); n++ {
		if _, err := s.cli(ctx, 0, "peer", "probe", machine.Address(n).String()); err != nil {
			return fmt.Errorf("join the storage servers: %w", err)
		}
	}
	if len(s.servers) == 1 {
		return nil
	}
	deadline := time.After(s.Patience)
	for {
		// Each must know all others.
		known := s.each(func(n int) error {
			text, err := s.cli(ctx, n, "peer", "status")
			if connected := strings.Count(text, "Peer in Cluster (Connected)"); err == nil && connected != len(s.servers)-1 {
				err = fmt.Errorf("storage server %d sees %d of %d others", n+1, connected, len(s.servers)-1)
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
func (s *System) Client() *machine.Machine { return s.client }

// Server is a storage server, from 0.
func (s *System) Server(n int) *machine.Machine { return s.servers[n] }

// run runs a command in one of the machines, and gives what it wrote.
func (s *System) run(ctx context.Context, m *machine.Machine, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Patience+time.Second) // a bound of the caller's own comes before
	defer cancel()
	cmd := m.Command(name, args...)
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	p, err := m.Start(cmd, proc.How{Name: name})
	if err != nil {
		return "", err
	}
	stop := context.AfterFunc(ctx, p.Kill)
	err = p.Wait()
	stop()
	s.used.Add(int64(p.State().UserTime() + p.State().SystemTime()))
	text := strings.TrimSpace(out.String())
	switch {
	case ctx.Err() != nil:
		return text, fmt.Errorf("%s did not end: %w", name, context.Cause(ctx))
	case errors.Is(err, exec.ErrWaitDelay):
		return text, nil
	case err != nil:
		return text, &CommandError{Program: name, Text: text, Err: err}
	}
	return text, nil
}

// CommandError is what a command said that failed.
type CommandError struct {
	Program, Text string
	Err           error // how it ended
}

// Error implements error.
func (e *CommandError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s: %v", e.Program, e.Err)
	}
	return e.Text
}

// Unwrap gives how it ended.
func (e *CommandError) Unwrap() error { return e.Err }

// patienceAgain is how long a command may take after one that was not answered:
// else each of those that wait would take its whole patience.
const patienceAgain = 3 * time.Second

// ErrStalled says that glusterd did not answer in time.
var ErrStalled = errors.New("glusterd did not answer")

// cli gives a command to glusterd of a server.
func (s *System) cli(ctx context.Context, n int, words ...string) (string, error) {
	patience := s.Patience
	if s.stalled.Load() {
		patience = patienceAgain
	}
	bounded, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w within %v", ErrStalled, patience))
	defer cancel()
	text, err := s.run(bounded, s.servers[n], "gluster", append([]string{"--mode=script", "--timeout=" + strconv.Itoa(int(s.Patience.Seconds())+1)}, words...)...)
	if ctx.Err() == nil {
		s.stalled.Store(errors.Is(err, ErrStalled))
	}
	return text, err
}

// Create creates a volume, with a brick on each server, and sets its options.
func (s *System) Create(ctx context.Context, volume string, options map[string]string) error {
	words := []string{"volume", "create", volume}
	if s.Replica > 1 {
		words = append(words, "replica", strconv.Itoa(s.Replica))
	}
	for n := range s.servers {
		words = append(words, Brick{Server: n, Volume: volume}.name(s))
	}
	// By force: the bricks lie on the root file system, and a replica of 2 may
	// split.
	if _, err := s.cli(ctx, 0, append(words, "force")...); err != nil {
		return fmt.Errorf("create volume %s: %w", volume, err)
	}
	return s.set(ctx, volume, options)
}

// set sets options of a volume, or of all.
func (s *System) set(ctx context.Context, volume string, options map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		if _, err := s.cli(ctx, 0, "volume", "set", volume, name, options[name]); err != nil {
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
	if _, err := s.cli(ctx, 0, words...); err != nil {
		return fmt.Errorf("start volume %s: %w", volume, err)
	}
	return nil
}

// Stop stops a volume's bricks.
func (s *System) Stop(ctx context.Context, volume string) error {
	if _, err := s.cli(ctx, 0, "volume", "stop", volume, "force"); err != nil {
		return fmt.Errorf("stop volume %s: %w", volume, err)
	}
	return nil
}

// Delete deletes a volume that was stopped, and its bricks' directories.
func (s *System) Delete(ctx context.Context, volume string) error {
	if _, err := s.cli(ctx, 0, "volume", "delete", volume); err != nil {
		return fmt.Errorf("delete volume %s: %w", volume, err)
	}
	return s.each(func(n int) error {
		if err := os.RemoveAll(s.servers[n].Path(Brick{Server: n, Volume: volume}.dir(s))); err != nil {
			return fmt.Errorf("remove a brick of volume %s: %w", volume, err)
		}
		return nil
	})
}

// Mounted is where a volume is mounted at the client, once it is.
func (s *System) Mounted(volume string) string {
	return filepath.Join(s.Dir, clientName, mountsDir, volume)
}

// Mount mounts a volume at the client, and says where.
func (s *System) Mount(ctx context.Context, volume string) (string, error) {
	at := s.Mounted(volume)
	if err := os.MkdirAll(at, 0o700); err != nil {
		return "", fmt.Errorf("mount volume %s: %w", volume, err)
	}
	if _, err := s.run(ctx, s.client, "mount", "-t", "glusterfs", s.address(0).String()+":/"+volume, at); err != nil {
		return "", fmt.Errorf("mount volume %s: %w", volume, err)
	}
	return at, nil
}

func (s *System) address(n int) netip.Addr { return machine.Address(n) }

// Link is how many bytes a second the link carries from the first server to the
// client, as fast as it goes and for so long.
func (s *System) Link(long time.Duration) (float64, error) {
	return machine.Throughput(s.servers[0], s.address(0), s.client, long)
}

// Unmount unmounts a volume.
func (s *System) Unmount(ctx context.Context, volume string) error {
	at := s.Mounted(volume)
	if _, err := s.run(ctx, s.client, "umount", at); err != nil {
		return fmt.Errorf("unmount volume %s: %w", volume, err)
	}
	if err := os.Remove(at); err != nil {
		return fmt.Errorf("unmount volume %s: %w", volume, err)
	}
	return nil
}

// controlDir is where the kernel's connections to file systems of processes are
// seen at the client.
const controlDir = "/run/fuse"

func (s *System) mountControl(ctx context.Context) error {
	if _, err := s.run(ctx, s.client, "mkdir", controlDir); err != nil {
		return fmt.Errorf("reach the kernel's FUSE connections: %w", err)
	}
	if _, err := s.run(ctx, s.client, "mount", "-t", "fusectl", "fusectl", controlDir); err != nil {
		return fmt.Errorf("reach the kernel's FUSE connections: %w", err)
	}
	return nil
}

// Abort ends a mount that hangs: whatever waits for it gets an error (FUSE
// connections, abort). Nothing happens where the volume is not mounted.
func (s *System) Abort(volume string) error {
	mounts, err := s.Mounts()
	if err != nil {
		return fmt.Errorf("abort the mount of volume %s: %w", volume, err)
	}
	connection, ok := mounts[volume]
	if !ok {
		return nil
	}
	file := s.client.Path(filepath.Join(controlDir, strconv.Itoa(connection), "abort"))
	if err := os.WriteFile(file, []byte("1"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("abort the mount of volume %s: %w", volume, err)
	}
	return nil
}

// Mounts are the volumes that are mounted at the client, with the numbers of
// their FUSE connections.
func (s *System) Mounts() (map[string]int, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.client.PID()), "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read the client's mounts: %w", err)
	}
	return mountsBelow(string(text), s.Mounted("")), nil
}

// mountsBelow reads a mountinfo; see proc(5).
func mountsBelow(mountinfo, dir string) map[string]int {
	found := make(map[string]int)
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasPrefix(fields[4], dir+"/") {
			continue
		}
		_, minor, _ := strings.Cut(fields[2], ":")
		if n, err := strconv.Atoi(minor); err == nil {
			found[strings.TrimPrefix(fields[4], dir+"/")] = n
		}
	}
	return found
}

// Brick is a volume's part on a server.
type Brick struct {
	Server int
	Volume string
	// PID is the process that serves it, by its number at the server; 0 is none.
	PID int
	// Port is where it listens, 0 where that is not known.
	Port int
}

func (b Brick) dir(s *System) string  { return filepath.Join(s.bricks(b.Server), b.Volume) }
func (b Brick) name(s *System) string { return s.address(b.Server).String() + ":" + b.dir(s) }

// Close ends everything of the system, and leaves the directory.
func (s *System) Close() {
	var all sync.WaitGroup
	for _, m := range append(slices.Clone(s.servers), s.client) {
		if m != nil {
			all.Go(m.Close)
		}
	}
	all.Wait()
}

// FreeBytes is how much room the bricks of a server have left.
func (s *System) FreeBytes(n int) (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(s.servers[n].Path(s.bricks(n)), &fs); err != nil {
		return 0, fmt.Errorf("read the room of bricks: %w", err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}
