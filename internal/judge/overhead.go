package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/record"
)

// Overhead is what one object more costs each part of a real node and of the
// control plane beside it. It is known where a real node's use is on record.
//
// Memory comes from the laws along the axis where there are levels enough, and
// else by what each step has added over all of it. CPU time comes from phases:
// each step whose level was reached has one until then, in which objects start,
// and its hold, in which they stand. Shorter stretches would tell more, and
// wrongly: a program in a pod, say, goes on starting for seconds after its container
// runs, so that what it takes would fall to another stretch than its start.
type Overhead struct {
	// Steps is how many it stands on, and Objects how many started in them.
	Steps   int          `json:"steps"`
	Objects int          `json:"pods"`
	Costs   []ObjectCost `json:"costs"` // by source
}

// ObjectCost is what one object more costs one process.
type ObjectCost struct {
	Source string `json:"source"`
	// Memory is in bytes.
	Memory Slope `json:"memory"`
	// Start is the CPU time in seconds that its start takes.
	Start Slope `json:"start"`
	// Stand is how many CPUs it keeps busy while it stands.
	Stand Slope `json:"stand"`
}

// Slope is a cost of one object with its interval of 95 %; all of it is null where
// Unknown says why it is not known.
type Slope struct {
	Interval
	// From is what it stands on: FromLevels, FromSteps or FromPhases.
	From    string `json:"from,omitempty"`
	Points  int    `json:"points,omitempty"`
	Unknown string `json:"unknown,omitempty"`
}

// What a slope stands on.
const (
	FromLevels = "levels" // a law along the axis
	FromSteps  = "steps"
	FromPhases = "phases"
)

// leastPhase is how long a phase is at least that counts: a shorter one is
// mostly the time between two readings.
const leastPhase = record.Micros(2e6)

// phases collects what a run's steps tell of the cost of an object.
type phases struct {
	steps, objects int
	most           int // objects in place at the end of any step so far
	by             map[string]*growth
}

// growth is what a source took more: of memory in each step, of CPU time by the
// second in each phase; and how many objects started meanwhile, and stood.
type growth struct{ memX, memY, cpuX, cpuStood, cpuY []float64 }

// add takes in a step that has ended.
func (s *phases) add(spec *Spec, f *facts) {
	if len(f.readings.cpu[SourceNode]) < 2 || f.head.Open || f.reached == never || spec.Arms != nil {
		return
	}
	if s.by == nil {
		s.by = make(map[string]*growth)
	}
	started := f.of(spec.Kind.Started)
	if started < 0 {
		started = f.there
	}
	starts := f.startsInPlace(started)
	before := func(t record.Micros) float64 {
		n, _ := slices.BinarySearch(starts, t+1)
		return float64(n)
	}
	own := before(f.end) - before(f.start)
	for source, points := range f.readings.cpu {
		if source == SourceMachine {
			continue
		}
		g := s.by[source]
		if g == nil {
			g = &growth{}
			s.by[source] = g
		}
		first, last := 0, len(points)-1
		middle, _ := slices.BinarySearchFunc(points, f.reached, func(p cpuPoint, t record.Micros) int { return cmp.Compare(p.t, t) })
		for _, phase := range [][2]int{{first, middle}, {middle, last}} {
			if max(phase[0], phase[1]) > last || points[phase[1]].t-points[phase[0]].t < leastPhase {
				continue
			}
			p, q := points[phase[0]], points[phase[1]]
			span := (q.t - p.t).Seconds()
			g.cpuX, g.cpuY = append(g.cpuX, (before(q.t)-before(p.t))/span), append(g.cpuY, (q.used-p.used)/span)
			g.cpuStood = append(g.cpuStood, (before(p.t)+before(q.t))/2)
		}
		// What an earlier, larger load has left behind a process has not to be
		// taken again.
		if p, q := points[first], points[last]; p.rss >= 0 && q.rss >= 0 && own > 0 && len(starts) > s.most {
			g.memX, g.memY = append(g.memX, own), append(g.memY, q.rss-p.rss)
		}
	}
	s.steps, s.objects = s.steps+1, s.objects+int(own)
	s.most = max(s.most, len(starts))
}

// overhead is what one object costs by all that was seen, nil without a real node.
func (s *phases) overhead(laws *Laws) *Overhead {
	if s.by == nil {
		return nil
	}
	o := &Overhead{Steps: s.steps, Objects: s.objects, Costs: []ObjectCost{}}
	for _, source := range slices.Sorted(maps.Keys(s.by)) {
		g := s.by[source]
		if source == SourceSelf {
			continue // it is no part of what is loaded
		}
		cost := ObjectCost{Source: source}
		cost.Start, cost.Stand = g.costOfCPU()
		if source == SourceRuntime {
			cost.Memory.Unknown = "the runtime's processes end before their memory is read"
		} else if cost.Memory = lawOfMemory(laws, source); cost.Memory.Unknown != "" {
			cost.Memory = g.costOfMemory()
		}
		o.Costs = append(o.Costs, cost)
	}
	return o
}

func (g *growth) costOfCPU() (start, stand Slope) {
	starts, stands, err := stats.FitPlane(g.cpuX, g.cpuStood, g.cpuY, confidence)
	if err != nil {
		why := fmt.Sprintf("%d loading and hold phases: %v", len(g.cpuX), err)
		return Slope{Unknown: why}, Slope{Unknown: why}
	}
	return Slope{Interval: intervalOf(starts), From: FromPhases, Points: len(g.cpuX)},
		Slope{Interval: intervalOf(stands), From: FromPhases, Points: len(g.cpuX)}
}

func (g *growth) costOfMemory() Slope {
	each, err := stats.FitRay(g.memX, g.memY, confidence)
	if err != nil {
		return Slope{Unknown: fmt.Sprintf("%d steps that raised the level: %v", len(g.memX), err)}
	}
	return Slope{Interval: intervalOf(each), From: FromSteps, Points: len(g.memX)}
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
	return Slope{Unknown: "no fit along the axis"}
}
