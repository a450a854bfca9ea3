package result

import (
	"time"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
)

// Spec is what must be known of an experiment, besides its history, to judge it.
type Spec struct {
	Experiment, Workload, Command, Version string
	ExperimentKind                         string // limit, sweep, ab or run
	Axis, Unit                             string
	Goals                                  []slo.Goal // the headline first
	// Require names the goal that the exit code follows, plan.RequireAll for the
	// worst of all, or "" for the headline.
	Require string
	// Kind is that of the objects that are asked for. Milestones are those of
	// the kind that the run's objects reach, in their order.
	Kind       record.ObjectKind
	Milestones []string
	// Resolution is that of a search, 0 for any other experiment.
	Resolution float64
	// HoldMax is the longest hold of a step that is made again because its hold was
	// too short to tell whether its backlog grows; 0 makes none again.
	HoldMax record.Micros
	// Arms are those of a comparison; nil for any other experiment.
	Arms *ArmsSpec
	// FreshLab says that each step from empty has a lab made for it.
	FreshLab bool
	// Published are figures to be shown beside those of the run.
	Published []PublishedSpec
	// Signatures are the failures that are looked for; nil for none.
	Signatures []signature.Signature
	// Start is the wall clock at T = 0.
	Start time.Time
}

// Wall is the wall clock at t, to the microsecond.
func (s *Spec) Wall(t record.Micros) string {
	return s.Start.Add(t.Duration()).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// ArmsSpec is what must be known of a comparison, besides its history.
type ArmsSpec struct {
	Names  []string // the baseline first
	Params map[string]map[string]string
	// Metric is the one that decides, such as "ContainersStarted p50"; it was declared before the runs.
	Metric string
	// Further are those that were declared with it, each judged at Alpha by how many all of them are.
	Further []string
	Margin  float64 // 0.05 is 5 %
	Alpha   float64
	// Until says that blocks are made until the arms are decided, Least and Most of them, or, with
	// NotWorse, until they are not worse; Among is how many comparisons of each metric are made together.
	Until, NotWorse    bool
	Least, Most, Among int
}

// Metrics are all metrics that were declared, the one that decides first.
func (a *ArmsSpec) Metrics() []string { return append([]string{a.Metric}, a.Further...) }

// PublishedSpec is a figure that somebody has published: times in seconds, changes as a share.
type PublishedSpec struct {
	What, Metric, Arm, Source string
	Value                     float64
	// IsChange says that Value is by how much the arm differs from the
	// baseline; IsLine that it is a load line.
	IsChange, IsLine bool
}
