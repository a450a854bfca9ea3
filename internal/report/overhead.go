package report

import (
	"fmt"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/record"
)

// overheadRow is what one object more costs one process, in words.
type overheadRow struct{ Source, Memory, Start, Stand string }

// overheadTable is what one object more costs.
type overheadTable struct {
	Head  string
	Rows  []overheadRow
	Notes []string
}

// overheadOf is nil where nothing was measured of a real node.
func overheadOf(o *judge.Overhead, kind record.ObjectKind) *overheadTable {
	if o == nil {
		return nil
	}
	object := kind.Object
	t := &overheadTable{Head: fmt.Sprintf("Cost of one more %s, from %s in %s", object.One, counted(o.Objects, "start"), counted(o.Steps, "step"))}
	var levels, known bool
	type gap struct{ what, why string }
	var gaps []gap
	of := make(map[gap][]string) // the sources that have it
	say := func(source string, s judge.Slope, unit, what string) string {
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
		levels = levels || s.From == judge.FromLevels && unit == "B"
		if unit == "" { // thousandths
			return withSpan(judge.Interval{Value: thousand(s.Value), Lo: thousand(s.Lo), Hi: thousand(s.Hi)}, unit)
		}
		return withSpan(s.Interval, unit)
	}
	for _, c := range o.Costs {
		t.Rows = append(t.Rows, overheadRow{c.Source, say(c.Source, c.Memory, "B", "memory"), say(c.Source, c.Start, "s", "CPU time to start"), say(c.Source, c.Stand, "", "CPU while it runs")})
	}
	for _, g := range gaps {
		what := g.what
		if sources := of[g]; len(sources) < len(o.Costs) {
			what += " of " + strings.Join(sources, ", ")
		}
		t.Notes = append(t.Notes, what+" is not known: "+g.why)
	}
	if !known {
		t.Head, t.Rows = fmt.Sprintf("The cost of one more %s on a real %s is not known", object.One, kind.Place.One), nil
		return t
	}
	t.Notes = append(t.Notes, fmt.Sprintf("a %s is the average of those that the workload makes", object.One),
		"in brackets 95 % intervals; one that includes 0 shows no cost")
	if levels {
		t.Notes = append(t.Notes, "memory is from the fit along the axis where there is one, else from what each step added; growth with time alone counts as the "+object.Many+"' too")
	}
	return t
}

func thousand(x *float64) *float64 {
	if x == nil {
		return nil
	}
	y := 1000**x + 0 // which has no sign where it is nothing
	return &y
}

func counted(n int, thing string) string { return grouped(n) + " " + noun(n, thing) }

// noun is a word as it follows a number.
func noun(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// overhead writes what one object more costs.
func (p *printer) overhead(o *judge.Overhead, kind record.ObjectKind) {
	t := overheadOf(o, kind)
	if t == nil {
		return
	}
	p.line("")
	p.line("%s:", t.Head)
	if len(t.Rows) > 0 {
		rows := [][]string{{"", "memory", "CPU time to start", "thousandths of a CPU while it runs"}}
		for _, r := range t.Rows {
			rows = append(rows, []string{r.Source, r.Memory, r.Start, r.Stand})
		}
		p.columns("  ", "llll", rows)
	}
	for _, n := range t.Notes {
		p.line("  %s", n)
	}
}
