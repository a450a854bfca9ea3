package lint

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// text is a piece of writing that is looked at: a file, or what is written
// inside of one, such as a file in a MachineConfig or a block in a runbook.
type text struct {
	file *Input
	// name is what it is called where it is used, so that it is known what to
	// read it as: the file's own name, or "/etc/sysctl.d/99.conf" inside of a
	// MachineConfig.
	name  string
	data  string
	lines []int // offsets at which lines begin
	// snippet says that it is a part of a text for people: a piece of a
	// document may stand alone there, and what does not parse may be prose.
	snippet bool

	parent     *text
	start, end int // where it stands in its parent
	// encode writes a changed text as it stands in the parent; nil if it
	// cannot be changed there.
	encode func(string) string
	// outer is where a place of this text is in the parent; nil if only the
	// beginning has one.
	outer func(line, column int) (int, int)
	// role is that of the MachineConfig it stands in, if any.
	role string
	// inside shows in messages what the parent calls it; "" if positions say
	// enough.
	inside string
}

// newText is a whole file.
func newText(in Input) *text {
	t := &text{file: &in, name: in.Name, data: string(in.Data)}
	t.index()
	return t
}

// inner is a text that stands in a range of this one in another form. It cannot
// be changed there.
func (t *text) inner(start, end int, name, data string) *text {
	p := &text{file: t.file, name: name, data: data, parent: t, start: start, end: end, snippet: t.snippet, role: t.role}
	p.index()
	return p
}

func (t *text) index() {
	t.lines = []int{0}
	for i := 0; i < len(t.data); i++ {
		switch t.data[i] {
		case '\r':
			if i+1 < len(t.data) && t.data[i+1] == '\n' {
				i++
			}
			t.lines = append(t.lines, i+1)
		case '\n':
			t.lines = append(t.lines, i+1)
		}
	}
}

// line is a line without its end, from 1; "" past the last.
func (t *text) line(n int) string {
	if n < 1 || n > len(t.lines) {
		return ""
	}
	return strings.TrimRight(t.data[t.lines[n-1]:t.lineEnd(n)], "\r\n")
}

// lineEnd is the offset behind a line and its end.
func (t *text) lineEnd(n int) int {
	if n < len(t.lines) {
		return t.lines[n]
	}
	return len(t.data)
}

// offset is the byte offset of a place; ok is false when there is no such
// place.
func (t *text) offset(line, column int) (offset int, ok bool) {
	if line < 1 || line > len(t.lines) || column < 1 {
		return 0, false
	}
	i := t.lines[line-1]
	end := t.lineEnd(line)
	if line == 1 && strings.HasPrefix(t.data, "\ufeff") {
		i += len("\ufeff")
	}
	for ; column > 1; column-- {
		if i >= end {
			return 0, false
		}
		_, n := utf8.DecodeRuneInString(t.data[i:end])
		i += n
	}
	return i, true
}

// at is the place of a byte offset.
func (t *text) at(offset int) (line, column int) {
	i, found := slices.BinarySearch(t.lines, offset)
	if !found {
		i--
	}
	start := t.lines[i]
	if i == 0 && strings.HasPrefix(t.data, "\ufeff") {
		start = min(offset, len("\ufeff"))
	}
	return i + 1, utf8.RuneCountInString(t.data[start:offset]) + 1
}

// place is a place of this text.
func (t *text) place(line, column int) place {
	return place{text: t, line: line, column: column}
}

// placeAt is the place of a byte offset.
func (t *text) placeAt(offset int) place { return t.place(t.at(offset)) }

// position is where a place stands in the file, and inside of what.
func (t *text) position(line, column int) (file string, fileLine, fileColumn int, inside string) {
	if t.parent == nil {
		return t.file.Name, line, column, ""
	}
	if t.inside != "" {
		inside = fmt.Sprintf("%s:%d", t.inside, line)
	}
	if t.outer != nil {
		line, column = t.outer(line, column)
	} else {
		line, column = t.parent.at(t.start)
	}
	file, fileLine, fileColumn, around := t.parent.position(line, column)
	if inside == "" {
		inside = around
	} else if around != "" {
		inside = around + ": " + inside
	}
	return file, fileLine, fileColumn, inside
}

// editable reports whether edits of this text reach the file.
func (t *text) editable() bool {
	for ; t.parent != nil; t = t.parent {
		if t.encode == nil {
			return false
		}
	}
	return true
}

// depth is how many texts this one stands inside of.
func (t *text) depth() (n int) {
	for ; t.parent != nil; t = t.parent {
		n++
	}
	return n
}

// part is a range of this text as a text of its own, written as it stands.
func (t *text) part(start, end int, name string) *text {
	p := t.inner(start, end, name, t.data[start:end])
	p.encode = func(s string) string { return s }
	firstLine, firstColumn := t.at(start)
	p.outer = func(line, column int) (int, int) {
		if line == 1 && column > 0 {
			column += firstColumn - 1
		}
		return firstLine + line - 1, column
	}
	return p
}

// indented is a block of whole lines of this text that all begin with the same
// indentation, as a text of its own without it. Empty lines may lack it.
func (t *text) indented(start, end int, indent, name string) *text {
	var b strings.Builder
	for line := range strings.Lines(t.data[start:end]) {
		rest, cut := strings.CutPrefix(line, indent)
		if !cut {
			rest = strings.TrimLeft(line, " \t")
		}
		b.WriteString(rest)
	}
	p := t.inner(start, end, name, b.String())
	p.encode = func(s string) string {
		var b strings.Builder
		for line := range strings.Lines(s) {
			if strings.TrimRight(line, "\r\n") != "" {
				b.WriteString(indent)
			}
			b.WriteString(line)
		}
		return b.String()
	}
	firstLine, _ := t.at(start)
	width := utf8.RuneCountInString(indent)
	p.outer = func(line, column int) (int, int) {
		if column > 0 {
			column += width
		}
		return firstLine + line - 1, column
	}
	return p
}

// ignores reports whether a comment on the line, or on the one before, turns a
// rule off: "plimsoll-ignore: RULE, RULE".
func (t *text) ignores(line int, rule string) bool {
	for n := line - 1; n <= line; n++ {
		const mark = "plimsoll-ignore:"
		text := t.line(n)
		i := strings.Index(text, mark)
		if i < 0 || n < line && !strings.HasPrefix(strings.TrimLeft(text, " \t#;/-"), mark) {
			continue // on the line before it must be all that the line says
		}
		if slices.Contains(strings.FieldsFunc(text[i+len(mark):], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }), rule) {
			return true
		}
	}
	return false
}

// edit replaces a range of a text.
type edit struct {
	text       *text
	start, end int
	with       string
}

// place is where a finding stands.
type place struct {
	text         *text
	line, column int
	path         string
}

// fileLine is the line of a place in its file.
func fileLine(at place) int {
	_, line, _, _ := at.text.position(at.line, at.column)
	return line
}

// seen is a place as it is named at another one: by its line, and by its file
// if that is another.
func seen(from, at place) string {
	if at.text == nil {
		return ""
	}
	_, line, _, _ := at.text.position(at.line, at.column)
	if from.text != nil && from.text.file.Name == at.text.file.Name {
		return fmt.Sprintf("on line %d", line)
	}
	return fmt.Sprintf("in %s:%d", at.text.file.Name, line)
}
