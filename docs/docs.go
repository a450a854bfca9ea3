// Package docs holds the page of sources, which answers and documentation share.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed sources.md
var sources string

// Source is what the tables of docs/sources.md say of a row, such as V12, of a
// document, such as V, or of an official page, such as ceph-pgcalc: the cells
// behind its name, as plain text. It is nil of what is not there.
func Source(name string) []string {
	_, rest, found := strings.Cut(sources, "\n| "+name+" | ")
	if !found {
		return nil
	}
	row, _, _ := strings.Cut(rest, " |\n")
	return strings.Split(strings.ReplaceAll(row, "`", ""), " | ")
}
