package cpu

import (
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Whatever the user may, every thread of the process is as others after undo.
func TestPreferIsUndone(t *testing.T) {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	if before.Policy != 0 || before.Nice != 0 {
		t.Skip("the test itself does not run at normal priority")
	}
	for _, exact := range []bool{true, false} {
		how, undo := Prefer(exact)
		now, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(how, "real-time"):
			if !exact || now.Policy != roundRobin {
				t.Errorf("%s, and it runs by policy %d", how, now.Policy)
			}
		case strings.Contains(how, "nice"):
			if now.Policy != 0 || now.Nice != preferred {
				t.Errorf("%s, and its nice value is %d", how, now.Nice)
			}
		case now.Policy != 0 || now.Nice != 0:
			t.Errorf("%s, and it runs by policy %d, nice %d", how, now.Policy, now.Nice)
		}
		undo()
		err = eachThread(func(tid int) error {
			a, err := unix.SchedGetAttr(tid, 0)
			if err == nil && (a.Policy != 0 || a.Nice != 0) {
				t.Errorf("after undo thread %d runs by policy %d, nice %d", tid, a.Policy, a.Nice)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Beside real-time threads Aside's is none, and is one again; while garbage is collected
// no thread is one.
func TestAsideAndEvenlyStepBack(t *testing.T) {
	how, undo := Prefer(true)
	defer undo()
	if !strings.Contains(how, "real-time") {
		t.Skip("the user may not have real-time threads: " + how)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	policy := func(tid int) uint32 {
		a, err := unix.SchedGetAttr(tid, 0)
		if err == unix.ESRCH {
			return roundRobin // it has ended
		}
		if err != nil {
			t.Fatal(err)
		}
		return a.Policy
	}
	Aside(func() {
		if got := policy(0); got == roundRobin {
			t.Error("what is done aside runs at real-time priority")
		}
	})
	if got := policy(0); got != roundRobin {
		t.Errorf("afterwards the thread runs by policy %d", got)
	}
	Evenly(func() {
		_ = eachThread(func(tid int) error {
			if _, err := unix.SchedGetAttr(tid, 0); err == nil && policy(tid) == roundRobin {
				t.Errorf("thread %d goes before others", tid)
			}
			return nil
		})
	})
	if got := policy(0); got != roundRobin {
		t.Errorf("after a collection the thread runs by policy %d", got)
	}
}
