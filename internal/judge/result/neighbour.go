package result

import (
	"cmp"
	"fmt"
	"slices"
)

// Resources that programs beside the run can take.
const (
	Processors = "processors"
	Memory     = "memory"
	IO         = "IO"
)

// Neighbour is a resource of this machine of which programs beside the run took so
// much that too little was left for the target, or for what loads it.
type Neighbour struct {
	What string `json:"what"` // Processors, Memory or IO
	// Of is the part of the target that is kept to these processors, "" for all of
	// the machine's, and CPUs how many they are.
	Of     string  `json:"of,omitempty"`
	CPUs   int     `json:"cpus,omitempty"`
	Others float64 `json:"others"` // percent of it that others used
	// Wanted is how much of the processors somebody used, or the run's own waited
	// for, in percent; above 100 where more was wanted than there is.
	Wanted float64 `json:"wanted,omitempty"`
	// Waited is in how much of the time something waited for memory or IO, in percent.
	Waited float64 `json:"waited,omitempty"`
}

// String says it in a clause.
func (n Neighbour) String() string {
	if n.What != Processors {
		return fmt.Sprintf("other programs used %.0f%% of this machine's %s, for which something waited in %.0f%% of the time", n.Others, n.What, n.Waited)
	}
	of := "this machine's processors"
	if n.Of != "" {
		of = "the processors of " + n.Of
	}
	return fmt.Sprintf("other programs used %.0f%% of %s (%d), of which %.0f%% were wanted in all", n.Others, of, n.CPUs, n.Wanted)
}

// SortNeighbours puts the one first of which others took most.
func SortNeighbours(list []Neighbour) {
	slices.SortFunc(list, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Others, a.Others), cmp.Compare(a.What, b.What), cmp.Compare(a.Of, b.Of))
	})
}
