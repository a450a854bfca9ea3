package load

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

const (
	// broken has the events of a connection that the other side has ended.
	broken      = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	turn        = 512 << 10 // bounds the bytes that a connection reads in its turn
	mostAwaited = 256 << 10 // bounds the part of an answer that is awaited
)

// wait waits until the connection is readable or writable. The error says that the request was given up.
func (c *conn) wait(events uint32) error {
	for {
		if c.aborted {
			return os.ErrDeadlineExceeded
		}
		if c.ready&(events|broken) != 0 {
			return nil
		}
		c.pass(events)
	}
}

// pass gives others their turn until the connection can go on.
func (c *conn) pass(events uint32) {
	c.got, c.waits = 0, events|broken
	if c.yield != nil {
		c.yield()
		return
	}
	// Without a loop it polls.
	left := max(c.bound-c.now(), 0)
	fds := []unix.PollFd{{Fd: int32(c.fd), Events: int16(events)}}
	if n, err := unix.Poll(fds, int(left/1000)+1); n > 0 && err == nil {
		c.ready |= uint32(fds[0].Revents)
	}
	c.aborted = c.now() >= c.bound
}

func (c *conn) pause(d record.Micros) {
	c.bound, c.waits = c.last+d, 0
	c.nextBound = min(c.nextBound, c.bound)
	c.yield()
	c.bound, c.aborted = 0, false
	c.tick()
}

// wakeAt makes the connection readable when much of an answer's rest, or all of it, has arrived: a
// wake-up for each segment takes more of both processors than the bytes do.
func (c *conn) wakeAt(left int64) {
	n := int(min(left, mostAwaited))
	if n < bufferBytes {
		n = 1 // the kernel's default
	}
	if n != c.least && c.plan.TLS == nil && unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil {
		c.least = n
	}
}

func (c *conn) connect() error {
	if c.wrong != nil {
		return c.wrong
	}
	peer, family := c.peers[c.host], unix.AF_INET6
	if peer.Addr().Unmap().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.fd, c.ready, c.least = fd, 0, 1
	c.opens++
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // avoids late answers
	if n := len(c.plan.Sources); n > 0 {
		from := sockaddr(c.plan.Sources[int(c.source.Add(1))%n], 0)
		// The port is chosen at connect, so that one can serve many destinations.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err := unix.Bind(fd, from); err != nil {
			return err
		}
	}
	err = unix.Connect(fd, sockaddr(peer.Addr().AsSlice(), int(peer.Port())))
	if err != nil && err != unix.EINPROGRESS && err != unix.EINTR {
		return err
	}
	if c.epoll >= 0 {
		e := c.watched()
		if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_ADD, fd, &e); err != nil {
			return err
		}
	}
	if err == nil {
		return nil
	}
	if err := c.wait(unix.EPOLLOUT); err != nil {
		return err
	}
	if n, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || n != 0 {
		return syscall.Errno(n)
	}
	return nil
}

// watched returns the events that epoll watches, edge-triggered.
func (c *conn) watched() unix.EpollEvent {
	return unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: c.id, Pad: c.opens}
}

// call makes a quick system call without announcing it to Go's scheduler, whose monitor thread would wake up.
func call(number uintptr, fd int, buf unsafe.Pointer, n int, more uintptr) (int, syscall.Errno) {
	r, _, err := syscall.RawSyscall6(number, uintptr(fd), uintptr(buf), uintptr(n), more, 0, 0)
	return int(r), err
}

// socket is the connection for TLS.
type socket struct {
	*conn
	net.Conn // its other methods are never called
}

// Read implements net.Conn. It waits for data.
func (s socket) Read(p []byte) (int, error) {
	c := s.conn
	if c.got >= turn && c.epoll >= 0 {
		// If there is more, epoll reports it at once.
		e := c.watched()
		if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_MOD, c.fd, &e); err != nil {
			return 0, err
		}
		c.ready = 0
	}
	for {
		if err := c.wait(unix.EPOLLIN); err != nil {
			return 0, err
		}
		switch n, err := call(unix.SYS_READ, c.fd, unsafe.Pointer(unsafe.SliceData(p)), len(p), 0); {
		case n > 0:
			if n < len(p) && c.ready&broken == 0 {
				c.ready &^= unix.EPOLLIN // nothing is left
			}
			c.got += n
			c.received.Add(int64(n))
			return n, nil
		case err == 0:
			return 0, io.EOF
		case err == unix.EAGAIN:
			c.ready = 0
		case err != unix.EINTR:
			return 0, err
		}
	}
}

// Write implements net.Conn. It waits until everything is written.
func (s socket) Write(p []byte) (written int, err error) {
	c := s.conn
	for written < len(p) {
		switch n, err := call(unix.SYS_WRITE, c.fd, unsafe.Pointer(&p[written]), len(p)-written, 0); {
		case err == 0:
			written, c.put = written+n, c.put+int64(n)
		case err == unix.EAGAIN:
			c.ready &^= unix.EPOLLOUT
			if err := c.wait(unix.EPOLLOUT); err != nil {
				return written, err
			}
		case err != unix.EINTR:
			return written, err
		}
	}
	return written, nil
}

// SetWriteDeadline implements net.Conn: the request has the only bound.
func (socket) SetWriteDeadline(time.Time) error { return nil }

func sockaddr(ip net.IP, port int) unix.Sockaddr {
	if four := ip.To4(); four != nil {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte(four)}
	}
	return &unix.SockaddrInet6{Port: port, Addr: [16]byte(ip)}
}
