// Package fio runs fio and reads its results: jobs as files, one process for each volume, and the bins of its
// json+ output, merged without loss. The storage targets and virtual machines that do IO use it.
//
// Each fio prints its bins once a window, and the difference of two prints is a window, with the IOs
// completed in it: a step that was cut has figures until then. The job is written to standard input when all
// processes are loaded, so that fifty start within 0.2 s without a barrier. A signal ends them, since fio's
// own run time would count from before. At a fixed rate fio runs at real-time priority: at its start it
// measures how late it wakes up, and then wakes up that much earlier before each IO. Without the priority,
// fifty that start together measure too long a time.
package fio

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/text/nearest"
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
	Rate        int  // number of IOs per second, 0 for as many as possible
	Fsync       int  // number of writes before each fsync, 0 for none
	Verify      bool // writes checksums, and reads the data again
	Seed        uint64
	Fill        bool // writes the file once, in order, and ends
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
	endless       = "runtime=30d" // longer than any step: a signal ends fio
	fillBlock     = 1 << 20       // size of the IOs that fill a file
	verifyBacklog = 256           // number of writes after which they are read again
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

type form struct {
	pattern string // of the whole value
	what    string // in words
}

func (f form) fits(value string) bool {
	return regexp.MustCompile(`^(?:` + f.pattern + `)$`).MatchString(value)
}

// forms returns the allowed options of a job with the forms of their values. Anybody may write a job file,
// and others run programs, load libraries, or read and write files. No value has a $, for fio's environment.
func forms() map[string]form {
	amount := form{`[0-9]+(\.[0-9]+)?[a-zA-Z%]{0,3}`, "a number, with a unit such as k or s where it has one"}
	amounts := form{`[0-9][0-9a-zA-Z.,:/%-]*`, "numbers with units, such as 4k, 4k-64k or 4k/70:64k/30"}
	flag := form{`[01]?`, "0 or 1"}
	oneOf := func(words ...string) form {
		return form{"(" + strings.Join(words, "|") + ")", "one of " + strings.Join(words, ", ")}
	}
	all := map[string]form{
		"ioengine":            oneOf("libaio", "io_uring", "posixaio", "psync", "pvsync", "pvsync2", "sync", "vsync", "mmap"),
		"rw":                  {`(rand)?(read|write|rw|trim)|readwrite|randreadwrite|trimwrite|randtrimwrite`, "a pattern such as read or randrw"},
		"filename":            {`[A-Za-z0-9][A-Za-z0-9._-]*`, "the name of a file in the volume, without / and :"},
		"verify":              oneOf("0", "none", "null", "md5", "crc7", "crc16", "crc32", "crc32c", "crc32c-intel", "crc64", "xxhash", "sha1", "sha256", "sha512", "meta"),
		"iomem":               oneOf("malloc", "mmap"),
		"sync":                oneOf("0", "1", "none", "sync", "dsync"),
		"buffer_pattern":      {`0x[0-9a-fA-F]{1,512}|[0-9]{1,20}`, "a number such as 0xdeadbeef"},
		"random_distribution": {`(random|zipf|pareto|normal|gauss|zoned|zoned_abs)(:[0-9.,:/kmgtKMGT%-]+)?`, "such as random, zipf:1.2 or zoned:60/10:40/90"},
		"random_generator":    oneOf("tausworthe", "tausworthe64", "lfsr"),
		"rw_sequencer":        oneOf("sequential", "identical"),
		"file_service_type":   {`(roundrobin|sequential|random|zipf|pareto|normal|gauss)(:[0-9.]+){0,2}`, "such as roundrobin, sequential or random"},
		"rate_process":        oneOf("linear", "poisson"),
		"io_submit_mode":      oneOf("inline", "offload"),
		"fadvise_hint":        oneOf("0", "1", "none", "random", "sequential"),
		"write_hint":          oneOf("none", "short", "medium", "long", "extreme"),
		"cpus_allowed":        {`[0-9][0-9,-]*`, "processors, such as 0-3"},
		"cpus_allowed_policy": oneOf("shared", "split"),
		"description":         {`[A-Za-z0-9 .,:_-]*`, "letters, digits and spaces"},
		"thread":              flag,
	}
	for names, f := range map[string]form{
		"numjobs nrfiles openfiles io_size number_ios loops runtime ramp_time startdelay thinktime thinktime_spin thinktime_blocks iodepth iodepth_batch iodepth_batch_submit iodepth_batch_complete iodepth_batch_complete_min iodepth_batch_complete_max iodepth_low fsync fdatasync randseed percentage_random rwmixread rwmixwrite dedupe_percentage buffer_compress_percentage buffer_compress_chunk verify_backlog verify_backlog_batch verify_interval verify_offset verify_async rate_cycle latency_target latency_window latency_percentile max_latency offset_increment": amount,
		"bs bsrange bssplit blockalign size filesize offset rate rate_min rate_iops rate_iops_min": amounts,
		"direct buffered time_based stonewall wait_for_previous new_group norandommap softrandommap randrepeat allrandrepeat invalidate overwrite file_append end_fsync fsync_on_close create_serialize create_fsync create_on_open zero_buffers refill_buffers scramble_buffers bs_unaligned do_verify verify_fatal verify_only rate_ignore_thinktime hipri fixedbufs registerfiles nowait userspace_reap exitall exitall_on_error": flag,
	} {
		for name := range strings.FieldsSeq(names) {
			all[name] = f
		}
	}
	for name, same := range map[string]string{
		"readwrite": "rw", "blocksize": "bs", "blocksize_range": "bsrange", "ba": "blockalign", "mem": "iomem", "timeout": "runtime", "io_limit": "io_size",
	} {
		all[name] = all[same]
	}
	return all
}

// reasons says why options that a user may look for are refused.
func reasons() map[string]string {
	const writes = "what fio writes is read by this program"
	return map[string]string{
		"directory": "the directory is given by path", "filename_format": "files are named by fio", "exec_prerun": "a job runs no other program",
		"exec_postrun": "a job runs no other program", "include": "give the job in one file", "read_iolog": "a replay cannot be raised to a level",
		"group_reporting": "each job is read by itself", "ioengine": "a job runs no other program and loads no library", "filename": "a job works on files in its own directory",
		"iomem": "a job works on files in its own directory", "mem": "a job works on files in its own directory", "opendir": "a job works on files in its own directory",
		"write_iolog": writes, "write_bw_log": writes, "write_lat_log": writes, "write_hist_log": writes, "write_iops_log": writes,
	}
}

// RawError says why a job file is refused.
type RawError struct {
	Line  int // 0 for the whole file
	Found string
	Why   string
	Hint  string // the remedy, or ""
}

func (e *RawError) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Found, e.Why)
}

// Check checks those settings of a job that a user's own workload may set to any text.
func (j Job) Check() error {
	for option, value := range map[string]string{"rw": j.Pattern, "ioengine": j.Engine} {
		if f := forms()[option]; !f.fits(value) {
			return fmt.Errorf("%q must be %s", value, f.what)
		}
	}
	return nil
}

// jobName matches a job's name, which becomes part of file names.
var jobName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$`)

// Raw returns a user's job file for a directory, written from the checked options, with the necessary
// lines last in each job, where they win. A mistake is a *RawError.
func Raw(text, dir string) (string, error) {
	var out []string
	known := forms()
	jobs, within := 0, false // a job's section
	end := func() {
		if within {
			out = append(out, always(dir)...)
		}
	}
	for n, line := range strings.Split(text, "\n") {
		fail := func(hint, format string, args ...any) (string, error) {
			return "", &RawError{n + 1, strconv.Quote(strings.TrimSpace(line)), fmt.Sprintf(format, args...), hint}
		}
		trimmed := line
		if at := strings.IndexAny(trimmed, "#;"); at >= 0 {
			trimmed = trimmed[:at] // fio allows comments anywhere in a line
		}
		if trimmed = strings.TrimSpace(trimmed); trimmed == "" {
			continue
		}
		if trimmed[0] == '[' {
			end()
			name, ok := strings.CutSuffix(trimmed[1:], "]")
			if !ok || !jobName.MatchString(name) {
				return fail("for example [reader]", "the name of a job has letters, digits, spaces and . _ -, and ends with ]")
			}
			if within = name != "global"; within {
				jobs++
			}
			out = append(out, trimmed)
			continue
		}
		option, value, given := strings.Cut(trimmed, "=")
		option, value = strings.TrimSpace(option), strings.TrimSpace(value)
		word, _, _ := strings.Cut(option, " ")
		why := ""
		if why = reasons()[word]; why != "" {
			why += "; "
		}
		form, ok := known[option]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			hint := ""
			if near, is := nearest.Word(word, names); is {
				hint = fmt.Sprintf("did you mean %s?", near)
			}
			return fail(hint, "%sa job may not have the option %s, but these: %s", why, strconv.Quote(word), strings.Join(names, ", "))
		}
		if !form.fits(value) {
			return fail("", "%sthe value %s of %s must be %s", why, strconv.Quote(value), option, form.what)
		}
		if given {
			option += "=" + value
		}
		out = append(out, option)
	}
	if end(); jobs == 0 {
		return "", &RawError{Why: "there is no job: a section in brackets with another name than global"}
	}
	return strings.Join(out, "\n") + "\n", nil
}
