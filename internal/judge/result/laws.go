package result

// Laws is what the steps along an axis tell together. It stands on the steps
// that were decided; a level that was made several times counts as several
// measurements of it.
//
// Raising a level adds only the difference. So rates, latencies, times and CPU
// are those of the objects that a step itself asked for, and memory is that of
// all that is in place, whoever asked for it.
//
// A law is given only where a test holds: the figures' ranks must go with the
// levels', also when the order of the steps is allowed for, unless a peak or a
// knee is shown, which have tests of their own. Steps in which others used the
// machine, all stood still, or the processors were busy, show something else; of
// these only the second kind does of memory.
type Laws struct {
	// Levels is how many different ones there are, from Lowest to Highest.
	Levels  int     `json:"levels"`
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`
	// LeftOut are the steps that no fit is based on.
	LeftOut []LeftOut `json:"leftOut"`
	List    []Law     `json:"list"`
}

// LeftOut is a step that a law does not stand on, and why.
type LeftOut struct {
	Step int    `json:"step"`
	Why  string `json:"why"`
}

// What a law is of.
const (
	LawThroughput = "throughput" // objects per second that became ready
	LawLatency    = "latency"    // of the milestone at which objects count as there
	LawTime       = "time"       // until every object of the step was there, by the object
	LawMemory     = "memory"     // of a process, the most in a step
	LawCPU        = "cpu"        // that a process kept busy, over a step
	LawCount      = "count"      // of what a target declares as the most of a value
)

// Law is how one figure hangs together with the level, or with the number of
// objects. Of USL and Line at most one is there; none where Refused says why.
type Law struct {
	Name  string `json:"name"` // such as "Ready p99" or "etcd memory"
	Of    string `json:"of"`   // throughput, latency, time, memory, cpu or count
	X     string `json:"x"`    // level, offered rate, objects or objects a second
	XUnit string `json:"xUnit"`
	YUnit string `json:"yUnit"` // s, /s, B or CPUs
	// Levels is how many different ones the fit is based on, from Lowest to
	// Highest on its own axis. Limit is how far it says anything: twice as far.
	Levels  int        `json:"levels"`
	Lowest  float64    `json:"lowest"`
	Highest float64    `json:"highest"`
	Limit   float64    `json:"limit"`
	Points  []LawPoint `json:"points"`
	LeftOut []LeftOut  `json:"leftOut"` // besides those that no fit is based on
	USL     *USLLaw    `json:"usl,omitempty"`
	Line    *LineLaw   `json:"line,omitempty"`
	// Knee is where the figure bends, NoKnee why none is named. Both are empty
	// where none was sought.
	Knee   *KneeLaw `json:"knee,omitempty"`
	NoKnee string   `json:"noKnee,omitempty"`
	// P is how often the ranks of the figures would go with those of the levels
	// as well by chance; null where there is no fit.
	P *float64 `json:"p"`
	// Misfit is how far the measurements lie from the law on average (root
	// mean square), as a share of it; of memory in bytes.
	Misfit *float64 `json:"misfit"`
	// Refused says why there is no law.
	Refused  string   `json:"refused,omitempty"`
	Warnings []string `json:"warnings"`
	// Curve is the law from the lowest level to the limit, or to where nothing
	// is known but that it is above 0. It is empty where a line bends.
	Curve []CurvePoint `json:"curve"`
}

// LawPoint is one measurement.
type LawPoint struct {
	Step int     `json:"step"`
	X    float64 `json:"x"`
	Y    float64 `json:"y"`
}

// CurvePoint is a law's height with its interval.
type CurvePoint struct {
	X  float64  `json:"x"`
	Y  float64  `json:"y"`
	Lo *float64 `json:"lo"`
	Hi *float64 `json:"hi"`
}

// USLLaw is the Universal Scalability Law; see stats.USL.
type USLLaw struct {
	Lambda Interval `json:"lambda"`
	Sigma  Interval `json:"sigma"`
	Kappa  Interval `json:"kappa"`
	// Peak is null where none is shown: NoPeak says why.
	Peak   *PeakLaw `json:"peak"`
	NoPeak string   `json:"noPeak,omitempty"`
}

// PeakLaw is the level of the highest throughput.
type PeakLaw struct {
	Level      Interval `json:"level"`
	Throughput Interval `json:"throughput"`
}

// LineLaw is a straight line; see stats.Line.
type LineLaw struct {
	Intercept Interval `json:"intercept"`
	Slope     Interval `json:"slope"`
	// Wrong says why a line is the wrong law, if it is.
	Wrong string `json:"wrong,omitempty"`
}

// KneeLaw is where a figure bends; see stats.Knee.
type KneeLaw struct {
	At Interval `json:"at"`
	// Before and After are the slopes on either side, of logarithms where
	// LogLog says that it is straight on logarithmic axes.
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	LogLog bool    `json:"logLog,omitempty"`
	// P is that of there being no knee, and Q the rate of false discoveries
	// among all knees of the run that are as clear.
	P float64 `json:"p"`
	Q float64 `json:"q"`
	// Line is the broken line.
	Line []CurvePoint `json:"line"`
}
