// Package telemetry reads what processes use: CPU and memory, from /proc.
package telemetry

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

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
}

// ticksPerSecond is the unit of CPU time in /proc, fixed for user space on
// Linux.
const ticksPerSecond = 100

// ReadProcess reads the usage of a process. CPU time of another process has a
// resolution of 10 ms, that of this one of a microsecond.
func ReadProcess(pid int) (Usage, error) {
	if pid == os.Getpid() {
		return self()
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Usage{}, fmt.Errorf("read usage of process %d: %w", pid, err)
	}
	// The command's name, in parentheses, may hold spaces and parentheses.
	end := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[end+1:])
	const utime, stime, rss = 14 - 3, 15 - 3, 24 - 3 // proc(5), after the name
	if end < 0 || len(fields) <= rss {
		return Usage{}, fmt.Errorf("read usage of process %d: its stat has %d fields", pid, len(fields))
	}
	u, err1 := strconv.ParseInt(string(fields[utime]), 10, 64)
	s, err2 := strconv.ParseInt(string(fields[stime]), 10, 64)
	pages, err3 := strconv.ParseInt(string(fields[rss]), 10, 64)
	if err1 != nil || err2 != nil || err3 != nil {
		return Usage{}, fmt.Errorf("read usage of process %d: its stat holds what is no number", pid)
	}
	return Usage{CPUSeconds: float64(u+s) / ticksPerSecond, RSSBytes: pages * int64(os.Getpagesize())}, nil
}

func self() (Usage, error) {
	var r unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
		return Usage{}, fmt.Errorf("read own usage: %w", err)
	}
	u := Usage{CPUSeconds: float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return u, fmt.Errorf("read own usage: %w", err)
	}
	u.RSSBytes, u.PeakBytes = kilobytes(status, "VmRSS:"), kilobytes(status, "VmHWM:")
	return u, nil
}

// kilobytes is the value of one line of /proc/PID/status, in bytes; 0 if there
// is no such line.
func kilobytes(status []byte, key string) int64 {
	fields := Fields(status, key)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64)
	return n << 10
}

// Fields are the words behind a key, colon included, that begins a line of a
// file of /proc other than its first; none if there is no such line.
func Fields(file []byte, key string) []string {
	_, rest, _ := bytes.Cut(file, []byte("\n"+key))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return strings.Fields(string(line))
}

// Machine reads how many CPUs the machine has and for how many seconds, summed
// over them, they have worked since it was started.
func Machine() (cpus int, busySeconds float64, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read usage of the machine: %w", err)
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	fields := bytes.Fields(line)
	const idle, iowait, guest = 4, 5, 9 // proc(5); guest time is counted in user time too
	if len(fields) <= iowait || string(fields[0]) != "cpu" {
		return 0, 0, errors.New("read usage of the machine: /proc/stat does not begin with its CPUs")
	}
	var ticks int64
	for i, field := range fields[1:min(len(fields), guest)] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read usage of the machine: %w", err)
		}
		if i+1 != idle && i+1 != iowait {
			ticks += n
		}
	}
	return bytes.Count(stat, []byte("\ncpu")), float64(ticks) / ticksPerSecond, nil
}

// ShedStartup gives back memory that starting took and running does not need:
// garbage of the heap, and pages of the program's own file. This program holds
// a whole control plane, and the set-up of packages that a run never calls has
// touched most of the file; what a run does call is read again from the page
// cache when it is touched. It is for a process whose memory is measured.
// Nothing happens where the system cannot do it.
func ShedStartup() {
	debug.FreeOSMemory()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	executable, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	for line := range bytes.Lines(maps) {
		fields := bytes.Fields(line)
		// Only what cannot differ from the file may be dropped: mappings that
		// cannot be written to.
		if len(fields) < 6 || string(fields[5]) != executable || bytes.IndexByte(fields[1], 'w') >= 0 {
			continue
		}
		from, to, ok := bytes.Cut(fields[0], []byte("-"))
		begin, err1 := strconv.ParseUint(string(from), 16, 64)
		end, err2 := strconv.ParseUint(string(to), 16, 64)
		if !ok || err1 != nil || err2 != nil {
			continue
		}
		// The error is of no matter: the pages then stay.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, uintptr(begin), uintptr(end-begin), unix.MADV_DONTNEED)
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
