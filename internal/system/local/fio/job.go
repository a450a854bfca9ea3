// Package fio runs fio and reads its results: jobs as files, one process for each volume, and the bins
// of its json+ output, merged without loss. The storage targets and virtual machines that do IO use it.
//
// Each fio prints its bins once a window, and the difference of two prints is a window. So a step that
// was cut, or a killed fio, has figures until then; histogram logs are written only at the end. A window
// holds the IOs completed in it.
//
// The job is written to standard input when all processes are loaded, so that fifty start within 0.2 s
// without a barrier. A signal ends them, since fio's own run time would count from before. At a fixed
// rate fio runs at real-time priority, as this program does: at its start it measures how late it wakes
// up, and then wakes up that much earlier before each IO. Fifty that start together without the priority
// measure too long a time.
package fio

import (
	"fmt"
	"strings"
)

// Job describes the work of one fio on its own file in a directory, until it is ended.
type Job struct {
	Dir string
	// Pattern is fio's kind of IO, such as randread. ReadPercent is the share of reads of a mixed one.
	Pattern     string
	ReadPercent int
	Block, Size int64 // bytes, of one IO and of the file
	Direct      bool
	Engine      string
	Depth       int
	Rate        int  // Rate is the number of IOs per second, 0 for as many as possible
	Fsync       int  // Fsync is the number of writes before each fsync, 0 for none
	Verify      bool // Verify writes checksums, and reads the data again
	Seed        uint64
	Fill        bool // Fill writes the file once, in order, and ends
}

// Reads reports whether data is read.
func (j Job) Reads() bool { return j.Pattern != "write" && j.Pattern != "randwrite" }

// Writes reports whether data is written.
func (j Job) Writes() bool { return j.Pattern != "read" && j.Pattern != "randread" }

// Rates returns the numbers of reads and writes per second of a job with a fixed rate, else 0.
func (j Job) Rates() (reads, writes int) {
	switch {
	case !j.Writes():
		return j.Rate, 0
	case !j.Reads():
		return 0, j.Rate
	}
	reads = (j.Rate*j.ReadPercent + 50) / 100
	return reads, j.Rate - reads
}

const (
	endless       = "runtime=30d" // endless is longer than any step: a signal ends fio
	fillBlock     = 1 << 20       // fillBlock is the size of the IOs that fill a file
	verifyBacklog = 256           // verifyBacklog is the number of writes after which they are read again
)

// always returns the lines that each job needs: threads end with the process, and so with this program.
func always(dir string) []string {
	return []string{"thread=1", "directory=" + dir, "group_reporting=0", "lat_percentiles=1", "clat_percentiles=0", "disk_util=0", "fallocate=none", "verify_state_save=0"}
}

// Text returns the job as a file for fio.
func (j Job) Text() string {
	var b strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	put("[volume]")
	for _, line := range always(j.Dir) {
		put("%s", line)
	}
	put("filename=%s", FileName)
	put("size=%d", j.Size)
	put("randseed=%d", j.Seed)
	put("ioengine=%s", j.Engine)
	if j.Direct {
		put("direct=1")
	}
	if j.Verify {
		put("verify=crc32c\nverify_fatal=1")
	}
	if j.Fill {
		block := min(int64(fillBlock), j.Size)
		if j.Verify {
			block = j.Block // a checksum covers a block
		}
		put("rw=write\nbs=%d\niodepth=8\ndo_verify=0\nend_fsync=1", block)
		return b.String()
	}
	put("rw=%s\nbs=%d\niodepth=%d\ntime_based=1\n%s", j.Pattern, j.Block, j.Depth, endless)
	if j.Reads() && j.Writes() {
		put("rwmixread=%d", j.ReadPercent)
	}
	if reads, writes := j.Rates(); reads+writes > 0 {
		put("rate_iops=%d,%d", reads, writes)
	}
	if j.Fsync > 0 {
		put("fsync=%d", j.Fsync)
	}
	if j.Verify && j.Writes() {
		put("verify_backlog=%d", verifyBacklog)
	}
	return b.String()
}

// FileName is the name of a job's file.
const FileName = "data"
