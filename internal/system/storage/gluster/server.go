package gluster

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/machine"
	"plimsoll.dev/plimsoll/internal/proc"
)

// Server is a storage server: a machine with glusterd and its bricks.
type Server struct {
	*machine.Machine
	*commands
	number     int // from 0
	dir        string
	management atomic.Pointer[proc.Process] // glusterd, nil before its start
}

// prepare makes the file system for a server's bricks.
func (x *Server) prepare(ctx context.Context) error {
	if !x.XFS {
		return nil
	}
	file := filepath.Join(x.dir, "xfs")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err == nil {
		err = errors.Join(f.Truncate(x.Size), f.Close())
	}
	if err != nil {
		return fmt.Errorf("make a file system for bricks: %w", err)
	}
	// GlusterFS's documentation asks for inodes of this size.
	if _, err := x.run(ctx, x.Machine, "mkfs.xfs", "-q", "-i", "size=512", file); err != nil {
		return fmt.Errorf("make a file system for bricks: %w", err)
	}
	if _, err := x.run(ctx, x.Machine, "mount", "-o", "loop", file, x.bricks()); err != nil {
		return fmt.Errorf("mount a file system for bricks: %w", err)
	}
	return nil
}

func (x *Server) bricks() string { return filepath.Join(x.dir, bricksDir) }

func (x *Server) brick(volume string) string { return filepath.Join(x.bricks(), volume) }

func (x *Server) address() netip.Addr { return machine.Address(x.number) }

// leastStart is the least time for glusterd to start: it first starts the bricks of all volumes.
const leastStart = 2 * time.Minute

// StartManagement starts glusterd on a server, and returns when it answers.
func (x *Server) StartManagement(ctx context.Context) error {
	cmd := x.Command("glusterd", "--volfile="+filepath.Join(x.Dir, volfile), "--pid-file=/run/glusterd.pid", "--no-daemon")
	p, err := x.Start(cmd, proc.How{Name: "glusterd", Log: filepath.Join(x.dir, "log", "glusterd.log")})
	if err != nil {
		return err
	}
	x.management.Store(p)
	return p.Await(ctx, max(x.Patience, leastStart), func() error { return x.ask(ctx) })
}

// ask makes a harmless request to glusterd, once it listens.
func (x *Server) ask(ctx context.Context) error {
	if listening, err := x.listening(func(port uint64) bool { return port == managementPort }); err != nil || listening == 0 {
		return errors.Join(err, errors.New("it does not listen"))
	}
	_, err := x.cli(ctx, "volume", "list")
	return err
}

// listening counts the ports on which a server listens.
func (x *Server) listening(which func(port uint64) bool) (int, error) {
	fs, err := procfs.NewFS(filepath.Join("/proc", strconv.Itoa(x.PID()))) // it shows the server's sockets
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

// Ports counts the ports on which the server's bricks listen.
func (x *Server) Ports() (int, error) {
	return x.listening(func(port uint64) bool { return port >= FirstPort && port <= LastPort })
}

// cli gives a command to glusterd of a server.
func (x *Server) cli(ctx context.Context, words ...string) (string, error) {
	patience := x.Patience
	if x.stalled.Load() {
		patience = patienceAgain
	}
	bounded, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w within %v", ErrStalled, patience))
	defer cancel()
	text, err := x.run(bounded, x.Machine, "gluster", append([]string{"--mode=script", "--timeout=" + strconv.Itoa(int(x.Patience.Seconds())+1)}, words...)...)
	if ctx.Err() == nil {
		x.stalled.Store(errors.Is(err, ErrStalled))
	}
	return text, err
}

// Bricks returns the server's bricks with their processes, by one command for all of them.
func (x *Server) Bricks(ctx context.Context) ([]Brick, error) {
	const file = "state"
	if _, err := x.cli(ctx, "get-state", "glusterd", "odir", x.dir, "file", file); err != nil {
		return nil, fmt.Errorf("ask for the state of bricks: %w", err)
	}
	f, err := os.Open(filepath.Join(x.dir, file))
	if err != nil {
		return nil, fmt.Errorf("read the state of bricks: %w", err)
	}
	defer f.Close()
	list, err := readState(bufio.NewScanner(f), x.address().String())
	if err != nil {
		return nil, fmt.Errorf("read the state of bricks: %w", err)
	}
	for i := range list {
		list[i].Server = x.number
		if list[i].Port == 0 {
			continue
		}
		list[i].PID = x.serves(list[i].Volume)
	}
	return list, nil
}

// OpenFiles returns the open files of the brick process that is nearest to its limit, and the limit.
func (x *Server) OpenFiles() (open, limit int, err error) {
	fs, err := x.Proc()
	if err != nil {
		return 0, 0, fmt.Errorf("read open files: %w", err)
	}
	all, err := fs.AllProcs()
	if err != nil {
		return 0, 0, fmt.Errorf("read open files: %w", err)
	}
	for _, p := range all {
		if name, err := p.Comm(); err != nil || name != "glusterfsd" {
			continue // it has ended, or is another program
		}
		handles, err := p.FileDescriptorsLen()
		if err != nil {
			continue
		}
		if limits, err := p.Limits(); err == nil && handles > open {
			open, limit = handles, int(min(limits.OpenFiles, 1<<40))
		}
	}
	return open, limit, nil
}

// ListensInVain reports by the log whether a process tries to listen for a deleted volume: meanwhile it
// attaches and detaches no brick.
func (x *Server) ListensInVain() bool {
	logs, _ := filepath.Glob(filepath.Join(x.dir, "log", "bricks", "*.log"))
	return x.Multiplex && slices.ContainsFunc(logs, func(log string) bool {
		text, _ := os.ReadFile(log) // without rights the text is empty
		return bytes.Contains(text, []byte("creation of listener failed"))
	})
}

// FreeBytes returns the free bytes of the server's bricks.
func (x *Server) FreeBytes() (int64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(x.Path(x.bricks()), &fs); err != nil {
		return 0, fmt.Errorf("read the room of bricks: %w", err)
	}
	return int64(fs.Bavail) * fs.Bsize, nil
}

// serves returns the process that serves the brick of a volume, by its PID file; 0 for none.
func (x *Server) serves(volume string) int {
	name := x.address().String() + strings.ReplaceAll(x.brick(volume), "/", "-") + ".pid"
	text, err := os.ReadFile(x.Path(filepath.Join("/run/gluster/vols", volume, name)))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	if _, err := os.Stat(x.Path("/proc/" + strconv.Itoa(pid))); err != nil {
		return 0
	}
	return pid
}

type commands struct {
	Settings
	used    atomic.Int64 // nanoseconds of CPU time of commands
	stalled atomic.Bool  // the last command had no answer within the patience
}

// Commands returns the CPU time of commands in seconds: of the gluster program, mount and umount.
func (c *commands) Commands() float64 { return time.Duration(c.used.Load()).Seconds() }

func (c *commands) run(ctx context.Context, m *machine.Machine, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Patience+time.Second) // the caller's own bound comes first
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
	c.used.Add(int64(p.State().UserTime() + p.State().SystemTime()))
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

// CommandError holds the output of a failed command.
type CommandError struct {
	Program, Text string
	Err           error // of the process
}

func (e *CommandError) Error() string {
	if e.Text == "" {
		return fmt.Sprintf("%s: %v", e.Program, e.Err)
	}
	return e.Text
}

func (e *CommandError) Unwrap() error { return e.Err }

// patienceAgain bounds a command after one without an answer: waiting ones must not add up.
const patienceAgain = 3 * time.Second

// ErrStalled says that glusterd did not answer in time.
var ErrStalled = errors.New("glusterd did not answer")

// Client is the machine that mounts volumes.
type Client struct {
	*machine.Machine
	*commands
}

// Mounted returns where a volume is mounted at the client.
func (c *Client) Mounted(volume string) string {
	return filepath.Join(c.Dir, clientName, mountsDir, volume)
}

// Mount mounts a volume at the client, and returns where.
func (c *Client) Mount(ctx context.Context, volume string) (string, error) {
	at := c.Mounted(volume)
	err := os.MkdirAll(at, 0o700)
	if err == nil {
		_, err = c.run(ctx, c.Machine, "mount", "-t", "glusterfs", machine.Address(0).String()+":/"+volume, at)
	}
	if err != nil {
		return "", fmt.Errorf("mount volume %s: %w", volume, err)
	}
	return at, nil
}

// Unmount unmounts a volume.
func (c *Client) Unmount(ctx context.Context, volume string) error {
	at := c.Mounted(volume)
	_, err := c.run(ctx, c.Machine, "umount", at)
	if err == nil {
		err = os.Remove(at)
	}
	if err != nil {
		return fmt.Errorf("unmount volume %s: %w", volume, err)
	}
	return nil
}

const controlDir = "/run/fuse" // has the client's connections to FUSE file systems

func (c *Client) mountControl(ctx context.Context) error {
	_, err := c.run(ctx, c.Machine, "mkdir", controlDir)
	if err == nil {
		_, err = c.run(ctx, c.Machine, "mount", "-t", "fusectl", "fusectl", controlDir)
	}
	if err != nil {
		return fmt.Errorf("reach the kernel's FUSE connections: %w", err)
	}
	return nil
}

// Abort ends a mount that hangs: its callers get an error. It does nothing where nothing is mounted.
func (c *Client) Abort(volume string) error {
	mounts, err := c.Mounts()
	if err != nil {
		return fmt.Errorf("abort the mount of volume %s: %w", volume, err)
	}
	connection, ok := mounts[volume]
	if !ok {
		return nil
	}
	file := c.Path(filepath.Join(controlDir, strconv.Itoa(connection), "abort"))
	if err := os.WriteFile(file, []byte("1"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("abort the mount of volume %s: %w", volume, err)
	}
	return nil
}

// Mounts returns the volumes mounted at the client, with the numbers of their FUSE connections.
func (c *Client) Mounts() (map[string]int, error) {
	mounts, err := procfs.GetProcMounts(c.PID())
	if err != nil {
		return nil, fmt.Errorf("read the client's mounts: %w", err)
	}
	found := make(map[string]int)
	for _, m := range mounts {
		volume, ours := strings.CutPrefix(m.MountPoint, c.Mounted("")+"/")
		_, minor, _ := strings.Cut(m.MajorMinorVer, ":")
		if n, err := strconv.Atoi(minor); ours && err == nil {
			found[volume] = n
		}
	}
	return found, nil
}
