package engine

import (
	"context"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// Guard ends a step when a measure of the target's health has risen by Bound
// above what it was before any load: to protect the target, or to stop a load
// that has lost its sense. Measures are counts and percentages; more is worse.
type Guard struct {
	Name    string
	Bound   float64
	Percent bool // its measure is a percentage
}

// Options are how an Engine loads and waits.
type Options struct {
	// Pace bounds requests per second; 0 is as fast as the in-flight bound allows.
	Pace float64
	// MaxInFlight bounds requests under way, at least 1; the adaptive bound does not exceed it.
	MaxInFlight int
	// Timeout is how long objects are followed after the last request.
	Timeout time.Duration
	Hold    time.Duration
	// ShortHold is the hold of steps that only propose.
	ShortHold time.Duration
	// Stall is how long nothing must have moved, while all that remain have no
	// place, for a step to end before its timeout; 0 is ten seconds.
	Stall  time.Duration
	Guards []Guard
	// Open makes levels arrivals per second, by a schedule. Each step then
	// begins from empty and arrives for Warmup and the hold; Pace is of no
	// account. The requests of a stream warm up for Warmup in either loop.
	Open   bool
	Warmup time.Duration
	// Whole lets each step begin from empty, whatever the design thinks.
	Whole bool
	// Sample is called at the start and end of a step's load, to read the
	// resources that it uses. It may be nil.
	Sample func()
	// Held is called once the hold of a step is over, or its load without a hold;
	// the step does not end before it returns. It may be nil.
	Held func(context.Context)
	// Trips says whether a guard of its own ends the step under way; it is asked as
	// often as guards are. It may be nil.
	Trips func(context.Context) (record.Guard, bool)
	// Watch is called as a step proceeds. It may be nil.
	Watch func(Status)
}

// stallAfter is Options.Stall where nothing is said.
const stallAfter = 10 * time.Second

// Stage is what a step is doing.
type Stage string

// The stages of a step.
const (
	StageEmptying Stage = "emptying"
	StageRaising  Stage = "raising"
	StageWaiting  Stage = "waiting"
	StageHolding  Stage = "holding"
	StageWarming  Stage = "warming up" // open loop: arrivals that are not judged
	StageArriving Stage = "arriving"   // open loop: the hold
)

// Status is how far a step has come.
type Status struct {
	Step  int
	Stage Stage
	record.StepPlan
	Requests int // of this step
	Sent     int
	Replied  int
	InFlight int
	Bound    int // of requests in flight
	Late     int // open loop: arrivals that found no place
	Dropped  int // open loop: arrivals that were given up
	Units    int // objects in place at the level, of all steps, once all are asked for
	Unasked  int // of them, those whose requests were not answered yet
	Progress system.Progress
	// Left is how long the present stage can still last; 0 is unknown.
	Left time.Duration
}
