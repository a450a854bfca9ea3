package plan

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Brought is a program, file or address that a plan names.
type Brought struct {
	At    string // its path in the plan
	Param string // the parameter that names it, "" for none
	Value string
	Kind  BroughtKind
}

// BroughtKind says how a run uses what its plan names.
type BroughtKind string

// How a run uses what its plan names.
const (
	BroughtProgram   BroughtKind = "program"   // the run starts it
	BroughtFile      BroughtKind = "file"      // the run reads it
	BroughtDirectory BroughtKind = "directory" // the run writes to it
	BroughtWorkload  BroughtKind = "workload"  // the run reads its files
	BroughtAddress   BroughtKind = "address"   // the run queries it
)

// Brings lists the workload, unless built in, the files and programs, and the Prometheus of a plan.
func (p *Plan) Brings(t workload.Target) (list []Brought) {
	if p.WorkloadPath() {
		list = append(list, Brought{"workload", "", p.Workload, BroughtWorkload})
	}
	add := func(at, param, value string) {
		switch {
		case value == "":
		case slices.Contains(t.Programs, param):
			list = append(list, Brought{at, param, value, BroughtProgram})
		case slices.Contains(t.Files, param):
			list = append(list, Brought{at, param, value, BroughtFile})
		case slices.Contains(t.Directories, param):
			for dir := range strings.SplitSeq(value, "+") {
				if dir != "" {
					list = append(list, Brought{at, param, dir, BroughtDirectory})
				}
			}
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
	if q := p.Prometheus; q != nil && q.URL != OpenShift {
		list = append(list, Brought{"prometheus.url", "", q.URL, BroughtAddress})
	}
	return list
}

// WorkloadPath reports whether the plan names its workload by a path.
func (p *Plan) WorkloadPath() bool {
	return p.Workload == "." || strings.ContainsRune(p.Workload, filepath.Separator) || filepath.Ext(p.Workload) != ""
}
