package fio

import (
	"fmt"
	"strings"
)

// Job is what one fio does in one directory, on a file of its own, until it is
// ended.
type Job struct {
	Dir string
	// Pattern is the kind of IO as fio names it: read, write, randread, randwrite,
	// rw or randrw. ReadPercent is the share of reads of one that is mixed.
	Pattern     string
	ReadPercent int
	Block, Size int64 // bytes, of one IO and of the file
	Direct      bool
	Engine      string
	Depth       int
	// Rate is how many IOs are done each second, 0 for as many as it goes.
	Rate int
	// Fsync is after how many writes one is made, 0 for never.
	Fsync int
	// Verify writes checksums, and reads what was written.
	Verify bool
	Seed   uint64
	// Fill has the file written once, in order, and ends then.
	Fill bool
}

// Reads and Writes report whether there are IOs of that kind.
func (j Job) Reads() bool { return j.Pattern != "write" && j.Pattern != "randwrite" }

// Writes reports whether data is written.
func (j Job) Writes() bool { return j.Pattern != "read" && j.Pattern != "randread" }

// Rates are how many reads and how many writes a job of a fixed rate does each
// second. Both are 0 where there is no fixed rate.
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
	// endless is longer than any step: fio is told when to end.
	endless = "runtime=30d"
	// fillBlock is the size of an IO that fills a file.
	fillBlock = 1 << 20
	// verifyBacklog is after how many writes they are read again.
	verifyBacklog = 256
)

// always are the lines that each job has whose output is read here. Threads die
// with the process that the kernel ends with this program.
func always(dir string) []string {
	return []string{"thread=1", "directory=" + dir, "group_reporting=0", "lat_percentiles=1", "clat_percentiles=0", "disk_util=0", "fallocate=none", "verify_state_save=0"}
}

// Text is the job as a file for fio.
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
			block = j.Block // a checksum is of a block
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

// FileName is the name of the file that a job works on.
const FileName = "data"
