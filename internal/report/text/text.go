// Package text writes the sections of package view for a terminal.
package text

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Terminal is a writer with so many columns, for tables and paragraphs; others have no bound.
type Terminal struct {
	io.Writer
	Columns int // 0 is no bound
}

// Write writes sections below each other.
func Write(w io.Writer, sections []view.Section) error {
	width := 0
	if t, ok := w.(Terminal); ok {
		width = t.Columns
	}
	var out strings.Builder
	for _, s := range sections {
		if s.Narrow != nil && width > 0 && width < s.Whole {
			s = *s.Narrow
		}
		if s.Title != "" {
			if out.Len() > 0 {
				out.WriteString("\n")
			}
			out.WriteString(Printable(s.Title) + "\n")
		}
		for _, p := range s.Parts {
			if len(p.Table.Rows) > 0 {
				writeTable(&out, width, p.Indent, p.Table)
				continue
			}
			out.WriteString(Printable(p.Line) + "\n")
		}
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// Printable removes control characters, so that texts from a cluster cannot steer the terminal.
func Printable(text string) string {
	return redact.Visible(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(text))
}

// The bounds of the cells of a table that is too wide.
const (
	leastText = 8  // columns of text keep this width
	leastHead = 16 // a word of a head stays whole up to this width
	mostLines = 4  // of a cell; the page and result.json have all of it
)

// writeTable writes rows below each other; texts and heads too wide for it go on in further lines.
func writeTable(out *strings.Builder, width, indent int, t view.Table) {
	rows := make([][]string, len(t.Rows))
	for r, row := range t.Rows {
		for _, cell := range row {
			rows[r] = append(rows[r], Printable(cell))
		}
	}
	wide, gap := make([]int, len(t.Align)), 2 // at which nothing is wrapped
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	if room := width - indent; width > 0 && sum(wide)+gap*(len(wide)-1) > room {
		least := leastWidths(t.Align, rows)
		if sum(wide)+len(wide)-1 <= room || sum(least)+gap*(len(least)-1) > room {
			gap = 1
		}
		narrowTo(wide, least, room-gap*(len(wide)-1))
	}
	cells := make([][][]string, len(rows)) // of a row, of a column: its lines
	used := make([]int, len(wide))
	for r, row := range rows {
		for i, cell := range row {
			lines := []string{cell}
			if t.Align[i] != 'd' && (r == 0 || t.Align[i] == 'l') {
				lines = wrap(cell, wide[i])
			}
			for _, line := range lines {
				used[i] = max(used[i], utf8.RuneCountInString(line))
			}
			cells[r] = append(cells[r], lines)
		}
	}
	for _, row := range cells {
		lines := 1
		for _, cell := range row {
			lines = max(lines, len(cell))
		}
		for l := range lines {
			var b strings.Builder
			b.WriteString(strings.Repeat(" ", indent))
			for i, cell := range row {
				text := ""
				if l < len(cell) {
					text = cell[l]
				}
				fill := strings.Repeat(" ", used[i]-utf8.RuneCountInString(text))
				if t.Align[i] == 'r' {
					text, fill = fill, text
				}
				b.WriteString(text + fill + strings.Repeat(" ", gap))
			}
			out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
		}
	}
}

// leastWidths returns the least widths of columns: that of the figures, or of a word.
func leastWidths(align string, rows [][]string) []int {
	least := make([]int, len(align))
	for r, row := range rows {
		for i, cell := range row {
			if align[i] == 'd' || r > 0 && align[i] == 'r' {
				least[i] = max(least[i], utf8.RuneCountInString(cell))
				continue
			}
			for word := range strings.FieldsSeq(cell) {
				most := leastText
				if r == 0 && align[i] == 'r' {
					most = leastHead
				}
				least[i] = max(least[i], min(utf8.RuneCountInString(word), most))
			}
		}
	}
	return least
}

// narrowTo narrows columns, the widest first, until they fit into the room or none can be narrowed.
func narrowTo(wide, least []int, room int) {
	for sum(wide) > room {
		widest := -1
		for i := range wide {
			if wide[i] > least[i] && (widest < 0 || wide[i] > wide[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		wide[widest]--
	}
}

func sum(list []int) (n int) {
	for _, x := range list {
		n += x
	}
	return n
}

// wrap divides a text into lines between words, or within longer words, and cuts after mostLines.
func wrap(text string, width int) []string {
	width = max(width, 1)
	if utf8.RuneCountInString(text) <= width {
		return []string{text}
	}
	var lines []string
	var line []rune
	for word := range strings.FieldsSeq(text) {
		rest := []rune(word)
		if len(line) > 0 {
			if len(line)+1+len(rest) <= width {
				line = append(append(line, ' '), rest...)
				continue
			}
			lines, line = append(lines, string(line)), nil
		}
		for len(rest) > width {
			lines, rest = append(lines, string(rest[:width])), rest[width:]
		}
		line = slices.Clone(rest)
	}
	if len(line) > 0 {
		lines = append(lines, string(line))
	}
	if len(lines) > mostLines {
		last := []rune(lines[mostLines-1])
		lines = append(lines[:mostLines-1], string(last[:min(len(last), width-1)])+"…")
	}
	return lines
}
