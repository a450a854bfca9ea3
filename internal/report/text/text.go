// Package text writes for a terminal what package view has shaped.
package text

import (
	"io"
	"strings"

	"plimsoll.dev/plimsoll/internal/report/view"
	"plimsoll.dev/plimsoll/internal/text/redact"
)

// Terminal is a writer that shows so many columns: tables and paragraphs that are
// written to it are no wider. To any other writer they are as wide as what they hold.
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

// Printable keeps what a cluster says from steering the terminal.
func Printable(text string) string {
	return redact.Visible(strings.NewReplacer("\n", " ", "\t", " ", "\r", " ").Replace(text))
}
