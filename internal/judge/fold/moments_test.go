package fold

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/stats"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/system/kubernetes/observe"
)

// quantileAtSlowly asks of every moment whether the objective could still be
// met, with all that is unknown then at its best.
func quantileAtSlowly(spec *result.Spec, c *Facts, s slo.SLO) record.Micros {
	m, bound := c.find(s.Milestone), record.MicrosOf(s.Within)
	moments := []record.Micros{c.End}
	for _, u := range c.units {
		zero := u.zero
		moments = append(moments, zero+bound, zero+c.timeout, u.slot.replied)
		if u.object != nil {
			moments = append(append(moments, u.object.at...), u.object.fell)
		}
	}
	slices.Sort(moments)
	for _, t := range moments {
		if t < c.Start || t >= c.End {
			continue
		}
		var values []float64
		censored := 0
		for _, u := range c.units {
			zero := u.zero
			o := u.object
			switch {
			case o != nil && o.reached(m) != Never && o.reached(m) <= t:
				if l := o.reached(m) - zero; l <= c.timeout {
					values = append(values, l.Seconds())
				} else {
					censored++
				}
			case zero+min(bound, c.timeout) <= t,
				unitOutcomeOf(spec, c, &u) == unitCreateFailed && u.slot.replied <= t,
				o != nil && o.failed && o.reached(m) == Never && o.fell <= t:
				censored++
			default:
				values = append(values, 0) // it may be there at once
			}
		}
		if !s.Op.Holds(stats.NewSample(values, censored).Quantile(s.Q), s.Within.Seconds()) {
			return t
		}
	}
	return c.End
}

func TestTheMomentOfAQuantileAgreesWithASlowTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	breached := 0
	for range 3000 {
		q := []string{"p50", "p90", "p99", "p7"}[rng.IntN(4)]
		op := []string{"<", "<="}[rng.IntN(2)]
		objective := fmt.Sprintf("Ready %s %s %dms", q, op, 1000*(1+rng.IntN(4)))
		goal, err := slo.ParseGoal("g=" + objective)
		if err != nil {
			t.Fatal(err)
		}
		c, err := NewCollector(&result.Spec{Kind: observe.Pods(), Milestones: observe.Pods().Names(), Goals: []slo.Goal{goal}}, &Tables{})
		if err != nil {
			t.Fatal(err)
		}
		c.AddStep(record.Event{Step: 1}, &record.StepEvent{Phase: record.PhaseStart, StepPlan: record.StepPlan{Level: 1}, Timeout: record.Micros(2+rng.IntN(8)) * 1e6})
		var events []string
		add := func(at record.Micros, body record.Body) {
			events = append(events, fmt.Sprintf("%d %+v", at, body))
			c.Add(record.Event{T: at, Step: 1, Body: body})
		}
		for i := range 1 + rng.IntN(12) {
			name, at := fmt.Sprint("ns/", i), record.Micros(rng.IntN(5))*1e6
			slot := &record.Slot{Slot: name, Units: 1, Intended: at, Sent: at, Replied: at, Code: 201, Outcome: record.SlotCreated}
			switch rng.IntN(8) {
			case 0:
				slot.Outcome, slot.Code, slot.Replied = record.SlotFailed, 500, at+record.Micros(rng.IntN(3))*1e6
				add(at, slot)
			case 1:
				add(at, slot)
				add(at, &record.Object{Object: name, Milestone: "Created"})
				add(at+record.Micros(rng.IntN(3))*1e6, &record.State{Object: name, Reason: "Error", Failed: true})
			case 2:
				add(at, slot)
			default:
				add(at, slot)
				add(at, &record.Object{Object: name, Milestone: "Created"})
				add(at+record.Micros(rng.IntN(7))*1e6, &record.Object{Object: name, Milestone: "Ready"})
			}
		}
		c.current.head.Ending = record.EndHeld
		_, f := c.End(record.Micros(6+rng.IntN(10)) * 1e6)
		bound := goal.SLOs[0]
		sample := f.Samples[bound.Milestone]
		if sample.N() == 0 || bound.Op.Holds(sample.Quantile(bound.Q), bound.Within.Seconds()) {
			continue
		}
		breached++
		got, _ := f.Account.QuantileAt(bound, sample)
		if want := quantileAtSlowly(c.spec, f, bound); got != want {
			t.Fatalf("%s was lost at %d, want %d, after\n%s", objective, got, want, strings.Join(events, "\n"))
		}
	}
	if breached < 1000 {
		t.Errorf("only %d were breached", breached)
	}
}
