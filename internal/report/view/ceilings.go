package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/advise/ceiling"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

func kindOf(c record.CeilingClass) string {
	return cmp.Or(map[record.CeilingClass]string{record.CeilingNotEnforced: "not enforced", record.CeilingUnbound: "does not bind"}[c], string(c))
}

func limitText(x *float64, unit string) string {
	return words.Known(x, func(x float64) string {
		switch {
		case unit == "bytes":
			return words.Bytes(int64(x))
		case x >= 1<<53:
			return "2^53 or more"
		}
		return words.Number(x)
	})
}

// Check returns the findings about a cluster before any load: its health, and its ceilings.
func Check(c ceiling.Check) []Section {
	var what, found Section
	what.linef("%s", checked(c))
	what.linef("")
	t := Table{Align: "lll"}
	for _, f := range c.Findings {
		t.add(string(f.Severity), f.What, f.String())
		if f.Hint != "" {
			t.add("", "", "hint: "+f.Hint)
		}
	}
	found.table(0, t)
	return said(append([]Section{what, found}, ceilingSections(ceilings{c.Table, c.Kind})...)...)
}

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

// ceilings is a table of them in the words of its target.
type ceilings struct {
	record.CeilingTable
	kind record.ObjectKind // of the counted objects
}

func ceilingSections(t ceilings) []Section {
	things, places := t.kind.Object.Many, t.kind.Place.Many
	what := cmp.Or(t.Workload, things+" that ask for nothing")
	if len(t.Ceilings) == 0 {
		return []Section{{Title: fmt.Sprintf("Ceilings of %s along %s: none is known before a load.", what, t.Axis)}}
	}
	onPlaces := t.AllPlaces != nil || placed(t.Ceilings)
	where := ", on unknown " + places
	if !onPlaces {
		where = ""
	} else if t.Places != nil && t.AllPlaces != nil {
		standing := "other " + things + " unknown"
		if t.Others != nil && *t.Others == 0 {
			standing = "no other " + things
		} else if t.Others != nil {
			standing = fmt.Sprintf("%d other %s", *t.Others, things)
		}
		where = fmt.Sprintf(", on %d of %d %s (%s)", *t.Places, *t.AllPlaces, places, standing)
	}
	levels := Section{Title: fmt.Sprintf("Ceilings of %s along %s%s:", what, t.Axis, where)}
	rows, far := leveled(t, onPlaces)
	if rows.Any() {
		levels.table(2, rows)
	}
	if far > 0 {
		levels.linef("     and %d far above (-o json lists them)", far)
	}
	never, unknown := Section{Title: "Never reached by this workload:"}, Section{Title: "Not known:"}
	for _, c := range t.Ceilings {
		switch {
		case c.Level != nil:
		case c.Class == record.CeilingUnknown:
			unknown.linef("  %s", noted(c.What, c.Note))
		case c.Class == record.CeilingUnbound:
			text := c.What
			if c.Limit != nil {
				text += ": " + limitText(c.Limit, c.Unit)
				if c.Used != nil {
					text += ", used " + limitText(c.Used, c.Unit)
				}
				if c.Unit == "cores" {
					text += " cores"
				}
			}
			never.linef("  %s", noted(text, c.Note))
		}
	}
	list := []Section{levels}
	for _, s := range []Section{never, unknown} {
		if len(s.Parts) > 0 {
			list = append(list, s)
		}
	}
	return append(list, bindsFirst(t))
}

// placed reports whether ceilings belong to places that hold objects.
func placed(list []record.Ceiling) bool {
	return slices.ContainsFunc(list, func(c record.Ceiling) bool { return c.Total != nil })
}

// leveled holds the ceilings with a level, the lowest first; far counts the advisory ones far above.
func leveled(t ceilings, onPlaces bool) (rows Table, far int) {
	rows = Table{"rrrrrrrl", [][]string{{"", t.Unit, t.kind.Object.Many + " in all", "limit", "used", "left", "kind", " ceiling"}}}
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
		what := c.What
		if c.From != "" {
			what += " [" + c.From + "]"
		}
		rows.add(mark, words.Number(*c.Level), words.Level(c.Total), limitText(c.Limit, c.Unit), limitText(c.Used, c.Unit), limitText(c.Left, c.Unit), kindOf(c.Class), " "+noted(what, c.Note))
	}
	if !onPlaces {
		rows.Align = rows.Align[1:]
		for i, row := range rows.Rows {
			rows.Rows[i] = slices.Delete(row, 2, 3)
		}
	}
	return rows, far
}

const farAbove = 25 // multiple of the binding level above which an advisory ceiling is left out

func noted(text, note string) string {
	if note == "" {
		return text
	}
	return text + ": " + note
}

// bindsFirst names the ceiling that binds first, and the lowest untested level before it.
func bindsFirst(t ceilings) (s Section) {
	b := t.Binding()
	if b == nil {
		s.linef("Binds first: unknown, no hard ceiling could be read.")
	} else {
		s.linef("Binds first: %s", bindingText(t, *b))
	}
	if a := t.Advised(); a != nil && (b == nil || *a.Level < *b.Level) {
		s.linef("Untested above %s %s (%s; %s).", words.Number(*a.Level), t.Unit, a.What, a.From)
	}
	s.lines("note: ", t.Notes...)
	return s.apart()
}

func bindingText(t ceilings, b record.Ceiling) string {
	text := fmt.Sprintf("%s %s", words.Number(*b.Level), t.Unit)
	if b.Total != nil && !strings.HasPrefix(t.Unit, t.kind.Object.Many+"/s") {
		text += fmt.Sprintf(" (%s %s in all)", words.Number(*b.Total), t.kind.Object.Many)
	}
	return text + fmt.Sprintf(", by the %s. Beyond it: %s.", b.What, strings.TrimSuffix(b.Reason, "."))
}
