package record

import (
	"fmt"
	"slices"
	"strings"
)

// ObjectKind describes the objects that a target makes. It is data, put on record with the environment,
// so that a record is judged and shown without its target.
type ObjectKind struct {
	Object     Noun        `json:"object"`         // pod, volume, machine
	Place      Noun        `json:"place,omitzero"` // node, brick; zero where a level is not an average over places
	Milestones []Milestone `json:"milestones"`     // in the order in which objects reach them
	// Created, Placed, Started, There and Gone name milestones by their part: an object exists, has its
	// place, begins to cost, counts as there, is removed. Only There is never "".
	Created string `json:"created,omitempty"`
	Placed  string `json:"placed,omitempty"`
	Started string `json:"started,omitempty"`
	There   string `json:"there"`
	Gone    string `json:"gone,omitempty"`
	// Unplaced is the reason of an object for which there is no place now, Removing that of one that is
	// being removed.
	Unplaced string    `json:"unplaced,omitempty"`
	Removing string    `json:"removing,omitempty"`
	Measures []Measure `json:"measures,omitempty"`
	Metrics  []Metric  `json:"metrics,omitempty"`
	Troubles []Trouble `json:"troubles,omitempty"`
	// FreshPerStep says that each step has a system of its own, without traces of an earlier one.
	FreshPerStep bool        `json:"freshPerStep,omitempty"`
	Charts       []Chart     `json:"charts,omitempty"`     // figures among the samples that a report draws over time
	Bounds       []Bound     `json:"bounds,omitempty"`     // what can limit a load, the first one to name first
	Concurrent   *Concurrent `json:"concurrent,omitempty"` // counts objects between two milestones, nil for no count
	GroupBy      *GroupBy    `json:"groupBy,omitempty"`    // groups the times of objects by labels, nil for no groups
	Generator    string      `json:"generator,omitempty"`  // the program that makes the load, "" for this one
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

// GroupBy says by which labels times are grouped: those of the milestones, and the time from one to
// another; from time zero where From is "".
type GroupBy struct {
	Labels []string `json:"labels"`
	From   string   `json:"from,omitempty"`
	To     string   `json:"to"`
	// Places holds the labels' values of each place, in their order, "" for none: they hold for objects
	// there without the label.
	Places map[string][]string `json:"places,omitempty"`
}

// Bound is something that can limit a load, and how samples show it. It held where a value was at least
// the share Full of its limit: on average over a stream's hold, or until the last object of another load
// was there.
type Bound struct {
	Name   string  `json:"name" yaml:"name"`
	What   string  `json:"what" yaml:"what"` // in words
	Source string  `json:"source" yaml:"source"`
	Value  string  `json:"value" yaml:"value"`
	Limit  string  `json:"limit,omitempty" yaml:"limit"` // the value with its limit; "" is 1
	Full   float64 `json:"full" yaml:"full"`
	// Waiting names the value that counts the waiting ones, "" where that is unknown: without any it did
	// not hold.
	Waiting string `json:"waiting,omitempty" yaml:"waiting"`
	// By is the owner of the milestones that wait for it, "" for none.
	By string `json:"by,omitempty" yaml:"by"`
	// Slow says that time was spent there, and nothing was used up.
	Slow bool `json:"slow,omitempty" yaml:"slow"`
	// Generator says that the generator was short: the measured rate is then the least that the target
	// can do.
	Generator bool `json:"generator,omitempty" yaml:"generator"`
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
}

// Measure is a figure of a target's health that a guard can watch.
type Measure struct {
	Name    string  `json:"name"`
	Help    string  `json:"help"`
	Percent bool    `json:"percent,omitempty"` // a percentage, else a count
	Bound   float64 `json:"bound,omitempty"`   // of the guard on a target that is not ours, 0 for none
}

// Trouble is a class of problems of objects, by the reasons that they and the target's events give. The
// first one of a list that holds counts.
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
