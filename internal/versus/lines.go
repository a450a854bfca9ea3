package versus

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/analyze"
	"plimsoll.dev/plimsoll/internal/compare"
)

// linesOf compares the load lines of every goal that both have.
func linesOf(a, b *Operand, margin float64) []compare.LineComparison {
	var list []compare.LineComparison
	for _, g := range a.result.Goals {
		i := slices.IndexFunc(b.result.Goals, func(h analyze.GoalResult) bool { return h.Name == g.Name })
		if i < 0 || g.LoadLine == nil || b.result.Goals[i].LoadLine == nil {
			continue
		}
		h := b.result.Goals[i]
		line := compare.Line(a.Name, b.Name, bracketOf(g), bracketOf(h), g.LoadLine.Unit, margin)
		line.Goal, line.Axis = g.Name, g.LoadLine.Axis
		if !slices.Equal(g.SLO, h.SLO) {
			line.Unequal("its objectives differ")
		}
		list = append(list, line)
	}
	return list
}
