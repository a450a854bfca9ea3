package lab

import (
	"fmt"
	"net"
	"os"
)

// ports are the loopback ports of one lab.
type ports struct {
	Etcd              int `json:"etcd"`
	EtcdPeer          int `json:"etcdPeer"`
	APIServer         int `json:"kubeAPIServer"`
	ControllerManager int `json:"kubeControllerManager"`
	Scheduler         int `json:"kubeScheduler"`
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
// component listens on it, which Up answers by drawing anew. intn draws from
// [0, n).
func choosePorts(intn func(n int) int) (ports, error) {
	first, last := outgoingPorts()
	return drawPorts(intn, first, last, listenable)
}

func drawPorts(intn func(n int) int, outgoingFirst, outgoingLast int, free func(port int) bool) (ports, error) {
	var chosen [5]int
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
	return ports{chosen[0], chosen[1], chosen[2], chosen[3], chosen[4]}, nil
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
