package plan

import (
	"maps"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Brought is a program or a file of this machine's that a plan names.
type Brought struct {
	At      string // where it stands in the plan
	Param   string
	Value   string
	Program bool
}

// Brings are those that a plan names in its parameters, its arms and what it varies.
func (p *Plan) Brings(t workload.Target) (list []Brought) {
	add := func(at, param, value string) {
		program := slices.Contains(t.Programs, param)
		if value != "" && (program || slices.Contains(t.Files, param)) {
			list = append(list, Brought{at, param, value, program})
		}
	}
	each := func(at string, params Params) {
		for _, name := range slices.Sorted(maps.Keys(params)) {
			add(strings.TrimPrefix(at+".params."+name, "."), name, params[name])
		}
	}
	each("", p.Params)
	for i, arm := range p.Arms {
		each(strictyaml.Index("arms", i), arm.Params)
	}
	for _, item := range p.Vary {
		for i, value := range item.Value {
			add(strictyaml.Index("vary."+item.Key, i), item.Key, value)
		}
	}
	return list
}
