package record

import (
	"cmp"
	"slices"
)

// Metric is a figure of a step besides the latencies of its milestones, by which arms can be compared: a
// fold of one value, or a ratio of two.
type Metric struct {
	Name        string `json:"name"`            // its key in results and on the command line
	Title       string `json:"title,omitempty"` // for readers, "" for the name
	Unit        string `json:"unit"`            // s, B, B/s, %
	Help        string `json:"help"`
	LessIsWorse bool   `json:"lessIsWorse,omitempty"` // else more is worse
	Of          Fold   `json:"of"`
	Per         *Fold  `json:"per,omitempty"` // the divisor of Of, nil for none
}

// Fold is one figure of a step from the samples of a value.
type Fold struct {
	Source string   `json:"source"`
	Value  string   `json:"value"`
	Fold   FoldKind `json:"fold"`
}

// FoldKind says how a step's samples of a value become one figure.
type FoldKind string

// The folds. Where requests come all the time, parts of a ratio, the mean and the difference per second cover
// the hold; everything else covers the whole step.
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
	// ValueCPU is the CPU time of a process since its start, in seconds.
	ValueCPU    = "cpuSeconds"
	ValueMemory = "memoryBytes" // memory that several processes of a source share counts once where known
)

// SourceStep is the source of values that each step has once, without samples. FoldPerSecond divides them
// by ValueSeconds.
const SourceStep = "step"

// Values of SourceStep.
const (
	ValueAsked   = "asked"        // objects, or requests of a stream that were due in the hold
	ValueDone    = "done"         // objects that were there; of a stream, requests that were answered in the hold
	ValueRate    = "achievedRate" // of them, by the second
	ValueSeconds = "seconds"      // that the hold lasted
)

// MeasureRequestErrors names the measure that the engine itself provides: the percentage of the latest
// requests that failed for good.
const MeasureRequestErrors = "apiErrors"

// RequestErrors returns that measure. Bound is the percentage at which its guard stops the load of a
// target that is not ours, 0 for no such guard.
func RequestErrors(bound float64) Measure {
	return Measure{Name: MeasureRequestErrors, Help: "requests that failed for good, with 99.9% confidence", Percent: true, Bound: bound}
}

// AchievedRate returns the metric of work done per second, which every step has.
func AchievedRate(help string) Metric {
	return Metric{Name: "achieved rate", Unit: "/s", Help: help, LessIsWorse: true, Of: Fold{SourceStep, ValueRate, FoldLast}}
}

// UseOf returns the metrics of the use of a source of samples, which every process has: CPU, and the most
// memory and its growth. Of names the source in their help.
func UseOf(source, of string) []Metric {
	return []Metric{
		{Name: source + " CPU", Unit: "s", Help: "CPU time of " + of, Of: Fold{source, ValueCPU, FoldDifference}},
		{Name: source + " memory, most", Unit: "B", Help: "the most memory of " + of, Of: Fold{source, ValueMemory, FoldMost}},
		{Name: source + " memory, growth", Unit: "B", Help: "the most memory of " + of + " less that at the start", Of: Fold{source, ValueMemory, FoldGrowth}},
	}
}

// Everywhere reports whether steps have the metric whatever their target declares, by UseOf and
// AchievedRate.
func (m Metric) Everywhere() bool {
	same := func(known Metric) bool { return m.Per == nil && m.Of == known.Of }
	return same(AchievedRate("")) || slices.ContainsFunc(UseOf(m.Of.Source, ""), same)
}

// Called returns the metric's title, or its name.
func (m Metric) Called() string { return cmp.Or(m.Title, m.Name) }

// Folds returns the folds of the metric.
func (m Metric) Folds() []Fold {
	if m.Per == nil {
		return []Fold{m.Of}
	}
	return []Fold{m.Of, *m.Per}
}

// Metric returns the metric of that name, or nil.
func (k ObjectKind) Metric(name string) *Metric {
	i := slices.IndexFunc(k.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &k.Metrics[i]
}
