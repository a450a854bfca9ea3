package report

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"plimsoll.dev/plimsoll/internal/analyze"
)

// overheadRow is what one pod more costs one process, in words.
type overheadRow struct{ Source, Memory, Start, Stand string }

// overheadTable is what one pod more costs.
type overheadTable struct {
	Head  string
	Rows  []overheadRow
	Notes []string
}

// overheadOf is nil where nothing was measured of a real node.
func overheadOf(o *analyze.Overhead) *overheadTable {
	if o == nil {
		return nil
	}
	t := &overheadTable{Head: fmt.Sprintf("One pod more costs, by %s in %s", counted(o.Pods, "start"), counted(o.Steps, "step"))}
	var levels, known bool
	type gap struct{ what, why string }
	var gaps []gap
	of := make(map[gap][]string) // the sources that have it
	say := func(source string, s analyze.Slope, unit, what string) string {
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
		levels = levels || s.From == analyze.FromLevels && unit == "B"
		if unit == "" { // thousandths
			i := analyze.Interval{Value: thousand(s.Value), Lo: thousand(s.Lo), Hi: thousand(s.Hi)}
			return quantity(*i.Value, unit) + " " + span95(i, unit)
		}
		return quantity(*s.Value, unit) + " " + span95(s.Interval, unit)
	}
	for _, c := range o.Costs {
		t.Rows = append(t.Rows, overheadRow{c.Source, say(c.Source, c.Memory, "B", "memory"), say(c.Source, c.Start, "s", "CPU time to start"), say(c.Source, c.Stand, "", "CPU while it stands")})
	}
	for _, g := range gaps {
		what := g.what
		if sources := of[g]; len(sources) < len(o.Costs) {
			what += " of " + strings.Join(sources, ", ")
		}
		t.Notes = append(t.Notes, what+" is not known: "+g.why)
	}
	if !known {
		t.Head, t.Rows = "What one pod more costs a real node is not known", nil
		return t
	}
	t.Notes = append(t.Notes, "a pod is an average one of those that the workload makes")
	t.Notes = append(t.Notes, "in brackets 95 % intervals; one that holds 0 shows no cost")
	if levels {
		t.Notes = append(t.Notes, "memory is told by the levels of the axis where there is a law of it, else by what each step has added, and what grows with time alone counts as the pods' too")
	}
	return t
}

// thousand is a thousand times x.
func thousand(x *float64) *float64 {
	if x == nil {
		return nil
	}
	y := 1000**x + 0 // which has no sign where it is nothing
	return &y
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%s %ss", grouped(n), thing)
}

// overhead writes what one pod more costs.
func (p *printer) overhead(o *analyze.Overhead) {
	t := overheadOf(o)
	if t == nil || p.err != nil {
		return
	}
	p.line("")
	p.line("%s:", t.Head)
	if len(t.Rows) > 0 {
		p.overheadRows(t)
	}
	for _, n := range t.Notes {
		p.line("  %s", printable(n))
	}
}

func (p *printer) overheadRows(t *overheadTable) {
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "  \tmemory\tCPU time to start\tthousandths of a CPU while it stands\n")
	for _, r := range t.Rows {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\n", printable(r.Source), r.Memory, r.Start, r.Stand)
	}
	if p.err == nil {
		p.err = w.Flush()
	}
}
