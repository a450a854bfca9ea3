package host

import (
	"fmt"
	"regexp"
	"strconv"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// Lines of HAProxy's configuration: one pins a process to a single CPU, the other sets the number of threads.
var (
	cpuMapLine  = regexp.MustCompile(`(?m)^\s*cpu-map\s+((?:auto:)?[0-9]+)\s+([0-9]+)\s*(?:#.*)?$`)
	threadsLine = regexp.MustCompile(`(?m)^\s*nbthread\s+([0-9]+)`)
	// With several processes each has one thread, unless nbthread says otherwise.
	processesLine = regexp.MustCompile(`(?m)^\s*nbproc\s+([2-9]|[1-9][0-9]+)`)
)

// HAProxyFile finds threads that all run on one CPU, which haproxy -c accepts.
func HAProxyFile(out *report.Report, t *reading.Text) {
	out.Recognised = true
	if !t.Snippet {
		out.HAProxy = append(out.HAProxy, t)
	}
	fix, has := "write cpu-map auto:1/1-N 0-(N-1) for N threads, or nbthread 1", "a thread for each CPU by default"
	if m := threadsLine.FindStringSubmatch(t.Data); m != nil {
		threads, _ := strconv.Atoi(m[1])
		if threads == 1 {
			return
		}
		fix, has = fmt.Sprintf("write cpu-map auto:1/1-%d 0-%d, or nbthread 1", threads, threads-1), fmt.Sprintf("%d threads", threads)
	}
	if processesLine.MatchString(t.Data) && !threadsLine.MatchString(t.Data) {
		return
	}
	for _, m := range cpuMapLine.FindAllStringSubmatchIndex(t.Data, -1) {
		process, cpu := t.Data[m[2]:m[3]], t.Data[m[4]:m[5]]
		out.Find("haproxy-cpu-map", t.PlaceAt(m[2]), fix, fmt.Sprintf("cpu-map %s %s: HAProxy has %s, and all of them are put on CPU %s", process, cpu, has, cpu))
	}
}
