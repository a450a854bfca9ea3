package findings

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/text/number"
)

const (
	rankAlpha = 1 - result.Confidence // p-value at which ranks go together
	// lawSeed draws the lots of the tests: the same record always gives the same result.
	lawSeed      = 1
	othersInLaws = 100.0 / 3 // percentage of the CPUs that other programs may use in a step of a law
	orderTold    = 0.95      // largest correlation of levels with the order of steps that can be separated
	leastCPU     = 0.1       // least CPU time of a process that counts, in seconds: systems report hundredths
)

// LawsOf finds the costs of an object by the steps in their order; nil for arms or for one level.
func LawsOf(spec result.Spec, made []result.Step) *result.Laws {
	if spec.Arms != nil {
		return nil
	}
	l := &result.Laws{Unit: spec.Unit, LeftOut: []result.LeftOut{}, List: []result.Law{}}
	var steps []lawStep
	var levels []float64
	for i := range made {
		s := lawStep{Step: &made[i]}
		switch {
		case s.Ending == record.EndGuard:
			s.out = "a guard stopped it"
		case !s.Verdict.Decided():
			s.out = fmt.Sprintf("it is %s: %s", s.Verdict, s.VerdictWhy)
		case slices.ContainsFunc(s.Breaches, func(x result.Breach) bool { return x.Kind == result.BreachStandstill }):
			s.out = "all writes stood still"
		default:
			levels = append(levels, s.LevelReached)
		}
		if s.Bottleneck.By(result.Others) >= othersInLaws {
			s.busy = "other programs used a third of the CPUs"
		} else if n := s.Bottleneck; n != nil && n.CPUBusy != nil && max(*n.CPUBusy, n.CPUPeak) >= fold.CPUsBusy {
			s.busy = "the CPUs were busy"
		}
		if s.out != "" {
			l.LeftOut = append(l.LeftOut, result.LeftOut{Step: s.ID, Why: s.out})
		}
		steps = append(steps, s)
	}
	slices.Sort(levels)
	levels = slices.Compact(levels)
	if len(levels) < 2 {
		return nil
	}
	l.Levels, l.Lowest, l.Highest = len(levels), levels[0], levels[len(levels)-1]

	used := make(map[string]result.Usage)
	for _, s := range steps {
		maps.Copy(used, s.Resources)
	}
	sources := slices.Sorted(maps.Keys(used))
	var drafts []*lawDraft
	if !slices.ContainsFunc(steps, func(s lawStep) bool { return s.Open }) { // else objects come and go
		for _, source := range sources {
			drafts = append(drafts, inPlaceLaw(spec, steps, source+" memory", result.LawMemory, "B", func(s lawStep) float64 { return float64(s.Resources[source].PeakMemory()) }))
		}
		for _, m := range spec.Kind.Metrics {
			if m.Per == nil && m.Of.Fold == record.FoldMost && !m.Everywhere() {
				drafts = append(drafts, inPlaceLaw(spec, steps, m.Called(), result.LawCount, m.Unit, func(s lawStep) float64 { return s.Metrics[m.Name] }))
			}
		}
	}
	for _, source := range sources {
		drafts = append(drafts, cpuLaw(spec, steps, source))
	}
	for _, d := range drafts {
		d.fit()
		l.List = append(l.List, d.Law)
	}
	return l
}

type lawStep struct {
	*result.Step
	out  string // why every fit leaves it out
	busy string // why only a fit of memory takes it
}

func (s lawStep) ownObjects(arrived string) int {
	if a := s.Arrivals; s.Open && a != nil {
		return a.WarmUp + a.Judged - a.Dropped
	}
	return s.Latency[arrived].N
}

type lawDraft struct {
	result.Law
	x, y []float64
}

func newLawDraft(name, of, x, xUnit, yUnit string) *lawDraft {
	return &lawDraft{Law: result.Law{
		Name: name, Of: of, X: x, XUnit: xUnit, YUnit: yUnit,
		Points: []result.LawPoint{}, LeftOut: []result.LeftOut{}, Warnings: []string{},
	}}
}

func (d *lawDraft) leaveOut(step int, why string) {
	d.LeftOut = append(d.LeftOut, result.LeftOut{Step: step, Why: why})
}

func (d *lawDraft) addPoint(step int, x, y float64) {
	d.x, d.y = append(d.x, x), append(d.y, y)
	d.Points = append(d.Points, result.LawPoint{Step: step, X: result.Round(x, 6), Y: result.Digits(y)})
}

// fit fits the line to the points, and withdraws it where no test supports it.
func (d *lawDraft) fit() {
	if levels := slices.Compact(slices.Sorted(slices.Values(d.x))); len(levels) > 0 {
		d.Levels, d.Lowest, d.Highest = len(levels), result.Round(levels[0], 6), result.Round(levels[len(levels)-1], 6)
	}
	law, err := stats.FitLine(d.x, d.y, result.Confidence)
	if err != nil {
		d.Refused = err.Error()
		if d.Of == result.LawCPU {
			d.Refused = strings.Replace(d.Refused, "levels", "different rates of objects", 1)
		}
		return
	}
	p := stats.RankP(d.x, d.y, lawSeed)
	d.P = result.Significant(p)
	order := make([]float64, len(d.x))
	for i := range order {
		order[i] = float64(i)
	}
	if p > rankAlpha {
		d.Refused = "no trend is shown (by ranks, p " + number.P(p) + ")"
		return
	}
	if math.Abs(stat.Correlation(d.x, order, nil)) > orderTold {
		d.Warnings = append(d.Warnings, "the levels rose with the order of the steps: what changes with time alone is counted too")
	} else if slope, _, err := stats.FitPlane(d.x, order, d.y, result.Confidence); err == nil && slope.Lo <= 0 && slope.Hi >= 0 {
		d.Refused = "it may hang on the order of the steps instead"
		return
	}
	d.Line = &result.LineLaw{Intercept: result.IntervalOf(law.Intercept), Slope: result.IntervalOf(law.Slope), Wrong: law.Wrong}
	d.Misfit = result.Significant(law.SD)
}

// cpuLaw returns the law of busy processors by objects per second: its slope is an object's CPU time.
func cpuLaw(spec result.Spec, steps []lawStep, source string) *lawDraft {
	d := newLawDraft(source+" CPU", result.LawCPU, "objects a second", "objects/s", "CPUs")
	for _, s := range steps {
		u, ok := s.Resources[source]
		own := s.ownObjects(spec.Kind.There)
		switch {
		case s.out != "":
		case s.busy != "":
			d.leaveOut(s.ID, s.busy)
		case own == 0:
			d.leaveOut(s.ID, "it asked for nothing")
		case !ok || s.Seconds <= 0:
			d.leaveOut(s.ID, "it is unknown")
		case u.CPUSeconds < leastCPU:
			d.leaveOut(s.ID, fmt.Sprintf("it used less than %g s, too little for a resolution of 0.01 s", leastCPU))
		default:
			d.addPoint(s.ID, float64(own)/s.Seconds, u.CPUSeconds/s.Seconds)
		}
	}
	return d
}

// inPlaceLaw returns the law of what objects take as long as they are in place; 0 is unknown. A process
// keeps memory of an earlier, larger load, so a step with less in place counts only in a new lab.
func inPlaceLaw(spec result.Spec, steps []lawStep, name, of, unit string, value func(lawStep) float64) *lawDraft {
	d := newLawDraft(name, of, "objects", "objects", unit)
	most, removed, stained := 0, false, false
	for _, s := range steps {
		in := s.Account().Created
		if s.Streams() { // no object stays: the level is in place
			in = int(s.LevelReached)
			d.X, d.XUnit = cmp.Or(spec.Axis, "level"), spec.Unit
		}
		if spec.Kind.FreshPerStep || s.FromEmpty && spec.FreshLab {
			most, removed = 0, false
		}
		removed = removed || s.FromEmpty && most > 0
		y := value(s)
		switch {
		case s.out != "":
		case y <= 0:
			d.leaveOut(s.ID, "it is unknown")
		case in < most:
			d.leaveOut(s.ID, fmt.Sprintf("an earlier step had %s in place, and processes keep memory", result.ManyObjects(most)))
		default:
			stained = stained || removed
			d.addPoint(s.ID, float64(in), y)
		}
		most = max(most, in)
	}
	if stained {
		d.Warnings = append(d.Warnings, "some steps began from empty after others: memory of the earlier ones may be left")
	}
	return d
}

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
