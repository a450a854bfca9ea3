package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
	"plimsoll.dev/plimsoll/internal/stats"
)

// confidence is that of every interval in a result.
const confidence = 0.95

// fate is what became of one object asked for.
type fate int

const (
	fateReady fate = iota
	fateNeverReady
	fateLost
	fateCreateFailed
	fateDropped
)

// facts are what a step's objectives are judged by.
type facts struct {
	objects  Objects
	requests Requests
	samples  map[string]stats.Sample
	slots    []*slot // in place
	timeout  record.Micros
	blind    bool
	cut      bool // the follow-up was cut short
	replaced int
	guards   []record.Guard
	achieved *float64
	offered  *float64
}

// judge completes a step at its end.
func (b *Builder) judge(c *building) {
	f := facts{
		samples: make(map[string]stats.Sample), slots: b.place.slots, timeout: c.timeout,
		blind: b.blind > 0, cut: c.ending == record.EndInterrupted || c.ending == record.EndGuard, guards: c.guards,
	}
	reasons := newReasons(b)
	for _, s := range b.place.slots {
		if len(s.objects) > s.units && s.step == c.ID {
			f.replaced += len(s.objects) - s.units
		}
		for i := range s.units {
			o := s.at(i)
			switch fate := b.fateOf(s, o, c, f.blind, f.cut); fate {
			case fateReady:
				f.objects.Ready++
			case fateNeverReady:
				f.objects.NeverReady++
				reasons.add(s, o, c)
			case fateLost:
				f.objects.Lost++
				reasons.add(s, o, c)
			case fateCreateFailed:
				f.objects.CreateFailed++
				reasons.addRequest(s)
			case fateDropped:
				f.objects.Dropped++
			}
		}
	}
	o := &f.objects
	o.Created = o.Ready + o.NeverReady + o.Lost
	o.Intended = o.Created + o.CreateFailed + o.Dropped
	c.Objects = *o

	b.time(c, &f)
	b.measure(c, &f)
	c.Ending = c.ending
	c.Reasons = reasons.grouped(c.places)
	c.EffectiveLevel = b.effective(c, &f)
	c.Goals = make(map[string]slo.Verdict, len(b.spec.Goals))
	for i, g := range b.spec.Goals {
		verdict, why := b.judgeGoal(c, g, &f)
		c.Goals[g.Name] = verdict
		if i == 0 {
			c.Verdict, c.VerdictWhy = verdict, why
		}
	}
	if len(b.spec.Goals) == 0 {
		c.Verdict, c.VerdictWhy = slo.Inconclusive, "no goal was given"
	}
	if c.Breaches == nil {
		c.Breaches = []Breach{}
	}
	b.cost.Objects += len(c.slots)
}

// at is the slot's i-th object, nil if no news of it came.
func (s *slot) at(i int) *object {
	if i < len(s.objects) {
		return s.objects[i]
	}
	return nil
}

// fateOf is what became of one object by the end of a step. Whether it is
// there is judged now; how long it took is judged by the step that made it.
func (b *Builder) fateOf(s *slot, o *object, c *building, blind, cut bool) fate {
	switch s.outcome {
	case record.SlotFailed:
		return fateCreateFailed
	case record.SlotDropped:
		return fateDropped
	}
	if o != nil && o.there && b.latency(s, o, b.milestone(b.spec.Arrived)) <= c.timeout {
		return fateReady
	}
	if o != nil && (o.failed || o.gone || o.there || o.reason == reasonUnschedulable) {
		return fateNeverReady
	}
	if blind || cut {
		return fateLost
	}
	return fateNeverReady
}

const reasonUnschedulable = "Unschedulable"

// latency is the time from an object's time zero to a milestone, never when it
// was not reached. A nil object reached nothing.
func (b *Builder) latency(s *slot, o *object, milestone int) record.Micros {
	if o == nil || milestone >= len(o.at) || o.at[milestone] == never {
		return math.MaxInt64
	}
	t0 := o.t0
	if t0 == never {
		t0 = s.sent
	}
	if t0 == never {
		// The request's own reply never came: the first news of the object
		// is the earliest time that is known.
		t0 = o.at[b.milestone(milestoneCreated)]
		if t0 == never {
			t0 = o.at[milestone]
		}
	}
	return max(o.at[milestone]-t0, 0)
}

// measure summarises the latencies of the step's own objects, its requests,
// its canaries and its resources.
func (b *Builder) measure(c *building, f *facts) {
	asked := 0
	for _, s := range c.slots {
		asked += s.units
	}
	values := make([][]float64, len(b.names))
	var service []float64
	for _, s := range c.slots {
		c.Retries429 += s.throttled
		c.Requests.N++
		if s.retries > 0 {
			c.Requests.Retried++
		}
		if s.outcome == record.SlotFailed {
			c.Requests.Failed++
		}
		if s.sent != never && s.outcome != record.SlotDropped {
			service = append(service, (s.replied - s.sent).Seconds())
		}
		for i := range s.units {
			o := s.at(i)
			if o == nil {
				continue
			}
			for m := range o.at {
				if b.names[m] == milestoneDeleted {
					continue
				}
				if l := b.latency(s, o, m); l <= c.timeout {
					values[m] = append(values[m], l.Seconds())
				}
			}
		}
	}
	c.Latency = make(Latencies)
	for m, v := range values {
		name := b.names[m]
		if name == milestoneDeleted || len(v) == 0 && !slices.Contains(b.spec.Milestones, name) && name != b.spec.Arrived {
			continue
		}
		sample := stats.NewSample(v, asked-len(v))
		f.samples[name] = sample
		c.Latency[name] = summarise(sample)
	}
	s := stats.NewSample(service, 0)
	c.Requests.P50, c.Requests.P99, c.Requests.Max = finite(s.Quantile(0.5)), finite(s.Quantile(0.99)), finite(s.Max())
	c.InFlightMax = inFlight(c.slots)
	f.requests = c.Requests

	if n := len(c.canaries) + c.unseen; n > 0 {
		lag := stats.NewSample(c.canaries, c.unseen)
		c.WatchLag = &WatchLag{N: n, Unseen: c.unseen, P50: finite(lag.Quantile(0.5)), P99: finite(lag.Quantile(0.99))}
	}
	c.Resources = make(map[string]Usage, len(c.usage))
	for source, u := range c.usage {
		c.Resources[source] = Usage{
			CPUSeconds:   round(u.last.cpu-u.first.cpu, 6),
			PeakRSSBytes: int64(u.peak), StartRSSBytes: int64(u.first.rss),
		}
	}
	if self, ok := c.Resources[SourceSelf]; ok {
		b.cost.LoadCPUSeconds = round(b.cost.LoadCPUSeconds+self.CPUSeconds, 6)
		b.cost.LoadPeakMemoryBytes = max(b.cost.LoadPeakMemoryBytes, self.PeakRSSBytes)
	}
}

// time fills in when the step began and ended, and its rates.
func (b *Builder) time(c *building, f *facts) {
	c.Start, c.End = b.wall(c.start), b.wall(c.end)
	c.Seconds = (c.end - c.start).Seconds()
	if c.reached != never {
		reach := (c.reached - c.start).Seconds()
		c.ReachSeconds = &reach
	}
	if c.loaded != never && c.loaded > c.start && len(c.slots) > 0 {
		rate := round(float64(len(c.slots))/(c.loaded-c.start).Seconds(), 3)
		c.OfferedRate = &rate
	}
	// The achieved rate is that of the step's own objects up to the last one
	// that got there.
	there, last := 0, never
	arrived := b.milestone(b.spec.Arrived)
	for _, s := range c.slots {
		for i := range s.units {
			if o := s.at(i); o != nil && o.at[arrived] != never {
				there++
				last = max(last, o.at[arrived])
			}
		}
	}
	if there > 0 && last > c.start {
		rate := round(float64(there)/(last-c.start).Seconds(), 3)
		c.AchievedRate = &rate
	}
	f.achieved, f.offered = c.AchievedRate, c.OfferedRate
}

// inFlight is the largest number of requests that were under way at once.
func inFlight(slots []*slot) int {
	type edge struct {
		t     record.Micros
		delta int
	}
	edges := make([]edge, 0, 2*len(slots))
	for _, s := range slots {
		if s.sent != never && s.outcome != record.SlotDropped {
			edges = append(edges, edge{s.sent, 1}, edge{s.replied, -1})
		}
	}
	// A request that ends as another begins is not under way with it.
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Or(cmp.Compare(a.t, b.t), cmp.Compare(a.delta, b.delta))
	})
	most, now := 0, 0
	for _, e := range edges {
		now += e.delta
		most = max(most, now)
	}
	return most
}

// effective is the level of those objects that got there: an iteration counts
// only whole, since half of one does no work.
func (b *Builder) effective(c *building, f *facts) *float64 {
	if f.objects.Intended == 0 {
		return nil
	}
	if f.objects.Ready == f.objects.Intended {
		level := c.LevelReached
		return &level
	}
	short := make(map[int]bool)
	for _, s := range f.slots {
		for i := range s.units {
			if b.fateOf(s, s.at(i), c, f.blind, f.cut) != fateReady {
				short[s.iteration] = true
			}
		}
	}
	whole := 0
	for _, s := range f.slots {
		if !short[s.iteration] {
			whole += s.units
		}
	}
	var level float64
	if c.places > 0 {
		level = float64(c.others+whole) / float64(c.places)
	} else {
		level = c.LevelReached * float64(whole) / float64(f.objects.Intended)
	}
	level = round(level, 6)
	return &level
}

// judgeGoal judges a step by one goal: the worst of its objectives.
func (b *Builder) judgeGoal(c *building, g slo.Goal, f *facts) (slo.Verdict, string) {
	var unknown, broken []string
	fail := func(what string, value, bound *float64) {
		broken = append(broken, what)
		breach := Breach{Time: b.wall(c.end), Step: c.ID, What: what, Value: value, Bound: bound}
		// Two goals may share an objective: it is one breach.
		if !slices.ContainsFunc(c.Breaches, func(x Breach) bool { return x.What == what }) {
			c.Breaches = append(c.Breaches, breach)
			b.breaches = append(b.breaches, breach)
		}
	}
	for _, guard := range f.guards {
		// addGuard has noted the breach at the time it came.
		broken = append(broken, "guard:"+guard.Name)
	}
	if f.replaced > 0 {
		n := float64(f.replaced)
		fail(fmt.Sprintf("replaced: %d objects were replaced during the step", f.replaced), &n, new(float64))
	}
	for _, s := range g.SLOs {
		verdict, what, value, bound := b.judgeSLO(c, s, f)
		switch verdict {
		case slo.Breach:
			fail(what, value, bound)
		case slo.Inconclusive:
			unknown = append(unknown, what)
		}
	}
	switch {
	case len(broken) > 0:
		return slo.Breach, strings.Join(broken, "; ")
	case len(unknown) > 0:
		return slo.Inconclusive, strings.Join(unknown, "; ")
	case f.objects.Lost > 0:
		return slo.Inconclusive, fmt.Sprintf("the state of %d objects is not known", f.objects.Lost)
	case f.blind:
		return slo.Inconclusive, "the watch was cut at the end of the step"
	case f.cut:
		return slo.Inconclusive, "the step was cut short: " + c.message
	case f.objects.Intended == 0:
		return slo.Inconclusive, "nothing was asked for"
	}
	return slo.Pass, "every objective held"
}

// judgeSLO judges a step by one objective. What it returns besides the verdict
// tells of a breach or of what is not known.
func (b *Builder) judgeSLO(c *building, s slo.SLO, f *facts) (slo.Verdict, string, *float64, *float64) {
	switch s.Form {
	case slo.All:
		return b.judgeAll(c, s, f)
	case slo.Quantile:
		sample, ok := f.samples[s.Milestone]
		if !ok || sample.N() == 0 {
			return slo.Inconclusive, fmt.Sprintf("%s: no object of the step could be judged", s), nil, nil
		}
		if !stats.Resolves(s.Q, sample.N()) {
			b.Warn(fmt.Sprintf("step %d: %s is judged by the largest of %d objects: %s needs %d", c.ID, s, sample.N(), stats.QuantileName(s.Q), int(math.Ceil(1/(1-s.Q)-1e-9))))
		}
		value, bound := sample.Quantile(s.Q), s.Within.Seconds()
		if s.Op.Holds(value, bound) {
			return slo.Pass, "", nil, nil
		}
		// With what is lost counted as never late, does it still fail?
		if lost := b.lostIn(c, f); lost > 0 {
			kind := stats.NewSample(append(make([]float64, min(lost, sample.Censored())), sample.Values()...), max(sample.Censored()-lost, 0))
			if s.Op.Holds(kind.Quantile(s.Q), bound) {
				return slo.Inconclusive, fmt.Sprintf("%s: it depends on %d objects whose state is not known", s, lost), nil, nil
			}
		}
		return slo.Breach, fmt.Sprintf("%s: it was %s", s, seconds(value)), finite(value), &bound
	case slo.Errors:
		if f.requests.N == 0 {
			return slo.Inconclusive, fmt.Sprintf("%s: no request was made", s), nil, nil
		}
		value, bound := 100*float64(f.requests.Failed+f.objects.Dropped)/float64(f.requests.N), s.Percent
		if s.Op.Holds(value, bound) {
			return slo.Pass, "", nil, nil
		}
		return slo.Breach, fmt.Sprintf("%s: it was %.3g%%", s, value), &value, &bound
	case slo.Achieved:
		if f.achieved == nil || f.offered == nil {
			return slo.Inconclusive, fmt.Sprintf("%s: the rate is not known", s), nil, nil
		}
		value, bound := 100**f.achieved / *f.offered, s.Percent
		if s.Op.Holds(value, bound) {
			return slo.Pass, "", nil, nil
		}
		return slo.Breach, fmt.Sprintf("%s: it was %.3g%%", s, value), &value, &bound
	default:
		return slo.Inconclusive, fmt.Sprintf("%s: no metrics were recorded", s), nil, nil
	}
}

// judgeAll judges readiness over all objects in place.
func (b *Builder) judgeAll(c *building, s slo.SLO, f *facts) (slo.Verdict, string, *float64, *float64) {
	short, lost := 0, 0
	if s.Milestone == b.spec.Arrived && s.Within == 0 {
		o := f.objects
		short, lost = o.NeverReady+o.CreateFailed+o.Dropped, o.Lost
	} else {
		within := f.timeout
		if s.Within > 0 {
			within = record.MicrosOf(s.Within)
		}
		m := b.milestone(s.Milestone)
		for _, slot := range f.slots {
			for i := range slot.units {
				o := slot.at(i)
				switch {
				case b.latency(slot, o, m) <= within:
				case b.fateOf(slot, o, c, f.blind, f.cut) == fateLost:
					lost++
				default:
					short++
				}
			}
		}
	}
	total, zero := float64(f.objects.Intended), 0.0
	switch {
	case short > 0:
		value := float64(short)
		return slo.Breach, fmt.Sprintf("%s: %d of %.0f did not get there", s, short, total), &value, &zero
	case lost > 0:
		return slo.Inconclusive, fmt.Sprintf("%s: the state of %d of %.0f is not known", s, lost, total), nil, nil
	}
	return slo.Pass, "", nil, nil
}

// lostIn counts the step's own objects whose state is not known.
func (b *Builder) lostIn(c *building, f *facts) int {
	lost := 0
	for _, s := range c.slots {
		for i := range s.units {
			if b.fateOf(s, s.at(i), c, f.blind, f.cut) == fateLost {
				lost++
			}
		}
	}
	return lost
}

func summarise(s stats.Sample) Latency {
	l := Latency{
		N: s.N(), Censored: s.Censored(), Resolution: round(s.Resolution(), 6),
		P50: finite(s.Quantile(0.5)), P90: finite(s.Quantile(0.9)), P95: finite(s.Quantile(0.95)), P99: finite(s.Quantile(0.99)),
		Max: finite(s.Max()), Mean: finite(s.Mean()),
		Intervals: make(map[string][2]*float64, 2),
	}
	for _, q := range []float64{0.5, 0.99} {
		lo, hi := s.Interval(q, confidence)
		l.Intervals[stats.QuantileName(q)] = [2]*float64{finite(lo), finite(hi)}
	}
	return l
}

// finite is x to the microsecond, nil where it is not finite.
func finite(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	x = round(x, 6)
	return &x
}

func round(x float64, digits int) float64 {
	scale := math.Pow10(digits)
	return math.Round(x*scale) / scale
}

func seconds(x float64) string {
	if math.IsInf(x, 1) {
		return "never reached"
	}
	return fmt.Sprintf("%.3gs", x)
}
