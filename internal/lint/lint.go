// Package lint answers one question: what in these configuration files will
// not do what its author meant? It reads what people keep for a cluster and
// for the machines below it (manifests, machine configurations, virtual
// machines, sysctl files, inventories, commands in scripts and runbooks), and
// says of each fault where it stands, what it costs and how it is mended. It
// talks to no cluster.
//
// Rules are small pure checks over parsed files; see Rules. What one file says
// is also held against the others that were given: a selector against the
// pools, a clone against its source, a data set against its disk.
package lint

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/strictyaml"
	"plimsoll.dev/plimsoll/internal/workload"
)

// Schema names the format of a Result as JSON.
const Schema = "plimsoll/lint/v1"

// Severity says how bad a finding is.
type Severity string

// The severities.
const (
	// Error: it is refused, or it does not do what it says.
	Error Severity = "error"
	// Warning: it works, but costs something or will stop to work.
	Warning Severity = "warning"
)

// Finding is one thing that is wrong.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line"`   // from 1
	Column   int      `json:"column"` // from 1, in characters; 0 is unknown
	// Path is where in its document it stands, such as spec.template.spec; "".
	Path string `json:"path,omitempty"`
	// Inside names a file that is written inside of this one, with the line in
	// there: "/etc/sysctl.d/99.conf:3". "" for what stands in the file itself.
	Inside string `json:"inside,omitempty"`
	Found  string `json:"found"` // what was found
	Why    string `json:"why"`   // what it costs
	Mend   string `json:"mend"`  // what to do about it
	Source string `json:"source"`
	// Fixable says that Fix makes the mend.
	Fixable bool `json:"fixable"`

	edits []edit
}

// Note is something that the reader must know and that is no fault: what could
// not be checked, or was not looked at.
type Note struct {
	Rule   string `json:"rule,omitempty"`
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// Problem is why a file, or a part of it, could not be read.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Text   string `json:"text"`
}

// Result is what was found in all files together.
type Result struct {
	Schema   string    `json:"schema"`
	Findings []Finding `json:"findings"` // in the order of files and lines
	Notes    []Note    `json:"notes"`
	Problems []Problem `json:"problems"`
	// Files is how many were given, Recognised how many of them are of a kind
	// that is known.
	Files      int `json:"files"`
	Recognised int `json:"recognised"`
}

// Count is the number of findings of a severity.
func (r *Result) Count(s Severity) (n int) {
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Input is a file to look at.
type Input struct {
	Name string
	Data []byte
	// Dir are the files beside it, for what refers to them; nil for none.
	Dir fs.FS
	// Asked says that the user named this very file: that it is of no known
	// kind is then worth a note.
	Asked bool
}

// Options say what is looked for.
type Options struct {
	// Ignore are rules that are left out.
	Ignore []string
	// Kubernetes is the minor version of 1.x that API versions are judged for;
	// 0 is the newest that is known.
	Kubernetes int
	// Workload finds the workload that a plan names; nil checks plans in part.
	Workload func(name string) (*workload.Workload, error)
	// Disk is how many bytes the disk has that data sets are written to; 0 is
	// not said, and disks of the files are looked at.
	Disk int64
}

// Lint looks at all files together.
func Lint(inputs []Input, o Options) *Result {
	l := &linter{
		options: o,
		rules:   make(map[string]Rule),
		result:  &Result{Schema: Schema, Findings: []Finding{}, Notes: []Note{}, Problems: []Problem{}, Files: len(inputs)},
		shapes:  newShapes(),
		enums:   enums(),
	}
	for _, r := range Rules() {
		l.rules[r.ID] = r
	}
	for _, in := range inputs {
		l.recognised = false
		l.file(in)
		if l.recognised {
			l.result.Recognised++
		}
	}
	l.across()
	r := l.result
	r.Findings = slices.DeleteFunc(r.Findings, func(f Finding) bool { return slices.Contains(o.Ignore, f.Rule) })
	order := make(map[string]int, len(inputs))
	for i, in := range inputs {
		order[in.Name] = i
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		return cmp.Or(order[a.File]-order[b.File], a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Rule, b.Rule))
	})
	slices.SortStableFunc(r.Notes, func(a, b Note) int { return cmp.Or(order[a.File]-order[b.File], a.Line-b.Line) })
	return r
}

// linter is one look at a set of files.
type linter struct {
	options Options
	rules   map[string]Rule
	result  *Result
	shapes  *shapes
	enums   map[any][]string

	recognised bool // something of the file under way was
	input      Input
	machine    *object // the virtual machine whose user data is looked at
	role       string  // the role whose MachineConfig is looked at
	broken     bool    // the command before ended where its patch should stand

	// What is kept to be held against each other.
	objects   []*object
	labels    []labelled
	settings  []setting
	maxPods   []podLimit
	dataSets  []dataSet
	clusters  []clusterNetwork
	cephPools []cephPool
	// clonedPieces are of pieces of objects in texts for people.
	clonedPieces []clonedPiece

	sysctl      *sysctlFacts
	routerFacts map[string]string
}

// place is where a finding stands.
type place struct {
	text         *text
	line, column int
	path         string
}

// report makes a finding. The edits, if any, are its mend; they are made all or
// none.
func (l *linter) report(rule string, at place, mend, found string, edits ...edit) {
	l.reportAs(l.rules[rule].Severity, rule, at, mend, found, edits...)
}

// reportAs is report with a severity other than the rule's own.
func (l *linter) reportAs(s Severity, rule string, at place, mend, found string, edits ...edit) {
	r, known := l.rules[rule]
	if !known {
		panic("lint: there is no rule " + rule)
	}
	file, line, column, inside := at.text.position(at.line, at.column)
	if at.text.ignores(at.line, rule) {
		return
	}
	for _, e := range edits {
		if !e.text.editable() {
			edits = nil
			break
		}
	}
	l.result.Findings = append(l.result.Findings, Finding{
		Rule: rule, Severity: s, File: file, Line: line, Column: column, Path: at.path, Inside: inside,
		Found: found, Why: r.Why, Mend: mend, Source: r.Source, Fixable: len(edits) > 0, edits: edits,
	})
}

// note says what the reader must know besides.
func (l *linter) note(rule string, at place, format string, args ...any) {
	file, line, column, _ := at.text.position(at.line, at.column)
	l.result.Notes = append(l.result.Notes, Note{Rule: rule, File: file, Line: line, Column: column, Text: fmt.Sprintf(format, args...)})
}

// unreadable records why a text cannot be read.
func (l *linter) unreadable(t *text, problems []strictyaml.Problem) {
	for _, p := range problems {
		file, line, column, inside := t.position(max(1, p.Line), p.Column)
		if p.Line == 0 {
			line, column = 0, 0
		}
		text := p.Message
		if inside != "" {
			text = inside + ": " + text
		}
		if p.Hint != "" {
			text += " (" + p.Hint + ")"
		}
		l.result.Problems = append(l.result.Problems, Problem{File: file, Line: line, Column: column, Text: text})
	}
}

// across holds what all files say against each other.
func (l *linter) across() {
	l.acrossPools()
	l.clones()
	l.acrossDisks()
	l.podsAgainstSubnets()
	l.acrossSettings()
	l.acrossPoolsOfCeph()
	l.budgetsAgainstReplicas()
}
