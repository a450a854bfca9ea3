package result

// Overhead is what one object more costs each part of a real node and of the control plane beside it. It
// is known where a real node's use is on record.
//
// Memory comes from the laws along the axis where there are levels enough, and else by what each step has
// added over all of it. CPU time comes from phases: each step whose level was reached has one until then,
// in which objects start, and its hold, in which they stand. Shorter stretches would tell more, and
// wrongly: a program in a pod, say, goes on starting for seconds after its container runs, so that what
// it takes would fall to another stretch than its start.
type Overhead struct {
	// Steps is how many it stands on, and Objects how many started in them.
	Steps   int          `json:"steps"`
	Objects int          `json:"pods"`
	Costs   []ObjectCost `json:"costs"` // by source
}

// ObjectCost is what one object more costs one process.
type ObjectCost struct {
	Source string `json:"source"`
	// Memory is in bytes.
	Memory Slope `json:"memory"`
	// Start is the CPU time in seconds that its start takes.
	Start Slope `json:"start"`
	// Stand is how many CPUs it keeps busy while it stands.
	Stand Slope `json:"stand"`
}

// Slope is a cost of one object with its interval of 95 %; all of it is null where
// Unknown says why it is unknown.
type Slope struct {
	Interval
	// From is what it stands on: FromLevels, FromSteps or FromPhases.
	From    string `json:"from,omitempty"`
	Points  int    `json:"points,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// What a slope stands on.
const (
	FromLevels = "levels" // a law along the axis
	FromSteps  = "steps"
	FromPhases = "phases"
)
