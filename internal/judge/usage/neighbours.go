package usage

import (
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// What programs beside the run may take of this machine.
const (
	// mostTaken is their share of the processors, the memory or the IO that may be
	// theirs though something waits.
	mostTaken = 1.0 / 3
	// inUse is the share of processors from which on something waits for them: used
	// by anybody, or waited for by the run.
	inUse = 0.9
	// mostWaiting is the share of time in which something may wait for memory or IO.
	mostWaiting = 0.1
	// perByte is how often each byte of the run's own IO counts: a file system
	// writes its journal and its own blocks besides.
	perByte = 4
	// leastStretch is the shortest time between two readings that says much.
	leastStretch = record.Micros(5e5)
)

// NeighboursIn are the resources of which programs beside the run left the target, or what loads it,
// short between two moments: they took more than a third of it, and something waited. It is of what the
// readings lie closest about the moments, and nothing where the target's own use is not among them.
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

// difference is by how much the values of one source grew between two readings of it.
type difference struct {
	from, to record.Micros
	of, last map[string]float64
}

// between are the readings of a source that lie closest about two moments.
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
			d.of[name] += max(v-points[i].values[name], 0) // what fell was started again
		}
	}
	return d, true
}

// ownUse is what the run's own parts used.
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
			own.io += x.Risen // of the whole step: more than in a part of it
		} else {
			own.ioKnown = false
		}
	}
	return own
}

// processors judges those of the machine, or of a part, by how long programs worked
// on them, and the run's own worked and waited.
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

// waited judges memory or IO by the share that others have of it and by for how long
// something waited for it.
func waited(what string, d difference, others float64) []result.Neighbour {
	waiting := d.of[strings.ToLower(what)+"PressureSeconds"] / (d.to - d.from).Seconds()
	if !(others > mostTaken && waiting > mostWaiting) {
		return nil // an unknown share is nil, not 0
	}
	return []result.Neighbour{{What: what, Others: result.Round(100*min(others, 1), 1), Waited: result.Round(100*min(waiting, 1), 1)}}
}
