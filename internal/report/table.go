package report

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Terminal is a writer that shows so many columns; tables that are written to
// it are no wider. To any other writer they are as wide as what they hold.
type Terminal struct {
	io.Writer
	Columns int // 0 is no bound
}

// newPrinter is what writes text.
func newPrinter(w io.Writer) *printer {
	p := &printer{w: w}
	if t, ok := w.(Terminal); ok {
		p.width = t.Columns
	}
	return p
}

// What a table that is too wide does to its cells.
const (
	leastText = 8  // columns of text keep this width
	leastHead = 16 // a word of a head stays whole up to this width
	mostLines = 4  // of a cell; the page and result.json have all of it
)

// columns writes rows below each other, the first of which is the head. Align
// has l or r for each column, and d for a drawing to the left. Where they would
// be wider than the terminal, text goes on in further lines, and so does the
// head of figures; figures and drawings stay whole.
func (p *printer) columns(indent, align string, rows [][]string) {
	for _, row := range rows {
		for i, cell := range row {
			row[i] = printable(cell)
		}
	}
	gap := 2
	room := p.width - utf8.RuneCountInString(indent)
	wide := columnWidths(align, rows)
	total := func(gap int) int { return sum(wide) + gap*(len(wide)-1) }
	switch {
	case p.width == 0 || total(2) <= room:
	case total(1) <= room:
		gap = 1
	default:
		least := leastWidths(align, rows)
		if sum(least)+2*(len(least)-1) > room {
			gap = 1
		}
		narrowTo(wide, least, room-gap*(len(wide)-1))
	}
	for r, row := range rows {
		cells := make([][]string, len(row))
		lines := 1
		for i, cell := range row {
			if cells[i] = []string{cell}; align[i] != 'd' && (r == 0 || align[i] == 'l') {
				cells[i] = wrap(cell, wide[i])
			}
			lines = max(lines, len(cells[i]))
		}
		for l := range lines {
			var b strings.Builder
			for i := range row {
				cell := ""
				if l < len(cells[i]) {
					cell = cells[i][l]
				}
				fill := strings.Repeat(" ", max(0, wide[i]-utf8.RuneCountInString(cell)))
				if align[i] == 'r' {
					b.WriteString(fill + cell)
				} else {
					b.WriteString(cell + fill)
				}
				b.WriteString(strings.Repeat(" ", gap))
			}
			p.line("%s", strings.TrimRight(indent+b.String(), " "))
		}
	}
}

// columnWidths are the widths at which nothing is wrapped.
func columnWidths(align string, rows [][]string) []int {
	wide := make([]int, len(align))
	for _, row := range rows {
		for i, cell := range row {
			wide[i] = max(wide[i], utf8.RuneCountInString(cell))
		}
	}
	return wide
}

// leastWidths are the widths below which columns are not narrowed: that of the
// figures, or of a word.
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

// narrowTo narrows columns, the widest first, until they come to the room or
// none can be narrowed.
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

// wrap divides a text into lines of at most so many characters: between words,
// and within one that is longer. What does not fit into mostLines is left out,
// with a sign.
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
