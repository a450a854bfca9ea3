// Package streams says when the requests of a stream are due, and gathers what becomes of them in windows. It
// knows no target, so that the agent, which sends requests from inside a cluster, holds little beside it.
package streams

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/lab/cpu"
	"plimsoll.dev/plimsoll/internal/record"
)

// Schedule says when the requests of a stream are to be sent, and for how long.
type Schedule struct {
	Open  bool // says that Value requests a second are sent; else Value clients send one after the other
	Value float64
	Begin record.Micros // of the first request
	Warm  time.Duration // from then, for which requests are not judged
	Hold  time.Duration // after that, for which they are

	Window  time.Duration // length of each
	Timeout time.Duration // after which a request is given up
	// DropAfter bounds the wait for a place among the MaxInFlight requests; then a request is not sent.
	DropAfter   time.Duration
	MaxInFlight int
}

// Requests counts those to be sent, of random arrivals on average; 0 for a closed loop.
func (s Schedule) Requests() int {
	if !s.Open {
		return 0
	}
	return int(s.Value*(s.Warm+s.Hold).Seconds() + 1e-9)
}

// End returns when the last request may be sent.
func (s Schedule) End() record.Micros { return s.Begin + record.MicrosOf(s.Warm+s.Hold) }

// Progress sums up the requests of a stream so far.
type Progress struct {
	Sent, Done, Failed, InFlight int
	Late, Dropped                int           // found no place among those in flight, and were given up of them
	Moved                        record.Micros // when one last ended
}

// UnfinishedError reports a stream that does not decide its step, such as one with a lost client.
type UnfinishedError struct{ What string }

func (e *UnfinishedError) Error() string { return e.What }

// VoidError reports a stream that sent another load than the plan says: its step is invalid.
type VoidError struct{ What string }

func (e *VoidError) Error() string { return e.What }

// Arrivals tell the intended starts of an open loop's requests, in order.
type Arrivals struct {
	schedule Schedule
	rng      *rand.Rand
	n        int
	next     float64 // microseconds after the schedule's begin
}

// Arrivals begins the arrivals: evenly spread, or drawn from rng as of independent users (Poisson).
func (s Schedule) Arrivals(rng *rand.Rand) *Arrivals {
	a := &Arrivals{schedule: s, rng: rng}
	if rng != nil {
		a.next = rng.ExpFloat64() / s.Value * 1e6
	}
	return a
}

// Next returns when the next request is due; ok is false where none is left.
func (a *Arrivals) Next() (at record.Micros, ok bool) {
	at = a.schedule.Begin + record.Micros(a.next)
	if a.rng == nil {
		return at, a.n < a.schedule.Requests()
	}
	return at, a.schedule.Open && at < a.schedule.End()
}

// Take goes on to the request after the next one.
func (a *Arrivals) Take() {
	a.n++
	if a.rng == nil {
		a.next = float64(a.n) / a.schedule.Value * 1e6 // so that rounding does not add up
	} else {
		a.next += a.rng.ExpFloat64() / a.schedule.Value * 1e6
	}
}

// Windows gathers a component's requests into windows, and tells of each window once all is known of it.
// A request counts in the window in which it was due. It is safe for concurrent use.
type Windows struct {
	schedule  Schedule
	component string
	emit      func(*record.Window)

	telling sync.Mutex // held by who encodes and emits windows
	err     error      // of that

	// The senders hold it for each request, so that nothing slow is done under it.
	mu   sync.Mutex
	open []*openWindow // from the first that it has not told of
	told int           // windows
	// Of the windows that it has told of: requests under way, and due and not over.
	inFlight, behind int
}

type openWindow struct {
	record.Window
	histograms map[string]*hdrhistogram.Histogram
	ownDelay   *hdrhistogram.Histogram
	// Of the requests that are due in it: those that wait to be sent, and those sent that have not ended.
	waiting, pending int
	// What happened from its begin to its end: requests were sent, ended, or were given up unsent.
	begun, ended, given int
}

// NewWindows gathers the requests of a stream, beginning now.
func NewWindows(s Schedule, component string, emit func(*record.Window)) *Windows {
	return &Windows{schedule: s, component: component, emit: emit}
}

// Wait notes that a due request finds no place in flight. It must be sent or dropped in the end.
func (w *Windows) Wait(intended record.Micros) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.of(intended)
	o.Intended++
	o.Late++
	o.waiting++
}

// Sent notes that a request due at intended was sent, which must end; ownDelay is the generator's delay.
func (w *Windows) Sent(intended, at record.Micros, waited bool, ownDelay record.Micros) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.of(intended)
	if waited {
		o.waiting--
	} else {
		o.Intended++
	}
	o.Sent++
	o.pending++
	record.Count(o.ownDelay, ownDelay)
	if at < w.schedule.End() {
		w.of(at).begun++
	}
}

// Drop notes that a request that waited is given up at a time.
func (w *Windows) Drop(intended, at record.Micros) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.of(intended)
	o.waiting--
	o.Dropped++
	if at < w.schedule.End() {
		w.of(at).given++
	}
}

// Outcome says how a request ended.
type Outcome struct {
	Failed  string // kind of failure, "" where it was answered as it should be
	Lost    bool   // what became of it is unknown
	Retries int    // times that it was sent again
	// Times tell when it reached each milestone after its intended start, if it did not fail.
	Times             map[string]record.Micros
	Place             string
	BytesIn, BytesOut int64
}

// End notes how the request ended at a time that was due at intended.
func (w *Windows) End(intended, at record.Micros, x Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	o := w.of(intended)
	o.pending--
	o.BytesIn, o.BytesOut = o.BytesIn+x.BytesIn, o.BytesOut+x.BytesOut
	o.Retried += x.Retries
	done := !x.Lost && x.Failed == ""
	if at < w.schedule.End() {
		then := w.of(at)
		if then.ended++; done {
			then.Answered++
			then.AnsweredBytes += x.BytesIn
		}
	}
	switch {
	case x.Lost:
		o.Lost++
	case !done:
		addOne(&o.Failed, x.Failed)
		addOne(&o.FailedByPlace, x.Place)
	default:
		o.Done++
		addOne(&o.ByPlace, x.Place)
		for name, took := range x.Times {
			h, ok := o.histograms[name]
			if !ok {
				h = record.NewCounts()
				o.histograms[name] = h
			}
			record.Count(h, took)
		}
	}
}

// addOne counts one more of a kind, nothing of "".
func addOne(counts *map[string]int, kind string) {
	if kind == "" {
		return
	}
	if *counts == nil {
		*counts = make(map[string]int)
	}
	(*counts)[kind]++
}

// Tell tells of each window that is over, as noted, and whose requests have all ended.
func (w *Windows) Tell(now record.Micros) error {
	w.telling.Lock()
	defer w.telling.Unlock()
	return w.tell(func() (over []*openWindow) {
		if next := w.schedule.Begin + record.Micros(w.told)*record.MicrosOf(w.schedule.Window); next < min(now, w.schedule.End()) {
			w.of(min(now, w.schedule.End()) - 1) // it tells of those in which nothing happened, too
		}
		for len(w.open) > 0 && w.open[0].To <= now && w.open[0].waiting+w.open[0].pending == 0 {
			over = append(over, w.first())
		}
		return over
	})
}

// Lose tells of the windows that are left, whose requests are lost; unsent ones do not count.
func (w *Windows) Lose(now record.Micros) error {
	w.telling.Lock()
	defer w.telling.Unlock()
	return w.tell(func() (over []*openWindow) {
		for len(w.open) > 0 && w.open[0].From < now {
			o := w.open[0]
			o.Lost, o.Intended, o.Late = o.Lost+o.pending, o.Intended-o.waiting, o.Late-o.waiting
			over = append(over, w.first())
		}
		return over
	})
}

func (w *Windows) first() *openWindow {
	o := w.open[0]
	w.open, w.told = w.open[1:], w.told+1
	w.inFlight += o.begun - o.ended
	w.behind += o.Intended - o.ended - o.given
	o.InFlight, o.Backlog = w.inFlight, w.behind
	return o
}

// tell encodes and emits the windows that are taken out, without the lock: it takes milliseconds.
func (w *Windows) tell(take func() []*openWindow) error {
	w.mu.Lock()
	over := take()
	w.mu.Unlock()
	if len(over) > 0 && w.err == nil {
		cpu.Aside(func() { w.emitAll(over) })
	}
	return w.err
}

func (w *Windows) emitAll(over []*openWindow) {
	for _, o := range over {
		o.Histograms = make(map[string]record.Histogram, len(o.histograms))
		for name, h := range o.histograms {
			if o.Histograms[name], w.err = record.HistogramOf(h); w.err != nil {
				return
			}
		}
		if o.OwnDelay, w.err = record.HistogramOf(o.ownDelay); w.err != nil {
			return
		}
		w.emit(&o.Window)
	}
}

// of returns the window that a time lies in.
func (w *Windows) of(t record.Micros) *openWindow {
	length := record.MicrosOf(w.schedule.Window)
	i := max(int((t-w.schedule.Begin)/length)-w.told, 0)
	for len(w.open) <= i {
		from := w.schedule.Begin + record.Micros(w.told+len(w.open))*length
		w.open = append(w.open, &openWindow{
			Window: record.Window{
				Component: w.component, From: from, To: min(from+length, w.schedule.End()),
				WarmUp: from < w.schedule.Begin+record.MicrosOf(w.schedule.Warm),
			},
			histograms: make(map[string]*hdrhistogram.Histogram), ownDelay: record.NewCounts(),
		})
	}
	return w.open[i]
}
