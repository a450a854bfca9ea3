package view

import (
	"slices"
	"strconv"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// metricRows returns the metrics of the steps, in the order of their kind, with a head; nil for none.
func metricRows(r result.Result) [][]string {
	head := []string{"step", "level"}
	if r.Comparison != nil {
		head = append(head, "arm")
	}
	first := len(head)
	var metrics []record.Metric
	for _, m := range r.ObjectKind.Metrics {
		if slices.ContainsFunc(r.Steps, func(s result.Step) bool { _, ok := s.Metrics[m.Name]; return ok }) {
			metrics, head = append(metrics, m), append(head, m.Called())
		}
	}
	if len(metrics) == 0 {
		return nil
	}
	rows := [][]string{head}
	for _, s := range r.Steps {
		row := []string{strconv.Itoa(s.ID), words.Number(s.LevelReached), s.Arm}[:first]
		for _, m := range metrics {
			text := "-"
			if x, ok := s.Metrics[m.Name]; ok {
				text = words.Figure(&x, m.Unit)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

func metricsSection(r result.Result) (s Section) {
	if rows := metricRows(r); rows != nil {
		s.Title = "Metrics:"
		s.table(2, figures(rows))
	}
	return s
}
