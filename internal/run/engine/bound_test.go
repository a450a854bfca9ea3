package engine

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// Whatever the server answers, the bound stays within its range, moves by one
// at most, but for the jumps to and from a measurement of the base, and halves
// when the server asks for less.
func TestBoundKeepsItsRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		most := 1 + rng.IntN(40)
		b := newInFlightBound(most, false)
		scale := time.Duration(1+rng.IntN(50)) * time.Millisecond
		throttles := rng.Float64() * rng.Float64() * 0.2
		for range 5000 {
			before := b.Limit()
			throttled := rng.Float64() < throttles
			b.Replied(time.Duration(rng.Float64()*float64(scale)), throttled)
			after := b.Limit()
			switch {
			case after < 1 || after > most:
				t.Fatalf("the bound is %d, of at most %d", after, most)
			case throttled && after != max(1, before/2):
				t.Fatalf("after an answer of 429 the bound went from %d to %d", before, after)
			case !throttled && (after > before+1 || after < before-1) && after != 1 && before != 1:
				t.Fatalf("the bound went from %d to %d", before, after)
			}
		}
	}
}

// What the bound makes of rounds of replies, answer by answer.
func TestBoundByRounds(t *testing.T) {
	const base = 10 * time.Millisecond
	replied := func(b *inFlightBound, n int, service time.Duration) {
		for range n {
			b.Replied(service, false)
		}
	}
	throttled := func(b *inFlightBound) { b.Replied(time.Second, true) }
	measured := func(b *inFlightBound) { replied(b, minRound, base) }
	for _, tt := range []struct {
		why  string
		do   func(*inFlightBound)
		want int
	}{
		{"one request at a time until the base is known", func(b *inFlightBound) { replied(b, minRound-1, base) }, 1},
		{"then two", measured, 2},
		{"no queue: one more each round", func(b *inFlightBound) { measured(b); replied(b, 3*minRound, base) }, 5},
		{"a round is no shorter than what is in flight", func(b *inFlightBound) { measured(b); b.limit = 20; replied(b, 19, base) }, 20},
		{"and no longer", func(b *inFlightBound) { measured(b); b.limit = 20; replied(b, 20, base) }, 21},
		{"3 of 6 wait: well", func(b *inFlightBound) { measured(b); b.limit = 6; replied(b, minRound, 2*base) }, 6},
		{"5 of 10 wait: too many", func(b *inFlightBound) { measured(b); b.limit = 10; replied(b, 10, 2*base) }, 9},
		{"outliers do not bother the median", func(b *inFlightBound) {
			measured(b)
			replied(b, 3, time.Second)
			replied(b, minRound-3, base)
		}, 3},
		{"429 begins the round anew", func(b *inFlightBound) {
			measured(b)
			b.limit = 10
			replied(b, minRound-1, base)
			throttled(b)
			replied(b, minRound-1, base)
		}, 5},
		{"429 while the base is measured halves what comes after it", func(b *inFlightBound) {
			b.resume = 16
			replied(b, 3, base)
			throttled(b)
			measured(b)
		}, 8},
		{"now and then the base is measured anew, without the replies that waited", func(b *inFlightBound) {
			measured(b)
			b.limit, b.age = 10, remeasure-1
			replied(b, 10, base)
			if b.Limit() != 1 {
				t.Errorf("the bound is %d as the base is to be measured anew", b.Limit())
			}
			replied(b, 9, time.Second)
			replied(b, minRound, 3*base)
			if b.base != 3*base {
				t.Errorf("the base is %v after it was measured anew as %v", b.base, 3*base)
			}
		}, 10},
	} {
		b := newInFlightBound(64, false)
		tt.do(b)
		if b.Limit() != tt.want {
			t.Errorf("%s: the bound is %d, want %d", tt.why, b.Limit(), tt.want)
		}
	}
}

// queue is a server of some width, whose service times scatter, and a client
// that keeps as many requests under way as the bound allows, on a clock of
// their own.
type queue struct {
	rng     *rand.Rand
	bound   *inFlightBound
	service time.Duration
	jitter  float64 // service times lie evenly within this part of service
	free    []time.Duration
	flight  []struct{ sent, done time.Duration }
	now     time.Duration

	busy, waited time.Duration // since the last reset
	from         time.Duration
}

func (q *queue) reset() { q.busy, q.waited, q.from = 0, 0, q.now }

// replies lets so many requests be answered.
func (q *queue) replies(n int) {
	for range n {
		for len(q.flight) < q.bound.Limit() {
			server := 0
			for i := range q.free {
				if q.free[i] < q.free[server] {
					server = i
				}
			}
			service := time.Duration(float64(q.service) * (1 + q.jitter*(2*q.rng.Float64()-1)))
			begin := max(q.free[server], q.now)
			q.free[server] = begin + service
			q.busy += service
			q.waited += begin - q.now
			q.flight = append(q.flight, struct{ sent, done time.Duration }{q.now, begin + service})
		}
		first := 0
		for i := range q.flight {
			if q.flight[i].done < q.flight[first].done {
				first = i
			}
		}
		r := q.flight[first]
		q.flight = slices.Delete(q.flight, first, first+1)
		q.now = r.done
		q.bound.Replied(r.done-r.sent, false)
	}
}

// use is the share of the servers' time that was used, and queued the mean
// number of requests that waited, since the last reset.
func (q *queue) use() float64 {
	return float64(q.busy) / float64(q.now-q.from) / float64(len(q.free))
}
func (q *queue) queued() float64 { return float64(q.waited) / float64(q.now-q.from) }

// The servers are kept busy, without more than a small queue of ours in front
// of them, whatever their number and however long a request takes.
func TestBoundFindsTheWidthOfAServer(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 150 {
		width := 1 + rng.IntN(32)
		q := &queue{
			rng: rng, bound: newInFlightBound(64, false), free: make([]time.Duration, width),
			service: time.Duration(1000+rng.IntN(49_000)) * time.Microsecond,
			jitter:  0.05 + 0.2*rng.Float64(),
		}
		q.replies(80 * width) // from one request in flight up to the width
		q.reset()
		q.replies(5000)
		if q.use() < 0.8 || q.queued() > 2*queueHigh {
			t.Errorf("%d servers of %v with jitter %.2f: %.0f%% used, %.1f requests waited", width, q.service, q.jitter, 100*q.use(), q.queued())
		}
	}
}

// A server that has grown slower without any queue is seen as that, once its
// base is measured again; one whose base rose is not starved for it.
func TestBoundFollowsASlowerServer(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, width := range []int{4, 16} {
		q := &queue{rng: rng, bound: newInFlightBound(64, false), free: make([]time.Duration, width), service: 5 * time.Millisecond, jitter: 0.1}
		q.replies(2000)
		q.service *= 4
		q.replies(2 * remeasure * minRound)
		q.reset()
		q.replies(4000)
		if q.use() < 0.8 || q.queued() > 2*queueHigh {
			t.Errorf("%d servers, four times slower: %.0f%% used, %.1f requests waited", width, 100*q.use(), q.queued())
		}
	}
}

// After the server has asked for less load again and again, the bound finds
// its way back.
func TestBoundRecovers(t *testing.T) {
	q := &queue{rng: rand.New(rand.NewPCG(4, 4)), bound: newInFlightBound(64, false), free: make([]time.Duration, 8), service: 5 * time.Millisecond, jitter: 0.1}
	q.replies(1000)
	for range 20 {
		q.bound.Replied(time.Second, true)
	}
	if q.bound.Limit() != 1 {
		t.Errorf("the bound is %d after twenty answers of 429", q.bound.Limit())
	}
	q.replies(500)
	q.reset()
	q.replies(1000)
	if q.use() < 0.85 {
		t.Errorf("%.0f%% used after the bound was halved twenty times", 100*q.use())
	}
}
