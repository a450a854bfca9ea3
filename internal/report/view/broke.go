package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
	"plimsoll.dev/plimsoll/internal/text/number"
)

type brokePart struct {
	Lead    string // in a sentence; "" where nothing decided
	Says    string
	Steps   []result.Step // with breaches, the deciding one first
	HasLogs bool          // of failing objects
	Normal  string        // the baseline of the conditions
	Figures Table
}

// brokeOf returns nil where nothing broke and nothing was recognised.
func brokeOf(r result.Result, unit string) *brokePart {
	p := &brokePart{Steps: slices.DeleteFunc(slices.Clone(r.Steps), func(s result.Step) bool { return len(s.Breaches) == 0 })}
	p.HasLogs = slices.ContainsFunc(r.Steps, func(s result.Step) bool { return len(s.Logs) > 0 })
	if len(p.Steps) == 0 && len(r.Diagnosis) == 0 && !p.HasLogs {
		return nil
	}
	first := r.BrokeFirst
	if first == nil {
		return p
	}
	if first.Says != "" {
		p.Says = words.Sentence(first.Says)
	}
	if s := stepOf(r, first.Step); s != nil {
		p.Lead = fmt.Sprintf("In step %d, at %s %s, the first breach came after %s: %s.",
			s.ID, words.Number(s.LevelReached), unit, afterStart(*s, first.Breach), first.Breach.What)
	}
	if first.Conditions != nil {
		p.Normal, p.Figures = normalOf(r), conditionTable(first.Conditions.Figures)
	}
	if i := slices.IndexFunc(p.Steps, func(s result.Step) bool { return s.ID == first.Step }); i > 0 {
		decided := p.Steps[i]
		p.Steps = slices.Insert(slices.Delete(p.Steps, i, i+1), 0, decided)
	}
	return p
}

func stepOf(r result.Result, id int) *result.Step {
	if i := slices.IndexFunc(r.Steps, func(s result.Step) bool { return s.ID == id }); i >= 0 {
		return &r.Steps[i]
	}
	return nil
}

func markOf(first *result.BrokeFirst, b result.Breach) string {
	switch {
	case first != nil && b.Step == first.Step && b.Kind == first.Breach.Kind && b.What == first.Breach.What:
		return "first"
	case b.Decided:
		return "decided"
	case b.Usual:
		return "usual"
	}
	return "seen"
}

func afterStart(s result.Step, b result.Breach) string {
	x := chart.Between(s.Start, b.Time)
	if math.IsNaN(x) {
		return "-"
	}
	return words.Seconds(max(x, 0))
}

func loadText(l result.StepProgress, unit string) string {
	if l.Backlog > 0 {
		return fmt.Sprintf("%s behind, %s %s", words.Counted(l.Backlog, "request"), words.Number(l.Level), unit)
	}
	if l.Asked == 0 {
		return "no request yet"
	}
	return fmt.Sprintf("%d of %d ready, %s %s", l.There, l.Asked, words.Number(l.Level), unit)
}

func normalOf(r result.Result) string {
	switch {
	case r.BrokeFirst.Conditions.NormalStep > 0:
		return fmt.Sprintf("normal is step %d while it was loaded", r.BrokeFirst.Conditions.NormalStep)
	case r.BrokeFirst.Step == r.Steps[0].ID:
		return "there is no baseline: this is the first step"
	}
	return "there is no baseline: the first step did not pass"
}

func conditionTable(list []result.Figure) Table {
	t := Table{"rrrr", [][]string{{"condition", "then", "normal", "ratio"}}}
	for _, f := range list {
		t.add(f.Name, figureText(f.Value, f.Unit), figureText(f.Normal, f.Unit), words.Known(f.Ratio, func(x float64) string { return number.Text(x, 3) }))
	}
	return t
}

// grewMost returns the conditions that grew, in their order, those that grew most if there are many.
func grewMost(list []result.Figure) []result.Figure {
	growth := func(f result.Figure) float64 {
		switch {
		case f.Ratio != nil:
			return *f.Ratio
		case f.Value != nil && f.Normal != nil && *f.Value > *f.Normal:
			return math.Inf(1) // from 0
		}
		return 0
	}
	grew := slices.DeleteFunc(slices.Clone(list), func(f result.Figure) bool { return growth(f) <= 1 })
	slices.SortStableFunc(grew, func(a, b result.Figure) int { return cmp.Compare(growth(b), growth(a)) })
	most := grew[:min(len(grew), conditionsShown)]
	return slices.DeleteFunc(slices.Clone(list), func(f result.Figure) bool { return !slices.Contains(most, f) })
}

func figureText(v *float64, unit string) string {
	return words.Known(v, func(x float64) string {
		return words.InUnit(x, unit, func(x float64) string {
			if unit == "" {
				return strconv.FormatFloat(x, 'f', -1, 64)
			}
			return number.Text(x, 3)
		})
	})
}

func broke(r result.Result) (out Section) {
	first := r.BrokeFirst
	if first == nil {
		return out
	}
	s := stepOf(r, first.Step)
	if s == nil {
		return out
	}
	out.Title = fmt.Sprintf("What broke first, in step %d at %s:", s.ID, words.Number(s.LevelReached))
	for i, b := range s.Breaches {
		if i == brokeShown {
			out.linef("  and %d more, in result.json", len(s.Breaches)-brokeShown)
			break
		}
		what := b.What
		if !b.Decided && b.Kind != result.BreachActor && b.Kind != result.BreachStandstill { // these have counts of their own
			what += fmt.Sprintf(" (%d)", b.Count)
		}
		with := fmt.Sprintf("%d of %d ready", b.Load.There, b.Load.Asked)
		if s.Streams() {
			with = words.Counted(b.Load.Backlog, "request") + " behind"
		}
		out.linef("  %-7s  after %s, with %s: %s", markOf(first, b), afterStart(*s, b), with, what)
		if b.Message != "" && unsaid(r, b.Message) == b.Message {
			out.linef("           %s", strings.TrimPrefix(b.Object+": "+b.Message, ": "))
		}
	}
	if first.Conditions == nil || len(first.Conditions.Figures) == 0 {
		return out
	}
	normal, list := normalOf(r), first.Conditions.Figures
	if all := len(list); all > conditionsShown {
		if grew := grewMost(list); len(grew) > 0 {
			list = grew
			normal += fmt.Sprintf("; of %d, those that grew most", all)
		} else {
			list = list[:conditionsShown]
			normal += fmt.Sprintf("; %d of %d, and none is known to have grown", conditionsShown, all)
		}
	}
	out.linef("  Conditions then (%s):", normal)
	out.table(6, conditionTable(list))
	if first.Says != "" {
		out.linef("  %s", words.Sentence(first.Says))
	}
	return out
}

const (
	brokeShown      = 8 // breaches of a step
	conditionsShown = 6
)

// unsaid cuts off the message at a text's end that is shown as the reason why objects were not ready.
func unsaid(r result.Result, text string) string {
	if steps := reasonsOf(r); len(steps) > 0 {
		for _, reason := range steps[0].Reasons {
			if cut, ok := strings.CutSuffix(text, ": "+reason.Message); ok && reason.Message != "" {
				return cut
			}
		}
	}
	return text
}

func diagnosis(r result.Result) (s Section) {
	const most = 5 // are shown with what to do
	var held, undecided []string
	shown := 0
	for _, d := range r.Diagnosis {
		if !d.Failing {
			list := &held
			if x := stepOf(r, d.Step); x != nil && x.Verdict != slo.Pass {
				list = &undecided
			}
			*list = append(*list, fmt.Sprintf("%s (%s, step %d)", d.Title, d.Signature, d.Step))
			continue
		}
		if shown++; shown > most {
			continue
		}
		s.Title = "Known failures that match:"
		more := ""
		if len(d.Steps) > 1 {
			more = " and " + moreSteps(d.Steps)
		}
		s.linef("  %s (%s, step %d%s)", d.Title, d.Signature, d.Step, more)
		s.lines("    ", unsaid(r, d.Evidence), d.Explanation, "To do: "+d.Remedy)
	}
	if shown > most {
		s.linef("  and %d more, in result.json", shown-most)
	}
	if len(held)+len(undecided) > 0 {
		s.linef("")
	}
	if len(held) > 0 {
		s.linef("Seen in steps that passed: %s", strings.Join(held, "; "))
	}
	if len(undecided) > 0 {
		s.linef("Seen in steps that decide nothing: %s", strings.Join(undecided, "; "))
	}
	return s
}

func moreSteps(steps []int) string { return fmt.Sprintf("%d more", len(steps)-1) }

// otherBreaches says what broke in the other steps, the same in several once.
func otherBreaches(r result.Result) (out Section) {
	type group struct {
		mark, what, first string
		steps             []int
		count             int // of breaches that have no other figure; 0 for others
	}
	var groups []*group
	for _, s := range r.Steps {
		if r.BrokeFirst != nil && s.ID == r.BrokeFirst.Step {
			continue
		}
		for _, b := range s.Breaches {
			what, figure, _ := strings.Cut(b.What, ": ")
			mark := markOf(r.BrokeFirst, b)
			i := slices.IndexFunc(groups, func(g *group) bool { return g.mark == mark && g.what == what })
			if i < 0 {
				i = len(groups)
				groups = append(groups, &group{mark: mark, what: what, first: strings.TrimSuffix(fmt.Sprintf("after %s: %s", afterStart(s, b), figure), ": ")})
			}
			groups[i].steps = append(groups[i].steps, s.ID)
			if figure == "" {
				groups[i].count += b.Count
			}
		}
	}
	for _, g := range groups {
		out.Title = "Breaches and troubles in the other steps:"
		first := g.first
		if len(g.steps) > 1 {
			first = fmt.Sprintf("first in step %d %s", g.steps[0], first)
		}
		times := ""
		if g.count > 1 {
			times = fmt.Sprintf(" (%d times)", g.count)
		}
		out.linef("  %-7s  %s, in %s%s, %s", g.mark, g.what, record.StepsText(g.steps), times, first)
	}
	return out
}
