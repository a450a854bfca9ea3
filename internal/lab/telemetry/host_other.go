//go:build !linux

package telemetry

import (
	"runtime"
	"runtime/debug"

	"plimsoll.dev/plimsoll/internal/record"
)

// ShedStartup gives back garbage of the start. From then on the heap grows by half between two collections, unless
// GOGC says otherwise.
func ShedStartup() {
	growByHalf()
	debug.FreeOSMemory()
}

// Host describes this machine. What cannot be read is zero.
func Host() record.Host { return record.Host{Kernel: runtime.GOOS, CPUs: runtime.NumCPU()} }
