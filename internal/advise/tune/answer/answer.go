// Package answer holds and shows the answers of calculators: the inputs, the formula with numbers, the
// sources and their errors, and the files to apply.
package answer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/docs"
	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/plan/settings"
)

// Schema names the form of an Answer as JSON and YAML.
const Schema = "plimsoll/tune/v1"

// Answer holds the result of a calculator. All lists are in the order for the reader; none is nil.
type Answer struct {
	Schema      string       `json:"schema"`
	Tool        string       `json:"tool"`   // the calculator's name, such as "ceph"
	Title       string       `json:"title"`  // one line
	Inputs      []Input      `json:"inputs"` // with defaults
	Results     []Result     `json:"results"`
	Steps       []Step       `json:"steps"`
	Findings    []Finding    `json:"findings"`
	Corrections []Correction `json:"corrections"`
	Warnings    []string     `json:"warnings"`
	// Ceilings, Settings and Stages belong to a plan: its bounds, the changes, and their order.
	Ceilings []Ceiling `json:"ceilings,omitempty"`
	Settings []Setting `json:"settings,omitempty"`
	Stages   []Stage   `json:"stages,omitempty"`
	Files    []File    `json:"files"`
	Commands []Command `json:"commands"`
	Sources  []Source  `json:"sources"`
}

// Input is a parameter as it was used.
type Input struct {
	Name  string `json:"name"`
	Value any    `json:"value"` // a number or a text
	Unit  string `json:"unit,omitempty"`
	From  string `json:"from"` // "flag --osds", "default: ...", "read from ..."
}

// Result is a figure of an answer. Its name never changes.
type Result struct {
	Name  string `json:"name"`
	Value any    `json:"value"` // a number or a text
	Unit  string `json:"unit,omitempty"`
	Note  string `json:"note,omitempty"`
}

// Step is a line of the calculation.
type Step struct {
	Formula string   `json:"formula"`           // in words
	Numbers string   `json:"numbers"`           // the formula with numbers and its result
	Sources []string `json:"sources,omitempty"` // ids of Answer.Sources
}

// Grade says what a finding means.
type Grade string

// The grades of findings.
const (
	OK     Grade = "ok"     // as it should be
	Change Grade = "change" // not as wanted
	Advice Grade = "advice" // not a fault, but worth knowing
	Cannot Grade = "cannot" // impossible
	NoSuch Grade = "noSuch" // the setting does not exist here
	Unseen Grade = "unseen" // it could not be read
)

// Finding compares what is with what is wanted.
type Finding struct {
	Grade  Grade  `json:"grade"`
	What   string `json:"what"`
	Now    string `json:"now,omitempty"`
	Wanted string `json:"wanted,omitempty"`
	Cost   string `json:"cost,omitempty"`   // of the difference
	Remedy string `json:"remedy,omitempty"` // what to do about it
}

// Correction says where a source is wrong.
type Correction struct {
	Row    string `json:"row"`
	Says   string `json:"says"`
	Right  string `json:"right"`
	Effect string `json:"effect,omitempty"` // of following the source
}

// Ceiling is a bound of a plan.
type Ceiling struct {
	Name  string `json:"name"` // never changes, such as addressesPerNode
	What  string `json:"what"`
	Limit int64  `json:"limit"` // with the settings of the plan
	Asked int64  `json:"asked"`
	Usual int64  `json:"usual,omitempty"` // without the plan; 0 is unknown
	// Set says what moves it: "installation" once, "setting", or "tested" if higher values are untested.
	Set   string `json:"set"`
	Holds bool   `json:"holds"`
}

// Setting is a change that a plan needs.
type Setting struct {
	Name  string `json:"name"`
	From  string `json:"from"`
	To    string `json:"to"`
	Stage int    `json:"stage"`           // from 1
	Fixed bool   `json:"fixed,omitempty"` // at installation
	File  string `json:"file,omitempty"`
}

// Stage is a step of a plan.
type Stage struct {
	When  string   `json:"when"`
	Do    []string `json:"do"`
	Fixed bool     `json:"fixed,omitempty"` // it cannot be changed later
}

// File is a file to apply.
type File struct {
	Path    string `json:"path"` // relative, with slashes
	Content string `json:"content"`
	For     string `json:"for"` // the program that reads it, and how
}

// Command is a command to run, as a shell reads it.
type Command struct {
	Line string `json:"line"`
	Why  string `json:"why,omitempty"`
}

// Result returns the figure with a name, or nil.
func (a *Answer) Result(name string) any {
	for _, r := range a.Results {
		if r.Name == name {
			return r.Value
		}
	}
	return nil
}

// Impossible reports whether a finding says that something is impossible.
func (a *Answer) Impossible() bool {
	return slices.ContainsFunc(a.Findings, func(f Finding) bool { return f.Grade == Cannot })
}

// Source names the document or page of a rule.
type Source struct {
	ID      string `json:"id"`                // a row of a source document, such as V12, or the short name of an official page
	Title   string `json:"title"`             // the document or page
	Address string `json:"address,omitempty"` // of an official page
	Says    string `json:"says,omitempty"`    // the rule in short
}

// sourceOf finds a source by its id on the page that explains them. A test finds unknown ids.
func sourceOf(id string) Source {
	switch row := docs.Source(id); len(row) {
	case 1:
		document := docs.Source(id[:1]) // its number and title
		return Source{ID: id, Title: document[len(document)-1], Says: row[0]}
	case 3:
		return Source{id, row[0], row[1], row[2]}
	}
	return Source{ID: id, Title: "unknown source " + id}
}

// Builder puts an answer together.
type Builder struct{ Answer }

// NewBuilder begins an answer with no list nil.
func NewBuilder(tool string) *Builder {
	return &Builder{Answer{
		Schema: Schema, Tool: tool,
		Inputs: []Input{}, Results: []Result{}, Steps: []Step{}, Findings: []Finding{}, Corrections: []Correction{},
		Warnings: []string{}, Files: []File{}, Commands: []Command{}, Sources: []Source{},
	}}
}

// Put records a parameter, an In.
func (b *Builder) Put(name string, in param.Said, unit string) {
	value, _, from := in.Recorded()
	b.input(name, value, unit, from)
}

// input records a parameter that was given or has a default, in the place of an earlier one with that name.
func (b *Builder) input(name string, value any, unit, from string) {
	if from == "" {
		return
	}
	b.Inputs = slices.DeleteFunc(b.Inputs, func(i Input) bool { return i.Name == name })
	b.Inputs = append(b.Inputs, Input{name, value, unit, from})
}

// Figure adds a figure.
func (b *Builder) Figure(name string, value any, unit, note string) {
	b.Results = append(b.Results, Result{name, param.Plain(value), unit, note})
}

// Step adds a line of the calculation, and its sources.
func (b *Builder) Step(formula, numbers string, sources ...string) {
	b.Cite(sources...)
	b.Steps = append(b.Steps, Step{formula, numbers, sources})
}

// Find adds a finding.
func (b *Builder) Find(f Finding) { b.Findings = append(b.Findings, f) }

// Check adds a finding that is OK, or else f.
func (b *Builder) Check(ok bool, f Finding) {
	if ok {
		f = Finding{Grade: OK, What: f.What, Now: f.Now, Wanted: f.Wanted}
	}
	b.Find(f)
}

// Warn adds a warning once.
func (b *Builder) Warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(b.Warnings, w) {
		b.Warnings = append(b.Warnings, w)
	}
}

// Correct records once where a source is wrong.
func (b *Builder) Correct(row, says, right, effect string) {
	b.Cite(row)
	if !slices.ContainsFunc(b.Corrections, func(c Correction) bool { return c.Row == row && c.Says == says }) {
		b.Corrections = append(b.Corrections, Correction{row, says, right, effect})
	}
}

// File adds a file to apply.
func (b *Builder) File(path, content, reader string) {
	b.Files = append(b.Files, File{path, content, reader})
}

// Command adds a command to run.
func (b *Builder) Command(line, why string) { b.Commands = append(b.Commands, Command{line, why}) }

// Cite records sources once each, in the order of their first use.
func (b *Builder) Cite(ids ...string) {
	for _, id := range ids {
		if !slices.ContainsFunc(b.Sources, func(s Source) bool { return s.ID == id }) {
			b.Sources = append(b.Sources, sourceOf(id))
		}
	}
}

// Begin applies defaults to a calculator's parameters, checks them, and begins an answer with them.
func Begin(tool string, params any, problems ...func() error) (*Builder, error) {
	var errs []error
	settings.Default(params, func(string) bool { return false })
	for _, p := range settings.Validate(params, "", nil) {
		errs = append(errs, param.Bad(strings.TrimPrefix(settings.FlagOf(params, p.Path), "--"), p.Hint, "%s", p.Message))
	}
	for _, check := range problems {
		errs = append(errs, check())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	b := NewBuilder(tool)
	for _, f := range settings.Fields(params) {
		if said, ok := f.Of(params).Interface().(param.Said); ok {
			value, unit, from := said.Recorded()
			b.input(f.Path, value, cmp.Or(f.Tag.Get("in"), unit), from)
		}
	}
	return b, nil
}
