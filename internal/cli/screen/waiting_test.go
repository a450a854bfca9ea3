package screen

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// What is waited for is said at once on a terminal, and in a line elsewhere
// once it has lasted.
func TestWaitsAreNamed(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(0, 0)
	c := &Console{Stderr: &log, Now: func() time.Time { return now }}
	l := c.Waiting()
	l.Show("starting")
	defer l.End()
	said := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		l.last(l.stop)
		if log.String() != want {
			t.Errorf("said %q, want %q", &log, want)
		}
	}
	said(time.Second, "")
	want := "starting ...\n"
	said(time.Second, want)
	said(time.Second, want)
	l.Show("waiting for the nodes")
	said(time.Second, want)
	want += "waiting for the nodes ...\n"
	said(time.Second, want)
	// A count that changes all the time is said as well, but not each time.
	for i := range 60 {
		l.Show(fmt.Sprintf("%d nodes", i))
		if i%10 == 9 {
			want += fmt.Sprintf("%d nodes ...\n", i)
		}
		said(time.Second, want)
	}
}
