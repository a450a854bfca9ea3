package judge

import "plimsoll.dev/plimsoll/internal/plan/slo"

// judged is a step as it was judged, with what the findings over the whole run
// need of it besides.
type judged struct {
	measured
	binding map[string]string // by goal: what it broke on
	// largest are the objectives that were judged by a maximum.
	largest []string
	// stood is how long all writes stood still at most, in seconds.
	stood float64
	// Where it is the first step, it tells what is normal: how often each
	// trouble was seen, and its figures.
	sightings map[BreachKind]int
	normal    map[string]float64
	// again says that the step was cut and is made again by a run that was
	// resumed: it decides nothing.
	again bool
}

// judge judges a step by its facts. The first is the first step of the run that
// decides anything, nil for that step itself.
func judge(spec *Spec, m *measured, f *facts, first *judged) *judged {
	s := &judged{measured: *m, binding: make(map[string]string)}
	s.Goals = make(map[string]slo.Verdict, len(spec.Goals))
	s.Verdict, s.VerdictWhy = slo.Inconclusive, "no goal was given"
	v := &verdicts{spec: spec, f: f, step: s, normal: first.asBaseline()}
	v.addGuards()
	for i, g := range spec.Goals {
		verdict, why := v.goal(g)
		s.Goals[g.Name] = verdict
		if i == 0 {
			s.Verdict, s.VerdictWhy = verdict, why
		}
	}
	s.orderBreaches(spec, f, first)
	s.describe(f, first)
	return s
}
