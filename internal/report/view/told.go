package view

import (
	"slices"
	"strconv"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/report/chart"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// toldRows are the metrics of the steps, in the order in which the target declares
// them, with a head; nil where no step has any.
func toldRows(r judge.Result) [][]string {
	head := []string{"step", "level"}
	if r.Comparison != nil {
		head = append(head, "arm")
	}
	first := len(head)
	for _, m := range chart.Kind(r).Metrics {
		if slices.ContainsFunc(r.Steps, func(s judge.Step) bool { _, ok := s.Told[m.Name]; return ok }) {
			head = append(head, m.Name)
		}
	}
	if len(head) == first {
		return nil
	}
	rows := [][]string{head}
	for _, s := range r.Steps {
		row := []string{strconv.Itoa(s.ID), words.Number(s.LevelReached), s.Arm}[:first]
		for _, name := range head[first:] {
			text := "-"
			if x, ok := s.Told[name]; ok {
				text = words.Figure(&x, chart.Kind(r).Metric(name).Unit)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// metricsSection has those figures.
func metricsSection(r judge.Result) (s Section) {
	if rows := toldRows(r); rows != nil {
		s.Title = metricsTitle + ":"
		s.table(2, figures(rows))
	}
	return s
}

// metricsTitle is what those figures are called.
const metricsTitle = "Metrics"
