package network

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"strings"

	"github.com/prometheus/procfs"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
)

// accounting is how this kernel accounts for its work in softirqs, in which packets
// are carried.
type accounting struct {
	daemons []procfs.Proc // its threads for softirqs that nobody else has time for
	// apart says that time in softirqs is in none of the processes that they
	// interrupted (CONFIG_IRQ_TIME_ACCOUNTING); else it is in theirs.
	apart, known bool
}

// readAccounting looks at the kernel.
func readAccounting() (a accounting) {
	config := kernelConfig()
	a.known, a.apart = len(config) > 0, bytes.Contains(config, []byte("\nCONFIG_IRQ_TIME_ACCOUNTING=y\n"))
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return a
	}
	list, err := fs.AllProcs()
	if err != nil {
		return a
	}
	for _, p := range list {
		if comm, err := p.Comm(); err == nil && strings.HasPrefix(comm, "ksoftirqd/") {
			a.daemons = append(a.daemons, p)
		}
	}
	return a
}

// kernelConfig is what the kernel was built with, nothing where it does not tell.
func kernelConfig() []byte {
	if text, err := os.ReadFile("/boot/config-" + telemetry.Host().Kernel); err == nil {
		return text
	}
	file, err := os.Open("/proc/config.gz")
	if err != nil {
		return nil
	}
	defer file.Close()
	zip, err := gzip.NewReader(file)
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(zip)
	return text
}

// threads is what the kernel's threads for softirqs have used, in seconds.
func (a accounting) threads() (seconds float64) {
	for _, p := range a.daemons {
		if s, err := p.Stat(); err == nil {
			seconds += s.CPUTime()
		}
	}
	return seconds
}

// note says how far the figures of CPU time can be trusted.
func (a accounting) note() string {
	switch {
	case !a.known:
		return "this kernel does not tell whether it accounts for softirqs apart from processes: where it does, the CPU time of client, server and softirqs lacks the latter"
	case a.apart:
		return "this kernel accounts for softirqs apart from processes: those of other programs are in the CPU time of client, server and softirqs, too"
	}
	return "this kernel accounts for softirqs with the process that they interrupt: the CPU time of client and server has their share of them"
}
