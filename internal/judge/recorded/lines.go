package recorded

import (
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/compare"
)

func linesOf(a, b *Operand, margin float64) []compare.LineComparison {
	var list []compare.LineComparison
	for _, g := range a.Result.Goals {
		h := b.lineOf(g.Name)
		if g.LoadLine == nil || h == nil {
			continue
		}
		line := compare.Line(a.Name, b.Name, g.LoadLine.Bracket(g.Verdict), h.LoadLine.Bracket(h.Verdict), g.LoadLine.Unit, margin)
		line.Goal, line.Axis = g.Name, g.LoadLine.Axis
		if !slices.Equal(g.SLO, h.SLO) {
			line.Withdraw("its objectives differ")
		}
		list = append(list, line)
	}
	return list
}
