package fold

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"plimsoll.dev/plimsoll/internal/judge/result"
	"plimsoll.dev/plimsoll/internal/record"
)

// Never marks a milestone that was not reached.
const Never record.Micros = -1

const unreached record.Micros = math.MaxInt64 // latency to a milestone that was not reached

// milestones holds a run's milestones by index: the declared ones, then others in order of their news.
type milestones struct {
	kind                 *record.ObjectKind
	names                []string
	index                map[string]int
	created, there, gone int // below 0 for one that the kind does not have
	// kinds lists the kinds of objects, "" for the main one first; arrivals has the milestone at which each
	// counts as there. of has the kind of each milestone.
	kinds        []string
	arrivals, of []int
}

func newMilestones(spec *result.Spec) *milestones {
	m := &milestones{kind: &spec.Kind, index: make(map[string]int), kinds: []string{""}}
	for _, name := range spec.Milestones {
		m.add(name)
	}
	m.created, m.there, m.gone = m.add(spec.Kind.Created), m.add(spec.Kind.There), m.add(spec.Kind.Gone)
	m.arrivals = []int{m.there}
	for _, x := range spec.Kind.Milestones {
		if x.Of == "" {
			continue
		}
		kind := slices.Index(m.kinds, x.Of)
		if kind < 0 {
			kind = len(m.kinds)
			m.kinds, m.arrivals = append(m.kinds, x.Of), append(m.arrivals, -1)
		}
		i := m.add(x.Name)
		if m.of[i] = kind; x.There {
			m.arrivals[kind] = i
		}
	}
	return m
}

// kindOf returns the kind of an object by its name.
func (m *milestones) kindOf(name string) int {
	of, _, _ := strings.Cut(name, "/")
	return max(slices.Index(m.kinds, of), 0)
}

// reaches reports whether objects of a slot should reach a milestone: it is one of their kind. One that nobody has
// heard of is of the main kind.
func (m *milestones) reaches(s *slot, milestone int) bool {
	if milestone < 0 {
		return s.kind == 0
	}
	return m.of[milestone] == s.kind
}

// behind reports whether a milestone comes after the one at which objects of its kind count as there.
func (m *milestones) behind(milestone int) bool { return milestone > m.arrivals[m.of[milestone]] }

// add returns the index of a milestone, which may be new, or -1 for "".
func (m *milestones) add(name string) int {
	i := m.find(name)
	if i < 0 && name != "" {
		i = len(m.names)
		m.index[name] = i
		m.names, m.of = append(m.names, name), append(m.of, 0)
	}
	return i
}

// find returns the index of a milestone, or -1 for one without news.
func (m *milestones) find(name string) int {
	if i, ok := m.index[name]; ok {
		return i
	}
	return -1
}

type object struct {
	name     string
	first    record.Micros   // its first news
	at       []record.Micros // the time of each milestone, or Never
	where    int32           // index into placeNames, -1 unknown
	labels   []string        // its values of the labels that times are grouped by
	late     uint64          // bit i: the news of milestone i came late
	stamp    []int64         // the server's own time of each milestone in seconds since 1970, 0 for none
	early    []record.Micros // the earliest possible time of milestones with late news; nil is unknown
	there    bool            // at the arrival milestone, and not fallen from it since
	gone     bool
	failed   bool          // it will never be ready
	fell     record.Micros // when it left the arrival milestone or failed for good; Never if it did neither
	reason   string
	message  string
	class    string // of the trouble, "" where its reason says it
	troubled bool   // it had a trouble at any time
}

func (o *object) reached(milestone int) record.Micros {
	if milestone < 0 || milestone >= len(o.at) {
		return Never // the milestone was first heard of after the object
	}
	return o.at[milestone]
}

// slot is one request and the objects that it asked for.
type slot struct {
	name      string
	kind      int  // of its objects
	arrival   int  // the milestone at which these count as there
	shared    bool // its request is another slot's
	step      int
	component string
	units     int
	iteration int
	intended  record.Micros
	onRecord  bool // its request is on record, and not just news of what it asked for
	sent      record.Micros
	waited    record.Micros // for a place among the requests under way
	replied   record.Micros
	code      int
	retries   int
	throttled int
	delay     record.Micros
	outcome   record.SlotOutcome
	err       string
	objects   []*object          // in the order of their first news
	byName    map[string]*object // objects with a name of their own
	surplus   int                // objects beyond units by the end of the last step: each took the place of another
	released  bool               // the run itself has removed its objects
	renewed   int                // objects that may take the place of others, because the run has changed what makes them
	rolled    bool               // renewed at some time
}

// failed reports whether the slot's request was sent and refused, given up, or never answered.
func (s *slot) failed() bool {
	return s.onRecord && !s.shared && (s.outcome == record.SlotFailed || s.outcome == record.SlotUnknown)
}

// asked reports whether there was a request: a template that writes nothing for a slot asks for nothing.
func (s *slot) asked() bool {
	return s.onRecord && !s.shared && (s.units > 0 || s.code != 0 || s.outcome != record.SlotCreated)
}

// zeroOf returns an object's time zero: when its request was sent, or should have been by a schedule or a
// load for one moment; the first news where the request is unknown or a controller's.
func (s *slot) zeroOf(o *object) record.Micros {
	if o != nil && (o.name != s.name || !s.onRecord) {
		return o.first
	}
	return s.intended
}

// count returns how many objects the slot stands for; without its request, as many as there are.
func (s *slot) count() int {
	if s.onRecord {
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

// filling returns at most count objects, first those that are not gone; after a renewal first those that are there.
func (s *slot) filling() []*object {
	n := s.count()
	if len(s.objects) <= n {
		return s.objects
	}
	list := slices.Clone(s.objects)
	slices.SortStableFunc(list, func(a, b *object) int {
		return cmp.Or(result.CompareBool(a.gone, b.gone), result.CompareBool(s.rolled && !a.there, s.rolled && !b.there))
	})
	return list[:n]
}

// fill holds all that was requested of the target since it was last empty.
type fill struct {
	slots  []*slot
	byName map[string]*slot
	units  int            // that the steps set out to ask for
	made   map[kindIn]int // things without milestones
}

type kindIn struct{ kind, namespace string }

func newFill() *fill { return &fill{byName: make(map[string]*slot), made: make(map[kindIn]int)} }

// objects collects the requests and their objects, with the times of their milestones.
type objects struct {
	*milestones
	text           map[string]string
	place, leaving *fill   // leaving: of a target that is being emptied; its news counts, and it is not judged
	own            []*slot // new since the last step began
	placeIndex     map[string]int32
	placeNames     []string
}

func newObjects(spec *result.Spec) *objects {
	return &objects{
		milestones: newMilestones(spec), text: make(map[string]string),
		place: newFill(), leaving: newFill(), placeIndex: make(map[string]int32),
	}
}

func (c *objects) intern(s string) string {
	if t, ok := c.text[s]; ok {
		return t
	}
	c.text[s] = s
	return s
}

func (c *objects) placeOf(name string) int32 {
	i, ok := c.placeIndex[name]
	if !ok {
		i = int32(len(c.placeNames))
		c.placeIndex[name] = i
		c.placeNames = append(c.placeNames, name)
	}
	return i
}

// begin begins a step of so many objects. It returns the slots of which no more news can come.
func (c *objects) begin(units int) []*slot {
	var released []*slot
	c.place.slots = slices.DeleteFunc(c.place.slots, func(s *slot) bool {
		if !s.released {
			return false
		}
		released = append(released, s)
		c.place.units -= s.count()
		if c.place.byName[s.name] == s {
			delete(c.place.byName, s.name)
		}
		return true
	})
	c.place.units += units
	c.own = nil
	return append(released, c.forget(newFill())...)
}

func (c *objects) release(r *record.Release) {
	for _, name := range r.Slots {
		switch s := c.place.byName[name]; {
		case s == nil:
		case r.Renewed:
			s.renewed, s.rolled = s.renewed+s.units, true
		default:
			s.released = true
		}
	}
}

// empty lets the slots in place leave, and returns those that were leaving.
func (c *objects) empty() []*slot {
	place := c.place
	c.place = newFill()
	return c.forget(place)
}

func (c *objects) forget(next *fill) []*slot {
	gone := c.leaving.slots
	c.leaving = next
	return gone
}

func (c *objects) newSlot(name string, step int) *slot {
	s := &slot{name: name, step: step, intended: Never, sent: Never, replied: Never}
	s.kind = c.kindOf(name)
	s.arrival = c.arrivals[s.kind]
	c.place.byName[name] = s
	c.place.slots = append(c.place.slots, s)
	c.own = append(c.own, s)
	return s
}

func (c *objects) addSlot(step int, open bool, r *record.Slot) {
	s, ok := c.place.byName[r.Slot]
	switch {
	case !ok:
		s = c.newSlot(r.Slot, step)
	case s.onRecord:
		s = c.repeated(s, step, r.Outcome)
	case s.step != step:
		s.step = step // there was news before it was asked for
		c.own = append(c.own, s)
	}
	s.onRecord, s.shared = true, r.Shared
	s.component, s.units, s.iteration = c.intern(r.Component), max(r.Units, 0), r.Iteration
	s.intended, s.sent, s.replied, s.waited = r.Intended, r.Sent, r.Replied, r.Waited
	if !open && !r.AtOnce {
		s.intended = r.Sent
	}
	s.code, s.retries, s.throttled = r.Code, r.Retries, r.Throttled
	s.outcome, s.err, s.delay = r.Outcome, c.intern(r.Error), r.Delay
	if r.Units == 0 && r.Outcome == record.SlotCreated {
		namespace, _, _ := strings.Cut(r.Slot, "/")
		c.place.made[kindIn{r.Resource, namespace}]++
	}
}

// repeated makes the slot of a request whose name an earlier one had; each request is counted.
func (c *objects) repeated(was *slot, step int, outcome record.SlotOutcome) *slot {
	unmade := was.outcome == record.SlotFailed || was.outcome == record.SlotDropped
	if !was.released && (outcome == record.SlotCreated || outcome == record.SlotUnknown && unmade) {
		s := c.newSlot(was.name, step)
		s.objects, s.byName, s.surplus = was.objects, was.byName, was.surplus
		was.objects, was.byName, was.surplus = nil, nil, 0
		return s
	}
	s := c.newSlot(was.name, step)
	if !was.released {
		c.place.byName[was.name] = was
	}
	return s
}

// known finds the object of some news by its slot or name; if it is unknown, the slot it would fill.
func (c *objects) known(name, slotName string) (*slot, *object) {
	own := slotName == "" || slotName == name
	if own {
		slotName = name
	}
	s, ok := c.place.byName[slotName]
	if !ok {
		s, ok = c.leaving.byName[slotName]
	}
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

func (c *objects) newObject(s *slot, name string, t record.Micros) *object {
	o := &object{name: name, first: t, where: -1, fell: Never, at: make([]record.Micros, len(c.names))}
	for i := range o.at {
		o.at[i] = Never
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

func (c *objects) addObject(e record.Event, r *record.Object) {
	i := c.add(r.Milestone)
	if i < 0 {
		return // it has no name
	}
	s, o := c.known(r.Object, r.Slot)
	switch {
	case c.arrivals[c.kindOf(r.Object)] < 0:
		return // of something that no load makes
	case o == nil && i == c.gone:
		return // of something that was never in place, or is gone already
	case o == nil || i == c.created && s.released && o.gone:
		if s == nil || s.released { // it is made again, or its news came before the request's own reply
			s = c.newSlot(cmp.Or(r.Slot, r.Object), e.Step)
		}
		o = c.newObject(s, r.Object, e.T)
	case i == c.created && (o.gone || o.reached(i) != Never):
		// The name came again: somebody replaced the object.
		o.gone, o.there = true, false
		o = c.newObject(s, r.Object, e.T)
	case o.gone:
		return // nothing follows an object's end
	}
	for len(o.at) <= i {
		o.at = append(o.at, Never)
	}
	if o.at[i] == Never {
		o.at[i] = e.T
	}
	if r.Component != "" && s.component == "" {
		s.component = c.intern(r.Component)
	}
	if r.Place != "" {
		o.where = c.placeOf(r.Place)
	}
	if o.labels == nil {
		for _, value := range r.Labels {
			o.labels = append(o.labels, c.intern(value))
		}
	}
	if r.Late {
		o.setLate(i)
	}
	if r.Stamp != 0 && o.at[i] == e.T {
		for len(o.stamp) <= i {
			o.stamp = append(o.stamp, 0)
		}
		o.stamp[i] = r.Stamp
	}
	switch i {
	case s.arrival:
		o.there = true
	case c.gone:
		o.gone, o.there = true, false
	}
}

// addState takes in an object's report, and returns its last reason, and whether the run itself has it removed;
// ok is false for one that is not in place.
func (c *objects) addState(e record.Event, r *record.State) (was string, removed, ok bool) {
	s, o := c.known(r.Object, r.Slot)
	if o == nil || o.gone {
		return "", false, false
	}
	was = o.reason
	o.troubled = o.troubled || r.Reason != ""
	o.reason, o.message, o.class = c.intern(r.Reason), c.intern(r.Message), c.intern(r.Class)
	if r.Place != "" {
		o.where = c.placeOf(r.Place)
	}
	o.failed = o.failed || r.Failed
	if r.Lost != "" {
		o.there = false
	} else if r.Regained != "" {
		o.there = true
	}
	switch out := o.failed || r.Lost != ""; {
	case out && o.fell == Never:
		o.fell = e.T
	case o.there && !o.failed:
		o.fell = Never
	}
	return was, s.released || s.rolled, true
}

// end puts into a step's facts the objects that fill the slots in place, and those replaced in the step.
func (c *objects) end(f *Facts) {
	f.milestones, f.own, f.place, f.setOut, f.made = c.milestones, c.own, c.place.slots, c.place.units, c.place.made
	f.placeNames = c.placeNames
	dateByServer(c.own, c.created, len(f.head.Missed) > 0 || f.canaries.Unseen > 0)
	f.units = make([]unit, 0, len(f.place))
	if emptied := func(s *slot) bool { return s.released && s.step != f.head.ID }; slices.ContainsFunc(f.place, emptied) {
		f.place = slices.DeleteFunc(slices.Clone(f.place), func(s *slot) bool {
			if emptied(s) {
				f.setOut -= s.count()
			}
			return emptied(s)
		})
	}
	for _, s := range f.place {
		surplus := len(s.objects) - s.units
		if renewed := max(min(surplus-s.surplus, s.renewed), 0); s.onRecord {
			s.surplus, s.renewed = s.surplus+renewed, s.renewed-renewed
		}
		if s.onRecord && s.units > 0 && surplus > s.surplus {
			if at := s.objects[s.units+s.surplus].first; f.Replaced == 0 || at < f.ReplacedAt {
				f.ReplacedAt = at
			}
			f.Replaced += surplus - s.surplus
			s.surplus = surplus
		}
		own := s.step == f.head.ID
		if own {
			f.asked += s.count()
		}
		if own && !f.judges(s) {
			continue
		}
		filling := s.filling()
		for i := range s.count() {
			u := unit{slot: s, own: own}
			if i < len(filling) {
				u.object = filling[i]
			}
			u.zero = s.zeroOf(u.object)
			f.units = append(f.units, u)
		}
	}
}

// row returns a slot's object for objects.parquet, by the step that asked for it, or nil.
func (c *objects) row(s *slot, i int, step *result.Step) record.ObjectRow {
	row := record.ObjectRow{
		Slot: s.name, Step: int64(s.step), Component: s.component, Iteration: int64(s.iteration),
		Intended: int64(s.intended), Sent: int64(s.sent), Replied: int64(s.replied), Zero: int64(s.zeroOf(nil)),
		Code: int64(s.code), Retries: int64(s.retries), Throttled: int64(s.throttled),
		PlantedDelay: int64(s.delay), Outcome: string(s.outcome), Error: s.err,
	}
	if i > 0 || s.byName != nil {
		row.Slot = fmt.Sprintf("%s#%d", s.name, i)
	}
	if step != nil {
		row.Level, row.Arm, row.Replicate = step.Level, step.Arm, int64(step.Replicate)
	}
	if i >= len(s.objects) {
		return row
	}
	o := s.objects[i]
	row.Zero = int64(s.zeroOf(o))
	if o.where >= 0 {
		row.Place = c.placeNames[o.where]
	}
	row.Reason, row.Message, row.Late, row.There = o.reason, o.message, o.late != 0, o.there
	row.Milestones = make(map[string]int64, len(o.at))
	for m, at := range o.at {
		if at != Never {
			row.Milestones[c.names[m]] = int64(at)
		}
	}
	return row
}
