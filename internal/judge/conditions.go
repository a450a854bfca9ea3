package judge

import (
	"cmp"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/stats"
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

// window is how long before a moment its conditions are of.
const window = record.Micros(5e6)

// figuresIn are the conditions of a step between two moments. Load is that at
// the later one. What was under way between them counts with all of its time:
// what stands still is answered only afterwards.
func (f *facts) figuresIn(from, to record.Micros, load StepProgress) map[string]float64 {
	figures := make(map[string]float64)
	for source, points := range f.readings.cpu {
		used, ok := cpuIn(points, from, to)
		if !ok {
			continue
		}
		if used = f.readings.percent(used); source == SourceMachine {
			figures[FigureMachine] = used
		} else {
			figures[FigureCPU+source] = used
		}
	}
	var service []float64
	var edges []edge
	for _, s := range f.own {
		if !s.onRecord || s.outcome == record.SlotDropped || s.sent > to || s.replied < from {
			continue
		}
		edges = append(edges, edge{max(s.sent, from), 1}, edge{s.replied, -1})
		service = append(service, (s.replied - s.sent).Seconds())
	}
	figures[FigureInFlight] = float64(mostAtOnce(edges))
	if f.stream != nil {
		if w := f.stream.windowAt(to); w != nil {
			figures[FigureInFlight] = float64(w.inFlight)
		}
	}
	put := func(name string, values []float64) {
		if len(values) > 0 {
			figures[name] = round(stats.NewSample(values, 0).Quantile(0.5), 6)
		}
	}
	put(FigureRequest, service)
	var latency, lag []float64
	for _, x := range f.canaries.list {
		if x.Sent > to || max(x.Replied, x.Seen, x.Sent) < from {
			continue
		}
		if x.Replied > 0 {
			latency = append(latency, (x.Replied - x.Sent).Seconds())
		}
		if x.Seen > 0 {
			lag = append(lag, (x.Seen - x.Sent).Seconds())
		}
	}
	put(FigureAPI, latency)
	put(FigureWatchLag, lag)
	if f.stream != nil {
		figures[FigureBacklog] = float64(load.Backlog)
		return figures
	}
	figures[FigurePending], figures[FigureUnplaced] = float64(load.pending()), float64(load.Unplaced)
	return figures
}

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

// mostPending is the load at the moment up to t at which the most objects of a
// step were pending, by its own requests.
func (f *facts) mostPending(t record.Micros) StepProgress {
	// At a few hundred moments, evenly spread: exact enough to compare with.
	const moments = 256
	times := make([]record.Micros, 0, moments)
	for i := range record.Micros(moments) {
		at := f.start + (t-f.start)*(i+1)/moments
		if len(times) == 0 || at > times[len(times)-1] {
			times = append(times, at)
		}
	}
	var most StepProgress
	for _, l := range f.loadsAt(times) {
		if l.pending() > most.pending() {
			most.Asked, most.There = l.Asked, l.There
		}
		most.Unplaced, most.Backlog = max(most.Unplaced, l.Unplaced), max(most.Backlog, l.Backlog)
	}
	return most
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
