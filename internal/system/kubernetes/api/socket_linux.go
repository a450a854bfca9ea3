//go:build !race

package api

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// ahead returns a connection that reads with few system calls.
func ahead(conn net.Conn) (net.Conn, error) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return conn, nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &readAhead{conn, bufio.NewReaderSize(socket{raw}, 32<<10)}, nil
}

// readAhead reads as much as a connection has: TLS makes two system calls for each record.
type readAhead struct {
	net.Conn
	ahead *bufio.Reader
}

func (r *readAhead) Read(p []byte) (int, error) { return r.ahead.Read(p) }

// socket reads a connection without announcing the system call to Go's runtime: the call never blocks,
// and the announcement wakes the monitor thread, a quarter of the cost of each message.
type socket struct{ syscall.RawConn }

func (s socket) Read(p []byte) (n int, err error) {
	var errno syscall.Errno
	err = s.RawConn.Read(func(fd uintptr) bool {
		var got uintptr
		for errno = syscall.EINTR; errno == syscall.EINTR; {
			got, _, errno = syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		}
		n = int(got)
		return errno != syscall.EAGAIN
	})
	switch {
	case err != nil:
		return 0, err
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case n == 0 && len(p) > 0:
		return 0, io.EOF
	}
	return n, nil
}
