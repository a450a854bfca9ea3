package strictyaml

import (
	"fmt"
	"strings"
)

// Position is a place in a file.
type Position struct {
	Line   int    // from 1; 0 is unknown
	Column int    // from 1, in characters; 0 is unknown
	Text   string // as Problem.Text
}

// Positions answers, for a file that was decoded: where does it say this, and
// does it say it at all? A nil *Positions belongs to no file and knows nothing.
type Positions struct {
	file  string
	known map[string]Position
}

// File returns the name given to Decode.
func (p *Positions) File() string {
	if p == nil {
		return ""
	}
	return p.file
}

// Has reports whether the file says something at path. A key without a value
// (null) says nothing, so a default applies.
func (p *Positions) Has(path string) bool {
	if p == nil {
		return false
	}
	_, ok := p.known[path]
	return ok
}

// At returns the place of path: that of its value for a scalar, of its key for a
// mapping or a list. For a path of which the file does not speak it is the
// place of the innermost part that it does speak of, so that a missing
// "axis.name" points at "axis".
func (p *Positions) At(path string) Position {
	if p == nil {
		return Position{}
	}
	for end := len(path); end > 0; end-- {
		if at, ok := p.known[path[:end]]; ok && (end == len(path) || path[end] == '.' || path[end] == '[') {
			return at
		}
	}
	return p.known[""]
}

// Problem states a problem with the value at path, for validation after
// Decode.
func (p *Positions) Problem(path, format string, args ...any) Problem {
	at := p.At(path)
	return Problem{
		File: p.File(), Line: at.Line, Column: at.Column, Text: at.Text,
		Path: path, Message: fmt.Sprintf(format, args...),
	}
}

// OtherSchema returns the problem of a file whose schema is not the one wanted.
func (p *Positions) OtherSchema(found, wanted string) Problem {
	if p.Has("schema") {
		return p.Problem("schema", "the schema is %q, not %q", found, wanted)
	}
	problem := p.Problem("", "the file has no schema")
	problem.Hint = "begin it with: schema: " + wanted
	return problem
}

// Validation collects what a validation after Decode finds wrong with a file.
type Validation struct {
	At       *Positions
	Problems []Problem
}

// Fail adds a problem with the value at path.
func (v *Validation) Fail(path, format string, args ...any) { v.Add(path, "", format, args...) }

// Add does what Fail does, with a hint; "" for none.
func (v *Validation) Add(path, hint, format string, args ...any) {
	p := v.At.Problem(path, format, args...)
	p.Hint = hint
	v.Problems = append(v.Problems, p)
}

// set records the place of path.
func (p *Positions) set(path string, at Position) {
	if p == nil {
		return
	}
	if p.known == nil {
		p.known = map[string]Position{}
	}
	p.known[path] = at
}

// State notes that something outside of the file states the value at path.
func (p *Positions) State(path string) { p.set(path, Position{}) }

// Key returns the path of a mapping's key: "axis" and "name" give "axis.name". Keys
// that hold punctuation of paths are quoted: labels["app.kubernetes.io/name"].
func Key(path, key string) string {
	if key == "" || strings.ContainsAny(key, `.[]"`) {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// Index returns the path of a list's item, counted from 0: "jobs[0]".
func Index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }
