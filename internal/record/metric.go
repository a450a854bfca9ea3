package record

import (
	"cmp"
	"slices"
)

// Metric is a figure of a step, besides the latencies of its milestones, that
// arms can be compared by: a fold of one value, or of one for each of another.
type Metric struct {
	// Name is its key: in results, and where a user asks for it.
	Name string `json:"name"`
	// Title is what readers see in its place, "" for the name.
	Title string `json:"title,omitempty"`
	Unit  string `json:"unit"` // s, B, B/s, %
	Help  string `json:"help"`
	// LessIsWorse is the direction; else more is worse.
	LessIsWorse bool `json:"lessIsWorse,omitempty"`
	Of          Fold `json:"of"`
	// Per, if not nil, is what Of is divided by.
	Per *Fold `json:"per,omitempty"`
}

// Fold is what one value among the samples of a source comes to in a step.
type Fold struct {
	Source string   `json:"source"`
	Value  string   `json:"value"`
	Fold   FoldKind `json:"fold"`
}

// FoldKind is how a step's samples of a value come to one figure.
type FoldKind string

// The folds. Those of the parts of a ratio, and in any case the mean and the difference by the second,
// are of the hold where requests come all the time; all else is of the whole step.
const (
	FoldLast       FoldKind = "last"
	FoldMost       FoldKind = "most"
	FoldGrowth     FoldKind = "growth"     // the most less the first
	FoldDifference FoldKind = "difference" // of a value that only grows
	FoldMean       FoldKind = "mean"
	FoldPerSecond  FoldKind = "perSecond" // the difference by the second
)

// ValueCPU and ValueMemory are what a process has used: seconds of CPU since it was started, and bytes of
// memory, of which those that several processes of a source share count once where that is known.
const (
	ValueCPU    = "cpuSeconds"
	ValueMemory = "memoryBytes"
)

// SourceStep is the source of what is known of each step without any sample. Of
// its values there is one in a step, and FoldPerSecond divides it by ValueSeconds.
const SourceStep = "step"

// Values of SourceStep.
const (
	ValueAsked   = "asked"        // objects, or requests of a stream that were due in the hold
	ValueDone    = "done"         // of these, those that were there; of a stream, requests that were answered in the hold
	ValueRate    = "achievedRate" // of them, by the second
	ValueSeconds = "seconds"      // that the hold lasted
)

// MeasureRequestErrors names the measure that the engine itself provides: the
// percentage of the latest requests whose last outcome is a failure.
const MeasureRequestErrors = "apiErrors"

// RequestErrors returns that measure. Bound is the percentage at which its guard
// stops the load of a target that is not ours, 0 for no such guard.
func RequestErrors(bound float64) Measure {
	return Measure{Name: MeasureRequestErrors, Help: "requests that failed for good, with 99.9 % confidence", Percent: true, Bound: bound}
}

// AchievedRate is the metric of what was done a second, which every step has.
func AchievedRate(help string) Metric {
	return Metric{Name: "achieved rate", Unit: "/s", Help: help, LessIsWorse: true, Of: Fold{SourceStep, ValueRate, FoldLast}}
}

// UseOf are the metrics of what a source of samples uses, which every process has: CPU, and the most
// memory and its growth. Of is what the source is called in their help.
func UseOf(source, of string) []Metric {
	return []Metric{
		{Name: source + " CPU", Unit: "s", Help: "CPU time of " + of, Of: Fold{source, ValueCPU, FoldDifference}},
		{Name: source + " memory, most", Unit: "B", Help: "the most memory of " + of, Of: Fold{source, ValueMemory, FoldMost}},
		{Name: source + " memory, growth", Unit: "B", Help: "the most memory of " + of + " less that at the start", Of: Fold{source, ValueMemory, FoldGrowth}},
	}
}

// Everywhere reports whether steps have the metric whatever their target
// declares: those of UseOf and AchievedRate.
func (m Metric) Everywhere() bool {
	same := func(known Metric) bool { return m.Per == nil && m.Of == known.Of }
	return same(AchievedRate("")) || slices.ContainsFunc(UseOf(m.Of.Source, ""), same)
}

// Called is the metric's title, or its name where it has none.
func (m Metric) Called() string { return cmp.Or(m.Title, m.Name) }

// Folds are those that the metric is made of.
func (m Metric) Folds() []Fold {
	if m.Per == nil {
		return []Fold{m.Of}
	}
	return []Fold{m.Of, *m.Per}
}

// Metric is the metric of that name, nil for one that the kind does not have.
func (k ObjectKind) Metric(name string) *Metric {
	i := slices.IndexFunc(k.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &k.Metrics[i]
}
