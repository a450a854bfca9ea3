package analyze

import (
	"cmp"
	"maps"
	"slices"

	"plimsoll.dev/plimsoll/internal/diagnose"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/stats"
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
	FigureInFlight = diagnose.FigureInFlight
	FigureRequest  = diagnose.FigureRequest
	FigureAPI      = diagnose.FigureAPI
	FigureWatchLag = diagnose.FigureWatchLag
	FigurePending  = diagnose.FigurePending
	FigureUnplaced = diagnose.FigureUnplaced
	FigureMachine  = diagnose.FigureMachine
	FigureCPU      = diagnose.FigureCPU // begins the name of a process's
)

// window is how long before a moment its conditions are of.
const window = record.Micros(5e6)

// series are the readings of a step by time.
type series struct {
	cpu      map[string][]cpuPoint
	canaries []record.Canary
}

// cpuPoint is what a process had used since the step's first reading.
type cpuPoint struct {
	t    record.Micros
	used float64 // seconds
	rss  float64 // bytes at that time, below 0 where it is not known
}

func newSeries() *series { return &series{cpu: make(map[string][]cpuPoint)} }

// maxPoints bounds the readings that are kept of one process, and the canaries:
// of a step that lasts longer every other one is let go.
const maxPoints = 8192

func (s *series) used(source string, t record.Micros, used, rss float64) {
	s.cpu[source] = append(thinned(s.cpu[source]), cpuPoint{t, used, rss})
}

func (s *series) canary(c *record.Canary) { s.canaries = append(thinned(s.canaries), *c) }

// thinned lets every other of too many points go.
func thinned[P any](list []P) []P {
	if len(list) < maxPoints {
		return list
	}
	kept := list[:0]
	for i := 0; i < len(list); i += 2 {
		kept = append(kept, list[i])
	}
	return kept
}

// cpuIn is how much of one processor a process used between two moments, in
// percent, by the readings that lie closest about them.
func cpuIn(points []cpuPoint, from, to record.Micros) (float64, bool) {
	if len(points) < 2 {
		return 0, false
	}
	last := len(points) - 1
	after := func(t record.Micros) int {
		i, _ := slices.BinarySearchFunc(points, t, func(p cpuPoint, t record.Micros) int { return cmp.Compare(p.t, t) })
		return i
	}
	i := after(from + 1) // the first that is later: the one before it is the last that is not
	i = max(i-1, 0)
	j := min(after(to), last)
	if j <= i {
		i, j = max(j-1, 0), max(j, 1)
	}
	span := (points[j].t - points[i].t).Seconds()
	if span <= 0 {
		return 0, false
	}
	return round(100*(points[j].used-points[i].used)/span, 1), true
}

// peakCPU is the most that a process used of one processor, in percent, over
// any stretch of readings that is as long as those around a moment.
func peakCPU(points []cpuPoint) (float64, bool) {
	peak, known := 0.0, false
	i := 0
	for j := range points {
		for i+1 < j && points[j].t-points[i+1].t >= window {
			i++
		}
		if points[j].t-points[i].t < window/2 {
			continue // too short a stretch says little
		}
		used := 100 * (points[j].used - points[i].used) / (points[j].t - points[i].t).Seconds()
		peak, known = max(peak, used), true
	}
	return round(peak, 1), known
}

// figuresIn are the conditions of a step between two moments. Load is that at
// the later one.
func (c *building) figuresIn(from, to record.Micros, load Load) map[string]float64 {
	figures := make(map[string]float64)
	for source, points := range c.series.cpu {
		used, ok := cpuIn(points, from, to)
		if !ok {
			continue
		}
		if source == SourceMachine {
			if cpus := c.usage[source].cpus; cpus > 0 {
				figures[FigureMachine] = round(used/float64(cpus), 1)
			}
			continue
		}
		figures[FigureCPU+source] = used
	}
	var service []float64
	most, edges := 0, []edge(nil)
	for _, s := range c.slots {
		if !s.told || s.outcome == record.SlotDropped || s.sent > to || s.replied < from {
			continue
		}
		edges = append(edges, edge{max(s.sent, from), 1}, edge{s.replied, -1})
		if s.replied <= to {
			service = append(service, (s.replied - s.sent).Seconds())
		}
	}
	most = mostAtOnce(edges)
	figures[FigureInFlight] = float64(most)
	put := func(name string, values []float64) {
		if len(values) > 0 {
			figures[name] = round(stats.NewSample(values, 0).Quantile(0.5), 6)
		}
	}
	put(FigureRequest, service)
	var latency, lag []float64
	for _, x := range c.series.canaries {
		if x.Sent > to || x.Sent < from {
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
	figures[FigurePending], figures[FigureUnplaced] = float64(load.pending()), float64(load.Unplaced)
	return figures
}

// describe records the conditions at what broke first in a step, and those of
// the first step as what is normal.
func (b *Builder) describe(c *building, f *facts) {
	if b.isFirst(c) {
		to := c.end
		if c.reached != never && !c.Open {
			to = c.reached
		}
		c.normal = c.figuresIn(c.start, to, b.mostPending(c, to))
	}
	i := firstOf(c.Breaches)
	if i < 0 {
		return
	}
	x := c.Breaches[i]
	figures := c.figuresIn(max(x.at-window, c.start), x.at, x.Load)
	c.Conditions = &Conditions{Time: x.Time, Figures: []Figure{}}
	names := make(map[string]bool)
	for name := range figures {
		names[name] = true
	}
	normal := b.normalStep(c)
	if normal != nil {
		c.Conditions.NormalStep = normal.ID
		for name := range normal.normal {
			names[name] = true
		}
	}
	for _, name := range slices.SortedFunc(maps.Keys(names), compareFigures) {
		figure := Figure{Name: name, Unit: unitOf(name)}
		value, known := figures[name]
		if known {
			figure.Value = &value
		}
		if normal != nil {
			if was, ok := normal.normal[name]; ok {
				figure.Normal = &was
				if known && was > 0 {
					ratio := round(value/was, 3)
					figure.Ratio = &ratio
				}
			}
		}
		c.Conditions.Figures = append(c.Conditions.Figures, figure)
	}
}

// isFirst reports whether a step is the first that decides anything.
func (b *Builder) isFirst(c *building) bool {
	for _, s := range b.steps {
		if s == c {
			return true
		}
		if !s.again {
			return false
		}
	}
	return false
}

// mostPending is the load at the moment up to t at which the most objects of a
// step were pending, by its own requests.
func (b *Builder) mostPending(c *building, t record.Micros) Load {
	// At a few hundred moments, evenly spread: exact enough to compare with.
	const moments = 256
	times := make([]record.Micros, 0, moments)
	for i := range record.Micros(moments) {
		at := c.start + (t-c.start)*(i+1)/moments
		if len(times) == 0 || at > times[len(times)-1] {
			times = append(times, at)
		}
	}
	var most Load
	for _, l := range b.loadsAt(c, times) {
		if l.pending() > most.pending() {
			most.Asked, most.There = l.Asked, l.There
		}
		most.Unplaced = max(most.Unplaced, l.Unplaced)
	}
	return most
}

// compareFigures puts what is told of the objects first, then the API, then
// the processes.
func compareFigures(x, y string) int {
	return cmp.Or(cmp.Compare(orderOf(x), orderOf(y)), cmp.Compare(x, y))
}

func orderOf(figure string) int {
	for i, name := range [...]string{FigurePending, FigureUnplaced, FigureInFlight, FigureRequest, FigureAPI, FigureWatchLag, FigureMachine} {
		if figure == name {
			return i
		}
	}
	return 100
}

func unitOf(figure string) string {
	switch figure {
	case FigurePending, FigureUnplaced, FigureInFlight:
		return ""
	case FigureRequest, FigureAPI, FigureWatchLag:
		return "s"
	}
	return "%"
}
