// Package text writes the sections of package view for a terminal.
package text

import (
	"io"
	"strings"

	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Terminal is a writer with so many columns: tables and paragraphs fit into them. Any other writer has no
// bound.
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
