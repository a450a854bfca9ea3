package usage

import (
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// SourceSelf is the name of this program among the sources of samples.
const SourceSelf = "plimsoll"

// SourceMachine is record.SourceMachine.
const SourceMachine = record.SourceMachine

// SourceProcessors begins the names of processors that a part of the target is kept
// to: its samples say how many cpus they are, for how many seconds programs worked
// on them (busySeconds), the part and what shares them with it among these
// (ownSeconds), and for how many seconds these waited for them (waitSeconds).
const SourceProcessors = "processors/"

// SourcePlace is a real node in all: its programs, which are sources of their own, and its pods.
const SourcePlace = "node"

// SourceRuntime is what the container runtime's own processes use on a real
// node, which live for hundredths of a second each.
const SourceRuntime = "runtime"

// SourceWakes is the name of this program's own delays among the sources of samples.
const SourceWakes = "wakes"

// PartOfAnother reports whether a source is counted in another one's figures:
// the pods of a component in those of all pods.
func PartOfAnother(source string) bool { return strings.Contains(source, "/") }
