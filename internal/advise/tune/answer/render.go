package answer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/text/number"
	"plimsoll.dev/plimsoll/internal/text/size"
)

// Formats lists the forms in which Render shows an answer.
func Formats() []string { return []string{"table", "json", "yaml"} }

// Render shows an answer in one of the Formats. A table breaks lines at width columns; 0 is unbounded.
func Render(a *Answer, format string, width int) ([]byte, error) {
	switch format {
	case "json", "yaml":
		var data bytes.Buffer
		e := json.NewEncoder(&data)
		e.SetEscapeHTML(false) // commands and files hold < and &
		e.SetIndent("", "  ")
		err := e.Encode(a)
		out := data.Bytes()
		if err == nil && format == "yaml" {
			out, err = yaml.JSONToYAML(out) // so that both forms have the same names
		}
		if err != nil {
			return nil, fmt.Errorf("write the answer as %s: %w", format, err)
		}
		return out, nil
	case "table":
		return []byte(table(a, width)), nil
	}
	return nil, fmt.Errorf("no form %q", format)
}

type page struct {
	b     strings.Builder
	width int
}

func table(a *Answer, width int) string {
	p := &page{width: width}
	p.b.WriteString(printable(a.Title) + "\n")
	columns(p, "Inputs", a.Inputs, func(in Input) (first, second, rest string) { return in.Name, shown(in.Value, in.Unit), in.From })
	columns(p, "Results", a.Results, func(r Result) (first, second, rest string) { return r.Name, shown(r.Value, r.Unit), r.Note })
	section(p, "How", a.Steps, func(_ int, s Step) {
		cited := ""
		if len(s.Sources) > 0 {
			cited = " [" + strings.Join(s.Sources, ", ") + "]"
		}
		p.text("  ", "    ", s.Formula+cited)
		p.optional("    ", "      ", s.Numbers)
	})
	section(p, "Findings", a.Findings, func(_ int, f Finding) { p.finding(f) })
	section(p, "Where a source is wrong", a.Corrections, func(_ int, c Correction) {
		p.text("  "+c.Row+"  says ", "      ", c.Says)
		p.text("      right: ", "      ", c.Right)
		p.optional("      it would give: ", "      ", c.Effect)
	})
	columns(p, "Ceilings", a.Ceilings, func(c Ceiling) (first, second, rest string) {
		state, usual := "holds", ""
		if !c.Holds {
			state = "too low"
		}
		if c.Usual > 0 {
			usual = ", " + param.Grouped(c.Usual) + " without the plan"
		}
		return c.Name, param.Grouped(c.Asked) + " of " + param.Grouped(c.Limit), fmt.Sprintf("%s (%s)%s: %s", state, c.Set, usual, c.What)
	})
	columns(p, "Settings to change", a.Settings, func(s Setting) (first, second, rest string) {
		when := fmt.Sprintf("step %d", s.Stage)
		if s.Fixed {
			when += ", at installation only"
		}
		if s.File != "" {
			when += ": " + s.File
		}
		return s.Name, s.From + " -> " + s.To, when
	})
	section(p, "In this order", a.Stages, func(i int, s Stage) {
		when := s.When
		if s.Fixed {
			when += " (cannot be changed later)"
		}
		p.text(fmt.Sprintf("  %d. ", i+1), "     ", when)
		for _, d := range s.Do {
			p.text("     - ", "       ", d)
		}
	})
	section(p, "Warnings", a.Warnings, func(_ int, w string) { p.text("  - ", "    ", w) })
	section(p, "Commands", a.Commands, func(_ int, c Command) {
		p.optional("  # ", "  # ", c.Why)
		p.b.WriteString("  " + printable(c.Line) + "\n") // never broken: a user copies it
	})
	section(p, "Files (--write DIR writes them)", a.Files, func(_ int, f File) { p.text("  "+f.Path+"  ", "    ", f.For) })
	p.sources(a.Sources)
	return p.b.String()
}

// section writes a heading and each item of a list, unless the list is empty.
func section[T any](p *page, title string, list []T, show func(i int, of T)) {
	for i, of := range list {
		if i == 0 {
			p.b.WriteString("\n" + title + "\n")
		}
		show(i, of)
	}
}

// columns writes a row of three cells for each item of a list. The last cell may take several lines.
func columns[T any](p *page, title string, list []T, row func(T) (first, second, rest string)) {
	first, second := 0, 0
	for _, of := range list {
		a, b, _ := row(of)
		first, second = max(first, len([]rune(a))), max(second, len([]rune(b)))
	}
	second = min(second, 32)
	section(p, title, list, func(_ int, of T) {
		a, b, rest := row(of)
		p.text(fmt.Sprintf("  %-*s  %-*s  ", first, printable(a), second, printable(b)), strings.Repeat(" ", first+second+6), rest)
	})
}

func (p *page) finding(f Finding) {
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
	p.optional("          cost: ", "          ", f.Cost)
	p.optional("          do: ", "          ", f.Remedy)
}

// sources writes the rows of each document below its title, and then the official pages.
func (p *page) sources(list []Source) {
	width := 0
	section(p, "Sources", list, func(_ int, s Source) { width = max(width, len(s.ID)) })
	line := func(s Source, text string) {
		p.text(fmt.Sprintf("    %-*s  ", width, s.ID), strings.Repeat(" ", width+6), text)
	}
	var titles []string
	var pages []Source
	for _, s := range list {
		if s.Address != "" {
			pages = append(pages, s)
		} else if !slices.Contains(titles, s.Title) {
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
	for i, s := range pages {
		if i == 0 {
			p.b.WriteString("  Official pages\n")
		}
		line(s, s.Title+": "+s.Says)
		p.b.WriteString(strings.Repeat(" ", width+6) + s.Address + "\n")
	}
}

func (p *page) optional(lead, indent, text string) {
	if text != "" {
		p.text(lead, indent, text)
	}
}

// text writes words, and breaks lines at spaces to keep within the width.
func (p *page) text(lead, indent, text string) {
	line, space := lead, ""
	for _, word := range strings.Fields(printable(text)) {
		if space != "" && p.width > 0 && len([]rune(line))+1+len([]rune(word)) > p.width {
			p.b.WriteString(strings.TrimRight(line, " ") + "\n")
			line, space = indent, ""
		}
		line += space + word
		space = " "
	}
	p.b.WriteString(strings.TrimRight(line, " ") + "\n")
}

// printable replaces characters that move a terminal's cursor: clusters and hosts choose names.
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

// shown writes a figure with its unit. Whole numbers stay exact: users copy them into configurations.
func shown(v any, unit string) string {
	s := fmt.Sprint(v)
	if f, ok := v.(float64); ok {
		if unit == "bit/s" && f >= 1000 {
			unit := math.Pow(10, math.Floor(math.Log10(f))-3) // four figures
			return param.Rate(math.Round(f/unit) * unit).String()
		}
		if s = param.Trim(f); len(s) > 12 {
			s = number.Text(f, 6)
		}
	}
	if n, ok := v.(int64); ok && unit == "B" && n >= 1<<20 {
		switch {
		case n%(1<<20) == 0:
			return size.Text(n)
		case n >= 1<<30:
			return number.Text(float64(n)/(1<<30), 4) + " GiB"
		}
	}
	if unit == "%" {
		return s + unit
	}
	if unit != "" {
		s += " " + unit
	}
	return s
}
