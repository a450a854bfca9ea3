// Package telemetry reads what this machine has and what is in use.
package telemetry

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"github.com/prometheus/procfs/blockdevice"

	"plimsoll.dev/plimsoll/internal/record"
)

// growByHalf makes collections twice as frequent as usual: memory counts more than their work.
func growByHalf() {
	const usual, little = 100, 50
	if was := debug.SetGCPercent(little); was != usual {
		debug.SetGCPercent(was)
	}
}

// CPUs returns the seconds that each processor has worked, by kind of work; nil if they cannot be read.
func CPUs() map[int64]procfs.CPUStat {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return nil
	}
	stat, _ := fs.Stat()
	return stat.CPU
}

// Reading returns what is in use of this machine, counters since its start: its cpus, the seconds that they
// worked (cpuSeconds), those in interrupts (interruptSeconds), its memory and its use (memoryBytes,
// memoryUsedBytes), the bytes of its drives (ioBytes), and for how long something waited (cpuPressureSeconds,
// memoryPressureSeconds, ioPressureSeconds), as far as the kernel reports it.
func Reading() record.Reading { return readingIn(procfs.DefaultMountPoint, "/sys") }

func readingIn(procMount, sysMount string) record.Reading {
	r := record.Reading{Source: record.SourceMachine, Values: make(map[string]float64)}
	fs, err := procfs.NewFS(procMount)
	if err != nil {
		return r
	}
	if stat, err := fs.Stat(); err == nil {
		c := stat.CPUTotal // guest time is counted in user time too
		interrupts := c.IRQ + c.SoftIRQ
		r.Values["cpus"], r.Values["interruptSeconds"] = float64(len(stat.CPU)), interrupts
		r.Values["cpuSeconds"] = c.User + c.Nice + c.System + interrupts + c.Steal
	}
	if m, err := fs.Meminfo(); err == nil && m.MemTotalBytes != nil && m.MemAvailableBytes != nil {
		r.Values["memoryBytes"], r.Values["memoryUsedBytes"] = float64(*m.MemTotalBytes), float64(*m.MemTotalBytes-*m.MemAvailableBytes)
	}
	for _, resource := range [...]string{"cpu", "memory", "io"} {
		// A kernel may lack this file, or have it switched off.
		if p, err := fs.PSIStatsForResource(resource); err == nil && p.Some != nil {
			r.Values[resource+"PressureSeconds"] = float64(p.Some.Total) / 1e6
		}
	}
	if moved, ok := drives(procMount, sysMount); ok {
		r.Values["ioBytes"] = moved
	}
	return r
}

// drives returns the bytes of all drives, without devices on top of others, which would count twice.
func drives(procMount, sysMount string) (moved float64, ok bool) {
	fs, err := blockdevice.NewFS(procMount, sysMount)
	if err != nil {
		return 0, false
	}
	disks, err := fs.ProcDiskstats()
	if err != nil {
		return 0, false
	}
	const sector = 512 // the unit of these figures, whatever the drive has
	for _, d := range disks {
		if _, err := os.Stat(filepath.Join(sysMount, "block", d.DeviceName, "device")); err == nil {
			moved, ok = moved+sector*float64(d.ReadSectors+d.WriteSectors), true
		}
	}
	return moved, ok
}

// ResetPeak measures this process's peak memory from now on, where the system can do it.
func ResetPeak() {
	// "5" resets the peak; see proc(5), clear_refs.
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

// AvailableMemory returns the bytes left by machine or cgroup, the lesser; files count unless lately used.
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

// leftIn returns what a control group's limit leaves of its memory; false without a limit.
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

// ReadInt reads the number in a file of the system; false if it holds none.
func ReadInt(path string) (int64, bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	v, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return v, err == nil
}
