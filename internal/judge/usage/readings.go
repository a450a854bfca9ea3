package usage

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

type used struct {
	cpu          float64 // seconds since it was started
	rss, peak    float64 // bytes; rss is below 0 where it is unknown
	okCPU, okRSS bool
	shares       bool    // many processes of one program: rss is their proportional share
	resident     float64 // and this their sum
}

func usedBy(r *record.Reading) used {
	var u used
	u.cpu, u.okCPU = reading(r, record.ValueCPU)
	u.rss, u.okRSS = reading(r, "rssBytes")
	if shares, ok := reading(r, "pssBytes"); ok { // memory that several processes share counts once
		u.rss, u.okRSS, u.shares = shares, true, true
		u.resident, _ = reading(r, "residentBytes")
	}
	u.peak, _ = reading(r, "peakBytes") // between two readings, if the system knows it
	u.peak = max(u.peak, u.rss)
	return u
}

// reading returns one value of a sample, if a process can have it.
func reading(r *record.Reading, name string) (float64, bool) {
	v, ok := r.Values[name]
	if !ok || !(v >= 0 && v < 1e18) {
		return 0, false
	}
	return v, true
}

// Readings collects the use of resources by the processes in a step.
type Readings struct {
	Usage    map[string]*StepUsage // by source
	CPU      map[string][]CPUPoint
	gauges   map[string][]gaugePoint      // of sources without CPU or memory, and of needed ones
	needed   map[string]bool              // by metrics
	Sums     map[string]map[string]*SumOf // by source and value
	OwnDelay *result.OwnDelay
}

// SumOf sums up the samples of one value in a step so far.
type SumOf struct {
	First, Last, Most float64
	Risen             float64 // growth of a value that only grows, over all starts of its process
	From, To          record.Micros
}

type gaugePoint struct {
	t      record.Micros
	values map[string]float64
}

// StepUsage is the use of one process in a step so far.
type StepUsage struct {
	cpu       float64 // the counter, as last read
	Used      float64
	rss, peak float64 // as first read, and the most
	shares    bool    // these are proportional shares, unlike resident and mostResident

	resident, mostResident float64
	CPUs                   int // of the machine
	from                   record.Micros
	Span                   float64 // seconds between the first reading and the last
}

// CPUPoint is the use of a process since the step's first reading.
type CPUPoint struct {
	T    record.Micros
	Used float64 // seconds
	RSS  float64 // bytes at that time, below 0 where it is unknown
}

// NewReadings collects the needs of these metrics besides those of every step.
func NewReadings(metrics []record.Metric) Readings {
	c := Readings{
		Usage: make(map[string]*StepUsage), CPU: make(map[string][]CPUPoint), gauges: make(map[string][]gaugePoint),
		needed: make(map[string]bool), Sums: make(map[string]map[string]*SumOf),
	}
	c.needed[SourceMachine] = true // for NeighboursIn
	for _, m := range metrics {
		for _, x := range m.Folds() {
			if x.Value != record.ValueCPU && (m.Per != nil || x.Fold == record.FoldMean || x.Fold == record.FoldPerSecond) {
				c.needed[x.Source] = true
			}
		}
	}
	return c
}

// Add takes in a sample.
func (c *Readings) Add(t record.Micros, r *record.Reading) {
	if r.Source == SourceWakes {
		c.addWakes(r)
		return
	}
	for name := range r.Values {
		if value, ok := reading(r, name); ok {
			c.sum(t, r.Source, name, value, value)
		}
	}
	now := usedBy(r)
	if now.okRSS {
		c.sum(t, r.Source, record.ValueMemory, now.rss, now.peak)
	}
	uses := now.okCPU || now.okRSS
	if !uses || c.needed[r.Source] {
		c.gauges[r.Source] = append(Thinned(c.gauges[r.Source]), gaugePoint{t, r.Values})
	}
	if !uses {
		return
	}
	held := now.rss
	if !now.okRSS {
		held = -1
	}
	u, ok := c.Usage[r.Source]
	if !ok {
		cpus, _ := reading(r, "cpus")
		c.Usage[r.Source] = &StepUsage{cpu: now.cpu, rss: now.rss, peak: now.peak, shares: now.shares, resident: now.resident, mostResident: now.resident, CPUs: int(cpus), from: t}
		if now.okCPU {
			c.CPU[r.Source] = append(c.CPU[r.Source], CPUPoint{t, 0, held})
		}
		return
	}
	u.Span = (t - u.from).Seconds()
	u.peak, u.mostResident = max(u.peak, now.peak), max(u.mostResident, now.resident)
	if !now.okCPU {
		return
	}
	if now.cpu < u.cpu {
		u.cpu = 0 // the process was restarted
	}
	u.Used += now.cpu - u.cpu
	u.cpu = now.cpu
	c.CPU[r.Source] = append(Thinned(c.CPU[r.Source]), CPUPoint{t, u.Used, held})
}

// sum takes in a value of a sample, and the most since the one before.
func (c *Readings) sum(t record.Micros, source, name string, value, most float64) {
	if c.Sums[source] == nil {
		c.Sums[source] = make(map[string]*SumOf)
	}
	x, ok := c.Sums[source][name]
	if !ok {
		x = &SumOf{First: value, Last: value, From: t}
		c.Sums[source][name] = x
	}
	if value < x.Last {
		x.Last = 0 // the process was restarted
	}
	x.Risen += value - x.Last
	x.Last, x.Most, x.To = value, max(x.Most, most), t
}

func (c *Readings) addWakes(r *record.Reading) {
	made, _ := reading(r, "wakes")
	late, _ := reading(r, "late")
	most, _ := reading(r, "mostSeconds")
	if c.OwnDelay == nil {
		c.OwnDelay = &result.OwnDelay{}
	}
	d := c.OwnDelay
	d.Wakes, d.Late, d.Max = d.Wakes+int(made), d.Late+int(late), max(d.Max, result.Round(most, 6))
}

const maxPoints = 8192 // bound of the readings of one process, and the canaries: in a longer step every other one goes

// Percent converts percent of one processor into percent of all of the machine's, if known.
func (c *Readings) Percent(used float64) float64 {
	if m := c.Usage[SourceMachine]; m != nil && m.CPUs > 0 {
		used /= float64(m.CPUs)
	}
	return result.Round(used, 1)
}

// Thinned drops every other of too many points.
func Thinned[P any](list []P) []P {
	if len(list) < maxPoints {
		return list
	}
	kept := list[:0]
	for i := 0; i < len(list); i += 2 {
		kept = append(kept, list[i])
	}
	return kept
}

// CPUIn returns a process's use of one processor in percent between two moments, by readings near them.
func CPUIn(points []CPUPoint, from, to record.Micros) (float64, bool) {
	if len(points) < 2 {
		return 0, false
	}
	last := len(points) - 1
	after := func(t record.Micros) int {
		i, _ := slices.BinarySearchFunc(points, t, func(p CPUPoint, t record.Micros) int { return cmp.Compare(p.T, t) })
		return i
	}
	i := after(from + 1) // the first that is later: the one before it is the last that is not
	i = max(i-1, 0)
	j := min(after(to), last)
	if j <= i {
		i, j = max(j-1, 0), max(j, 1)
	}
	span := (points[j].T - points[i].T).Seconds()
	if span <= 0 {
		return 0, false
	}
	return result.Round(100*(points[j].Used-points[i].Used)/span, 1), true
}

// UsedBetween returns the growth of a value that only grows between two moments, interpolated.
func UsedBetween(points []CPUPoint, from, to record.Micros) (float64, bool) {
	if len(points) < 2 || points[0].T > from || points[len(points)-1].T < to {
		return 0, false
	}
	return usedAt(points, to) - usedAt(points, from), true
}

// usedAt returns the use by a moment, interpolated between readings.
func usedAt(points []CPUPoint, t record.Micros) float64 {
	j, exact := slices.BinarySearchFunc(points, t, func(p CPUPoint, t record.Micros) int { return cmp.Compare(p.T, t) })
	if j == len(points) {
		return points[j-1].Used
	}
	if exact || j == 0 {
		return points[j].Used
	}
	a, b := points[j-1], points[j]
	return a.Used + (b.Used-a.Used)*float64(t-a.T)/float64(b.T-a.T)
}

// BoundsIn says how far limits were used up between two moments, with whileWaited weighted by who waited.
func (c *Readings) BoundsIn(bounds []record.Bound, from, to record.Micros, whileWaited bool) []result.BoundShare {
	var list []result.BoundShare
	for _, b := range bounds {
		sum, n := 0.0, 0
		weighted, waited, times := 0.0, 0.0, 0
		for _, p := range c.gauges[b.Source] {
			value, ok := p.values[b.Value]
			limit := 1.0
			if ok && b.Limit != "" {
				limit, ok = p.values[b.Limit]
			}
			if !ok || p.t <= from || p.t > to || !(limit > 0) {
				continue
			}
			sum, n = sum+value/limit, n+1
			if waiting, ok := p.values[b.Waiting]; ok {
				weighted, waited, times = weighted+waiting*value/limit, waited+waiting, times+1
			}
		}
		if n > 0 {
			share := sum / float64(n)
			if whileWaited && waited > 0 {
				share = weighted / waited
			}
			one := result.BoundShare{Name: b.Name, What: b.What, Share: result.Round(share, 3), Held: share >= b.Full, Generator: b.Generator, Slow: b.Slow, By: b.By}
			if times > 0 {
				one.Waiting = new(result.Round(waited/float64(times), 1))
				one.Held = one.Held && waited/float64(times) >= result.LeastWaiting
			}
			list = append(list, one)
		}
	}
	return list
}

// Window is the time before a moment that shows its conditions, and the stretch of a peak.
const Window = record.Micros(5e6)

// PeakCPU returns the highest use of one processor in percent over any readings as long as Window.
func PeakCPU(points []CPUPoint) (float64, bool) {
	peak, known := 0.0, false
	i := 0
	for j := range points {
		for i+1 < j && points[j].T-points[i+1].T >= Window {
			i++
		}
		if points[j].T-points[i].T < Window/2 {
			continue // too short a stretch says little
		}
		used := 100 * (points[j].Used - points[i].Used) / (points[j].T - points[i].T).Seconds()
		peak, known = max(peak, used), true
	}
	return result.Round(peak, 1), known
}

// OwnCost collects the use of resources by this program itself over a whole run.
type OwnCost struct {
	result.Cost
	Before float64 // CPU seconds of the parts of the run before this one
}

// Add takes in a sample.
func (c *OwnCost) Add(r *record.Reading) {
	if u := usedBy(r); r.Source == SourceSelf && (u.okCPU || u.okRSS) {
		c.CPUSeconds = max(c.CPUSeconds, c.Before+u.cpu)
		c.PeakMemoryBytes = max(c.PeakMemoryBytes, int64(u.peak))
	}
}

// AddStep takes in the use in a step, and the number of objects that it asked for.
func (c *OwnCost) AddStep(requested int, used map[string]result.Usage) {
	c.Objects += requested
	if self, ok := used[SourceSelf]; ok {
		c.LoadCPUSeconds = result.Round(c.LoadCPUSeconds+self.CPUSeconds, 6)
		c.LoadPeakMemoryBytes = max(c.LoadPeakMemoryBytes, self.PeakMemory())
	}
}

// Resources returns the use of each process in a step.
func (c *Readings) Resources() map[string]result.Usage {
	list := make(map[string]result.Usage, len(c.Usage))
	for source, u := range c.Usage {
		if source == SourceMachine {
			continue
		}
		use := result.Usage{CPUSeconds: result.Round(u.Used, 6), PeakRSSBytes: int64(u.peak), StartRSSBytes: int64(u.rss)}
		if u.shares {
			use.PeakPSSBytes, use.StartPSSBytes = use.PeakRSSBytes, use.StartRSSBytes
			use.PeakRSSBytes, use.StartRSSBytes = int64(u.mostResident), int64(u.resident)
		}
		if percent, ok := PeakCPU(c.CPU[source]); ok {
			use.PeakCPUs = result.Significant(percent / 100)
		}
		list[source] = use
	}
	return list
}

// Series returns the samples of a fold's value over the step.
func (c *Readings) Series(x record.Fold) []CPUPoint {
	if x.Value == record.ValueCPU {
		return c.CPU[x.Source]
	}
	var list []CPUPoint
	for _, p := range c.gauges[x.Source] {
		r := record.Reading{Values: p.values}
		value, ok := reading(&r, x.Value)
		if x.Value == record.ValueMemory {
			u := usedBy(&r)
			value, ok = u.rss, u.okRSS
		}
		if ok {
			list = append(list, CPUPoint{T: p.t, Used: value})
		}
	}
	return list
}

// MeanIn returns the mean of the samples between two moments, or nil.
func MeanIn(points []CPUPoint, from, to record.Micros) *float64 {
	sum, n := 0.0, 0
	for _, p := range points {
		if p.T > from && p.T <= to {
			sum, n = sum+p.Used, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}
