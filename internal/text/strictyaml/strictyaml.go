// Package strictyaml answers one question: does this YAML file say what this
// Go type can hold? Everything that it does not say is a problem with file,
// line and column, and all problems are reported, not only the first.
//
// What a type can hold follows from its `yaml` struct tags: "name" for a key
// ("-" for none; without a tag the field's name in lower case), ",inline" or
// an embedded struct for keys of an inner struct. Scalars are read generously
// where nothing is lost (an unquoted 1.10 fills a string with "1.10") and
// strictly where something would be (5.5 does not fill an int, "5" in quotes
// does not either).
//
// The syntax tree is goccy's. The nodes of go.yaml.in/yaml/v3 would be less
// code, but its errors have no column and some no line, and it reads an alias
// within its own anchor, and {{ .x }}, without an error.
package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Problem is one thing a file says that its type cannot hold, or that a later
// validation rejects.
type Problem struct {
	File   string
	Line   int    // from 1; 0 when the problem belongs to no line
	Column int    // from 1, in characters; 0 when unknown
	Path   string // for example "axis.search.step" or "jobs[0].objects[1]"; "" is the whole file
	Found  string // what stands there, for example `text "ten"`; may be ""
	// Message says what is wrong, without file, line and path.
	Message string
	Hint    string // what to do about it; may be ""
	// Text is the line as it was read, where that differs from the line on
	// disk because a template came between; else "".
	Text string
}

// String returns the problem on one line: file:line:column: path: message (hint).
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File + ":")
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "%d:", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, "%d:", p.Column)
		}
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	if p.Text != "" {
		b.WriteString(" in the rendered line: " + p.Text)
	}
	return b.String()
}

// Error is all problems of a file, in the order of their lines.
type Error struct {
	Problems []Problem
}

// Error prints one problem on each line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Join makes one error of problems, sorted by line, or nil when there are none.
func Join(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	sorted := slices.Clone(problems)
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{Problems: sorted}
}

// Problems returns the problems that err carries, or nil.
func Problems(err error) []Problem {
	var e *Error
	if errors.As(err, &e) {
		return e.Problems
	}
	return nil
}

// Origin says where a line comes from.
type Origin struct {
	Line int    // the line on disk, from 1
	Text string // the line as read, if it differs from the line on disk; else ""
}

type options struct {
	kubernetes bool
	origin     func(line int) Origin
}

func (o options) twice() duplicates {
	if o.kubernetes {
		return lastWins
	}
	return refused
}

// Option changes how a file is read.
type Option func(*options)

// Kubernetes reads untyped scalars and keys as Kubernetes reads a manifest:
// YAML 1.1's words for truth (yes, on, y ...), numbers that JSON writes without a
// fraction as integers, and of a key that stands twice the last. Without it an
// untyped "yes" is text, and such a key a problem.
func Kubernetes() Option { return func(o *options) { o.kubernetes = true } }

// LinesFrom states every position as a line of the file on disk: the text
// handed to Decode was rendered from it, and origin says which of its lines
// (from 1) came from where.
func LinesFrom(origin func(line int) Origin) Option {
	return func(o *options) { o.origin = origin }
}

// Decode reads the one document of a YAML file into a pointer. Values that
// the pointer already holds stay where the file says nothing (or null). The
// positions serve later validation; they are never nil. The error is an
// *Error: the syntax error, or everything that does not fit. file is used in
// messages only.
func Decode(file string, data []byte, into any, opts ...Option) (*Positions, error) {
	o := newOptions(opts)
	positions := &Positions{file: file}
	docs, problems := parse(file, data, o.twice())
	switch {
	case len(problems) > 0:
	case len(docs) == 0:
		problems = []Problem{{File: file, Message: "the file is empty"}}
	case len(docs) > 1:
		problems = []Problem{{
			File: file, Line: docs[1].Line, Column: docs[1].Column,
			Message: fmt.Sprintf("the file holds %d documents, one is wanted", len(docs)),
			Hint:    "remove what follows the line ---",
		}}
	default:
		problems = bindDocument(file, docs[0], into, positions, o)
	}
	return positions, Join(o.trace(problems))
}

// DecodeAll reads every document of a YAML file, in order; empty documents are
// skipped, and a file without any gives none. The error is an *Error with the
// problems of all documents.
func DecodeAll[T any](file string, data []byte, opts ...Option) ([]T, error) {
	o := newOptions(opts)
	docs, problems := parse(file, data, o.twice())
	if len(problems) > 0 {
		return nil, Join(o.trace(problems))
	}
	all := make([]T, len(docs))
	for i, doc := range docs {
		problems = append(problems, bindDocument(file, doc, &all[i], nil, o)...)
	}
	if err := Join(o.trace(problems)); err != nil {
		return nil, err
	}
	return all, nil
}

func newOptions(opts []Option) options {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	return o
}

// trace restates problems as lines of the file on disk.
func (o options) trace(problems []Problem) []Problem {
	if o.origin == nil {
		return problems
	}
	for i := range problems {
		p := &problems[i]
		if p.Line == 0 {
			continue
		}
		at := o.place(p.Line, p.Column)
		p.Line, p.Column, p.Text = at.Line, at.Column, at.Text
	}
	return problems
}

// place restates one position as a line of the file on disk. A column of a
// rendered line is no column of the line on disk.
func (o options) place(line, column int) Position {
	if o.origin == nil {
		return Position{Line: line, Column: column}
	}
	from := o.origin(line)
	if from.Text != "" {
		column = 0
	}
	return Position{Line: from.Line, Column: column, Text: from.Text}
}

func bindDocument(file string, doc *Node, into any, positions *Positions, o options) []Problem {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		panic(fmt.Sprintf("strictyaml: cannot decode into %T: want a pointer", into))
	}
	b := &binder{file: file, options: o, positions: positions, fields: map[reflect.Type][]field{}}
	b.bind(doc, target.Elem(), "")
	return b.problems
}
