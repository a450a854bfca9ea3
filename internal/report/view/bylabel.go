package view

import (
	"fmt"
	"strconv"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/report/words"
)

// labelTable holds times by the values of a label, scaled to real time.
type labelTable struct {
	Table
	Step    result.Step
	What    string // the time
	Label   string
	LeftOut string // "" for nothing
}

func labelTables(r result.Result) (list []labelTable) {
	things := r.ObjectKind.Object.Many
	for _, s := range r.Steps {
		for _, b := range s.Groups {
			t := labelTable{Step: s, What: spanOf(*r.ObjectKind.GroupBy), Label: b.Label, Table: Table{"lrrrrrrr", [][]string{{b.Label, things, "never", "mean", "p50", "p90", "p99", "max"}}}}
			for _, v := range b.Values {
				row := []string{v.Value, strconv.Itoa(v.Time.N), strconv.Itoa(v.Time.Censored)}
				if v.Value == "" {
					row[0] = "(unknown)"
				}
				for _, x := range []*float64{v.Time.Mean, v.Time.P50, v.Time.P90, v.Time.P99, v.Time.Max} {
					if x != nil {
						x = new(*x * timeScale(r))
					}
					row = append(row, quantile(v.Time, x))
				}
				t.add(row...)
			}
			if b.Cut > 0 {
				t.LeftOut = fmt.Sprintf("left out: %d further %s, each of no more %s than these", b.Cut, words.Noun(b.Cut, "value"), things)
			}
			list = append(list, t)
		}
	}
	return list
}

func spanOf(by record.GroupBy) string {
	if by.From == "" {
		return "Time to " + by.To
	}
	return "Time from " + by.From + " to " + by.To
}

func labelSection(r result.Result) (s Section) {
	tables := labelTables(r)
	for _, t := range tables {
		if t.Step.ID != tables[len(tables)-1].Step.ID {
			continue
		}
		s.Title = fmt.Sprintf("%s in step %d%s:", t.What, t.Step.ID, scaled(r))
		s.table(2, t.Table)
		if t.LeftOut != "" {
			s.linef("  %s", t.LeftOut)
		}
	}
	return s
}

// scaled says that times are shown scaled to real time, "" where they are not.
func scaled(r result.Result) string {
	if timeScale(r) == 1 {
		return ""
	}
	return fmt.Sprintf(", as it would be: %g times as long as it was measured", timeScale(r))
}

// timeScale returns the factor from measured times to real time.
func timeScale(r result.Result) float64 {
	if r.Fidelity.TimeScale > 0 {
		return r.Fidelity.TimeScale
	}
	return 1
}

// playedTable holds the times of simulated parts scaled to real time; it is empty where they are equal.
func playedTable(r result.Result) (t Table) {
	if timeScale(r) == 1 {
		return t
	}
	kind := r.ObjectKind
	t = Table{"rrlrrr", [][]string{{"step", "level", "milestone", "p50", "p99", "last"}}}
	for _, s := range r.Steps {
		for _, m := range kind.Milestones {
			l, ok := s.Latency[m.Name]
			if !ok || l.N == 0 || m.Name == kind.Gone {
				continue
			}
			scale := timeScale(r)
			t.add(strconv.Itoa(s.ID), words.Number(s.LevelReached), m.Name, words.Played(l.P50, scale), words.Played(l.P99, scale), words.Played(l.Max, scale))
		}
	}
	return t
}

func playedSection(r result.Result) (s Section) {
	if t := playedTable(r); t.Rows != nil {
		s.Title = fmt.Sprintf("Times as they would be, %g times as long as they were measured (plimsoll's own share of them, too):", timeScale(r))
		s.table(2, t)
	}
	return s
}
