package compare

import (
	"cmp"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// Comparison says how arms compare with the baseline.
type Comparison struct {
	Baseline    string                       `json:"baseline"`
	Metric      string                       `json:"metric"`            // that decides
	Further     []string                     `json:"further,omitempty"` // declared with it before the runs
	Margin      float64                      `json:"margin"`            // 0.05 is 5 %
	Alpha       float64                      `json:"alpha"`             // the error rate of each metric, by their number
	Arms        map[string]map[string]string `json:"arms"`              // parameters
	Paired      bool                         `json:"paired"`            // made side by side in blocks, else changes with time are included
	Among       int                          `json:"among"`             // comparisons of each metric: better and worse are found at Alpha by so many
	Refused     string                       `json:"refused,omitempty"` // why the two are not comparable, or ""
	ArmIs       []string                     `json:"armIs,omitempty"`   // an arm that could only be changed apart from the runs, such as "cgroup" or "runtime"
	Differences []Difference                 `json:"differences,omitempty"`
	Lines       []LineComparison             `json:"lines,omitempty"` // where both experiments sought one
	Levels      []LevelComparison            `json:"levels"`
	// Decides is ByLines or ByLevels; the other is descriptive. "" is the lines where there are any.
	Decides      string    `json:"decides,omitempty"`
	OnlyBaseline []float64 `json:"onlyBaseline,omitempty"` // levels that the arm lacks
	OnlyArm      []float64 `json:"onlyArm,omitempty"`      // levels that the baseline lacks
}

// The bases of a verdict.
const (
	ByLines  = "lines"
	ByLevels = "levels"
)

// Difference is a difference of two experiments.
type Difference struct {
	What     string `json:"what"` // a name for --arm-is
	Detail   string `json:"detail,omitempty"`
	Baseline string `json:"baseline"`
	Arm      string `json:"arm"`
	Bearing  string `json:"bearing"` // one of the Bearing constants
}

// The meaning of a difference for the verdict: that of the fact, or the arm itself.
const (
	BearingArm        = "arm"
	BearingRefuses    = string(record.Refuses)
	BearingMayExplain = string(record.MayExplain)
	BearingNoted      = string(record.Noted)
)

// LineComparison compares two load lines of one goal, where more is better. Each lies in its interval, at
// 95%, and so does the change: two lines with overlapping intervals are neither better nor worse.
type LineComparison struct {
	Goal     string        `json:"goal"`
	Axis     string        `json:"axis"`
	Unit     string        `json:"unit"`
	Baseline Bracket       `json:"baseline"`
	Arm      Bracket       `json:"arm"`
	Change   *float64      `json:"change"` // of the estimates
	Lo       *float64      `json:"lo"`
	Hi       *float64      `json:"hi"` // null: without bound
	Verdict  stats.Verdict `json:"verdict"`
	Why      string        `json:"why"`
}

// Bracket is a load line as its search left it.
type Bracket struct {
	Level         *float64 `json:"level"`
	LowestFailing *float64 `json:"lowestFailing"`
	Verdict       string   `json:"verdict"`
	Confirmations string   `json:"confirmations"` // "3 of 3"
	// Estimate and Low to High are a load line's; Exact says that an exact refusal made them the bracket.
	Estimate *float64 `json:"estimate"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
	Exact    bool     `json:"exact,omitempty"`
	Binding  string   `json:"binding"`
}

// LevelComparison compares one arm with the baseline at one level.
type LevelComparison struct {
	Level    float64       `json:"level"`
	Arm      string        `json:"arm"`
	Verdict  stats.Verdict `json:"verdict"`
	Why      string        `json:"why"`
	MoreRuns int           `json:"moreRuns"` // number of further runs of each arm that likely decide; -1: too many, 0: decided or unknown
	Runs     [2]int        `json:"runs"`     // of the baseline and of the arm; Excluded names the others, with the reason
	Excluded []string      `json:"excluded"`
	Primary  Compared      `json:"primary"`
	// StrictLo and StrictHi are the interval for better and worse among several comparisons.
	StrictLo   *float64    `json:"strictLo,omitempty"`
	StrictHi   *float64    `json:"strictHi,omitempty"`
	Sequential *Sequential `json:"sequential,omitempty"` // of a comparison that goes on until it is decided
	Metrics    []Decision  `json:"metrics,omitempty"`    // the declared metrics' decisions, the primary's first; none where it is the only one
	Others     []Compared  `json:"others"`               // descriptive
	// Distance, Superiority and PermutationP are those of the metric's milestone; see SeriesComparison.
	Distance     *float64           `json:"distance"`
	Superiority  *float64           `json:"superiority"`
	PermutationP *float64           `json:"permutationP"`
	Series       []SeriesComparison `json:"series"` // whole distributions, by milestone and component
	Warnings     record.Warnings    `json:"warnings"`
}

// Decisions returns the decisions of the declared metrics, the primary's first.
func (c *LevelComparison) Decisions() []Decision {
	if len(c.Metrics) > 0 {
		return c.Metrics
	}
	return []Decision{{Verdict: c.Verdict, Why: c.Why, MoreRuns: c.MoreRuns, Figure: c.Primary, StrictLo: c.StrictLo, StrictHi: c.StrictHi, Sequential: c.Sequential}}
}

// Revise changes the decision of each declared metric.
func (c *LevelComparison) Revise(change func(*Decision)) {
	list := c.Decisions()
	for i := range list {
		change(&list[i])
	}
	c.take(list)
}

// Declared returns the figures of the declared metrics, the primary first.
func (c *LevelComparison) Declared() []Compared {
	var list []Compared
	for _, d := range c.Decisions() {
		list = append(list, d.Figure)
	}
	return list
}

// Decision is the verdict by one of several declared metrics, with the keys of a LevelComparison.
type Decision struct {
	Verdict    stats.Verdict `json:"verdict"`
	Why        string        `json:"why"`
	MoreRuns   int           `json:"moreRuns"`
	Figure     Compared      `json:"figure"`
	StrictLo   *float64      `json:"strictLo,omitempty"`
	StrictHi   *float64      `json:"strictHi,omitempty"`
	Sequential *Sequential   `json:"sequential,omitempty"`
}

// Says returns the verdict by the metric, and why.
func (d Decision) Says() string {
	why := d.Why
	if name := d.Figure.Called(); !strings.Contains(why, name) {
		why = name + ": " + why
	}
	return why + " (" + string(d.Verdict) + ")"
}

// Sequential is a look at a comparison that goes on until it is decided; its interval is always valid.
type Sequential struct {
	Blocks    int      `json:"blocks"` // that count, of at most Most
	Most      int      `json:"most"`
	Bound     *float64 `json:"bound"`     // half of the interval, in standard errors
	Unbiased  *float64 `json:"unbiased"`  // the median-unbiased change
	SignFlip  *float64 `json:"signFlip"`  // p-value of the blocks' signs; null before it counts
	Predicted *float64 `json:"predicted"` // probability that the last look decides; null before it counts
	Done      bool     `json:"done"`      // no further block is made
	Futile    bool     `json:"futile"`    // because it would not decide
}

// Compared is one metric in the runs of two arms, by blocks if side by side; null was never reached.
type Compared struct {
	Metric         string     `json:"metric"`
	Title          string     `json:"title,omitempty"` // for readers, "" for the metric's name
	Unit           string     `json:"unit"`
	Kind           string     `json:"kind"`                  // one of the Kind constants
	LessIsWorse    bool       `json:"lessIsWorse,omitempty"` // more is better
	Baseline       []*float64 `json:"baseline"`
	Arm            []*float64 `json:"arm"`
	Change         *float64   `json:"change"` // relative to the baseline, + is more; null where it is unknown, and Note says why
	Lo             *float64   `json:"lo"`
	Hi             *float64   `json:"hi"`
	Note           string     `json:"note,omitempty"`
	FalseDiscovery *float64   `json:"falseDiscovery,omitempty"` // rate of false discoveries among the metrics that differ at least as clearly
}

// Called returns the titles of the deciding metrics, the primary first.
func (c *Comparison) Called() []string {
	list := append([]string{c.Metric}, c.Further...)
	for _, l := range c.Levels {
		for i, m := range l.Declared() {
			list[i] = cmp.Or(m.Title, list[i])
		}
	}
	return list
}

// Called returns the metric's title, or its name.
func (c Compared) Called() string { return cmp.Or(c.Title, c.Metric) }

// The kinds of metrics.
const (
	KindMetric  = "metric" // that the target declares
	KindLatency = "latency"
	KindRequest = "request"
	KindRate    = "rate"
	KindCPU     = "cpu"
	KindMemory  = "memory" // the most resident memory
	KindGrowth  = "growth" // the most less that at the start
)

// SeriesComparison compares the distributions of one milestone's latency in two arms, over all objects.
type SeriesComparison struct {
	Milestone string `json:"milestone"`
	Component string `json:"component"` // "" is all of them
	Baseline  Form   `json:"baseline"`
	Arm       Form   `json:"arm"`
	// Distance is the Kolmogorov-Smirnov distance, and Superiority the probability that an object of the
	// arm is later than one of the baseline: effect sizes over objects. PermutationP is the share of all
	// ways to give the runs to the arms with at least that distance; null with one run each.
	Distance     *float64 `json:"distance"`
	Superiority  *float64 `json:"superiority"`
	PermutationP *float64 `json:"permutationP"`
	Shifts       []Shift  `json:"shifts"` // of quantiles, as far out as the smallest run carries
}

// Form is the distribution of one arm.
type Form struct {
	N        int          `json:"n"`
	Censored int          `json:"censored"` // never ready: infinitely late
	Forms    int          `json:"forms"`    // number of the distribution's forms, 2 where objects fall into two groups; 0 for too few objects
	Curve    [][2]float64 `json:"curve"`    // distribution: [seconds, share that was there by then], thinned to within 1/256
}

// Shift is the change of a quantile of the runs, with its interval; a null lies at objects never ready.
type Shift struct {
	Q        float64  `json:"q"`
	Baseline *float64 `json:"baseline"` // geometric mean of the runs' quantiles; without Change the quantile over all runs' objects
	Arm      *float64 `json:"arm"`
	Change   *float64 `json:"change"`
	Lo       *float64 `json:"lo"`
	Hi       *float64 `json:"hi"`
}

// ExitCode returns the exit code of a comparison.
func ExitCode(v stats.Verdict) int {
	switch v {
	case stats.Better, stats.Equivalent, stats.NotWorse:
		return 0
	case stats.Worse:
		return 1
	}
	return 3
}
