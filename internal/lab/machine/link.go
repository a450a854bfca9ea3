package machine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// linkBlock is the number of bytes per write: the most that a write of FUSE has.
const linkBlock = 128 << 10

// Dial connects one machine by TCP to another at its address within patience, and returns both ends.
func Dial(from, to *Machine, address netip.Addr, patience time.Duration) (dialled, accepted *net.TCPConn, err error) {
	var listener *net.TCPListener
	err = to.InNetwork(func() (err error) {
		listener, err = net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(netip.AddrPortFrom(address, 0)))
		return err
	})
	var conn net.Conn
	if err == nil {
		defer listener.Close()
		err = from.InNetwork(func() (err error) {
			conn, err = net.DialTimeout("tcp4", listener.Addr().String(), patience)
			return err
		})
	}
	if err == nil {
		dialled = conn.(*net.TCPConn)
		accepted, err = listener.AcceptTCP()
	}
	if err != nil {
		if dialled != nil {
			dialled.Close()
		}
		return nil, nil, fmt.Errorf("connect two machines by TCP: %w", err)
	}
	return dialled, accepted, nil
}

// connectFor bounds a connection's start: if packets are lost, the first is sent again after 1 s and 3 s.
const connectFor = 10 * time.Second

// Throughput measures the bytes a second of one TCP connection from a machine to another.
func Throughput(from *Machine, address netip.Addr, to *Machine, long time.Duration) (float64, error) {
	receiver, sender, err := Dial(to, from, address, connectFor)
	if err != nil {
		return 0, fmt.Errorf("measure a link: %w", err)
	}
	defer receiver.Close()
	go func() {
		defer sender.Close()
		block := make([]byte, linkBlock)
		for _, err := sender.Write(block); err == nil; { // until the receiver closes
			_, err = sender.Write(block)
		}
	}()
	time.AfterFunc(long, func() { receiver.Close() })
	received, block := 0, make([]byte, linkBlock)
	for {
		n, err := receiver.Read(block)
		received += n
		switch {
		case errors.Is(err, net.ErrClosed):
			return float64(received) / long.Seconds(), nil
		case err != nil:
			return 0, fmt.Errorf("measure a link: %w", err)
		}
	}
}

// InNetwork runs do in the machine's network, where the sockets that it makes stay.
func (m *Machine) InNetwork(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
		err := m.EnterNetwork()
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

// EnterNetwork moves the calling thread to the machine's network for good: lock the goroutine to it.
func (m *Machine) EnterNetwork() error {
	ns, err := netns.GetFromPid(m.PID())
	if err == nil {
		defer ns.Close()
		err = netns.Set(ns)
	}
	if err != nil {
		return fmt.Errorf("reach a machine's network: %w", err)
	}
	return nil
}

// A bucket holds a link's millisecond, three frames at least; the queue ten milliseconds and some frames.
const (
	leastBucket = 3 * 1514
	queueFrames = 100 * 1514
)

// LimitRate bounds what leaves a link to so many bits a second.
func LimitRate(h *netlink.Handle, link netlink.Link, rate float64) error {
	bytes := uint64(rate / 8)
	bucket := max(uint32(bytes/1000), leastBucket)
	err := h.QdiscAdd(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate:       bytes, Buffer: netlink.Xmittime(bytes, bucket), Limit: bucket + uint32(bytes/100) + queueFrames,
	})
	if err != nil {
		return fmt.Errorf("limit the rate of %s (tbf): %w", link.Attrs().Name, err)
	}
	return nil
}
