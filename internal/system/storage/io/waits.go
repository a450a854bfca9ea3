package io

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/record"
)

// waits are what the threads of one fio waited for a processor in the hold, from
// one reading to the next.
type waits struct {
	known    bool // there is a last reading
	at       record.Micros
	ns       float64 // as last read, since the threads began
	times    float64
	readings []waited
}

// waited is what was waited between two readings.
type waited struct{ ns, times, span float64 } // span is the time between them, in ns

// readAtOnce is of how many volumes the waits are read in one tick: of more, in
// turns.
const readAtOnce = 100

// readWaits reads what each fio has waited.
func (l *load) readWaits(now record.Micros) {
	turns := (len(l.volumes) + readAtOnce - 1) / readAtOnce
	l.ticks++
	for _, v := range l.running() {
		if v.n%turns == l.ticks%turns {
			ns, times := v.proc.Waits()
			v.waits.add(now, float64(ns), float64(times))
		}
	}
}

// add takes in a reading: what was waited since the threads began, and how often.
func (w *waits) add(at record.Micros, ns, times float64) {
	if w.known {
		w.readings = append(w.readings, waited{max(ns-w.ns, 0), max(times-w.times, 0), 1e3 * float64(at-w.at)})
	}
	w.known, w.at, w.ns, w.times = true, at, ns, times
}

// inside is the part of the waits that can lie in latencies. A fio that keeps to a
// rate sleeps until an IO is due, and what it waits when it is woken delays the
// submission, from which the latency counts: one wait for each IO. The others lie
// between submission and completion; that at least half of them do is granted, for
// a fio that is behind does not sleep.
func (w *waits) inside(ios float64, sleeps bool) float64 {
	all := 0.0
	for _, r := range w.readings {
		all += r.times
	}
	if !sleeps || all == 0 {
		return 1
	}
	return max(1-ios/all, 0.5)
}

// delays adds to a histogram of microseconds what each of a volume's IOs has waited
// for a processor of its latency, of which the mean and the longest are known, in
// ns. What was waited between two readings is divided evenly among the IOs of that
// time, one at least; where several are under way, all of them wait.
func (w *waits) delays(h *hdrhistogram.Histogram, ios, mean, longest float64, sleeps bool) {
	all := 0.0
	for _, r := range w.readings {
		all += r.span
	}
	part := w.inside(ios, sleeps)
	for _, r := range w.readings {
		own := ios * r.span / all
		if own < 1 && r.times == 0 {
			continue // there was no IO
		}
		own = max(own, 1)
		delay := min(part*r.ns*max(1/own, mean/r.span), longest)
		_ = h.RecordValues(min(int64(delay/1e3), h.HighestTrackableValue()), int64(own)) // it is within the bounds
	}
}

// ownDelay is what the IOs of the hold waited for fio's processor. Where a volume
// failed it is left open: that it did is so, whatever fio waited for.
func (l *load) ownDelay() (record.Histogram, error) {
	h := record.NewCounts()
	for _, v := range l.volumes {
		if v.failed != "" {
			return "", nil
		}
		if v.held > 0 {
			v.waits.delays(h, float64(v.held), v.nanos/float64(v.held), v.longest, l.sleeps())
		}
	}
	return record.HistogramOf(h)
}

// sleeps reports whether latencies begin after fio was woken for an IO. Those of
// small files count from when an operation was due.
func (s settings) sleeps() bool { return s.rate > 0 && s.small == nil }

// shareWaited is the part of a volume's latencies in which its fio waited.
func (v *volume) shareWaited(sleeps bool) float64 {
	ns, span := 0.0, 0.0
	for _, r := range v.waits.readings {
		ns, span = ns+r.ns, span+r.span
	}
	if v.nanos == 0 || span == 0 {
		return 0
	}
	return v.waits.inside(float64(v.held), sleeps) * max(ns/v.nanos, ns/span)
}
