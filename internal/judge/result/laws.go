package result

// Laws says what an object costs, by the decided steps along an axis. A level that was made several times
// counts as several measurements of it.
//
// Raising a level adds only the difference. So CPU is that of the objects that a step itself asked for,
// and memory is that of all objects in place.
//
// A cost is given only where a test holds: the figures' ranks must follow the levels', also when the
// order of the steps is allowed for. Steps on a machine that others used, or with busy processors, count
// for memory alone.
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
	Name    string     `json:"name"` // such as "etcd memory"
	Of      string     `json:"of"`   // memory, cpu or count
	X       string     `json:"x"`    // level, objects or objects a second
	XUnit   string     `json:"xUnit"`
	YUnit   string     `json:"yUnit"`  // B or CPUs
	Levels  int        `json:"levels"` // different ones of the fit, from Lowest to Highest on its own axis
	Lowest  float64    `json:"lowest"`
	Highest float64    `json:"highest"`
	Points  []LawPoint `json:"points"`
	LeftOut []LeftOut  `json:"leftOut"` // besides those of every fit
	Line    *LineLaw   `json:"line,omitempty"`
	// P is the probability that the ranks of the figures follow those of the levels as well by chance;
	// null where there are too few levels.
	P        *float64 `json:"p"`
	Misfit   *float64 `json:"misfit"`            // standard deviation of the measurements about the line, in YUnit
	Refused  string   `json:"refused,omitempty"` // why there is no law
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
	Wrong     string   `json:"wrong,omitempty"` // why a line is the wrong law, if it is
}
