package lint

import (
	"fmt"
	"io"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/lint/report"
)

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
