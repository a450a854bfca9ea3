package cpu

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	preferred = -10 // the nice value of this process
	// slice bounds a turn of a thread in nanoseconds: since Linux 6.12 it then runs soon after it wakes.
	slice = 200_000

	roundRobin = 2 // SCHED_RR, sched(7)
)

// Prefer raises this process's CPU priority until undo, and says in a phrase what the kernel allowed. With
// exact, for a load by a schedule, root's threads become real-time threads of the lowest priority, since nice
// values may count within one session only. That costs processor time.
func Prefer(exact bool) (how string, undo func()) {
	undo = func() { _ = set(unix.SchedAttr{}) }
	switch {
	case exact && set(unix.SchedAttr{Policy: roundRobin, Priority: 1}) == nil:
		return "the load generator and observer run at real-time priority", undo
	case set(unix.SchedAttr{Nice: preferred, Runtime: slice}) == nil:
		return fmt.Sprintf("the load generator and observer run at nice %d", preferred), undo
	case set(unix.SchedAttr{Runtime: slice}) == nil:
		return "the load generator and observer run at normal priority, in short slices", undo
	}
	return "the load generator and observer run at normal priority", undo
}

// PreferThread makes a thread real-time, as Prefer does with exact, or normal again; 0 is the calling thread.
func PreferThread(tid int, prefer bool) error {
	a := unix.SchedAttr{Size: unix.SizeofSchedAttr}
	if prefer {
		a.Policy, a.Priority = roundRobin, 1
	}
	return unix.SchedSetAttr(tid, &a, 0)
}

// Aside runs f on a thread of normal priority: a real-time thread at work would delay the sender of a load.
func Aside(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if was, err := unix.SchedGetAttr(0, 0); err == nil && was.Policy == roundRobin {
		after := unix.SchedAttr{Size: unix.SizeofSchedAttr, Nice: preferred, Runtime: slice}
		if unix.SchedSetAttr(0, &after, 0) == nil {
			defer func() { _ = PreferThread(0, true) }()
		}
	}
	f()
}

// Evenly runs f while all threads share one priority: in a garbage collection, a real-time thread would wait
// in a loop for one of Aside's on the same processor.
func Evenly(f func()) {
	if was, err := unix.SchedGetAttr(0, 0); err == nil && was.Policy == roundRobin {
		_ = set(unix.SchedAttr{Nice: preferred, Runtime: slice})
		defer func() { _ = set(unix.SchedAttr{Policy: roundRobin, Priority: 1}) }()
	}
	f()
}

// Keep restricts this process to some processors until undo, to leave the others to what it measures.
func Keep(processors []int) (undo func(), err error) {
	var before, wanted unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, fmt.Errorf("read own processors: %w", err)
	}
	for _, p := range processors {
		wanted.Set(p)
	}
	keep := func(to unix.CPUSet) error {
		return eachThread(func(tid int) error { return unix.SchedSetaffinity(tid, &to) })
	}
	if err := keep(wanted); err != nil {
		return nil, fmt.Errorf("keep to processors %v: %w", processors, err)
	}
	return func() { _ = keep(before) }, nil
}

func set(a unix.SchedAttr) error {
	a.Size = unix.SizeofSchedAttr
	return eachThread(func(tid int) error { return unix.SchedSetAttr(tid, &a, 0) })
}

// eachThread calls f for every thread of the process. New threads inherit.
func eachThread(f func(tid int) error) error {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, task := range tasks {
		tid, err := strconv.Atoi(task.Name())
		if err != nil {
			continue
		}
		if err := f(tid); err != nil && err != unix.ESRCH {
			return err
		}
	}
	return nil
}
