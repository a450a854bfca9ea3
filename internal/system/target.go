package system

import (
	"context"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// Target takes the load, and sends all that it sees to its sink. One Engine calls one method at a time,
// save for Progress and Health, at any time, and for Batch.Send, from many goroutines.
type Target interface {
	// Describe tells what is loaded, before any load.
	Describe(ctx context.Context) (record.Environment, error)
	// Raise prepares for a level and tells what must be requested: on a closed axis the difference, on an
	// open one what arrives within the span. Its objects then age and go, until it is Reset.
	Raise(ctx context.Context, level Level) (Batch, error)
	// Progress sums up the objects asked for so far.
	Progress() Progress
	// Settle returns once all that was published until now was seen, or says that this is unknown.
	Settle(ctx context.Context) error
	// Account puts on record why objects were not ready, and returns how the level is spread now.
	Account(ctx context.Context) (Spread, error)
	// Reset removes all objects and returns once it has seen the news of their end.
	Reset(ctx context.Context) error
	// Health tells the measures that guards watch, by name; see Guard. The map is the caller's.
	Health(ctx context.Context) (map[string]float64, error)
}

// Level is a value on the axis.
type Level struct {
	Value float64
	Span  time.Duration // for which requests arrive at Value per second; 0 where Value is in place
	Arm   string        // of the target's loads; it changes only when the target is empty
}

// Batch says what must be requested to reach a level.
type Batch struct {
	Requests int     // how many requests
	Units    int     // how many objects with milestones they ask for
	Reached  float64 // the level that they reach, at most the one asked for
	Spread   Spread
	// Stream, if not nil, makes the load by the schedule and puts windows on record; Requests, Units and Send
	// then do not count. The end of ctx ends the sending; what is under way then is awaited for its bound.
	Stream func(ctx context.Context, s streams.Schedule) error
	Lead   time.Duration // from the call of Stream to the schedule's begin
	// Due, if not nil, says whether request i of a closed loop may be made now: those before it were.
	Due func(i int) bool
	// More, if not nil, is asked for further requests once all so far were answered, until there are
	// none, and for objects beyond Units that they ask for. It may wait for what they need.
	More func(ctx context.Context) (requests, units int, err error)
	// AtOnce says that all requests that Due lets go together are meant for one moment, their time zero.
	AtOnce bool
	// Send makes request i and returns its outcome, without times. The end of ctx ends its retries, not
	// the attempt under way, without whose answer the outcome is unknown.
	Send func(ctx context.Context, i int) record.Slot
}

// Streams reports whether Stream makes the load. It may be called while More raises the number of requests.
func (b *Batch) Streams() bool { return b.Stream != nil }

// Spread says what a level is an average over.
type Spread struct {
	Places      int // nodes; 0 when the axis has none
	Others      int // objects on them that are not ours
	Least, Most float64
}

// Progress sums up the objects asked for since the target was last empty.
type Progress struct {
	There         int    // at the milestone that counts as there
	Arrived       int    // that ever were there, be they removed since
	Failed        int    // will never be ready
	Final         int    // of them, those in whose place nobody makes another
	Sent          int    // of a stream: requests sent
	InFlight      int    // of a stream: requests under way
	Late, Dropped int    // of a stream: that found no place among those, and given up of them
	Unschedulable int    // there is no place for them now
	Left          int    // counts the run's things that Close removes one by one; 0 where they go with the system
	Silent        string // names who is awaited no more; OutOfReach says that the system answers nothing
	OutOfReach    bool
	Moved         record.Micros // when any object last did
}

// OfStream returns the progress of a target whose objects are the requests of a stream.
func OfStream(p streams.Progress) Progress {
	return Progress{
		There: p.Done, Arrived: p.Done, Failed: p.Failed, Sent: p.Sent, InFlight: p.InFlight, Late: p.Late, Dropped: p.Dropped, Moved: p.Moved,
	}
}

// MeasureLatency measures the target's own request latency in seconds.
const MeasureLatency = "apiLatency"
