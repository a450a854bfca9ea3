package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/text/size"
)

// recordSchema is the version of lab.json.
const recordSchema = "plimsoll/lab/v1"

// record is what is written down about a lab, as lab.json. It holds no
// process numbers: those are read from the system, which cannot be out of date.
type record struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Private bool      `json:"private"`
	Owner   int       `json:"owner"` // process that made it, and that a private one belongs to
	Ready   bool      `json:"ready"` // it was up once
	// Shape is that of the Spec, but for the real node.
	Shape
	Ports ports `json:"ports"`
	// QEMU is the program that runs real guests, GuestImage the directory of what
	// they boot from; empty without any.
	QEMU       string `json:"qemu,omitempty"`
	GuestImage string `json:"guestImage,omitempty"`
	// RealNode is the real node, nil if there is none.
	RealNode *realnode.Spec `json:"realNode,omitempty"`
}

func (r record) spec() Spec {
	s := Spec{Name: r.Name, Shape: r.Shape, Private: r.Private}
	if n := r.RealNode; n != nil {
		s.RealNode, s.NodeCPUs, s.NodeMemory, s.PodCIDRPrefix = true, n.CPUs, size.Bytes(n.MemoryBytes), n.PodCIDR.Bits()
	}
	return s
}

// directory is where all files of one lab are.
type directory string

func (d directory) path(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

func (d directory) kubeconfig() string                 { return d.path("kubeconfig") }
func (d directory) componentConfig(user string) string { return d.path("pki", user+".kubeconfig") }
func (d directory) log(component string) string        { return d.path("logs", component+".log") }
func (d directory) cert(name string) string            { return d.path("pki", name+".crt") }
func (d directory) key(name string) string             { return d.path("pki", name+".key") }

// readyFile is the file by which a component that serves nothing says that it works.
func (d directory) readyFile(component string) string { return d.path(component + ".works") }

func (d directory) name() string { return filepath.Base(string(d)) }

func (d directory) readRecord() (record, error) {
	var r record
	data, err := os.ReadFile(d.path("lab.json"))
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", d.path("lab.json"), err)
	}
	if r.Schema != recordSchema {
		return r, fmt.Errorf("read %s: schema %q, this program knows %q", d.path("lab.json"), r.Schema, recordSchema)
	}
	return r, nil
}

// writeRecord replaces lab.json in one move, so that a reader never sees half.
func (d directory) writeRecord(r record) error {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	temporary := d.path(".lab.json")
	if err := os.WriteFile(temporary, append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, d.path("lab.json"))
}

// ports are the loopback ports of one lab.
type ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"kubeAPIServer"`
	ControllerManager int `json:"kubeControllerManager"`
	Scheduler         int `json:"kubeScheduler"`
	// SimulatedNodes is where the API server reaches them; 0 in a lab that was
	// made before they listened.
	SimulatedNodes int `json:"simulatedNodes,omitempty"`
	// VirtAPI is where the API server reaches what answers for virtual machines,
	// Guests where these answer, at addresses of their own.
	VirtAPI int `json:"virtAPI,omitempty"`
	Guests  int `json:"guests,omitempty"`
}

// The range that ports are taken from unless the kernel uses part of it for
// outgoing connections.
const (
	lowestPort  = 10000
	highestPort = 60999
)

// choosePorts draws distinct ports that nothing listens on. It stays clear of
// the kernel's range for outgoing connections: a component that is restarted
// must find its port free again. Another program may still take one before the
// component listens on it, which Up answers by drawing again. intn draws from
// [0, n).
func choosePorts(intn func(n int) int) (ports, error) {
	first, last := outgoingPorts()
	return drawPorts(intn, first, last, listenable)
}

func drawPorts(intn func(n int) int, outgoingFirst, outgoingLast int, free func(port int) bool) (ports, error) {
	var chosen [8]int
	taken := map[int]bool{}
	for i := range chosen {
		for tries := 0; chosen[i] == 0; tries++ {
			if tries == 10_000 {
				return ports{}, fmt.Errorf("choose ports on 127.0.0.1: none free between %d and %d", lowestPort, highestPort)
			}
			port := lowestPort + intn(highestPort-lowestPort+1)
			outgoing := port >= outgoingFirst && port <= outgoingLast
			if !outgoing && !taken[port] && free(port) {
				chosen[i], taken[port] = port, true
			}
		}
	}
	return ports{chosen[0], chosen[1], chosen[2], chosen[3], chosen[4], chosen[5], chosen[6], chosen[7]}, nil
}

func listenable(port int) bool {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return false
	}
	return l.Close() == nil
}

// outgoingPorts is the kernel's range for outgoing connections, or Linux's
// default if it cannot be read or leaves too little room outside of it.
func outgoingPorts() (first, last int) {
	data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err == nil {
		_, err = fmt.Sscan(string(data), &first, &last)
	}
	const room = 1000
	outside := max(0, first-lowestPort) + max(0, highestPort-last)
	if err != nil || outside < room {
		return 32768, 60999
	}
	return first, last
}

// lock is the right to change one lab. It is a lock on the directory
// itself: there is no lock file to leave behind, and the kernel gives it back
// when its holder dies, however it dies.
type lock struct{ dir *os.File }

// tryLock locks a directory. It returns nil, nil if another process holds it,
// and an error that is fs.ErrNotExist if it is gone.
func tryLock(dir string) (*lock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	// Between opening and locking the directory may have been removed and made
	// again; a lock on the old one protects nothing.
	locked, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		now, err = os.Stat(dir)
		if err == nil && !os.SameFile(locked, now) {
			err = &os.PathError{Op: "lock", Path: dir, Err: os.ErrNotExist}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &lock{f}, nil
}

func (l *lock) release() { l.dir.Close() }
