// Package lint answers one question: what in these configuration files will
// not do what its author meant? It reads what people keep for a cluster and
// for the machines below it (manifests, machine configurations, virtual
// machines, sysctl files, commands in scripts and runbooks), and
// says of each fault where it stands, what it costs and how it is fixed. It
// talks to no cluster.
//
// Rules are small checks over parsed files; see Rules. A text is looked at by the
// reader of its format (see readers), which may find texts inside of it; each
// look adds to a report what is wrong, and facts. The facts of all files are then
// held against each other: a selector against the pools, a clone against its
// source.
package lint

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/docs"
)

// Schema names the format of a Result as JSON.
const Schema = "plimsoll/lint/v1"

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

// RuleOwnFile is the rule that a Fault is found by.
const RuleOwnFile = "own-file"

// Options say what is looked for.
type Options struct {
	// Ignore are rules that are left out.
	Ignore []string
}

// Lint looks at all files together.
func Lint(inputs []Input, o Options) *Result {
	r := &Result{Schema: Schema, Findings: []Finding{}, Notes: []Note{}, Problems: []Problem{}, Files: len(inputs)}
	all := report{look: lookAt, tables: newTables()}
	for _, in := range inputs {
		all.recognised = false
		lookAtFile(&all, newText(in))
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
