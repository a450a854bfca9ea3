package objects

import (
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
)

// zeroesBefore finds the time zero of each object in a table that was written
// before it was a column: when its request was sent, or was wanted where requests
// came by a schedule; its own creation for one that a controller made, which is
// told by its slot.
func (o *Table) zeroesBefore(steps []result.Step) []int64 {
	open := make(map[int64]bool)
	for _, s := range steps {
		if s.Open {
			open[int64(s.ID)] = true
		}
	}
	step, created := o.Numbers("step"), o.Micros("Created")
	sent, intended, slot := o.Micros("sent"), o.Micros("intended"), o.column("slot")
	var made []bool // by word: a controller made it
	if slot != nil {
		made = make([]bool, len(slot.Words))
		for i, word := range slot.Words {
			made[i] = strings.Contains(word, "#")
		}
	}
	list := make([]int64, o.Rows)
	for row := range list {
		list[row] = Null
		if sent != nil {
			list[row] = sent[row]
		}
		if intended != nil && step != nil && len(open) > 0 && open[step[row]] {
			list[row] = intended[row]
		}
		byController := slot != nil && slot.Texts != nil && made[slot.Texts[row]]
		if (byController || list[row] < 0) && created != nil {
			list[row] = created[row]
		}
	}
	return list
}
