package result

import (
	"time"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Spec holds what the judge needs of an experiment besides its history.
type Spec struct {
	Experiment, Workload, Command, Version string
	ExperimentKind                         string // limit, sweep, ab or run
	Axis, Unit                             string
	Goals                                  []slo.Goal // the headline first
	Require                                string     // the goal that the exit code follows, plan.RequireAll, or "" for the headline
	Kind                                   record.ObjectKind
	Milestones                             []string              // of the kind, that the run's objects reach, in order
	Resolution                             float64               // of a search, 0 for any other experiment
	HoldMax                                record.Micros         // bound of a hold that is repeated because it was too short to judge; 0 repeats none
	Arms                                   *ArmsSpec             // nil unless arms are compared
	FreshLab                               bool                  // each step from empty has a lab made for it
	Published                              []PublishedSpec       // figures to show beside those of the run
	Signatures                             []signature.Signature // known failures
	Start                                  time.Time             // the wall clock at T = 0
}

// Wall returns the wall clock at t, to the microsecond.
func (s *Spec) Wall(t record.Micros) string {
	return s.Start.Add(t.Duration()).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// ArmsSpec holds what the judge needs of a comparison besides its history.
type ArmsSpec struct {
	Names   []string // the baseline first
	Params  map[string]map[string]string
	Metric  string   // decides, such as "ContainersStarted p50"; it was declared before the runs
	Further []string // declared with it; each of all is judged at Alpha by their number
	Margin  float64  // 0.05 is 5%
	Alpha   float64
	// Until says that blocks are made until the arms are decided, Least and Most of them, or, with
	// NotWorse, until they are not worse; Among counts the comparisons of each metric that are made
	// together.
	Until, NotWorse    bool
	Least, Most, Among int
}

// Metrics returns all declared metrics, the deciding one first.
func (a *ArmsSpec) Metrics() []string { return append([]string{a.Metric}, a.Further...) }

// PublishedSpec is a figure that somebody has published: times in seconds, changes as a share.
type PublishedSpec struct {
	What, Metric, Arm, Source string
	Value                     float64
	// IsChange says that Value is a change from the baseline; IsLine that it is a load line.
	IsChange, IsLine bool
}
