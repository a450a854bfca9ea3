package cpu

import (
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
