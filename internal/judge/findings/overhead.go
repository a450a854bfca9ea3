package findings

import (
	"fmt"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
)

// OverheadOf returns the cost of one object, nil without a real node.
func OverheadOf(s *fold.Phases, laws *result.Laws) *result.Overhead {
	if s.By == nil {
		return nil
	}
	o := &result.Overhead{Steps: s.Steps, Objects: s.Objects, Costs: []result.ObjectCost{}}
	for _, source := range slices.Sorted(maps.Keys(s.By)) {
		g := s.By[source]
		if source == usage.SourceSelf {
			continue // it is not a part of the target
		}
		cost := result.ObjectCost{Source: source}
		cost.Start, cost.Stand = costOfCPU(g)
		if source == usage.SourceRuntime {
			cost.Memory.Unknown = "the runtime's processes end before their memory is read"
		} else if cost.Memory = lawOfMemory(laws, source); cost.Memory.Unknown != "" {
			cost.Memory = costOfMemory(g)
		}
		o.Costs = append(o.Costs, cost)
	}
	return o
}

func costOfCPU(g *fold.Growth) (start, stand result.Slope) {
	starts, stands, err := stats.FitPlane(g.CPUX, g.CPUStood, g.CPUY, result.Confidence)
	if err != nil {
		why := fmt.Sprintf("%d loading and hold phases: %v", len(g.CPUX), err)
		return result.Slope{Unknown: why}, result.Slope{Unknown: why}
	}
	return result.Slope{Interval: result.IntervalOf(starts), From: result.FromPhases, Points: len(g.CPUX)},
		result.Slope{Interval: result.IntervalOf(stands), From: result.FromPhases, Points: len(g.CPUX)}
}

func costOfMemory(g *fold.Growth) result.Slope {
	each, err := stats.FitRay(g.MemX, g.MemY, result.Confidence)
	if err != nil {
		return result.Slope{Unknown: fmt.Sprintf("%d steps that raised the level: %v", len(g.MemX), err)}
	}
	return result.Slope{Interval: result.IntervalOf(each), From: result.FromSteps, Points: len(g.MemX)}
}

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
