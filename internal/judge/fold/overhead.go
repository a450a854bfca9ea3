package fold

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

const leastPhase = record.Micros(2e6) // shortest phase that counts: a shorter one is mostly the time between two readings

// Phases collects what a run's steps show of the cost of an object.
type Phases struct {
	Steps, Objects int
	most           int // objects in place at the end of any step so far
	By             map[string]*Growth
}

// Growth holds the growth of a source's memory and CPU time, beside the objects that started and stood.
type Growth struct{ MemX, MemY, CPUX, CPUStood, CPUY []float64 }

func (s *Phases) add(spec *result.Spec, f *Facts) {
	if len(f.readings.CPU[usage.SourcePlace]) < 2 || f.head.Open || f.Reached == Never || spec.Arms != nil {
		return
	}
	if s.By == nil {
		s.By = make(map[string]*Growth)
	}
	started := f.find(spec.Kind.Started)
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
		if s.By[source] == nil {
			s.By[source] = &Growth{}
		}
		g, first, last := s.By[source], 0, len(points)-1
		middle, _ := slices.BinarySearchFunc(points, f.Reached, func(p usage.CPUPoint, t record.Micros) int { return cmp.Compare(p.T, t) })
		for _, phase := range [][2]int{{first, middle}, {middle, last}} {
			if max(phase[0], phase[1]) > last || points[phase[1]].T-points[phase[0]].T < leastPhase {
				continue
			}
			p, q := points[phase[0]], points[phase[1]]
			span := (q.T - p.T).Seconds()
			g.CPUX, g.CPUY = append(g.CPUX, (before(q.T)-before(p.T))/span), append(g.CPUY, (q.Used-p.Used)/span)
			g.CPUStood = append(g.CPUStood, (before(p.T)+before(q.T))/2)
		}
		// A process uses again what an earlier, larger load has left it.
		if p, q := points[first], points[last]; p.RSS >= 0 && q.RSS >= 0 && own > 0 && len(starts) > s.most {
			g.MemX, g.MemY = append(g.MemX, own), append(g.MemY, q.RSS-p.RSS)
		}
	}
	s.Steps, s.Objects = s.Steps+1, s.Objects+int(own)
	s.most = max(s.most, len(starts))
}
