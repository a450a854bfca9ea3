package lint

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/docs"
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

// Rule is one thing that is looked for.
type Rule struct {
	ID       string   `json:"id"`
	Severity Severity `json:"severity"`
	Title    string   `json:"title"` // what is found, in a few words
	Why      string   `json:"why"`   // what it costs
	// Source is where that is known from: a row of the seed documents (V17), an
	// official page, or both.
	Source string `json:"source"`
}

// Rules are all rules, grouped by what they look at, as docs/rules.md has them.
func Rules() (rules []Rule) {
	for _, row := range docs.Rules() {
		rules = append(rules, Rule{row[0], Severity(row[1]), row[2], row[3], row[4]})
	}
	return rules
}

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
	Fix    string `json:"fix"`   // what to do about it
	Source string `json:"source"`
	// Fixable says that Fix makes the fix.
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
func (r *Result) Count(s Severity) int {
	return count(r.Findings, func(f Finding) bool { return f.Severity == s })
}

// count is how many of a list are meant.
func count[T any](list []T, meant func(T) bool) (n int) {
	for _, one := range list {
		if meant(one) {
			n++
		}
	}
	return n
}

// Input is a file to look at.
type Input struct {
	Name string
	Data []byte
	// Asked says that the user named this very file: that it is of no known
	// kind is then worth a note.
	Asked bool
	// Checked says that the caller knows this kind of file and has looked at it;
	// Faults are what it found, in this file or in those that belong to it.
	Checked bool
	Faults  []Fault
}

// RuleOwnFile is the rule that a Fault is found by.
const RuleOwnFile = "own-file"

// Fault is a mistake in a file of this program's own formats.
type Fault struct {
	File         string // that it stands in
	Line, Column int
	Path, Found  string
	Fix          string
}

// Options say what is looked for.
type Options struct {
	// Ignore are rules that are left out.
	Ignore []string
}

// Lint looks at all files together.
func Lint(inputs []Input, o Options) *Result {
	r := &Result{Schema: Schema, Findings: []Finding{}, Notes: []Note{}, Problems: []Problem{}, Files: len(inputs)}
	known := newTables()
	var all report
	for _, in := range inputs {
		all.recognised = false
		lookAtFile(&all, newText(&source{file: in, options: o, tables: known}))
		if all.recognised {
			r.Recognised++
		}
	}
	acrossPools(&all)
	acrossClones(&all)
	acrossSubnets(&all)
	acrossSettings(&all)
	acrossCephPools(&all)
	rules := make(map[string]Rule)
	for _, rule := range Rules() {
		rules[rule.ID] = rule
	}
	for _, f := range all.findings {
		rule, ok := rules[f.Rule]
		if !ok {
			panic("lint: there is no rule " + f.Rule)
		}
		if slices.Contains(o.Ignore, f.Rule) {
			continue
		}
		f.Severity, f.Why, f.Source = cmp.Or(f.Severity, rule.Severity), rule.Why, rule.Source
		r.Findings = append(r.Findings, f)
	}
	r.Notes, r.Problems = append(r.Notes, all.notes...), append(r.Problems, all.problems...)
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
