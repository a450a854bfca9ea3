package tune

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Formats are the forms in which an answer can be shown.
func Formats() []string { return []string{"table", "json", "yaml"} }

// Render shows an answer in one of the Formats. A table has no more than width
// columns where words can be parted; 0 is unbounded.
func Render(a *Answer, format string, width int) ([]byte, error) {
	switch format {
	case "json", "yaml":
		data, err := encode(a)
		if err != nil {
			return nil, fmt.Errorf("write the answer as %s: %w", format, err)
		}
		if format == "json" {
			return data, nil
		}
		// By way of JSON, so that both have the same names.
		out, err := yaml.JSONToYAML(data)
		if err != nil {
			return nil, fmt.Errorf("write the answer as yaml: %w", err)
		}
		return out, nil
	case "table":
		return []byte(table(a, width)), nil
	}
	return nil, fmt.Errorf("no form %q", format)
}

func encode(a *Answer) ([]byte, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // commands and files hold < and &
	e.SetIndent("", "  ")
	if err := e.Encode(a); err != nil {
		return nil, err
	}
	return []byte(b.String()), nil
}

// page collects the lines of a table.
type page struct {
	b     strings.Builder
	width int
}

func table(a *Answer, width int) string {
	p := &page{width: width}
	p.b.WriteString(printable(a.Title) + "\n")
	var rows [][]string
	for _, in := range a.Inputs {
		rows = append(rows, []string{in.Name, shown(in.Value, in.Unit), in.From})
	}
	p.columns("Inputs", rows)
	rows = nil
	for _, r := range a.Results {
		rows = append(rows, []string{r.Name, shown(r.Value, r.Unit), r.Note})
	}
	p.columns("Results", rows)
	if len(a.Steps) > 0 {
		p.head("How")
		for _, s := range a.Steps {
			cited := ""
			if len(s.Sources) > 0 {
				cited = " [" + strings.Join(s.Sources, ", ") + "]"
			}
			p.text("  ", "    ", s.Formula+cited)
			if s.Numbers != "" {
				p.text("    ", "      ", s.Numbers)
			}
		}
	}
	p.findings(a.Findings)
	if len(a.Corrections) > 0 {
		p.head("Where a source is wrong")
		for _, c := range a.Corrections {
			p.text("  "+c.Row+"  says ", "      ", c.Says)
			p.text("      right: ", "      ", c.Right)
			if c.Effect != "" {
				p.text("      it would give: ", "      ", c.Effect)
			}
		}
	}
	rows = nil
	for _, c := range a.Ceilings {
		state := "holds"
		if !c.Holds {
			state = "too low"
		}
		usual := ""
		if c.Usual > 0 {
			usual = ", " + grouped(c.Usual) + " without the plan"
		}
		rows = append(rows, []string{c.Name, fmt.Sprintf("%s of %s", grouped(c.Asked), grouped(c.Limit)), fmt.Sprintf("%s (%s)%s: %s", state, c.Set, usual, c.What)})
	}
	p.columns("Ceilings", rows)
	rows = nil
	for _, s := range a.Settings {
		when := fmt.Sprintf("step %d", s.Stage)
		if s.Fixed {
			when += ", at installation only"
		}
		if s.File != "" {
			when += ": " + s.File
		}
		rows = append(rows, []string{s.Name, s.From + " -> " + s.To, when})
	}
	p.columns("Settings to change", rows)
	if len(a.Stages) > 0 {
		p.head("In this order")
		for i, s := range a.Stages {
			when := s.When
			if s.Fixed {
				when += " (cannot be changed later)"
			}
			p.text(fmt.Sprintf("  %d. ", i+1), "     ", when)
			for _, d := range s.Do {
				p.text("     - ", "       ", d)
			}
		}
	}
	if len(a.Warnings) > 0 {
		p.head("Warnings")
		for _, w := range a.Warnings {
			p.text("  - ", "    ", w)
		}
	}
	if len(a.Commands) > 0 {
		p.head("Commands")
		for _, c := range a.Commands {
			if c.Why != "" {
				p.text("  # ", "  # ", c.Why)
			}
			p.b.WriteString("  " + printable(c.Line) + "\n") // never parted: it is to be copied
		}
	}
	if len(a.Files) > 0 {
		p.head("Files (--write DIR writes them)")
		for _, f := range a.Files {
			p.text("  "+f.Path+"  ", "    ", f.For)
		}
	}
	p.sources(a.Sources)
	return p.b.String()
}

func (p *page) head(title string) { p.b.WriteString("\n" + title + "\n") }

// columns writes rows of three cells, the last of which may go over several
// lines.
func (p *page) columns(title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	p.head(title)
	first, second := 0, 0
	for _, r := range rows {
		first, second = max(first, len([]rune(r[0]))), max(second, len([]rune(r[1])))
	}
	second = min(second, 32)
	for _, r := range rows {
		lead := fmt.Sprintf("  %-*s  %-*s", first, printable(r[0]), second, printable(r[1]))
		if r[2] == "" {
			p.b.WriteString(strings.TrimRight(lead, " ") + "\n")
			continue
		}
		p.text(lead+"  ", strings.Repeat(" ", first+second+6), r[2])
	}
}

func (p *page) findings(list []Finding) {
	if len(list) == 0 {
		return
	}
	p.head("Findings")
	for _, f := range list {
		line := f.What
		switch {
		case f.Now != "" && f.Wanted != "":
			line += ": is " + f.Now + ", want " + f.Wanted
		case f.Now != "":
			line += ": is " + f.Now
		case f.Wanted != "":
			line += ": want " + f.Wanted
		}
		p.text(fmt.Sprintf("  %-7s ", string(f.Grade)), "          ", line)
		if f.Cost != "" {
			p.text("          cost: ", "          ", f.Cost)
		}
		if f.Remedy != "" {
			p.text("          do: ", "          ", f.Remedy)
		}
	}
}

// sources writes the rows of each document below its title, and then the
// official pages.
func (p *page) sources(list []Source) {
	if len(list) == 0 {
		return
	}
	p.head("Sources")
	width := 0
	for _, s := range list {
		width = max(width, len(s.ID))
	}
	line := func(s Source, text string) {
		p.text(fmt.Sprintf("    %-*s  ", width, s.ID), strings.Repeat(" ", width+6), text)
	}
	var titles []string
	for _, s := range list {
		if s.Address == "" && !slices.Contains(titles, s.Title) {
			titles = append(titles, s.Title)
		}
	}
	for _, title := range titles {
		p.text("  ", "    ", title)
		for _, s := range list {
			if s.Title == title {
				line(s, s.Says)
			}
		}
	}
	if slices.ContainsFunc(list, func(s Source) bool { return s.Address != "" }) {
		p.b.WriteString("  Official pages\n")
	}
	for _, s := range list {
		if s.Address != "" {
			line(s, s.Title+": "+s.Says)
			p.b.WriteString(strings.Repeat(" ", width+6) + s.Address + "\n")
		}
	}
}

// text writes words, parted at spaces so that lines stay within the width.
func (p *page) text(lead, indent, text string) {
	line := lead
	empty := true
	for _, word := range strings.Fields(printable(text)) {
		if !empty && p.width > 0 && len([]rune(line))+1+len([]rune(word)) > p.width {
			p.b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, empty = indent, true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	p.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// printable replaces what would move a terminal's cursor: names come from
// clusters and hosts.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// shown writes a figure with its unit. Whole numbers stay as they are, so that
// they can be copied into a configuration.
func shown(v any, unit string) string {
	var s string
	switch v := v.(type) {
	case float64:
		s = strconv.FormatFloat(v, 'f', -1, 64)
		if len(s) > 12 {
			s = strconv.FormatFloat(v, 'g', 6, 64)
		}
	default:
		s = fmt.Sprint(v)
	}
	if speed, ok := v.(float64); ok && unit == "bit/s" && speed >= 1000 { // nobody copies it
		unit := math.Pow(10, math.Floor(math.Log10(speed))-3) // four figures
		return Rate(math.Round(speed/unit) * unit).String()
	}
	if unit != "" {
		s += " " + unit
	}
	return s
}
