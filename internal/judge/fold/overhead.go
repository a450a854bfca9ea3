package fold

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
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
func (s *phases) add(spec *result.Spec, f *Facts) {
	if len(f.readings.CPU[usage.SourceNode]) < 2 || f.head.Open || f.Reached == Never || spec.Arms != nil {
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
	own := before(f.End) - before(f.Start)
	for source, points := range f.readings.CPU {
		if source == usage.SourceMachine {
			continue
		}
		g := s.by[source]
		if g == nil {
			g = &growth{}
			s.by[source] = g
		}
		first, last := 0, len(points)-1
		middle, _ := slices.BinarySearchFunc(points, f.Reached, func(p usage.CPUPoint, t record.Micros) int { return cmp.Compare(p.T, t) })
		for _, phase := range [][2]int{{first, middle}, {middle, last}} {
			if max(phase[0], phase[1]) > last || points[phase[1]].T-points[phase[0]].T < leastPhase {
				continue
			}
			p, q := points[phase[0]], points[phase[1]]
			span := (q.T - p.T).Seconds()
			g.cpuX, g.cpuY = append(g.cpuX, (before(q.T)-before(p.T))/span), append(g.cpuY, (q.Used-p.Used)/span)
			g.cpuStood = append(g.cpuStood, (before(p.T)+before(q.T))/2)
		}
		// What an earlier, larger load has left behind a process has not to be
		// taken again.
		if p, q := points[first], points[last]; p.RSS >= 0 && q.RSS >= 0 && own > 0 && len(starts) > s.most {
			g.memX, g.memY = append(g.memX, own), append(g.memY, q.RSS-p.RSS)
		}
	}
	s.steps, s.objects = s.steps+1, s.objects+int(own)
	s.most = max(s.most, len(starts))
}

// overhead is what one object costs by all that was seen, nil without a real node.
func (s *phases) overhead(laws *result.Laws) *result.Overhead {
	if s.by == nil {
		return nil
	}
	o := &result.Overhead{Steps: s.steps, Objects: s.objects, Costs: []result.ObjectCost{}}
	for _, source := range slices.Sorted(maps.Keys(s.by)) {
		g := s.by[source]
		if source == usage.SourceSelf {
			continue // it is no part of what is loaded
		}
		cost := result.ObjectCost{Source: source}
		cost.Start, cost.Stand = g.costOfCPU()
		if source == usage.SourceRuntime {
			cost.Memory.Unknown = "the runtime's processes end before their memory is read"
		} else if cost.Memory = lawOfMemory(laws, source); cost.Memory.Unknown != "" {
			cost.Memory = g.costOfMemory()
		}
		o.Costs = append(o.Costs, cost)
	}
	return o
}

func (g *growth) costOfCPU() (start, stand result.Slope) {
	starts, stands, err := stats.FitPlane(g.cpuX, g.cpuStood, g.cpuY, result.Confidence)
	if err != nil {
		why := fmt.Sprintf("%d loading and hold phases: %v", len(g.cpuX), err)
		return result.Slope{Unknown: why}, result.Slope{Unknown: why}
	}
	return result.Slope{Interval: result.IntervalOf(starts), From: result.FromPhases, Points: len(g.cpuX)},
		result.Slope{Interval: result.IntervalOf(stands), From: result.FromPhases, Points: len(g.cpuX)}
}

func (g *growth) costOfMemory() result.Slope {
	each, err := stats.FitRay(g.memX, g.memY, result.Confidence)
	if err != nil {
		return result.Slope{Unknown: fmt.Sprintf("%d steps that raised the level: %v", len(g.memX), err)}
	}
	return result.Slope{Interval: result.IntervalOf(each), From: result.FromSteps, Points: len(g.memX)}
}

// lawOfMemory is what the steps along the axis tell of a source's memory.
func lawOfMemory(laws *result.Laws, source string) result.Slope {
	if laws != nil {
		for _, l := range laws.List {
			if l.Of == result.LawMemory && l.Name == source+" memory" && l.Line != nil && l.Line.Wrong == "" {
				return result.Slope{Interval: l.Line.Slope, From: result.FromLevels, Points: len(l.Points)}
			}
		}
	}
	return result.Slope{Unknown: "no fit along the axis"}
}
