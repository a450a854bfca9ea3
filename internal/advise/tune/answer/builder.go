package answer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/tune/param"
	"plimsoll.dev/plimsoll/internal/plan/settings"
)

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
func (b *Builder) Command(line, why string) {
	b.Commands = append(b.Commands, Command{line, why})
}

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
