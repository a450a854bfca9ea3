package view

import (
	"strings"
	"testing"

	"plimsoll.dev/plimsoll/internal/record"
)

// shown are sections as lines: a title and a line as they are, a row as its cells with a
// bar between them.
func shown(list ...Section) string {
	var lines []string
	for _, s := range list {
		if s.Title != "" {
			lines = append(lines, s.Title)
		}
		for _, p := range s.Parts {
			if len(p.Table.Rows) == 0 {
				lines = append(lines, p.Line)
			}
			for _, row := range p.Table.Rows {
				lines = append(lines, strings.Join(row, "|"))
			}
		}
	}
	return strings.Join(lines, "\n")
}

// lines are lines one below the other.
func lines(list ...string) string { return strings.Join(list, "\n") }

// section holds the lines that a section must show.
type section struct {
	why  string
	of   []Section
	want string
}

func one(s Section) []Section { return []Section{s} }

func checkSections(t *testing.T, list []section) {
	t.Helper()
	for _, x := range list {
		if got := shown(x.of...); got != x.want {
			t.Errorf("%s:\n%s\nwant:\n%s", x.why, got, x.want)
		}
		for _, s := range x.of {
			checkTables(t, x.why, s)
		}
	}
}

// checkTables reports rows that have not one cell for each column.
func checkTables(t *testing.T, why string, s Section) {
	t.Helper()
	for _, p := range s.Parts {
		for _, row := range p.Table.Rows {
			if len(row) != len(p.Table.Align) {
				t.Errorf("%s: %d cells in %d columns: %q", why, len(row), len(p.Table.Align), row)
			}
		}
	}
	if s.Narrow != nil {
		checkTables(t, why, *s.Narrow)
	}
}

// pods is the kind of object of most tests.
func pods() record.ObjectKind {
	return record.ObjectKind{
		Object: record.Noun{One: "pod", Many: "pods"}, Place: record.Noun{One: "node", Many: "nodes"},
		Milestones: []record.Milestone{{Name: "Created"}, {Name: "Ready"}, {Name: "Deleted"}}, There: "Ready", Gone: "Deleted",
	}
}
