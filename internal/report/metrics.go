package report

import (
	"slices"
	"strconv"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/record"
)

// metricRows are the metrics of the steps, in the order in which their kind has
// them, with a head; nil where no step has any.
func metricRows(r judge.Result) [][]string {
	head := []string{"step", "level"}
	if r.Comparison != nil {
		head = append(head, "arm")
	}
	first := len(head)
	var metrics []record.Metric
	for _, m := range objectKind(r).Metrics {
		if slices.ContainsFunc(r.Steps, func(s judge.Step) bool { _, ok := s.Metrics[m.Name]; return ok }) {
			metrics, head = append(metrics, m), append(head, m.Called())
		}
	}
	if len(metrics) == 0 {
		return nil
	}
	rows := [][]string{head}
	for _, s := range r.Steps {
		row := []string{strconv.Itoa(s.ID), Number(s.LevelReached), s.Arm}[:first]
		for _, m := range metrics {
			text := "-"
			if x, ok := s.Metrics[m.Name]; ok {
				text = figureOf(&x, m.Unit)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// metrics writes the metrics of the steps.
func (p *printer) metrics(r judge.Result) {
	if rows := metricRows(r); rows != nil {
		p.line("")
		p.line("Metrics:")
		p.columns("  ", strings.Repeat("r", len(rows[0])), rows)
	}
}
