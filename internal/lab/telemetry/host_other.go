//go:build !linux

package telemetry

import (
	"runtime"
	"runtime/debug"

	"plimsoll.dev/plimsoll/internal/record"
)

// ShedStartup gives back memory of the start.
func ShedStartup() { debug.FreeOSMemory() }

// Host describes this machine. What cannot be read is zero.
func Host() record.Host { return record.Host{Kernel: runtime.GOOS, CPUs: runtime.NumCPU()} }
