package engine

import (
	"context"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
)

// Guard ends a step when a count or percentage of health is Bound above its value before any load.
type Guard struct {
	Name    string
	Bound   float64
	Percent bool // its measure is a percentage
}

// Options say how an Engine loads and waits. Its functions may be nil.
type Options struct {
	Pace        float64       // requests per second at most; 0 is as fast as the in-flight bound allows
	MaxInFlight int           // at least 1; the adaptive bound does not exceed it
	Timeout     time.Duration // objects are followed for so long after the last request
	Hold        time.Duration
	ShortHold   time.Duration // of steps that only propose
	Stall       time.Duration // time without any move, if the rest has no place, that ends a step; 0: ten seconds
	Guards      []Guard
	// Open makes levels arrivals per second by a schedule, from empty, for Warmup and the hold; Pace does
	// not count. The requests of a stream warm up for Warmup in either loop.
	Open   bool
	Warmup time.Duration
	Whole  bool                                       // each step begins from empty, whatever the design says
	Sample func()                                     // reads the used resources at the start and end of a step's load
	Held   func(context.Context)                      // called after the hold or the load without one; the step does not end before it returns
	Trips  func(context.Context) (record.Guard, bool) // a guard of its own, asked as often as guards are
	Watch  func(Status)                               // is called as a step proceeds
}

const stallAfter = 10 * time.Second // default of Options.Stall

// Stage names a stage of a step.
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

// Status says how far a step has come.
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
	Units    int // objects in place at the level, of all steps, once all are requested
	Unasked  int // of them, without an answer to their requests yet
	Progress system.Progress
	Left     time.Duration // until the end of the stage at most; 0 is unknown
}
