package result

// Laws says what an object costs, by the steps along an axis. It is based on the steps that were decided;
// a level that was made several times counts as several measurements of it.
//
// Raising a level adds only the difference. So CPU is that of the objects that a step itself asked for,
// and memory is that of all that is in place, whoever asked for it.
//
// A cost is given only where a test holds: the figures' ranks must go with the levels', also when the
// order of the steps is allowed for. Steps in which others used the machine, or the processors were busy,
// show something else, but not of memory.
type Laws struct {
	// Levels is how many different ones there are, from Lowest to Highest in Unit.
	Levels  int     `json:"levels"`
	Unit    string  `json:"unit"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// LeftOut are the steps that no fit is based on.
	LeftOut []LeftOut `json:"leftOut"`
	List    []Law     `json:"list"`
}

// LeftOut is a step that a law is not based on, and why.
type LeftOut struct {
	Step int    `json:"step"`
	Why  string `json:"why"`
}

// What a law is of.
const (
	LawMemory = "memory" // of a process, the most in a step
	LawCPU    = "cpu"    // that a process kept busy, over a step
	LawCount  = "count"  // of what a target declares as the most of a value
)

// Law is how one figure grows with the number of objects. Line is nil where Refused says why.
type Law struct {
	Name  string `json:"name"` // such as "etcd memory"
	Of    string `json:"of"`   // memory, cpu or count
	X     string `json:"x"`    // level, objects or objects a second
	XUnit string `json:"xUnit"`
	YUnit string `json:"yUnit"` // B or CPUs
	// Levels is how many different ones the fit is based on, from Lowest to Highest on its own axis.
	Levels  int        `json:"levels"`
	Lowest  float64    `json:"lowest"`
	Highest float64    `json:"highest"`
	Points  []LawPoint `json:"points"`
	LeftOut []LeftOut  `json:"leftOut"` // besides those that no fit is based on
	Line    *LineLaw   `json:"line,omitempty"`
	// P is how often the ranks of the figures would go with those of the levels
	// as well by chance; null where there are too few levels.
	P *float64 `json:"p"`
	// Misfit is the standard deviation of the measurements about the line, in YUnit.
	Misfit *float64 `json:"misfit"`
	// Refused says why there is no law.
	Refused  string   `json:"refused,omitempty"`
	Warnings []string `json:"warnings"`
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
	// Wrong says why a line is the wrong law, if it is.
	Wrong string `json:"wrong,omitempty"`
}
