package report

import (
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
)

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
