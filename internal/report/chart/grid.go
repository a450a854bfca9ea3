package chart

import (
	"cmp"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/plan/slo"
)

// Grid holds the data of the charts of a grid's page, without what only its cells' pages show.
type Grid struct {
	Kind    string                `json:"kind"` // limit or sweep
	Vary    []judge.Varied        `json:"vary"`
	Metric  string                `json:"metric"`
	Title   string                `json:"title,omitempty"` // of the metric
	Margin  float64               `json:"margin"`
	Alpha   float64               `json:"alpha"`
	Arrived string                `json:"arrived"`
	Cells   []cellData            `json:"cells"`
	Pairs   []judge.Pair          `json:"pairs"`
	Curves  []judge.CapacityCurve `json:"curves"`
}

type cellData struct {
	Name     string            `json:"name"`
	Label    string            `json:"label"`
	Params   map[string]string `json:"params"`
	Verdict  slo.Verdict       `json:"verdict"` // "" where it was not run
	Failed   string            `json:"failed,omitempty"`
	LoadLine *result.LoadLine  `json:"loadLine"`
	Levels   []judge.CellLevel `json:"levels"`
	Steps    []cellStep        `json:"steps"`
}

// cellStep is a step of a cell. A latency or a metric of null was never reached or is unknown.
type cellStep struct {
	Step    int         `json:"step"`
	Level   float64     `json:"level"` // reached, of a search; planned, of a sweep
	Round   int         `json:"round"`
	Purpose string      `json:"purpose"`
	Verdict slo.Verdict `json:"verdict"`
	Why     string      `json:"why"`
	LeftOut bool        `json:"leftOut,omitempty"` // of the figures of its level
	Rate    *float64    `json:"rate"`
	P50     *float64    `json:"p50"`
	P99     *float64    `json:"p99"`
	Metric  *float64    `json:"metric"`
	Unit    string      `json:"unit,omitempty"` // of the metric
}

// GridOf returns the charts of a grid.
func GridOf(g judge.Grid) *Grid {
	d := &Grid{Kind: g.Kind, Vary: g.Vary, Metric: g.Metric, Title: g.MetricTitle, Margin: g.Margin, Alpha: g.Alpha, Cells: []cellData{}, Pairs: g.Pairs, Curves: g.Curves}
	for i := range g.Cells {
		c := &g.Cells[i]
		d.Arrived = cmp.Or(d.Arrived, c.Arrived)
		cell := cellData{Name: c.Name, Label: Label(g, c.Params), Params: c.Params, Failed: c.Failed, LoadLine: c.LoadLine, Levels: c.Levels}
		if c.Failed == "" {
			cell.Verdict = c.Verdict
		}
		for k, run := range c.Runs() {
			s := c.Steps[k]
			step := cellStep{Step: s.ID, Level: s.LevelReached, Round: s.Replicate, Purpose: string(s.Purpose), Verdict: s.Verdict, Why: s.VerdictWhy, LeftOut: run.LeftOut != "", Rate: s.AchievedRate}
			if c.LoadLine == nil {
				step.Level = s.Level
			}
			step.P50, step.P99 = s.Latency[c.Arrived].P50, s.Latency[c.Arrived].P99
			for _, f := range run.Figures {
				if f.Metric == g.Metric {
					step.Metric, step.Unit = f.Value, f.Unit
				}
			}
			cell.Steps = append(cell.Steps, step)
		}
		d.Cells = append(d.Cells, cell)
	}
	return d
}

// Label returns the values of a cell, in the order of the keys.
func Label(g judge.Grid, params map[string]string) string {
	var parts []string
	for _, v := range g.Vary {
		if value, ok := params[v.Key]; ok {
			parts = append(parts, v.Key+"="+value)
		}
	}
	return strings.Join(parts, ", ")
}
