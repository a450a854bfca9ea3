package tune

import (
	"errors"
	"fmt"
	"slices"
)

// builder puts an answer together.
type builder struct{ Answer }

// newBuilder begins an answer with no list nil.
func newBuilder(tool string) *builder {
	return &builder{Answer{
		Schema: Schema, Tool: tool,
		Inputs: []Input{}, Results: []Result{}, Steps: []Step{}, Findings: []Finding{}, Corrections: []Correction{},
		Warnings: []string{}, Files: []File{}, Commands: []Command{}, Sources: []Source{},
	}}
}

// put puts a parameter, an In, on record.
func (b *builder) put(name string, in said, unit string) {
	value, from := in.recorded()
	b.input(name, value, unit, from)
}

// input puts a parameter on record, unless it was neither given nor has a
// default. It takes the place of one of the same name.
func (b *builder) input(name string, value any, unit, from string) {
	if from == "" {
		return
	}
	b.Inputs = slices.DeleteFunc(b.Inputs, func(i Input) bool { return i.Name == name })
	b.Inputs = append(b.Inputs, Input{name, value, unit, from})
}

func (b *builder) result(name string, value any, unit, note string) {
	b.Results = append(b.Results, Result{name, plain(value), unit, note})
}

func (b *builder) step(formula, numbers string, sources ...string) {
	b.cite(sources...)
	b.Steps = append(b.Steps, Step{formula, numbers, sources})
}

func (b *builder) find(f Finding) { b.Findings = append(b.Findings, f) }

// check finds that something is as it should be, or else what f says.
func (b *builder) check(ok bool, f Finding) {
	if ok {
		f = Finding{Grade: OK, What: f.What, Now: f.Now, Wanted: f.Wanted}
	}
	b.find(f)
}

func (b *builder) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); !slices.Contains(b.Warnings, w) {
		b.Warnings = append(b.Warnings, w)
	}
}

func (b *builder) correct(row, says, right, effect string) {
	b.cite(row)
	if !slices.ContainsFunc(b.Corrections, func(c Correction) bool { return c.Row == row && c.Says == says }) {
		b.Corrections = append(b.Corrections, Correction{row, says, right, effect})
	}
}

func (b *builder) file(path, content, reader string) {
	b.Files = append(b.Files, File{path, content, reader})
}

func (b *builder) command(line, why string) {
	b.Commands = append(b.Commands, Command{line, why})
}

// cite puts sources on record once each, in the order of their first use.
func (b *builder) cite(ids ...string) {
	for _, id := range ids {
		if !slices.ContainsFunc(b.Sources, func(s Source) bool { return s.ID == id }) {
			b.Sources = append(b.Sources, sourceOf(id))
		}
	}
}

// begin settles the parameters of a calculator and begins its answer with them.
// problems are what is wrong besides.
func begin(tool string, params []Param, problems ...func() error) (*builder, error) {
	var errs []error
	for _, p := range params {
		errs = append(errs, p.settle())
	}
	for _, check := range problems {
		errs = append(errs, check())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	b := newBuilder(tool)
	for _, p := range params {
		b.input(p.inputOf())
	}
	return b, nil
}
