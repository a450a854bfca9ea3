package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

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

// unit is one object that is asked for, and what became of it by the end of a
// step.
type unit struct {
	slot   *slot
	object *object // nil: no news of it came
	own    bool    // asked for in this step
	fate   fate
}

// facts are what a step's objectives are judged by, besides what its Step
// tells.
type facts struct {
	units    []unit            // of all slots in place
	samples  map[string]sample // by milestone, of the step's own objects
	dropped  int               // requests of this step that were never sent
	achieved *float64          // in percent of the rate that was offered, nil is not known

	blind      bool // the watch was cut at the end
	cut        bool // the follow-up was cut short
	replaced   int
	replacedAt record.Micros // the first of them
	unrecorded int           // objects that the step asked for by a request that is not on record
}

// sample holds the latencies to one milestone.
type sample struct {
	stats.Sample
	lost int // of the censored, those whose state is not known
}

// part is the sample of one component's objects, or of all.
type part struct {
	component string // "" is all
	stats.Sample
}

// parts are a step's samples, with those of each component where its objects
// are of several.
func (b *Builder) parts(c *building, f *facts) map[string][]part {
	parts := make(map[string][]part)
	var components []string
	own := make(map[string][]unit)
	for _, u := range f.units {
		if u.own {
			own[u.slot.component] = append(own[u.slot.component], u)
		}
	}
	if len(own) > 1 {
		components = slices.Sorted(maps.Keys(own))
	}
	for name, s := range f.samples {
		parts[name] = append(parts[name], part{"", s.Sample})
		m := b.milestone(name)
		for _, component := range components {
			var values []float64
			for _, u := range own[component] {
				if l := b.latency(u.slot, u.object, m); l <= c.timeout {
					values = append(values, l.Seconds())
				}
			}
			parts[name] = append(parts[name], part{component, stats.NewSample(values, len(own[component])-len(values))})
		}
	}
	return parts
}

// judge completes a step at its end.
func (b *Builder) judge(c *building) {
	f := &facts{
		samples: make(map[string]sample),
		blind:   len(b.open) > 0, cut: c.Ending == record.EndInterrupted || c.Ending == record.EndGuard,
	}
	reasons := newReasons(b)
	asked := 0
	for _, s := range b.place.slots {
		if surplus := len(s.objects) - s.units; s.told && surplus > s.surplus {
			if at := s.objects[s.units+s.surplus].first; f.replaced == 0 || at < f.replacedAt {
				f.replacedAt = at
			}
			f.replaced += surplus - s.surplus
			s.surplus = surplus
		}
		if s.step == c.ID && !c.judges(s) {
			asked += s.count()
			continue
		}
		filling := s.filling()
		for i := range s.count() {
			u := unit{slot: s, own: s.step == c.ID}
			if i < len(filling) {
				u.object = filling[i]
			}
			u.fate = b.fateOf(u, c, f)
			f.units = append(f.units, u)
			c.Objects.count(u.fate)
			if u.own {
				asked++
			}
			switch u.fate {
			case fateNeverReady, fateLost:
				reasons.add(u, c)
			case fateCreateFailed:
				reasons.addRequest(s)
			}
		}
		if s.units == 0 && s.step == c.ID && s.outcome == record.SlotFailed {
			reasons.addRequest(s)
		}
	}
	f.unrecorded = max(c.units-asked, 0)
	c.Reasons = reasons.grouped(c.places)
	b.measure(c, f)
	b.time(c, f)
	b.findBottleneck(c, f)
	c.EffectiveLevel = b.effective(c, f)
	c.Goals = make(map[string]slo.Verdict, len(b.spec.Goals))
	c.binding = make(map[string]string)
	c.Verdict, c.VerdictWhy = slo.Inconclusive, "no goal was given"
	for i, g := range b.spec.Goals {
		verdict, why := b.judgeGoal(c, g, f)
		c.Goals[g.Name] = verdict
		if i == 0 {
			c.Verdict, c.VerdictWhy = verdict, why
		}
	}
	b.order(c, f)
	b.describe(c, f)
	b.cost.Objects += asked
	if b.spec.Arms != nil {
		c.samples = b.parts(c, f)
		c.Params = b.spec.Arms.Params[c.Arm]
	}
}

// count adds one object to the account.
func (o *Objects) count(f fate) {
	switch f {
	case fateReady:
		o.Ready++
	case fateNeverReady:
		o.NeverReady++
	case fateLost:
		o.Lost++
	case fateCreateFailed:
		o.CreateFailed++
	case fateDropped:
		o.Dropped++
	}
	o.Created = o.Ready + o.NeverReady + o.Lost
	o.Intended = o.Created + o.CreateFailed + o.Dropped
}

// fateOf is what became of one object by the end of a step. Whether it is
// there is judged now; how long it took is judged by the step that made it.
func (b *Builder) fateOf(u unit, c *building, f *facts) fate {
	o := u.object
	switch {
	case o == nil && u.slot.outcome == record.SlotFailed:
		// With news of the object its request has succeeded, whatever the
		// answer was.
		return fateCreateFailed
	case o == nil && u.slot.outcome == record.SlotDropped:
		return fateDropped
	case o == nil:
	case c.Open && b.latency(u.slot, o, b.arrived) <= c.timeout:
		return fateReady // it is removed as it ages
	case o.there && (!u.own || b.latency(u.slot, o, b.arrived) <= c.timeout):
		return fateReady
	case o.there || o.failed || o.gone:
		return fateNeverReady
	case o.reason == reasonUnschedulable && !f.blind:
		// While the watch is cut it may have found a place.
		return fateNeverReady
	}
	if f.blind || f.cut {
		return fateLost
	}
	return fateNeverReady
}

const reasonUnschedulable = "Unschedulable"

// latency is the time from an object's time zero to a milestone, or unreached.
// A nil object reached nothing. Time zero is the sending of its request; the
// first news of it for an object that a controller makes, or whose request is
// not on record.
func (b *Builder) latency(s *slot, o *object, milestone int) record.Micros {
	if o == nil || o.reached(milestone) == never {
		return unreached
	}
	zero := o.first
	if o.name == s.name && s.told {
		zero = s.zero
	}
	return max(o.reached(milestone)-zero, 0)
}

// measure summarises the latencies of the step's own objects, its requests,
// its canaries and its resources.
func (b *Builder) measure(c *building, f *facts) {
	values, lost, asked := make([][]float64, len(b.names)), make([]int, len(b.names)), 0
	for _, u := range f.units {
		if !u.own {
			continue
		}
		asked++
		for m := range b.names {
			switch l := b.latency(u.slot, u.object, m); {
			case l <= c.timeout:
				values[m] = append(values[m], l.Seconds())
			case l == unreached && u.fate == fateLost:
				lost[m]++
			}
		}
	}
	c.Latency = make(Latencies)
	for m, v := range values {
		name := b.names[m]
		if name == milestoneDeleted || len(v) == 0 && !slices.Contains(b.spec.Milestones, name) && name != b.spec.Arrived {
			continue
		}
		s := sample{stats.NewSample(v, asked-len(v)), lost[m]}
		f.samples[name] = s
		c.Latency[name] = summarise(s.Sample)
	}

	var service []float64
	for _, s := range c.slots {
		c.Retries429 += s.throttled
		switch {
		case s.outcome == record.SlotDropped:
			if c.judges(s) {
				f.dropped++
			}
			continue
		case !s.told || !c.judges(s):
			continue
		}
		c.Requests.N++
		service = append(service, (s.replied - s.sent).Seconds())
		if s.retries > 0 {
			c.Requests.Retried++
		}
		if s.outcome == record.SlotFailed || s.outcome == record.SlotUnknown {
			c.Requests.Failed++
		}
	}
	s := stats.NewSample(service, 0)
	c.Requests.P50, c.Requests.P99, c.Requests.Max = finite(s.Quantile(0.5)), finite(s.Quantile(0.99)), finite(s.Max())
	c.InFlightMax = inFlight(c.slots)

	if n := len(c.canaries) + c.unseen; n > 0 {
		lag := stats.NewSample(c.canaries, c.unseen)
		c.WatchLag = &WatchLag{N: n, Unseen: c.unseen, P50: finite(lag.Quantile(0.5)), P99: finite(lag.Quantile(0.99))}
	}
	c.Resources = make(map[string]Usage, len(c.usage))
	for source, u := range c.usage {
		if source == SourceMachine {
			continue // it is no process
		}
		use := Usage{CPUSeconds: round(u.used, 6), PeakRSSBytes: int64(u.peak), StartRSSBytes: int64(u.rss)}
		if percent, ok := peakCPU(c.series.cpu[source]); ok {
			use.PeakCPUs = significant(percent / 100)
		}
		c.Resources[source] = use
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
	if c.Open {
		b.timeArrivals(c, f)
		return
	}
	asked, there, last := 0, 0, never
	for _, u := range f.units {
		if !u.own {
			continue
		}
		asked++
		if u.object != nil && u.object.reached(b.arrived) != never {
			there++
			last = max(last, u.object.reached(b.arrived))
		}
	}
	loading := c.loaded > c.start && asked > 0
	if loading {
		c.OfferedRate = rate(len(c.slots), c.loaded-c.start)
	}
	// The achieved rate is that of the step's own objects up to the last one
	// that got there.
	switch {
	case there > 0 && last > c.start:
		c.AchievedRate = rate(there, last-c.start)
		if loading {
			achieved := 100 * float64(there) / float64(asked) * float64(c.loaded-c.start) / float64(last-c.start)
			f.achieved = &achieved
		}
	case there == 0 && asked > 0 && !f.cut && !f.blind:
		c.AchievedRate, f.achieved = new(float64), new(float64)
	}
}

// rate is n a time, by the second.
func rate(n int, t record.Micros) *float64 {
	r := round(float64(n)/t.Seconds(), 3)
	return &r
}

// inFlight is the largest number of requests that were under way at once.
func inFlight(slots []*slot) int {
	edges := make([]edge, 0, 2*len(slots))
	for _, s := range slots {
		if s.told && s.outcome != record.SlotDropped {
			edges = append(edges, edge{s.sent, 1}, edge{s.replied, -1})
		}
	}
	return mostAtOnce(edges)
}

// edge is where something begins (1) or ends (-1).
type edge struct {
	t     record.Micros
	delta int
}

// mostAtOnce is the largest number of things that go on at once. One that ends
// as another begins does not go on with it.
func mostAtOnce(edges []edge) int {
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
	intended := max(c.Objects.Intended, b.place.units)
	if c.Objects.Intended == 0 {
		return nil
	}
	if c.Open {
		return c.AchievedRate
	}
	if c.Objects.Ready == intended {
		level := c.LevelReached
		return &level
	}
	// A request that is not on record belongs to no iteration that is known.
	short := make(map[int]bool)
	for _, u := range f.units {
		if u.fate != fateReady && u.slot.told {
			short[u.slot.iteration] = true
		}
	}
	whole := 0
	for _, u := range f.units {
		if u.slot.told && !short[u.slot.iteration] {
			whole++
		}
	}
	var level float64
	if c.places > 0 {
		level = float64(c.others+whole) / float64(c.places)
	} else {
		level = c.LevelReached * (float64(whole) / float64(intended))
	}
	level = round(level, 6)
	return &level
}

// judgeGoal judges a step by one goal: the worst of its objectives.
func (b *Builder) judgeGoal(c *building, g slo.Goal, f *facts) (slo.Verdict, string) {
	if a := c.Arrivals; a != nil && a.OwnDelayP99 != nil && *a.OwnDelayP99 > OwnDelayBound.Seconds() {
		return slo.Invalid, fmt.Sprintf("this program was late itself: its own delay, p99 over %d arrivals, was %s, and more than %v is not the target's doing",
			a.Judged, duration(*a.OwnDelayP99, OwnDelayBound), OwnDelayBound)
	}
	if d := c.OwnDelay; d.short(c.Open) {
		return slo.Invalid, fmt.Sprintf("this program itself was short of CPU: of %d times it was woken, it was late %d times by more than %v", d.Wakes, d.Late, OwnDelayBound)
	}
	var open, broken []string
	missing := false // the goal broke on objects that did not get there
	for _, guard := range c.guards {
		// addGuard has noted the breach at the time it came.
		broken = append(broken, "guard:"+guard.Name)
	}
	if f.replaced > 0 {
		n := float64(f.replaced)
		what := "replaced: " + manyObjects(f.replaced) + " took the place of others during the step"
		broken = append(broken, what)
		c.broke([]string{g.Name}, Breach{What: what, Value: &n, Bound: new(float64), Kind: KindReplaced, Count: f.replaced, at: max(f.replacedAt, c.start)})
	}
	if a := c.Arrivals; a != nil && a.held() {
		value, bound := 100-100*float64(a.Late)/float64(a.Judged), 100-lateTolerated
		what := fmt.Sprintf("achievedRate: %d of %d arrivals found no place among the requests under way, because answers were slow; %d were dropped", a.Late, a.Judged, a.Dropped)
		broken = append(broken, what)
		c.broke([]string{g.Name}, Breach{What: what, Value: &value, Bound: &bound, Kind: KindAchieved, Count: a.Late, at: b.heldBackAt(c, a)})
	}
	for _, s := range g.SLOs {
		o := b.judgeSLO(c, s, f)
		switch o.verdict {
		case slo.Breach:
			broken = append(broken, o.what)
			missing = missing || o.missing
			c.broke([]string{g.Name}, Breach{What: o.what, Value: o.value, Bound: o.bound, Kind: o.kind, Count: o.count, at: o.at})
		case slo.Inconclusive:
			open = append(open, o.what)
		}
	}
	switch {
	case len(broken) > 0:
		what := strings.Join(broken, "; ")
		switch {
		case len(c.guards) > 0:
			// What a guard interrupted is not what bound.
			c.binding[g.Name] = strings.Join(broken[:len(c.guards)], "; ")
		case missing && len(c.Reasons) > 0:
			c.binding[g.Name] = binding(c.Reasons)
		default:
			c.binding[g.Name] = what
			if text := c.Bottleneck.String(); text != "" && c.Open {
				c.binding[g.Name] += "; " + text
			}
		}
		return slo.Breach, what
	case len(open) > 0:
		return slo.Inconclusive, strings.Join(open, "; ")
	case c.Objects.Lost > 0:
		return slo.Inconclusive, "the state of " + manyObjects(c.Objects.Lost) + " is not known"
	case f.blind:
		return slo.Inconclusive, "the watch was cut at the end of the step"
	case f.cut:
		return slo.Inconclusive, "the step was cut short: " + c.message
	case f.unrecorded > 0:
		return slo.Inconclusive, "the requests for " + manyObjects(f.unrecorded) + " are not on record"
	case c.Objects.Intended == 0:
		return slo.Inconclusive, "nothing was asked for"
	}
	return slo.Pass, "every objective held"
}

func manyObjects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return strconv.Itoa(n) + " objects"
}

// opinion is what one objective makes of a step.
type opinion struct {
	verdict      slo.Verdict
	what         string // was breached, or is not known
	value, bound *float64
	missing      bool // it broke on objects that did not get there
	// Of a breach: its sort, how many objects or requests it is of, and when
	// the objective could no longer hold.
	kind  Kind
	count int
	at    record.Micros
}

func held() opinion { return opinion{verdict: slo.Pass} }

func unknown(format string, args ...any) opinion {
	return opinion{verdict: slo.Inconclusive, what: fmt.Sprintf(format, args...)}
}

// judgeSLO judges a step by one objective.
func (b *Builder) judgeSLO(c *building, s slo.SLO, f *facts) opinion {
	switch s.Form {
	case slo.All:
		return b.judgeAll(c, s, f)
	case slo.Quantile:
		return b.judgeQuantile(c, s, f)
	case slo.Errors:
		asked := c.Requests.N + f.dropped
		if asked == 0 {
			return unknown("%s: no request was made", s)
		}
		o := judgePercent(s, 100*float64(c.Requests.Failed+f.dropped)/float64(asked))
		o.kind, o.count, o.at = KindErrors, c.Requests.Failed+f.dropped, b.errorsAt(c, s, asked)
		return o
	case slo.Achieved:
		if f.achieved == nil {
			return unknown("%s: the rate is not known", s)
		}
		o := judgePercent(s, *f.achieved)
		o.kind, o.at = KindAchieved, achievedAt(c, s)
		return o
	default:
		return unknown("%s: no metrics were recorded", s)
	}
}

func judgePercent(s slo.SLO, value float64) opinion {
	if s.Op.Holds(value, s.Percent) {
		return held()
	}
	return opinion{verdict: slo.Breach, what: fmt.Sprintf("%s: it was %.4g%%", s, value), value: finite(value), bound: &s.Percent}
}

// judgeQuantile judges the latencies of the step's own objects.
func (b *Builder) judgeQuantile(c *building, s slo.SLO, f *facts) opinion {
	sample, ok := f.samples[s.Milestone]
	if !ok || sample.N() == 0 {
		return unknown("%s: no object of the step could be judged", s)
	}
	if !stats.Resolves(s.Q, sample.N()) {
		b.byLargest(c.ID, fmt.Sprintf("%s is judged by the largest of %s: %s needs %.0f",
			s, manyObjects(sample.N()), stats.QuantileName(s.Q), math.Ceil((1-1e-9)/(1-s.Q))))
	}
	value, bound := sample.Quantile(s.Q), s.Within.Seconds()
	holds := s.Op.Holds(value, bound)
	if sample.lost > 0 {
		// What is lost may have got there at once, or never.
		atOnce := append(make([]float64, sample.lost), sample.Values()...)
		best := stats.NewSample(atOnce, sample.Censored()-sample.lost).Quantile(s.Q)
		if s.Op.Holds(best, bound) != holds {
			return unknown("%s: it depends on %s whose state is not known", s, manyObjects(sample.lost))
		}
	}
	if holds {
		return held()
	}
	at, count := b.quantileAt(c, s, f, sample)
	return opinion{verdict: slo.Breach, what: fmt.Sprintf("%s: it was %s", s, duration(value, s.Within)), value: finite(value), bound: &bound, missing: math.IsInf(value, 1), kind: KindLatency, count: count, at: at}
}

// byLargest warns of an objective that is judged by a maximum: once for all
// steps of which the same is to be said.
func (b *Builder) byLargest(step int, what string) {
	i := slices.IndexFunc(b.largest, func(l largest) bool { return l.what == what })
	if i < 0 {
		i = len(b.largest)
		b.largest = append(b.largest, largest{what: what})
	}
	if steps := &b.largest[i].steps; !slices.Contains(*steps, step) {
		*steps = append(*steps, step)
	}
}

// largest is an objective that was judged by a maximum, and where.
type largest struct {
	what  string
	steps []int
}

func (l largest) String() string {
	const shown = 5
	var steps []string
	for _, s := range l.steps[:min(len(l.steps), shown)] {
		steps = append(steps, strconv.Itoa(s))
	}
	text := "step " + strings.Join(steps, ", ")
	if more := len(l.steps) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ": " + l.what
}

// judgeAll judges all objects in place: whether they are there, and, of the
// step's own, whether they were in time.
func (b *Builder) judgeAll(c *building, s slo.SLO, f *facts) opinion {
	bound := c.timeout
	if s.Within > 0 {
		bound = min(bound, record.MicrosOf(s.Within))
	}
	m := b.milestone(s.Milestone)
	short, lost := 0, 0
	first := c.end // when the first was short
	for _, u := range f.units {
		took := b.latency(u.slot, u.object, m)
		late := u.own && took > bound
		switch {
		case took == unreached && u.fate == fateLost:
			lost++
			continue
		case took == unreached || late || u.object.gone && !c.Open:
		case m != b.arrived || u.fate == fateReady:
			continue
		case u.fate == fateLost:
			lost++
			continue
		}
		short++
		first = min(first, b.shortAt(c, u, m, bound))
	}
	switch n := float64(short); {
	case short > 0:
		return opinion{
			verdict: slo.Breach, what: fmt.Sprintf("%s: %d of %d did not get there", s, short, len(f.units)), value: &n, bound: new(float64), missing: true,
			kind: KindMissing, count: short, at: first,
		}
	case lost > 0:
		return unknown("%s: the state of %d of %d is not known", s, lost, len(f.units))
	}
	return held()
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
	if r := math.Round(x*scale) / scale; !math.IsInf(r, 0) {
		return r
	}
	return x // too large to have digits after the point
}

// duration writes a time in seconds to the millisecond, or as exactly as it
// takes to tell it from its bound.
func duration(x float64, bound time.Duration) string {
	if math.IsInf(x, 1) {
		return "never reached"
	}
	exact := time.Duration(math.Round(x*1e6)) * time.Microsecond
	if short := exact.Round(time.Millisecond); short != bound {
		return short.String()
	}
	return exact.String()
}
