package view

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

func (p *Page) environment(e *record.Environment) {
	if e == nil {
		return
	}
	add := func(name, value, note string) {
		if value != "" {
			p.Machine = append(p.Machine, fact{name, value, note})
		}
	}
	if !e.Start.IsZero() {
		add("Start", e.Start.UTC().Format("2006-01-02 15:04:05 MST"), "")
	}
	note := ""
	if e.Target.Private {
		note = "of this run alone"
	}
	add("Target", strings.TrimSpace(e.Target.Kind+" "+e.Target.Name), note)
	for _, f := range e.Facts {
		switch {
		case f.Name == "isolation":
			p.Split = f.Value
		case strings.HasPrefix(f.Name, "isolation:"):
			p.SplitNotes = append(p.SplitNotes, f.Value)
		default:
			add(words.Capital(f.What), f.Text(), "")
		}
	}
	if e.Places != nil && len(e.Places.Rows) > 0 {
		p.Places = e.Places
	}
}

func cellsOf(p *record.Places, row record.PlaceRow) (cells []string) {
	for i, f := range p.Facts {
		f.Value = row.Values[i]
		cells = append(cells, f.Text())
	}
	return cells
}

func kindsOf(p *record.Places) string {
	var kinds []string
	for _, r := range p.Rows {
		known := slices.DeleteFunc(cellsOf(p, r), func(c string) bool { return c == "" })
		kinds = append(kinds, fmt.Sprintf("%s of %s", words.Count(r.Count), strings.Join(known, ", ")))
	}
	return strings.Join(kinds, "; ")
}

// fidelityOf lists the parts of the target that are known to be real or simulated.
func fidelityOf(f record.Fidelity) []fidelityPart {
	return slices.DeleteFunc(f.Parts(), func(p fidelityPart) bool { return p.Is == "" || p.Is == record.None })
}
