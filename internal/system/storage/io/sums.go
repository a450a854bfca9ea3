package io

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs/blockdevice"
	"golang.org/x/sys/unix"

	"plimsoll.dev/plimsoll/internal/lab/telemetry"
	"plimsoll.dev/plimsoll/internal/proc"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/local/fio"
)

// sumUp records the sums of the step.
func (l *load) sumUp(s system.Schedule) {
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

// spread returns by how many seconds the first volume was ahead of the last one: for jobs that end by
// themselves at their end, for others when the fastest had done as much as the slowest in the hold.
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

// processesOf is the source of the usage of all fio.
const processesOf = "fio processes"

// deviceBusy returns for how many seconds the device below a directory has been busy; false where
// unknown.
func deviceBusy(dir string) (float64, bool) {
	device, err := deviceOf(dir)
	if err != nil {
		return 0, false
	}
	fs, err := blockdevice.NewDefaultFS()
	if err != nil {
		return 0, false
	}
	disks, err := fs.ProcDiskstats()
	if err != nil {
		return 0, false
	}
	for _, d := range disks {
		if d.MajorNumber == unix.Major(device) && d.MinorNumber == unix.Minor(device) {
			return float64(d.IOsTotalTicks) / 1000, true
		}
	}
	return 0, false
}
