package record

import (
	"fmt"
	"slices"
	"strings"
)

// ObjectKind describes the objects that a target is asked for. It is data, put on record with the
// environment, so that a record is judged and shown without its target.
type ObjectKind struct {
	Object Noun `json:"object"` // pod, volume, machine
	// Place is where objects are: node, brick. It is zero where a level is no average over places.
	Place Noun `json:"place,omitzero"`
	// Milestones are in the order in which objects reach them.
	Milestones []Milestone `json:"milestones"`
	// Created, Placed, Started, There and Gone name milestones by the part that they play: an object
	// exists, has its place, has begun to cost, counts as there, is removed. Only There is never "".
	Created string `json:"created,omitempty"`
	Placed  string `json:"placed,omitempty"`
	Started string `json:"started,omitempty"`
	There   string `json:"there"`
	Gone    string `json:"gone,omitempty"`
	// Unplaced is the reason of an object for which there is no place now, and
	// Removing that of one that is being removed.
	Unplaced string    `json:"unplaced,omitempty"`
	Removing string    `json:"removing,omitempty"`
	Measures []Measure `json:"measures,omitempty"`
	Metrics  []Metric  `json:"metrics,omitempty"`
	Troubles []Trouble `json:"troubles,omitempty"`
	// FreshPerStep says that each step has a system of its own, so that none shows what an earlier one left.
	FreshPerStep bool `json:"freshPerStep,omitempty"`
	// Charts are figures among the samples that a report draws over time.
	Charts []Chart `json:"charts,omitempty"`
	// Bounds are what can keep a load from going faster, the one first that is to
	// be named where several hold.
	Bounds []Bound `json:"bounds,omitempty"`
	// Concurrent, if not nil, says between which milestones objects are counted.
	Concurrent *Concurrent `json:"concurrent,omitempty"`
	// GroupBy, if not nil, says by which labels the times of objects are grouped.
	GroupBy *GroupBy `json:"groupBy,omitempty"`
	// Generator is the program that makes the load, "" for this one.
	Generator string `json:"generator,omitempty"`
}

// Concurrent says between which milestones objects are counted, and how many may be there at once: in all
// and of one place. 0 is no limit, or one that is not known.
type Concurrent struct {
	From          string `json:"from"`
	To            string `json:"to"`
	Limit         int    `json:"limit,omitempty"`
	PerPlaceLimit int    `json:"perPlaceLimit,omitempty"`
	// Setting and PerPlaceSetting are what the limits are called, "" for no name.
	Setting         string `json:"setting,omitempty"`
	PerPlaceSetting string `json:"perPlaceSetting,omitempty"`
}

// GroupBy says by which labels times are grouped. Besides those of the milestones
// it is the time from one to another; from time zero where From is "".
type GroupBy struct {
	Labels []string `json:"labels"`
	From   string   `json:"from,omitempty"`
	To     string   `json:"to"`
	// Places are the labels' values of each place, in their order, "" for none:
	// they hold for what is there and has not the label itself.
	Places map[string][]string `json:"places,omitempty"`
}

// Bound is something that can keep a load from going faster, and how it is seen in samples: it held where
// a value was, on average over a stream's hold, or until the last object of another load was there, at
// least the share Full of its limit.
type Bound struct {
	Name   string  `json:"name" yaml:"name"`
	What   string  `json:"what" yaml:"what"` // in words
	Source string  `json:"source" yaml:"source"`
	Value  string  `json:"value" yaml:"value"`
	Limit  string  `json:"limit,omitempty" yaml:"limit"` // the value that is its limit; "" is 1
	Full   float64 `json:"full" yaml:"full"`
	// Waiting is the value that is how many wait for it, "" where that is not
	// known: without anybody it did not hold.
	Waiting string `json:"waiting,omitempty" yaml:"waiting"`
	// By is whose milestones wait for it, as their owner is called; "" says that of none.
	By string `json:"by,omitempty" yaml:"by"`
	// Slow says that it is where time went, and not something that was used up.
	Slow bool `json:"slow,omitempty" yaml:"slow"`
	// Generator says that it is what makes the load that was short: the rate
	// that was reached is then the least that the target can do.
	Generator bool `json:"generator,omitempty" yaml:"generator"`
}

// Chart is some figures of one source that belong on one chart over time.
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

// Noun is what a thing is called.
type Noun struct {
	One  string `json:"one"`
	Many string `json:"many"`
}

// Of is the noun for a number of things.
func (n Noun) Of(count int) string {
	if count == 1 {
		return n.One
	}
	return n.Many
}

// Count is a number of things, with their noun.
func (n Noun) Count(count int) string { return fmt.Sprintf("%d %s", count, n.Of(count)) }

// Milestone is a point that an object reaches.
type Milestone struct {
	Name string `json:"name"`
	// Owner is whose work it is that an object reaches it: what is named where the wait for it binds.
	Owner string `json:"owner"`
}

// Measure is a figure of a target's health that a guard can watch.
type Measure struct {
	Name string `json:"name"`
	Help string `json:"help"`
	// Percent says that it is a percentage; else it is a count.
	Percent bool `json:"percent,omitempty"`
	// Bound is the guard's on a target that is not ours, 0 for none.
	Bound float64 `json:"bound,omitempty"`
}

// Trouble is a class of what goes wrong with objects, by the reasons that they
// and the target's events give. The first one of a list that holds counts.
type Trouble struct {
	Class string `json:"class"`
	// What says it in words.
	What    string   `json:"what"`
	Reasons []string `json:"reasons"`
	// Message, if not empty, lists texts of which the message has at least one.
	Message []string `json:"message,omitempty"`
}

// Names are the milestones' names in their order.
func (k ObjectKind) Names() []string {
	names := make([]string, len(k.Milestones))
	for i, m := range k.Milestones {
		names[i] = m.Name
	}
	return names
}

// Owner is whose work it is that an object reaches a milestone, "" for one that the kind does not have.
func (k ObjectKind) Owner(milestone string) string {
	i := slices.IndexFunc(k.Milestones, func(m Milestone) bool { return m.Name == milestone })
	if i < 0 {
		return ""
	}
	return k.Milestones[i].Owner
}

// KnownTroubles are those that a kind of object knows, found by what tells of them:
// a class, or a reason with its message.
type KnownTroubles struct {
	Kind     *ObjectKind
	byReason map[string][]*Trouble
}

// NewKnownTroubles are those of a kind.
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

// Of is what an object tells of by the class of its trouble, or without one by its
// reason; nil for nothing that is known.
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

// Classify is what a reason tells of, nil for nothing that is known: the first trouble that holds.
func (k *KnownTroubles) Classify(reason, message string) *Trouble {
	for _, x := range k.byReason[reason] {
		if len(x.Message) == 0 || slices.ContainsFunc(x.Message, func(text string) bool { return strings.Contains(message, text) }) {
			return x
		}
	}
	return nil
}
