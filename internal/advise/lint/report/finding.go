package report

import (
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
)

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	// Error: it is refused, or it does not do what it says.
	Error Severity = "error"
	// Warning: it works, but costs something or will stop to work.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`   // from 1
	Column   int      `json:"column"` // from 1, in characters; 0 is unknown
	// Path is where in its document it stands, such as spec.template.spec; "".
	Path string `json:"path,omitempty"`
	// Inside names a file that is written inside of this one, with the line in
	// there: "/etc/sysctl.d/99.conf:3". "" for what stands in the file itself.
	Inside string `json:"inside,omitempty"`
	Found  string `json:"found"` // what was found
	Why    string `json:"why"`   // what it costs
	Fix    string `json:"fix"`   // what to do about it
	Source string `json:"source"`
	// Fixable says that Fix makes the fix.
	Fixable bool `json:"fixable"`

	// Edits are the fix, made all or none.
	Edits []reading.Edit `json:"-"`
}

// Note is something that the reader must know and that is no fault: what could
// not be checked, or was not looked at.
type Note struct {
	Rule   string `json:"rule,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// Problem is why a file, or a part of it, could not be read.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}
