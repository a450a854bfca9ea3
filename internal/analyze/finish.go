package analyze

import (
	"fmt"
	"time"

	"plimsoll.dev/plimsoll/internal/ceiling"
	"plimsoll.dev/plimsoll/internal/design"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
	"plimsoll.dev/plimsoll/internal/stats"
)

// Made is what a design may know of the steps that have ended, by one goal.
func (b *Builder) Made(goal string) []design.Made {
	made := make([]design.Made, 0, len(b.steps))
	for _, s := range b.steps {
		if !s.done || s.again {
			continue
		}
		m := design.Made{Level: s.Level, Arm: s.Arm, Replicate: s.Replicate, Purpose: s.Purpose, FromEmpty: s.FromEmpty, Full: s.FullHold, Verdict: s.Goals[goal]}
		if s.EffectiveLevel != nil {
			m.Effective = *s.EffectiveLevel
		}
		made = append(made, m)
	}
	return made
}

// NextStep is the first further step that any goal's line needs, the headline
// first, or done once no goal needs one. Stop, if not empty, says why no
// further step can be made.
func (b *Builder) NextStep(d design.Design, stop string) design.Next {
	var last design.Next
	for i, g := range b.spec.Goals {
		n := d.Next(b.Made(g.Name), stop)
		if !n.Done {
			return n
		}
		if i == 0 {
			last = n
		}
	}
	last.Done = true // without any goal nothing can be found out
	return last
}

// Finish judges the run. It may be called once, after the last event. A stop
// says why a run that was not finished ended, "" when it was.
func (b *Builder) Finish(d design.Design, fidelity record.Fidelity, stop string) Result {
	if b.current != nil {
		b.closeStep(b.lastT)
	}
	b.retire(b.place)
	b.place = newFill()
	b.retire(newFill())
	if b.disturbed > 0 {
		b.Warn(fmt.Sprintf("in %d of %d steps other programs used up to %.0f%% of this machine's CPUs: what was measured is a machine that is busy with something else", b.disturbed, len(b.steps), b.others))
	}
	for _, l := range b.largest {
		b.Warn(l.String())
	}
	for _, f := range b.open {
		b.Warn(fmt.Sprintf("%s from %s on, to the end: what became of the objects after that is not known", f.What, f.From.Duration().Round(time.Millisecond)))
	}
	if !b.ended && stop == "" {
		stop = "the record ends before the run did"
		b.Warn("the run was cut: its record ends before its end was written, and up to 100 ms before that may be missing")
	}
	if stop == "" {
		// A design that is not done although the run says so was cut.
		stop = b.endWhy
	}
	r := Result{
		Schema: ResultSchema, Experiment: b.spec.Experiment, Workload: b.spec.Workload, Kind: b.spec.Kind,
		Command: b.spec.Command, Version: b.spec.Version, Fidelity: fidelity, Arrived: b.spec.Arrived,
		Goals: []GoalResult{}, Steps: b.Steps(),
		Diagnosis: b.diagnosis(), Ceilings: []ceiling.Ceiling{}, Cost: b.cost, Warnings: b.warnings,
	}
	for i, g := range b.spec.Goals {
		n := d.Next(b.Made(g.Name), stop)
		if !n.Done {
			n = d.Next(b.Made(g.Name), "the run ended before its search did")
		}
		line := b.loadLine(d, g.Name, n.Outcome)
		r.Goals = append(r.Goals, GoalResult{Name: g.Name, SLO: g.Texts(), LoadLine: line, Verdict: n.Outcome.Verdict, Why: n.Outcome.Why})
		if i == 0 {
			r.Verdict, r.Why, r.LoadLine = n.Outcome.Verdict, n.Outcome.Why, line
		}
	}
	if len(b.spec.Goals) == 0 {
		r.Verdict, r.Why = slo.Inconclusive, "no goal was given"
	}
	r.BrokeFirst = b.brokeFirst(r.Goals)
	r.Breaches = b.breachesInOrder(r.BrokeFirst)
	if r.Fidelity.Notes == nil {
		r.Fidelity.Notes = []string{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	r.ExitCode = exitCodeOf(r.Verdict)
	if b.spec.Arms != nil {
		b.finishComparison(&r, stop)
	}
	r.Published = b.publishedFigures(r)
	r.Laws = LawsOf(b.spec, r.Steps)
	r.Overhead = b.overhead(r.Laws)
	return r
}

// exitCodeOf is the exit code that a verdict ends the program with.
func exitCodeOf(v slo.Verdict) int {
	switch v {
	case slo.Pass:
		return 0
	case slo.Breach:
		return 1
	case slo.Invalid:
		return 4
	default:
		return 3
	}
}

// loadLine is the line of one goal, nil when the experiment seeks none.
func (b *Builder) loadLine(d design.Design, goal string, o design.Outcome) *LoadLine {
	s, ok := d.(design.Search)
	if !ok {
		return nil
	}
	line := &LoadLine{
		Axis: b.spec.Axis, Unit: b.spec.Unit, Level: o.Line, LowestFailing: o.LowestFailing, Resolution: s.Resolution,
		Confirmations: o.Confirmations, ConfirmationsAsked: s.Need,
	}
	b.weigh(line, goal)
	if o.LowestFailing == nil {
		return line
	}
	// The last step at the failing level decided: it was made from empty.
	for i := len(b.steps) - 1; i >= 0; i-- {
		step := b.steps[i]
		if step.Level == *o.LowestFailing && step.Goals[goal] == slo.Breach {
			line.EffectiveLevel, line.Binding = step.EffectiveLevel, step.binding[goal]
			break
		}
	}
	return line
}

// weigh states what the confirmations of a line mean.
func (b *Builder) weigh(line *LoadLine, goal string) {
	if line.Level == nil {
		return
	}
	for _, s := range b.steps {
		whole := s.Purpose == record.PurposeConfirm || s.Purpose == record.PurposeUpper
		if s.done && s.Level == *line.Level && whole && s.Goals[goal].Decided() {
			line.ConfirmationsMade++
		}
	}
	line.PassProbability = round(stats.PassProbability(line.Confirmations, line.ConfirmationsMade, confidence), 2)
}

// rowsOf hands a slot's objects to Rows.
func (b *Builder) rowsOf(s *slot) {
	for i := range max(s.count(), len(s.objects)) {
		b.Rows(b.row(s, i))
	}
}

func (b *Builder) row(s *slot, i int) record.ObjectRow {
	row := record.ObjectRow{
		Slot: s.name, Step: int64(s.step), Component: s.component, Iteration: int64(s.iteration),
		Intended: int64(s.intended), Sent: int64(s.sent), Replied: int64(s.replied),
		Code: int64(s.code), Retries: int64(s.retries), Throttled: int64(s.throttled),
		PlantedDelay: int64(s.delay), Outcome: string(s.outcome), Error: s.err,
	}
	if i > 0 || s.byName != nil {
		row.Slot = fmt.Sprintf("%s#%d", s.name, i)
	}
	if step := b.stepOf(s.step); step != nil {
		row.Level, row.Arm, row.Replicate = step.Level, step.Arm, int64(step.Replicate)
	}
	if i >= len(s.objects) {
		return row
	}
	o := s.objects[i]
	if o.node >= 0 {
		row.Node = b.nodeName[o.node]
	}
	row.Reason, row.Message, row.Late, row.There = o.reason, o.message, o.late, o.there
	row.Milestones = make(map[string]int64, len(o.at))
	for m, at := range o.at {
		if at != never {
			row.Milestones[b.names[m]] = int64(at)
		}
	}
	return row
}

func (b *Builder) stepOf(id int) *Step {
	for _, s := range b.steps {
		if s.ID == id {
			return &s.Step
		}
	}
	return nil
}
