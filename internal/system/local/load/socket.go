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
	// broken are the events of a connection that the other side has ended.
	broken = unix.EPOLLRDHUP | unix.EPOLLHUP | unix.EPOLLERR
	// turn is how many bytes a connection reads before others have their turn.
	turn = 512 << 10
	// mostAwaited is how much of an answer is waited for at most.
	mostAwaited = 256 << 10
)

// wait waits until the connection can be read or written. It is an error once
// the request is given up.
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

// pass lets others have their turn until the connection can go on.
func (c *conn) pass(events uint32) {
	c.got, c.waits = 0, events|broken
	if c.yield != nil {
		c.yield()
		return
	}
	// It is alone.
	left := max(c.bound-c.now(), 0)
	fds := []unix.PollFd{{Fd: int32(c.fd), Events: int16(events)}}
	if n, err := unix.Poll(fds, int(left/1000)+1); n > 0 && err == nil {
		c.ready |= uint32(fds[0].Revents)
	}
	c.aborted = c.now() >= c.bound
}

// pause waits for some time.
func (c *conn) pause(d record.Micros) {
	c.bound, c.waits = c.last+d, 0
	c.nextBound = min(c.nextBound, c.bound)
	c.yield()
	c.bound, c.aborted = 0, false
	c.tick()
}

// wakeAt has the connection be ready once much of an answer is there of which so many
// bytes are still to come, or all of it. If each segment of a large answer wakes this
// thread, it wakes the other side as often by its acknowledgements, which takes more of
// both processors than the bytes do.
func (c *conn) wakeAt(left int64) {
	n := int(min(left, mostAwaited))
	if n < bufferBytes {
		n = 1 // the kernel's own
	}
	if n != c.least && c.plan.TLS == nil && unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil {
		c.least = n
	}
}

// connect opens a connection.
func (c *conn) connect() error {
	if c.wrong != nil {
		return c.wrong
	}
	fd, err := unix.Socket(c.family, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	c.fd, c.ready, c.least = fd, 0, 1
	c.opens++
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) // without it answers are later
	if n := len(c.plan.Sources); n > 0 {
		from := sockaddr(c.plan.Sources[int(c.source.Add(1))%n], 0)
		// The port is chosen when the connection is made, so that one can serve for
		// many destinations; without it there are fewer ports.
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1)
		if err := unix.Bind(fd, from); err != nil {
			return err
		}
	}
	err = unix.Connect(fd, c.peer())
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

// watched is what the connection is watched for: each change is told of once.
func (c *conn) watched() unix.EpollEvent {
	return unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: c.id, Pad: c.opens}
}

// call makes a system call about a file that takes a buffer. Go's scheduler does
// not learn of it: else the thread that watches over it would look after this one
// thousands of times a second. What is called must return soon.
func call(number uintptr, fd int, buf unsafe.Pointer, n int, more uintptr) (int, syscall.Errno) {
	r, _, err := syscall.RawSyscall6(number, uintptr(fd), uintptr(buf), uintptr(n), more, 0, 0)
	return int(r), err
}

// socket is the connection as TLS takes it.
type socket struct {
	*conn
	net.Conn // what it does not have itself is never called
}

// Read implements net.Conn. It waits until there is something.
func (s socket) Read(p []byte) (int, error) {
	c := s.conn
	if c.got >= turn && c.epoll >= 0 {
		// It will be told of at once if there is more.
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
				c.ready &^= unix.EPOLLIN // there was no more
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

// Write implements net.Conn. It waits until all is written.
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

// SetWriteDeadline implements net.Conn. There is one bound, that of the request.
func (socket) SetWriteDeadline(time.Time) error { return nil }

// sockaddr is an address of either family as calls take it.
func sockaddr(ip net.IP, port int) unix.Sockaddr {
	if four := ip.To4(); four != nil {
		return &unix.SockaddrInet4{Port: port, Addr: [4]byte(four)}
	}
	return &unix.SockaddrInet6{Port: port, Addr: [16]byte(ip)}
}
