package load

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

// A connection that reads a large answer is woken once much of it is there, or the rest,
// and never waits for more than is to come.
func TestALargeAnswerWakesSeldom(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	clock := record.StartClock(time.Now)
	o := NewOne(Plan{Address: l.Addr().String(), Hosts: []Host{{Name: "www.test", Weight: 1}}, Method: "GET", Path: "/"}, clock.Now)
	c := o.conn
	c.Timeout = time.Minute
	if c.beginAt(0, c.now()); c.connect() != nil {
		t.Fatal("no connection")
	}
	defer c.close()
	awaits := func() int {
		n, err := unix.GetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	feed := func(n int) {
		if _, err := c.answer.Feed([]byte(strings.Repeat("p", n))); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.answer.Feed([]byte("HTTP/1.1 200 OK\r\nContent-Length: 1048576\r\n")); err != nil || c.answer.Left() != 0 {
		t.Errorf("%v; before its head is over %d bytes are said to be left", err, c.answer.Left())
	}
	if _, err := c.answer.Feed([]byte("\r\n")); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ more, left, awaits int }{
		{0, 1 << 20, mostAwaited},
		{1<<20 - 100<<10, 100 << 10, 100 << 10},
		{90 << 10, 10 << 10, 1},
		{10 << 10, 0, 1},
	} {
		feed(step.more)
		if c.wakeAt(c.answer.Left()); c.answer.Left() != int64(step.left) || awaits() != step.awaits {
			t.Errorf("%d bytes are left, and it is woken by %d, want %d and %d", c.answer.Left(), awaits(), step.left, step.awaits)
		}
	}
}
