package lint

import (
	"cmp"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/docs"
	"plimsoll.dev/plimsoll/internal/advise/lint/commands"
	"plimsoll.dev/plimsoll/internal/advise/lint/host"
	"plimsoll.dev/plimsoll/internal/advise/lint/objects"
	"plimsoll.dev/plimsoll/internal/advise/lint/reading"
	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

// Schema names the format of a Result as JSON.
const Schema = "plimsoll/lint/v1"

// Rule is one thing that is looked for.
type Rule struct {
	ID       string          `json:"id"`
	Severity report.Severity `json:"severity"`
	Title    string          `json:"title"` // what is found, in a few words
	Why      string          `json:"why"`   // what it costs
	// Source is where that is known from: a row of the seed documents (V17), an
	// official page, or both.
	Source string `json:"source"`
}

// Rules are all rules, grouped by what they look at, as docs/tables/rules.md has them.
func Rules() (rules []Rule) {
	for _, row := range docs.Rules() {
		rules = append(rules, Rule{row[0], report.Severity(row[1]), row[2], row[3], row[4]})
	}
	return rules
}

// Result is what was found in all files together.
type Result struct {
	Schema   string           `json:"schema"`
	Findings []report.Finding `json:"findings"` // in the order of files and lines
	Notes    []report.Note    `json:"notes"`
	Problems []report.Problem `json:"problems"`
	// Files is how many were given, Recognised how many of them are of a kind
	// that is known.
	Files      int `json:"files"`
	Recognised int `json:"recognised"`
}

// Count is the number of findings of a severity.
func (r *Result) Count(s report.Severity) int {
	return count(r.Findings, func(f report.Finding) bool { return f.Severity == s })
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

// RuleOwnFile is the rule that a reading.Fault is found by.
const RuleOwnFile = "own-file"

// Options say what is looked for.
type Options struct {
	// Ignore are rules that are left out.
	Ignore []string
}

// Lint looks at all files together.
func Lint(inputs []reading.Input, o Options) *Result {
	r := &Result{Schema: Schema, Findings: []report.Finding{}, Notes: []report.Note{}, Problems: []report.Problem{}, Files: len(inputs)}
	all := report.Report{Look: lookAt, Tables: report.NewTables()}
	for _, in := range inputs {
		all.Recognised = false
		lookAtFile(&all, reading.NewText(in))
		if all.Recognised {
			r.Recognised++
		}
	}
	objects.AcrossPools(&all)
	objects.AcrossClones(&all)
	objects.AcrossSubnets(&all)
	host.AcrossSettings(&all)
	commands.AcrossCephPools(&all)
	rules := make(map[string]Rule)
	for _, rule := range Rules() {
		rules[rule.ID] = rule
	}
	for _, f := range all.Findings {
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
	r.Notes, r.Problems = append(r.Notes, all.Notes...), append(r.Problems, all.Problems...)
	order := make(map[string]int, len(inputs))
	for i, in := range inputs {
		order[in.Name] = i
	}
	slices.SortStableFunc(r.Findings, func(a, b report.Finding) int {
		return cmp.Or(order[a.File]-order[b.File], a.Line-b.Line, a.Column-b.Column, strings.Compare(a.Rule, b.Rule))
	})
	slices.SortStableFunc(r.Notes, func(a, b report.Note) int { return cmp.Or(order[a.File]-order[b.File], a.Line-b.Line) })
	return r
}
