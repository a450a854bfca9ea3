package report

import (
	_ "embed"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"plimsoll.dev/plimsoll/internal/analyze"
	"plimsoll.dev/plimsoll/internal/ceiling"
)

//go:embed ceilings.html
var ceilingsTemplate string

// ceilingRow is a ceiling as the page shows it.
type ceilingRow struct {
	ceiling.Ceiling
	Allows, Took, Rest, Kind string
}

// ceilingsOf are the ceilings of a result as they are shown.
func ceilingsOf(r analyze.Result) []ceilingRow {
	var rows []ceilingRow
	for _, c := range r.Ceilings {
		rows = append(rows, ceilingRow{c, inUnit(c.Limit, c.Unit), inUnit(c.Used, c.Unit), inUnit(c.Left, c.Unit), kindOf(c.Class)})
	}
	return rows
}

// kindOf says what a ceiling is worth in words.
func kindOf(c ceiling.Class) string {
	switch c {
	case ceiling.NotEnforced:
		return "not enforced"
	case ceiling.Unbound:
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
	p := &printer{w: w}
	p.line("%s", checked(c))
	p.line("")
	p.findings(c.Findings)
	p.line("")
	p.table(c.Table)
	return p.err
}

// checked names what was looked at.
func checked(c ceiling.Check) string {
	name := c.Target.Kind + " " + c.Target.Name
	if c.Target.Private {
		name = "a private laboratory"
	}
	server := ""
	if c.Target.Version != "" {
		server = ": Kubernetes " + c.Target.Version
	}
	return fmt.Sprintf("%s at %s%s", name, c.Target.Server, server)
}

func (p *printer) findings(list []ceiling.Finding) {
	if p.err != nil {
		return
	}
	t := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', 0)
	for _, f := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Severity, printable(f.What), printable(f.Text))
		if f.Hint != "" {
			fmt.Fprintf(t, "\t\thint: %s\n", printable(f.Hint))
		}
	}
	p.err = t.Flush()
}

func (p *printer) table(t ceiling.Table) {
	what := t.Workload
	if what == "" {
		what = "pods that ask for nothing"
	}
	where := "on nodes that are not known"
	if t.Nodes != nil && t.AllNodes != nil {
		standing := "what stands there is not known"
		if t.Others != nil && *t.Others == 0 {
			standing = "nothing stands there"
		} else if t.Others != nil {
			standing = fmt.Sprintf("%d pods stand there", *t.Others)
		}
		where = fmt.Sprintf("on %d of %d nodes (%s)", *t.Nodes, *t.AllNodes, standing)
	}
	p.line("How far %s can get on the axis %s, %s:", what, t.Axis, where)
	p.levels(t)
	p.unleveled("Not reached by this workload, however far it is raised:", t, func(c ceiling.Ceiling) string {
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
	}, ceiling.Unbound)
	p.unleveled("Not known:", t, func(c ceiling.Ceiling) string { return noted(c.What, c.Note) }, ceiling.Unknown)
	p.line("")
	p.verdictOf(t)
	for _, note := range t.Notes {
		p.line("note: %s", note)
	}
}

// levels are the ceilings that have a level, the lowest first.
func (p *printer) levels(t ceiling.Table) {
	if p.err != nil {
		return
	}
	w := tabwriter.NewWriter(p.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\tpods in all\tlimit\tused\tleft\tkind\t \tceiling\n", t.Unit)
	shown, far := 0, 0
	for _, c := range t.Ceilings {
		if c.Level == nil {
			continue
		}
		if b := t.Binding(); b != nil && c.Class != ceiling.Hard && *c.Level > farAbove*max(*b.Level, 1) {
			far++
			continue
		}
		shown++
		mark := ""
		if c.Binds {
			mark = ">"
		}
		total := "-"
		if c.Total != nil {
			total = Number(*c.Total)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t \t%s\n", mark, Number(*c.Level), total, inUnit(c.Limit, c.Unit), inUnit(c.Used, c.Unit), inUnit(c.Left, c.Unit), kindOf(c.Class), printable(described(c)))
	}
	if shown > 0 {
		p.err = w.Flush()
	}
	if far > 0 {
		p.line("     and %d far above, which -o json tells", far)
	}
}

// farAbove is how many times the binding level a level must be for its ceiling
// to be left out where it only advises.
const farAbove = 25

// described is a ceiling in words, with its source.
func described(c ceiling.Ceiling) string {
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
func (p *printer) unleveled(title string, t ceiling.Table, text func(ceiling.Ceiling) string, class ceiling.Class) {
	shown := false
	for _, c := range t.Ceilings {
		if c.Class != class || c.Level != nil {
			continue
		}
		if !shown {
			p.line("")
			p.line("%s", title)
			shown = true
		}
		p.line("  %s", text(c))
	}
}

// verdictOf says what binds first, and what is untested before it.
func (p *printer) verdictOf(t ceiling.Table) {
	b := t.Binding()
	if b == nil {
		p.line("What binds first is not known: no hard ceiling could be read.")
	} else {
		p.line("Binds first: %s", bindingText(t, *b))
	}
	if a := t.Advised(); a != nil && (b == nil || *a.Level < *b.Level) {
		p.line("Untested before that: above %s %s (%s; %s).", Number(*a.Level), t.Unit, a.What, a.From)
	}
}

// bindingText is the ceiling that binds first in a sentence.
func bindingText(t ceiling.Table, b ceiling.Ceiling) string {
	text := fmt.Sprintf("%s %s", Number(*b.Level), t.Unit)
	if b.Total != nil && !strings.HasPrefix(t.Unit, "pods/s") {
		text += fmt.Sprintf(" (%s pods in all)", Number(*b.Total))
	}
	return text + fmt.Sprintf(", by the %s. Beyond it: %s.", b.What, strings.TrimSuffix(b.Reason, "."))
}
