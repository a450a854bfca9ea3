package io

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

// load is the IO of one step: an fio on each volume, whose reports become windows by completion.
type load struct {
	settings
	session                  *session
	ground                   ground
	beside                   *database // nil without pgbench
	besideSeconds            int       // with the next ones, pgbench's sums when the hold began
	besideSum, besideWeighed float64
	rec                      system.Recorder
	every                    time.Duration // interval of fio's reports
	alone, link              float64       // bytes per second of the drive alone, and of the link; 0 is unknown
	copies                   int           // of written data on the link

	mu      sync.Mutex
	volumes []*volume
	windows []*window
	told    int
	warm    int  // windows of the warm-up
	asked   bool // fio was asked to end
	ticks   int  // readings of waits
	gauges  gauges
}

type volume struct {
	name        string
	n           int
	dir         string
	proc        *fio.Process // nil where the volume could not be filled
	over        bool         // the process has ended
	failed, why string       // failed is the kind of its failure, "" for none, since the first window with it.
	since       int

	first, last fio.Report    // before the first window, and the last one
	next        int           // the window of the next report
	lag         time.Duration // least delay of reports, plus fio's start
	line        *line         // for a fixed rate, else nil
	held        uint64        // IOs of the hold
	nanos       float64       // sum of their latencies
	longest     float64       // of them
	waits       waits
}

// window holds the work of all volumes in one window.
type window struct {
	sides  map[string]*side
	places map[string]int
}

func (w *window) of(name string) *side {
	x := w.sides[name]
	if x == nil {
		x = &side{bins: make(fio.Bins)}
		w.sides[name] = x
	}
	return x
}

type side struct {
	bins  fio.Bins
	bytes int64
}

const (
	streamTick = 20 * time.Millisecond
	// lateReport bounds the wait for reports after two more windows: fio with hanging IO reports nothing.
	lateReport = 5 * time.Second
	leastHang  = 100 * time.Millisecond // delay of a report that waited for an IO
	lastReport = 500 * time.Millisecond // bounds the wait for reports after the last window
	// Bounds of the time in which fio may complete IOs in flight.
	leastEnding, mostEnding = 5 * time.Second, 30 * time.Second
	mostPlaces              = 1000 // bounds the volumes for which windows have the counts of each
	achievedTolerated       = 0.01 // share of due IOs that may be missing before they count as never sent
)

// Stream implements local.Load.
func (l *load) Stream(ctx context.Context, s streams.Schedule) error {
	l.mu.Lock()
	l.windows = make([]*window, int((s.Warm+s.Hold+s.Window-1)/s.Window))
	l.warm = int(s.Warm / s.Window)
	for i := range l.windows {
		l.windows[i] = &window{sides: make(map[string]*side), places: make(map[string]int)}
	}
	for _, v := range l.volumes {
		if v.proc != nil {
			v.proc.Take()
			v.first, _ = v.proc.Last()
			v.last = v.first
			if l.sleeps() && l.raw == "" {
				v.line = newLine(l.rates(v.n), l.settings.depth, v.first, uint64(v.n))
			}
			_ = v.proc.Watch(l.goesFirst()) // an ended one has failed
		}
	}
	l.mu.Unlock()

	warmAt := s.Begin + record.MicrosOf(s.Warm)
	tick := time.NewTicker(streamTick)
	defer tick.Stop()
	for warmed := false; ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return l.End() // a step that was cut needs no figures
		}
		now := l.rec.Clock.Now()
		if !warmed && now >= warmAt {
			warmed = true
			if l.beside != nil {
				l.besideSeconds, l.besideSum, l.besideWeighed, _ = l.beside.told()
			}
		}
		if warmed {
			l.readWaits(now)
		}
		l.collect(s)
		if err := l.tell(s, now); err != nil {
			return err
		}
		if now >= s.End() {
			return l.finish(ctx, s)
		}
	}
}

func (l *load) running() []*volume {
	return slices.DeleteFunc(slices.Clone(l.volumes), func(v *volume) bool { return v.proc == nil || v.over })
}

func (l *load) collect(s streams.Schedule) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, v := range l.running() {
		ended := v.proc.Ended()
		for _, r := range v.proc.Take() {
			r.Ran = v.until(r.Ran, l.rec.Clock.Now())
			l.add(v, r, s.Window)
		}
		if ended {
			v.over = true
			if kind, why := v.proc.Failure(l.asked); v.failed == "" && kind != "" {
				v.failed, v.why, v.since = kind, why, min(v.next, len(l.windows)-1)
			}
		}
	}
}

// until returns up to which time a report counts. An fio whose IO hangs takes its time before the wait,
// and its counts afterwards.
func (v *volume) until(ran time.Duration, now record.Micros) time.Duration {
	lag := time.Duration(now)*time.Microsecond - ran
	if v.lag == 0 || lag < v.lag {
		v.lag = lag
	}
	if lag > v.lag+leastHang {
		ran += lag - v.lag
	}
	return max(ran, v.last.Ran)
}

// add puts the work of a volume since its last report into a window.
func (l *load) add(v *volume, r fio.Report, length time.Duration) {
	at := int(math.Round(float64(r.Ran-v.first.Ran)/float64(length))) - 1
	at = max(at, v.next-1, l.told) // recorded windows do not change
	if at >= len(l.windows) {
		return // after the last one
	}
	took := make(map[string]fio.Bins)
	before := v.last.Sides
	for name, now := range r.Sides {
		if name == fio.Read && l.job.Verify && !l.job.Reads() {
			continue // reads that verify writes are not load
		}
		d := now.Bins.Since(before[name].Bins)
		n := d.N()
		if n == 0 {
			continue
		}
		took[name] = d
		l.windows[at].of(name).bytes += now.Bytes - before[name].Bytes
		if v.line == nil {
			l.windows[at].of(name).bins.Add(d)
			l.windows[at].places[v.name] += int(n)
		}
		if at >= l.warm {
			v.held += n
			for ns, k := range d {
				v.nanos += float64(ns) * float64(k)
				v.longest = max(v.longest, float64(ns))
			}
		}
	}
	if v.line != nil {
		for _, x := range v.line.since(took, r.Ran) {
			i := int((x.over - float64(v.first.Ran)) / float64(length))
			w := l.windows[min(max(i, l.told), at)]
			w.of(x.side).bins[int64(x.latency())]++
			w.places[v.name]++
		}
	}
	v.last, v.next = r, at+1
}

// tell records the windows that are over, except the last one, which is complete when all fio have ended.
func (l *load) tell(s streams.Schedule, now record.Micros) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.told < len(l.windows)-1 {
		_, to := l.span(s, l.told)
		late := now > to+record.MicrosOf(2*s.Window+lateReport)
		waiting := slices.ContainsFunc(l.running(), func(v *volume) bool { return v.next <= l.told })
		if now < to || waiting && !late {
			return nil
		}
		if err := l.emit(s, 0); err != nil {
			return err
		}
	}
	return nil
}

func (l *load) span(s streams.Schedule, i int) (from, to record.Micros) {
	from = s.Begin + record.Micros(i)*record.MicrosOf(s.Window)
	return from, min(from+record.MicrosOf(s.Window), s.End())
}

// emit records the next window by component; dropped counts the step's due IOs that were never done.
func (l *load) emit(s streams.Schedule, dropped float64) error {
	i := l.told
	w := l.windows[i]
	l.told++
	failed, at, alive := l.failures(s, i)
	if len(w.sides) == 0 {
		w.of(l.main())
	}
	backlog := l.backlog(s, 0, i+1)
	if dropped > 0 {
		backlog = l.backlog(s, 0, l.warm) // dropped ones are not awaited
	}
	for _, name := range fio.SidesInOrder() {
		x := w.sides[name]
		if x == nil {
			continue
		}
		out := &record.Window{Component: name, WarmUp: i < l.warm, Done: int(x.bins.N()), Answered: int(x.bins.N()), Failed: failed, FailedByPlace: at, Backlog: backlog}
		out.From, out.To = l.span(s, i)
		out.Sent = out.Done + out.FailedAll()
		out.Intended = out.Sent
		if s.Open {
			out.Dropped = int(dropped)
			out.Late, out.Intended = out.Dropped, out.Intended+out.Dropped
		} else {
			out.InFlight = alive * l.settings.depth
		}
		failed, at, alive, dropped = nil, nil, 0, 0 // they count for the first component
		if name == fio.Read {
			out.BytesIn, out.AnsweredBytes = x.bytes, x.bytes
		} else {
			out.BytesOut = x.bytes
		}
		if len(l.volumes) <= mostPlaces && len(w.places) > 0 {
			out.ByPlace, w.places = w.places, nil
		}
		h, err := x.bins.Histogram()
		if err != nil {
			return err
		}
		out.Histograms = map[string]record.Histogram{fio.Complete: h}
		if l.told == len(l.windows) {
			if out.OwnDelay, err = l.ownDelay(); err != nil {
				return err
			}
		}
		l.rec.Emit(out)
	}
	return nil
}

// failures counts a window's failures by kind and volume: as many as each failed volume should have done.
// alive counts the others.
func (l *load) failures(s streams.Schedule, i int) (failed, at map[string]int, alive int) {
	failed, at = make(map[string]int), make(map[string]int)
	if i == len(l.windows)-1 && l.beside != nil && l.beside.Ended() {
		failed["pgbench ended"] = 1
	}
	for _, v := range l.volumes {
		switch {
		case v.failed != "" && i >= v.since:
			n := l.settings.depth
			if l.rate > 0 {
				n = int(math.Round(float64(l.rate) / float64(l.settings.volumes) * s.Window.Seconds()))
			}
			failed[v.failed] += max(n, 1)
			at[v.name] += max(n, 1)
		case v.proc != nil && !v.over:
			alive++
		}
	}
	return failed, at, alive
}

// due counts the IOs of each side that the schedule wants in some windows from unfailed volumes.
func (l *load) due(s streams.Schedule, from, to int) map[string]float64 {
	sum := make(map[string]float64)
	for _, v := range l.volumes {
		until := to
		if v.failed != "" {
			until = min(to, v.since)
		}
		if until <= from {
			continue
		}
		begin, _ := l.span(s, from)
		_, end := l.span(s, until-1)
		for name, rate := range l.rates(v.n) {
			sum[name] += rate * (end - begin).Seconds()
		}
	}
	return sum
}

// backlog counts due IOs that were not done in some windows, beyond one of each kind in flight.
func (l *load) backlog(s streams.Schedule, from, to int) int {
	behind := 0.0
	for name, due := range l.due(s, from, to) {
		if due == 0 {
			continue
		}
		behind += due - float64(len(l.volumes))
		for _, w := range l.windows[from:to] {
			if x := w.sides[name]; x != nil {
				behind -= float64(x.bins.N())
			}
		}
	}
	return int(max(behind, 0))
}

// finish ends the fios, and records the last window and the sums of the step.
func (l *load) finish(ctx context.Context, s streams.Schedule) error {
	// The last reports are still coming.
	last := len(l.windows)
	_ = wait(ctx, 2*s.Window+lastReport, func() bool {
		l.collect(s)
		return !slices.ContainsFunc(l.running(), func(v *volume) bool { return v.next < last })
	})
	l.mu.Lock()
	l.asked = true
	l.mu.Unlock()
	for _, v := range l.running() {
		if l.small != nil {
			v.proc.KillAll() // it reports nothing at its end
		} else {
			v.proc.Interrupt()
		}
	}
	_ = wait(ctx, min(max(s.Timeout, leastEnding), mostEnding), func() bool {
		l.collect(s)
		return len(l.running()) == 0
	})
	hung := l.running()
	if ctx.Err() != nil {
		return l.End()
	}
	var ending sync.WaitGroup
	for _, v := range hung {
		v.failed, v.why, v.since = record.FailedTimeout, "fio waits for IO that does not end", min(v.next, last-1)
		ending.Go(func() { _ = l.put(v, v.proc) })
	}
	ending.Wait()
	if err := l.tell(s, math.MaxInt64/2); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	due, missing := 0.0, float64(l.backlog(s, l.warm, last))
	for _, n := range l.due(s, l.warm, last) {
		due += n
	}
	if missing <= achievedTolerated*due {
		missing = 0
	}
	if err := l.emit(s, missing); err != nil {
		return err
	}
	l.sumUp(s)
	return nil
}
