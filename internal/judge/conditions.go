package judge

import (
	"cmp"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/plan/signature"
	"plimsoll.dev/plimsoll/internal/record"
)

// Conditions are what went on in a step about the moment at which something
// broke, and beside it what was normal: the same of the first step, from its
// first request until its objects were there.
type Conditions struct {
	Time string `json:"time"`
	// NormalStep is the step that tells what is normal, 0 where none does: the
	// first one did not hold, or is this one.
	NormalStep int      `json:"normalStep"`
	Figures    []Figure `json:"figures"`
}

// Figure is one of the conditions.
type Figure struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit"` // s, %, or "" for a count
	Value *float64 `json:"value"`
	// Normal is the figure of the first step, Ratio how many times it the
	// value is; null where either is not known, or nothing is normal.
	Normal *float64 `json:"normal"`
	Ratio  *float64 `json:"ratio"`
}

// Names of conditions, which signatures can be about too.
const (
	FigureInFlight = signature.FigureInFlight
	FigureRequest  = signature.FigureRequest
	FigureAPI      = signature.FigureAPI
	FigureWatchLag = signature.FigureWatchLag
	FigurePending  = signature.FigurePending
	FigureBacklog  = "requests behind" // of a stream: due and not done
	FigureUnplaced = signature.FigureUnplaced
	FigureMachine  = signature.FigureMachine
	FigureCPU      = signature.FigureCPU // begins the name of a process's
)

// describe records the conditions at what broke first in a step, and those of
// the first step as what is normal.
func (c *judged) describe(f *facts, first *judged) {
	if first == nil {
		to := f.end
		if f.reached != never && !c.Open {
			to = f.reached
		}
		c.normal = f.figuresIn(f.start, to, f.mostPending(to))
	}
	i := firstOf(c.Breaches)
	if i < 0 {
		return
	}
	x := c.Breaches[i]
	from, to := max(x.at-window, f.start), x.at
	if x.Kind == BreachStandstill {
		from, to = x.at, x.at+record.Micros(*x.Value*1e6)
	}
	figures := f.figuresIn(from, to, x.Load)
	c.Conditions = &Conditions{Time: x.Time, Figures: []Figure{}}
	all := maps.Clone(figures) // for their names
	normal := first.asBaseline()
	if normal != nil {
		c.Conditions.NormalStep = normal.ID
		maps.Copy(all, normal.normal)
	}
	for _, name := range slices.SortedFunc(maps.Keys(all), compareFigures) {
		figure := Figure{Name: name, Unit: unitOf(name)}
		value, known := figures[name]
		if known {
			figure.Value = &value
		}
		if normal != nil {
			if was, ok := normal.normal[name]; ok {
				figure.Normal = &was
				if known && was > 0 {
					figure.Ratio = new(round(value/was, 3))
				}
			}
		}
		c.Conditions.Figures = append(c.Conditions.Figures, figure)
	}
}

// compareFigures puts what is known of the objects first, then the API, then
// the processes.
func compareFigures(x, y string) int {
	return cmp.Or(cmp.Compare(orderOf(x), orderOf(y)), cmp.Compare(x, y))
}

func orderOf(figure string) int {
	for i, name := range [...]string{FigurePending, FigureUnplaced, FigureBacklog, FigureInFlight, FigureRequest, FigureAPI, FigureWatchLag, FigureMachine} {
		if figure == name {
			return i
		}
	}
	return 100
}

func unitOf(figure string) string {
	switch figure {
	case FigurePending, FigureUnplaced, FigureInFlight, FigureBacklog:
		return ""
	case FigureRequest, FigureAPI, FigureWatchLag:
		return "s"
	}
	return "%"
}
