package usage

import (
	"strings"
)

// SourceSelf is the name of this program among the sources of samples.
const SourceSelf = "plimsoll"

// SourceMachine is the name of the whole machine that the control plane runs
// on, where this program runs there too; its sample says how many cpus it has.
const SourceMachine = "machine"

// SourceNode is a real node in all: its programs, which are sources of their
// own, and its pods.
const SourceNode = "node"

// SourceRuntime is what the container runtime's own processes use on a real
// node, which live for hundredths of a second each.
const SourceRuntime = "runtime"

// SourceWakes is the name of this program's own delays among the sources of
// samples.
const SourceWakes = "wakes"

// PartOfAnother reports whether a source is counted in another one's figures:
// the pods of a component in those of all pods.
func PartOfAnother(source string) bool { return strings.Contains(source, "/") }
