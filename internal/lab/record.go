package lab

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"plimsoll.dev/plimsoll/internal/lab/realnode"
	"plimsoll.dev/plimsoll/internal/text/flock"
	"plimsoll.dev/plimsoll/internal/text/size"
)

const recordSchema = "plimsoll/lab/v1"

// record is lab.json. It holds no pids: the process table cannot be out of date.
type record struct {
	Schema  string    `json:"schema"`
	Name    string    `json:"name"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Private bool      `json:"private"`
	Owner   int       `json:"owner"` // the process that made it; a private lab dies with it
	Ready   bool      `json:"ready"` // it was up once
	Shape             // the Spec's, but for the real node
	Ports   ports     `json:"ports"`
	// QEMU runs real guests from the directory GuestImage; both are empty without.
	QEMU       string         `json:"qemu,omitempty"`
	GuestImage string         `json:"guestImage,omitempty"`
	RealNode   *realnode.Spec `json:"realNode,omitempty"`
}

func (r record) spec() Spec {
	s := Spec{Name: r.Name, Shape: r.Shape, Private: r.Private}
	if n := r.RealNode; n != nil {
		s.RealNode, s.NodeCPUs, s.NodeMemory, s.PodCIDRPrefix = true, n.CPUs, size.Bytes(n.MemoryBytes), n.PodCIDR.Bits()
	}
	return s
}

// directory holds all files of one lab.
type directory string

func (d directory) path(parts ...string) string {
	return filepath.Join(append([]string{string(d)}, parts...)...)
}

func (d directory) kubeconfig() string                 { return d.path("kubeconfig") }
func (d directory) componentConfig(user string) string { return d.path("pki", user+".kubeconfig") }
func (d directory) log(component string) string        { return d.path("logs", component+".log") }
func (d directory) cert(name string) string            { return d.path("pki", name+".crt") }
func (d directory) key(name string) string             { return d.path("pki", name+".key") }

// readyFile appears when a component that serves nothing works.
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

type ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"kubeAPIServer"`
	ControllerManager int `json:"kubeControllerManager"`
	Scheduler         int `json:"kubeScheduler"`
	SimulatedNodes    int `json:"simulatedNodes,omitempty"` // for the API server; 0 in older labs
	VirtAPI           int `json:"virtAPI,omitempty"`        // for the API server
	Guests            int `json:"guests,omitempty"`         // of all guests, at addresses of their own
}

// Ports lie in this range, but outside the kernel's range for outgoing connections.
const (
	lowestPort  = 10000
	highestPort = 60999
)

// choosePorts draws distinct free ports outside of the kernel's range for outgoing connections, so that a
// restart finds them free. Another program may still take one: then Up draws again.
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

// outgoingPorts returns the kernel's range for outgoing connections, or Linux's default.
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

// lock is the right to change a lab, on its directory: the kernel releases it when the holder dies.
type lock struct{ dir *os.File }

// tryLock locks a directory, or returns nil, nil if another process has it and fs.ErrNotExist if it is gone.
func tryLock(dir string) (*lock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := flock.Exclusive(f); err != nil {
		f.Close()
		if errors.Is(err, flock.ErrHeld) {
			return nil, nil
		}
		return nil, &os.PathError{Op: "lock", Path: dir, Err: err}
	}
	// The directory may have been removed and made again before it was locked.
	locked, err := f.Stat()
	var now os.FileInfo
	if err == nil {
		now, err = os.Stat(dir)
	}
	if err == nil && !os.SameFile(locked, now) {
		err = &os.PathError{Op: "lock", Path: dir, Err: os.ErrNotExist}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &lock{f}, nil
}

func (l *lock) release() { l.dir.Close() }
