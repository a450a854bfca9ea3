package result

import (
	"fmt"
	"math"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

// Backlog counts a hold's arrivals that should have been there and were not, failed ones aside.
type Backlog struct {
	Means   []float64 `json:"means"` // of equal batches of the hold
	Slope   Interval  `json:"slope"` // growth in arrivals per second; Rise is that over the hold, in percent of the arrivals
	Rise    float64   `json:"rise"`
	Balance *float64  `json:"balance"` // mean latency times achieved rate: the backlog where nothing grows (Little's law)
	// Tolerated is the growth per second in a step that holds: the resolution of the search or 1% of the
	// arrivals, whichever is less, and 3 over the hold at least.
	Tolerated float64 `json:"tolerated"`
	Growing   bool    `json:"growing,omitempty"` // it grew by more; Stalled: it rose once; Undecided: the hold was too short
	Stalled   bool    `json:"stalled,omitempty"`
	Undecided bool    `json:"undecided,omitempty"`
}

// BreachKind is the sort of trouble of a Breach.
type BreachKind string

// The kinds of breaches. The first ones are of bounds, and decide; the others are only seen on the way.
// Further ones are the classes of the troubles that the kind of object knows.
const (
	BreachLatency   BreachKind = "latency"   // a quantile was above its objective
	BreachMissing   BreachKind = "missing"   // objects were not ready, or not in time
	BreachErrors    BreachKind = "errors"    // requests failed
	BreachAchieved  BreachKind = "achieved"  // fewer became ready per second than were requested
	BreachNotSteady BreachKind = "notSteady" // the backlog grew throughout the hold
	BreachPlaces    BreachKind = "places"    // places failed, such as volumes
	BreachReplaced  BreachKind = "replaced"  // objects took the place of others
	BreachQuery     BreachKind = "query"     // a series of metrics was outside of its objective
	BreachGuard     BreachKind = "guard"     // a guard stopped the load

	BreachThrottling BreachKind = "throttling" // answers of 429
	BreachReadiness  BreachKind = "readiness"  // an object was there and fell
	BreachDeleted    BreachKind = "deleted"    // an object was deleted, and not by the run
	BreachWatch      BreachKind = "watch"      // news was cut off, and came late
	BreachPlace      BreachKind = "place"      // a place was taken, closed, or is not ready
	BreachStandstill BreachKind = "standstill" // no write was answered, and nothing moved
	BreachActor      BreachKind = "actor"      // an actor did nothing although objects waited
)

// Breach is something that broke, and when. With Decided it kept goals from holding, else it was seen.
type Breach struct {
	Time    string     `json:"time"`
	Step    int        `json:"step"`
	What    string     `json:"what"`
	Value   *float64   `json:"value"`
	Bound   *float64   `json:"bound"`
	Kind    BreachKind `json:"kind"`
	Decided bool       `json:"decided"` // Goals did not hold because of it
	Goals   []string   `json:"goals,omitempty"`
	// First marks, in the list of the run, what broke first in the step that decided it.
	First   bool         `json:"first"`
	Usual   bool         `json:"usual"` // the first step, which held, saw it about as often per requested object
	Count   int          `json:"count"` // number of its objects, requests or events in the step; Object is the first, Message its text
	Object  string       `json:"object,omitempty"`
	Message string       `json:"message,omitempty"`
	Load    StepProgress `json:"load"`

	At record.Micros `json:"-"` // the same moment on the run's clock
}

// StepProgress says how far a step had come at a moment.
type StepProgress struct {
	Asked    int     `json:"asked"`             // requested objects in place
	There    int     `json:"there"`             // of them, ready
	Unplaced int     `json:"unplaced"`          // without a place; 0 where objects are given none
	Level    float64 `json:"level"`             // of the requested objects; on an axis of arrivals per second, of the step
	Backlog  int     `json:"backlog,omitempty"` // requests of a stream that were due and not done
}

// Pending counts the requested objects that were not there.
func (l StepProgress) Pending() int { return max(l.Asked-l.There, 0) }

// Conditions describe a step when something broke, beside the figures of the first step.
type Conditions struct {
	Time       string   `json:"time"`
	NormalStep int      `json:"normalStep"` // 0 where the first step did not hold, or is this one
	Figures    []Figure `json:"figures"`
}

// Figure is one of the conditions.
type Figure struct {
	Name   string   `json:"name"`
	Unit   string   `json:"unit"` // s, %, or "" for a count
	Value  *float64 `json:"value"`
	Normal *float64 `json:"normal"` // figure of the first step; Ratio is the value by it; null is unknown
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
	FigureCPU      = signature.FigureCPU // and the name of a process
)

// BrokeFirst names what broke first in the step that decided a goal: its lowest failing level.
type BrokeFirst struct {
	Goal   string  `json:"goal"`
	Step   int     `json:"step"`
	Level  float64 `json:"level"` // that the step reached
	Breach Breach  `json:"breach"`

	Says       string      `json:"says"` // the conclusion, "" where no limit was sought
	Conditions *Conditions `json:"conditions"`
}

// Slowdown says from where on a milestone was reached less often, as if something held up the rest.
type Slowdown struct {
	Milestone string  `json:"milestone"`
	For       string  `json:"for"`    // who does the work
	After     int     `json:"after"`  // about so many of Of had reached it, to a fortieth of Of
	Of        int     `json:"of"`     // all
	Before    float64 `json:"before"` // per second, up to there
	Then      float64 `json:"then"`   // per second, after it
}

func (s *Slowdown) String() string {
	return fmt.Sprintf("after about %d of %d, the %s let fewer reach %s: %s a second instead of %s", s.After, s.Of, s.For, s.Milestone, rateText(s.Then), rateText(s.Before))
}

func rateText(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", math.Round(x))
	}
	return number.Text(x, 3)
}

// Diagnosis is a signature of a known failure that steps have shown.
type Diagnosis struct {
	Signature   string  `json:"signature"`
	Title       string  `json:"title"`
	Evidence    string  `json:"evidence"`
	Explanation string  `json:"explanation"`
	Remedy      string  `json:"remedy"`
	Source      string  `json:"source,omitempty"`
	Count       int     `json:"count"` // number of matches over all steps; First is the first one's time in Step, a failed one if any
	First       string  `json:"first"`
	Step        int     `json:"step"`
	Steps       []int   `json:"steps"`   // all that have shown it
	Failing     bool    `json:"failing"` // a step in which a goal did not hold has shown it
	Matches     []Match `json:"samples"`
}

// Match is one match of a signature.
type Match struct {
	Time   string `json:"time"`
	Object string `json:"object,omitempty"`
	Text   string `json:"text"`
}

// LogTail is the end of the log of a failing object's container, secrets masked.
type LogTail struct {
	Object    string   `json:"object"`
	Container string   `json:"container,omitempty"`
	Reason    string   `json:"reason,omitempty"` // that the object was not ready
	Previous  bool     `json:"previous,omitempty"`
	Lines     []string `json:"lines"`
	Masked    int      `json:"masked,omitempty"` // lines in which something was masked
	Error     string   `json:"error,omitempty"`  // why there are none
}
