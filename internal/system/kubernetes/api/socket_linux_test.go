//go:build !race

package api

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// A socket that is read by ourselves is read as net does it: what is there, the
// end of the time, the end of the connection.
func TestSocket(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	peer, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	s, buf := socket{raw}, make([]byte, 8)
	time.AfterFunc(20*time.Millisecond, func() { _, _ = peer.Write([]byte("news")) })
	if n, err := s.Read(buf); err != nil || string(buf[:n]) != "news" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(buf); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %d, %v", n, err)
	}
	if err := errors.Join(conn.SetReadDeadline(time.Time{}), peer.Close()); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Read(buf); n != 0 || err != io.EOF {
		t.Errorf("at the end: %d, %v", n, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(buf); err == nil {
		t.Error("a closed socket was read")
	}
}
