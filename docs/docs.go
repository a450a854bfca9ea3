// Package docs holds tables that answers and documentation share.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed tables/sources.md
var sources string

//go:embed tables/rules.md
var rules string

// Source returns the cells behind a name in the tables of docs/tables/sources.md, as plain
// text: of a row (V12), a document (V) or an official page (ceph-pgcalc). It returns nil for
// an unknown name.
func Source(name string) []string {
	_, rest, found := strings.Cut(sources, "\n| "+name+" | ")
	if !found {
		return nil
	}
	row, _, _ := strings.Cut(rest, " |\n")
	return strings.Split(strings.ReplaceAll(row, "`", ""), " | ")
}

// Rules returns the rows of the tables of docs/tables/rules.md: the rule, its severity,
// what is found, what it costs, and the source.
func Rules() (rows [][]string) {
	for line := range strings.Lines(rules) {
		cells := strings.Split(strings.Trim(line, "|\n "), " | ")
		if len(cells) == 5 && cells[0] != "rule" {
			rows = append(rows, cells)
		}
	}
	return rows
}
