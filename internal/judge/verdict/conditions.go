package verdict

import (
	"cmp"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/fold"
	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/judge/usage"
	"plimsoll.dev/plimsoll/internal/record"
)

// describe records the conditions at the first breach, and those of the first step as normal.
func (c *Judged) describe(f *fold.Facts, first *Judged) {
	if first == nil {
		to := f.End
		if f.Reached != fold.Never && !c.Open {
			to = f.Reached
		}
		c.normal = f.FiguresIn(f.Start, to, f.MostPending(to))
	}
	i := FirstOf(c.Breaches)
	if i < 0 {
		return
	}
	x := c.Breaches[i]
	from, to := max(x.At-usage.Window, f.Start), x.At
	if x.Kind == result.BreachStandstill {
		from, to = x.At, x.At+record.Micros(*x.Value*1e6)
	}
	figures := f.FiguresIn(from, to, x.Load)
	c.Conditions = &result.Conditions{Time: x.Time, Figures: []result.Figure{}}
	all := maps.Clone(figures) // for the names
	normal := first.asBaseline()
	if normal != nil {
		c.Conditions.NormalStep = normal.ID
		maps.Copy(all, normal.normal)
	}
	for _, name := range slices.SortedFunc(maps.Keys(all), compareFigures) {
		figure := result.Figure{Name: name, Unit: unitOf(name)}
		value, known := figures[name]
		if known {
			figure.Value = &value
		}
		if normal != nil {
			if was, ok := normal.normal[name]; ok {
				figure.Normal = &was
				if known && was > 0 {
					figure.Ratio = new(result.Round(value/was, 3))
				}
			}
		}
		c.Conditions.Figures = append(c.Conditions.Figures, figure)
	}
}

// compareFigures puts the figures of objects first, then the API, then the processes.
func compareFigures(x, y string) int {
	return cmp.Or(cmp.Compare(orderOf(x), orderOf(y)), cmp.Compare(x, y))
}

func orderOf(figure string) int {
	for i, name := range [...]string{result.FigurePending, result.FigureUnplaced, result.FigureBacklog, result.FigureInFlight, result.FigureRequest, result.FigureAPI, result.FigureWatchLag, result.FigureMachine} {
		if figure == name {
			return i
		}
	}
	return 100
}

func unitOf(figure string) string {
	switch figure {
	case result.FigurePending, result.FigureUnplaced, result.FigureInFlight, result.FigureBacklog:
		return ""
	case result.FigureRequest, result.FigureAPI, result.FigureWatchLag:
		return "s"
	}
	return "%"
}
