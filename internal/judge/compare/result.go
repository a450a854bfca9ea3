package compare

import (
	"cmp"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// Comparison is how arms compare with the baseline.
type Comparison struct {
	Baseline string `json:"baseline"`
	Metric   string `json:"metric"` // that decides
	// Further are metrics that were declared with it before the runs.
	Further []string `json:"further,omitempty"`
	Margin  float64  `json:"margin"` // 0.05 is 5 %
	// Alpha is the error rate of each metric: that of the comparison by how many metrics decide.
	Alpha float64 `json:"alpha"`
	// Arms are each arm's parameters.
	Arms map[string]map[string]string `json:"arms"`
	// Paired says that runs were made side by side in blocks; else they were
	// made apart, and what changed with time is in the difference.
	Paired bool `json:"paired"`
	// Among is how many comparisons of each metric are made together: better and
	// worse are found at Alpha by so many.
	Among int `json:"among"`
	// Refused says why nothing is decided: the two are not comparable. Empty where they are.
	Refused string `json:"refused,omitempty"`
	// ArmIs names what the arm is where it could only be changed apart from
	// the runs, such as "cgroup" or "runtime".
	ArmIs       []string     `json:"armIs,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
	// Lines compares load lines, where both experiments sought one.
	Lines  []LineComparison  `json:"lines,omitempty"`
	Levels []LevelComparison `json:"levels"`
	// Decides says what the verdict is of, one of ByLines and ByLevels; the
	// other is descriptive. "" is the lines where there are any.
	Decides string `json:"decides,omitempty"`
	// OnlyBaseline and OnlyArm are levels that the other was not held at.
	OnlyBaseline []float64 `json:"onlyBaseline,omitempty"`
	OnlyArm      []float64 `json:"onlyArm,omitempty"`
}

// What a comparison is decided by.
const (
	ByLines  = "lines"
	ByLevels = "levels"
)

// Difference is something that two experiments do not have in common.
type Difference struct {
	What     string `json:"what"` // a name as --arm-is takes it
	Detail   string `json:"detail,omitempty"`
	Baseline string `json:"baseline"`
	Arm      string `json:"arm"`
	Bearing  string `json:"bearing"` // one of the Bearing constants
}

// What a difference means for the verdict: that of the fact, or that it is what is compared.
const (
	BearingArm        = "arm"
	BearingRefuses    = string(record.Refuses)
	BearingMayExplain = string(record.MayExplain)
	BearingNoted      = string(record.Noted)
)

// LineComparison compares two load lines of one goal, where more is better. Each lies in its interval, at
// 95 %, so the change lies in one too: two lines whose intervals overlap are neither better nor worse.
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
	// Estimate and Low to High are where the line lies, as of a result's load line;
	// Exact says that this is the bracket, by an exact refusal.
	Estimate *float64 `json:"estimate"`
	Low      *float64 `json:"low"`
	High     *float64 `json:"high"`
	Exact    bool     `json:"exact,omitempty"`
	Binding  string   `json:"binding"`
}

// LevelComparison compares one arm with the baseline at one level.
type LevelComparison struct {
	Level   float64       `json:"level"`
	Arm     string        `json:"arm"`
	Verdict stats.Verdict `json:"verdict"`
	Why     string        `json:"why"`
	// MoreRuns is how many further runs of each arm are likely to decide what is inconclusive; -1 says
	// that too many to be worth it would, 0 that it is decided or that nothing can be said.
	MoreRuns int `json:"moreRuns"`
	// Runs is how many runs of the baseline and of the arm count, and Excluded
	// says which do not, and why.
	Runs     [2]int   `json:"runs"`
	Excluded []string `json:"excluded"`
	Primary  Compared `json:"primary"`
	// StrictLo and StrictHi are the interval by which better and worse are found
	// where several comparisons are made; else it is the primary metric's.
	StrictLo *float64 `json:"strictLo,omitempty"`
	StrictHi *float64 `json:"strictHi,omitempty"`
	// Sequential is of a comparison that goes on until it is decided.
	Sequential *Sequential `json:"sequential,omitempty"`
	// Metrics are the decisions of the metrics that were declared, the primary's first; none where it is
	// the only one. The level's verdict is the primary's, unless another is worse or inconclusive.
	Metrics []Decision `json:"metrics,omitempty"`
	Others  []Compared `json:"others"` // descriptive
	// Distance, Superiority and PermutationP are those of the deciding
	// metric's milestone over all components; see SeriesComparison.
	Distance     *float64 `json:"distance"`
	Superiority  *float64 `json:"superiority"`
	PermutationP *float64 `json:"permutationP"`
	// Series compares whole distributions, by milestone and component.
	Series   []SeriesComparison `json:"series"`
	Warnings record.Warnings    `json:"warnings"`
}

// Decisions are those of the metrics that decide, the primary's first.
func (c *LevelComparison) Decisions() []Decision {
	if len(c.Metrics) > 0 {
		return c.Metrics
	}
	return []Decision{{Verdict: c.Verdict, Why: c.Why, MoreRuns: c.MoreRuns, Figure: c.Primary, StrictLo: c.StrictLo, StrictHi: c.StrictHi, Sequential: c.Sequential}}
}

// Revise changes the decision of each metric that decides.
func (c *LevelComparison) Revise(change func(*Decision)) {
	list := c.Decisions()
	for i := range list {
		change(&list[i])
	}
	c.take(list)
}

// Declared are the metrics that decide, the primary first.
func (c *LevelComparison) Declared() []Compared {
	var list []Compared
	for _, d := range c.Decisions() {
		list = append(list, d.Figure)
	}
	return list
}

// Decision is what comes of one of several metrics that were declared. Its keys are
// those of a LevelComparison, whose primary is the figure.
type Decision struct {
	Verdict    stats.Verdict `json:"verdict"`
	Why        string        `json:"why"`
	MoreRuns   int           `json:"moreRuns"`
	Figure     Compared      `json:"figure"`
	StrictLo   *float64      `json:"strictLo,omitempty"`
	StrictHi   *float64      `json:"strictHi,omitempty"`
	Sequential *Sequential   `json:"sequential,omitempty"`
}

// Says is what came of the metric, and why.
func (d Decision) Says() string {
	why := d.Why
	if name := d.Figure.Called(); !strings.Contains(why, name) {
		why = name + ": " + why
	}
	return why + " (" + string(d.Verdict) + ")"
}

// Sequential is the look at a comparison that goes on until it is decided. The
// interval of the primary metric is then the repeated one, valid at every look.
type Sequential struct {
	Blocks int `json:"blocks"` // that count, of at most Most
	Most   int `json:"most"`
	// Bound is by how many standard errors the interval reaches from the mean.
	Bound *float64 `json:"bound"`
	// Unbiased is the change that is as likely to be found so far out as not.
	Unbiased *float64 `json:"unbiased"`
	// SignFlip is the p-value of the blocks' signs, and Predicted the probability
	// that the last look decides; null before they count.
	SignFlip  *float64 `json:"signFlip"`
	Predicted *float64 `json:"predicted"`
	Done      bool     `json:"done"`   // no further block is made
	Futile    bool     `json:"futile"` // for they would not decide
}

// Compared is one metric in the runs of two arms: block by block where they
// were made side by side. A null is a figure that was never reached.
type Compared struct {
	Metric string `json:"metric"`
	// Title is what readers see in place of the metric's name, "" for the name.
	Title string `json:"title,omitempty"`
	Unit  string `json:"unit"`
	Kind  string `json:"kind"` // one of the Kind constants
	// LessIsWorse says that more of it is better.
	LessIsWorse bool       `json:"lessIsWorse,omitempty"`
	Baseline    []*float64 `json:"baseline"`
	Arm         []*float64 `json:"arm"`
	// Change is relative to the baseline, with its interval; + is more. It is
	// null where nothing can be said, and Note says why.
	Change *float64 `json:"change"`
	Lo     *float64 `json:"lo"`
	Hi     *float64 `json:"hi"`
	Note   string   `json:"note,omitempty"`
	// FalseDiscovery is the rate of false discoveries among the metrics that
	// differ at least as clearly as this one.
	FalseDiscovery *float64 `json:"falseDiscovery,omitempty"`
}

// Called is what readers see each metric that decides as, the primary first.
func (c *Comparison) Called() []string {
	list := append([]string{c.Metric}, c.Further...)
	for _, l := range c.Levels {
		for i, m := range l.Declared() {
			list[i] = cmp.Or(m.Title, list[i])
		}
	}
	return list
}

// Called is what readers see the metric as.
func (c Compared) Called() string { return cmp.Or(c.Title, c.Metric) }

// Kinds of metrics.
const (
	KindMetric  = "metric" // that the target declares
	KindLatency = "latency"
	KindRequest = "request"
	KindRate    = "rate"
	KindCPU     = "cpu"
	KindMemory  = "memory" // the most that was resident
	KindGrowth  = "growth" // the most less what was there at the start
)

// SeriesComparison compares the distributions of one milestone's latency in
// two arms, over the objects of all runs that count.
type SeriesComparison struct {
	Milestone string `json:"milestone"`
	Component string `json:"component"` // "" is all of them
	Baseline  Form   `json:"baseline"`
	Arm       Form   `json:"arm"`
	// Distance is the Kolmogorov-Smirnov distance, and Superiority the probability that an object of the
	// arm is later than one of the baseline: effect sizes over objects. PermutationP is the share of all
	// ways to give the runs to the arms whose distance is as large; null with one run each.
	Distance     *float64 `json:"distance"`
	Superiority  *float64 `json:"superiority"`
	PermutationP *float64 `json:"permutationP"`
	// Shifts are the changes of the quantiles, as far out as the smallest run carries.
	Shifts []Shift `json:"shifts"`
}

// Form is a distribution, as one arm has it.
type Form struct {
	N        int `json:"n"`
	Censored int `json:"censored"` // never ready: infinitely late
	// Forms is how many forms the distribution has: 2 where its objects fall into two groups that no one
	// percentile tells of. 0 where there are too few to say.
	Forms int `json:"forms"`
	// Curve is the distribution: [seconds, share of all that were there by
	// then], thinned by the share so that no more than 1/256 is lost.
	Curve [][2]float64 `json:"curve"`
}

// Shift is how a quantile differs: the change of the runs' own quantiles, with
// its interval. A null quantile lies at objects that were never ready.
type Shift struct {
	Q        float64  `json:"q"`
	Baseline *float64 `json:"baseline"` // over all runs' objects
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
