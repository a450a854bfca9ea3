package cpu

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	// preferred is the nice value of what goes first.
	preferred = -10
	// slice is how long a thread of normal priority runs at a time, in
	// nanoseconds. Since Linux 6.12 one that asks for little is served soon
	// after it wakes; older kernels take no notice.
	slice = 200_000

	roundRobin = 2 // SCHED_RR, sched(7)
)

// Prefer makes the calling process go first, as far as it may, and says in a
// phrase what it was allowed. With exact, root's threads become real-time ones
// of the lowest priority, for a load by a schedule: where the kernel shares the
// processors among sessions first, nice values count within one session only.
// It costs more of them, since every piece of news is then read by itself. The
// kernel keeps real-time threads from taking everything. Undo makes the process
// as others.
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

// PreferThread makes a thread that loads by a schedule a real-time one, as Prefer does
// with exact, or as others again; 0 is the calling thread.
func PreferThread(tid int, prefer bool) error {
	a := unix.SchedAttr{Size: unix.SizeofSchedAttr}
	if prefer {
		a.Policy, a.Priority = roundRobin, 1
	}
	return unix.SchedSetAttr(tid, &a, 0)
}

// Aside runs f on a thread that does not go first, where Prefer made real-time threads of
// all of them: for work of milliseconds beside a load by a schedule. A real-time thread
// runs until it waits, and the one that sends would be late by as much.
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

// Evenly runs f while no thread of the process goes before another: a collection of
// garbage, in which a real-time thread would turn round until one of Aside's has stopped,
// and keep it from doing so on the processor that they share.
func Evenly(f func()) {
	if was, err := unix.SchedGetAttr(0, 0); err == nil && was.Policy == roundRobin {
		_ = set(unix.SchedAttr{Nice: preferred, Runtime: slice})
		defer func() { _ = set(unix.SchedAttr{Policy: roundRobin, Priority: 1}) }()
	}
	f()
}

// Keep keeps the calling process to some processors, so that what it measures
// has the others to itself. Undo lets it have those of before again.
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

// eachThread calls f for every thread of the process and returns the first
// error. Threads to come inherit from those that start them.
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
