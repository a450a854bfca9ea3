package kubernetes

import (
	"math"

	"plimsoll.dev/plimsoll/internal/system"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/create"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

type axis struct {
	plan func(r *raising) (create.Raising, error)
	// reached returns the level that the load reaches once the population includes it.
	reached func(r *raising) float64
	// due says whether request i may be made now; nil allows all at once.
	due    func(r *raising) func(i int) bool
	atOnce bool // says that all objects of a level are requested at once
}

type raising struct {
	*Target
	level  system.Level
	nodes  int // the level is an average over them
	others int // other pods on these nodes
	load   create.Raising
}

// whole returns the level as a whole number, rounded down.
func (r *raising) whole() int { return int(math.Floor(r.level.Value + 1e-9)) }

// job returns the index of the level's job: the last one, or on the axis of jobs that of the level's number.
func (r *raising) job() int {
	if r.Load.Axis == observe.AxisJobs {
		return r.whole() - 1
	}
	return len(r.Load.Config.Jobs) - 1
}

// axes returns the load axes of a cluster by name; see observe.Declare.
func axes() map[string]axis {
	asked := func(r *raising) float64 { return r.level.Value }
	inPlace := axis{
		plan:    func(r *raising) (create.Raising, error) { return r.population.Plan(r.whole()) },
		reached: func(r *raising) float64 { return float64(r.population.Units) },
	}
	atOnce := inPlace
	atOnce.atOnce = true
	return map[string]axis{
		observe.AxisObjects: inPlace, observe.AxisAllAtOnce: atOnce, observe.AxisAtOnce: atOnce,
		observe.AxisPodsPerNode: {
			plan: func(r *raising) (create.Raising, error) {
				return r.population.Plan(int(math.Floor(r.level.Value*float64(r.nodes)+1e-9)) - r.others)
			},
			reached: func(r *raising) float64 { return float64(r.others+r.population.Units) / float64(r.nodes) },
		},
		observe.AxisRate: {
			plan: func(r *raising) (create.Raising, error) {
				return r.population.Plan(r.population.Units + int(math.Ceil(r.level.Value*r.level.Span.Seconds()-1e-9)))
			},
			reached: func(r *raising) float64 { return float64(r.load.Units) / r.level.Span.Seconds() },
		},
		observe.AxisIterations: {
			plan:    func(r *raising) (create.Raising, error) { return r.population.PlanIterations(r.whole()), nil },
			reached: func(r *raising) float64 { return float64(r.population.Iterations) },
		},
		observe.AxisSettings: {plan: func(r *raising) (create.Raising, error) { return r.population.PlanJobs(r.population.All()) }, reached: asked},
		observe.AxisJobs:     {plan: func(r *raising) (create.Raising, error) { return r.population.PlanJobs(r.whole()) }, reached: asked},
		observe.AxisBulk: {
			plan:    func(r *raising) (create.Raising, error) { return r.population.Plan(r.population.Whole()) },
			reached: asked, atOnce: true,
			due: func(r *raising) func(i int) bool { // each bulk goes when all earlier ones are ready or failed
				size := int(r.level.Value)
				return func(i int) bool { return r.settled() >= i/size*size }
			},
		},
	}
}
