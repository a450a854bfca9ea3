package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"plimsoll.dev/plimsoll/internal/diagnose"
	"plimsoll.dev/plimsoll/internal/record"
	"plimsoll.dev/plimsoll/internal/slo"
	"plimsoll.dev/plimsoll/internal/stats"
)

// Spec is what must be known of an experiment, besides its history, to judge
// it.
type Spec struct {
	Experiment, Workload, Kind, Command, Version string
	Axis, Unit                                   string
	Goals                                        []slo.Goal // the headline first
	// Milestones is the order in which the workload's objects reach theirs.
	Milestones []string
	// Arrived is the milestone at which an object counts as there.
	Arrived string
	// Arms are those of a comparison; nil for any other experiment.
	Arms *ArmsSpec
	// FreshLab says that each step from empty has a laboratory made for it.
	FreshLab bool
	// Published are figures to be shown beside those of the run.
	Published []PublishedSpec
	// Signatures are the failures that are looked for; nil for none.
	Signatures []diagnose.Signature
	// Start is the wall clock at T = 0.
	Start time.Time
}

// never marks a milestone that was not reached.
const never record.Micros = -1

// unreached is the latency to a milestone that was not reached.
const unreached record.Micros = math.MaxInt64

// object is one object that news came of.
type object struct {
	name  string
	first record.Micros   // news of it
	at    []record.Micros // when each milestone was reached, or never
	node  int32           // index into nodeName, -1 unknown
	late  bool
	there bool // at the arrival milestone, and not fallen from it since
	gone  bool
	// failed says that it will never get there.
	failed bool
	// fell is since when it is no more where it was, or never will be; never
	// while neither is so.
	fell    record.Micros
	reason  string
	message string
}

// reached is when the object reached a milestone, or never.
func (o *object) reached(milestone int) record.Micros {
	if milestone >= len(o.at) {
		return never // the milestone was first heard of after the object
	}
	return o.at[milestone]
}

// slot is one request and the objects it asked for.
type slot struct {
	name      string
	step      int
	component string
	units     int
	iteration int
	intended  record.Micros
	told      bool // its request is on record, and not just news of what it asked for
	sent      record.Micros
	waited    record.Micros // for a place among the requests under way
	zero      record.Micros // time zero of its object: sent, or intended where a schedule says when
	replied   record.Micros
	code      int
	retries   int
	throttled int
	delay     record.Micros
	outcome   record.SlotOutcome
	err       string
	objects   []*object // in the order in which news of them came
	// byName finds an object that has a name of its own.
	byName map[string]*object
	// surplus is how many objects more than units came by the end of the last
	// step: each took the place of another.
	surplus int
}

// count is how many objects the slot stands for. As long as its request is not
// on record nobody knows: then it is as many as there are.
func (s *slot) count() int {
	if s.told {
		return s.units
	}
	living := 0
	for _, o := range s.objects {
		if !o.gone {
			living++
		}
	}
	return max(living, 1)
}

// filling are the objects that fill the slot, at most count: one that is gone
// counts only where none took its place.
func (s *slot) filling() []*object {
	n := s.count()
	if len(s.objects) <= n {
		return s.objects
	}
	list := slices.Clone(s.objects)
	slices.SortStableFunc(list, func(a, b *object) int {
		switch {
		case a.gone == b.gone:
			return 0
		case b.gone:
			return -1
		}
		return 1
	})
	return list[:n]
}

// Builder takes in a run's events in the order of its history and judges each
// step at its end. It holds the objects that are in place and forgets them
// when the target is emptied.
type Builder struct {
	spec  Spec
	index map[string]int // of milestones
	names []string       // milestones, in order of index
	text  map[string]string
	// created and arrived are the indices of these milestones.
	created, arrived int

	// place holds the slots in place. leaving holds those of a target that is
	// being emptied: news of them is still taken in, but they are no longer
	// judged.
	place, leaving *fill

	steps   []*building
	current *building
	matcher *diagnose.Matcher

	nodes    map[string]int32
	nodeName []string

	// disturbed is in how many steps other programs used more of the CPUs than
	// is tolerated, and others the most that they used, in percent.
	disturbed int
	others    float64

	warnings []string
	largest  []largest
	stray    []Breach // guards outside of any step
	cost     Cost
	// cpuBefore is what the program had used when the run was last resumed.
	cpuBefore float64
	ended     bool // the run's end was recorded
	endWhy    string
	// open are the faults that last: while there is any, what becomes of the
	// objects is not known.
	open  []record.Fault
	lastT record.Micros

	// Rows, if set, takes every slot's objects once nothing more is followed.
	Rows func(record.ObjectRow)
	// published are the histograms that came since the last step began or ended.
	published map[durationsKey]*record.Durations
	// phases is what tells the cost of a pod.
	phases phases
}

// fill is all that was asked of the target since it was last empty.
type fill struct {
	slots  []*slot
	byName map[string]*slot
	units  int // that the steps set out to ask for
	// services is how many were made, by namespace.
	services map[string]int
}

func newFill() *fill { return &fill{byName: make(map[string]*slot), services: make(map[string]int)} }

// building is a step that is being recorded.
type building struct {
	Step
	start, loaded, reached, end record.Micros
	timeout, hold               record.Micros
	places, others              int
	units                       int // that it set out to ask for, 0 is not known
	message                     string
	slots                       []*slot
	events                      map[eventKey]*eventGroup
	canaries                    []float64
	unseen                      int
	usage                       map[string]*stepUsage
	guards                      []record.Guard
	binding                     map[string]string // by goal: what it broke on
	samples                     map[string][]part // of a comparison, by milestone
	seen                        map[Kind]*sighting
	series                      *series
	before                      map[durationsKey]*record.Durations // as published before its load
	// Once it has ended: how many objects it was judged by, how often each
	// trouble was seen, and its figures as the normal ones.
	hits      []diagnose.Hit
	asked     int
	sightings map[Kind]int
	normal    map[string]float64
	done      bool
	// again says that the step was cut and is made again by a run that was
	// resumed: it decides nothing.
	again bool
}

// judges reports whether a slot of the step itself is one that the step is
// judged by: all of them, but for the warm-up of an open loop.
func (c *building) judges(s *slot) bool {
	return !c.Open || c.reached != never && s.intended >= c.reached && s.intended < c.reached+c.hold
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

// NewBuilder makes a Builder for one run.
func NewBuilder(spec Spec) *Builder {
	if spec.Arrived == "" {
		spec.Arrived = "Ready"
	}
	b := &Builder{
		spec:      spec,
		index:     make(map[string]int),
		text:      make(map[string]string),
		place:     newFill(),
		leaving:   newFill(),
		published: make(map[durationsKey]*record.Durations),
		nodes:     make(map[string]int32),
	}
	for _, m := range spec.Milestones {
		b.milestone(m)
	}
	b.created, b.arrived = b.milestone(milestoneCreated), b.milestone(spec.Arrived)
	var err error
	if b.matcher, err = diagnose.NewMatcher(spec.Signatures); err != nil {
		b.matcher, _ = diagnose.NewMatcher(nil)
		b.Warn(fmt.Sprintf("nothing is recognised, for want of signatures that can be used: %v", err))
	}
	return b
}

func (b *Builder) milestone(name string) int {
	i, ok := b.index[name]
	if !ok {
		i = len(b.names)
		b.index[name] = i
		b.names = append(b.names, name)
	}
	return i
}

// intern keeps one copy of a text that thousands of objects share.
func (b *Builder) intern(s string) string {
	if t, ok := b.text[s]; ok {
		return t
	}
	b.text[s] = s
	return s
}

func (b *Builder) node(name string) int32 {
	if name == "" {
		return -1
	}
	i, ok := b.nodes[name]
	if !ok {
		i = int32(len(b.nodeName))
		b.nodes[name] = i
		b.nodeName = append(b.nodeName, name)
	}
	return i
}

// Add takes in the next event.
func (b *Builder) Add(e record.Event) {
	if run, ok := e.Body.(*record.Run); ok && run.Phase == record.PhaseResume {
		b.addResume(e.T, run) // what was under way ended before, and not now
	}
	b.lastT = max(b.lastT, e.T)
	switch body := e.Body.(type) {
	case *record.Run:
		if body.Phase == record.PhaseEnd {
			b.ended, b.endWhy = true, body.Message
		}
	case *record.Step:
		b.addStep(e, body)
	case *record.Slot:
		b.addSlot(e, body)
	case *record.Object:
		b.addObject(e, body)
	case *record.State:
		b.addState(e, body)
	case *record.KubeEvent:
		if b.current != nil {
			b.current.addEvent(body)
			b.current.seeEvent(e.T, body)
			b.matcher.Event(e.T, body)
		}
	case *record.Log:
		b.addLog(e, body)
	case *record.Durations:
		b.published[durationsKey{body.Source, body.Name}] = body
	case *record.Sample:
		b.addSample(e, body)
	case *record.Canary:
		b.addCanary(body)
	case *record.Guard:
		b.addGuard(e, body)
	case *record.Fault:
		b.addFault(e, body)
	case *record.Note:
		b.Warn(body.Text)
	}
}

// Warn adds something that the reader must know.
func (b *Builder) Warn(text string) {
	if !slices.Contains(b.warnings, text) {
		b.warnings = append(b.warnings, text)
	}
}

func (b *Builder) addStep(e record.Event, s *record.Step) {
	switch s.Phase {
	case record.PhaseStart:
		b.closeStep(e.T)
		// No more news of objects that were removed is awaited: from here on
		// their names are those of others.
		b.retire(newFill())
		b.current = &building{
			Step: Step{
				ID: e.Step, Level: s.Level, LevelReached: s.Reached, Arm: s.Arm, Replicate: s.Replicate,
				Purpose: s.Purpose, Why: s.Why, FromEmpty: s.FromEmpty, FullHold: s.Full, Open: s.Open, Pace: s.Pace,
				Breaches: []Breach{},
			},
			start: e.T, loaded: never, reached: never, end: never,
			timeout: s.Timeout, hold: s.Hold, places: s.Places, others: s.Others, units: s.Units,
			events: make(map[eventKey]*eventGroup), usage: make(map[string]*stepUsage),
			seen: make(map[Kind]*sighting), series: newSeries(), before: b.published,
		}
		b.published = make(map[durationsKey]*record.Durations)
		if s.Timeout <= 0 {
			b.current.timeout = unreached - 1
		}
		b.matcher.Begin(e.Step)
		b.place.units += s.Units
		b.steps = append(b.steps, b.current)
	case record.PhaseLoaded:
		if b.current != nil {
			b.current.loaded = e.T
		}
	case record.PhaseReached:
		if b.current != nil {
			b.current.reached = e.T
		}
	case record.PhaseEnd:
		if b.current != nil {
			if s.Places > 0 {
				b.current.places, b.current.others = s.Places, s.Others
				b.current.PerNode = &PerNode{Nodes: s.Places, Min: s.Least, Max: s.Most, Others: s.Others}
			}
			b.current.Ending, b.current.message = s.Ending, s.Message
			b.closeStep(e.T)
		}
	case record.PhaseReset:
		b.closeStep(e.T)
		b.retire(b.place)
		b.place = newFill()
	}
}

// closeStep judges the current step; one whose end was never recorded was cut.
func (b *Builder) closeStep(t record.Micros) {
	c := b.current
	if c == nil {
		return
	}
	c.end = t
	if c.Ending == "" {
		c.Ending, c.message = record.EndInterrupted, "its end was never recorded"
	}
	b.judge(c)
	c.hits = b.matcher.End(c.end, b.peaks(c))
	b.addOverhead(c)
	b.addDurations(c)
	c.done = true
	c.events, c.slots, c.usage, c.series, c.seen, c.before = nil, nil, nil, nil, nil, nil
	b.current = nil
}

func (b *Builder) slotNamed(name string) (*slot, bool) {
	if s, ok := b.place.byName[name]; ok {
		return s, true
	}
	s, ok := b.leaving.byName[name]
	return s, ok
}

// newSlot makes a slot of the current step.
func (b *Builder) newSlot(name string, step int) *slot {
	s := &slot{name: name, step: step, intended: never, sent: never, replied: never}
	b.place.byName[name] = s
	b.place.slots = append(b.place.slots, s)
	if b.current != nil {
		b.current.slots = append(b.current.slots, s)
	}
	return s
}

func (b *Builder) addSlot(e record.Event, r *record.Slot) {
	s, ok := b.place.byName[r.Slot]
	if !ok {
		s = b.newSlot(r.Slot, e.Step)
	}
	s.told = true
	s.component, s.units, s.iteration = b.intern(r.Component), max(r.Units, 0), r.Iteration
	s.intended, s.sent, s.replied, s.waited = r.Intended, r.Sent, r.Replied, r.Waited
	s.zero = s.sent
	if b.current != nil && b.current.Open {
		s.zero = s.intended
	}
	s.code, s.retries, s.throttled = r.Code, r.Retries, r.Throttled
	s.outcome, s.err, s.delay = r.Outcome, b.intern(r.Error), r.Delay
	if b.current != nil && b.current.ID == e.Step {
		b.current.seeRequest(r)
		b.matcher.Request(r)
	}
	if r.Resource == "Service" && r.Outcome == record.SlotCreated {
		namespace, _, _ := strings.Cut(r.Slot, "/")
		b.place.services[namespace]++
	}
}

// known finds the object that news is of, nil where it is not known: then the
// slot is the one that it would fill, nil where that is not known either. The
// slot is the one named, or the one of the object's own name.
func (b *Builder) known(name, slotName string) (*slot, *object) {
	own := slotName == "" || slotName == name
	if own {
		slotName = name
	}
	s, ok := b.slotNamed(slotName)
	switch {
	case !ok:
		return nil, nil
	case !own:
		return s, s.byName[name]
	case len(s.objects) == 0:
		return s, nil
	}
	return s, s.objects[len(s.objects)-1]
}

// newObject makes an object of a slot at the first news of it.
func (b *Builder) newObject(s *slot, name string, t record.Micros) *object {
	o := &object{name: name, first: t, node: -1, fell: never, at: make([]record.Micros, len(b.names))}
	for i := range o.at {
		o.at[i] = never
	}
	if name != s.name {
		if s.byName == nil {
			s.byName = make(map[string]*object)
		}
		s.byName[name] = o
	}
	s.objects = append(s.objects, o)
	return o
}

func (b *Builder) addObject(e record.Event, r *record.Object) {
	i := b.milestone(r.Milestone)
	s, o := b.known(r.Object, r.Slot)
	created := r.Milestone == milestoneCreated
	switch {
	case o == nil && r.Milestone == milestoneDeleted:
		return // of something that was never in place, or is no more
	case o == nil:
		if s == nil {
			// News can come before the request's own reply.
			s = b.newSlot(cmp.Or(r.Slot, r.Object), e.Step)
		}
		o = b.newObject(s, r.Object, e.T)
	case created && (o.gone || o.reached(b.created) != never):
		// The name came again: somebody replaced the object.
		o.gone, o.there = true, false
		o = b.newObject(s, r.Object, e.T)
	case o.gone:
		return // nothing follows an object's end
	}
	for len(o.at) <= i {
		o.at = append(o.at, never)
	}
	if o.at[i] == never {
		o.at[i] = e.T
	}
	if r.Component != "" && s.component == "" {
		s.component = b.intern(r.Component)
	}
	if r.Node != "" {
		o.node = b.node(r.Node)
	}
	o.late = o.late || r.Late
	switch r.Milestone {
	case b.spec.Arrived:
		o.there = true
	case milestoneDeleted:
		o.gone, o.there = true, false
	}
}

// Milestones that every kind of object may have.
const (
	milestoneCreated = "Created"
	milestoneDeleted = "Deleted"
)

func (b *Builder) addState(e record.Event, r *record.State) {
	_, o := b.known(r.Object, r.Slot)
	if o == nil || o.gone {
		return // of something that was never in place, or is no more
	}
	if b.current != nil {
		b.current.seeState(e.T, r, o.reason, b.spec.Arrived)
		b.matcher.State(e.T, r, o.reason)
	}
	o.reason, o.message = b.intern(r.Reason), b.intern(r.Message)
	if r.Node != "" {
		o.node = b.node(r.Node)
	}
	if r.Failed {
		o.failed = true
	}
	if r.Lost == b.spec.Arrived {
		o.there = false
	} else if r.Regained == b.spec.Arrived {
		o.there = true
	}
	switch out := o.failed || r.Lost == b.spec.Arrived; {
	case out && o.fell == never:
		o.fell = e.T
	case o.there && !o.failed:
		o.fell = never
	}
}

func (b *Builder) addSample(e record.Event, r *record.Sample) {
	if r.Source == SourceWakes {
		b.addWakes(r)
		return
	}
	cpu, okCPU := reading(r, "cpuSeconds")
	rss, okRSS := reading(r, "rssBytes")
	if !okCPU && !okRSS {
		return
	}
	held := rss
	if !okRSS {
		held = -1
	}
	// Where the system tells the peak between two readings, that counts.
	peak, _ := reading(r, "peakBytes")
	peak = max(peak, rss)
	if r.Source == SourceSelf {
		b.cost.CPUSeconds = max(b.cost.CPUSeconds, b.cpuBefore+cpu)
		b.cost.PeakMemoryBytes = max(b.cost.PeakMemoryBytes, int64(peak))
	}
	c := b.current
	if c == nil {
		return
	}
	u, ok := c.usage[r.Source]
	if !ok {
		cpus, _ := reading(r, "cpus")
		c.usage[r.Source] = &stepUsage{cpu: cpu, rss: rss, peak: peak, cpus: int(cpus), from: e.T}
		if okCPU {
			c.series.used(r.Source, e.T, 0, held)
		}
		return
	}
	u.span = (e.T - u.from).Seconds()
	u.peak = max(u.peak, peak)
	if !okCPU {
		return
	}
	if cpu < u.cpu {
		u.cpu = 0 // the process was started anew
	}
	u.used += cpu - u.cpu
	u.cpu = cpu
	c.series.used(r.Source, e.T, u.used, held)
}

// reading is one value of a sample, if it is one that a process can have.
func reading(r *record.Sample, name string) (float64, bool) {
	v, ok := r.Values[name]
	if !ok || !(v >= 0 && v < 1e18) {
		return 0, false
	}
	return v, true
}

// SourceSelf is the name of this program among the sources of samples.
const SourceSelf = "plimsoll"

// SourceMachine is the name of the whole machine that the control plane runs
// on, where this program runs there too; its sample says how many cpus it has.
const SourceMachine = "machine"

// SourceNode is a real node in all: its programs, which are sources of their
// own, and its pods.
const SourceNode = "node"

// SourceRuntime is what the container runtime's own processes use on a real
// node, which live for hundredths of a second each.
const SourceRuntime = "runtime"

// partOfAnother reports whether a source is counted in another one's figures:
// the pods of a component in those of all pods.
func partOfAnother(source string) bool { return strings.Contains(source, "/") }

func (b *Builder) addCanary(r *record.Canary) {
	if b.current == nil {
		return
	}
	b.current.series.canary(r)
	if r.Seen == 0 {
		b.current.unseen++
		return
	}
	b.current.canaries = append(b.current.canaries, (r.Seen - r.Sent).Seconds())
}

func (b *Builder) addGuard(e record.Event, r *record.Guard) {
	breach := Breach{What: "guard:" + r.Name, Value: finite(r.Value), Bound: finite(r.Bound), Kind: KindGuard, Count: 1, Message: r.Message, at: e.T}
	if c := b.current; c != nil {
		c.broke(b.goalNames(), breach)
		c.guards = append(c.guards, *r)
		return
	}
	breach.Time, breach.Step, breach.Decided = b.wall(e.T), e.Step, true
	b.stray = append(b.stray, breach)
}

func (b *Builder) addFault(e record.Event, r *record.Fault) {
	if b.current != nil && r.From >= b.current.start {
		b.current.see(KindWatch, r.From, r.What, "", r.Message).told = 1
	}
	if r.To == 0 {
		b.open = append(b.open, *r)
		return
	}
	if i := slices.IndexFunc(b.open, func(f record.Fault) bool { return f.What == r.What }); i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
	text := r.What + " for " + (r.To - r.From).Duration().Round(time.Millisecond).String()
	if b.current != nil {
		text += " in step " + strconv.Itoa(b.current.ID)
	}
	if r.Healed {
		text += ": nothing was lost, but what happened meanwhile is timed at the end of the gap"
	} else {
		text += ": what came and went meanwhile is not known"
	}
	b.Warn(text)
}

// wall is the wall clock at t, to the microsecond.
func (b *Builder) wall(t record.Micros) string {
	return b.spec.Start.Add(t.Duration()).UTC().Format("2006-01-02T15:04:05.000000Z")
}

// LastStep is the last step that has ended, or nil.
func (b *Builder) LastStep() *Step {
	for i := len(b.steps) - 1; i >= 0; i-- {
		if b.steps[i].done {
			return &b.steps[i].Step
		}
	}
	return nil
}

// Live is how far the step under way has come, as far as its objects tell.
type Live struct {
	There    int // of the step's own objects
	P50, P99 *float64
}

// Live sums up the step under way. It takes time in proportion to its objects.
func (b *Builder) Live() Live {
	if b.current == nil {
		return Live{}
	}
	var values []float64
	for _, s := range b.current.slots {
		if !b.current.judges(s) {
			continue
		}
		for _, o := range s.filling() {
			if l := b.latency(s, o, b.arrived); l <= b.current.timeout {
				values = append(values, l.Seconds())
			}
		}
	}
	sample := stats.NewSample(values, 0)
	return Live{There: len(values), P50: finite(sample.Quantile(0.5)), P99: finite(sample.Quantile(0.99))}
}

// Steps are the steps that have ended, in order.
func (b *Builder) Steps() []Step {
	steps := make([]Step, 0, len(b.steps))
	for _, s := range b.steps {
		if s.done {
			steps = append(steps, s.Step)
		}
	}
	return steps
}

// retire hands the objects of the slots that were leaving to Rows: no news of
// them is awaited any more. Then next are those that are leaving.
func (b *Builder) retire(next *fill) {
	if b.Rows != nil {
		for _, s := range b.leaving.slots {
			b.rowsOf(s)
		}
	}
	b.leaving = next
}
