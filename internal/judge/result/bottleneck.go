package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// Concurrent counts the most objects between two milestones at once, beside the target's own limits.
type Concurrent struct {
	record.Concurrent
	Most     int    `json:"most"`
	PerPlace int    `json:"perPlace"` // of the place that had most
	Place    string `json:"place,omitempty"`
	LeftOut  int    `json:"leftOut"` // objects with a trouble between the milestones, whose time there is unknown
}

// Breach says which limit did not hold, "" for none.
func (a *Concurrent) Breach() string {
	switch {
	case a == nil:
	case a.Limit > 0 && a.Most > a.Limit:
		return fmt.Sprintf("%d objects were between %s and %s at once, more than the target's own limit of %d", a.Most, a.From, a.To, a.Limit)
	case a.PerPlaceLimit > 0 && a.PerPlace > a.PerPlaceLimit:
		return fmt.Sprintf("%d objects of %s were between %s and %s at once, more than the target's own limit of %d for one place", a.PerPlace, a.Place, a.From, a.To, a.PerPlaceLimit)
	}
	return ""
}

// OwnDelayBound bounds the delay that this program may cause itself, at p99: of a scheduled request, and
// of a timer's wake. Beyond it the step proves nothing about the target.
const OwnDelayBound = 10 * time.Millisecond

// OwnDelay says how long this program waited for a processor: it asks to be woken at known times.
type OwnDelay struct {
	Wakes int     `json:"wakes"`
	Late  int     `json:"late"` // by more than OwnDelayBound
	Max   float64 `json:"max"`  // seconds
}

// Short reports whether the program was late in over 1% of cases with a schedule, else in over 10%.
func (d *OwnDelay) Short(open bool) bool {
	tolerated := 0.10
	if open {
		tolerated = 0.01
	}
	return d != nil && d.Late >= leastLate && float64(d.Late) > tolerated*float64(d.Wakes)
}

const leastLate = 3 // least number of late wakes that is not chance: a short step has few

// Bound returns what limited the load, nil where nothing known did.
func (n *Bottleneck) Bound() *BoundShare {
	if n == nil {
		return nil
	}
	if i := slices.IndexFunc(n.Bounds, func(b BoundShare) bool { return b.Held }); i >= 0 {
		return &n.Bounds[i]
	}
	return nil
}

// LeastWaiting is the least average number that must wait for something, if known, for it to bind.
const LeastWaiting = 0.5

// Proof names the limit that held up the work of an owner of milestones in a step of so many seconds, by
// its own figures: it was in use while others waited. It returns "" without such a figure.
func (s *Step) Proof(owner string, seconds float64) string {
	for _, limit := range s.limits(seconds) {
		// An owner, such as scheduler, ends the name of its program.
		if owner != "" && (limit.By == owner || strings.HasSuffix(limit.By, "-"+strings.ReplaceAll(owner, " ", "-"))) {
			return limit.What
		}
	}
	return ""
}

// InUse names the limits that were in use while others waited, in a phrase each.
func (s *Step) InUse(seconds float64) (list []string) {
	for _, limit := range s.limits(seconds) {
		list = append(list, limit.What)
	}
	return list
}

func (s *Step) limits(seconds float64) (list []BoundShare) {
	if s.Bottleneck != nil {
		for _, b := range s.Bottleneck.Bounds {
			if b.Held && b.Waiting != nil {
				list = append(list, BoundShare{What: b.String(), By: b.By})
			}
		}
	}
	for _, d := range s.Durations {
		if d.Name != record.ClientWaits || d.Mean == nil {
			continue
		}
		if waited := *d.Mean * float64(d.N) / seconds; waited >= LeastWaiting {
			list = append(list, BoundShare{By: d.Source, What: fmt.Sprintf("the limit of requests of %s's client (%d requests waited %s for it on average, %.3g at once)", d.Source, d.N, DurationText(*d.Mean, 0), waited)})
		}
	}
	return list
}

// ClearTimes withdraws bounds by shares of time: they are waits for processors that others took.
func (n *Bottleneck) ClearTimes() {
	if n != nil {
		for i := range n.Bounds {
			n.Bounds[i].Held = n.Bounds[i].Held && n.Bounds[i].Waiting != nil
		}
	}
}

// Others is the name of all programs beside the run's among the shares.
const Others = "others"

func (b BoundShare) String() string {
	waited := ""
	if b.Waiting != nil {
		waited = fmt.Sprintf(", %.3g waited on average", *b.Waiting)
	}
	return fmt.Sprintf("%s (%.0f%% of it used%s)", b.What, 100*b.Share, waited)
}

// By returns the share of all CPUs that a source used, in percent; 0 is unknown.
func (n *Bottleneck) By(source string) float64 {
	if n != nil {
		for _, u := range n.CPUBy {
			if u.Source == source {
				return u.Percent
			}
		}
	}
	return 0
}

// Bottleneck says what a step's objects waited for, and what the CPUs did.
type Bottleneck struct {
	Waits    []Wait       `json:"waits"`          // ways between two milestones, the longest on average first
	CPUs     int          `json:"cpus,omitempty"` // of the control plane's machine, CPUBusy is their use in percent; 0 and null elsewhere
	CPUBusy  *float64     `json:"cpuBusy"`
	CPUPeak  float64      `json:"cpuPeak,omitempty"` // highest use over about five seconds, in percent; 0 for too short a step
	CPUBy    []CPUShare   `json:"cpuBy,omitempty"`   // of all CPUs by process, in percent, the largest first
	Bounds   []BoundShare `json:"bounds,omitempty"`  // what can limit the load: limits of objects at once by their use, then declared bounds
	Slowdown *Slowdown    `json:"slowdown,omitempty"`
}

// BoundShare says how far something that can limit the load was used up.
type BoundShare struct {
	Name string `json:"name"`
	What string `json:"what"`
	// Share is the average over the hold of a stream, and of other loads until the last object was there,
	// or while any waited; 1 is all of it. Held says that it was enough to bind.
	Share   float64  `json:"share"`
	Held    bool     `json:"held"`
	Waiting *float64 `json:"waiting,omitempty"` // how many waited for it, on average over the hold; null where that is unknown

	Generator bool   `json:"-"` // it is a limit of the generator
	Slow      bool   `json:"-"` // time was spent there, and nothing was used up
	By        string `json:"-"` // the owner of the milestones that wait for it, "" for none known
}

// Wait is the way from one milestone to the next.
type Wait struct {
	From  string  `json:"from"`
	To    string  `json:"to"`
	For   string  `json:"for"`   // who does the work
	Mean  float64 `json:"mean"`  // seconds; an object on the way counts with its wait so far
	P99   float64 `json:"p99"`   // likewise
	Share float64 `json:"share"` // of all waiting, in percent
}

// CPUShare is the use of CPUs by one process.
type CPUShare struct {
	Source  string  `json:"source"`
	Percent float64 `json:"percent"`
}

// The resources that programs beside the run can take.
const (
	Processors = "processors"
	Memory     = "memory"
	IO         = "IO"
)

// Neighbour is a resource of this machine of which other programs left too little.
type Neighbour struct {
	What   string  `json:"what"`         // Processors, Memory or IO
	Of     string  `json:"of,omitempty"` // part of the target that is kept to these CPUs, "" for the whole machine
	CPUs   int     `json:"cpus,omitempty"`
	Others float64 `json:"others"`           // percent of it that others used
	Wanted float64 `json:"wanted,omitempty"` // percentage of the processors that others used and the run used or waited for; it may exceed 100
	Waited float64 `json:"waited,omitempty"` // the time in which something waited for memory or IO, in percent
}

func (n Neighbour) String() string {
	if n.What != Processors {
		return fmt.Sprintf("other programs used %.0f%% of this machine's %s, and something waited for it in %.0f%% of the time", n.Others, n.What, n.Waited)
	}
	of := "this machine's processors"
	if n.Of != "" {
		of = "the processors of " + n.Of
	}
	return fmt.Sprintf("other programs used %.0f%% of %s (%d); all programs together wanted %.0f%%", n.Others, of, n.CPUs, n.Wanted)
}

// SortNeighbours orders resources by the part that others took, the largest first.
func SortNeighbours(list []Neighbour) {
	slices.SortFunc(list, func(a, b Neighbour) int {
		return cmp.Or(cmp.Compare(b.Others, a.Others), cmp.Compare(a.What, b.What), cmp.Compare(a.Of, b.Of))
	})
}
