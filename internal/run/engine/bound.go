package engine

import (
	"math"
	"slices"
	"time"
)

// inFlightBound bounds requests in flight, so that the server is busy without a queue of ours, whose wait
// would look like the system's latency. It follows TCP Vegas (Brakmo and Peterson, 1995): the excess of
// service times over those of requests sent one at a time, times the requests in flight, is the queue.
// The bound grows while less than queueLow requests wait and shrinks while more than queueHigh do. As in
// BBR (Cardwell and others, 2016), the queue runs empty now and then to measure again: a server with more
// objects is slower without any queue.
type inFlightBound struct {
	max    int
	limit  float64
	base   time.Duration // service time without a queue; 0 while it is measured
	resume float64       // the limit once base is measured
	skip   int           // replies to requests sent before the queue ran empty
	round  []time.Duration
	age    int // rounds since base was measured
}

const (
	queueLow, queueHigh = 2, 4
	minRound            = 8   // replies of a round: fewer show chance
	remeasure           = 100 // rounds until base is measured again
)

// newInFlightBound begins with one request, or with open, for a load at once, at the maximum.
func newInFlightBound(max int, open bool) *inFlightBound {
	if open {
		return &inFlightBound{max: max, limit: float64(max), resume: float64(max)}
	}
	return &inFlightBound{max: max, limit: 1, resume: 2}
}

// Limit returns how many requests may be in flight now, at least 1.
func (b *inFlightBound) Limit() int { return int(b.limit) }

// Replied takes in the service time of one request, and whether the server asked for less load.
func (b *inFlightBound) Replied(service time.Duration, throttled bool) {
	if throttled {
		b.limit = math.Max(1, b.limit/2)
		b.resume = math.Max(1, b.resume/2)
		b.round = b.round[:0]
		return
	}
	if b.skip > 0 {
		b.skip--
		return
	}
	b.round = append(b.round, service)
	if len(b.round) < max(minRound, b.Limit()) {
		return
	}
	slices.Sort(b.round)
	median := max(b.round[len(b.round)/2], 1)
	b.round = b.round[:0]
	if b.base == 0 {
		b.base, b.age = median, 0
		b.limit = math.Min(b.resume, float64(b.max))
		return
	}
	if b.age++; b.age >= remeasure {
		b.skip, b.resume, b.limit, b.base = b.Limit()-1, b.limit, 1, 0
		return
	}
	queue := b.limit * (1 - float64(b.base)/float64(median))
	switch {
	case queue < queueLow:
		b.limit = math.Min(float64(b.max), b.limit+1)
	case queue > queueHigh:
		b.limit-- // stays above 1, as it exceeds the queue
	}
}
