package telemetry

import (
	"runtime"
	"runtime/debug"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

// ShedStartup gives back memory of the start, for a process whose memory counts: garbage of the heap, and
// pages of the program's file, of which the page cache returns the needed ones. From then on the heap grows by half
// between two collections, unless GOGC says otherwise.
func ShedStartup() {
	growByHalf()
	debug.FreeOSMemory()
	proc, err := procfs.Self()
	if err != nil {
		return
	}
	executable, err := proc.Executable()
	if err != nil {
		return
	}
	maps, err := proc.ProcMaps()
	if err != nil {
		return
	}
	for _, m := range maps {
		// Only mappings that cannot be written to are sure to equal the file.
		if m.Pathname == executable && !m.Perms.Write {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_DONTNEED)
		}
	}
	ResetPeak()
}

// CgroupVersion returns "1", "2", "hybrid" (version 2 for some uses only) or "none".
func CgroupVersion() string {
	var fs unix.Statfs_t
	if unix.Statfs("/sys/fs/cgroup", &fs) != nil {
		return "none"
	}
	if fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return "2"
	}
	if unix.Statfs("/sys/fs/cgroup/unified", &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return "hybrid"
	}
	return "1"
}

// Host describes this machine. What cannot be read is zero.
func Host() record.Host {
	var h record.Host
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	h.CPUs = runtime.NumCPU() // counted at the start, before this program left some to others
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	h.Cgroup = CgroupVersion()
	return h
}
