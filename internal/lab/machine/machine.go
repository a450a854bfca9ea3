package machine

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/proc"
)

// Machine is a running machine within this one.
type Machine struct {
	first *proc.Process
	tied  *proc.Tie
	enter string // the program that enters namespaces

	mu       sync.Mutex
	entering []*proc.Process // programs that have entered and may run
}

// Enters returns the program by which commands enter machines.
func Enters() proc.Program {
	return proc.Program{Name: "nsenter", Package: "util-linux", For: "a machine within this one"}
}

// Start starts a machine of this program, as root. It ends with the tie at the latest.
func Start(tied *proc.Tie, executable string, s Spec) (*Machine, error) {
	enter, err := Enters().Find(context.Background(), "")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("start a machine within this one: %w", err)
	}
	cmd := exec.Command(executable, "component", Component, string(text))
	cmd.Dir, cmd.Env = "/", environment()
	said := make(chan string, 1)
	m := &Machine{tied: tied, enter: enter.Path}
	m.first, err = proc.Start(cmd, proc.How{Name: "a machine within this one", On: tied.Do, Namespaces: Namespaces, Output: func(out io.Reader) {
		line, _ := bufio.NewReader(out).ReadString('\n') // "" if it ends
		said <- line
	}})
	if err != nil {
		return nil, err
	}
	if <-said != ready {
		m.Close()
		return nil, fmt.Errorf("start a machine within this one: %s", m.first.Said())
	}
	return m, nil
}

func environment() []string { return append(proc.Environment(), "HOME=/root", "GOMAXPROCS=1") }

// PID returns the pid of the first process.
func (m *Machine) PID() int { return m.first.PID() }

// Ended returns a channel that is closed once the machine has ended.
func (m *Machine) Ended() <-chan struct{} { return m.first.Done() }

// Path returns the path from outside to a file of the machine.
func (m *Machine) Path(inside string) string {
	return filepath.Join("/proc", strconv.Itoa(m.PID()), "root", inside)
}

// Command prepares a command for Start that runs in the machine, with its files, network and processes.
func (m *Machine) Command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(m.enter, append([]string{"--target=" + strconv.Itoa(m.PID()), "--mount", "--net", "--pid", "--", name}, args...)...)
	cmd.Env = environment()
	return cmd
}

const firstExtra = 3 // the file descriptor of a command's first extra file

// Start starts a command in a directory of the machine. Killing the process kills only the program that
// enters the machine; the command ends with the machine at the latest.
func (m *Machine) Start(cmd *exec.Cmd, how proc.How) (*proc.Process, error) {
	how.On = m.tied.Do
	more := []string{cmd.Args[0]}
	if how.As != nil {
		// The program that enters the machine needs rights that the command does not.
		more = append(more, "--setgid="+strconv.Itoa(how.As.Group), "--setuid="+strconv.Itoa(how.As.ID))
		self := proc.Self()
		how.As = &self
		// The command's user may not enter its directory.
		if at := slices.Index(cmd.Args, "--") + 1; filepath.IsAbs(cmd.Args[at]) && !proc.Reachable(cmd.Args[at]) {
			f, err := os.OpenFile(cmd.Args[at], unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				return nil, fmt.Errorf("start %s: %w", how.Name, err)
			}
			defer f.Close()
			cmd.Args[at] = fmt.Sprintf("/proc/self/fd/%d", firstExtra+len(cmd.ExtraFiles))
			cmd.ExtraFiles = append(cmd.ExtraFiles, f)
		}
	}
	more = append(more, "--wd="+m.Path(cmp.Or(cmd.Dir, "/")))
	cmd.Dir = ""
	cmd.Args = append(more, cmd.Args[1:]...)
	p, err := proc.Start(cmd, how)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.entering = append(slices.DeleteFunc(m.entering, (*proc.Process).Ended), p)
	return p, nil
}

// Proc reads the machine's processes, by their pids within it.
func (m *Machine) Proc() (procfs.FS, error) { return procfs.NewFS(m.Path("/proc")) }

// Kill kills processes by their pids within the machine, and returns once they have ended.
func (m *Machine) Kill(pids ...int) error {
	words := []string{"kill", "-9"}
	for _, pid := range pids {
		words = append(words, strconv.Itoa(pid))
	}
	p, err := m.Start(m.Command("/bin/sh", "-c", strings.Join(words, " ")), proc.How{Name: "kill"})
	if err == nil {
		err = p.Wait()
	}
	if err != nil {
		return fmt.Errorf("kill processes %v: %w", pids, err)
	}
	deadline := time.After(proc.EndBound)
	for _, pid := range pids {
		for {
			if _, err := os.Stat(m.Path("/proc/" + strconv.Itoa(pid))); err != nil {
				break
			}
			select {
			case <-time.After(time.Millisecond):
			case <-deadline:
				return fmt.Errorf("process %d was killed and does not end", pid)
			}
		}
	}
	return nil
}

// Close ends the machine and everything in it.
func (m *Machine) Close() {
	m.first.Kill()
	// The kernel waits until the parents of the processes notice; those with a stopped command have stopped.
	m.mu.Lock()
	for _, p := range m.entering {
		p.Kill()
	}
	m.mu.Unlock()
	<-m.first.Done()
}

const (
	hubNumber  = 253 // its address is the last of the range
	bridgeName = "hub"
	ownName    = "eth0"
)

// Address returns the n-th connected machine's address, from 0, in a range for documentation (RFC 5737).
func Address(n int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(n + 1)}) }

// MaxConnected is the number of machines that a hub can connect.
const MaxConnected = hubNumber

// Connect links each machine to a bridge of the hub's, unseen by this machine.
func Connect(hub *Machine, machines []*Machine) error {
	center, err := hub.Network()
	if err != nil {
		return err
	}
	defer center.Close()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridgeName
	if err := center.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil {
		return fmt.Errorf("make a bridge: %w", err)
	}
	if err := raise(center, bridgeName, Address(hubNumber)); err != nil {
		return err
	}
	bridge, err := center.LinkByName(bridgeName)
	if err != nil {
		return fmt.Errorf("make a bridge: %w", err)
	}
	for n, m := range machines {
		if err := m.connect(center, bridge, n); err != nil {
			return fmt.Errorf("connect machine %d: %w", n+1, err)
		}
	}
	return nil
}

func (m *Machine) connect(center *netlink.Handle, bridge netlink.Link, n int) error {
	own, err := m.Network()
	if err != nil {
		return err
	}
	defer own.Close()
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = "m"+strconv.Itoa(n+1), bridge.Attrs().Index
	link := &netlink.Veth{LinkAttrs: attributes, PeerName: ownName, PeerNamespace: netlink.NsPid(m.PID())}
	if err := center.LinkAdd(link); err != nil {
		return fmt.Errorf("lay a link: %w", err)
	}
	if err := center.LinkSetUp(link); err != nil {
		return fmt.Errorf("set up a link: %w", err)
	}
	return raise(own, ownName, Address(n))
}

// Network opens the machine's interfaces, with the loopback set up. Close it.
func (m *Machine) Network() (*netlink.Handle, error) {
	ns, err := netns.GetFromPid(m.PID())
	if err != nil {
		return nil, fmt.Errorf("reach a machine's network: %w", err)
	}
	defer ns.Close()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return nil, fmt.Errorf("reach a machine's network: %w", err)
	}
	lo, err := h.LinkByName("lo")
	if err == nil {
		err = h.LinkSetUp(lo)
	}
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("set up the loopback: %w", err)
	}
	return h, nil
}

func raise(h *netlink.Handle, name string, address netip.Addr) error {
	link, err := h.LinkByName(name)
	if err == nil {
		err = h.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(24, 32)}})
	}
	if err == nil {
		err = h.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("set up %s: %w", name, err)
	}
	return nil
}
