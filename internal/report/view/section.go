package view

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Section is a part of what is said: a title, with its colon, and what stands below
// it. Without a title it follows the section before it without a gap.
type Section struct {
	Title string
	Parts []Part
	// Narrow stands in its place where there are fewer columns than Whole; nil for what fits anywhere.
	Narrow *Section
	Whole  int
}

// Part is a line, or a table where it has rows.
type Part struct {
	Line   string
	Table  Table
	Indent int // of the table, in columns; a line has its own
}

// Table is rows below each other, the first of which is the head.
type Table struct {
	// Align has l or r for each column, and d for a drawing to the left.
	Align string
	Rows  [][]string
}

// Any reports whether there is a row below the head.
func (t Table) Any() bool { return len(t.Rows) > 1 }

// add adds a row.
func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// figures is a table of which every column is to the right.
func figures(rows [][]string) Table {
	if len(rows) == 0 {
		return Table{}
	}
	return Table{strings.Repeat("r", len(rows[0])), rows}
}

// linef adds a line.
func (s *Section) linef(format string, args ...any) {
	s.Parts = append(s.Parts, Part{Line: fmt.Sprintf(format, args...)})
}

// lines adds lines as they are.
func (s *Section) lines(indent string, list ...string) {
	for _, text := range list {
		s.Parts = append(s.Parts, Part{Line: indent + text})
	}
}

// table adds a table, if it has rows.
func (s *Section) table(indent int, t Table) {
	if len(t.Rows) > 0 {
		s.Parts = append(s.Parts, Part{Table: t, Indent: indent})
	}
}

// apart sets a section apart from the one before it: its first line is the title.
func (s Section) apart() Section {
	s.Title, s.Parts = s.Parts[0].Line, s.Parts[1:]
	return s
}

// warned has warnings, a line for each.
func warned(list record.Warnings) (s Section) {
	s.lines("warning: ", list.Lines()...)
	return s
}

// said are the sections that say anything.
func said(list ...Section) []Section {
	return slices.DeleteFunc(list, func(s Section) bool { return s.Title == "" && len(s.Parts) == 0 })
}
