package usage

import (
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// The tolerated use of this machine by other programs.
const (
	mostTaken    = 1.0 / 3            // of the processors, the memory or the IO while something waits
	inUse        = 0.9                // of the processors, used by anybody or wanted by the run: beyond it something waits
	mostWaiting  = 0.1                // of the time, with a wait for memory or IO
	perByte      = 4                  // weight of the run's own IO: a file system also writes its journal and blocks
	leastStretch = record.Micros(5e5) // between two readings that say much
)

// NeighboursIn returns the resources of which other programs left the target, or the load, too little
// between two moments, by the closest readings: they took a third, and something waited.
func (c *Readings) NeighboursIn(from, to record.Micros) (list []result.Neighbour) {
	for source := range c.gauges {
		part, kept := strings.CutPrefix(source, SourceProcessors)
		if source != SourceMachine && !kept {
			continue
		}
		d, ok := c.between(source, from, to)
		if !ok {
			continue
		}
		if kept {
			list = append(list, processors(part, d, d.of["ownSeconds"], d.of["waitSeconds"])...)
			continue
		}
		if d.last["targetUnread"] > 0 {
			continue
		}
		own := c.ownIn(d.from, d.to)
		d.of["busySeconds"] = d.of["cpuSeconds"] - d.of["interruptSeconds"]
		list = append(list, processors("", d, own.cpu, 0)...)
		total := d.last["memoryBytes"]
		list = append(list, waited(result.Memory, d, (d.last["memoryUsedBytes"]-own.memory)/total)...)
		if moved := d.of["ioBytes"]; own.ioKnown {
			list = append(list, waited(result.IO, d, (moved-perByte*own.io)/moved)...)
		}
	}
	result.SortNeighbours(list)
	return list
}

// difference is the growth of the values of one source between two readings of it.
type difference struct {
	from, to record.Micros
	of, last map[string]float64
}

// between returns the readings of a source that lie closest about two moments.
func (c *Readings) between(source string, from, to record.Micros) (d difference, ok bool) {
	points := c.gauges[source]
	i, j := 0, len(points)-1
	for i+1 < len(points) && points[i+1].t <= from {
		i++
	}
	for j > i+1 && points[j-1].t >= to {
		j--
	}
	if j <= i || points[j].t-points[i].t < leastStretch {
		return d, false
	}
	d = difference{points[i].t, points[j].t, make(map[string]float64), points[j].values}
	for ; i < j; i++ {
		for name, v := range points[i+1].values {
			d.of[name] += max(v-points[i].values[name], 0) // a value that fell was restarted
		}
	}
	return d, true
}

type ownUse struct {
	cpu, memory, io float64
	ioKnown         bool // of all of them
}

func (c *Readings) ownIn(from, to record.Micros) ownUse {
	own := ownUse{ioKnown: true}
	for _, source := range slices.Sorted(maps.Keys(c.CPU)) { // a sum is the same in the same order
		if source == SourceMachine || source == SourcePlace || PartOfAnother(source) {
			continue
		}
		points := c.CPU[source]
		own.cpu += usedAt(points, to) - usedAt(points, from)
		if last := points[len(points)-1]; last.RSS > 0 {
			own.memory += last.RSS
		}
		if x, ok := c.Sums[source]["ioBytes"]; ok {
			own.io += x.Risen // of the whole step, which is an upper bound
		} else {
			own.ioKnown = false
		}
	}
	return own
}

// processors judges the use of processors by others, with the run's own work and waits.
func processors(part string, d difference, own, waited float64) []result.Neighbour {
	cpus := d.last["cpus"]
	all := cpus * (d.to - d.from).Seconds()
	if !(all > 0) {
		return nil
	}
	others := max(d.of["busySeconds"]-own, 0) / all
	wanted := others + (own+waited)/all
	if !(others > mostTaken && wanted >= inUse) {
		return nil
	}
	return []result.Neighbour{{What: result.Processors, Of: part, CPUs: int(cpus), Others: result.Round(100*min(others, 1), 1), Wanted: result.Round(100*wanted, 1)}}
}

// waited judges memory or IO by the share of others and by how long something waited for it.
func waited(what string, d difference, others float64) []result.Neighbour {
	waiting := d.of[strings.ToLower(what)+"PressureSeconds"] / (d.to - d.from).Seconds()
	if !(others > mostTaken && waiting > mostWaiting) {
		return nil // an unknown share is nil, not 0
	}
	return []result.Neighbour{{What: what, Others: result.Round(100*min(others, 1), 1), Waited: result.Round(100*min(waiting, 1), 1)}}
}
