package plan

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/plan/workload"
	"plimsoll.dev/plimsoll/internal/text/strictyaml"
)

// Brought is something outside of a plan that it names.
type Brought struct {
	At    string // where it stands in the plan
	Param string // that names it, "" for none
	Value string
	Kind  BroughtKind
}

// BroughtKind says what becomes of what a plan names.
type BroughtKind string

// What becomes of what a plan names.
const (
	BroughtProgram   BroughtKind = "program"   // it is run
	BroughtFile      BroughtKind = "file"      // it is read
	BroughtDirectory BroughtKind = "directory" // it is written to
	BroughtWorkload  BroughtKind = "workload"  // its files are read
	BroughtAddress   BroughtKind = "address"   // it is asked
)

// Brings lists what a plan names: its workload, unless that is built in, what its
// parameters, its arms and what it varies name, and the Prometheus that it has asked.
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

// WorkloadPath reports whether the plan's workload is a directory or a file, and not the
// name of one that is built in.
func (p *Plan) WorkloadPath() bool {
	return p.Workload == "." || strings.ContainsRune(p.Workload, filepath.Separator) || filepath.Ext(p.Workload) != ""
}
