package analyze

import (
	"fmt"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/stats"
)

// Overhead is what one pod more costs each part of a real node and of the
// control plane beside it. It is told where a real node's use is on record.
//
// Memory is told by the laws along the axis where there are levels enough, and
// else, as CPU time for a start always is, from stretches of some seconds of
// all steps: what a process took more in each is held against how many pods
// started in it, and of CPU time how many stood, each start spread evenly over its way from the first news of it to a
// moment after its containers ran. The slope is one pod's; what a process takes as time goes by
// falls to the intercept. Such a stretch does not depend on the one before it,
// as two readings of one counter would. When within its way a start takes what
// it takes is not known, which can put a slope some per cent off beside what its
// interval says.
type Overhead struct {
	// Stretches is how many there are, of Seconds each or a little more, and
	// Pods how many pods started in them.
	Stretches int       `json:"stretches"`
	Seconds   float64   `json:"seconds"`
	Pods      int       `json:"pods"`
	Costs     []PodCost `json:"costs"` // by source
}

// PodCost is what one pod more costs one process.
type PodCost struct {
	Source string `json:"source"`
	// Memory is in bytes.
	Memory Slope `json:"memory"`
	// Start is the CPU time in seconds that its start takes.
	Start Slope `json:"start"`
	// Stand is how many CPUs it keeps busy while it stands. The two are told
	// apart by stretches in which few start beside many that stand.
	Stand Slope `json:"stand"`
}

// Slope is a cost of one pod with its interval of 95 %; all of it is null where
// Unknown says why it is not known.
type Slope struct {
	Interval
	// From is what it stands on: FromLevels or FromStretches.
	From    string `json:"from,omitempty"`
	Points  int    `json:"points,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// What a slope stands on.
const (
	FromLevels    = "levels"
	FromStretches = "stretches"
)

const (
	// stretch is how long one is at least: what a pod's start takes is spread
	// over some seconds, and so is its memory.
	stretch = record.Micros(5e6)
	// leastStarts is from how many pods on a cost of one is told.
	leastStarts = 10
)

// stretches collects what a run's steps tell of the cost of a pod.
type stretches struct {
	pods int
	n    int
	most int // pods in place at the end of any step so far
	by   map[string]*growth
}

// growth is what a source used more in each stretch, and how many pods started
// in it, both by the second, and how many stood.
type growth struct{ memX, memY, cpuX, cpuStood, cpuY []float64 }

// addOverhead takes in a step that has ended, while its readings are there.
func (b *Builder) addOverhead(c *building) {
	if len(c.series.cpu[SourceNode]) < 2 || c.Open || b.spec.Arms != nil {
		return
	}
	s := &b.stretches
	if s.by == nil {
		s.by = make(map[string]*growth)
	}
	starts := b.startsInPlace()
	before := func(t record.Micros) float64 {
		n := 0.0
		for _, w := range starts {
			n += w.done(t)
		}
		return n
	}
	counted := false
	for source, points := range c.series.cpu {
		if source == SourceMachine {
			continue
		}
		g := s.by[source]
		if g == nil {
			g = &growth{}
			s.by[source] = g
		}
		n, pods := 0, 0.0
		for i, j := 0, 1; j < len(points); j++ {
			p, q := points[i], points[j]
			if q.t-p.t < stretch {
				continue
			}
			i = j
			span := (q.t - p.t).Seconds()
			began := before(q.t) - before(p.t)
			n, pods = n+1, pods+began
			g.cpuX, g.cpuY = append(g.cpuX, began/span), append(g.cpuY, (q.used-p.used)/span)
			g.cpuStood = append(g.cpuStood, (before(p.t)+before(q.t))/2)
			// What an earlier, larger load has left behind a process has not to
			// be taken again.
			if p.rss >= 0 && q.rss >= 0 && before(q.t) > float64(s.most)-0.5 {
				g.memX, g.memY = append(g.memX, began/span), append(g.memY, (q.rss-p.rss)/span)
			}
		}
		if !counted && source == SourceNode {
			s.n, s.pods, counted = s.n+n, s.pods+int(pods+0.5), true
		}
	}
	s.most = max(s.most, len(starts))
}

// way is a pod's way to its start.
type way struct{ from, to record.Micros }

// done is how much of it lay behind at a time.
func (w way) done(t record.Micros) float64 {
	switch {
	case t >= w.to:
		return 1
	case t <= w.from:
		return 0
	}
	return float64(t-w.from) / float64(w.to-w.from)
}

// startsInPlace are the ways of the objects in place that have started. Much of
// the work is done before the news of it, and some after.
func (b *Builder) startsInPlace() []way {
	started, ok := b.index[milestoneStarted]
	if !ok {
		started = b.arrived
	}
	var starts []way
	for _, s := range b.place.slots {
		for _, o := range s.objects {
			if t := o.reached(started); t != never && !o.gone {
				starts = append(starts, way{min(o.first, t), t + aftermath})
			}
		}
	}
	return starts
}

// aftermath is for how long after a pod has started its start still takes
// something: a program does its own first.
const aftermath = record.Micros(2e6)

// milestoneStarted is when all containers of a pod run.
const milestoneStarted = "ContainersStarted"

// overhead is what one pod costs by all that was seen, nil without a real node.
func (b *Builder) overhead(laws *Laws) *Overhead {
	s := &b.stretches
	if s.by == nil {
		return nil
	}
	o := &Overhead{Stretches: s.n, Seconds: stretch.Seconds(), Pods: s.pods, Costs: []PodCost{}}
	for _, source := range slices.Sorted(maps.Keys(s.by)) {
		g := s.by[source]
		if source == SourceSelf {
			continue // it is no part of what is loaded
		}
		cost := PodCost{Source: source}
		cost.Start, cost.Stand = g.costOfCPU(s.pods)
		if source == SourceRuntime {
			cost.Memory.Unknown = "a runtime's processes are gone before their memory is seen"
		} else if cost.Memory = lawOfMemory(laws, source); cost.Memory.Unknown != "" {
			cost.Memory = g.costOfMemory(s.pods)
		}
		o.Costs = append(o.Costs, cost)
	}
	return o
}

func (g *growth) costOfCPU(pods int) (start, stand Slope) {
	starts, stands, err := stats.FitPlane(g.cpuX, g.cpuStood, g.cpuY, confidence)
	if why := tooFew(g.cpuX, pods, err); why != "" {
		return Slope{Unknown: why}, Slope{Unknown: why}
	}
	return Slope{Interval: intervalOf(starts), From: FromStretches, Points: len(g.cpuX)},
		Slope{Interval: intervalOf(stands), From: FromStretches, Points: len(g.cpuX)}
}

func (g *growth) costOfMemory(pods int) Slope {
	line, err := stats.FitLine(g.memX, g.memY, stats.Absolute, confidence)
	if why := tooFew(g.memX, pods, err); why != "" {
		return Slope{Unknown: why}
	}
	return Slope{Interval: intervalOf(line.Slope), From: FromStretches, Points: line.N}
}

// tooFew says why stretches tell no cost, "" if they do.
func tooFew(x []float64, pods int, err error) string {
	busy := 0
	for _, v := range x {
		if v > 0 {
			busy++
		}
	}
	switch {
	case pods < leastStarts:
		return fmt.Sprintf("%d pods started in whole stretches of %g s, and it takes %d", pods, stretch.Seconds(), leastStarts)
	case busy < stats.LawLevels-1:
		return fmt.Sprintf("pods started in %d of %d stretches of %g s, and it takes %d", busy, len(x), stretch.Seconds(), stats.LawLevels-1)
	case err != nil:
		return fmt.Sprintf("of %d stretches of %g s: %v", len(x), stretch.Seconds(), err)
	}
	return ""
}

// lawOfMemory is what the steps along the axis tell of a source's memory.
func lawOfMemory(laws *Laws, source string) Slope {
	if laws != nil {
		for _, l := range laws.List {
			if l.Of == LawMemory && l.Name == source+" memory" && l.Line != nil && l.Line.Wrong == "" {
				return Slope{Interval: l.Line.Slope, From: FromLevels, Points: len(l.Points)}
			}
		}
	}
	return Slope{Unknown: "there is no law along the axis"}
}
