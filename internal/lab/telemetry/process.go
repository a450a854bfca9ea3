// Package telemetry reads what processes use: CPU and memory, from /proc.
package telemetry

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/record"
)

// Usage is what a process has used so far.
type Usage struct {
	CPUSeconds float64 // user and system, since its start
	RSSBytes   int64   // resident memory now
	// PeakBytes is the largest resident memory since the start, or since
	// ResetPeak; 0 where it is not known.
	PeakBytes int64
	// ShareBytes is the proportional share of memory: what processes have in
	// common counts in parts (PSS). 0 where it was not read.
	ShareBytes int64
	// Threads and Handles (open files) are those of now, 0 where they were not
	// read.
	Threads, Handles int
}

// ReadProcess reads the usage of a process. CPU time of another process has a
// resolution of 10 ms, that of this one of a microsecond.
func ReadProcess(pid int) (Usage, error) {
	if pid == os.Getpid() {
		return self()
	}
	proc, err := procfs.NewProc(pid)
	var stat procfs.ProcStat
	if err == nil {
		stat, err = proc.Stat()
	}
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of process %d: %w", pid, err)
	}
	return Usage{CPUSeconds: stat.CPUTime(), RSSBytes: int64(stat.ResidentMemory())}, nil
}

// ReadAny reads the usage of a process of whatever view of processes, with its
// threads and open files; on request with its proportional share of memory, and
// with the CPU time of children of its that have ended.
func ReadAny(proc procfs.Proc, share, children bool) (Usage, error) {
	stat, err := proc.Stat()
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of process %d: %w", proc.PID, err)
	}
	u := Usage{CPUSeconds: stat.CPUTime(), RSSBytes: int64(stat.ResidentMemory()), Threads: stat.NumThreads}
	if children {
		own := stat
		own.UTime, own.STime = uint(own.CUTime), uint(own.CSTime)
		u.CPUSeconds += own.CPUTime()
	}
	if u.Handles, err = proc.FileDescriptorsLen(); err != nil {
		return Usage{}, fmt.Errorf("read open files of process %d: %w", proc.PID, err)
	}
	if share {
		rollup, err := proc.ProcSMapsRollup()
		if err != nil {
			return Usage{}, fmt.Errorf("read memory of process %d: %w", proc.PID, err)
		}
		u.ShareBytes = int64(rollup.Pss)
	}
	return u, nil
}

func self() (Usage, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("read own usage: %w", err)
	}
	u := Usage{CPUSeconds: float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9}
	proc, err := procfs.Self()
	var status procfs.ProcStatus
	if err == nil {
		status, err = proc.NewStatus()
	}
	if err != nil {
		return u, fmt.Errorf("read own usage: %w", err)
	}
	u.RSSBytes, u.PeakBytes = int64(status.VmRSS), int64(status.VmHWM)
	return u, nil
}

// Machine reads how many CPUs the machine has and for how many seconds, summed
// over them, they have worked since it was started.
func Machine() (cpus int, busySeconds float64, err error) {
	proc, err := procfs.NewDefaultFS()
	var stat procfs.Stat
	if err == nil {
		stat, err = proc.Stat()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read usage of the machine: %w", err)
	}
	c := stat.CPUTotal // guest time is counted in user time too
	return len(stat.CPU), c.User + c.Nice + c.System + c.IRQ + c.SoftIRQ + c.Steal, nil
}

// ShedStartup gives back memory that starting took and running does not need:
// garbage of the heap, and pages of the program's own file. This program holds
// a whole control plane, and the set-up of packages that a run never calls has
// touched most of the file; what a run does call is read again from the page
// cache when it is touched. It is for a process whose memory is measured.
// Nothing happens where the system cannot do it.
func ShedStartup() {
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
		// Only what cannot differ from the file may be dropped: mappings that
		// cannot be written to.
		if m.Pathname == executable && !m.Perms.Write {
			// The error is of no matter: the pages then stay.
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.StartAddr, m.EndAddr-m.StartAddr, unix.MADV_DONTNEED)
		}
	}
	ResetPeak()
}

// ResetPeak begins the measuring of this process's peak memory anew. Nothing
// happens where the system cannot do it.
func ResetPeak() {
	// "5" resets the peak; see proc(5), clear_refs.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// CgroupVersion is the version of control groups that this system uses: "1",
// "2", or "hybrid" where version 2 is there for some uses only; "none" without
// any.
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

// Sample is the usage as a reading of a source of that name.
func (u Usage) Sample(source string) record.Reading {
	s := record.Reading{Source: source, Values: map[string]float64{"cpuSeconds": u.CPUSeconds, "rssBytes": float64(u.RSSBytes)}}
	if u.PeakBytes > 0 {
		s.Values["peakBytes"] = float64(u.PeakBytes)
	}
	return s
}

// Host describes this machine. What cannot be read is zero.
func Host() record.Host {
	var h record.Host
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		h.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	h.CPUs = runtime.NumCPU() // as it was at the start, before this program kept off some
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		h.MemoryBytes = int64(info.Totalram) * int64(info.Unit)
	}
	h.Cgroup = CgroupVersion()
	return h
}

// AvailableMemory is, in bytes, the lesser of what the machine and our cgroup leave.
// What a cgroup holds of files that were not used lately counts as left: the kernel
// takes it back first.
func AvailableMemory() (int64, error) {
	proc, err := procfs.NewDefaultFS()
	var info procfs.Meminfo
	if err == nil {
		info, err = proc.Meminfo()
	}
	if err != nil {
		return 0, err
	}
	if info.MemAvailableBytes == nil {
		return 0, errors.New("/proc/meminfo has no MemAvailable")
	}
	available := int64(*info.MemAvailableBytes)
	for _, version := range []struct{ limit, used, stat, files string }{
		{"memory.max", "memory.current", "memory.stat", "inactive_file "},
		{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file "},
	} {
		if left, ok := leftIn("/sys/fs/cgroup", version.limit, version.used, version.stat, version.files); ok {
			available = min(available, left)
		}
	}
	return available, nil
}

// leftIn is what the limit of a control group leaves of its memory; not ok where it
// has none.
func leftIn(group, limit, used, stat, files string) (int64, bool) {
	most, limited := ReadInt(filepath.Join(group, limit))
	now, ok := ReadInt(filepath.Join(group, used))
	text, _ := os.ReadFile(filepath.Join(group, stat)) // without it all of it is in use
	for line := range strings.Lines(string(text)) {
		if value, is := strings.CutPrefix(line, files); is {
			unused, _ := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			now -= unused
		}
	}
	return max(0, most-now), limited && ok
}

// ReadInt is the number that a file of the system holds; not ok where it holds
// none.
func ReadInt(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return v, err == nil
}
