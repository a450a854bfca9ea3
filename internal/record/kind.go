package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ObjectKind describes a target's objects: data on record, to judge and show it without the target.
type ObjectKind struct {
	Object     Noun        `json:"object"`         // pod, volume, machine
	Place      Noun        `json:"place,omitzero"` // node, brick; zero where a level is not an average over places
	Milestones []Milestone `json:"milestones"`     // in the order in which objects reach them
	// Created, Placed, Started, There and Gone name milestones by their part: an object exists, has its
	// place, begins to cost, counts as there, is removed. Only There is never "".
	Created      string      `json:"created,omitempty"`
	Placed       string      `json:"placed,omitempty"`
	Started      string      `json:"started,omitempty"`
	There        string      `json:"there"`
	Gone         string      `json:"gone,omitempty"`
	Unplaced     string      `json:"unplaced,omitempty"` // reason of an object without a place now, Removing of one that is being removed
	Removing     string      `json:"removing,omitempty"`
	Measures     []Measure   `json:"measures,omitempty"`
	Metrics      []Metric    `json:"metrics,omitempty"`
	Troubles     []Trouble   `json:"troubles,omitempty"`
	FreshPerStep bool        `json:"freshPerStep,omitempty"` // each step has a system of its own, without traces of an earlier one
	Charts       []Chart     `json:"charts,omitempty"`       // figures among the samples that a report draws over time
	Bounds       []Bound     `json:"bounds,omitempty"`       // what can limit a load, the first one to name first
	Concurrent   *Concurrent `json:"concurrent,omitempty"`   // counts objects between two milestones, nil for no count
	GroupBy      *GroupBy    `json:"groupBy,omitempty"`      // groups the times of objects by labels, nil for no groups
	Generator    string      `json:"generator,omitempty"`    // the program that makes the load, "" for this one
}

// Concurrent says between which milestones objects are counted, and how many may be there at once: in all
// and of one place. 0 is no limit, or an unknown one.
type Concurrent struct {
	From            string `json:"from"`
	To              string `json:"to"`
	Limit           int    `json:"limit,omitempty"`
	PerPlaceLimit   int    `json:"perPlaceLimit,omitempty"`
	Setting         string `json:"setting,omitempty"`         // the setting of Limit, "" for no name
	PerPlaceSetting string `json:"perPlaceSetting,omitempty"` // the setting of PerPlaceLimit, "" for no name
}

// GroupBy says by which labels times are grouped: of milestones, and from one, or time zero, to another.
type GroupBy struct {
	Labels []string            `json:"labels"`
	From   string              `json:"from,omitempty"`
	To     string              `json:"to"`
	Places map[string][]string `json:"places,omitempty"` // each place's values of the labels, in order, for objects there without the label
}

// Bound is something that can limit a load, and how samples show it. It held where a value was at least
// the share Full of its limit: on average over a stream's hold, or until the last object of another load
// was there.
type Bound struct {
	Name      string  `json:"name" yaml:"name"`
	What      string  `json:"what" yaml:"what"` // in words
	Source    string  `json:"source" yaml:"source"`
	Value     string  `json:"value" yaml:"value"`
	Limit     string  `json:"limit,omitempty" yaml:"limit"` // the value with its limit; "" is 1
	Full      float64 `json:"full" yaml:"full"`
	Waiting   string  `json:"waiting,omitempty" yaml:"waiting"`     // the value that counts the waiting ones, or "": without any it did not hold
	By        string  `json:"by,omitempty" yaml:"by"`               // owner of the milestones that wait for it, "" for none
	Slow      bool    `json:"slow,omitempty" yaml:"slow"`           // time was spent there, and nothing was used up
	Generator bool    `json:"generator,omitempty" yaml:"generator"` // the generator was short: the target can do at least the measured rate
}

// Chart holds figures of one source that belong on one chart over time.
type Chart struct {
	Title  string  `json:"title"` // with the unit
	Source string  `json:"source"`
	Values []Value `json:"values"`
}

// Value is a figure among the samples of a source.
type Value struct {
	Key  string `json:"key"`  // in the samples
	Name string `json:"name"` // for readers, in a word or two
}

// Noun is the name of a thing.
type Noun struct {
	One  string `json:"one"`
	Many string `json:"many"`
}

// Of returns the noun for a number of things.
func (n Noun) Of(count int) string {
	if count == 1 {
		return n.One
	}
	return n.Many
}

// Count returns a number of things with their noun.
func (n Noun) Count(count int) string { return fmt.Sprintf("%d %s", count, n.Of(count)) }

// Milestone is a point that an object reaches.
type Milestone struct {
	Name  string `json:"name"`
	Owner string `json:"owner"` // who does the work, and is named where the wait for it binds
	// Of names another kind of objects that the run also follows and that reaches it, "" for the main one. The
	// names of such objects begin with "Of/". There says that they count as there.
	Of    string `json:"of,omitempty"`
	There bool   `json:"there,omitempty"`
}

// Measure is a figure of a target's health that a guard can watch.
type Measure struct {
	Name    string  `json:"name"`
	Help    string  `json:"help"`
	Percent bool    `json:"percent,omitempty"` // a percentage, else a count
	Bound   float64 `json:"bound,omitempty"`   // of the guard on a target that is not ours, 0 for none
}

// Trouble is a class of objects' problems by the reasons given; the first of a list that holds counts.
type Trouble struct {
	Class   string   `json:"class"`
	What    string   `json:"what"` // in words
	Reasons []string `json:"reasons"`
	Message []string `json:"message,omitempty"` // if not empty, the message contains at least one of these texts
}

// Names returns the milestones' names in their order.
func (k ObjectKind) Names() []string {
	names := make([]string, len(k.Milestones))
	for i, m := range k.Milestones {
		names[i] = m.Name
	}
	return names
}

// Owner returns who does the work of a milestone, "" for one that the kind does not have.
func (k ObjectKind) Owner(milestone string) string {
	i := slices.IndexFunc(k.Milestones, func(m Milestone) bool { return m.Name == milestone })
	if i < 0 {
		return ""
	}
	return k.Milestones[i].Owner
}

// KnownTroubles finds the troubles of a kind of object by their class, or by a reason with its message.
type KnownTroubles struct {
	Kind     *ObjectKind
	byReason map[string][]*Trouble
}

// NewKnownTroubles returns the troubles of a kind.
func NewKnownTroubles(kind *ObjectKind) *KnownTroubles {
	k := &KnownTroubles{Kind: kind, byReason: make(map[string][]*Trouble)}
	for i := range kind.Troubles {
		x := &kind.Troubles[i]
		for _, reason := range x.Reasons {
			k.byReason[reason] = append(k.byReason[reason], x)
		}
	}
	return k
}

// Of returns an object's trouble by its class, or without one by its reason; nil for an unknown one.
func (k *KnownTroubles) Of(class, reason string) *Trouble {
	x := k.Classify(reason, "")
	if class == "" || x != nil && x.Class == class {
		return x
	}
	if i := slices.IndexFunc(k.Kind.Troubles, func(t Trouble) bool { return t.Class == class }); i >= 0 {
		return &k.Kind.Troubles[i]
	}
	return x
}

// Classify returns the first trouble that matches a reason and a message, nil for none.
func (k *KnownTroubles) Classify(reason, message string) *Trouble {
	for _, x := range k.byReason[reason] {
		if len(x.Message) == 0 || slices.ContainsFunc(x.Message, func(text string) bool { return strings.Contains(message, text) }) {
			return x
		}
	}
	return nil
}

// Metric is a figure of a step, a fold of one value or a ratio of two, by which arms can be compared.
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
	ValueCPU    = "cpuSeconds"  // CPU time of a process since its start, in seconds
	ValueMemory = "memoryBytes" // memory that several processes of a source share counts once where known
)

// SourceStep is the source of values once per step; FoldPerSecond divides them by ValueSeconds.
const SourceStep = "step"

// Values of SourceStep.
const (
	ValueAsked   = "asked"        // objects, or requests of a stream that were due in the hold
	ValueDone    = "done"         // objects that were there; of a stream, requests that were answered in the hold
	ValueRate    = "achievedRate" // of them, by the second
	ValueSeconds = "seconds"      // that the hold lasted
)

// MeasureRequestErrors names the engine's own measure: the percentage of latest requests that failed.
const MeasureRequestErrors = "apiErrors"

// RequestErrors returns that measure; bound is the percentage of its guard, 0 for none.
func RequestErrors(bound float64) Measure {
	return Measure{Name: MeasureRequestErrors, Help: "requests that failed for good, with 99.9% confidence", Percent: true, Bound: bound}
}

// AchievedRate returns the metric of work done per second, which every step has.
func AchievedRate(help string) Metric {
	return Metric{Name: "achieved rate", Unit: "/s", Help: help, LessIsWorse: true, Of: Fold{SourceStep, ValueRate, FoldLast}}
}

// UseOf returns the metrics of a source's use, which every process has; of names it in their help.
func UseOf(source, of string) []Metric {
	return []Metric{
		{Name: source + " CPU", Unit: "s", Help: "CPU time of " + of, Of: Fold{source, ValueCPU, FoldDifference}},
		{Name: source + " memory, most", Unit: "B", Help: "the most memory of " + of, Of: Fold{source, ValueMemory, FoldMost}},
		{Name: source + " memory, growth", Unit: "B", Help: "the most memory of " + of + " less that at the start", Of: Fold{source, ValueMemory, FoldGrowth}},
	}
}

// Everywhere reports whether steps have the metric whatever their target declares.
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
