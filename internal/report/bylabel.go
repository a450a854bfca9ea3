package report

import (
	"fmt"
	"strconv"
	"time"

	"plimsoll.dev/plimsoll/internal/judge"
	"plimsoll.dev/plimsoll/internal/record"
)

// labelTable are the times of a step's objects by the values of a label, as they
// would be where what is simulated passes faster.
type labelTable struct {
	Step    judge.Step
	What    string // the time
	Label   string
	Rows    [][]string // the first is the head
	LeftOut string     // "" for nothing
}

// labelTables are those of all steps.
func labelTables(r judge.Result) (list []labelTable) {
	things := objectKind(r).Object.Many
	for _, s := range r.Steps {
		for _, b := range s.Groups {
			t := labelTable{Step: s, What: spanOf(*objectKind(r).GroupBy), Label: b.Label, Rows: [][]string{{b.Label, things, "never", "mean", "p50", "p90", "p99", "max"}}}
			for _, v := range b.Values {
				row := []string{v.Value, strconv.Itoa(v.Time.N), strconv.Itoa(v.Time.Censored)}
				if v.Value == "" {
					row[0] = "(not known)"
				}
				for _, x := range []*float64{v.Time.Mean, v.Time.P50, v.Time.P90, v.Time.P99, v.Time.Max} {
					if x != nil {
						x = new(*x * timeScale(r))
					}
					row = append(row, quantile(v.Time, x))
				}
				t.Rows = append(t.Rows, row)
			}
			if b.Cut > 0 {
				t.LeftOut = fmt.Sprintf("left out: %d further %s, each of no more %s than these", b.Cut, noun(b.Cut, "value"), things)
			}
			list = append(list, t)
		}
	}
	return list
}

// spanOf names the time that is grouped by labels.
func spanOf(by record.GroupBy) string {
	if by.From == "" {
		return "Time to " + by.To
	}
	return "Time from " + by.From + " to " + by.To
}

// byLabels writes the times by label of the last step that has any.
func (p *printer) byLabels(r judge.Result) {
	tables := labelTables(r)
	for i, t := range tables {
		if t.Step.ID != tables[len(tables)-1].Step.ID {
			continue
		}
		if i == 0 || tables[i-1].Step.ID != t.Step.ID {
			p.line("")
			p.line("%s in step %d%s:", t.What, t.Step.ID, scaled(r))
		}
		p.columns("  ", "lrrrrrrr", t.Rows)
		if t.LeftOut != "" {
			p.line("  %s", t.LeftOut)
		}
	}
}

// scaled says that times are shown as they would be, "" where they pass as they do.
func scaled(r judge.Result) string {
	if timeScale(r) == 1 {
		return ""
	}
	return fmt.Sprintf(", as it would be (%g times as long as it was measured)", timeScale(r))
}

// timeScale is how many times as long as it was measured what is simulated would
// take, 1 where time passes as it does.
func timeScale(r judge.Result) float64 {
	if r.Fidelity.TimeScale > 0 {
		return r.Fidelity.TimeScale
	}
	return 1
}

// played is a time as it would be.
func played(v *float64, scale float64) string {
	return known(v, func(x float64) string {
		return time.Duration(x * scale * float64(time.Second)).Round(time.Second).String()
	})
}

// playedRows are the times of simulated parts as they would be, with a head; nil
// where they are as they were measured.
func playedRows(r judge.Result) [][]string {
	if timeScale(r) == 1 {
		return nil
	}
	kind := objectKind(r)
	rows := [][]string{{"step", "level", "milestone", "p50", "p99", "last"}}
	for _, s := range r.Steps {
		for _, m := range kind.Milestones {
			l, ok := s.Latency[m.Name]
			if !ok || l.N == 0 || m.Name == kind.Gone {
				continue
			}
			scale := timeScale(r)
			rows = append(rows, []string{strconv.Itoa(s.ID), Number(s.LevelReached), m.Name, played(l.P50, scale), played(l.P99, scale), played(l.Max, scale)})
		}
	}
	return rows
}
