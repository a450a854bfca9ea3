package load_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/local/load"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// Where all threads are real-time ones, what encodes windows and what reads the kernel's
// figures are none while a stream is under way: the one that sends would be late by as
// long as they run. Before and after it they are like the others.
func TestWorkBesideAStreamGoesLast(t *testing.T) {
	how, undo := cpu.Prefer(true)
	defer undo()
	if !strings.Contains(how, "real-time") {
		t.Skip("the user may not have real-time threads: " + how)
	}
	goesFirst := func() bool {
		a, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		return a.Policy != 0
	}
	clock := record.StartClock(time.Now)
	g := load.New(short(each(t, func(c *net.TCPConn, _ int) bool {
		_, err := c.Write([]byte(answer))
		return err == nil
	})), clock.Now, 1)
	windows, first, readings := 0, 0, 0
	read := func() {
		if goesFirst() {
			readings++
		}
	}
	g.Beside(read)
	if readings != 1 {
		t.Error("before the stream readings are made at another priority than the process has")
	}
	var sum total
	err := g.Run(t.Context(), streams.Schedule{
		Open: true, Value: 1000, Begin: clock.Now(), Hold: 50 * time.Millisecond, Window: 10 * time.Millisecond, Timeout: time.Second, DropAfter: time.Second, MaxInFlight: 10,
	}, func(w *record.Window) {
		sum.add(w)
		if windows++; goesFirst() {
			first++
		}
		if windows == 1 {
			g.Beside(read)
		}
	})
	if err != nil || sum.Done != 50 {
		t.Fatalf("%v; %+v", err, sum.Window)
	}
	if first > 0 || readings != 1 {
		t.Errorf("%d of %d windows were encoded at real-time priority, and %d readings made beside the stream", first, windows, readings-1)
	}
	if g.Beside(read); readings != 2 {
		t.Error("after the stream readings are made at another priority than the process has")
	}
}
