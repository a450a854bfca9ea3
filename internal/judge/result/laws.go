package result

// Laws says what an object costs, by the decided steps along an axis; each made step is a measurement.
// CPU counts the objects that a step itself asked for, and memory all objects in place.
//
// A cost is given only where the figures' ranks follow the levels', also when the order of the steps is
// allowed for. Steps on a machine that others used, or with busy processors, count for memory alone.
type Laws struct {
	Levels  int       `json:"levels"` // different ones, from Lowest to Highest in Unit
	Unit    string    `json:"unit"`
	Lowest  float64   `json:"lowest"`
	Highest float64   `json:"highest"`
	LeftOut []LeftOut `json:"leftOut"` // of every fit
	List    []Law     `json:"list"`
}

// LeftOut is a step that a law leaves out, and why.
type LeftOut struct {
	Step int    `json:"step"`
	Why  string `json:"why"`
}

// The subjects of a law.
const (
	LawMemory = "memory" // of a process, the most in a step
	LawCPU    = "cpu"    // that a process kept busy, over a step
	LawCount  = "count"  // the most of a value that the target declares
)

// Law says how one figure grows with the number of objects. Line is nil where Refused says why.
type Law struct {
	Name     string     `json:"name"` // such as "etcd memory"
	Of       string     `json:"of"`   // memory, cpu or count
	X        string     `json:"x"`    // level, objects or objects a second
	XUnit    string     `json:"xUnit"`
	YUnit    string     `json:"yUnit"`  // B or CPUs
	Levels   int        `json:"levels"` // different ones of the fit, from Lowest to Highest on its own axis
	Lowest   float64    `json:"lowest"`
	Highest  float64    `json:"highest"`
	Points   []LawPoint `json:"points"`
	LeftOut  []LeftOut  `json:"leftOut"` // besides those of every fit
	Line     *LineLaw   `json:"line,omitempty"`
	P        *float64   `json:"p"`                 // probability that ranks of the figures follow the levels' as well by chance, or null
	Misfit   *float64   `json:"misfit"`            // standard deviation of the measurements about the line, in YUnit
	Refused  string     `json:"refused,omitempty"` // why there is no law
	Warnings []string   `json:"warnings"`
}

// LawPoint is one measurement.
type LawPoint struct {
	Step int     `json:"step"`
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
}

// LineLaw is a straight line; see stats.Line.
type LineLaw struct {
	Intercept Interval `json:"intercept"`
	Slope     Interval `json:"slope"`
	Wrong     string   `json:"wrong,omitempty"` // why a line is the wrong law, if it is
}

// Overhead says what one object more costs each part of a real node and of the control plane. Memory
// comes from the laws along the axis, or with few levels from the growth over each step. CPU time comes
// from phases: objects start until the level is reached, and stand in the hold. Shorter phases would be
// wrong: a program in a pod goes on starting for seconds after its container runs.
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

// Published is a published figure beside the run's. It decides nothing: their machines differ.
type Published struct {
	What      string  `json:"what"`
	Metric    string  `json:"metric"`
	Arm       string  `json:"arm,omitempty"`
	Source    string  `json:"source"`
	Unit      string  `json:"unit"` // s, B, /s, %, or the axis's own
	Published float64 `json:"published"`
	// Found is the median over the runs that count, or the change with its interval from Lo to Hi; null
	// where the run has no such figure. Times of parts that pass faster are converted.
	Found *float64 `json:"found"`
	Lo    *float64 `json:"lo"`
	Hi    *float64 `json:"hi"`
	At    *float64 `json:"at"` // the level of Found; null for a load line
}
