package judge

import (
	"cmp"
	"slices"

	"plimsoll.dev/plimsoll/internal/record"
)

// used is what a process has used, by a sample.
type used struct {
	cpu          float64 // seconds since it was started
	rss, peak    float64 // bytes; rss is below 0 where it is not known
	okCPU, okRSS bool
}

func usedBy(r *record.Reading) used {
	var u used
	u.cpu, u.okCPU = reading(r, record.ValueCPU)
	u.rss, u.okRSS = reading(r, "rssBytes")
	// Of many processes of one program, what they share counts once.
	if shares, ok := reading(r, "pssBytes"); ok {
		u.rss, u.okRSS = shares, true
	}
	// Where the system has the peak between two readings, that counts.
	u.peak, _ = reading(r, "peakBytes")
	u.peak = max(u.peak, u.rss)
	return u
}

// reading is one value of a sample, if it is one that a process can have.
func reading(r *record.Reading, name string) (float64, bool) {
	v, ok := r.Values[name]
	if !ok || !(v >= 0 && v < 1e18) {
		return 0, false
	}
	return v, true
}

// readings collects what the processes used in a step.
type readings struct {
	usage    map[string]*stepUsage // by source
	cpu      map[string][]cpuPoint
	gauges   map[string][]gaugePoint      // of sources that say no use of CPU or memory, and those that metrics need
	needed   map[string]bool              // the latter
	sums     map[string]map[string]*sumOf // by source and value
	ownDelay *OwnDelay
}

// sumOf is what the samples of one value came to in a step so far.
type sumOf struct {
	first, last, most float64
	risen             float64 // by how much a value that only grows did, over all starts of its process
	from, to          record.Micros
}

// gaugePoint is what a source reported at a time.
type gaugePoint struct {
	t      record.Micros
	values map[string]float64
}

// stepUsage is what one process has used in a step so far.
type stepUsage struct {
	cpu       float64 // the counter, as last read
	used      float64
	rss, peak float64 // as first read, and the most
	cpus      int     // of the machine
	from      record.Micros
	span      float64 // seconds between the first reading and the last
}

// cpuPoint is what a process had used since the step's first reading.
type cpuPoint struct {
	t    record.Micros
	used float64 // seconds
	rss  float64 // bytes at that time, below 0 where it is not known
}

// newReadings collects what these metrics need besides what every step has.
func newReadings(metrics []record.Metric) readings {
	c := readings{
		usage: make(map[string]*stepUsage), cpu: make(map[string][]cpuPoint), gauges: make(map[string][]gaugePoint),
		needed: make(map[string]bool), sums: make(map[string]map[string]*sumOf),
	}
	for _, m := range metrics {
		for _, x := range m.Folds() {
			if x.Value != record.ValueCPU && (m.Per != nil || x.Fold == record.FoldMean || x.Fold == record.FoldPerSecond) {
				c.needed[x.Source] = true
			}
		}
	}
	return c
}

// add takes in a sample.
func (c *readings) add(t record.Micros, r *record.Reading) {
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
		c.gauges[r.Source] = append(thinned(c.gauges[r.Source]), gaugePoint{t, r.Values})
	}
	if !uses {
		return
	}
	held := now.rss
	if !now.okRSS {
		held = -1
	}
	u, ok := c.usage[r.Source]
	if !ok {
		cpus, _ := reading(r, "cpus")
		c.usage[r.Source] = &stepUsage{cpu: now.cpu, rss: now.rss, peak: now.peak, cpus: int(cpus), from: t}
		if now.okCPU {
			c.cpu[r.Source] = append(c.cpu[r.Source], cpuPoint{t, 0, held})
		}
		return
	}
	u.span = (t - u.from).Seconds()
	u.peak = max(u.peak, now.peak)
	if !now.okCPU {
		return
	}
	if now.cpu < u.cpu {
		u.cpu = 0 // the process was started again
	}
	u.used += now.cpu - u.cpu
	u.cpu = now.cpu
	c.cpu[r.Source] = append(thinned(c.cpu[r.Source]), cpuPoint{t, u.used, held})
}

// sum takes in a value of a sample, and the most that it was since the one before.
func (c *readings) sum(t record.Micros, source, name string, value, most float64) {
	if c.sums[source] == nil {
		c.sums[source] = make(map[string]*sumOf)
	}
	x, ok := c.sums[source][name]
	if !ok {
		x = &sumOf{first: value, last: value, from: t}
		c.sums[source][name] = x
	}
	if value < x.last {
		x.last = 0 // the process was started again
	}
	x.risen += value - x.last
	x.last, x.most, x.to = value, max(x.most, most), t
}

func (c *readings) addWakes(r *record.Reading) {
	made, _ := reading(r, "wakes")
	late, _ := reading(r, "late")
	most, _ := reading(r, "mostSeconds")
	if c.ownDelay == nil {
		c.ownDelay = &OwnDelay{}
	}
	d := c.ownDelay
	d.Wakes, d.Late, d.Max = d.Wakes+int(made), d.Late+int(late), max(d.Max, round(most, 6))
}

// maxPoints bounds the readings that are kept of one process, and the canaries:
// of a step that lasts longer every other one is let go.
const maxPoints = 8192

// percent is a use in percent of one processor as one of all of the machine's,
// where it is known how many these are.
func (c *readings) percent(used float64) float64 {
	if m := c.usage[SourceMachine]; m != nil && m.cpus > 0 {
		used /= float64(m.cpus)
	}
	return round(used, 1)
}

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

// usedBetween is by how much a value that only grows did between two moments, in
// proportion between readings.
func usedBetween(points []cpuPoint, from, to record.Micros) (float64, bool) {
	if len(points) < 2 || points[0].t > from || points[len(points)-1].t < to {
		return 0, false
	}
	at := func(t record.Micros) float64 {
		j, exact := slices.BinarySearchFunc(points, t, func(p cpuPoint, t record.Micros) int { return cmp.Compare(p.t, t) })
		if exact || j == 0 {
			return points[j].used
		}
		a, b := points[j-1], points[j]
		return a.used + (b.used-a.used)*float64(t-a.t)/float64(b.t-a.t)
	}
	return at(to) - at(from), true
}

// leastWaiting is how many must wait on average, where it is known who waits, for
// what they wait for to bind.
const leastWaiting = 0.5

// boundsIn are how far what a target declares was used up between two moments.
// With whileWaited each moment counts as often as it was waited through: a load
// of objects waits for one thing after the other.
func (c *readings) boundsIn(bounds []record.Bound, from, to record.Micros, whileWaited bool) []BoundShare {
	var list []BoundShare
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
			one := BoundShare{Name: b.Name, What: b.What, Share: round(share, 3), Held: share >= b.Full, generator: b.Generator}
			if times > 0 {
				one.Waiting = new(round(waited/float64(times), 1))
				one.Held = one.Held && waited/float64(times) >= leastWaiting
			}
			list = append(list, one)
		}
	}
	return list
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

// ownCost collects what this program itself uses over a whole run.
type ownCost struct {
	Cost
	before float64 // CPU seconds of the parts of the run before this one
}

func (c *ownCost) add(r *record.Reading) {
	if u := usedBy(r); r.Source == SourceSelf && (u.okCPU || u.okRSS) {
		c.CPUSeconds = max(c.CPUSeconds, c.before+u.cpu)
		c.PeakMemoryBytes = max(c.PeakMemoryBytes, int64(u.peak))
	}
}

// addStep takes in a step that was judged.
func (c *ownCost) addStep(s *judged) {
	c.Objects += s.requested
	if self, ok := s.Resources[SourceSelf]; ok {
		c.LoadCPUSeconds = round(c.LoadCPUSeconds+self.CPUSeconds, 6)
		c.LoadPeakMemoryBytes = max(c.LoadPeakMemoryBytes, self.PeakRSSBytes)
	}
}
