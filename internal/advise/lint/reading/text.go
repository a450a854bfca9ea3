// Package reading says what a file contains and where, and changes it there. It recognises the formats of
// texts, finds texts inside of texts, and reads YAML with its places.
package reading

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Text is a file, or a text inside of one, such as a file in a MachineConfig or a block in a runbook.
type Text struct {
	File    *Input
	Name    string // where it is used: the file's own name, or "/etc/sysctl.d/99.conf" inside of a MachineConfig
	Data    string
	Lines   []int // offsets at which lines begin
	Snippet bool  // marks a part of a text for people, which may be a piece of a document, or prose

	Parent     *Text
	Start, End int                 // in the parent
	Encode     func(string) string // writes a changed text as in the parent; nil if it cannot be changed there
	// Outer returns a place's place in the parent; nil if only the beginning has one.
	Outer  func(line, column int) (int, int)
	Role   string // of the MachineConfig around it, or ""
	Inside string // its name in messages, "" if positions suffice
}

// NewText returns a whole file.
func NewText(in Input) *Text {
	t := &Text{File: &in, Name: in.Name, Data: string(in.Data)}
	t.Index()
	return t
}

// Inner returns a text that a range of this one holds in another form. It cannot be changed there.
func (t *Text) Inner(start, end int, name, data string) *Text {
	p := &Text{File: t.File, Name: name, Data: data, Parent: t, Start: start, End: end, Snippet: t.Snippet, Role: t.Role}
	p.Index()
	return p
}

// Index finds the lines of the text again.
func (t *Text) Index() {
	t.Lines = []int{0}
	for i := 0; i < len(t.Data); i++ {
		switch t.Data[i] {
		case '\r':
			if i+1 < len(t.Data) && t.Data[i+1] == '\n' {
				i++
			}
			t.Lines = append(t.Lines, i+1)
		case '\n':
			t.Lines = append(t.Lines, i+1)
		}
	}
}

// Line returns a line without its end, from 1; "" past the last.
func (t *Text) Line(n int) string {
	if n < 1 || n > len(t.Lines) {
		return ""
	}
	return strings.TrimRight(t.Data[t.Lines[n-1]:t.LineEnd(n)], "\r\n")
}

// LineEnd returns the offset behind a line and its end.
func (t *Text) LineEnd(n int) int {
	if n < len(t.Lines) {
		return t.Lines[n]
	}
	return len(t.Data)
}

// Offset returns the byte offset of a place; ok is false without such a place.
func (t *Text) Offset(line, column int) (offset int, ok bool) {
	if line < 1 || line > len(t.Lines) || column < 1 {
		return 0, false
	}
	i := t.Lines[line-1]
	end := t.LineEnd(line)
	if line == 1 && strings.HasPrefix(t.Data, "\ufeff") {
		i += len("\ufeff")
	}
	for ; column > 1; column-- {
		if i >= end {
			return 0, false
		}
		_, n := utf8.DecodeRuneInString(t.Data[i:end])
		i += n
	}
	return i, true
}

// At returns the place of a byte offset.
func (t *Text) At(offset int) (line, column int) {
	i, found := slices.BinarySearch(t.Lines, offset)
	if !found {
		i--
	}
	start := t.Lines[i]
	if i == 0 && strings.HasPrefix(t.Data, "\ufeff") {
		start = min(offset, len("\ufeff"))
	}
	return i + 1, utf8.RuneCountInString(t.Data[start:offset]) + 1
}

// Place returns a place of this text.
func (t *Text) Place(line, column int) Place { return Place{Text: t, Line: line, Column: column} }

// PlaceAt returns the place of a byte offset.
func (t *Text) PlaceAt(offset int) Place { return t.Place(t.At(offset)) }

// Position returns where a place is in the file, and the files around it.
func (t *Text) Position(line, column int) (file string, fileLine, fileColumn int, inside string) {
	if t.Parent == nil {
		return t.File.Name, line, column, ""
	}
	if t.Inside != "" {
		inside = fmt.Sprintf("%s:%d", t.Inside, line)
	}
	if t.Outer != nil {
		line, column = t.Outer(line, column)
	} else {
		line, column = t.Parent.At(t.Start)
	}
	file, fileLine, fileColumn, around := t.Parent.Position(line, column)
	if inside == "" {
		inside = around
	} else if around != "" {
		inside = around + ": " + inside
	}
	return file, fileLine, fileColumn, inside
}

// Editable reports whether edits of this text reach the file.
func (t *Text) Editable() bool {
	for ; t.Parent != nil; t = t.Parent {
		if t.Encode == nil {
			return false
		}
	}
	return true
}

// Depth counts the texts around this one.
func (t *Text) Depth() (n int) {
	for ; t.Parent != nil; t = t.Parent {
		n++
	}
	return n
}

// Part returns a range of this text as a text of its own.
func (t *Text) Part(start, end int, name string) *Text {
	p := t.Inner(start, end, name, t.Data[start:end])
	p.Encode = func(s string) string { return s }
	firstLine, firstColumn := t.At(start)
	p.Outer = func(line, column int) (int, int) {
		if line == 1 && column > 0 {
			column += firstColumn - 1
		}
		return firstLine + line - 1, column
	}
	return p
}

// Indented returns whole lines of this text as one of its own, without their common indentation.
func (t *Text) Indented(start, end int, indent, name string) *Text {
	var b strings.Builder
	for line := range strings.Lines(t.Data[start:end]) {
		rest, cut := strings.CutPrefix(line, indent)
		if !cut {
			rest = strings.TrimLeft(line, " \t")
		}
		b.WriteString(rest)
	}
	p := t.Inner(start, end, name, b.String())
	p.Encode = func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			if strings.TrimRight(line, "\r\n") != "" {
				b.WriteString(indent)
			}
			b.WriteString(line)
		}
		return b.String()
	}
	firstLine, _ := t.At(start)
	width := utf8.RuneCountInString(indent)
	p.Outer = func(line, column int) (int, int) {
		if column > 0 {
			column += width
		}
		return firstLine + line - 1, column
	}
	return p
}

// Ignores reports whether "plimsoll-ignore: RULE, RULE" on the line or the one before turns a rule off.
func (t *Text) Ignores(line int, rule string) bool {
	for n := line - 1; n <= line; n++ {
		const mark = "plimsoll-ignore:"
		text := t.Line(n)
		i := strings.Index(text, mark)
		if i < 0 || n < line && !strings.HasPrefix(strings.TrimLeft(text, " \t#;/-"), mark) {
			continue // the line before may say nothing else
		}
		if slices.Contains(strings.FieldsFunc(text[i+len(mark):], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }), rule) {
			return true
		}
	}
	return false
}

// Edit replaces a range of a text.
type Edit struct {
	Text       *Text
	Start, End int
	With       string
}

// Place locates a finding.
type Place struct {
	Text         *Text
	Line, Column int
	Path         string
}

// FileLine returns the line of a place in its file.
func FileLine(at Place) int {
	_, line, _, _ := at.Text.Position(at.Line, at.Column)
	return line
}

// Seen names a place at another one: by its line, and by its file if that differs.
func Seen(from, at Place) string {
	if at.Text == nil {
		return ""
	}
	_, line, _, _ := at.Text.Position(at.Line, at.Column)
	if from.Text != nil && from.Text.File.Name == at.Text.File.Name {
		return fmt.Sprintf("on line %d", line)
	}
	return fmt.Sprintf("in %s:%d", at.Text.File.Name, line)
}

// Input is a file to look at.
type Input struct {
	Name    string
	Data    []byte
	Asked   bool // the user named this file, so that an unknown kind is worth a note
	Checked bool // means that the caller has checked this kind of file, with Faults as its findings
	Faults  []Fault
}

// Fault is a mistake in a file of this program's own formats.
type Fault struct {
	File             string
	Line, Column     int
	Path, Found, Fix string
}
