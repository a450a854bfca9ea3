package verdict

import (
	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// Judged is a judged step, with what the findings over the whole run need besides.
type Judged struct {
	fold.Measured
	Binding map[string]string // by goal: what broke it
	Largest []string          // objectives that were judged by a maximum
	Stood   float64           // the longest standstill of all writes, in seconds
	Silent  []string          // a sentence for each idle actor
	Exact   bool              // every place was full and refused the rest, which is not chance
	Again   bool              // the step was cut and a resumed run repeats it: it decides nothing

	sightings map[result.BreachKind]int // of the first step, as the normal ones
	normal    map[string]float64        // figures of the first step
}

// Judge judges a step by its facts; first is the run's first deciding step, nil for that step itself.
func Judge(spec *result.Spec, m *fold.Measured, f *fold.Facts, first *Judged) *Judged {
	s := &Judged{Measured: *m, Binding: make(map[string]string)}
	s.Goals = make(map[string]slo.Verdict, len(spec.Goals))
	s.Verdict, s.VerdictWhy = slo.Inconclusive, "no goal was given"
	v := &verdicts{spec: spec, f: f, step: s, normal: first.asBaseline()}
	v.addGuards()
	v.leaveOut()
	for i, g := range spec.Goals {
		verdict, why := v.goal(g)
		if verdict == slo.Inconclusive && f.Stopped() {
			why = f.Silent[0].String() + "; " + why
		}
		s.Goals[g.Name] = verdict
		if i == 0 {
			s.Verdict, s.VerdictWhy = verdict, why
		}
	}
	s.Exact = len(s.Reasons) == 1 && s.Reasons[0].Nowhere && s.Reasons[0].Certain == s.Account().Intended-s.Account().Ready
	s.orderBreaches(spec, f, first)
	s.describe(f, first)
	return s
}

// Undecide withdraws the verdict of a step that is not wholly known.
func (c *Judged) Undecide(why string) {
	c.Binding, c.Verdict, c.VerdictWhy = nil, slo.Inconclusive, why
	for goal := range c.Goals {
		c.Goals[goal] = slo.Inconclusive
	}
	for i := range c.Breaches {
		c.Breaches[i].Decided, c.Breaches[i].Goals = false, nil
	}
}

// Failed reports whether a goal did not hold in the step.
func (c *Judged) Failed() bool {
	for _, v := range c.Goals {
		if v == slo.Fail {
			return true
		}
	}
	return false
}

// ClearVerdicts withdraws the verdicts of a step that is repeated.
func (s *Judged) ClearVerdicts() {
	if s.Again {
		return
	}
	s.Again, s.Binding = true, nil
	s.Verdict, s.VerdictWhy = slo.Inconclusive, "the step was cut off and is repeated: "+s.Message
	for goal := range s.Goals {
		s.Goals[goal] = slo.Inconclusive
	}
	s.Breaches, s.Conditions = []result.Breach{}, nil
}
