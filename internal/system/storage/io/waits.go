package io

import (
	"github.com/HdrHistogram/hdrhistogram-go"

	"plimsoll.dev/plimsoll/internal/record"
)

// waits holds the waits of one fio's threads for a processor in the hold, by reading.
type waits struct {
	known    bool // there is a last reading
	at       record.Micros
	ns       float64 // of the last reading, since the threads began
	times    float64
	readings []waited
}

// waited is the wait between two readings.
type waited struct{ ns, times, span float64 } // span is the time between them, in ns

// readAtOnce bounds the volumes whose waits are read in one tick; more have turns.
const readAtOnce = 100

// readWaits reads the waits of each fio.
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

// add adds a reading: the waits since the threads began, and their number.
func (w *waits) add(at record.Micros, ns, times float64) {
	if w.known {
		w.readings = append(w.readings, waited{max(ns-w.ns, 0), max(times-w.times, 0), 1e3 * float64(at-w.at)})
	}
	w.known, w.at, w.ns, w.times = true, at, ns, times
}

// inside returns the share of the waits that can be part of latencies. At a fixed rate fio sleeps until
// an IO is due, and its wait after the wake-up delays the submission, from which the latency counts: one
// wait for each IO. The others are between submission and completion; at least half are assumed to be,
// since a late fio does not sleep.
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

// delays adds to a histogram of microseconds the share of each IO's latency in which it waited for a
// processor. mean and longest are of the latencies, in ns. The wait between two readings is divided
// evenly among the IOs of that time, at least one; if several are in flight, all of them wait.
func (w *waits) delays(h *hdrhistogram.Histogram, ios, mean, longest float64, sleeps bool) {
	all := 0.0
	for _, r := range w.readings {
		all += r.span
	}
	part := w.inside(ios, sleeps)
	for _, r := range w.readings {
		own := ios * r.span / all
		if own < 1 && r.times == 0 {
			continue // no IO
		}
		own = max(own, 1)
		delay := min(part*r.ns*max(1/own, mean/r.span), longest)
		_ = h.RecordValues(min(int64(delay/1e3), h.HighestTrackableValue()), int64(own))
	}
}

// ownDelay returns the waits of the hold's IOs for fio's processor, "" if a volume failed, which no wait
// can excuse.
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

// sleeps reports whether latencies begin after fio was woken for an IO. Those of small files begin when
// an operation is due.
func (s settings) sleeps() bool { return s.rate > 0 && s.small == nil }

// shareWaited returns the share of a volume's latencies in which its fio waited.
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
