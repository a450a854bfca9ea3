package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/record"
)

// kindOf says what a ceiling is worth in words.
func kindOf(c record.CeilingClass) string {
	switch c {
	case record.CeilingNotEnforced:
		return "not enforced"
	case record.CeilingUnbound:
		return "does not bind"
	}
	return string(c)
}

// inUnit is a figure of a ceiling's with its unit, "-" for one not known.
func inUnit(x *float64, unit string) string {
	switch {
	case x == nil:
		return "-"
	case unit == "bytes":
		return byteCount(int64(*x))
	case *x >= 1<<53:
		return "2^53 or more"
	}
	return Number(*x)
}

// Check writes what was found out about a cluster without loading it: how it
// is, and how far it can be loaded at most.
func Check(w io.Writer, c ceiling.Check) error {
	p := newPrinter(w)
	p.line("%s", checked(c))
	p.line("")
	p.findings(c.Findings)
	p.line("")
	ceilingText{p, c.Table, c.Kind}.table()
	return p.err
}

// checked names what was looked at.
func checked(c ceiling.Check) string {
	name := c.Target.Kind
	if name != "lab" && name != "cluster" {
		return strings.TrimSpace(name + " " + c.Target.Version)
	}
	if c.Target.Name != c.Target.Kind {
		name += " " + c.Target.Name
	}
	if c.Target.Private {
		name = "a private lab"
	}
	if c.Target.Server != "" {
		name += " at " + c.Target.Server
	}
	if c.Target.Version != "" {
		name += ": Kubernetes " + c.Target.Version
	}
	return name
}

func (p *printer) findings(list []record.HealthFinding) {
	var rows [][]string
	for _, f := range list {
		rows = append(rows, []string{string(f.Severity), f.What, f.String()})
		if f.Hint != "" {
			rows = append(rows, []string{"", "", "hint: " + f.Hint})
		}
	}
	p.columns("", "lll", rows)
}

// ceilingText writes a table of ceilings.
type ceilingText struct {
	*printer
	record.CeilingTable
	kind record.ObjectKind // of the objects that are counted
}

func (t ceilingText) table() {
	what := t.Workload
	if what == "" {
		what = t.kind.Object.Many + " that ask for nothing"
	}
	if len(t.Ceilings) == 0 {
		t.line("Ceilings of %s along %s: none is known before a load.", what, t.Axis)
		return
	}
	where := ", on unknown " + t.kind.Place.Many
	if !t.placed() {
		where = ""
	} else if t.Nodes != nil && t.AllNodes != nil {
		standing := "other " + t.kind.Object.Many + " not known"
		if t.Others != nil && *t.Others == 0 {
			standing = "no other " + t.kind.Object.Many
		} else if t.Others != nil {
			standing = fmt.Sprintf("%d other %s", *t.Others, t.kind.Object.Many)
		}
		where = fmt.Sprintf(", on %d of %d %s (%s)", *t.Nodes, *t.AllNodes, t.kind.Place.Many, standing)
	}
	t.line("Ceilings of %s along %s%s:", what, t.Axis, where)
	t.levels()
	t.unleveled("Never reached by this workload:", func(c record.Ceiling) string {
		text := c.What
		if c.Limit != nil {
			text += ": " + inUnit(c.Limit, c.Unit)
			if c.Used != nil {
				text += ", used " + inUnit(c.Used, c.Unit)
			}
			if c.Unit == "cores" {
				text += " cores"
			}
		}
		return noted(text, c.Note)
	}, record.CeilingUnbound)
	t.unleveled("Not known:", func(c record.Ceiling) string { return noted(c.What, c.Note) }, record.CeilingUnknown)
	t.line("")
	t.verdict()
	for _, note := range t.Notes {
		t.line("note: %s", note)
	}
}

// placed reports whether the ceilings are those of nodes that hold pods.
func (t ceilingText) placed() bool {
	return t.AllNodes != nil || placed(t.Ceilings)
}

func placed(list []record.Ceiling) bool {
	return slices.ContainsFunc(list, func(c record.Ceiling) bool { return c.Total != nil })
}

// levels are the ceilings that have a level, the lowest first.
func (t ceilingText) levels() {
	rows := [][]string{{"", t.Unit, t.kind.Object.Many + " in all", "limit", "used", "left", "kind", " ceiling"}}
	far := 0
	for _, c := range t.Ceilings {
		if c.Level == nil {
			continue
		}
		if b := t.Binding(); b != nil && c.Class != record.CeilingHard && *c.Level > farAbove*max(*b.Level, 1) {
			far++
			continue
		}
		mark := ""
		if c.Binds {
			mark = ">"
		}
		rows = append(rows, []string{mark, Number(*c.Level), levelOf(c.Total), inUnit(c.Limit, c.Unit), inUnit(c.Used, c.Unit), inUnit(c.Left, c.Unit), kindOf(c.Class), " " + described(c)})
	}
	columns := "rrrrrrrl"
	if !t.placed() {
		columns = "rrrrrrl"
		for i, row := range rows {
			rows[i] = slices.Delete(row, 2, 3)
		}
	}
	if len(rows) > 1 {
		t.columns("  ", columns, rows)
	}
	if far > 0 {
		t.line("     and %d far above (-o json lists them)", far)
	}
}

// farAbove is how many times the binding level a level must be for its ceiling
// to be left out where it only advises.
const farAbove = 25

// described is a ceiling in words, with its source.
func described(c record.Ceiling) string {
	text := c.What
	if c.From != "" {
		text += " [" + c.From + "]"
	}
	return noted(text, c.Note)
}

func noted(text, note string) string {
	if note == "" {
		return text
	}
	return text + ": " + note
}

// unleveled lists the ceilings of a class that have no level.
func (t ceilingText) unleveled(title string, text func(record.Ceiling) string, class record.CeilingClass) {
	shown := false
	for _, c := range t.Ceilings {
		if c.Class != class || c.Level != nil {
			continue
		}
		if !shown {
			t.line("")
			t.line("%s", title)
			shown = true
		}
		t.line("  %s", text(c))
	}
}

// verdict says what binds first, and what is untested before it.
func (t ceilingText) verdict() {
	b := t.Binding()
	if b == nil {
		t.line("Binds first: not known, no hard ceiling could be read.")
	} else {
		t.line("Binds first: %s", t.bindingText(*b))
	}
	if a := t.Advised(); a != nil && (b == nil || *a.Level < *b.Level) {
		t.line("Untested above %s %s (%s; %s).", Number(*a.Level), t.Unit, a.What, a.From)
	}
}

// bindingText is the ceiling that binds first in a sentence.
func (t ceilingText) bindingText(b record.Ceiling) string {
	text := fmt.Sprintf("%s %s", Number(*b.Level), t.Unit)
	if b.Total != nil && !strings.HasPrefix(t.Unit, t.kind.Object.Many+"/s") {
		text += fmt.Sprintf(" (%s %s in all)", Number(*b.Total), t.kind.Object.Many)
	}
	return text + fmt.Sprintf(", by the %s. Beyond it: %s.", b.What, strings.TrimSuffix(b.Reason, "."))
}
