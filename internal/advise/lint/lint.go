package lint

import (
	"cmp"
	"fmt"
	"io"
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

// Rule describes what lint looks for.
type Rule struct {
	ID       string          `json:"id"`
	Severity report.Severity `json:"severity"`
	Title    string          `json:"title"`  // what is found, in a few words
	Why      string          `json:"why"`    // what it costs
	Source   string          `json:"source"` // a row of the seed documents (V17), an official page, or both
}

// Rules returns all rules, grouped as in docs/rules.md.
func Rules() (rules []Rule) {
	for _, row := range docs.Rules() {
		rules = append(rules, Rule{row[0], report.Severity(row[1]), row[2], row[3], row[4]})
	}
	return rules
}

// Result holds the findings in all files.
type Result struct {
	Schema     string           `json:"schema"`
	Findings   []report.Finding `json:"findings"` // in the order of files and lines
	Notes      []report.Note    `json:"notes"`
	Problems   []report.Problem `json:"problems"`
	Files      int              `json:"files"`
	Recognised int              `json:"recognised"` // of a known kind
}

// Count returns the number of findings of a severity.
func (r *Result) Count(s report.Severity) int {
	return count(r.Findings, func(f report.Finding) bool { return f.Severity == s })
}

func count[T any](list []T, meant func(T) bool) (n int) {
	for _, one := range list {
		if meant(one) {
			n++
		}
	}
	return n
}

// RuleOwnFile names the rule of a reading.Fault.
const RuleOwnFile = "own-file"

// Options select rules.
type Options struct {
	Ignore []string // rules that are left out
	// Kubelet returns what the kubelet's own validation refuses in a configuration; nil: it is not asked.
	Kubelet func(config []byte) []string
	// HAProxy returns what haproxy -c says of a configuration, or an error that says why it was not asked; nil: it
	// is not asked.
	HAProxy func(config string) (said string, err error)
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
	refusedByKubelet(&all, o.Kubelet)
	refusedByHAProxy(&all, o.HAProxy)
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

// Text writes a line for each finding as compilers do, and why it matters below the first of each rule.
func (r *Result) Text(w io.Writer) error {
	var b strings.Builder
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s: unreadable: %s\n", where(p.File, p.Line, p.Column), p.Text)
	}
	explained := make(map[string]bool)
	for _, f := range r.Findings {
		inside := ""
		if f.Inside != "" {
			inside = " (in " + f.Inside + ")"
		}
		fmt.Fprintf(&b, "%s: %s: %s%s [%s]\n", where(f.File, f.Line, f.Column), f.Severity, f.Found, inside, f.Rule)
		if !explained[f.Rule] {
			explained[f.Rule] = true
			fmt.Fprintf(&b, "    why: %s\n    source: %s\n", f.Why, f.Source)
		}
		fix := f.Fix
		if f.Fixable {
			fix += " (--fix does it)"
		}
		fmt.Fprintf(&b, "    fix: %s\n", fix)
	}
	for _, n := range r.Notes {
		rule := ""
		if n.Rule != "" {
			rule = " [" + n.Rule + "]"
		}
		fmt.Fprintf(&b, "%s: note: %s%s\n", where(n.File, n.Line, n.Column), n.Text, rule)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary returns a result in one line.
func (r *Result) Summary() string {
	if len(r.Findings) == 0 {
		return fmt.Sprintf("nothing found in %s", plural(r.Recognised, "checked file"))
	}
	fixable := count(r.Findings, func(f report.Finding) bool { return f.Fixable })
	text := fmt.Sprintf("%s, %s in %s", plural(r.Count(report.Error), "error"), plural(r.Count(report.Warning), "warning"), plural(r.Recognised, "file"))
	if fixable > 0 {
		text += fmt.Sprintf("; --fix can fix %d", fixable)
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func where(file string, line, column int) string {
	switch {
	case line == 0:
		return file
	case column == 0:
		return fmt.Sprintf("%s:%d", file, line)
	}
	return fmt.Sprintf("%s:%d:%d", file, line, column)
}
