package telemetry

import (
	"runtime"

	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

// Host describes this machine. What cannot be read is zero.
func Host() record.Host {
	var h record.Host
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.OS, h.Kernel = unix.ByteSliceToString(name.Sysname[:]), unix.ByteSliceToString(name.Release[:])
	}
	h.CPUs = runtime.NumCPU() // as it was at the start, before this program kept off some
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	h.CgroupVersion = CgroupVersion()
	return h
}
