package io

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
	"plimsoll.dev/plimsoll/internal/system/streams"
)

func (l *load) sumUp(s streams.Schedule) {
	tell := func(source string, value float64) {
		l.rec.Emit(&record.Reading{Source: source, Values: map[string]float64{"value": value}})
	}
	bytes, crossed := int64(0), int64(0)
	for _, w := range l.windows[l.warm:] {
		for name, x := range w.sides {
			bytes += x.bytes
			if crossed += x.bytes; name != fio.Read {
				crossed += int64(l.copies-1) * x.bytes
			}
		}
	}
	throughput := float64(bytes) / s.Hold.Seconds()
	tell(sourceThroughput, throughput)
	if l.alone > 0 {
		tell(sourceDriveAlone, l.alone)
		tell(sourceShare, 100*throughput/l.alone)
	}
	if l.link > 0 {
		tell(sourceLinkAlone, 8e-9*l.link)
		tell(sourceLinkShare, 100*float64(crossed)/s.Hold.Seconds()/l.link)
	}
	tell(sourceSpread, spread(l.volumes, len(l.windows), s.Hold))
	if l.beside != nil {
		if n, sum, weighed, last := l.beside.told(); n > l.besideSeconds && sum > l.besideSum {
			tell(sourceTransactions, (sum-l.besideSum)/float64(n-l.besideSeconds))
			tell(sourceTransaction, (weighed-l.besideWeighed)/(sum-l.besideSum))
		} else if l.beside.Ended() {
			l.rec.Emit(&record.Note{About: l.rec.Step(), Text: "pgbench ended: " + last})
		}
	}
	most := 0.0
	for _, v := range l.volumes {
		most = max(most, v.shareWaited(l.sleeps()))
	}
	l.rec.Emit(&record.Reading{Source: sourceFio, Values: map[string]float64{"waitShare": most}})
	note := func(format string, args ...any) {
		l.rec.Emit(&record.Note{About: l.rec.Step(), Text: fmt.Sprintf(format, args...)})
	}
	if l.drive && l.alone == 0 {
		note("drive alone and share of the drive are unknown: for %v its rates differed by more than %.0f%% from second to second", driveTime, 100*driveSteady)
	}
	if most > 0.1 {
		note("%s waited for a processor in more than a tenth of the mean latency of a volume: others on this machine were in its way", l.maker())
	}
	byKind := make(map[string][]string)
	for _, v := range l.volumes {
		if v.failed != "" {
			byKind[v.failed] = append(byKind[v.failed], v.name+": "+v.why)
		}
	}
	for kind, list := range byKind {
		note("%s: %d of %d volumes failed; %s", kind, len(list), len(l.volumes), strings.Join(list[:min(len(list), 3)], "; "))
	}
}

// spread returns how many seconds the first volume was ahead of the last, at their end, or when the
// fastest had done as much as the slowest in the hold.
func spread(volumes []*volume, windows int, hold time.Duration) float64 {
	first, last := time.Duration(math.MaxInt64), time.Duration(0)
	least, most := uint64(math.MaxUint64), uint64(0)
	ended := true
	for _, v := range volumes {
		ended = ended && v.over && v.next < windows
		first, last = min(first, v.last.Ran), max(last, v.last.Ran)
		least, most = min(least, v.held), max(most, v.held)
	}
	switch {
	case ended:
		return (last - first).Seconds()
	case most == 0:
		return 0
	}
	return hold.Seconds() * (1 - float64(least)/float64(most))
}

// Progress implements local.Load.
func (l *load) Progress() system.Progress {
	l.mu.Lock()
	defer l.mu.Unlock()
	var p system.Progress
	for _, w := range l.windows {
		for _, x := range w.sides {
			p.There += int(x.bins.N())
		}
	}
	for _, v := range l.volumes {
		if v.failed != "" {
			p.Failed++
		} else if v.proc != nil && !v.over {
			p.InFlight += l.settings.depth
		}
	}
	p.Arrived, p.Sent, p.Moved = p.There, p.There+p.Failed, l.rec.Clock.Now()
	return p
}

// End implements local.Load: it ends every fio.
func (l *load) End() error {
	var all sync.WaitGroup
	errs := make([]error, len(l.volumes))
	for i, v := range l.volumes {
		if v.proc != nil {
			all.Go(func() { errs[i] = l.put(v, v.proc) })
		}
	}
	all.Wait()
	return errors.Join(errs...)
}

// gauges holds the counts of the last readings, for the difference to the next ones.
type gauges struct {
	at    record.Micros
	used  map[int]float64 // CPU seconds of each fio
	ticks float64         // busy seconds of the device
}

// Readings implements local.Load.
func (l *load) Readings() []record.Reading {
	var list []record.Reading
	add := func(source string, values map[string]float64) {
		list = append(list, record.Reading{Source: source, Values: values})
	}
	next := gauges{at: l.rec.Clock.Now(), used: make(map[int]float64)}
	seconds := (next.at - l.gauges.at).Seconds()
	known := l.gauges.at > 0 && seconds > 0.05
	var all proc.Usage
	busiest := 0.0
	for _, v := range l.volumes {
		if v.proc == nil || v.proc.Ended() {
			continue
		}
		pid := v.proc.PID()
		u, err := proc.Read(pid)
		if err != nil {
			continue // it has just ended
		}
		all = all.Plus(u)
		next.used[pid] = u.CPUSeconds
		if was, ok := l.gauges.used[pid]; ok && known {
			busiest = max(busiest, min((u.CPUSeconds-was)/seconds, 1))
		}
	}
	list = append(append(list, all.Sample(processesOf)), l.ground.readings()...)
	if l.beside != nil {
		list = append(list, l.beside.reading())
	}
	list = append(list, telemetry.Reading())
	var ok bool
	if next.ticks, ok = deviceBusy(l.ground.below()); ok && known {
		add(sourceDrive, map[string]float64{"busy": min((next.ticks-l.gauges.ticks)/seconds, 1)})
	}
	if known {
		add(sourceFio, map[string]float64{"busiest": busiest})
	}
	if known || l.gauges.at == 0 {
		l.gauges = next
	}
	return list
}

const processesOf = "fio processes" // source of the usage of all fio

// deviceBusy returns how many seconds the device below a directory was busy; false if unknown.
func deviceBusy(dir string) (float64, bool) {
	device, err := deviceOf(dir)
	fs, fsErr := blockdevice.NewDefaultFS()
	if cmp.Or(err, fsErr) != nil {
		return 0, false
	}
	disks, _ := fs.ProcDiskstats()
	for _, d := range disks {
		if d.MajorNumber == unix.Major(device) && d.MinorNumber == unix.Minor(device) {
			return float64(d.IOsTotalTicks) / 1000, true
		}
	}
	return 0, false
}

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

const readAtOnce = 100 // bounds the volumes whose waits are read in one tick; more have turns

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

// inside returns the share of waits within latencies. At a fixed rate fio sleeps until an IO is due, and
// the wait after it delays the submission, from which the latency counts. Of the others at least half are
// assumed to be, since a late fio does not sleep.
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

// delays adds to a histogram of microseconds the waits for a processor in each IO's latency, which are
// divided evenly among the IOs between two readings; all IOs in flight wait.
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

// ownDelay returns the hold's waits for fio's processor, "" if a volume failed, which excuses none.
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

// sleeps reports whether latencies begin after fio's wake-up, and not when an operation is due.
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
