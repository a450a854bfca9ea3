package view

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// environment says what is on record of the target and of this machine.
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
	p.Places = placesOf(e.Places)
}

// placesTable are the places that were loaded, those that are alike in a row.
type placesTable struct {
	Title string
	Heads []string
	Rows  []placesRow
}

type placesRow struct {
	record.PlaceRow
	Cells []string
}

func placesOf(p *record.Places) *placesTable {
	if p == nil || len(p.Rows) == 0 {
		return nil
	}
	t := &placesTable{Title: words.Capital(p.Place.Many)}
	for _, f := range p.Facts {
		t.Heads = append(t.Heads, words.Capital(f.What))
	}
	for _, r := range p.Rows {
		row := placesRow{PlaceRow: r}
		for i, f := range p.Facts {
			f.Value = r.Values[i]
			row.Cells = append(row.Cells, f.Text())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// fact is what is known of the places of a row in a phrase.
func (r placesRow) fact() string {
	return fmt.Sprintf("%s of %s", words.Count(r.Count), strings.Join(slices.DeleteFunc(slices.Clone(r.Cells), func(c string) bool { return c == "" }), ", "))
}

// fidelityOf are the parts that there were and of which it is known whether they were real.
func fidelityOf(f record.Fidelity) []fidelityPart {
	return slices.DeleteFunc(f.Parts(), func(p fidelityPart) bool { return p.Is == "" || p.Is == record.None })
}
