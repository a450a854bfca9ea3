package result

import (
	"cmp"
	"fmt"
	"slices"
)

// The resources that programs beside the run can take.
const (
	Processors = "processors"
	Memory     = "memory"
	IO         = "IO"
)

// Neighbour is a resource of this machine of which programs beside the run left too little for the
// target, or for the load.
type Neighbour struct {
	What string `json:"what"` // Processors, Memory or IO
	// Of is the part of the target that is kept to these processors, "" for the whole machine, and CPUs
	// their number.
	Of     string  `json:"of,omitempty"`
	CPUs   int     `json:"cpus,omitempty"`
	Others float64 `json:"others"` // percent of it that others used
	// Wanted is the part of the processors that was used, or that the run's own processes waited for, in
	// percent; above 100 where there are too few.
	Wanted float64 `json:"wanted,omitempty"`
	Waited float64 `json:"waited,omitempty"` // the time in which something waited for memory or IO, in percent
}

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

// SortNeighbours orders resources by the part that others took, the largest first.
func SortNeighbours(list []Neighbour) {
	slices.SortFunc(list, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Others, a.Others), cmp.Compare(a.What, b.What), cmp.Compare(a.Of, b.Of))
	})
}
