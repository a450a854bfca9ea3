package view

import (
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
)

// Section is a title, with its colon, lines and tables; without a title it follows without a gap.
type Section struct {
	Title string
	Parts []Part
	// Narrow replaces it where there are fewer columns than Whole; nil for a section that fits anywhere.
	Narrow *Section
	Whole  int
}

// Part is a line, or a table where it has rows.
type Part struct {
	Line   string
	Table  Table
	Indent int // of the table, in columns; a line has its own
}

// Table holds rows below each other; the first one is the head.
type Table struct {
	Align string // l or r for each column, d for a drawing to the left
	Rows  [][]string
}

// Any reports whether there is a row below the head.
func (t Table) Any() bool { return len(t.Rows) > 1 }

func (t *Table) add(cells ...string) { t.Rows = append(t.Rows, cells) }

// figures returns a table with all columns to the right.
func figures(rows [][]string) Table {
	if len(rows) == 0 {
		return Table{}
	}
	return Table{strings.Repeat("r", len(rows[0])), rows}
}

func (s *Section) linef(format string, args ...any) {
	s.Parts = append(s.Parts, Part{Line: fmt.Sprintf(format, args...)})
}

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

// apart makes the first line of a section its title, so that a gap stands before it.
func (s Section) apart() Section {
	s.Title, s.Parts = s.Parts[0].Line, s.Parts[1:]
	return s
}

func warned(list record.Warnings) (s Section) {
	s.lines("warning: ", list.Lines()...)
	return s
}

func said(list ...Section) []Section {
	return slices.DeleteFunc(list, func(s Section) bool { return s.Title == "" && len(s.Parts) == 0 })
}
