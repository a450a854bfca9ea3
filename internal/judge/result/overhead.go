package result

// Overhead says what one object more costs each part of a real node and of the control plane. It needs a
// record of a real node's use.
//
// Memory comes from the laws along the axis where there are enough levels, and else by the growth over
// each step. CPU time comes from phases: a step whose level was reached has one in which objects start,
// and its hold, in which they stand. Shorter phases would be wrong: a program in a pod goes on starting
// for seconds after its container runs.
type Overhead struct {
	Steps   int          `json:"steps"` // its basis
	Objects int          `json:"pods"`  // that started in these steps
	Costs   []ObjectCost `json:"costs"` // by source
}

// ObjectCost says what one object more costs one process.
type ObjectCost struct {
	Source string `json:"source"`
	Memory Slope  `json:"memory"` // bytes
	Start  Slope  `json:"start"`  // seconds of CPU time for its start
	Stand  Slope  `json:"stand"`  // CPUs that are busy while it stands
}

// Slope is a cost of one object with its interval of 95%, null where Unknown says why.
type Slope struct {
	Interval
	From    string `json:"from,omitempty"` // its basis: FromLevels, FromSteps or FromPhases
	Points  int    `json:"points,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// The bases of a slope.
const (
	FromLevels = "levels" // a law along the axis
	FromSteps  = "steps"
	FromPhases = "phases"
)
