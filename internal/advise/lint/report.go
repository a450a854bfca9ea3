package lint

import (
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// report is what a look at files comes to: what is wrong with them, and what
// they say that other things are held against. Each check is a method that adds
// what it finds.
type report struct {
	recognised bool // the file, or the part looked at, is of a kind that is known
	// look looks at a text inside of another, by what it is.
	look func(*report, *text)
	*tables
	findings []Finding
	notes    []Note
	problems []Problem
	facts
}

// tables are what is known beforehand.
type tables struct {
	*schema.Schemas
	kernel *schema.Kernel
}

func newTables() *tables { return &tables{schema.New(), schema.NewKernel()} }

// find makes a finding. The edits, if any, are its fix; they are made all or
// none.
func (r *report) find(rule string, at place, fix, found string, edits ...edit) {
	r.findAs("", rule, at, fix, found, edits...)
}

// findAs is find with a severity other than the rule's own.
func (r *report) findAs(s Severity, rule string, at place, fix, found string, edits ...edit) {
	if at.text.ignores(at.line, rule) {
		return
	}
	if slices.ContainsFunc(edits, func(e edit) bool { return !e.text.editable() }) {
		edits = nil
	}
	file, line, column, inside := at.text.position(at.line, at.column)
	r.findings = append(r.findings, Finding{
		Rule: rule, Severity: s, File: file, Line: line, Column: column, Path: at.path, Inside: inside,
		Found: found, Fix: fix, Fixable: len(edits) > 0, Edits: edits,
	})
}

// note says what the reader must know besides.
func (r *report) note(rule string, at place, format string, args ...any) {
	file, line, column, _ := at.text.position(at.line, at.column)
	r.notes = append(r.notes, Note{Rule: rule, File: file, Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// unreadable records why a text cannot be read.
func (r *report) unreadable(t *text, problems []strictyaml.Problem) {
	for _, p := range problems {
		file, line, column, inside := t.position(max(1, p.Line), p.Column)
		if p.Line == 0 {
			line, column = 0, 0
		}
		text := p.Message
		if inside != "" {
			text = inside + ": " + text
		}
		if p.Hint != "" {
			text += " (" + p.Hint + ")"
		}
		r.problems = append(r.problems, Problem{File: file, Line: line, Column: column, Text: text})
	}
}
