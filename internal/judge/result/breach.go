package result

import (
	"fmt"
	"math"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// Backlog is how many arrivals of a step that follows a schedule should have been there and were not,
// unsent ones included, over its hold. Those that failed or were dropped are not waited for any more.
type Backlog struct {
	// Means are those of equal batches of the hold.
	Means []float64 `json:"means"`
	// Slope is by how many arrivals it grew a second, by the batches, and Rise
	// what that makes of the hold's arrivals over all of it, in percent.
	Slope Interval `json:"slope"`
	Rise  float64  `json:"rise"`
	// Balance is the mean latency times the achieved rate: what the backlog is
	// on average where nothing grows (Little's law). Null where it is unknown.
	Balance *float64 `json:"balance"`
	// Tolerated is by how many a second it may grow in a step that holds: the resolution of the search or
	// 1 % of the arrivals, whichever is less, and 3 over the hold at least.
	Tolerated float64 `json:"tolerated"`
	// Growing says that it grew by more throughout the hold, Stalled that it rose once instead, and
	// Undecided that the hold was too short to tell whether it grew by more.
	Growing   bool `json:"growing,omitempty"`
	Stalled   bool `json:"stalled,omitempty"`
	Undecided bool `json:"undecided,omitempty"`
}

// BreachKind is the sort of trouble that a Breach is.
type BreachKind string

// The kinds of breaches. The first ones are of bounds, and decide; the others
// are seen on the way, and decide nothing by themselves. Further ones are the
// classes of the troubles that the kind of object knows.
const (
	BreachLatency   BreachKind = "latency"   // a quantile was above its objective
	BreachMissing   BreachKind = "missing"   // objects were not ready, or not in time
	BreachErrors    BreachKind = "errors"    // requests failed
	BreachAchieved  BreachKind = "achieved"  // fewer became ready a second than was asked for
	BreachNotSteady BreachKind = "notSteady" // the backlog grew throughout the hold
	BreachPlaces    BreachKind = "places"    // places failed, such as volumes
	BreachReplaced  BreachKind = "replaced"  // objects took the place of others
	BreachQuery     BreachKind = "query"     // a series of metrics was not as it should be
	BreachGuard     BreachKind = "guard"     // a guard stopped the load

	BreachThrottling BreachKind = "throttling" // answers of 429
	BreachReadiness  BreachKind = "readiness"  // an object that was there is there no more
	BreachDeleted    BreachKind = "deleted"    // an object was deleted, and not by the run
	BreachWatch      BreachKind = "watch"      // news was cut off: what came meanwhile is known late
	BreachPlace      BreachKind = "place"      // a place was taken, closed, or is not ready
	BreachStandstill BreachKind = "standstill" // no write was answered, and nothing moved
	BreachActor      BreachKind = "actor"      // whoever objects waited for did nothing
)

// Breach is something that broke, at the moment at which it did. Where Decided is set it is a bound of an
// objective, or a guard, and is why goals did not hold; else it was only seen on the way.
type Breach struct {
	Time  string     `json:"time"`
	Step  int        `json:"step"`
	What  string     `json:"what"`
	Value *float64   `json:"value"`
	Bound *float64   `json:"bound"`
	Kind  BreachKind `json:"kind"`
	// Decided says that Goals did not hold for it.
	Decided bool     `json:"decided"`
	Goals   []string `json:"goals,omitempty"`
	// First marks, in the list of the run, what broke first in the step that decided it.
	First bool `json:"first"`
	// Usual says that the first step, which held, saw it about as often for
	// each object that it asked for: it belongs to what is normal.
	Usual bool `json:"usual"`
	// Count is how many objects, requests or events it is of, all through the
	// step; Object is the first of them, and Message what was said of it.
	Count   int          `json:"count"`
	Object  string       `json:"object,omitempty"`
	Message string       `json:"message,omitempty"`
	Load    StepProgress `json:"load"`

	At record.Micros `json:"-"` // the same moment on the run's clock
}

// StepProgress is how far a step had come at a moment.
type StepProgress struct {
	Asked int `json:"asked"` // objects asked for and in place
	There int `json:"there"` // of them, those that are ready
	// Unplaced had no place. It is 0 where objects are given none.
	Unplaced int `json:"unplaced"`
	// Level is the level that the objects asked for come to; on an axis of
	// arrivals per second it is that of the step.
	Level float64 `json:"level"`
	// Backlog is how many requests of a stream were due and not done.
	Backlog int `json:"backlog,omitempty"`
}

// Pending is how many objects were asked for and not there.
func (l StepProgress) Pending() int { return max(l.Asked-l.There, 0) }

// Conditions are what went on in a step about the moment at which something broke, and beside it what was
// normal: the same of the first step, from its first request until its objects were there.
type Conditions struct {
	Time string `json:"time"`
	// NormalStep is the step that tells what is normal, 0 where none does: the
	// first one did not hold, or is this one.
	NormalStep int      `json:"normalStep"`
	Figures    []Figure `json:"figures"`
}

// Figure is one of the conditions.
type Figure struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit"` // s, %, or "" for a count
	Value *float64 `json:"value"`
	// Normal is the figure of the first step, Ratio how many times it the
	// value is; null where either is unknown, or nothing is normal.
	Normal *float64 `json:"normal"`
	Ratio  *float64 `json:"ratio"`
}

// Names of conditions, which signatures can be about too.
const (
	FigureInFlight = signature.FigureInFlight
	FigureRequest  = signature.FigureRequest
	FigureAPI      = signature.FigureAPI
	FigureWatchLag = signature.FigureWatchLag
	FigurePending  = signature.FigurePending
	FigureBacklog  = "requests behind" // of a stream: due and not done
	FigureUnplaced = signature.FigureUnplaced
	FigureMachine  = signature.FigureMachine
	FigureCPU      = signature.FigureCPU // begins the name of a process's
)

// BrokeFirst is what broke first in the step that decided a goal: its lowest failing level.
type BrokeFirst struct {
	Goal   string  `json:"goal"`
	Step   int     `json:"step"`
	Level  float64 `json:"level"` // that the step reached
	Breach Breach  `json:"breach"`
	// Says is what follows from it, "" where no limit was looked for.
	Says       string      `json:"says"`
	Conditions *Conditions `json:"conditions"`
}

// Slowdown is where in a step a milestone was reached less often from then on:
// something that lets so many pass and holds up those that follow.
type Slowdown struct {
	Milestone string `json:"milestone"`
	For       string `json:"for"` // whose work it is
	// After is about how many of Of had reached it, to a fortieth of Of.
	After int `json:"after"`
	Of    int `json:"of"`
	// Before and Then are how many reached it a second, up to there and after it.
	Before float64 `json:"before"`
	Then   float64 `json:"then"`
}

// String says it in a phrase.
func (s *Slowdown) String() string {
	return fmt.Sprintf("after about %d of %d, the %s let fewer reach %s: %s a second instead of %s", s.After, s.Of, s.For, s.Milestone, rateText(s.Then), rateText(s.Before))
}

func rateText(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", math.Round(x))
	}
	return fmt.Sprintf("%.3g", x)
}
