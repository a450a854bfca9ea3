// Package report collects what was found in files, and what they say that other files are compared with.
package report

import (
	"fmt"
	"slices"

	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/schema"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Report collects findings and facts of files.
type Report struct {
	Recognised bool                         // the file, or the current part, is of a known kind
	Look       func(*Report, *reading.Text) // looks at a text inside of another by its format
	*Tables
	Findings []Finding
	Notes    []Note
	Problems []Problem
	facts
}

// Tables holds what is known beforehand.
type Tables struct {
	*schema.Schemas
	Kernel *schema.Kernel
}

// NewTables reads the tables.
func NewTables() *Tables { return &Tables{schema.New(), schema.NewKernel()} }

// Find adds a finding. The edits, if any, are its fix, made all or none.
func (r *Report) Find(rule string, at reading.Place, fix, found string, edits ...reading.Edit) {
	r.FindAs("", rule, at, fix, found, edits...)
}

// FindAs adds a finding with a severity other than the rule's own.
func (r *Report) FindAs(s Severity, rule string, at reading.Place, fix, found string, edits ...reading.Edit) {
	if at.Text.Ignores(at.Line, rule) {
		return
	}
	if slices.ContainsFunc(edits, func(e reading.Edit) bool { return !e.Text.Editable() }) {
		edits = nil
	}
	file, line, column, inside := at.Text.Position(at.Line, at.Column)
	r.Findings = append(r.Findings, Finding{
		Rule: rule, Severity: s, File: file, Line: line, Column: column, Path: at.Path, Inside: inside,
		Found: found, Fix: fix, Fixable: len(edits) > 0, Edits: edits,
	})
}

// Note tells the reader something that is not a fault.
func (r *Report) Note(rule string, at reading.Place, format string, args ...any) {
	file, line, column, _ := at.Text.Position(at.Line, at.Column)
	r.Notes = append(r.Notes, Note{Rule: rule, File: file, Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// Unreadable records why a text cannot be read.
func (r *Report) Unreadable(t *reading.Text, problems []strictyaml.Problem) {
	for _, p := range problems {
		file, line, column, inside := t.Position(max(1, p.Line), p.Column)
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
		r.Problems = append(r.Problems, Problem{File: file, Line: line, Column: column, Text: text})
	}
}

// Severity says how bad a finding is.
type Severity string

// The severities of findings.
const (
	Error   Severity = "error"   // it is refused, or does not do what it says
	Warning Severity = "warning" // it works, but costs something or will stop to work
)

// Finding is one fault.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`           // from 1
	Column   int      `json:"column"`         // from 1, in characters; 0 is unknown
	Path     string   `json:"path,omitempty"` // in its document, such as spec.template.spec, or ""
	// Inside names a file within this one, with its line, such as "/etc/sysctl.d/99.conf:3", or "".
	Inside  string `json:"inside,omitempty"`
	Found   string `json:"found"` // what is wrong
	Why     string `json:"why"`   // what it costs
	Fix     string `json:"fix"`   // what to do about it
	Source  string `json:"source"`
	Fixable bool   `json:"fixable"` // by Edits, made all or none

	Edits []reading.Edit `json:"-"`
}

// Note tells the reader what was not checked, which is not a fault.
type Note struct {
	Rule   string `json:"rule,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// Problem says why a file, or a part of it, could not be read.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}
