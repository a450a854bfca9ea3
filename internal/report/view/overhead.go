package view

import (
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

type overheadTable struct {
	Table
	Head  string
	Notes []string
}

// overheadOf returns nil where no real node was measured.
func overheadOf(o *result.Overhead, kind record.ObjectKind) *overheadTable {
	if o == nil {
		return nil
	}
	object := kind.Object
	t := &overheadTable{Head: fmt.Sprintf("Cost of one more %s, from %s in %s", object.One, words.Counted(o.Objects, "start"), words.Counted(o.Steps, "step")),
		Table: Table{"llll", [][]string{{"process", "memory", "CPU time to start", "thousandths of a CPU while it runs"}}}}
	var levels, known bool
	type gap struct{ what, why string }
	var gaps []gap
	of := make(map[gap][]string) // sources
	say := func(source string, s result.Slope, unit, what string) string {
		if s.Unknown != "" {
			g := gap{what, s.Unknown}
			if of[g] == nil {
				gaps = append(gaps, g)
			}
			of[g] = append(of[g], source)
			return "unknown"
		}
		if s.Value == nil {
			return "unknown"
		}
		known = true
		levels = levels || s.From == result.FromLevels && unit == "B"
		if unit == "" { // thousandths
			return words.WithInterval(result.Interval{Value: thousand(s.Value), Lo: thousand(s.Lo), Hi: thousand(s.Hi)}, unit)
		}
		return words.WithInterval(s.Interval, unit)
	}
	for _, c := range o.Costs {
		t.add(c.Source, say(c.Source, c.Memory, "B", "memory"), say(c.Source, c.Start, "s", "CPU time to start"), say(c.Source, c.Stand, "", "CPU while it runs"))
	}
	for _, g := range gaps {
		what := g.what
		if sources := of[g]; len(sources) < len(o.Costs) {
			what += " of " + strings.Join(sources, ", ")
		}
		t.Notes = append(t.Notes, what+" is unknown: "+g.why)
	}
	if !known {
		t.Head, t.Rows = fmt.Sprintf("The cost of one more %s on a real %s is unknown", object.One, kind.Place.One), nil
		return t
	}
	t.Notes = append(t.Notes, fmt.Sprintf("a %s is the average of those that the workload makes", object.One),
		"in brackets 95% intervals; one that includes 0 shows no cost")
	if levels {
		t.Notes = append(t.Notes, "memory is from the fit along the axis where there is one, else from what each step added; growth with time alone counts as the "+object.Many+"' too")
	}
	return t
}

func thousand(x *float64) *float64 {
	if x == nil {
		return nil
	}
	return new(1000**x + 0) // + 0 removes the sign of -0
}

func overheadSection(r result.Result) (s Section) {
	t := overheadOf(r.Overhead, r.ObjectKind)
	if t == nil {
		return s
	}
	s.Title = t.Head + ":"
	s.table(2, t.Table)
	s.lines("  ", t.Notes...)
	return s
}
