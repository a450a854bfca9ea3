package tune

import (
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

// input puts a parameter, an In, on record, unless it was neither given nor has
// a default. It takes the place of one of the same name.
func (b *builder) input(name string, in interface{ recorded() (any, string) }, unit string) {
	value, from := in.recorded()
	if from == "" {
		return
	}
	b.Inputs = slices.DeleteFunc(b.Inputs, func(i Input) bool { return i.Name == name })
	b.Inputs = append(b.Inputs, Input{name, value, unit, from})
}

// plain makes numbers and texts of what the parameters hold.
func plain(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case int64, float64, string, bool:
		return v
	case Rate:
		return float64(v)
	case Bytes:
		return int64(v)
	}
	return fmt.Sprint(v)
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
