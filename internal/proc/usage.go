package proc

import (
	"cmp"
	"fmt"
	"os"
	"slices"

	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/record"
)

// Usage holds the resources that a process has used so far.
type Usage struct {
	CPUSeconds float64 // user and system, since its start
	RSSBytes   int64   // resident memory now
	// PeakBytes is the largest resident memory since the start, or since
	// ResetPeak; 0 where it is unknown.
	PeakBytes int64
	// ShareBytes is the proportional share of memory: what processes have in
	// common counts in parts (PSS). 0 where it was not read.
	ShareBytes int64
	// IOBytes counts bytes read from and written to drives; below 0: unknown.
	IOBytes int64
	// Threads and Handles (open files) are those of now, 0 where they were not
	// read.
	Threads, Handles int
}

// Read reads the usage of a process. CPU time of another process has a
// resolution of 10 ms, that of this one of a microsecond.
func Read(pid int) (Usage, error) {
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
	return Usage{CPUSeconds: stat.CPUTime(), RSSBytes: int64(stat.ResidentMemory()), IOBytes: moved(proc)}, nil
}

// moved returns the bytes that a process has read from and written to drives, -1 if another
// user owns it.
func moved(proc procfs.Proc) int64 {
	io, err := proc.IO()
	if err != nil {
		return -1
	}
	return int64(io.ReadBytes + io.WriteBytes)
}

// Plus returns the sum of two. Peaks cannot be added and are 0.
func (u Usage) Plus(o Usage) Usage {
	sum := Usage{
		CPUSeconds: u.CPUSeconds + o.CPUSeconds, RSSBytes: u.RSSBytes + o.RSSBytes, ShareBytes: u.ShareBytes + o.ShareBytes,
		IOBytes: u.IOBytes + o.IOBytes, Threads: u.Threads + o.Threads, Handles: u.Handles + o.Handles,
	}
	if u.IOBytes < 0 || o.IOBytes < 0 {
		sum.IOBytes = -1
	}
	return sum
}

// Sample returns the usage as a reading of a source of that name.
func (u Usage) Sample(source string) record.Reading {
	s := record.Reading{Source: source, Values: map[string]float64{"cpuSeconds": u.CPUSeconds, "rssBytes": float64(u.RSSBytes)}}
	if u.PeakBytes > 0 {
		s.Values["peakBytes"] = float64(u.PeakBytes)
	}
	if u.IOBytes >= 0 {
		s.Values["ioBytes"] = float64(u.IOBytes)
	}
	return s
}

// Thread holds the processor time of one thread since its start.
type Thread struct {
	ID      int
	Ran     float64 // seconds
	Waited  float64 // seconds for which it could have run and did not
	Process int
}

// Threads returns the threads of a process in their order, none where they cannot
// be read.
func Threads(pid int) []Thread {
	all, err := procfs.AllThreads(pid)
	if err != nil {
		return nil
	}
	var list []Thread
	for _, t := range all {
		if s, err := t.Schedstat(); err == nil {
			list = append(list, Thread{ID: t.PID, Ran: float64(s.RunningNanoseconds) / 1e9, Waited: float64(s.WaitingNanoseconds) / 1e9, Process: pid})
		}
	}
	slices.SortFunc(list, func(a, b Thread) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// Wanted returns for how many seconds the threads of a process ran, or waited for a
// processor.
func Wanted(pid int) (seconds float64) {
	for _, t := range Threads(pid) {
		seconds += t.Ran + t.Waited
	}
	return seconds
}

// Arguments returns the command lines of all visible processes.
func Arguments() (list []string) {
	all, _ := procfs.AllProcs() // without /proc none is seen
	for _, p := range all {
		args, _ := p.CmdLine() // of one that has ended there are none
		list = append(list, args...)
	}
	return list
}
