package usage

import (
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// The sources of samples.
const (
	SourceSelf    = "plimsoll"
	SourceMachine = record.SourceMachine
	SourcePlace   = "node"    // a real node: its programs, which are sources of their own, and its pods
	SourceRuntime = "runtime" // the container runtime's own short processes on a real node
	SourceWakes   = "wakes"   // this program's own delays
	// SourceProcessors begins the names of processors that a part of the target is kept to. A sample has
	// their number (cpus), the seconds of work on them (busySeconds), of that by the part and what shares
	// them with it (ownSeconds), and the seconds that these waited for them (waitSeconds).
	SourceProcessors = "processors/"
)

// PartOfAnother reports whether another source includes this one, as all pods do a component's.
func PartOfAnother(source string) bool { return strings.Contains(source, "/") }
