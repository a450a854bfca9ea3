package system

import (
	"context"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
)

// Target is what is loaded. All that it sees of its objects goes to the sink
// that it was made with. A Target is used by one Engine, which calls one
// method at a time, save for Progress and Health, which may be called at any
// time, and for Batch.Send, which is called from many goroutines.
type Target interface {
	// Describe tells what is loaded, before any load.
	Describe(ctx context.Context) (record.Environment, error)
	// Raise prepares for a level and tells what must be requested. On a closed
	// axis that is the difference to what is in place. On an open one it is
	// what arrives within the span; the target then removes its objects as
	// they age, so that what is in place stays level, until it is Reset.
	Raise(ctx context.Context, level Level) (Batch, error)
	// Progress sums up the objects asked for so far.
	Progress() Progress
	// Settle returns once all that the target has published until now was
	// seen, or says that this is unknown.
	Settle(ctx context.Context) error
	// Account puts on record why objects were not ready, and
	// returns how the level is spread now.
	Account(ctx context.Context) (Spread, error)
	// Reset removes all objects and returns once the news of their end was
	// seen.
	Reset(ctx context.Context) error
	// Health tells the measures that guards watch, by name; see Guard. The map
	// is the caller's.
	Health(ctx context.Context) (map[string]float64, error)
}

// Level is a value on the axis.
type Level struct {
	Value float64
	// Span is for how long requests arrive at Value per second; 0 on an axis
	// whose value is what is in place.
	Span time.Duration
	// Arm is which of the target's loads is meant, where it has several; it
	// changes only when the target is empty.
	Arm string
}

// Batch is what must be requested to reach a level.
type Batch struct {
	Requests int     // how many requests
	Units    int     // how many objects with milestones they ask for
	Reached  float64 // the level that they reach, at most the one asked for
	Spread   Spread
	// Stream, if not nil, makes the load of an axis whose requests are too many
	// to be records: it sends by the schedule, puts windows on record, and
	// returns once all of them are there. Requests, Units and Send are then of
	// no account. The end of ctx ends the sending; what is under way then is
	// waited for no longer than its bound.
	Stream func(ctx context.Context, s Schedule) error
	// Due, if not nil, says whether request i may be made now: the requests
	// before it were. It is for closed loops.
	Due func(i int) bool
	// More, if not nil, is asked for further requests once all so far were made and
	// answered, until there are none: those of what is known only then, and objects
	// beyond Units that they ask for. It may wait for what they need.
	More func(ctx context.Context) (requests, units int, err error)
	// AtOnce says that all requests are meant for one moment, the time zero of what
	// they ask for: those that Due lets go together for the moment at which it did.
	AtOnce bool
	// Send makes request i, 0 <= i < Requests, and returns when its outcome
	// is known. It fills in everything of the slot but the times. The end of
	// ctx ends its retries, not the attempt under way: an answer is worth
	// waiting for, since without it the slot's outcome is unknown.
	Send func(ctx context.Context, i int) record.Slot
}

// Streams reports whether Stream makes the load.
func (b Batch) Streams() bool { return b.Stream != nil }

// UnfinishedError is that of a stream whose load was made whole, and did not show
// what it was to show.
type UnfinishedError struct{ What string }

// Error implements error.
func (e *UnfinishedError) Error() string { return e.What }

// Spread says what a level is an average over.
type Spread struct {
	Places      int // nodes; 0 when the axis has none
	Others      int // objects on them that are not ours
	Least, Most float64
}

// Progress sums up the objects asked for since the target was last empty.
type Progress struct {
	There         int // at the milestone that counts as there
	Arrived       int // that ever were there, be they removed since
	Failed        int // will never be ready
	Final         int // of them, those in whose place nobody makes another
	Sent          int // of a stream: requests sent
	InFlight      int // of a stream: requests under way
	Late, Dropped int // of a stream: that found no place among those, and given up of them
	Unschedulable int // there is no place for them now
	// Left is how many things of the run's are in the target, of any kind, that
	// Close is to remove one by one; 0 where they go with the system itself.
	Left int
	// Silent says who has done nothing for so long although objects wait for it
	// that they are waited for no more, "" where nobody has.
	Silent string
	// OutOfReach says that this is the system itself: it answers nothing.
	OutOfReach bool
	// Moved is when any object last moved.
	Moved record.Micros
}

// MeasureLatency is the measure of the target's own request latency in
// seconds.
const MeasureLatency = "apiLatency"
