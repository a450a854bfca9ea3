package plan

import (
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/redact"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Cell holds one combination of the values that a plan varies.
type Cell struct {
	Name string // lists the values as k=v,k=v in the order of the plan
	// Values maps parameters of the workload, or paths of the target's settings such as lab.nodes.
	Values map[string]string
}

const maxCells = 500

// Cells returns all combinations of the values that the plan varies, the last key changing fastest.
func (p *Plan) Cells() []Cell {
	if len(p.Vary) == 0 {
		return nil
	}
	cells := []Cell{{}}
	for _, key := range p.Vary {
		var next []Cell
		for _, c := range cells {
			for _, value := range key.Value {
				values := maps.Clone(c.Values)
				if values == nil {
					values = make(map[string]string)
				}
				values[key.Key] = value
				next = append(next, Cell{strings.TrimPrefix(c.Name+","+key.Key+"="+value, ","), values})
			}
		}
		cells = next
	}
	return cells
}

// Rounds returns the orders of visits to the cells. A search visits each cell once, in order; a sweep each
// once a round, in an order that Seed draws, so that drift affects all alike.
func (p *Plan) Rounds() [][]int {
	n := len(p.Cells())
	rounds := make([][]int, max(p.Repeat.Most, 1))
	for i := range rounds {
		if rounds[i] = rand.New(rand.NewPCG(p.Seed, uint64(i+1))).Perm(n); p.Kind != Sweep || p.Repeat.Most < 2 {
			slices.Sort(rounds[i])
		}
	}
	return rounds
}

// OfCell returns the plan of one cell, for a target. It fails for a value that the key cannot have.
func (p *Plan) OfCell(c Cell, t workload.Target) (*Plan, error) {
	of := *p
	of.Vary, of.positions = nil, nil
	of.Name += "-" + c.Name
	if of.Seed != 0 {
		// Cells with the same random choices would resemble each other.
		own := fnv.New64a()
		fmt.Fprintf(own, "%d %s", p.Seed, c.Name)
		of.Seed = max(own.Sum64(), 1)
	}
	of.Params = maps.Clone(p.Params)
	for key, value := range c.Values {
		if in, _, is := strings.Cut(key, "."); is { // parameter names have no dots
			if !p.Target.Has(in) {
				return nil, fmt.Errorf("%s: what the plan loads has no %s of its own", key, in)
			}
			var raw strictyaml.Raw
			if _, err := strictyaml.Decode("", []byte(value), &raw); err != nil {
				return nil, fmt.Errorf("%s=%s: %w", key, value, err)
			}
			of.Target, of.Own = of.Target.With(key, raw), nil
			continue
		}
		if of.Params == nil {
			of.Params = make(Params)
		}
		of.Params[key] = value
	}
	return &of, of.ReadTarget(t)
}

// vary judges the varied values, each cell as a plan of its own.
func (v *validator) vary(w *workload.Workload) {
	p := v.plan
	if len(p.Vary) == 0 {
		return
	}
	if p.Kind != Limit && p.Kind != Sweep {
		v.Add("vary", "give the values as arms", "only a search and a sweep are varied, and this is: %s", p.Kind)
		return
	}
	for _, item := range p.Vary {
		path := strictyaml.Key("vary", item.Key)
		if len(item.Value) == 0 {
			v.Add(path, "for example [a, b]", "%s has no values", item.Key)
		}
		for i, value := range item.Value {
			if redact.IsHidden(value) {
				v.Add(strictyaml.Index(path, i), "give the values as arms", "the parameter %s is secret, and a combination is called by its values", item.Key)
			}
			if slices.Contains(item.Value[:i], value) {
				v.Add(strictyaml.Index(path, i), "", "%s has the value %q twice", item.Key, value)
			}
		}
		if _, given := p.Params[item.Key]; given {
			v.Add(path, "leave out one of them", "the parameter %s is both given and varied", item.Key)
		}
	}
	if len(v.Problems) > 0 {
		return
	}
	seen := make(map[string]bool) // cells share problems
	for _, c := range p.Cells() {
		of, err := p.OfCell(c, w.Target)
		if err == nil {
			err = of.Validate(w)
		}
		texts := []string{}
		for _, problem := range strictyaml.Problems(err) {
			texts = append(texts, strings.TrimPrefix(problem.Path+": "+problem.Message, ": "))
		}
		if err != nil && len(texts) == 0 {
			texts = []string{err.Error()}
		}
		for _, text := range texts {
			if !seen[text] {
				seen[text] = true
				v.Add("vary", "", "%s: %s", c.Name, text)
			}
		}
	}
}
