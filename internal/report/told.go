package report

import (
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
)

// toldRows are the figures that the target told of the steps, in the order of its
// metrics, with a head; nil where it told none.
func toldRows(r judge.Result) [][]string {
	head := []string{"step", "level"}
	if r.Comparison != nil {
		head = append(head, "arm")
	}
	first := len(head)
	for _, m := range objectKind(r).Metrics {
		if slices.ContainsFunc(r.Steps, func(s judge.Step) bool { _, ok := s.Told[m.Name]; return ok }) {
			head = append(head, m.Name)
		}
	}
	if len(head) == first {
		return nil
	}
	rows := [][]string{head}
	for _, s := range r.Steps {
		row := []string{strconv.Itoa(s.ID), Number(s.LevelReached), s.Arm}[:first]
		for _, name := range head[first:] {
			text := "-"
			if x, ok := s.Told[name]; ok {
				text = figureOf(&x, objectKind(r).Metric(name).Unit)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// told writes the figures that the target told of the steps.
func (p *printer) told(r judge.Result) {
	if rows := toldRows(r); rows != nil {
		p.line("")
		p.line("What the target told of the steps:")
		p.columns("  ", strings.Repeat("r", len(rows[0])), rows)
	}
}
